/* SPDX-License-Identifier: Apache-2.0 */
/* process_memory: reads of another process' memory by /proc/PID/mem. Private to agent/broker. */
#pragma once

#include "os/os.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

/* -1 with errno. */
static inline int process_memory_open(int pid)
{
	char path[32];
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* All of it, or false. */
static inline bool process_memory_read(int memory, uint64_t at, void *out, size_t len)
{
	return at <= INT64_MAX && pread(memory, out, len, (off_t)at) == (ssize_t)len;
}
