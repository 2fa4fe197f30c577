/* SPDX-License-Identifier: Apache-2.0 */
/* The functions are set while there is only one thread, and then only read. */
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static os_broker_open_fn *broker_open;
static os_broker_link_fn *broker_link;

void os_set_broker(os_broker_open_fn *open_fn, os_broker_link_fn *link_fn)
{
	broker_open = open_fn;
	broker_link = link_fn;
}

static bool was_refused(void)
{
	return errno == EACCES || errno == EPERM;
}

int os_open_read(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 || !broker_open || !was_refused())
		return fd;
	return broker_open(path);
}

int os_open_by_broker(const char *path)
{
	if (broker_open)
		return broker_open(path);
	errno = ENOSYS;
	return -1;
}

ssize_t os_read_link(const char *path, char *out, size_t size)
{
	ssize_t n = readlink(path, out, size);
	if (n >= 0 || !broker_link || !was_refused())
		return n;
	return broker_link(path, out, size);
}
