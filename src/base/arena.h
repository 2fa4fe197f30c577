/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: memory of one request, profile or batch, freed in one call, with a byte limit.
 *
 * Layer 0. Not thread safe. Memory is zeroed. Allocation returns NULL at the limit, on overflow
 * and when the system has none: callers answer E_LIMIT if arena_full() and E_NOMEM else.
 */
#pragma once

#include "base/status.h"

struct arena_block;

struct arena {
	struct arena_block *head;
	size_t used;  /* bytes handed out, with alignment */
	size_t limit; /* of `used` */
	bool full;    /* a NULL was returned because of the limit */
};

void arena_init(struct arena *a, size_t limit_bytes);
void arena_deinit(struct arena *a);
/* Forget everything allocated, keep the limit. */
void arena_clear(struct arena *a);

NODISCARD void *arena_alloc(struct arena *a, size_t size, size_t align);
/* count * size with the overflow checked. */
NODISCARD void *arena_array(struct arena *a, size_t count, size_t size, size_t align);
/* Copy of bytes, with a NUL after them. */
NODISCARD char *arena_copy(struct arena *a, const void *bytes, size_t len);
NODISCARD char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3);

/* E_LIMIT or E_NOMEM: the status of the last NULL. */
enum status arena_status(const struct arena *a);

#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T), _Alignof(T)))
#define ARENA_ARRAY(a, T, count) ((T *)arena_array((a), (count), sizeof(T), _Alignof(T)))
