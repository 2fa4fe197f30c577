/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pass over the mappings says which files the code is in; each of these is opened as the kernel
 * named it (mapped_file.h).
 */
#include "agent/files/code_files.h"

#include "base/hash.h"

#include <elf.h>
#include <stdlib.h>

#define KERNEL_MINOR_BITS 20

struct reading {
	const struct code_files_asked *asked;
	struct file_notice *files;
	uint32_t count;
};

static bool take(void *ctx, const struct procfs_map *m)
{
	struct reading *r = ctx;
	struct file_key key = { m->inode, m->dev_major << KERNEL_MINOR_BITS | m->dev_minor, 0 };
	if (r->asked->mapping)
		r->asked->mapping(r->asked->ctx, m);
	if (m->exec && m->inode && r->count < CODE_FILES_MAX)
		r->files[r->count++] = (struct file_notice){ key, m->start, m->end, m->offset };
	return true;
}

static uint64_t hash_of(const struct file_key *key)
{
	return hash_u64(key->inode ^ hash_u64(key->dev)) | 1;
}

static uint64_t *set_of(struct code_files_memory *known, uint64_t hash)
{
	return known->none[hash / 2 % CODE_FILES_NONE_SETS];
}

static bool has_none(struct code_files_memory *known, uint64_t hash)
{
	const uint64_t *set = set_of(known, hash);
	bool found = false;
	for (size_t i = 0; i < CODE_FILES_NONE_WAYS; i++)
		found |= set[i] == hash;
	return found;
}

/* The one remembered first of its set is forgotten. */
static void remember_none(struct code_files_memory *known, uint64_t hash)
{
	uint64_t *set = set_of(known, hash);
	memmove(set + 1, set, (CODE_FILES_NONE_WAYS - 1) * sizeof(*set));
	set[0] = hash;
}

/* *out plus an address in the file is the address in memory. A page of the file may belong to two
 * segments (lld, mold) and is then mapped twice; this mapping is that of the segment with code. */
static bool bias_of(const struct objfile *obj, const struct file_notice *n, uint64_t *out)
{
	uint32_t count;
	const struct objfile_segment *v = objfile_segments(obj, &count);
	uint64_t end = n->offset + (n->vma_end - n->vma_start);
	for (uint32_t i = 0; i < count; i++) {
		bool begins_before = v[i].offset <= n->offset;
		bool is_mapped = begins_before ? n->offset - v[i].offset < v[i].file_size
					       : v[i].offset < end;
		if (!(v[i].flags & PF_X) || !is_mapped)
			continue;
		*out = n->vma_start - n->offset - (v[i].vaddr - v[i].offset);
		return true;
	}
	return false;
}

enum has { HAS_UNKNOWN, HAS_NONE, HAS_IT };

/* Unknown where it cannot be opened now: the process may have ended, and another uses the file. */
static enum has ask_file(int pid, const struct file_notice *n, const struct code_files_asked *asked)
{
	char path[OPEN_FILE_PATH_MAX];
	CLEANUP(open_file_close) struct open_file f = { .fd = -1 };
	struct objfile *obj = NULL;
	uint64_t bias;
	enum status s = mapped_file_open(pid, n, &f, path, NULL);
	if (s == OK)
		s = open_file_objfile(&f, path, &obj, NULL);
	if (s != OK)
		return s == E_INVALID ? HAS_NONE : HAS_UNKNOWN;
	bool has = bias_of(obj, n, &bias) && asked->ask(asked->ctx, obj, bias);
	objfile_close(obj);
	return has ? HAS_IT : HAS_NONE;
}

static uint32_t ask_files(struct code_files_memory *known, int pid, const struct reading *r)
{
	uint32_t opened = 0, found = 0;
	int64_t begun = clock_monotonic_ns();
	for (uint32_t i = 0; i < r->count && found < r->asked->most; i++) {
		uint64_t hash = hash_of(&r->files[i].key);
		if (has_none(known, hash))
			continue;
		bool is_late = opened && clock_monotonic_ns() - begun > CODE_FILES_FIND_NS;
		if (is_late || opened++ == CODE_FILES_OPEN_MAX)
			break;
		enum has has = ask_file(pid, &r->files[i], r->asked);
		found += has == HAS_IT;
		if (has == HAS_NONE)
			remember_none(known, hash);
	}
	return found;
}

enum status code_files_each(struct code_files_memory *known, int pid,
	const struct code_files_asked *asked, uint32_t *out_count)
{
	struct reading r = { .asked = asked };
	r.files = calloc(CODE_FILES_MAX, sizeof(*r.files));
	if (!r.files)
		return E_NOMEM;
	bool is_read = mapped_file_each(pid, take, &r, NULL) == OK;
	*out_count = 0;
	if (is_read && (!asked->is_wanted || asked->is_wanted(asked->ctx)))
		*out_count = ask_files(known, pid, &r);
	free(r.files);
	return is_read ? OK : E_NOTFOUND;
}
