/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file is read by pread(): a missing page, or one that the disk cannot read, is an error of this
 * call, where a mapping would end the process. Copying compressed bytes costs little compared with
 * unpacking them.
 */
#include "store/disk/object.h"

#include "store/disk/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct file {
	struct object object;
	int fd;
	char path[];
};

static enum status file_read(
	struct object *o, uint64_t offset, void *out, size_t len, struct err *e)
{
	struct file *f = (struct file *)o;
	enum status s = os_pread_full(f->fd, out, len, offset, f->path, e);
	if (s != E_IO || errno != EIO)
		return s;
	/* A second read may succeed on a failing disk. Data that it has lost is damaged, just as
	 * data that it returns wrongly. */
	s = os_pread_full(f->fd, out, len, offset, f->path, e);
	if (s != E_IO || errno != EIO)
		return s;
	return err_set(e, E_CORRUPT, "%s: the disk cannot read %zu bytes at +%llu", f->path, len,
		(unsigned long long)offset);
}

static void file_close(struct object *o)
{
	struct file *f = (struct file *)o;
	if (f->fd >= 0)
		close(f->fd);
	free(f);
}

static const struct object_ops file_ops = { file_read, file_close };

enum status object_open_file(const char *path, struct object **out, struct err *e)
{
	size_t len = strlen(path) + 1;
	struct file *f = calloc(1, sizeof(*f) + len);
	if (!f)
		return err_set(e, E_NOMEM, "%s", path);
	memcpy(f->path, path, len);
	f->object.ops = &file_ops;
	f->object.name = f->path;
	f->fd = -1;
	struct stat st;
	/* Opening must not block, even if the name is a pipe's. */
	enum status s = store_io_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &f->fd, e);
	if (s != OK && stat(path, &st) == 0 && !S_ISREG(st.st_mode)) /* a socket */
		s = err_set(e, E_INVALID, "%s: not a regular file", path);
	if (s == OK && fstat(f->fd, &st) < 0)
		s = err_os(e, "stat %s", path);
	if (s == OK && !S_ISREG(st.st_mode))
		s = err_set(e, E_INVALID, "%s: not a regular file", path);
	if (s != OK) {
		file_close(&f->object);
		return s;
	}
	f->object.bytes = (uint64_t)st.st_size;
	*out = &f->object;
	return OK;
}

enum status object_read(struct object *o, uint64_t offset, void *out, size_t len, struct err *e)
{
	if (offset > o->bytes || len > o->bytes - offset)
		return err_set(e, E_CORRUPT, "%s: %zu bytes at +%llu lie beyond its end at +%llu",
			o->name, len, (unsigned long long)offset, (unsigned long long)o->bytes);
	return o->ops->read(o, offset, out, len, e);
}

void object_close(struct object *o)
{
	if (o)
		o->ops->close(o);
}
