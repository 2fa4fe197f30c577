/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of a flame graph: all rows of a block are added to their nodes' sums, from the
 * columns as they are unpacked, without making arrays of rows.
 *
 * Values are mostly `linear`: base + unit × the bytes of some planes. So the sum of a run of rows
 * with one node is a sum of bytes: the difference of two of the sums that are made first, of all
 * rows from the block's beginning on. Where nodes are codes of a dictionary, sums are made by code
 * first: a small array that stays in the cache. Rows that are not kept have the value 0.
 */
#include "store/block_keep.h"

#include "base/reader.h"

#include <stdlib.h>

/* Numbers of a column that can be summed as they lie: base + unit × what is read of row i. */
struct linear {
	uint64_t base;
	uint64_t unit;
	unsigned width;
	const uint8_t *planes[COLUMN_WIDTH_MAX];
	const int64_t *wide; /* instead of planes: decoded */
};

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t raw_at(const struct linear *l, size_t i)
{
	if (l->wide)
		return (uint64_t)l->wide[i];
	uint64_t u = 0;
	for (unsigned j = 0; j < l->width; j++)
		u |= (uint64_t)l->planes[j][i] << (8 * j);
	return u;
}

/* All ones where row i counts. */
INLINE uint64_t mask_at(const uint8_t *keep, size_t i)
{
	return keep ? 0 - (uint64_t)keep[i] : UINT64_MAX;
}

INLINE uint64_t kept_at(const struct linear *l, const uint8_t *keep, size_t i)
{
	return (l->base + l->unit * raw_at(l, i)) & mask_at(keep, i);
}

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

static uint64_t linear_sum(const struct linear *l, const uint8_t *keep, size_t n)
{
	uint64_t sum = 0;
	if (!l->wide && l->width == 0)
		return l->base * (keep ? byte_sum(keep, n) : n);
	if (l->wide || keep) {
		for (size_t i = 0; i < n; i++)
			sum += kept_at(l, keep, i);
		return sum;
	}
	for (unsigned j = 0; j < l->width; j++)
		sum += byte_sum(l->planes[j], n) << (8 * j);
	return l->base * n + l->unit * sum;
}

/* ---- nodes ---- */

struct nodes {
	const struct column *c;
	const struct column_streams *s;
	size_t rows;
	uint32_t count;      /* nodes of the trie */
	const uint8_t *keep; /* NULL: all rows */
	uint64_t *sums;
};

