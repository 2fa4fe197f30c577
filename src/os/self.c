/* SPDX-License-Identifier: Apache-2.0 */
#include "os/os.h"

#include "base/clock.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <unistd.h>

int os_self_rss_open(void)
{
	return open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
}

uint64_t os_self_rss_read(int fd)
{
	char text[256];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text), 0);
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

uint64_t os_self_rss_bytes(void)
{
	CLEANUP(fd_cleanup) int fd = os_self_rss_open();
	return os_self_rss_read(fd);
}

/* Whether the dynamic loader was started with this program as its argument. The kernel maps a
 * loader (AT_BASE) only for a program that names one; if the loader itself is the program, AT_BASE
 * is 0. Its first argument is then this program's path, which becomes argv[0]. */
bool os_self_loaded(char out_path[PATH_MAX], char out_folder[PATH_MAX])
{
	Dl_info own;
	if (getauxval(AT_BASE) != 0 || !dladdr((void *)(uintptr_t)os_self_loaded, &own) ||
		!own.dli_fname || own.dli_fname[0] != '/')
		return false;
	const char *slash = strrchr(own.dli_fname, '/');
	size_t len = strlen(own.dli_fname);
	if (len >= PATH_MAX)
		return false;
	memcpy(out_path, own.dli_fname, len + 1);
	memcpy(out_folder, own.dli_fname, (size_t)(slash - own.dli_fname));
	out_folder[slash - own.dli_fname] = 0;
	return true;
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

unsigned os_cpus(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
	return MAX((unsigned)n, 1u);
}
