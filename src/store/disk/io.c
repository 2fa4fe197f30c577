/* SPDX-License-Identifier: Apache-2.0 */
#include "store/disk/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

struct store_io_hook store_io_hook;

/* True: the test wants this operation to fail; errno is set. */
static bool fails(const char *operation)
{
	int rc = store_io_hook.before ? store_io_hook.before(store_io_hook.ctx, operation) : 0;
	if (rc)
		errno = rc;
	return rc != 0;
}

enum status store_path(char out[STORE_PATH_MAX], struct err *e, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	int n = vsnprintf(out, STORE_PATH_MAX, fmt, args);
	va_end(args);
	if (n < 0 || n >= STORE_PATH_MAX)
		return err_set(e, E_LIMIT, "a path of more than %d bytes", STORE_PATH_MAX - 1);
	return OK;
}

enum status store_io_open(const char *path, int flags, unsigned mode, int *out, struct err *e)
{
	int fd = fails("open") ? -1 : open(path, flags | O_CLOEXEC, mode);
	if (fd < 0)
		return err_os(e, "open %s", path);
	*out = fd;
	return OK;
}

enum status store_io_pwrite(
	int fd, const void *bytes, size_t len, uint64_t offset, const char *name, struct err *e)
{
	if (fails("write"))
		return err_os(e, "write %s", name);
	return os_pwrite_full(fd, bytes, len, offset, name, e);
}

enum status store_io_sync(int fd, const char *name, struct err *e)
{
	if (fails("sync") || fdatasync(fd) < 0)
		return err_os(e, "sync %s", name);
	return OK;
}

enum status store_io_rename(const char *from, const char *to, struct err *e)
{
	if (fails("rename") || rename(from, to) < 0)
		return err_os(e, "rename %s to %s", from, to);
	return OK;
}

enum status store_io_unlink(const char *path, struct err *e)
{
	if (fails("unlink") || (unlink(path) < 0 && errno != ENOENT))
		return err_os(e, "remove %s", path);
	return OK;
}

enum status store_io_allocate(int fd, uint64_t len, const char *name, struct err *e)
{
	if (!fails("alloc") && fallocate(fd, 0, 0, (off_t)len) == 0)
		return OK;
	bool unsupported = errno == EOPNOTSUPP || errno == ENOSYS;
	if (unsupported && ftruncate(fd, (off_t)len) == 0)
		return OK;
	return err_os(e, "allocate %llu bytes for %s", (unsigned long long)len, name);
}

enum status store_io_sync_dir(const char *path, struct err *e)
{
	if (fails("syncdir"))
		return err_os(e, "sync %s", path);
	return os_fsync_dir(path, e);
}

enum status store_io_truncate(int fd, uint64_t len, const char *name, struct err *e)
{
	if (fails("truncate") || ftruncate(fd, (off_t)len) < 0)
		return err_os(e, "cut %s to %llu bytes", name, (unsigned long long)len);
	return OK;
}

bool store_io_same(const char *path, int fd)
{
	struct stat by_path, by_fd;
	return stat(path, &by_path) == 0 && fstat(fd, &by_fd) == 0 &&
	       by_path.st_ino == by_fd.st_ino && by_path.st_dev == by_fd.st_dev;
}

enum status store_io_make_dirs(const char *path, struct err *e)
{
	if (fails("mkdir"))
		return err_os(e, "make %s", path);
	return os_make_dirs(path, e);
}

enum status store_io_replace(
	const char *dir, const char *path, struct str bytes, bool *out_unknown, struct err *e)
{
	char tmp[STORE_PATH_MAX];
	enum status s = store_path(tmp, e, "%s.tmp", path);
	if (s != OK)
		return s;
	CLEANUP(fd_cleanup) int fd = -1;
	s = store_io_open(tmp, O_CREAT | O_WRONLY | O_TRUNC, 0640, &fd, e);
	if (s == OK)
		s = store_io_pwrite(fd, bytes.p, bytes.len, 0, tmp, e);
	if (s == OK)
		s = store_io_sync(fd, tmp, e);
	if (s == OK)
		s = store_io_rename(tmp, path, e);
	if (s != OK)
		return s;
	s = store_io_sync_dir(dir, e);
	if (out_unknown)
		*out_unknown = s != OK;
	return s;
}
