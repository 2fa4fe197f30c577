/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search walks over taken and free stretches alternately, a word at a time. `no_fit` spares the
 * search in full maps, which an allocator over many of them meets most.
 */
#include "agent/tables/bitmap.h"

#include <stdlib.h>

#define WORD_BITS 64

enum status bitmap_init(struct bitmap *r, uint32_t count)
{
	assert(count > 0 && count < BITMAP_NONE);
	uint64_t *words = calloc((count + WORD_BITS - 1) / WORD_BITS, sizeof(*words));
	if (!words)
		return E_NOMEM;
	*r = (struct bitmap){ .words = words, .count = count, .no_fit = count + 1 };
	return OK;
}

void bitmap_deinit(struct bitmap *r)
{
	free(r->words);
	*r = (struct bitmap){ 0 };
}

/* The first unit at or behind `from` whose bit is `taken`; r->count when there is none. */
static uint32_t next_unit(const struct bitmap *r, uint32_t from, bool taken)
{
	while (from < r->count) {
		uint64_t word = r->words[from / WORD_BITS];
		if (!taken)
			word = ~word;
		word >>= from % WORD_BITS;
		if (word != 0)
			return MIN(from + (uint32_t)__builtin_ctzll(word), r->count);
		from += WORD_BITS - from % WORD_BITS;
	}
	return r->count;
}

static void set_units(struct bitmap *r, uint32_t start, uint32_t len, bool taken)
{
	assert(len > 0 && start < r->count && len <= r->count - start);
	for (uint32_t i = start; i < start + len; i++) {
		uint64_t bit = 1ULL << (i % WORD_BITS);
		assert(((r->words[i / WORD_BITS] & bit) != 0) != taken);
		r->words[i / WORD_BITS] ^= bit;
	}
}

uint32_t bitmap_take(struct bitmap *r, uint32_t len)
{
	assert(len > 0);
	if (len >= r->no_fit || len > r->count - r->used)
		return BITMAP_NONE;
	uint32_t start = next_unit(r, 0, false);
	while (start < r->count) {
		uint32_t end = next_unit(r, start, true);
		if (end - start >= len) {
			set_units(r, start, len, true);
			r->used += len;
			return start;
		}
		start = next_unit(r, end, false);
	}
	r->no_fit = len;
	return BITMAP_NONE;
}

void bitmap_release(struct bitmap *r, uint32_t start, uint32_t len)
{
	set_units(r, start, len, false);
	assert(r->used >= len);
	r->used -= len;
	r->no_fit = r->count + 1;
}
