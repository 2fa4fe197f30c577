/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical order makes merging a stream: the numbers of a source's series and nodes, translated
 * into the merged part's, still ascend. A part in the wanted order whose times need no rounding is
 * read row by row. For any other part the rows of one series in one slice are collected and sorted.
 * If they need more memory than there is, the first of them in the wanted order are collected, and
 * their blocks are read again for the next ones.
 */
#include "store/merge/merge_cursor.h"

#include <stdlib.h>

/* A series that does not fit is sorted in pieces of at least SORT_ROWS_MIN rows, and in at most
 * SORT_PIECES_MAX pieces. */
#define SORT_ROWS_MIN 16384
#define SORT_PIECES_MAX 32
#define MEMTABLE_STEP 4096 /* rows of a memtable, read as a block */
#define GONE UINT32_MAX    /* series of a row that was added to an equal one */

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

static enum status read_memtable(struct merge_cursor *c, size_t block)
{
	size_t from = block * MEMTABLE_STEP, n = MIN(c->list_count - from, (size_t)MEMTABLE_STEP);
	struct part_rows *r = &c->rows;
	enum status s = part_rows_reserve(r, n);
	for (size_t i = 0; i < n && s == OK; i++) {
		uint32_t at = c->list[from + i];
		r->series[i] = c->mem->series.v[at];
		r->node[i] = c->mem->node.v[at];
		r->set[i] = c->mem->set.v[at];
		r->time_ns[i] = c->mem->time_ns.v[at];
		r->value[i] = c->mem->value.v[at];
		r->n[i] = 1;
	}
	r->count = s == OK ? n : 0;
	return s;
}

static enum status read_block(struct merge_cursor *c, size_t block, struct err *e)
{
	if (!c->mem)
		return part_read_block(c->part, &c->tabs, &c->blocks[block], ~0u, &c->rows, e);
	enum status s = read_memtable(c, block);
	return s == OK ? OK : err_set(e, s, "rows of a memtable");
}

static bool is_taken(const struct merge_cursor *c, size_t i)
{
	return !c->filter ||
	       merge_filter_takes(c->filter, c->rows.series[i], c->rows.set[i], c->rows.time_ns[i]);
}

/* The next row that is taken, in `rows`; false at the end. */
static enum status next_index(struct merge_cursor *c, size_t *out, bool *more, struct err *e)
{
	do {
		while (c->place.at == c->rows.count) {
			c->place.at = c->rows.count = 0;
			*more = c->place.next_block < c->block_count;
			if (!*more)
				return OK;
			enum status s = read_block(c, c->place.next_block++, e);
			if (s != OK)
				return s;
		}
		*out = c->place.at++;
	} while (!is_taken(c, *out));
	*more = true;
	int64_t t = c->rows.time_ns[*out];
	if (t < c->place.slice.first_ns || t > c->place.slice.last_ns)
		c->place.slice = part_slice_of(t);
	return OK;
}

uint64_t merge_cursor_series_rows(const struct merge_cursor *c)
{
	uint64_t rows = 0;
	if (c->sorted || c->mem)
		return 0;
	for (uint32_t i = 0; i < c->tabs.series_count; i++)
		rows = MAX(rows, c->tabs.series[i].rows);
	return MIN(rows, part_meta(c->part)->rows);
}

enum status merge_cursor_limit(struct merge_cursor *c, uint64_t memory_bytes, struct err *e)
{
	uint64_t most = MAX(memory_bytes / MERGE_SORT_ROW_BYTES, (uint64_t)SORT_ROWS_MIN);
	uint64_t rows = merge_cursor_series_rows(c);
	if (rows / most >= SORT_PIECES_MAX)
		return err_set(e, E_LIMIT, "%s: a series of %llu rows that are not sorted",
			part_path(c->part), (unsigned long long)rows);
	c->pending_max = rows > most ? (size_t)most : 0;
	return OK;
}

void merge_cursor_begin(struct merge_cursor *c)
{
	int64_t first = INT64_MAX;
	if (c->mem)
		c->block_count = (c->list_count + MEMTABLE_STEP - 1) / MEMTABLE_STEP;
	for (size_t i = 0; i < c->block_count && !c->mem; i++)
		first = MIN(first, c->blocks[i].time_min);
	c->place.slice = part_slice_of(first);
	if (c->resolution_ns)
		c->rounded_ns = part_round_down(first, c->resolution_ns);
}

/* Rounds a time within the current slice. Most times are rounded to the same as the one before. */
static int64_t rounded(struct merge_cursor *c, int64_t t)
{
	uint64_t later = (uint64_t)t - (uint64_t)c->rounded_ns;
	if (t < c->rounded_ns || later >= (uint64_t)c->resolution_ns)
		c->rounded_ns = part_round_down(t, c->resolution_ns);
	return MAX(c->rounded_ns, c->place.slice.first_ns);
}

/* Row i of the current block, translated. */
static inline struct row row_at(struct merge_cursor *c, size_t i)
{
	struct row r = {
		.time_ns = c->rows.time_ns[i],
		.value = c->rows.value[i],
		.count = c->rows.n[i],
		.series = c->series[c->rows.series[i]],
		.node = c->nodes[c->rows.node[i]],
		.set = c->sets[c->rows.set[i]],
	};
	if (c->resolution_ns && c->delta[r.series] && !c->keep_time[r.set])
		r.time_ns = rounded(c, r.time_ns);
	return r;
}

