/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of a flame graph: all rows of a block are added to their nodes' sums, from the
 * columns as they are unpacked, without making arrays of rows.
 *
 * The values of rows are mostly bytes: base + unit × a byte, from a plane, or from unpacked runs.
 * So the sum of a run of rows with one node is a sum of bytes, and eight of them are added in a few
 * instructions. Runs are unpacked some at a time, and then added: a row's node is known only after
 * that of the row before it, but additions to different nodes do not wait for each other. Where
 * nodes are codes of a dictionary, sums are made by code first: a small array that stays in the
 * cache. Rows that are not kept add 0.
 */
#include "store/part/block_keep.h"

#include "store/part/varints.h"

#include <stdlib.h>

/* If fewer than one row in SPARSE is kept, sums of 0 are not added. */
#define SPARSE 16
/* Runs that are unpacked at a time. */
#define RUNS_STEP 512
/* A sum is prefetched RUNS_AHEAD runs before it is needed: most sums are not in the nearest
 * cache. */
#define RUNS_AHEAD 24

#define INLINE static inline __attribute__((always_inline))

/* ---- what rows add ---- */

/* The value of row i: base + unit × bytes[i], or × wide[i], or only base if there is neither. */
struct amounts {
	uint64_t base;
	uint64_t unit;
	const uint8_t *bytes;
	const uint64_t *wide;
};

static uint64_t byte_sum(const uint8_t *p, size_t n)
{
	uint64_t sum = 0;
	for (; n >= 256; n -= 256, p += 256) {
		uint32_t part = 0; /* 256 bytes at most 255 each */
		for (size_t i = 0; i < 256; i++)
			part += p[i];
		sum += part;
	}
	for (size_t i = 0; i < n; i++)
		sum += p[i];
	return sum;
}

static uint64_t wide_sum(const uint64_t *v, size_t n)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return sum;
}

static uint64_t amounts_sum(const struct amounts *a, size_t rows)
{
	uint64_t sum = a->bytes ? byte_sum(a->bytes, rows) : a->wide ? wide_sum(a->wide, rows) : 0;
	return a->base * rows + a->unit * sum;
}

static uint8_t greatest(const uint8_t *p, size_t n)
{
	uint8_t most = 0;
	for (size_t i = 0; i < n; i++)
		most = p[i] > most ? p[i] : most;
	return most;
}

/* Makes rows that are not kept add nothing: in `bytes` if that is possible, else in `wide`. */
static void keep_bytes(
	struct amounts *a, const uint8_t *keep, size_t rows, uint8_t *bytes, uint64_t *wide)
{
	uint64_t base = a->base, unit = a->unit;
	const uint8_t *p = a->bytes;
	if (base == 0) {
		for (size_t i = 0; i < rows; i++)
			bytes[i] = p[i] & (uint8_t)-keep[i];
		*a = (struct amounts){ 0, unit, bytes, NULL };
	} else if (unit == 1 && base <= UINT8_MAX && base + greatest(p, rows) <= UINT8_MAX) {
		for (size_t i = 0; i < rows; i++)
			bytes[i] = (uint8_t)(p[i] + base) & (uint8_t)-keep[i];
		*a = (struct amounts){ 0, 1, bytes, NULL };
	} else {
		for (size_t i = 0; i < rows; i++)
			wide[i] = (base + unit * p[i]) & (0 - (uint64_t)keep[i]);
		*a = (struct amounts){ 0, 1, NULL, wide };
	}
}

static void amounts_keep(
	struct amounts *a, const uint8_t *keep, size_t rows, uint8_t *bytes, uint64_t *wide)
{
	if (a->bytes) {
		keep_bytes(a, keep, rows, bytes, wide);
	} else if (a->wide) {
		for (size_t i = 0; i < rows; i++)
			wide[i] = (a->base + a->unit * a->wide[i]) & (0 - (uint64_t)keep[i]);
		*a = (struct amounts){ 0, 1, NULL, wide };
	} else {
		*a = (struct amounts){ 0, a->base, keep, NULL };
	}
}

