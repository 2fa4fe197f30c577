/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical order makes merging a stream: the numbers of a source's series and nodes, translated
 * into the merged part's, still ascend. A part in the wanted order whose times need no rounding is
 * read row by row; of any other the rows of one series are gathered and sorted.
 */
#include "store/merge.h"

#include <stdlib.h>

/* Signed times as numbers that order as they do. */
static uint64_t biased(int64_t t)
{
	return (uint64_t)t ^ (uint64_t)1 << 63;
}

struct merge_key merge_key_of(const struct row *r, enum part_order order)
{
	if (order == PART_ORDER_STACK)
		return (struct merge_key){ { (uint64_t)r->series << 32 | r->node,
			biased(r->time_ns), r->set } };
	return (struct merge_key){ { r->series, biased(r->time_ns),
		(uint64_t)r->node << 32 | r->set } };
}

int merge_row_compare(const struct row *a, const struct row *b)
{
	struct merge_key x = merge_key_of(a, PART_ORDER_STACK);
	struct merge_key y = merge_key_of(b, PART_ORDER_STACK);
	return merge_key_compare(&x, &y);
}

static int64_t round_down(int64_t t, int64_t unit)
{
	int64_t r = t % unit;
	return t - r - (r < 0 ? unit : 0);
}

/* The next row as it lies, translated; false at the end. */
static enum status next_raw(struct merge_cursor *c, struct row *out, bool *more, struct err *e)
{
	while (c->at == c->rows.count) {
		if (c->next_block == c->block_count) {
			*more = false;
			return OK;
		}
		enum status s = part_read_block(
			c->part, &c->tabs, &c->blocks[c->next_block++], ~0u, &c->rows, e);
		if (s != OK)
			return s;
		c->at = 0;
	}
	size_t i = c->at++;
	struct row r = {
		.time_ns = c->rows.time_ns[i],
		.value = c->rows.value[i],
		.count = c->rows.n[i],
		.series = c->series[c->rows.series[i]],
		.node = c->nodes[c->rows.node[i]],
		.set = c->sets[c->rows.set[i]],
	};
	if (c->resolution_ns && c->delta[r.series] && !c->keep_time[r.set])
		r.time_ns = round_down(r.time_ns, c->resolution_ns);
	*out = r;
	*more = true;
	return OK;
}

/* What the rows of a series differ in, as small numbers. */
struct spread {
	int64_t time_min;
	uint64_t time_unit;
	unsigned time_bits, node_bits, set_bits;
};

static unsigned bits_of(uint64_t v)
{
	return v ? 64 - (unsigned)__builtin_clzll(v) : 0;
}

static struct spread spread_of(const struct merge_cursor *c)
{
	const struct row *v = c->pending.v;
	struct spread s = { .time_min = v[0].time_ns, .time_unit = 1 };
	int64_t time_max = v[0].time_ns;
	uint32_t nodes = 0, sets = 0;
	bool whole = c->resolution_ns > 1;
	for (size_t i = 0; i < c->pending.len; i++) {
		s.time_min = MIN(s.time_min, v[i].time_ns);
		time_max = MAX(time_max, v[i].time_ns);
		nodes |= v[i].node;
		sets |= v[i].set;
		whole = whole && v[i].time_ns % c->resolution_ns == 0;
	}
	if (whole)
		s.time_unit = (uint64_t)c->resolution_ns;
	s.time_bits = bits_of(((uint64_t)time_max - (uint64_t)s.time_min) / s.time_unit);
	s.node_bits = bits_of(nodes);
	s.set_bits = bits_of(sets);
	return s;
}

static uint64_t time_of(const struct spread *s, const struct row *r)
{
	return ((uint64_t)r->time_ns - (uint64_t)s->time_min) / s->time_unit;
}

/* One sort when all that differs fits a key; else by the minor part and then, stable, by the major.
 */
static enum status sort_series(struct merge_cursor *c)
{
	size_t n = c->pending.len;
	const struct row *v = c->pending.v;
	if (n == 0)
		return OK;
	if (n >= UINT32_MAX / 2 || !VEC_RESERVE(&c->sorting, 2 * n))
		return E_NOMEM;
	struct radix_item *items = c->sorting.v;
	struct spread s = spread_of(c);
	bool by_stack = c->order == PART_ORDER_STACK;
	if (s.time_bits + s.node_bits + s.set_bits <= 63) {
		unsigned time_at = s.set_bits + (by_stack ? 0 : s.node_bits);
		unsigned node_at = s.set_bits + (by_stack ? s.time_bits : 0);
		for (uint32_t i = 0; i < n; i++)
			items[i] = (struct radix_item){ time_of(&s, &v[i]) << time_at |
								(uint64_t)v[i].node << node_at |
								v[i].set,
				i };
		radix_sort(items, items + n, n);
		return OK;
	}
	for (uint32_t i = 0; i < n; i++)
		items[i] = (struct radix_item){ (uint64_t)v[i].node << 32 | v[i].set, i };
	radix_sort(items, items + n, n);
	for (size_t i = 0; i < n; i++)
		items[i].key = time_of(&s, &v[items[i].index]);
	radix_sort(items, items + n, n);
	for (size_t i = 0; by_stack && i < n; i++)
		items[i].key = v[items[i].index].node;
	if (by_stack)
		radix_sort(items, items + n, n);
	return OK;
}

/* All rows of the series that begins at the current row. */
static enum status gather_series(struct merge_cursor *c, struct err *e)
{
	VEC_CLEAR(&c->pending);
	c->pending_at = 0;
	bool more;
	struct row r;
	for (;;) {
		enum status s = next_raw(c, &r, &more, e);
		if (s != OK)
			return s;
		if (!more)
			break;
		if (c->pending.len && c->pending.v[0].series != r.series) {
			c->at--; /* the next series' first row */
			break;
		}
		if (!VEC_PUSH(&c->pending, r))
			return err_set(e, E_NOMEM, "merging %zu rows of a series", c->pending.len);
	}
	enum status s = sort_series(c);
	return s == OK ? OK
		       : err_set(e, s, "no memory to sort %zu rows of a series", c->pending.len);
}

enum status merge_cursor_next(struct merge_cursor *c, struct err *e)
{
	bool more = true;
	enum status s = OK;
	if (c->sorted) {
		s = next_raw(c, &c->head, &more, e);
	} else {
		if (c->pending_at == c->pending.len)
			s = gather_series(c, e);
		more = s == OK && c->pending_at < c->pending.len;
		if (more)
			c->head = c->pending.v[c->sorting.v[c->pending_at++].index];
	}
	c->done = s == OK && !more;
	if (more)
		c->key = merge_key_of(&c->head, c->order);
	return s;
}

void merge_cursor_deinit(struct merge_cursor *c)
{
	part_rows_deinit(&c->rows);
	VEC_FREE(&c->pending);
	VEC_FREE(&c->sorting);
	free(c->series);
	free(c->nodes);
	free(c->sets);
	if (c->pinned)
		part_unpin(c->part);
	part_unref(c->part);
}
