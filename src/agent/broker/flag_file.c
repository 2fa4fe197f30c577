/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/flag_file.h"

#include "agent/broker/broker.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

static enum status failed(const char *path, struct err *e)
{
	if (errno == ETIMEDOUT)
		return err_set(
			e, E_TIMEOUT, "%s: timed out: its file system does not answer", path);
	return err_os(e, "read %s", path);
}

static enum status read_pinned(
	const char *path, const struct broker_file *f, struct buf *out, struct err *e)
{
	uint64_t at = 0;
	for (;;) {
		uint8_t extra, *p = &extra;
		size_t room = MIN(out->max - out->len, (size_t)BROKER_READ_BYTES_MAX);
		if (room && !(p = buf_reserve(out, room)))
			return err_set(e, buf_status(out), "read %s", path);
		ssize_t n = broker_read(f, p, room ? room : 1, at);
		if (n < 0)
			return failed(path, e);
		if (n == 0)
			return OK;
		if (!room)
			return err_set(e, E_LIMIT, "%s: longer than %zu bytes", path, out->max);
		out->len += (size_t)n;
		at += (uint64_t)n;
	}
}

/* The caller reads the file itself where the broker is not to be asked, or the file is no regular
 * one (a pipe). */
static bool is_for_others(int error)
{
	return error == ENOSYS || error == EPERM || error == EACCES || error == EINVAL;
}

enum status flag_file_read(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e)
{
	struct broker_file f;
	struct stat st;
	enum status s = OK;
	CLEANUP(fd_cleanup) int fd = broker_open_own(path, &f);
	if (fd == BROKER_IS_PINNED) {
		const struct broker_stat *pinned = &f.stat;
		*out_stamp = (struct os_stamp){ pinned->device, pinned->inode, pinned->bytes,
			pinned->modified_s, pinned->modified_ns };
		if (out)
			s = read_pinned(path, &f, out, e);
		broker_drop(&f);
		return s;
	}
	if (fd < 0 && is_for_others(errno))
		return E_UNSUPPORTED;
	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(path, e);
	*out_stamp = os_stamp_of(&st);
	return out ? os_read_fd(fd, path, out, e) : OK;
}
