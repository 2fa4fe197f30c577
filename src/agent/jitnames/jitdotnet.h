/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitdotnet: names of the methods of one .NET process, of code that was compiled while it runs and
 * of code that came compiled, asked for by address as samples meet them. Private to agent/jitnames.
 * Not thread safe; the list of wanted addresses and the table of code are changed only under the
 * caller's lock.
 */
#pragma once

#include "agent/files/files.h"
#include "base/lock.h"
#include "jit/jit.h"

/* Addresses that wait for a name. An address that finds no room is added when a sample has it
 * again. */
#define JITDOTNET_WANTED_MAX 256

struct jitdotnet {      /* of a process; all 0 at first */
	uint64_t table; /* address of what the runtime tells debuggers; 0: it has none */
	unsigned version;
	uint64_t wanted[JITDOTNET_WANTED_MAX];
	uint32_t wanted_count;
};

/* Looks for the runtime, where it is not known yet. */
void jitdotnet_find(struct jitdotnet *d, struct code_files_memory *known, int pid);
/* Under the caller's lock. */
void jitdotnet_want(struct jitdotnet *d, uint64_t address);
/* Puts the methods of what is wanted into `map`. The last one is the one that passes `budget`
 * bytes. Returns the bytes that were read. */
uint64_t jitdotnet_read(
	struct jitdotnet *d, int pid, struct jit_map *map, struct lock *lock, uint64_t budget);