/* The next row as it lies, translated; false at the end. */
static enum status next_raw(struct merge_cursor *c, struct row *out, bool *more, struct err *e)
{
	size_t i = 0;
	enum status s = next_index(c, &i, more, e);
	if (s == OK && *more)
		*out = row_at(c, i);
	return s;
}

/* The differences between the rows of a series, as small numbers. */
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

/* Sorts once if all differences fit a key; else by the minor part, and then (stable) by the major
 * part.
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

static struct merge_key pending_key(const struct merge_cursor *c, size_t i)
{
	return merge_key_of(&c->pending.v[i], c->order, c->series_begin.slice.first_ns);
}

static size_t sorted_at(const struct merge_cursor *c, size_t i)
{
	return c->sorting.v[i].index;
}

/* Joins equal rows, and keeps the lower half of the others; the rest is read later. */
static enum status make_room(struct merge_cursor *c)
{
	struct row *v = c->pending.v;
	size_t n = c->pending.len, distinct = 0, kept = 0;
	enum status s = sort_series(c);
	if (s != OK)
		return s;
	for (size_t i = 1; i < n; i++) {
		struct row *to = &v[sorted_at(c, distinct)], *from = &v[sorted_at(c, i)];
		struct merge_key a = pending_key(c, sorted_at(c, distinct));
		struct merge_key b = pending_key(c, sorted_at(c, i));
		if (merge_key_compare(&a, &b) != 0) {
			c->sorting.v[++distinct] = c->sorting.v[i];
			continue;
		}
		to->value = (int64_t)((uint64_t)to->value + (uint64_t)from->value);
		to->count = (int64_t)((uint64_t)to->count + (uint64_t)from->count);
		from->series = GONE;
	}
	if (++distinct > c->pending_max / 2) {
		c->cut = true;
		c->cut_at = pending_key(c, sorted_at(c, distinct / 2));
	}
	for (size_t i = 0; i < n; i++) {
		struct merge_key key = pending_key(c, i);
		if (v[i].series != GONE && (!c->cut || merge_key_compare(&key, &c->cut_at) < 0))
			v[kept++] = v[i];
	}
	c->pending.len = kept;
	return OK;
}

/* Whether the row ahead is among those that are gathered now. */
static bool is_wanted(const struct merge_cursor *c, const struct merge_key *from)
{
	if (!from && !c->cut)
		return true;
	struct merge_key key =
		merge_key_of(&c->place.ahead, c->order, c->series_begin.slice.first_ns);
	return (!from || merge_key_compare(&key, from) >= 0) &&
	       (!c->cut || merge_key_compare(&key, &c->cut_at) < 0);
}

/* Goes back to the beginning of the series, for the rows from the cut on. */
static enum status go_back(struct merge_cursor *c, struct err *e)
{
	c->place = c->series_begin;
	return read_block(c, c->place.next_block - 1, e);
}

/* Push the other rows of the current block that have the series and slice of the last row. */
static enum status gather_block(struct merge_cursor *c)
{
	size_t at = c->place.at, end = c->rows.count;
	if (at == 0 || !VEC_RESERVE(&c->pending, c->pending.len + (end - at)))
		return at ? E_NOMEM : OK;
	uint32_t series = c->rows.series[at - 1];
	struct part_slice slice = c->place.slice;
	struct row *to = c->pending.v + c->pending.len;
	for (; at < end && c->rows.series[at] == series; at++) {
		int64_t t = c->rows.time_ns[at];
		if (t < slice.first_ns || t > slice.last_ns)
			break;
		if (is_taken(c, at))
			*to++ = row_at(c, at);
	}
	c->pending.len = (size_t)(to - c->pending.v);
	c->place.at = at;
	return OK;
}

/* The rows of one series in one slice, from the row ahead: all, or the next of them that fit. */
static enum status gather_series(struct merge_cursor *c, struct err *e)
{
	struct merge_place *at = &c->place;
	bool goes_on = c->cut;
	struct merge_key from = c->cut_at;
	enum status s = OK;
	VEC_CLEAR(&c->pending);
	c->pending_at = 0;
	c->cut = false;
	if (goes_on)
		s = go_back(c, e);
	else if (!at->has_ahead)
		s = next_raw(c, &at->ahead, &at->has_ahead, e);
	c->series_begin = *at;
	while (s == OK && at->has_ahead && at->ahead.series == c->series_begin.ahead.series &&
		at->slice.first_ns == c->series_begin.slice.first_ns) {
		bool take = is_wanted(c, goes_on ? &from : NULL);
		if (take && c->pending_max && c->pending.len == c->pending_max) {
			s = make_room(c);
			take = is_wanted(c, NULL); /* a cut may have excluded the row meanwhile */
		}
		if (s == OK && take && !VEC_PUSH(&c->pending, at->ahead))
			s = E_NOMEM;
		if (s == OK && !c->pending_max)
			s = gather_block(c);
		if (s != OK)
			return err_set(e, s, "merging %zu rows of a series", c->pending.len);
		s = next_raw(c, &at->ahead, &at->has_ahead, e);
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
		c->key = merge_key_of(&c->head, c->order,
			c->sorted ? c->place.slice.first_ns : c->series_begin.slice.first_ns);
	return s;
}

void merge_cursor_deinit(struct merge_cursor *c)
{
	part_rows_deinit(&c->rows);
	VEC_FREE(&c->pending);
	VEC_FREE(&c->sorting);
	free(c->series);
	free(c->nodes);
	free(c->depths);
	free(c->sets);
	free(c->list);
	if (c->pinned)
		part_unpin(c->part, c->pinned);
	part_unref(c->part);
}
