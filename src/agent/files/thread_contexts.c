/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the mappings says whether there is a context, whose C library the process has, and
 * which files its code is in; each of these is opened as the kernel named it (mapped_file.h).
 */
#include "agent/files/thread_contexts.h"

#include "agent/files/mapped_file.h"
#include "base/hash.h"
#include "runtimes/runtimes.h"

#include <stdlib.h>

#define KERNEL_MINOR_BITS 20

struct reading {
	struct file_notice *files;
	uint32_t count;
	bool has_context, is_musl;
};

static bool is_context(struct str path)
{
	return str_eq(path, STR("[anon_shmem:OTEL_CTX]")) || str_eq(path, STR("[anon:OTEL_CTX]")) ||
	       str_starts(path, STR("/memfd:OTEL_CTX"));
}

static bool look(void *ctx, const struct procfs_map *m)
{
	struct reading *r = ctx;
	struct file_key key = { m->inode, m->dev_major << KERNEL_MINOR_BITS | m->dev_minor, 0 };
	r->has_context |= is_context(m->path);
	if (!m->exec || !m->inode || r->count == THREAD_CONTEXTS_FILES_MAX)
		return true;
	size_t slash = m->path.len;
	while (slash && m->path.p[slash - 1] != '/')
		slash--;
	r->is_musl |= str_starts(str_sub(m->path, slash, m->path.len), STR("ld-musl-"));
	r->files[r->count++] = (struct file_notice){ key, m->start, m->end, m->offset };
	return true;
}

static uint64_t *place_of(struct thread_contexts *t, const struct file_key *key, uint64_t *out_hash)
{
	*out_hash = hash_u64(key->inode ^ hash_u64(key->dev)) | 1;
	return &t->none[*out_hash / 2 % THREAD_CONTEXTS_NONE];
}

static bool find_in_file(int pid, const struct file_notice *n, struct thread_context_place *out)
{
	char path[OPEN_FILE_PATH_MAX];
	CLEANUP(open_file_close) struct open_file f = { .fd = -1 };
	struct objfile *obj = NULL;
	struct runtimes_thread_context found;
	struct vaddr vaddr;
	if (mapped_file_open(pid, n, &f, path, NULL) != OK ||
		open_file_objfile(&f, path, &obj, NULL) != OK)
		return false;
	bool is_found = runtimes_thread_context(obj, &found) &&
			objfile_vaddr_of(obj, (struct fileoff){ n->offset }, &vaddr);
	objfile_close(obj);
	if (!is_found)
		return false;
	out->form = found.form;
	out->at = found.at;
	if (found.form != THREAD_CONTEXT_FIXED)
		out->at += n->vma_start - vaddr.v;
	return true;
}

enum status thread_contexts_find(
	struct thread_contexts *t, int pid, struct thread_context_place *out)
{
	struct reading r = { 0 };
	uint32_t opened = 0;
	int64_t begun = clock_monotonic_ns();
	r.files = calloc(THREAD_CONTEXTS_FILES_MAX, sizeof(*r.files));
	if (!r.files)
		return E_NOMEM;
	enum status s = mapped_file_each(pid, look, &r, NULL);
	bool found = false;
	for (uint32_t i = 0; s == OK && r.has_context && i < r.count && !found; i++) {
		uint64_t hash, *none = place_of(t, &r.files[i].key, &hash);
		if (*none == hash)
			continue;
		bool is_late = opened && clock_monotonic_ns() - begun > THREAD_CONTEXTS_FIND_NS;
		if (is_late || opened++ == THREAD_CONTEXTS_OPEN_MAX)
			break;
		found = find_in_file(pid, &r.files[i], out);
		if (!found)
			*none = hash;
	}
	out->is_musl = r.is_musl;
	free(r.files);
	return found ? OK : E_NOTFOUND;
}
