/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every user may write into /tmp, so the last part of the path may be no link, and the owner must
 * be the user of the process: /proc/PID belongs to its effective user, or to root when it may not
 * be looked into, which then has no names.
 */
#include "agent/broker/perfmap_open.h"

#include "base/status.h"
#include "base/str.h"
#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int fail(int error)
{
	errno = error;
	return -1;
}

static int open_folder(const char *path, size_t len)
{
	char text[64];
	snprintf(text, sizeof(text), "%.*s", (int)len, path);
	return open(text, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int perfmap_open(const char *path)
{
	static const char root_at[] = "/root/";
	const char *root = strstr(path, root_at);
	if (!root)
		return fail(EINVAL);
	CLEANUP(fd_cleanup) int process = open_folder(path, (size_t)(root - path));
	CLEANUP(fd_cleanup)
	int folder = open_folder(path, (size_t)(root - path) + strlen(root_at) - 1);
	struct stat of_process, st;
	if (process < 0 || folder < 0 || fstat(process, &of_process) < 0)
		return -1;
	struct open_how how = { .flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	CLEANUP(fd_cleanup)
	int place = (int)syscall(SYS_openat2, folder, root + strlen(root_at), &how, sizeof(how));
	if (place < 0 || fstat(place, &st) < 0)
		return -1;
	if (!S_ISREG(st.st_mode))
		return fail(S_ISLNK(st.st_mode) ? ELOOP : EINVAL);
	if (st.st_uid != of_process.st_uid)
		return fail(EACCES);
	char link[32];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", place);
	return open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}
