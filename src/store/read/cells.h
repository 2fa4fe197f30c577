/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/cells: sums many rows by stack and group. The array is sorted and summed up in place
 * whenever it is full, so it takes little more memory than its result.
 *
 * Layer 3, private to store/. One thread's.
 */
#pragma once

#include "store/read/pick.h"

struct cells {
	struct samples_cell *v;
	size_t len;
	size_t cap;
	size_t begin;  /* of the source at hand; those before are of others */
	bool is_gauge; /* values are the bits of a double */
	struct budget *budget;
};

void cells_init(struct cells *c, bool is_gauge, struct budget *b);
void cells_deinit(struct cells *c);

/* Sorts and sums up the cells of the current source: ascending by node, then by group, each once.
 * Gives back memory that is not needed. */
void cells_settle(struct cells *c);
/* The current source is done: from now on its cells have the answer's nodes. */
void cells_set_aside(struct cells *c);
/* Sorts and sums up the cells of all sources: ascending, each once. */
void cells_finish(struct cells *c);
/* Hand them over, in no more memory than they need; the caller free()s it. */
NODISCARD struct samples_cell *cells_steal(struct cells *c, size_t *out_len);
/* Makes room for at least one more cell. E_LIMIT, E_UNAVAILABLE: the cells take all of the memory.
 */
NODISCARD enum status cells_make_room(struct cells *c, struct err *e);

static inline int64_t cells_plus(const struct cells *c, int64_t a, int64_t b)
{
	if (!c->is_gauge)
		return wrap_add(a, b);
	double x, y;
	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&a, &x, sizeof(x));
	return a;
}

/* Rows that follow each other are mostly of one stack and group. */
NODISCARD static inline enum status cells_add(
	struct cells *c, uint32_t node, uint32_t group, int64_t value, struct err *e)
{
	if (c->len > c->begin) {
		struct samples_cell *last = &c->v[c->len - 1];
		if (last->node == node && last->group == group) {
			last->value = cells_plus(c, last->value, value);
			return OK;
		}
	}
	if (c->len == c->cap) {
		enum status s = cells_make_room(c, e);
		if (s != OK)
			return s;
	}
	c->v[c->len++] = (struct samples_cell){ node, group, value };
	return OK;
}
