/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

static int64_t now_ns(clockid_t id)
{
	struct timespec t;
	int rc = clock_gettime(id, &t);
	assert(rc == 0);
	return (int64_t)t.tv_sec * NS_PER_SEC + t.tv_nsec;
}

int64_t clock_realtime_ns(void)
{
	return now_ns(CLOCK_REALTIME);
}

int64_t clock_monotonic_ns(void)
{
	return now_ns(CLOCK_MONOTONIC);
}

int64_t clock_boottime_ns(void)
{
	return now_ns(CLOCK_BOOTTIME);
}

int64_t clock_thread_cpu_ns(void)
{
	return now_ns(CLOCK_THREAD_CPUTIME_ID);
}
