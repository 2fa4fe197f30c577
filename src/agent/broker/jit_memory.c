/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list may be changed while it is read, or lead in a circle: each step is one read, and the
 * number of steps is bounded. Entries without an object are left out. An object is read from the
 * address in its entry, and only if the entry's neighbours point back to it: much other data is a
 * pointer to an ELF file followed by a number, such as the dynamic linker's list of libraries. The
 * neighbour before the first entry is the descriptor.
 */
#include "agent/broker/jit_memory.h"

#include "agent/broker/process_memory.h"
#include "base/status.h"

#include <elf.h>
#include <errno.h>

#define VERSION 1
#define ACTION_MAX 2

struct descriptor { /* of the process' memory, as all below */
	uint32_t version, action;
	uint64_t relevant, first;
};

struct entry {
	uint64_t next, previous, address, bytes;
};

static int fail(int error)
{
	errno = error;
	return -1;
}

/* Erlang's (src/jit/beam.c): a head that ends with a name, and the first range, whose name begins
 * with that one and "::". */
static bool is_beam(const char *head, size_t len)
{
	enum { NAME_AT = 26, PADDING = 6, RANGE_NAME_AT = 14 };
	uint32_t kind;
	uint16_t name_bytes;
	memcpy(&kind, head, sizeof(kind));
	memcpy(&name_bytes, head + NAME_AT - sizeof(name_bytes), sizeof(name_bytes));
	const char *name = head + NAME_AT;
	size_t range_name_at = (size_t)NAME_AT + name_bytes + PADDING + RANGE_NAME_AT;
	if (kind != 1 || name_bytes < 2 || range_name_at + name_bytes + 1 > len)
		return false;
	const char *of_range = head + range_name_at;
	return memchr(name, 0, name_bytes) == name + name_bytes - 1 &&
	       memcmp(name, of_range, name_bytes - 1u) == 0 &&
	       memcmp(of_range + name_bytes - 1, "::", 2) == 0;
}

static bool is_object(int memory, const struct entry *e)
{
	char head[1280];
	if (e->bytes < sizeof(Elf64_Ehdr) || e->bytes > JIT_MEMORY_BYTES_MAX ||
		e->address > INT64_MAX - e->bytes ||
		!process_memory_read(memory, e->address, head, sizeof(Elf64_Ehdr)))
		return false;
	if (memcmp(head, ELFMAG, SELFMAG) == 0)
		return true;
	size_t len = (size_t)MIN(e->bytes, (uint64_t)sizeof(head));
	return process_memory_read(memory, e->address, head, len) && is_beam(head, len);
}

static bool is_descriptor(int memory, uint64_t at, struct descriptor *out)
{
	return process_memory_read(memory, at, out, sizeof(*out)) && out->version == VERSION &&
	       out->action <= ACTION_MAX;
}

static bool is_linked(int memory, uint64_t descriptor, uint64_t at, const struct entry *e)
{
	struct entry near;
	struct descriptor d;
	if (!is_descriptor(memory, descriptor, &d) || (!e->previous && d.first != at))
		return false;
	bool is_next = !e->next || (process_memory_read(memory, e->next, &near, sizeof(near)) &&
					   near.previous == at);
	return is_next &&
	       (!e->previous || (process_memory_read(memory, e->previous, &near, sizeof(near)) &&
					near.next == at));
}

ssize_t jit_memory_list(
	int pid, uint64_t descriptor, struct jit_memory_object out[JIT_MEMORY_OBJECTS_MAX])
{
	struct descriptor d;
	struct entry e;
	size_t count = 0;
	CLEANUP(fd_cleanup) int memory = process_memory_open(pid);
	if (memory < 0)
		return -1;
	if (!is_descriptor(memory, descriptor, &d))
		return fail(EPROTO);
	uint64_t at = d.first;
	for (int i = 0; i < JIT_MEMORY_OBJECTS_MAX && at; i++) {
		if (!process_memory_read(memory, at, &e, sizeof(e)))
			break;
		if (is_object(memory, &e))
			out[count++] = (struct jit_memory_object){ at, e.address, e.bytes };
		at = e.next;
	}
	return (ssize_t)count;
}

ssize_t jit_memory_read(
	int pid, uint64_t descriptor, uint64_t entry, uint64_t offset, void *out, size_t len)
{
	struct entry e;
	CLEANUP(fd_cleanup) int memory = process_memory_open(pid);
	if (memory < 0)
		return -1;
	if (!process_memory_read(memory, entry, &e, sizeof(e)) ||
		!is_linked(memory, descriptor, entry, &e) || !is_object(memory, &e))
		return fail(ENOEXEC);
	if (offset >= e.bytes)
		return 0;
	return pread(memory, out, (size_t)MIN((uint64_t)len, e.bytes - offset),
		(off_t)(e.address + offset));
}
