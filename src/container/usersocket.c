/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users may put links into their /run/user/UID, and mount a FUSE file system on it, whose server
 * may never answer. So links are not followed. Each component is opened with O_PATH, which does not
 * ask the file system's server about the root of a mount; only if fstatfs() shows a file system
 * without such a server is the next one opened below it.
 */
#include "container/owner.h"
#include "container/peer.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static bool answers(int fd, uint32_t trusted)
{
	uint32_t id;
	return procfs_fd_mount(fd, &id) && (id == trusted || procfs_mount_id_answers(id));
}

int container_user_socket(const char *trusted, const char *below)
{
	struct str rest = str_of(below), part;
	struct stat st;
	uint32_t mount;
	CLEANUP(fd_cleanup) int fd = open(trusted, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !procfs_fd_mount(fd, &mount))
		return -1;
	while (str_split(&rest, '/', &part)) {
		char name[CONTAINER_SOCKET_MAX];
		snprintf(name, sizeof(name), "%.*s", STR_ARG(part));
		int next = openat(fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		close(fd);
		fd = next;
		if (fd < 0 || !answers(fd, mount))
			return -1;
	}
	return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) ? STEAL_FD(fd) : -1;
}
