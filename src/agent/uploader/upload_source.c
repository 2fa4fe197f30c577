/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A descriptor of a file that was just met may be there still; otherwise it is opened anew: by
 * mapped_file_open(), or, where the process has ended, by its path as the host sees it. Whatever
 * was opened must have the build id of the job: for names that is enough.
 *
 * A file on a file system that may hang is read by the broker, in pieces. Such a device may be
 * read for a part of the time only (docs/formats/broker.md), and others need it too: so the sender
 * pauses much longer than it reads.
 */
#include "agent/uploader/upload_source.h"

#include "agent/files/files.h"
#include "os/os.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Answers of a file system within this time cost nothing. */
#define QUICK_NS (10 * NS_PER_MS)

static enum status another(const struct upload_job *job, struct err *e)
{
	return err_set(e, E_NOTFOUND, "%s: another file by now", job->path);
}

/* Its build id, or what stands for it, is that of the samples. */
static enum status check_id(const struct objfile *obj, const struct upload_job *job,
	bool *out_is_content, struct err *e)
{
	char content[40];
	const char *id = objfile_build_id(obj);
	*out_is_content = !id[0];
	if (!id[0]) {
		enum status s = objfile_content_id(obj, content, e);
		if (s != OK)
			return s;
		id = content;
	}
	return strcmp(id, job->build_id) == 0 ? OK : another(job, e);
}

/* ---- opening ---- */

/* As the host sees a path, and where process 1 is closed to us as we see it. */
static enum status open_in_root(const char *path, struct open_file *out, struct err *e)
{
	char full[PATH_MAX + 64];
	snprintf(full, sizeof(full), "/proc/1/root%s", path);
	enum status s = open_file_open(full, 0, out, e);
	if (s == OK || s == E_TIMEOUT)
		return s;
	snprintf(full, sizeof(full), "/proc/%d/root%s", (int)getpid(), path);
	return open_file_open(full, 0, out, e);
}

/* The process is gone: another may be run from the same path. */
static enum status open_by_path(const struct upload_job *job, struct open_file *out, struct err *e)
{
	if (job->path[0] != '/')
		return err_set(e, E_NOTFOUND, "%s: it is gone", job->path);
	return open_in_root(job->path, out, e);
}

static enum status open_anew(const struct upload_job *job, upload_key_fn *find_key, void *ctx,
	struct open_file *out, struct err *e)
{
	char path[OPEN_FILE_PATH_MAX];
	struct file_notice n = { 0 };
	enum status s = E_NOTFOUND;
	if (job->pid && find_key(ctx, job->file_id, &n.key))
		s = mapped_file_open(job->pid, &n, out, path, e);
	if (s == OK || s == E_TIMEOUT)
		return s;
	return open_by_path(job, out, e);
}

static enum status open_file(struct upload_source *x, const struct upload_job *job,
	upload_key_fn *find_key, void *ctx, struct err *e)
{
	int fd = job->fd >= 0 ? dup(job->fd) : -1;
	enum status s = fd >= 0 ? open_file_init(&x->file, fd, job->path, e)
				: open_anew(job, find_key, ctx, &x->file, e);
	return s == OK ? open_file_objfile(&x->file, job->path, &x->obj, e) : s;
}

/* ---- the separate debug file ---- */

