/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks form a list, newest first; only the newest has room. Block sizes double from 4 KiB to
 * 1 MiB; a larger request gets a block of its own. Blocks come from calloc, so fresh memory is
 * zero without a second pass over it.
 */
#include "base/arena.h"

#include "base/pages.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_BYTES_MIN ((size_t)4 << 10)
#define BLOCK_BYTES_MAX ((size_t)1 << 20)

struct arena_block {
	struct arena_block *next;
	size_t at;
	size_t size;
	_Alignas(16) unsigned char bytes[];
};

void arena_init(struct arena *a, size_t limit_bytes)
{
	*a = (struct arena){ .limit = limit_bytes };
}

void arena_clear(struct arena *a)
{
	struct arena_block *b = a->head;
	while (b) {
		struct arena_block *next = b->next;
		free(b);
		b = next;
	}
	a->head = NULL;
	a->used = 0;
	a->full = false;
}

void arena_deinit(struct arena *a)
{
	arena_clear(a);
}

static struct arena_block *grow(struct arena *a, size_t need)
{
	size_t size = a->head ? MIN(a->head->size * 2, BLOCK_BYTES_MAX) : BLOCK_BYTES_MIN;
	if (size < need)
		size = need;
	struct arena_block *b = calloc(1, sizeof(*b) + size);
	if (!b)
		return NULL;
	pages_prefer_large(b, size);
	b->size = size;
	b->next = a->head;
	a->head = b;
	return b;
}

void *arena_alloc(struct arena *a, size_t size, size_t align)
{
	assert(align && (align & (align - 1)) == 0 && align <= 16);
	if (size == 0)
		size = 1;
	size_t at = a->head ? (a->head->at + align - 1) & ~(align - 1) : 0;
	if (size > a->limit || a->used > a->limit - size) {
		a->full = true;
		return NULL;
	}
	struct arena_block *b = a->head;
	if (!b || at > b->size || size > b->size - at) {
		b = grow(a, size);
		if (!b)
			return NULL;
		at = 0;
	}
	b->at = at + size;
	a->used += size;
	return b->bytes + at;
}

void *arena_array(struct arena *a, size_t count, size_t size, size_t align)
{
	size_t bytes;
	if (__builtin_mul_overflow(count, size, &bytes)) {
		a->full = true;
		return NULL;
	}
	return arena_alloc(a, bytes, align);
}

char *arena_copy(struct arena *a, const void *bytes, size_t len)
{
	char *p = len == SIZE_MAX ? NULL : arena_alloc(a, len + 1, 1);
	if (!p)
		return NULL;
	if (len)
		memcpy(p, bytes, len);
	p[len] = 0;
	return p;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	char *p = arena_alloc(a, (size_t)n + 1, 1);
	if (!p)
		return NULL;
	va_start(ap, fmt);
	vsnprintf(p, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return p;
}

enum status arena_status(const struct arena *a)
{
	return a->full ? E_LIMIT : E_NOMEM;
}
