/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A directory as a place of parts. A file is written under a temporary name, synced, renamed, and
 * the directory is synced: what has the suffix .part is whole. If the last sync fails, it tries to
 * remove the file again.
 */
#include "store/disk/place.h"

#include "base/arena.h"
#include "store/disk/io.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define NAMES_BYTES_MAX ((size_t)256 << 20)

struct directory {
	struct place place;
	char path[STORE_PATH_MAX];
};

struct file_put {
	struct place_put put;
	char tmp[STORE_PATH_MAX];
	char path[STORE_PATH_MAX];
	int fd;
	bool finished;
};

static enum status path_of(const struct place *p, uint64_t id, const char *suffix,
	char out[STORE_PATH_MAX], struct err *e)
{
	const struct directory *d = (const struct directory *)p;
	return store_path(out, e, "%s/%016llx.%s", d->path, (unsigned long long)id, suffix);
}

/* 16 hexadecimal digits and the suffix. */
static bool is_id(struct str name, const char *suffix, uint64_t *id)
{
	struct str end = str_of(suffix);
	return name.len == 16 + end.len && str_ends(name, end) &&
	       str_parse_u64(str_sub(name, 0, 16), 16, id);
}

static enum status list_name(
	struct place *p, struct str name, place_fn *fn, void *ctx, struct err *e)
{
	char path[STORE_PATH_MAX];
	uint64_t id;
	if (is_id(name, ".part", &id))
		return fn(ctx, id, true, e);
	if (!is_id(name, ".tmp", &id))
		return OK;
	enum status s = fn(ctx, id, false, e);
	if (s == OK)
		s = store_path(path, e, "%s/%.*s", ((struct directory *)p)->path, STR_ARG(name));
	return s == OK ? store_io_unlink(path, e) : s;
}

static enum status directory_list(struct place *p, place_fn *fn, void *ctx, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, NAMES_BYTES_MAX);
	struct str *names;
	size_t n = 0;
	enum status s = os_list_dir(((struct directory *)p)->path, &a, &names, &n, e);
	for (size_t i = 0; s == OK && i < n; i++)
		s = list_name(p, names[i], fn, ctx, e);
	return s;
}

static enum status directory_open(struct place *p, uint64_t id, struct object **out, struct err *e)
{
	char path[STORE_PATH_MAX];
	enum status s = path_of(p, id, "part", path, e);
	return s == OK ? object_open_file(path, out, e) : s;
}

static enum status directory_remove(struct place *p, uint64_t id, struct err *e)
{
	char path[STORE_PATH_MAX];
	enum status s = path_of(p, id, "part", path, e);
	return s == OK ? store_io_unlink(path, e) : s;
}

static enum status directory_sync(struct place *p, struct err *e)
{
	return store_io_sync_dir(((struct directory *)p)->path, e);
}

static enum status directory_take_out(struct place *p, uint64_t id, const char *to, struct err *e)
{
	char path[STORE_PATH_MAX];
	enum status s = path_of(p, id, "part", path, e);
	return s == OK ? store_io_rename(path, to, e) : s;
}

static void directory_close(struct place *p)
{
	free(p);
}

static void file_close(struct place_put *u)
{
	struct file_put *f = (struct file_put *)u;
	if (f->fd >= 0)
		close(f->fd);
	if (f->fd >= 0 && !f->finished)
		(void)!store_io_unlink(f->tmp, NULL);
	free(f);
}

static enum status directory_put(
	struct place *p, uint64_t id, struct place_put **out, struct err *e)
{
	struct file_put *f = calloc(1, sizeof(*f));
	if (!f)
		return err_set(e, E_NOMEM, "a part's file");
	f->put.place = p;
	f->fd = -1;
	enum status s = path_of(p, id, "tmp", f->tmp, e);
	if (s == OK)
		s = path_of(p, id, "part", f->path, e);
	if (s == OK)
		s = store_io_open(f->tmp, O_CREAT | O_EXCL | O_WRONLY, 0640, &f->fd, e);
	if (s != OK) {
		file_close(&f->put);
		return s;
	}
	*out = &f->put;
	return OK;
}

static enum status file_write(struct place_put *u, const void *bytes, size_t len, struct err *e)
{
	struct file_put *f = (struct file_put *)u;
	return store_io_pwrite(f->fd, bytes, len, u->bytes, f->tmp, e);
}

static enum status file_finish(struct place_put *u, struct err *e)
{
	struct file_put *f = (struct file_put *)u;
	enum status s = store_io_sync(f->fd, f->tmp, e);
	if (s == OK)
		s = store_io_rename(f->tmp, f->path, e);
	if (s != OK)
		return s;
	f->finished = true;
	s = directory_sync(u->place, e);
	if (s != OK)
		(void)!store_io_unlink(f->path, NULL);
	return s;
}

static const struct place_ops directory_ops = {
	.list = directory_list,
	.open = directory_open,
	.put = directory_put,
	.remove = directory_remove,
	.sync = directory_sync,
	.take_out = directory_take_out,
	.close = directory_close,
	.write = file_write,
	.finish = file_finish,
	.put_close = file_close,
};

enum status place_open_directory(const char *dir, struct place **out, struct err *e)
{
	struct directory *d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(e, E_NOMEM, "%s", dir);
	d->place.ops = &directory_ops;
	enum status s = store_path(d->path, e, "%s", dir);
	if (s != OK) {
		free(d);
		return s;
	}
	*out = &d->place;
	return OK;
}

/* ---- whatever it is ---- */

void place_close(struct place *p)
{
	if (p)
		p->ops->close(p);
}

enum status place_list(struct place *p, place_fn *fn, void *ctx, struct err *e)
{
	return p->ops->list(p, fn, ctx, e);
}

enum status place_open(struct place *p, uint64_t id, struct object **out, struct err *e)
{
	return p->ops->open(p, id, out, e);
}

enum status place_remove(struct place *p, uint64_t id, struct err *e)
{
	return p->ops->remove(p, id, e);
}

enum status place_sync(struct place *p, struct err *e)
{
	return p->ops->sync(p, e);
}

enum status place_take_out(struct place *p, uint64_t id, const char *to, struct err *e)
{
	return p->ops->take_out(p, id, to, e);
}

enum status place_put_open(struct place *p, uint64_t id, struct place_put **out, struct err *e)
{
	return p->ops->put(p, id, out, e);
}

enum status place_put_write(struct place_put *u, const void *bytes, size_t len, struct err *e)
{
	enum status s = u->place->ops->write(u, bytes, len, e);
	if (s == OK)
		u->bytes += len;
	return s;
}

enum status place_put_finish(struct place_put *u, struct err *e)
{
	return u->place->ops->finish(u, e);
}

void place_put_close(struct place_put *u)
{
	if (u)
		u->place->ops->put_close(u);
}
