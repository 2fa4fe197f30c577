/* SPDX-License-Identifier: Apache-2.0 */
/* An id is a file handle: it is opened, and the link in /proc/self/fd read. */
#include "agent/broker/cgroupid.h"

#include "base/str.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* include/linux/exportfs.h, FILEID_KERNFS. */
#define FILEID_KERNFS 0xfe

void cgroupid_open(struct cgroupid *c)
{
	static const char *const places[] = { "/sys/fs/cgroup/unified", "/sys/fs/cgroup" };
	*c = (struct cgroupid){ .root = -1 };
	for (size_t i = 0; i < ARRAY_COUNT(places) && c->root < 0; i++) {
		char file[96];
		snprintf(file, sizeof(file), "%s/cgroup.controllers", places[i]);
		if (access(file, F_OK) < 0)
			continue;
		snprintf(c->root_path, sizeof(c->root_path), "%s", places[i]);
		c->root = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
}

void cgroupid_close(struct cgroupid *c)
{
	fd_cleanup(&c->root);
}

bool cgroupid_path(const struct cgroupid *c, uint64_t id, char out[PATH_MAX])
{
	struct {
		struct file_handle head;
		uint64_t id;
	} handle = { .head = { .handle_bytes = sizeof(id), .handle_type = FILEID_KERNFS } };
	memcpy(handle.head.f_handle, &id, sizeof(id));
	if (c->root < 0)
		return false;
	CLEANUP(fd_cleanup)
	int fd = open_by_handle_at(c->root, &handle.head, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return false;
	char link[64];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	ssize_t n = readlink(link, out, PATH_MAX - 1);
	if (n <= 0)
		return false;
	out[n] = 0;
	struct str path = str_make(out, (size_t)n), root = str_of(c->root_path);
	if (!str_starts(path, root))
		return false;
	memmove(out, out + root.len, path.len - root.len + 1);
	if (!out[0])
		memcpy(out, "/", 2);
	return true;
}