/* Varints of a stream, one after the other; `bad` stays set. */
struct varints {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t next_any(struct varints *v)
{
	struct reader r = reader_over(v->at, (size_t)(v->end - v->at));
	uint64_t x = reader_varint(&r);
	v->bad |= r.failed;
	v->at += reader_offset(&r);
	return x;
}

/* Mostly one byte. */
INLINE uint64_t next_short(struct varints *v)
{
	if (v->at < v->end && *v->at < 0x80)
		return *v->at++;
	return next_any(v);
}

/* Of one to four bytes, as it comes: no branch by their number. */
INLINE uint64_t next(struct varints *v)
{
	uint32_t x;
	if (v->end - v->at < (ptrdiff_t)sizeof(x))
		return next_any(v);
	memcpy(&x, v->at, sizeof(x));
	uint32_t ends = ~x & 0x80808080u;
	if (ends == 0)
		return next_any(v);
	v->at += ((unsigned)__builtin_ctz(ends) >> 3) + 1;
	x &= ends ^ (ends - 1);
	return (x & 0x7F) | (x >> 1 & 0x3F80) | (x >> 2 & 0x1FC000) | (x >> 3 & 0xFE00000);
}

/* How the sum of a run is found. */
enum run_sums {
	RUN_SAME,  /* all values are the base */
	RUN_BYTES, /* of sums of bytes so far, 32 bits */
	RUN_WIDE,  /* of sums so far, of what is read */
	RUN_KEPT,  /* of sums so far, of values of rows that are kept */
};

static void bytes_so_far(const struct linear *v, size_t rows, uint32_t *out)
{
	static_assert((uint64_t)BLOCK_ROWS_READ_MAX * 255 <= UINT32_MAX, "sums of bytes");
	const uint8_t *p = v->planes[0];
	uint32_t sum = 0;
	for (size_t i = 0; i < rows; i++)
		out[i] = sum += p[i];
}

static void wide_so_far(const struct linear *v, size_t rows, uint64_t *out)
{
	uint64_t sum = 0;
	if (v->wide)
		for (size_t i = 0; i < rows; i++)
			out[i] = sum += (uint64_t)v->wide[i];
	else
		for (size_t i = 0; i < rows; i++)
			out[i] = sum += raw_at(v, i);
}

static void kept_so_far(const struct linear *v, const uint8_t *keep, size_t rows, uint64_t *out)
{
	uint64_t sum = 0;
	if (!v->wide && v->width == 0)
		for (size_t i = 0; i < rows; i++)
			out[i] = sum += v->base & mask_at(keep, i);
	else if (!v->wide && v->width == 1)
		for (size_t i = 0; i < rows; i++)
			out[i] = sum += (v->base + v->unit * v->planes[0][i]) & mask_at(keep, i);
	else
		for (size_t i = 0; i < rows; i++)
			out[i] = sum += kept_at(v, keep, i);
}

/* `so_far`: of uint32_t for RUN_BYTES, else of uint64_t. */
INLINE bool each_run(
	const struct nodes *k, const struct linear *v, enum run_sums how, const void *so_far)
{
	struct varints deltas = { k->s->p[0], k->s->p[0] + k->s->len[0], false };
	struct varints lengths = { k->s->p[1], k->s->p[1] + k->s->len[1], false };
	uint64_t node = (uint64_t)k->c->base, unit = k->c->unit, before = 0;
	size_t at = 0;
	while (at < k->rows) {
		uint64_t u = next(&deltas), n = next_short(&lengths), sum;
		node += unit * ((u >> 1) ^ -(u & 1));
		if (n >= k->rows - at || node >= k->count)
			return false;
		n++;
		at += (size_t)n;
		if (how == RUN_SAME) {
			k->sums[node] += v->base * n;
			continue;
		}
		sum = how == RUN_BYTES ? ((const uint32_t *)so_far)[at - 1]
				       : ((const uint64_t *)so_far)[at - 1];
		k->sums[node] +=
			how == RUN_KEPT ? sum - before : v->base * n + v->unit * (sum - before);
		before = sum;
	}
	return !deltas.bad && !lengths.bad && deltas.at == deltas.end && lengths.at == lengths.end;
}

static enum status add_runs(
	const struct nodes *k, const struct linear *v, struct part_rows *scratch, struct err *e)
{
	uint64_t *so_far = (uint64_t *)scratch->time_ns;
	bool good;
	if (k->keep) {
		kept_so_far(v, k->keep, k->rows, so_far);
		good = each_run(k, v, RUN_KEPT, so_far);
	} else if (!v->wide && v->width == 0) {
		good = each_run(k, v, RUN_SAME, NULL);
	} else if (!v->wide && v->width == 1) {
		bytes_so_far(v, k->rows, scratch->node);
		good = each_run(k, v, RUN_BYTES, scratch->node);
	} else {
		wide_so_far(v, k->rows, so_far);
		good = each_run(k, v, RUN_WIDE, so_far);
	}
	return good ? OK : err_set(e, E_CORRUPT, "column %u: runs", k->c->id);
}

INLINE void by_code(
	const struct nodes *k, const struct linear *v, const uint8_t *keep, uint64_t *sums)
{
	const uint8_t *lo = k->s->p[1], *hi = k->c->width == 2 ? k->s->p[2] : NULL;
	bool bytes = !v->wide && v->width == 1, same = !v->wide && v->width == 0;
	for (size_t i = 0; i < k->rows; i++) {
		size_t code = lo[i] | (hi ? (size_t)hi[i] << 8 : 0);
		sums[code] += bytes  ? (v->base + v->unit * v->planes[0][i]) & mask_at(keep, i)
			      : same ? v->base & mask_at(keep, i)
				     : kept_at(v, keep, i);
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
	const struct nodes *k, const struct linear *v, struct part_rows *scratch, struct err *e)
{
	if (!scratch->by_code)
		scratch->by_code = malloc(COLUMN_DICT_MAX * sizeof(*scratch->by_code));
	if (!scratch->by_code)
		return err_set(e, E_NOMEM, "column %u", k->c->id);
	uint64_t *sums = scratch->by_code;
	memset(sums, 0, COLUMN_DICT_MAX * sizeof(*sums));
	k->keep ? by_code(k, v, k->keep, sums) : by_code(k, v, NULL, sums);
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
	const struct nodes *k, const struct linear *v, struct part_rows *scratch, struct err *e)
{
	if (k->c->encoding == COLUMN_RUNS)
		return add_runs(k, v, scratch, e);
	if (k->c->encoding == COLUMN_DICT)
		return add_dict(k, v, scratch, e);
	enum status s = column_decode_u32(k->c, k->s, k->rows, k->count, scratch->node, e);
	for (size_t i = 0; s == OK && i < k->rows; i++)
		if (!k->keep || k->keep[i])
			k->sums[scratch->node[i]] += kept_at(v, NULL, i);
	return s;
}

/* ---- values ---- */

/* Column `id` as it lies, or decoded into `wide`. */
static enum status read_linear(struct part *p, const struct part_block *b, enum part_column id,
	struct part_rows *scratch, int64_t *wide, struct column_streams *streams,
	struct linear *out, struct err *e)
{
	const struct column *c = &b->columns[id];
	enum status s = part_read_streams(p, b, id, &scratch->stored[id], streams, e);
	if (s != OK)
		return s;
	if (c->encoding != COLUMN_CONST && c->encoding != COLUMN_PLANES) {
		*out = (struct linear){ .unit = 1, .wide = wide };
		return column_decode(c, streams, b->rows, wide, e);
	}
	*out = (struct linear){ .base = (uint64_t)c->base, .unit = c->unit };
	if (c->encoding == COLUMN_PLANES)
		out->width = c->width;
	for (unsigned j = 0; j < out->width; j++)
		out->planes[j] = streams->p[j];
	return OK;
}

static enum status sum_rows(struct part *p, const struct tabs *t, const struct part_block *b,
	const uint8_t *keep, struct part_rows *scratch, int64_t *sums, uint64_t *samples,
	struct err *e)
{
	CLEANUP(column_streams_free) struct column_streams counts = { 0 };
	CLEANUP(column_streams_free) struct column_streams values = { 0 };
	CLEANUP(column_streams_free) struct column_streams nodes = { 0 };
	const struct column *value = &b->columns[ROW_VALUE];
	struct linear count, v;
	enum status s = part_check_scale(p, b, e);
	if (s == OK)
		s = read_linear(p, b, ROW_COUNT, scratch, scratch->n, &counts, &count, e);
	if (s == OK && value->encoding == COLUMN_SCALE) {
		v = count;
		v.base *= (uint64_t)value->base;
		v.unit *= (uint64_t)value->base;
	} else if (s == OK) {
		s = read_linear(p, b, ROW_VALUE, scratch, scratch->value, &values, &v, e);
	}
	if (s == OK)
		s = part_read_streams(p, b, ROW_NODE, &scratch->stored[ROW_NODE], &nodes, e);
	if (s != OK)
		return s;
	struct nodes k = { &b->columns[ROW_NODE], &nodes, b->rows, t->node_count, keep,
		(uint64_t *)sums };
	s = add_nodes(&k, &v, scratch, e);
	*samples += linear_sum(&count, keep, b->rows);
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
	return sum_rows(p, t, b, NULL, scratch, sums, samples, e);
}

enum status part_sum_kept(struct part *p, const struct tabs *t, const struct part_block *b,
	const struct part_filter *f, struct part_rows *scratch, int64_t *sums, uint64_t *samples,
	struct part_kept *out, struct err *e)
{
	struct part_kept kept;
	enum status s = part_keep_rows(p, t, b, f, scratch, &kept, e);
	if (s == OK && kept.rows)
		s = sum_rows(p, t, b, kept.rows < b->rows ? scratch->keep : NULL, scratch, sums,
			samples, e);
	if (s == OK)
		*out = kept;
	return s;
}
