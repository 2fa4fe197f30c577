/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/memory/grow: arrays that grow and never move, so that readers need no lock: an element that
 * was published stays where it is for the life of the array.
 *
 * Layer 3, private to store/. One writer; readers use elements below a length that the writer
 * published (memtable.h). Address space for the maximum is reserved at once (PROT_NONE, which is
 * not charged), memory comes as it is used.
 */
#pragma once

#include "base/status.h"

#define GROW(T)             \
	struct {            \
		T *v;       \
		size_t len; \
		size_t cap; \
		size_t max; \
	}

NODISCARD bool grow_init(void *ptr_to_v, size_t *cap, size_t *max, size_t count_max, size_t size);
void grow_deinit(void *ptr_to_v, size_t max, size_t size);
/* Room for `need` elements; false at the maximum and without memory. */
NODISCARD bool grow_more(void *v, size_t *cap, size_t max, size_t need, size_t size);

#define GROW_INIT(g, count_max) \
	grow_init(&(g)->v, &(g)->cap, &(g)->max, (count_max), sizeof(*(g)->v))
#define GROW_DEINIT(g)                                           \
	do {                                                     \
		grow_deinit(&(g)->v, (g)->max, sizeof(*(g)->v)); \
		(g)->len = (g)->cap = (g)->max = 0;              \
	} while (0)
#define GROW_RESERVE(g, need) \
	((need) <= (g)->cap || grow_more((g)->v, &(g)->cap, (g)->max, (need), sizeof(*(g)->v)))
#define GROW_PUSH(g, ...) \
	(GROW_RESERVE(g, (g)->len + 1) && ((g)->v[(g)->len++] = (__VA_ARGS__), true))
#define GROW_BYTES(g) ((g)->len * sizeof(*(g)->v))
