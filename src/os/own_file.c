/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that the user named. The function that reads them is set while there is only one thread.
 */
#include "os/os.h"

#include <errno.h>
#include <sys/stat.h>

static os_own_read_fn *own_reader;

struct os_stamp os_stamp_of(const struct stat *st)
{
	return (struct os_stamp){ st->st_dev, st->st_ino, (uint64_t)st->st_size, st->st_mtim.tv_sec,
		st->st_mtim.tv_nsec };
}

bool os_stamp_is_same(const struct os_stamp *a, const struct os_stamp *b)
{
	return a->device == b->device && a->inode == b->inode && a->bytes == b->bytes &&
	       a->modified_s == b->modified_s && a->modified_ns == b->modified_ns;
}

void os_set_own_reader(os_own_read_fn *fn)
{
	own_reader = fn;
}

/* The file's stamp, if possible without opening the file, which may be a pipe. */
static enum status look(const char *path, struct os_stamp *out, struct err *e)
{
	struct stat st;
	if (stat(path, &st) < 0) {
		CLEANUP(fd_cleanup)
		int fd = errno == EACCES || errno == EPERM ? os_open_read(path) : -1;
		if (fd < 0 || fstat(fd, &st) < 0)
			return err_os(e, "open %s", path);
	}
	*out = os_stamp_of(&st);
	return OK;
}

static enum status read_directly(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e)
{
	struct stat st;
	if (!out)
		return look(path, out_stamp, e);
	CLEANUP(fd_cleanup) int fd = os_open_read(path);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_os(e, "open %s", path);
	*out_stamp = os_stamp_of(&st);
	return os_read_fd(fd, path, out, e);
}

enum status os_read_own(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e)
{
	struct os_stamp stamp = { 0 };
	enum status s = own_reader ? own_reader(path, out, &stamp, e) : E_UNSUPPORTED;
	if (s == E_UNSUPPORTED)
		s = read_directly(path, out, &stamp, e);
	if (s == OK && out_stamp)
		*out_stamp = stamp;
	return s;
}
