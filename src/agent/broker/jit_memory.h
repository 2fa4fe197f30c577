/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit_memory: reads the objects that a process has registered for a debugger: ELF files, and
 * Erlang's own objects, in its memory, with the names of code that it has made. Private to agent/:
 * by the broker, or by the agent itself where there is none. No state.
 *
 * Only memory is given that an entry of the list points to and that begins as an ELF file or an
 * object of Erlang's does, JIT_MEMORY_BYTES_MAX at most. So a compromised agent reads no memory at
 * will; it reads what lies behind bytes that look like such an entry. A process that forges its
 * list shows its own memory only. Source: GDB's manual, JIT Compilation Interface.
 */
#pragma once

#include "base/str.h"

#include <sys/types.h>

/* The objects that were registered last; earlier ones are left out. */
#define JIT_MEMORY_OBJECTS_MAX 2048
/* A larger object is left out. */
#define JIT_MEMORY_BYTES_MAX ((uint64_t)8 << 20)

struct jit_memory_object {
	uint64_t entry; /* address of what registers it */
	uint64_t address, bytes;
};

/* `descriptor`: the address of __jit_debug_descriptor. How many there are; -1 with errno: EPROTO
 * where there is no such descriptor. */
ssize_t jit_memory_list(
	int pid, uint64_t descriptor, struct jit_memory_object out[JIT_MEMORY_OBJECTS_MAX]);
/* As pread(2) within the object of an entry; ENOEXEC: it is none of the descriptor's, or the list
 * is being changed. */
ssize_t jit_memory_read(
	int pid, uint64_t descriptor, uint64_t entry, uint64_t offset, void *out, size_t len);
