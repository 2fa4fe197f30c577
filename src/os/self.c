/* SPDX-License-Identifier: Apache-2.0 */
#include "os/os.h"

#include "base/clock.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

uint64_t os_self_rss_bytes(void)
{
	char text[256];
	CLEANUP(fd_cleanup) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text));
	if (n <= 0)
		return 0;
	/* "size resident shared …", in pages */
	struct str s = str_make(text, (size_t)n), field;
	uint64_t pages;
	if (!str_split(&s, ' ', &field) || !str_split(&s, ' ', &field) ||
		!str_parse_u64(field, 10, &pages))
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int64_t ns_of(struct timeval t)
{
	return (int64_t)t.tv_sec * NS_PER_SEC + (int64_t)t.tv_usec * 1000;
}

int64_t os_self_cpu_ns(void)
{
	struct rusage u;
	if (getrusage(RUSAGE_SELF, &u) < 0)
		return 0;
	return ns_of(u.ru_utime) + ns_of(u.ru_stime);
}
