/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds which rows of a block pass, and writes a byte for each. Columns are tested in the order of
 * their cost, and in their encoding: runs of series are decided run by run. Times are compared as
 * multiples of their column's unit from the block's smallest, which fit 32 bits, so that the
 * compiler can vectorize the loops. Times of another form are decoded first.
 */
#include "store/part/block_keep.h"

#include "store/part/varints.h"

#include <string.h>

#define CHUNK_ROWS 2048

struct keeping {
	struct part *p;
	const struct tabs *t;
	const struct part_block *b;
	const struct part_filter *f;
	struct part_rows *r;
	struct part_kept *out;
};

static enum status damaged(const struct keeping *k, enum part_column id, struct err *e)
{
	return err_set(e, E_CORRUPT, "%s: block at +%llu: column %d", part_path(k->p),
		(unsigned long long)k->b->columns[id].offset, id);
}

/* ---- series and sets ---- */

static bool keep_runs(const struct keeping *k, const struct column *c,
	const struct column_streams *s, const uint8_t *wanted, uint32_t count)
{
	struct varints deltas = varints_over(s->p[0], s->len[0]);
	struct varints lengths = varints_over(s->p[1], s->len[1]);
	uint64_t value = (uint64_t)c->base;
	size_t rows = k->b->rows, at = 0;
	while (at < rows) {
		value += c->unit * (uint64_t)varints_unzigzag(varints_short(&deltas));
		uint64_t n = varints_short(&lengths);
		if (deltas.bad || lengths.bad || n >= rows - at || value >= count)
			return false;
		if (!wanted[value])
			memset(k->r->keep + at, 0, (size_t)n + 1);
		at += (size_t)n + 1;
	}
	return varints_done(&deltas) && varints_done(&lengths);
}

static enum status keep_wanted(const struct keeping *k, enum part_column id, const uint8_t *wanted,
	uint32_t count, uint32_t *scratch, struct err *e)
{
	const struct column *c = &k->b->columns[id];
	struct column_streams s;
	enum status st =
		part_read_streams(k->p, k->b, id, &k->r->stored[id], &k->r->room[id], &s, e);
	if (st != OK)
		return st;
	if (c->encoding == COLUMN_RUNS)
		return keep_runs(k, c, &s, wanted, count) ? OK : damaged(k, id, e);
	st = column_decode_u32(c, &s, k->b->rows, count, scratch, e);
	for (size_t i = 0; st == OK && i < k->b->rows; i++)
		k->r->keep[i] &= wanted[scratch[i]] != 0;
	return st == OK ? OK : err_prefix(e, st, "%s", part_path(k->p));
}

/* ---- times ---- */

/* Times as multiples of the unit since the block's smallest: those from `lo` on that are fewer than
 * `span` later pass; `first`: the smallest, in units since the column's base. */
struct window {
	uint32_t first;
	uint32_t lo;
	uint32_t span;
};

/* False: times are not encoded like that. */
static bool find_window(const struct keeping *k, const struct column *c, struct window *out)
{
	__int128 unit = c->unit, base = c->base, min = k->b->time_min, max = k->b->time_max;
	if ((c->encoding != COLUMN_DELTA && c->encoding != COLUMN_PLANES) || c->width == 0 ||
		c->width > 4 || unit == 0 || max < min || (min - base) % unit ||
		(max - min) / unit >= INT32_MAX)
		return false;
	__int128 most = (max - min) / unit + 1;
	__int128 lo = MAX(k->f->from_ns - min + unit - 1, (__int128)0) / unit;
	__int128 hi = MAX(k->f->to_ns - min + unit - 1, (__int128)0) / unit;
	lo = MIN(lo, most);
	hi = MAX(MIN(hi, most), lo);
	*out = (struct window){ (uint32_t)((min - base) / unit), (uint32_t)lo,
		(uint32_t)(hi - lo) };
	return true;
}

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t planes_at(const uint8_t *const *p, unsigned width, size_t i)
{
	uint32_t u = p[0][i];
	for (unsigned j = 1; j < width; j++)
		u |= (uint32_t)p[j][i] << (8 * j);
	return u;
}

/* Decodes times as multiples of the unit, minus `from`. */
INLINE void multiples(const struct column_streams *s, bool delta, unsigned width, size_t rows,
	uint32_t from, uint32_t *out)
{
	uint32_t a = 0 - from;
	for (size_t i = 0; i < rows && delta; i++) {
		uint32_t u = planes_at(s->p, width, i);
		out[i] = a += u >> 1 ^ -(u & 1);
	}
	for (size_t i = 0; i < rows && !delta; i++)
		out[i] = planes_at(s->p, width, i) - from;
}