/* Reads column `id`: in place, as bytes of scratch->bytes, or decoded into `wide`. */
static enum status read_amounts(struct part *p, const struct part_block *b, enum part_column id,
	struct part_rows *scratch, int64_t *wide, struct amounts *out, struct err *e)
{
	const struct column *c = &b->columns[id];
	struct column_streams streams;
	bool fit = false;
	enum status s =
		part_read_streams(p, b, id, &scratch->stored[id], &scratch->room[id], &streams, e);
	if (s != OK)
		return s;
	if (c->encoding == COLUMN_CONST || (c->encoding == COLUMN_PLANES && c->width == 0)) {
		*out = (struct amounts){ .base = (uint64_t)c->base };
		return OK;
	}
	if (c->encoding == COLUMN_PLANES && c->width == 1) {
		*out = (struct amounts){ (uint64_t)c->base, c->unit, streams.p[0], NULL };
		return OK;
	}
	s = column_decode_bytes(c, &streams, b->rows, scratch->bytes, &fit, e);
	*out = (struct amounts){ 0, 1, scratch->bytes, NULL };
	if (s == OK && !fit) {
		s = column_decode(c, &streams, b->rows, wide, e);
		*out = (struct amounts){ 0, 1, NULL, (const uint64_t *)wide };
	}
	return s;
}

/* ---- nodes ---- */

struct nodes {
	const struct column *c;
	const struct column_streams *s;
	size_t rows;
	uint32_t count; /* nodes of the trie */
	bool sparse;    /* most rows add nothing */
	uint64_t *sums;
};

struct runs {
	struct varints deltas, lengths;
	uint64_t node;
	size_t left; /* rows */
	uint32_t n;  /* unpacked runs */
	uint32_t nodes[RUNS_STEP +
		       RUNS_AHEAD]; /* entries behind the last one are older ones, or 0 */
	uint32_t rows[RUNS_STEP];
};

/* Unpacks the next runs; false: they are damaged. */
static bool runs_next(struct runs *r, const struct nodes *k)
{
	uint64_t unit = k->c->unit, node = r->node, most = 0;
	size_t left = r->left;
	uint32_t n = 0;
	struct varints v = r->lengths;
	for (; n < RUNS_STEP && left; n++) {
		uint64_t more = varints_short(&v);
		if (more >= left)
			return false;
		left -= (size_t)more + 1;
		r->rows[n] = (uint32_t)more + 1;
	}
	r->lengths = v;
	v = r->deltas;
	for (uint32_t i = 0; i < n; i += 2) {
		uint64_t a, b = 0;
		if (i + 1 < n)
			varints_two(&v, &a, &b);
		else
			a = varints_any(&v);
		node += unit * (uint64_t)varints_unzigzag(a);
		most = MAX(most, node);
		r->nodes[i] = (uint32_t)node;
		node += unit * (uint64_t)varints_unzigzag(b);
		most = MAX(most, node);
		r->nodes[i + 1] = (uint32_t)node;
	}
	r->deltas = v;
	r->node = node;
	r->left = left;
	r->n = n;
	return most < k->count && !r->deltas.bad && !r->lengths.bad;
}

/* The sum of the first n bytes at `p`, n <= 8; eight bytes are read. */
INLINE uint64_t few_bytes(const uint8_t *p, uint32_t n)
{
	uint64_t x;
	memcpy(&x, p, sizeof(x));
	x <<= 64 - 8 * n;
	x = (x & 0x00FF00FF00FF00FFu) + (x >> 8 & 0x00FF00FF00FF00FFu);
	return x * 0x0001000100010001u >> 48;
}

