/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A part's blocks are skipped by their bounds; of the others, rows pass by series, set and time.
 * Where all rows of a block pass, no selection is made.
 */
#include "store/view.h"

#include <stdlib.h>

#define MEMTABLE_STEP 65536u

/* Rows that pass, as positions; returns their number. */
static size_t select_rows(const struct scan *s, const struct scan_rows *r, uint32_t *sel)
{
	const uint8_t *series = s->pick->series, *sets = s->pick->sets;
	int64_t from = s->query->from_ns, to = s->query->to_ns;
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++) {
		bool pass = series[r->series[i]];
		if (r->time_ns)
			pass &= r->time_ns[i] >= from && r->time_ns[i] < to;
		if (sets)
			pass &= sets[r->set[i]] != 0;
		sel[n] = (uint32_t)i;
		n += pass;
	}
	return n;
}

static enum status scan_memtable(const struct scan *s, scan_fn *fn, void *ctx, struct err *e)
{
	const struct memtable *m = s->source->mem.table;
	CLEANUP(free_cleanup) uint32_t *sel = malloc(MEMTABLE_STEP * sizeof(*sel));
	if (!sel)
		return err_set(e, E_NOMEM, "a scan");
	for (size_t at = 0; at < s->source->mem.row_count; at += MEMTABLE_STEP) {
		if (query_canceled(s->query))
			return err_set(e, E_CANCELED, "the caller went away");
		struct scan_rows r = {
			.n = MIN(s->source->mem.row_count - at, (size_t)MEMTABLE_STEP),
			.series = m->series.v + at,
			.node = m->node.v + at,
			.set = m->set.v + at,
			.time_ns = m->time_ns.v + at,
			.value = m->value.v + at,
		};
		r.n = select_rows(s, &r, sel);
		r.sel = sel;
		enum status st = r.n ? fn(ctx, &r, e) : OK;
		if (st != OK)
			return st;
	}
	return OK;
}

static bool any_series(const struct pick *p, uint32_t min, uint32_t max)
{
	for (uint32_t i = min; i <= max && i < p->series_count; i++)
		if (p->series[i])
			return true;
	return false;
}

static bool all_series(const struct pick *p, uint32_t min, uint32_t max)
{
	for (uint32_t i = min; i <= max; i++)
		if (i >= p->series_count || !p->series[i])
			return false;
	return true;
}

static bool all_one(const struct part_block *b)
{
	const struct column *c = &b->columns[ROW_COUNT];
	return c->encoding == COLUMN_CONST && c->base == 1;
}

static enum status scan_block(const struct scan *s, const struct part_block *b,
	struct part_rows *rows, uint32_t *sel, scan_fn *fn, void *ctx, struct err *e)
{
	const struct samples_query *q = s->query;
	if (b->time_min >= q->to_ns || b->time_max < q->from_ns ||
		!any_series(s->pick, b->series_min, b->series_max))
		return OK;
	bool whole_time = b->time_min >= q->from_ns && b->time_max < q->to_ns;
	bool whole =
		whole_time && !s->pick->sets && all_series(s->pick, b->series_min, b->series_max);
	unsigned columns = (s->columns & ~(all_one(b) ? 1u << ROW_COUNT : 0)) |
			   (whole ? 0 : 1u << ROW_SERIES) | (whole_time ? 0 : 1u << ROW_TIME) |
			   (s->pick->sets ? 1u << ROW_SET : 0);
	enum status st = part_read_block(s->source->part, &s->source->tabs, b, columns, rows, e);
	if (st != OK) {
		if (st == E_CORRUPT)
			s->view->damaged = s->source->part;
		return st;
	}
	struct scan_rows r = {
		.n = rows->count,
		.series = rows->series,
		.node = rows->node,
		.set = rows->set,
		.time_ns = whole_time ? NULL : rows->time_ns,
		.value = rows->value,
		.count = all_one(b) ? NULL : rows->n,
	};
	if (!whole) {
		r.n = select_rows(s, &r, sel);
		r.sel = sel;
	}
	r.time_ns = rows->time_ns;
	return r.n ? fn(ctx, &r, e) : OK;
}

static enum status scan_part(
	const struct scan *s, scan_fn *fn, void *ctx, const struct budget *b, struct err *e)
{
	unsigned groups = PART_LOAD_LABELS | PART_LOAD_BLOCKS;
	if (s->columns & 1u << ROW_NODE)
		groups |= PART_LOAD_STACKS;
	if (s->columns & 1u << ROW_SET || s->pick->sets)
		groups |= PART_LOAD_SETS;
	enum status st = source_load(s->view, s->source, groups, b, e);
	if (st != OK)
		return st;
	CLEANUP(part_rows_deinit) struct part_rows rows;
	part_rows_init(&rows);
	size_t n, most = 0;
	const struct part_block *blocks = part_blocks(s->source->part, &n);
	for (size_t i = 0; i < n; i++)
		most = MAX(most, (size_t)blocks[i].rows);
	CLEANUP(free_cleanup) uint32_t *sel = malloc(MAX(most, (size_t)1) * sizeof(*sel));
	if (!sel)
		return err_set(e, E_NOMEM, "a scan");
	for (size_t i = 0; i < n && st == OK; i++) {
		if (query_canceled(s->query))
			return err_set(e, E_CANCELED, "the caller went away");
		st = scan_block(s, &blocks[i], &rows, sel, fn, ctx, e);
	}
	return st;
}

enum status scan_run(const struct scan *s, scan_fn *fn, void *ctx, struct budget *b, struct err *e)
{
	if (s->pick->wanted == 0)
		return OK;
	return s->source->part ? scan_part(s, fn, ctx, b, e) : scan_memtable(s, fn, ctx, e);
}
