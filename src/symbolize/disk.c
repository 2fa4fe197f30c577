/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file a table: DIR/xx/rest.sym. Its time of modification says when it was used last; opening
 * the table sets it, at most once an hour. The folders are read when the symbolizer starts, and
 * when the bytes on disk pass the limit: then the least recently used tables are removed, until a
 * quarter of the limit is free, so that this is rare. A table that is mapped meanwhile stays
 * readable.
 */
#include "symbolize/disk.h"
#include "symbolize/find.h"

#include "base/clock.h"
#include "os/os.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".sym"
#define NAMES_BYTES_MAX ((size_t)64 << 20)
#define USED_AGAIN_S 3600

bool symbolize_disk_path(
	const struct symbolize_disk *d, const char *id, bool folder, char out[SYMBOLIZE_PATH_MAX])
{
	int n = folder ? snprintf(out, SYMBOLIZE_PATH_MAX, "%s/%.2s", d->dir, id)
		       : snprintf(out, SYMBOLIZE_PATH_MAX, "%s/%.2s/%s" SUFFIX, d->dir, id, id + 2);
	return n > 0 && n < SYMBOLIZE_PATH_MAX;
}

static bool path_of(const struct symbolize_disk *d, const char *name, char out[SYMBOLIZE_PATH_MAX])
{
	int n = snprintf(out, SYMBOLIZE_PATH_MAX, "%s/%s", d->dir, name);
	return n > 0 && n < SYMBOLIZE_PATH_MAX;
}

/* Removes leftovers of a run that was killed, rest.sym.XXXXXX; files that are not ours are ignored.
 */
static bool take_file(struct symbolize_listing *r, struct str folder, struct str file)
{
	struct symbolize_on_disk f = { .name = "" };
	char path[SYMBOLIZE_PATH_MAX];
	struct stat st;
	size_t dot = str_rindex(file, '.');
	int n = snprintf(f.name, sizeof(f.name), "%.*s/%.*s", STR_ARG(folder), STR_ARG(file));
	if (str_ends(str_sub(file, 0, dot), STR(SUFFIX))) {
		n = snprintf(path, sizeof(path), "%s/%.*s/%.*s", r->d->dir, STR_ARG(folder),
			STR_ARG(file));
		if (r->d->is_starting && n < (int)sizeof(path))
			unlink(path);
		return true;
	}
	if (!str_ends(file, STR(SUFFIX)) || n >= (int)sizeof(f.name) ||
		!path_of(r->d, f.name, path) || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return true;
	f.bytes = (uint64_t)st.st_blocks * 512;
	f.used_ns = st.st_mtim.tv_sec * NS_PER_SEC + st.st_mtim.tv_nsec;
	r->bytes += f.bytes;
	return VEC_PUSH(&r->files, f);
}

static enum status take_folder(struct symbolize_listing *r, struct str folder, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct str *names;
	size_t count;
	char path[SYMBOLIZE_PATH_MAX];
	arena_init(&a, NAMES_BYTES_MAX);
	int n = snprintf(path, sizeof(path), "%s/%.*s", r->d->dir, STR_ARG(folder));
	if (folder.len != 2 || n >= (int)sizeof(path) ||
		os_list_dir(path, &a, &names, &count, NULL) != OK)
		return OK;
	for (size_t i = 0; i < count; i++)
		if (!take_file(r, folder, names[i]))
			return err_set(e, E_NOMEM, "symbol tables");
	return OK;
}

static int longest_unused_first(const void *a, const void *b)
{
	const struct symbolize_on_disk *x = a, *y = b;
	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns ? -1 : 1;
	return strcmp(x->name, y->name);
}

static void drop_some(struct symbolize_disk *d, struct symbolize_listing *r, const char *keep)
{
	if (r->files.len)
		qsort(r->files.v, r->files.len, sizeof(r->files.v[0]), longest_unused_first);
	for (size_t i = 0; i < r->files.len && r->bytes > d->bytes_max - d->bytes_max / 4; i++) {
		char path[SYMBOLIZE_PATH_MAX];
		if (!path_of(d, r->files.v[i].name, path) || strcmp(path, keep) == 0 ||
			unlink(path) < 0)
			continue;
		r->bytes -= r->files.v[i].bytes;
		metric_add(&d->metrics->dropped, 1);
	}
}

static enum status read_folders(
	struct symbolize_disk *d, struct symbolize_listing *r, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct str *folders;
	size_t count;
	r->d = d;
	arena_init(&a, NAMES_BYTES_MAX);
	enum status s = os_list_dir(d->dir, &a, &folders, &count, e);
	for (size_t i = 0; s == OK && i < count; i++)
		s = take_folder(r, folders[i], e);
	return s;
}

enum status symbolize_disk_list(
	struct symbolize_disk *d, struct symbolize_listing *out, struct err *e)
{
	lock_take(&d->lock);
	enum status s = read_folders(d, out, e);
	if (s == OK) {
		d->bytes = out->bytes;
		metric_set(&d->metrics->disk_bytes, out->bytes);
	}
	lock_release(&d->lock);
	return s;
}

/* With the lock held. */
static enum status settle(struct symbolize_disk *d, const char *keep, struct err *e)
{
	struct symbolize_listing r = { 0 };
	enum status s = read_folders(d, &r, e);
	if (s == OK && r.bytes > d->bytes_max)
		drop_some(d, &r, keep);
	if (s == OK) {
		d->bytes = r.bytes;
		metric_set(&d->metrics->disk_bytes, r.bytes);
	}
	VEC_FREE(&r.files);
	return s;
}

enum status symbolize_disk_init(struct symbolize_disk *d, const char *dir, uint64_t bytes_max,
	struct symbolize_metrics *metrics, struct err *e)
{
	*d = (struct symbolize_disk){ .bytes_max = bytes_max, .metrics = metrics };
	lock_init(&d->lock, LOCK_SYMBOLIZE_DISK);
	d->dir = strdup(dir);
	if (!d->dir)
		return err_set(e, E_NOMEM, "symbol tables");
	enum status s = os_make_dirs(dir, e);
	d->is_starting = true;
	if (s == OK)
		s = settle(d, "", e);
	d->is_starting = false;
	return s;
}

void symbolize_disk_deinit(struct symbolize_disk *d)
{
	if (!d->metrics)
		return;
	free(d->dir);
	lock_destroy(&d->lock);
}

void symbolize_disk_used(const char *path)
{
	struct stat st;
	if (lstat(path, &st) == 0 &&
		clock_realtime_ns() / NS_PER_SEC - st.st_mtim.tv_sec > USED_AGAIN_S)
		(void)utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW);
}

uint64_t symbolize_disk_bytes(struct symbolize_disk *d)
{
	lock_take(&d->lock);
	uint64_t bytes = d->bytes;
	lock_release(&d->lock);
	return bytes;
}

void symbolize_disk_freed(struct symbolize_disk *d, uint64_t bytes)
{
	lock_take(&d->lock);
	d->bytes -= MIN(d->bytes, bytes);
	metric_set(&d->metrics->disk_bytes, d->bytes);
	lock_release(&d->lock);
}

void symbolize_disk_added(struct symbolize_disk *d, const char *path)
{
	struct stat st;
	if (lstat(path, &st) < 0)
		return;
	lock_take(&d->lock);
	/* The table that it replaced stays counted until the folders are read. */
	d->bytes += (uint64_t)st.st_blocks * 512;
	metric_set(&d->metrics->disk_bytes, d->bytes);
	if (d->bytes > d->bytes_max)
		(void)!settle(d, path, NULL);
	lock_release(&d->lock);
}