/* `so_far`: where amounts are wide, their sums from the first row on. */
INLINE bool each_run(const struct nodes *k, const struct amounts *a, const uint64_t *so_far,
	bool bytes, bool sparse)
{
	struct runs r = { varints_over(k->s->p[0], k->s->len[0]),
		varints_over(k->s->p[1], k->s->len[1]), (uint64_t)k->c->base, k->rows, 0, { 0 },
		{ 0 } };
	uint64_t base = a->base, unit = a->unit, before = 0, *sums = k->sums;
	size_t at = 0;
	while (r.left) {
		if (!runs_next(&r, k))
			return false;
		for (uint32_t i = 0; i < r.n; i++) {
			uint32_t n = r.rows[i];
			uint64_t sum = 0;
			if (!sparse)
				__builtin_prefetch(&sums[r.nodes[i + RUNS_AHEAD]], 1);
			if (bytes) {
				sum = n <= 8 && at + 8 <= k->rows ? few_bytes(a->bytes + at, n)
								  : byte_sum(a->bytes + at, n);
			} else if (so_far) {
				sum = so_far[at + n - 1] - before;
				before += sum;
			}
			at += n;
			if (!sparse || sum)
				sums[r.nodes[i]] += base * n + unit * sum;
		}
	}
	return varints_done(&r.deltas) && varints_done(&r.lengths);
}

static enum status add_runs(
	const struct nodes *k, const struct amounts *a, struct part_rows *scratch, struct err *e)
{
	bool good;
	if (a->wide) {
		uint64_t *so_far = (uint64_t *)scratch->time_ns, sum = 0;
		for (size_t i = 0; i < k->rows; i++)
			so_far[i] = sum += a->wide[i];
		good = each_run(k, a, so_far, false, false);
	} else if (a->bytes) {
		good = k->sparse ? each_run(k, a, NULL, true, true)
				 : each_run(k, a, NULL, true, false);
	} else {
		good = each_run(k, a, NULL, false, false);
	}
	return good ? OK : err_set(e, E_CORRUPT, "column %u: runs", k->c->id);
}

/* sums[at[i]] of each row; `lo` and `hi`: planes of codes, else `at` has them. */
INLINE void each_row(const struct amounts *a, const uint32_t *at, const uint8_t *lo,
	const uint8_t *hi, size_t rows, bool sparse, uint64_t *sums)
{
	uint64_t base = a->base, unit = a->unit;
	for (size_t i = 0; i < rows; i++) {
		uint64_t x = a->bytes ? a->bytes[i] : a->wide ? a->wide[i] : 0;
		size_t to = at ? at[i] : lo[i] | (hi ? (size_t)hi[i] << 8 : 0);
		if (!sparse || x)
			sums[to] += base + unit * x;
	}
}

/* The same, with what does not change from row to row known to the compiler. */
INLINE void add_rows(const struct amounts *a, const uint32_t *at, const uint8_t *lo,
	const uint8_t *hi, size_t rows, bool sparse, uint64_t *sums)
{
	if (a->bytes) {
		struct amounts x = { a->base, a->unit, a->bytes, NULL };
		sparse ? each_row(&x, at, lo, hi, rows, true, sums)
		       : each_row(&x, at, lo, hi, rows, false, sums);
	} else if (a->wide) {
		struct amounts x = { a->base, a->unit, NULL, a->wide };
		each_row(&x, at, lo, hi, rows, false, sums);
	} else {
		struct amounts x = { a->base, 0, NULL, NULL };
		each_row(&x, at, lo, hi, rows, false, sums);
	}
}

static bool code_beyond(const struct nodes *k, size_t count)
{
	const uint8_t *lo = k->s->p[1], *hi = k->c->width == 2 ? k->s->p[2] : NULL;
	uint32_t most = 0;
	for (size_t i = 0; i < k->rows; i++)
		most = MAX(most, (uint32_t)(lo[i] | (hi ? (uint32_t)hi[i] << 8 : 0)));
	return most >= count;
}

static enum status add_dict(
	const struct nodes *k, const struct amounts *a, struct part_rows *scratch, struct err *e)
{
	if (!scratch->by_code)
		scratch->by_code = malloc(COLUMN_DICT_MAX * sizeof(*scratch->by_code));
	if (!scratch->by_code)
		return err_set(e, E_NOMEM, "column %u", k->c->id);
	uint64_t *sums = scratch->by_code;
	memset(sums, 0, COLUMN_DICT_MAX * sizeof(*sums));
	if (k->c->width == 2)
		add_rows(a, NULL, k->s->p[1], k->s->p[2], k->rows, k->sparse, sums);
	else
		add_rows(a, NULL, k->s->p[1], NULL, k->rows, k->sparse, sums);
	struct reader r = reader_over(k->s->p[0], k->s->len[0]);
	uint64_t node = (uint64_t)k->c->base;
	size_t count = 0;
	for (; !reader_done(&r) && count < COLUMN_DICT_MAX; count++) {
		node += k->c->unit * (uint64_t)reader_zigzag(&r);
		if (r.failed || node >= k->count)
			return err_set(e, E_CORRUPT, "column %u: dictionary", k->c->id);
		k->sums[node] += sums[count];
	}
	if (!reader_done(&r) || code_beyond(k, count))
		return err_set(e, E_CORRUPT, "column %u: dictionary", k->c->id);
	return OK;
}

