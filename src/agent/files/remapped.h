/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remapped: finds the file of code that a process has copied to anonymous memory in the same place
 * (large pages for text: node --use-largepages, Chromium, HHVM). The mappings beside it still show
 * the file. Private to agent/. One thread's.
 */
#pragma once

#include "agent/bpf/shared.h"
#include "base/clock.h"

/* Processes that are remembered. If there are more, the one that was read first is forgotten, once
 * that is REMAPPED_READ_NS ago. So at most this many are read in that time. */
#define REMAPPED_PROCESSES_MAX 256
#define REMAPPED_REGIONS_MAX 8 /* of one process */
/* The mappings of a process are read at its first sample, and not again for so long. */
#define REMAPPED_READ_NS (60 * NS_PER_SEC)

struct remapped_region {
	uint64_t start, end;
	struct file_key key;
	uint64_t offset; /* in the file, of `start` */
};

struct remapped_process {
	int pid;
	uint64_t start_ns; /* of the process */
	int64_t read_ns;   /* monotonic; 0: the place is free */
	uint32_t count;
	struct remapped_region regions[REMAPPED_REGIONS_MAX];
};

/* All 0 at the start. */
struct remapped {
	struct remapped_process processes[REMAPPED_PROCESSES_MAX];
	uint32_t last; /* asked for: the frames of a stack are one process' */
};

/* The region of an address in anonymous memory. NULL: no file belongs to it, or too many processes
 * are remembered. Valid until the next call. start_ns tells processes of one pid apart; now_ns:
 * monotonic. */
const struct remapped_region *remapped_find(
	struct remapped *r, int pid, uint64_t start_ns, uint64_t address, int64_t now_ns);
