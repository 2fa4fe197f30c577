/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical order makes merging a stream: the numbers of a source's series and nodes, translated
 * into the merged part's, still ascend. A part in the wanted order whose times need no rounding is
 * read row by row; of any other the rows of one series in one slice are gathered and sorted. A part
 * with other slices (older versions had none) is gone through once for each slice that it has rows
 * in.
 */
#include "store/merge.h"

#include <stdlib.h>

/* Signed times as numbers that order as they do. */
static uint64_t biased(int64_t t)
{
	return (uint64_t)t ^ (uint64_t)1 << 63;
}

struct merge_key merge_key_of(const struct row *r, enum part_order order, int64_t slice_first_ns)
{
	uint64_t slice = biased(slice_first_ns), time = biased(r->time_ns);
	if (order == PART_ORDER_STACK)
		return (struct merge_key){ { slice, (uint64_t)r->series << 32 | r->node, time,
			r->set } };
	return (struct merge_key){ { slice, r->series, time, (uint64_t)r->node << 32 | r->set } };
}

int merge_row_compare(const struct row *a, const struct row *b)
{
	struct merge_key x = merge_key_of(a, PART_ORDER_STACK, 0);
	struct merge_key y = merge_key_of(b, PART_ORDER_STACK, 0);
	return merge_key_compare(&x, &y);
}

/* The next pass, over the next slice that has rows; false: there is none. */
static bool next_pass(struct merge_cursor *c)
{
	bool more = c->passes && c->any_later;
	if (more) {
		c->slice = part_slice_of(c->later_ns, c->slice_ns);
		c->any_later = false;
		c->next_block = 0;
		c->pass_count++;
	}
	return more;
}

static void see_later(struct merge_cursor *c, int64_t t)
{
	if (t <= c->slice.last_ns || (c->any_later && t >= c->later_ns))
		return;
	c->later_ns = t;
	c->any_later = true;
}

/* Whether a pass has to look into a block. */
static bool pass_wants(struct merge_cursor *c, const struct part_block *b)
{
	if (b->time_min > c->slice.last_ns)
		see_later(c, b->time_min);
	return b->time_min <= c->slice.last_ns && b->time_max >= c->slice.first_ns;
}

/* The next block that has rows to look at; false at the end. */
static enum status next_block(struct merge_cursor *c, bool *more, struct err *e)
{
	for (;;) {
		*more = c->next_block < c->block_count || next_pass(c);
		if (c->pass_count > PART_PASSES_MAX)
			return err_set(e, E_LIMIT,
				"%s: its rows lie in more than %d slices of time",
				part_path(c->part), PART_PASSES_MAX);
		if (!*more && c->passes && c->taken != part_meta(c->part)->rows)
			return err_set(e, E_CORRUPT,
				"%s: rows outside of the bounds of their block",
				part_path(c->part));
		if (!*more)
			return OK;
		const struct part_block *b = &c->blocks[c->next_block++];
		if (c->passes && !pass_wants(c, b))
			continue;
		enum status s = part_read_block(c->part, &c->tabs, b, ~0u, &c->rows, e);
		c->at = 0;
		return s;
	}
}

/* The next row of all, or of those of the pass; false at the end. */
static enum status next_index(struct merge_cursor *c, size_t *out, bool *more, struct err *e)
{
	for (;;) {
		while (c->at == c->rows.count) {
			c->at = c->rows.count = 0;
			enum status s = next_block(c, more, e);
			if (s != OK || !*more)
				return s;
		}
		*out = c->at++;
		*more = true;
		int64_t t = c->rows.time_ns[*out];
		bool here = t >= c->slice.first_ns && t <= c->slice.last_ns;
		if (c->passes && !here) {
			see_later(c, t);
			continue;
		}
		if (!here)
			c->slice = part_slice_of(t, c->slice_ns);
		c->taken += c->passes;
		return OK;
	}
}

void merge_cursor_begin(struct merge_cursor *c)
{
	int64_t first = INT64_MAX;
	for (size_t i = 0; i < c->block_count; i++)
		first = MIN(first, c->blocks[i].time_min);
	c->slice = part_slice_of(first, c->slice_ns);
}

/* The next row as it lies, translated; false at the end. */
static enum status next_raw(struct merge_cursor *c, struct row *out, bool *more, struct err *e)
{
	size_t i = 0;
	enum status s = next_index(c, &i, more, e);
	if (s != OK || !*more)
		return s;
	struct row r = {
		.time_ns = c->rows.time_ns[i],
		.value = c->rows.value[i],
		.count = c->rows.n[i],
		.series = c->series[c->rows.series[i]],
		.node = c->nodes[c->rows.node[i]],
		.set = c->sets[c->rows.set[i]],
	};
	if (c->resolution_ns && c->delta[r.series] && !c->keep_time[r.set])
		r.time_ns = part_round_time(r.time_ns, c->resolution_ns, c->slice);
	*out = r;
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

/* All rows of one series in one slice, from the row ahead. */
static enum status gather_series(struct merge_cursor *c, struct err *e)
{
	VEC_CLEAR(&c->pending);
	c->pending_at = 0;
	enum status s = c->has_ahead ? OK : next_raw(c, &c->ahead, &c->has_ahead, e);
	uint32_t series = c->ahead.series;
	c->pending_first_ns = c->slice.first_ns;
	while (s == OK && c->has_ahead && c->ahead.series == series &&
		c->slice.first_ns == c->pending_first_ns) {
		if (!VEC_PUSH(&c->pending, c->ahead))
			return err_set(e, E_NOMEM, "merging %zu rows of a series", c->pending.len);
		s = next_raw(c, &c->ahead, &c->has_ahead, e);
	}
	if (s != OK)
		return s;
	s = sort_series(c);
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
		c->key = merge_key_of(
			&c->head, c->order, c->sorted ? c->slice.first_ns : c->pending_first_ns);
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
		part_unpin(c->part, c->pinned);
	part_unref(c->part);
}
