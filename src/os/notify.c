/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: sd_notify(3) is a datagram to a socket whose path is in the environment. The socket is
 * connected once, at the start, since a process that has given up its rights cannot open it later.
 * The variables are removed, so that no child takes them for its own.
 */
#include "os/os.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int notify_fd = -1;
static int64_t alive_every_ns; /* 0: there is no watchdog */
static int64_t alive_next_ns;

static int connect_to(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(path);
	if (len < 2 || len >= sizeof(at.sun_path) || (path[0] != '/' && path[0] != '@'))
		return -1;
	memcpy(at.sun_path, path, len);
	if (path[0] == '@') /* in the abstract namespace */
		at.sun_path[0] = 0;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, size) < 0)
		fd_cleanup(&fd);
	return fd;
}

void os_notify_open(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), *pid = getenv("WATCHDOG_PID"),
		   *usec = getenv("WATCHDOG_USEC");
	uint64_t whose = 0, us = 0;
	bool ours = !pid || (str_parse_u64(str_of(pid), 10, &whose) && (pid_t)whose == getpid());
	os_notify_close();
	if (path)
		notify_fd = connect_to(path);
	if (usec && ours && str_parse_u64(str_of(usec), 10, &us) && us < (uint64_t)INT64_MAX / 1000)
		alive_every_ns = (int64_t)us * 1000 / 2;
	unsetenv("NOTIFY_SOCKET");
	unsetenv("WATCHDOG_PID");
	unsetenv("WATCHDOG_USEC");
}

void os_notify_close(void)
{
	fd_cleanup(&notify_fd);
	alive_every_ns = alive_next_ns = 0;
}

void os_notify(const char *lines)
{
	if (notify_fd >= 0)
		(void)!send(notify_fd, lines, strlen(lines), MSG_NOSIGNAL);
}

int64_t os_notify_alive(void)
{
	int64_t now = clock_monotonic_ns();
	if (alive_every_ns == 0)
		return INT64_MAX;
	if (now >= alive_next_ns) {
		os_notify("WATCHDOG=1");
		alive_next_ns = now + alive_every_ns;
	}
	return alive_next_ns;
}
