/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A piece is a block of a part, or some rows of a memtable. Blocks are skipped by their bounds; of
 * the others, rows pass by series, set and time. Where all rows of a block pass, no selection is
 * made.
 */

#include "store/read/scan.h"
#include <stdlib.h>

#define MEMTABLE_STEP 65536u

void scanner_init(struct scanner *s)
{
	*s = (struct scanner){ 0 };
	part_rows_init(&s->rows);
}

void scanner_deinit(struct scanner *s)
{
	part_rows_deinit(&s->rows);
	free(s->sel);
}

static enum status reserve_sel(struct scanner *s, size_t n, struct err *e)
{
	if (n <= s->sel_cap)
		return OK;
	free(s->sel);
	s->sel = malloc(n * sizeof(*s->sel));
	s->sel_cap = s->sel ? n : 0;
	return s->sel ? OK : err_set(e, E_NOMEM, "a scan of %zu rows", n);
}

/* Rows that pass, as positions; returns their number. */
static size_t select_rows(const struct scan *s, const struct scan_rows *r, uint32_t *sel)
{
	const uint8_t *series = s->pick->series, *sets = s->pick->sets;
	int64_t from = s->query->from_ns, to = s->query->to_ns;
	size_t n = 0;
	for (size_t i = 0; i < r->n; i++) {
		bool pass = !r->series || series[r->series[i]];
		if (r->time_ns)
			pass &= r->time_ns[i] >= from && r->time_ns[i] < to;
		if (sets)
			pass &= sets[r->set[i]] != 0;
		sel[n] = (uint32_t)i;
		n += pass;
	}
	return n;
}

static enum status scan_memtable(const struct scan *s, size_t piece, struct scanner *sc,
	scan_fn *fn, void *ctx, struct err *e)
{
	const struct memtable *m = s->source->mem.table;
	size_t at = piece * MEMTABLE_STEP;
	enum status st = reserve_sel(sc, MEMTABLE_STEP, e);
	if (st != OK)
		return st;
	struct scan_rows r = {
		.n = MIN(s->source->mem.row_count - at, (size_t)MEMTABLE_STEP),
		.series = m->series.v + at,
		.node = m->node.v + at,
		.set = m->set.v + at,
		.time_ns = m->time_ns.v + at,
		.value = m->value.v + at,
	};
	r.n = select_rows(s, &r, sc->sel);
	r.sel = sc->sel;
	return r.n ? fn(ctx, &r, e) : OK;
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
	if (p->wanted == p->series_count && max < p->series_count)
		return true;
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

static const struct part_block *block_of(const struct scan *s, size_t piece)
{
	size_t n;
	const struct part_block *blocks = part_blocks(s->source->part, &n);
	assert(piece < n);
	return &blocks[piece];
}

static bool whole_time(const struct scan *s, const struct part_block *b)
{
	return b->time_min >= s->query->from_ns && b->time_max < s->query->to_ns;
}

enum scan_wants scan_wants(const struct scan *s, size_t piece)
{
	const struct samples_query *q = s->query;
	if (!s->source->part)
		return SCAN_SOME;
	const struct part_block *b = block_of(s, piece);
	if (b->time_min >= q->to_ns || b->time_max < q->from_ns ||
		!any_series(s->pick, b->series_min, b->series_max))
		return SCAN_NONE;
	return whole_time(s, b) && !s->pick->sets &&
			       all_series(s->pick, b->series_min, b->series_max)
		       ? SCAN_ALL
		       : SCAN_SOME;
}

struct part_filter scan_filter(const struct scan *s, size_t piece)
{
	const struct part_block *b = block_of(s, piece);
	bool all = all_series(s->pick, b->series_min, b->series_max);
	return (struct part_filter){ .series = all ? NULL : s->pick->series,
		.sets = s->pick->sets,
		.times = !whole_time(s, b),
		.from_ns = s->query->from_ns,
		.to_ns = s->query->to_ns };
}

/* Columns that decide which rows pass are read first. If no row passes, the others are not
 * unpacked. */
static enum status scan_block(const struct scan *s, size_t piece, struct scanner *sc, scan_fn *fn,
	void *ctx, struct err *e)
{
	enum scan_wants wants = scan_wants(s, piece);
	if (wants == SCAN_NONE)
		return OK;
	struct part *p = s->source->part;
	const struct part_block *b = block_of(s, piece);
	bool times = !whole_time(s, b);
	bool series = !all_series(s->pick, b->series_min, b->series_max);
	unsigned deciding = (series ? 1u << ROW_SERIES : 0) | (times ? 1u << ROW_TIME : 0) |
			    (s->pick->sets ? 1u << ROW_SET : 0);
	unsigned rest = s->columns & ~deciding & ~(all_one(b) ? 1u << ROW_COUNT : 0);
	struct part_rows *rows = &sc->rows;
	enum status st = reserve_sel(sc, b->rows, e);
	if (st == OK && deciding)
		st = part_read_block(p, &s->source->tabs, b, deciding, rows, e);
	if (st == E_CORRUPT)
		view_damaged(s->view, p);
	if (st != OK)
		return st;
	struct scan_rows r = {
		.n = b->rows,
		.series = series ? rows->series : NULL,
		.set = rows->set,
		.time_ns = times ? rows->time_ns : NULL,
	};
	if (deciding) {
		r.n = select_rows(s, &r, sc->sel);
		r.sel = sc->sel;
		if (r.n == 0)
			return OK;
	}
	if (rest)
		st = part_read_block(p, &s->source->tabs, b, rest, rows, e);
	if (st == E_CORRUPT)
		view_damaged(s->view, p);
	if (st != OK)
		return st;
	r.series = rows->series; /* rows may have moved, or be new */
	r.node = rows->node;
	r.set = rows->set;
	r.time_ns = rows->time_ns;
	r.value = rows->value;
	r.count = all_one(b) ? NULL : rows->n;
	return fn(ctx, &r, e);
}

enum status scan_prepare(
	const struct scan *s, const struct budget *b, size_t *out_pieces, struct err *e)
{
	if (!s->source->part) {
		*out_pieces = (s->source->mem.row_count + MEMTABLE_STEP - 1) / MEMTABLE_STEP;
		return OK;
	}
	unsigned groups = PART_LOAD_LABELS | PART_LOAD_BLOCKS;
	if (s->columns & 1u << ROW_NODE)
		groups |= PART_LOAD_STACKS;
	if (s->columns & 1u << ROW_SET || s->pick->sets)
		groups |= PART_LOAD_SETS;
	enum status st = source_load(s->view, s->source, groups, b, e);
	if (st == OK)
		(void)part_blocks(s->source->part, out_pieces);
	return st;
}

enum status scan_piece(const struct scan *s, size_t piece, struct scanner *scanner, scan_fn *fn,
	void *ctx, struct err *e)
{
	return s->source->part ? scan_block(s, piece, scanner, fn, ctx, e)
			       : scan_memtable(s, piece, scanner, fn, ctx, e);
}

enum status scan_run(const struct scan *s, scan_fn *fn, void *ctx, struct budget *b, struct err *e)
{
	if (s->pick->wanted == 0)
		return OK;
	CLEANUP(scanner_deinit) struct scanner sc;
	scanner_init(&sc);
	size_t n;
	enum status st = scan_prepare(s, b, &n, e);
	for (size_t i = 0; i < n && st == OK; i++) {
		st = samples_stopped(s->query, e);
		if (st == OK)
			st = scan_piece(s, i, &sc, fn, ctx, e);
	}
	return st;
}
