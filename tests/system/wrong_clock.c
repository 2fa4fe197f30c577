/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wall clock that is WRONG_CLOCK_S seconds ahead, for LD_PRELOAD. test_clock.py starts a server
 * with it.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

int clock_gettime(clockid_t id, struct timespec *out)
{
	int (*real)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	const char *ahead = getenv("WRONG_CLOCK_S");
	int rc = real(id, out);
	if (rc == 0 && id == CLOCK_REALTIME && ahead)
		out->tv_sec += strtol(ahead, NULL, 10);
	return rc;
}