static bool names_itself(const struct objfile *obj)
{
	static const char *const names[] = { ".symtab", ".debug_info", ".zdebug_info", ".gopclntab",
		".data.rel.ro.gopclntab" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (objfile_section(obj, names[i]))
			return true;
	return false;
}

/* Takes its place, if it is the one. */
static bool take_debug_file(struct upload_source *x, const struct upload_job *job, const char *path)
{
	struct open_file f = { .fd = -1 };
	struct objfile *obj = NULL;
	bool is_content = false;
	if (open_in_root(path, &f, NULL) != OK)
		return false;
	/* A pinned file must stay at its address, and `f` does not. */
	if (f.is_pinned || open_file_objfile(&f, path, &obj, NULL) != OK ||
		check_id(obj, job, &is_content, NULL) != OK || !names_itself(obj)) {
		objfile_close(obj);
		open_file_close(&f);
		return false;
	}
	objfile_close(x->obj);
	open_file_close(&x->file);
	x->obj = obj;
	x->file = f;
	return true;
}

static void look_for_debug_file(
	struct upload_source *x, const struct upload_job *job, const struct upload_source_config *c)
{
	static const char *const usual[] = { "/usr/lib/debug", NULL };
	const char *id = job->build_id;
	char path[PATH_MAX];
	if (x->id_type != UPLOAD_ID_GNU || strlen(id) < 4 || names_itself(x->obj))
		return;
	for (const char *const *f = c->debug_folders ? c->debug_folders : usual; *f; f++) {
		int n = snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", *f, id, id + 2);
		if (n > 0 && n < (int)sizeof(path) && take_debug_file(x, job, path))
			return;
	}
}

/* ---- */

static enum status lay_out(struct upload_source *x, const struct upload_job *job, struct err *e)
{
	enum status s = objfile_content_id(x->obj, x->hash, e);
	if (s == OK)
		s = debuginfo_extract_new(x->obj, &x->extract, e);
	if (s == E_NOTFOUND || (s == OK && !debuginfo_extract_has_names(x->extract)))
		return err_set(e, E_UNSUPPORTED,
			"%s: it was stripped: nothing in it names a function", job->path);
	if (s == OK)
		x->bytes = x->strips ? debuginfo_extract_bytes(x->extract) : objfile_size(x->obj);
	return s;
}

static enum status open_source(struct upload_source *x, const struct upload_job *job,
	const struct upload_source_config *c, upload_key_fn *find_key, void *ctx, struct err *e)
{
	bool is_content = false;
	struct str image;
	enum status s = job->file_id == FRAME_FILE_VDSO ? open_file_vdso(&x->obj, &image, e)
							: open_file(x, job, find_key, ctx, e);
	if (s == OK && !x->obj)
		return err_set(e, E_NOTFOUND, "%s: there is none", job->path);
	if (s == OK)
		s = check_id(x->obj, job, &is_content, e);
	if (s != OK)
		return s;
	x->id_type = is_content ? UPLOAD_ID_HASH : UPLOAD_ID_GNU;
	if (job->file_id != FRAME_FILE_VDSO)
		look_for_debug_file(x, job, c);
	return lay_out(x, job, e);
}

enum status upload_source_open(const struct upload_job *job, const struct upload_source_config *c,
	upload_key_fn *find_key, void *ctx, struct upload_source *out, struct err *e)
{
	*out = (struct upload_source){ .file.fd = -1, .strips = c->strip };
	enum status s = open_source(out, job, c, find_key, ctx, e);
	if (s != OK)
		upload_source_close(out);
	return s;
}

void upload_source_close(struct upload_source *s)
{
	debuginfo_extract_free(s->extract);
	objfile_close(s->obj);
	open_file_close(&s->file);
	*s = (struct upload_source){ .file.fd = -1 };
}

enum status upload_source_read(void *ctx, uint64_t at, void *out, size_t len, struct err *e)
{
	struct upload_source *x = ctx;
	int64_t begin = clock_monotonic_ns();
	enum status s = x->strips ? debuginfo_extract_read(x->extract, at, out, len, e)
				  : objfile_read(x->obj, at, out, len, e);
	int64_t took = clock_monotonic_ns() - begin;
	if (x->file.is_pinned && took > QUICK_NS)
		x->slow_ns += took;
	return s;
}

static bool is_same_stat(const struct broker_stat *a, const struct broker_stat *b)
{
	return a->inode == b->inode && a->bytes == b->bytes && a->modified_s == b->modified_s &&
	       a->modified_ns == b->modified_ns;
}

/* Compares size and time of the last change of the content; that the file lost a name is no change.
 * A file that is pinned in the broker must be opened once more for this. */
bool upload_source_is_same(const struct upload_source *s, const struct upload_job *job,
	upload_key_fn *find_key, void *ctx)
{
	struct open_file now = { .fd = -1 };
	enum status st;
	if (s->file.is_pinned) {
		st = open_anew(job, find_key, ctx, &now, NULL);
	} else {
		int fd = s->file.fd >= 0 ? dup(s->file.fd) : -1;
		if (fd < 0)
			return s->file.fd < 0; /* the vDSO does not change */
		st = open_file_init(&now, fd, job->path, NULL);
	}
	bool same = st == OK && is_same_stat(&s->file.pinned.stat, &now.pinned.stat);
	open_file_close(&now);
	return same;
}
