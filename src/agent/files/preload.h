/* SPDX-License-Identifier: Apache-2.0 */
/*
 * preload: lists the files that processes have mapped for execution now: all processes, or one and
 * its descendants. Private to agent/ (files.c).
 */
#pragma once

#include "agent/bpf/shared.h"
#include "base/err.h"

#define PRELOAD_MAX 16384

struct preload_file {
	struct file_notice notice;
	int pid;            /* of a process that has it mapped */
	uint32_t processes; /* so many have it mapped */
};

/* Files that most processes have mapped come first. only_pid: 0: all processes. go_on() is called
 * after each process and may do other work, because the memory map of a process without a CPU may
 * be locked for seconds. If it returns false, the search ends. The caller frees the array. */
NODISCARD enum status preload_collect(int only_pid, bool (*go_on)(void *ctx), void *ctx,
	struct preload_file **out, size_t *out_count, struct err *e);
