/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slabs: the kernel memory that unwind tables lie in. It grows and shrinks by slabs of 2 MiB, each
 * an eBPF map of its own; a blob lies in one chunk of 64 KiB. Private to agent/tables.
 *
 * Chunks are in our address space only while they are written or read, until slabs_rest(), and few
 * at a time: their pages are the kernel's memory, and would count as ours too. Not thread safe.
 */
#pragma once

#include "agent/bpf/layout.h"
#include "agent/tables/bitmap.h"
#include "base/clock.h"
#include "base/err.h"

#define BLOB_UNIT_BYTES 8
#define CHUNK_UNITS (SLAB_CHUNK_BYTES / BLOB_UNIT_BYTES)

/* Chunks mapped at the same time. The one that was used longest ago is unmapped for a new one. */
#define CHUNKS_MAPPED_MAX 16

struct blob {
	uint32_t chunk; /* BITMAP_NONE: a page without rows */
	uint16_t start; /* units in the chunk */
	uint16_t units; /* 0: 65536 bytes */
};

struct slabs {
	int outer; /* the array of maps; the caller's */
	uint32_t max;
	uint32_t count;
	int fds[SLABS_MAX];
	struct slab_mapping {
		uint32_t chunk;
		uint8_t *memory;     /* NULL: none */
	} mapped[CHUNKS_MAPPED_MAX]; /* the last one that was asked for first */
	struct bitmap *chunks;       /* of all slabs there may be; SLAB_CHUNKS each */
	uint32_t hint;               /* the chunk where the last blob went */
};

/* Slabs that a budget allows; at least one. */
uint32_t slabs_of_bytes(uint64_t bytes);

NODISCARD enum status slabs_init(struct slabs *s, int outer, uint32_t max, struct err *e);
void slabs_deinit(struct slabs *s);
/* Asks the broker or the kernel for the memory of one more slab. May wait. */
NODISCARD enum status slabs_ask(int *out_fd, struct err *e);
/* Adds it, below `max`; takes `fd` over. */
NODISCARD enum status slabs_add(struct slabs *s, int fd, struct err *e);
/* Gives back the last slab, which is empty. At least one other remains. */
void slabs_drop(struct slabs *s);
/* Waits until every program that runs now has ended. */
NODISCARD bool slabs_wait(struct slabs *s);

/* Takes room for a blob in the first `slab_count` slabs. */
NODISCARD bool slabs_take(struct slabs *s, uint32_t slab_count, uint32_t units, struct blob *out);
void slabs_release(struct slabs *s, const struct blob *b);
uint64_t slabs_used_bytes(const struct slabs *s, uint32_t slab);
/* Where a blob lies, until slabs_rest(), and while fewer than CHUNKS_MAPPED_MAX others are asked
 * for. */
NODISCARD enum status slabs_map(
	struct slabs *s, const struct blob *b, uint8_t **out, struct err *e);
void slabs_rest(struct slabs *s);

static inline uint32_t blob_slab(const struct blob *b)
{
	return b->chunk >> SLAB_CHUNK_SHIFT;
}

static inline uint32_t blob_bytes(const struct blob *b)
{
	return (b->units ? b->units : CHUNK_UNITS) * BLOB_UNIT_BYTES;
}
