/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: the three clocks, in nanoseconds.
 *
 * Layer 0. Thread safe.
 */
#pragma once

#include "base/status.h"

#define NS_PER_SEC 1000000000LL
#define NS_PER_MS 1000000LL

int64_t clock_realtime_ns(void);  /* since 1970, may jump */
int64_t clock_monotonic_ns(void); /* never goes back; stands still in suspend. BPF's ktime_get_ns */
int64_t clock_boottime_ns(void);  /* since boot, with suspend */
int64_t clock_thread_cpu_ns(void);
