/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A disk that is slower than the senders, for LD_PRELOAD: each sync takes SLOW_SYNC_MS longer, and
 * writes at an offset go at SLOW_WRITE_KIB a second. test_disk.py starts a server with it.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/types.h>
#include <time.h>

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset);
int fdatasync(int fd);

static long number(const char *name)
{
	const char *text = getenv(name);
	return text ? strtol(text, NULL, 10) : 0;
}

static void sleep_ns(long long ns)
{
	struct timespec t = { ns / 1000000000, ns % 1000000000 };
	nanosleep(&t, NULL);
}

int fdatasync(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
	sleep_ns(number("SLOW_SYNC_MS") * 1000000LL);
	return real(fd);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
	ssize_t (*real)(int, const void *, size_t, off_t) =
		(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite64");
	long kib = number("SLOW_WRITE_KIB");
	if (kib > 0)
		sleep_ns((long long)len * 1000000000 / (kib * 1024));
	return real(fd, bytes, len, offset);
}