static void all_multiples(const struct column *c, const struct column_streams *s, size_t rows,
	uint32_t from, uint32_t *out)
{
	bool delta = c->encoding == COLUMN_DELTA;
	switch (c->width) {
	case 1:
		delta ? multiples(s, true, 1, rows, from, out)
		      : multiples(s, false, 1, rows, from, out);
		break;
	case 2:
		delta ? multiples(s, true, 2, rows, from, out)
		      : multiples(s, false, 2, rows, from, out);
		break;
	default:
		delta ? multiples(s, true, c->width, rows, from, out)
		      : multiples(s, false, c->width, rows, from, out);
		break;
	}
}

/* The least and the greatest value of the kept rows at `v`. */
static void extremes(
	const uint32_t *v, const uint8_t *keep, size_t n, uint32_t *least, uint32_t *greatest)
{
	uint32_t lo = *least, hi = *greatest;
	for (size_t i = 0; i < n; i++) {
		uint32_t off = (uint32_t)keep[i] - 1; /* 0 where kept, else all ones */
		lo = MIN(lo, v[i] | off);
		hi = MAX(hi, v[i] & ~off);
	}
	*least = lo;
	*greatest = hi;
}

static void keep_window(const struct keeping *k, const struct window *w, uint64_t unit)
{
	const uint32_t *v = k->r->set;
	uint8_t *keep = k->r->keep;
	uint64_t min = (uint64_t)k->b->time_min;
	size_t rows = k->b->rows, n;
	uint32_t span = w->span, least = UINT32_MAX, greatest = 0;
	for (size_t at = 0; at < rows; at += n) {
		n = MIN(rows - at, (size_t)CHUNK_ROWS);
		for (size_t i = at; i < at + n; i++)
			keep[i] &= v[i] < span;
		/* Mostly the first rows reach both ends, and the rest need not be read. */
		if (least > 0 || greatest + 1 < span)
			extremes(v + at, keep + at, n, &least, &greatest);
	}
	if (least == UINT32_MAX)
		return;
	k->out->first_ns = (int64_t)(min + unit * ((uint64_t)w->lo + least));
	k->out->last_ns = (int64_t)(min + unit * ((uint64_t)w->lo + greatest));
}

static void keep_decoded(const struct keeping *k)
{
	int64_t from = k->f->from_ns, to = k->f->to_ns, first = INT64_MAX, last = INT64_MIN;
	uint8_t *keep = k->r->keep;
	for (size_t i = 0; i < k->b->rows; i++) {
		int64_t t = k->r->time_ns[i];
		keep[i] &= t >= from && t < to;
		first = keep[i] && t < first ? t : first;
		last = keep[i] && t > last ? t : last;
	}
	k->out->first_ns = first;
	k->out->last_ns = last;
}

static enum status keep_times(const struct keeping *k, struct err *e)
{
	const struct column *c = &k->b->columns[ROW_TIME];
	struct column_streams s;
	struct window w;
	enum status st = part_read_streams(
		k->p, k->b, ROW_TIME, &k->r->stored[ROW_TIME], &k->r->room[ROW_TIME], &s, e);
	if (st != OK)
		return st;
	if (find_window(k, c, &w)) {
		all_multiples(c, &s, k->b->rows, w.first + w.lo, k->r->set);
		keep_window(k, &w, c->unit);
		return OK;
	}
	st = column_decode(c, &s, k->b->rows, k->r->time_ns, e);
	if (st == OK)
		keep_decoded(k);
	return st == OK ? OK : err_prefix(e, st, "%s", part_path(k->p));
}

/* ---- all ---- */

static size_t count_kept(const uint8_t *keep, size_t rows)
{
	size_t sum = 0, n;
	for (size_t at = 0; at < rows; at += n) {
		uint8_t part = 0;
		n = MIN(rows - at, (size_t)255);
		for (size_t i = 0; i < n; i++)
			part = (uint8_t)(part + keep[at + i]);
		sum += part;
	}
	return sum;
}

enum status part_keep_rows(struct part *p, const struct tabs *t, const struct part_block *b,
	const struct part_filter *f, struct part_rows *scratch, struct part_kept *out,
	struct err *e)
{
	struct part_kept kept = { 0, INT64_MAX, INT64_MIN };
	struct keeping k = { p, t, b, f, scratch, &kept };
	enum status s = part_rows_reserve(scratch, b->rows);
	if (s != OK)
		return err_set(e, s, "%s: a block of %u rows", part_path(p), b->rows);
	memset(scratch->keep, 1, b->rows);
	kept.rows = b->rows;
	if (f->series) {
		s = keep_wanted(&k, ROW_SERIES, f->series, t->series_count, scratch->series, e);
		kept.rows = count_kept(scratch->keep, b->rows);
	}
	if (s == OK && f->sets && kept.rows) {
		s = keep_wanted(&k, ROW_SET, f->sets, t->set_count, scratch->set, e);
		kept.rows = count_kept(scratch->keep, b->rows);
	}
	if (s == OK && f->times && kept.rows) {
		s = keep_times(&k, e);
		kept.rows = count_kept(scratch->keep, b->rows);
	}
	if (s == OK)
		*out = kept;
	return s;
}
