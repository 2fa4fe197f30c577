/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file a table. The modification time says when a table was used last: loading sets it. The
 * folder is read when the cache is opened, and when it is over its limit: then the oldest files go
 * until a quarter of the limit is free, so that this is rare.
 */
#include "agent/files/tablecache.h"

#include "base/arena.h"
#include "base/vec.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)128 << 20)
#define FILE_MODE 0640
#define NAMES_BYTES_MAX ((size_t)16 << 20)
#define SUFFIX ".unwind"

struct tablecache {
	char *dir;
	uint64_t bytes_max;
	uint64_t bytes;
};

struct cached { /* a file of the folder */
	struct str name;
	uint64_t bytes;
	int64_t used_ns;
};

void tablecache_close(struct tablecache *c)
{
	if (!c)
		return;
	free(c->dir);
	free(c);
}

static bool path_of(const struct tablecache *c, struct str name, const char *suffix, char *out)
{
	int n = snprintf(out, PATH_MAX, "%s/%.*s%s", c->dir, STR_ARG(name), suffix);
	return n > 0 && n < PATH_MAX;
}

static int by_age(const void *a, const void *b)
{
	const struct cached *x = a;
	const struct cached *y = b;
	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns ? -1 : 1;
	return str_cmp(x->name, y->name);
}

/* Read the folder, oldest first, and sum it up. Another's files (without the suffix) stay out. */
static enum status read_folder(struct tablecache *c, struct arena *a, struct cached **out,
	size_t *out_count, struct err *e)
{
	struct str *names = NULL;
	size_t count = 0;
	enum status s = os_list_dir(c->dir, a, &names, &count, e);
	if (s != OK)
		return s;
	count = MIN(count, (size_t)TABLECACHE_FILES_MAX);
	struct cached *files = ARENA_ARRAY(a, struct cached, count);
	if (!files)
		return err_set(e, arena_status(a), "list %s", c->dir);
	size_t kept = 0;
	c->bytes = 0;
	for (size_t i = 0; i < count; i++) {
		char path[PATH_MAX];
		struct stat st;
		bool is_ours = str_ends(names[i], STR(SUFFIX)) || str_ends(names[i], STR(".tmp"));
		if (!is_ours || !path_of(c, names[i], "", path) || lstat(path, &st) < 0 ||
			!S_ISREG(st.st_mode))
			continue;
		if (str_ends(names[i], STR(".tmp"))) { /* of a process that died writing it */
			unlink(path);
			continue;
		}
		c->bytes += (uint64_t)st.st_size;
		files[kept++] = (struct cached){ names[i], (uint64_t)st.st_size,
			st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec };
	}
	if (kept)
		qsort(files, kept, sizeof(files[0]), by_age);
	*out = files;
	*out_count = kept;
	return OK;
}

static enum status shrink(struct tablecache *c, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, NAMES_BYTES_MAX);
	struct cached *files = NULL;
	size_t count = 0;
	enum status s = read_folder(c, &a, &files, &count, e);
	if (s != OK || c->bytes <= c->bytes_max)
		return s;
	for (size_t i = 0; i < count && c->bytes > c->bytes_max - c->bytes_max / 4; i++) {
		char path[PATH_MAX];
		if (path_of(c, files[i].name, "", path) && unlink(path) == 0)
			c->bytes -= files[i].bytes;
	}
	return OK;
}

enum status tablecache_open(
	const char *dir, uint64_t bytes_max, struct tablecache **out, struct err *e)
{
	enum status s = os_make_dirs(dir, e);
	if (s != OK)
		return s;
	struct tablecache *c = calloc(1, sizeof(*c));
	if (c)
		c->dir = strdup(dir);
	if (!c || !c->dir) {
		tablecache_close(c);
		return err_set(e, E_NOMEM, "%s", dir);
	}
	c->bytes_max = bytes_max;
	s = shrink(c, e);
	if (s != OK) {
		tablecache_close(c);
		return s;
	}
	*out = c;
	return OK;
}

static bool name_is_plain(const char *name)
{
	return name[0] && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.") ==
		       strlen(name);
}

enum status tablecache_load(
	struct tablecache *c, const char *name, struct unwind_table **out, struct err *e)
{
	char path[PATH_MAX];
	if (!name_is_plain(name) || !path_of(c, str_of(name), SUFFIX, path))
		return err_set(e, E_INVALID, "unwind cache: name \"%s\"", name);
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, FILE_BYTES_MAX);
	enum status s = os_read_file(path, &bytes, e);
	if (s == E_NOTFOUND)
		return s;
	if (s == OK)
		s = unwind_table_decode_take(&bytes, out, e);
	if (s == OK) {
		(void)utimensat(AT_FDCWD, path, NULL, 0);
		return OK;
	}
	struct stat st;
	if (s != E_NOMEM && lstat(path, &st) == 0 && unlink(path) == 0)
		c->bytes -= MIN(c->bytes, (uint64_t)st.st_size);
	return err_prefix(e, s == E_NOMEM ? s : E_NOTFOUND, "%s", path);
}

enum status tablecache_store(
	struct tablecache *c, const char *name, const struct unwind_table *t, struct err *e)
{
	char path[PATH_MAX];
	if (!name_is_plain(name) || !path_of(c, str_of(name), SUFFIX, path))
		return err_set(e, E_INVALID, "unwind cache: name \"%s\"", name);
	CLEANUP(buf_deinit) struct buf head;
	CLEANUP(buf_deinit) struct buf tail;
	buf_init(&head, FILE_BYTES_MAX);
	buf_init(&tail, FILE_BYTES_MAX);
	struct str blobs;
	enum status s = unwind_table_encode_parts(t, &head, &blobs, &tail);
	if (s != OK)
		return err_set(e, s, "%s", path);
	size_t bytes = head.len + blobs.len + tail.len;
	if (bytes > c->bytes_max || bytes > FILE_BYTES_MAX)
		return err_set(e, E_LIMIT, "%s: %zu bytes", path, bytes);
	const struct str parts[] = { buf_view(&head), blobs, buf_view(&tail) };
	s = os_replace_file_parts(path, parts, ARRAY_COUNT(parts), FILE_MODE, e);
	if (s != OK)
		return s;
	c->bytes += bytes;
	return c->bytes > c->bytes_max ? shrink(c, e) : OK;
}

uint64_t tablecache_bytes(const struct tablecache *c)
{
	return c->bytes;
}
