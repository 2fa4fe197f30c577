/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Canonical order makes merging a stream: the numbers of a source's series and nodes, translated
 * into the merged part's, still ascend. A part in (series, stack, time) order whose times need no
 * rounding is read row by row; of any other the rows of one series are gathered and sorted.
 */
#include "store/merge.h"

#include <stdlib.h>

int merge_row_compare(const struct row *a, const struct row *b)
{
	if (a->series != b->series)
		return a->series < b->series ? -1 : 1;
	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->set < b->set ? -1 : a->set > b->set;
}

static int by_key(const void *a, const void *b)
{
	return merge_row_compare(a, b);
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
	if (c->pending.len)
		qsort(c->pending.v, c->pending.len, sizeof(r), by_key);
	return OK;
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
			c->head = c->pending.v[c->pending_at++];
	}
	c->done = s == OK && !more;
	return s;
}

void merge_cursor_deinit(struct merge_cursor *c)
{
	part_rows_deinit(&c->rows);
	VEC_FREE(&c->pending);
	free(c->series);
	free(c->nodes);
	free(c->sets);
	if (c->pinned)
		part_unpin(c->part);
	part_unref(c->part);
}
