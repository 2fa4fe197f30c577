/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jitobjects: the objects that the compilers of one process have registered for debuggers (GDB's
 * interface), in its memory. Private to agent/jitnames. Not thread safe, but for the table of code,
 * which is changed under the caller's lock.
 */
#pragma once

#include "agent/files/files.h"
#include "base/lock.h"
#include "jit/jit.h"

struct jitobjects { /* of a process; all 0 at first */
	uint64_t descriptors[JIT_DESCRIPTORS_MAX];
	uint32_t descriptor_count;
	uint64_t *
		seen; /* hashes of the objects that were read and are still registered, ascending */
	uint32_t seen_count;
};

/* Looks for descriptors, where none is known yet. */
void jitobjects_find(struct jitobjects *o, struct code_files_memory *known, int pid);
/* Reads new objects into `map`, until more than `budget` bytes are read. Returns the bytes that
 * were read. `since_ns`: the code is taken to be there since then. */
uint64_t jitobjects_read(struct jitobjects *o, int pid, struct jit_map *map, struct lock *lock,
	uint64_t since_ns, uint64_t budget);
void jitobjects_deinit(struct jitobjects *o);
