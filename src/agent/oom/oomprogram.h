/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oomprogram: the facts about a Go executable that must be known before the kernel kills its
 * process for want of memory: where the runtime keeps the profile of its memory, and where its
 * functions begin. It also turns the addresses that Go's runtime has recorded into frames. Private
 * to agent/. Not thread safe; once it is read, any thread may look into it.
 */
#pragma once

#include "base/err.h"
#include "objfile/objfile.h"

/* Bytes of a symbol table, and of its names. */
#define OOMPROGRAM_SYMBOLS_BYTES_MAX ((size_t)128 << 20)
#define OOMPROGRAM_FUNCTIONS_MAX (1u << 21)

struct oomprogram {
	uint64_t first_offset; /* of the first segment that is loaded, and of the one with code */
	uint64_t first_vaddr;
	uint64_t code_offset;
	uint64_t code_vaddr;
	uint64_t code_bytes;
	uint64_t buckets; /* address of runtime.mbuckets; 0: no symbol says it */
	uint64_t rate;    /* of runtime.MemProfileRate; 0: no symbol says it */
	/* By address: that from code_vaddr on, times two, plus one for Go's runtime. */
	uint32_t *functions;
	uint32_t function_count;
};

/* E_NOTFOUND: it is no Go program. E_LIMIT, E_INVALID, E_NOMEM. */
NODISCARD enum status oomprogram_read(
	const struct objfile *obj, struct oomprogram *out, struct err *e);
void oomprogram_deinit(struct oomprogram *p);

/* The frames of a bucket, leaf first, in place: the addresses to look up in the file. Go records
 * return addresses, and one more for each call that it has inlined, which the tables of the file
 * tell as well: those go. As in Go's own profiles functions of its runtime at the leaf go too,
 * unless there are no others. An address that is not in the program's code is left as it is: in
 * memory, and above it, or `bias` is wrong. How many are left. */
uint32_t oomprogram_frames(
	const struct oomprogram *p, uint64_t bias, uint64_t *stack, uint32_t count);
/* Is this frame in the program's code? */
bool oomprogram_has(const struct oomprogram *p, uint64_t vaddr);