static enum status add_nodes(
	const struct nodes *k, const struct amounts *a, struct part_rows *scratch, struct err *e)
{
	if (k->c->encoding == COLUMN_RUNS)
		return add_runs(k, a, scratch, e);
	if (k->c->encoding == COLUMN_DICT)
		return add_dict(k, a, scratch, e);
	enum status s = column_decode_u32(k->c, k->s, k->rows, k->count, scratch->node, e);
	if (s == OK)
		add_rows(a, scratch->node, NULL, NULL, k->rows, k->sparse, k->sums);
	return s;
}

/* ---- blocks ---- */

static enum status sum_rows(struct part *p, const struct tabs *t, const struct part_block *b,
	size_t kept, struct part_rows *scratch, int64_t *sums, uint64_t *samples, struct err *e)
{
	const struct column *value = &b->columns[ROW_VALUE];
	const uint8_t *keep = kept < b->rows ? scratch->keep : NULL;
	struct column_streams nodes;
	struct amounts a;
	enum status s = part_check_scale(p, b, e);
	if (s == OK)
		s = read_amounts(p, b, ROW_COUNT, scratch, scratch->n, &a, e);
	if (s == OK && keep)
		amounts_keep(&a, keep, b->rows, scratch->bytes, (uint64_t *)scratch->n);
	uint64_t count = s == OK ? amounts_sum(&a, b->rows) : 0;
	if (s == OK && value->encoding == COLUMN_SCALE) {
		a.base *= (uint64_t)value->base;
		a.unit *= (uint64_t)value->base;
	} else if (s == OK) {
		s = read_amounts(p, b, ROW_VALUE, scratch, scratch->value, &a, e);
		if (s == OK && keep)
			amounts_keep(&a, keep, b->rows, scratch->bytes, (uint64_t *)scratch->value);
	}
	if (s == OK)
		s = part_read_streams(p, b, ROW_NODE, &scratch->stored[ROW_NODE],
			&scratch->room[ROW_NODE], &nodes, e);
	if (s != OK)
		return s;
	struct nodes k = { &b->columns[ROW_NODE], &nodes, b->rows, t->node_count,
		kept < b->rows / SPARSE, (uint64_t *)sums };
	s = add_nodes(&k, &a, scratch, e);
	*samples += count;
	return s == OK ? OK
		       : err_prefix(e, s, "%s: block at +%llu", part_path(p),
				 (unsigned long long)b->columns[ROW_NODE].offset);
}

enum status part_sum_block(struct part *p, const struct tabs *t, const struct part_block *b,
	struct part_rows *scratch, int64_t *sums, uint64_t *samples, struct err *e)
{
	enum status s = part_rows_reserve(scratch, b->rows);
	if (s != OK)
		return err_set(e, s, "%s: a block of %u rows", part_path(p), b->rows);
	return sum_rows(p, t, b, b->rows, scratch, sums, samples, e);
}

enum status part_sum_kept(struct part *p, const struct tabs *t, const struct part_block *b,
	const struct part_filter *f, struct part_rows *scratch, int64_t *sums, uint64_t *samples,
	struct part_kept *out, struct err *e)
{
	struct part_kept kept;
	enum status s = part_keep_rows(p, t, b, f, scratch, &kept, e);
	if (s == OK && kept.rows)
		s = sum_rows(p, t, b, kept.rows, scratch, sums, samples, e);
	if (s == OK)
		*out = kept;
	return s;
}
