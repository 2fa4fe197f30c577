/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loop of a flame graph: all rows of a block are added to their nodes' sums, from the
 * columns as they are unpacked, without making arrays of rows.
 *
 * Values are mostly `linear`: base + unit × the bytes of some planes. So the sum of a run of rows
 * with one node is a sum of bytes. Where nodes are codes of a dictionary, sums are made by code
 * first: a small array that stays in the cache.
 */
#include "store/part.h"

#include "base/reader.h"

#include <stdlib.h>

/* Numbers of a column that can be summed as they lie. */
struct linear {
	uint64_t base;
	uint64_t unit;
	unsigned width;
	const uint8_t *planes[COLUMN_WIDTH_MAX];
	const int64_t *wide; /* instead of all this: decoded */
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

static uint64_t linear_sum(const struct linear *l, size_t at, size_t n)
{
	uint64_t sum = 0;
	if (l->wide) {
		for (size_t i = at; i < at + n; i++)
			sum += (uint64_t)l->wide[i];
		return sum;
	}
	for (unsigned j = 0; j < l->width; j++)
		sum += byte_sum(l->planes[j] + at, n) << (8 * j);
	return l->base * n + l->unit * sum;
}

static uint64_t linear_at(const struct linear *l, size_t i)
{
	if (l->wide)
		return (uint64_t)l->wide[i];
	uint64_t u = 0;
	for (unsigned j = 0; j < l->width; j++)
		u |= (uint64_t)l->planes[j][i] << (8 * j);
	return l->base + l->unit * u;
}

/* ---- nodes ---- */

struct nodes {
	const struct column *c;
	const struct column_streams *s;
	size_t rows;
	uint32_t count; /* nodes of the trie */
	uint64_t *sums;
};

/* Varints of a stream, one after the other; `bad` stays set. */
struct varints {
	const uint8_t *at, *end;
	bool bad;
};

static uint64_t next_long(struct varints *v)
{
	struct reader r = reader_over(v->at, (size_t)(v->end - v->at));
	uint64_t x = reader_varint(&r);
	v->bad |= r.failed;
	v->at += reader_offset(&r);
	return x;
}

static inline uint64_t next(struct varints *v)
{
	if (v->at < v->end && *v->at < 0x80)
		return *v->at++;
	return next_long(v);
}

/* The sum of a run is the difference of two sums from the block's beginning. */
static void sum_up(const struct linear *v, size_t rows, uint32_t *out)
{
	static_assert((uint64_t)BLOCK_ROWS_READ_MAX * 255 <= UINT32_MAX, "sums of bytes");
	const uint8_t *p = v->planes[0];
	uint32_t sum = 0;
	for (size_t i = 0; i < rows; i++)
		out[i] = sum += p[i];
}

static enum status add_runs(
	const struct nodes *k, const struct linear *v, uint32_t *scratch, struct err *e)
{
	struct varints deltas = { k->s->p[0], k->s->p[0] + k->s->len[0], false };
	struct varints lengths = { k->s->p[1], k->s->p[1] + k->s->len[1], false };
	uint64_t node = (uint64_t)k->c->base, unit = k->c->unit;
	bool bytes = !v->wide && v->width == 1, same = !v->wide && v->width == 0;
	uint32_t before = 0;
	size_t at = 0;
	if (bytes)
		sum_up(v, k->rows, scratch);
	while (at < k->rows) {
		uint64_t u = next(&deltas), n = next(&lengths);
		node += unit * ((u >> 1) ^ -(u & 1));
		if (n >= k->rows - at || node >= k->count)
			break;
		n++;
		if (bytes) {
			uint32_t sum = scratch[at + n - 1];
			k->sums[node] += v->base * n + v->unit * (sum - before);
			before = sum;
		} else if (same) {
			k->sums[node] += v->base * n;
		} else {
			k->sums[node] += linear_sum(v, at, (size_t)n);
		}
		at += (size_t)n;
	}
	if (at < k->rows || deltas.bad || lengths.bad || deltas.at < deltas.end ||
		lengths.at < lengths.end)
		return err_set(e, E_CORRUPT, "column %u: runs", k->c->id);
	return OK;
}

static void add_codes(const struct nodes *k, const struct linear *v, uint64_t *by_code)
{
	const uint8_t *lo = k->s->p[1], *hi = k->c->width == 2 ? k->s->p[2] : NULL;
	bool bytes = !v->wide && v->width == 1, same = !v->wide && v->width == 0;
	for (size_t i = 0; i < k->rows; i++) {
		size_t code = lo[i] | (hi ? (size_t)hi[i] << 8 : 0);
		by_code[code] += bytes  ? v->base + v->unit * v->planes[0][i]
				 : same ? v->base
					: linear_at(v, i);
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
	uint64_t *by_code = scratch->by_code;
	memset(by_code, 0, COLUMN_DICT_MAX * sizeof(*by_code));
	add_codes(k, v, by_code);
	struct reader r = reader_over(k->s->p[0], k->s->len[0]);
	uint64_t node = (uint64_t)k->c->base;
	size_t count = 0;
	for (; !reader_done(&r) && count < COLUMN_DICT_MAX; count++) {
		node += k->c->unit * (uint64_t)reader_zigzag(&r);
		if (r.failed || node >= k->count)
			return err_set(e, E_CORRUPT, "column %u: dictionary", k->c->id);
		k->sums[node] += by_code[count];
	}
	if (!reader_done(&r) || code_beyond(k, count))
		return err_set(e, E_CORRUPT, "column %u: dictionary", k->c->id);
	return OK;
}

static enum status add_nodes(
	const struct nodes *k, const struct linear *v, struct part_rows *scratch, struct err *e)
{
	if (k->c->encoding == COLUMN_RUNS)
		return add_runs(k, v, scratch->node, e);
	if (k->c->encoding == COLUMN_DICT)
		return add_dict(k, v, scratch, e);
	enum status s = column_decode_u32(k->c, k->s, k->rows, k->count, scratch->node, e);
	for (size_t i = 0; s == OK && i < k->rows; i++)
		k->sums[scratch->node[i]] += linear_at(v, i);
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
	*out = (struct linear){ .base = (uint64_t)c->base, .unit = c->unit };
	if (c->encoding == COLUMN_CONST)
		return OK;
	if (c->encoding == COLUMN_PLANES) {
		out->width = c->width;
		for (unsigned j = 0; j < c->width; j++)
			out->planes[j] = streams->p[j];
		return OK;
	}
	out->wide = wide;
	return column_decode(c, streams, b->rows, wide, e);
}

enum status part_sum_block(struct part *p, const struct tabs *t, const struct part_block *b,
	struct part_rows *scratch, int64_t *sums, uint64_t *samples, struct err *e)
{
	CLEANUP(column_streams_free) struct column_streams counts = { 0 };
	CLEANUP(column_streams_free) struct column_streams values = { 0 };
	CLEANUP(column_streams_free) struct column_streams nodes = { 0 };
	const struct column *value = &b->columns[ROW_VALUE];
	struct linear count, v;
	enum status s = part_rows_reserve(scratch, b->rows);
	if (s != OK)
		return err_set(e, s, "%s: a block of %u rows", part_path(p), b->rows);
	s = part_check_scale(p, b, e);
	if (s == OK)
		s = read_linear(p, b, ROW_COUNT, scratch, scratch->n, &counts, &count, e);
	if (s == OK && value->encoding == COLUMN_SCALE) {
		v = count;
		v.base *= (uint64_t)value->base;
		v.unit *= (uint64_t)value->base;
		for (size_t i = 0; v.wide && i < b->rows; i++)
			scratch->value[i] =
				(int64_t)((uint64_t)count.wide[i] * (uint64_t)value->base);
		v.wide = v.wide ? scratch->value : NULL;
	} else if (s == OK) {
		s = read_linear(p, b, ROW_VALUE, scratch, scratch->value, &values, &v, e);
	}
	if (s == OK)
		s = part_read_streams(p, b, ROW_NODE, &scratch->stored[ROW_NODE], &nodes, e);
	if (s != OK)
		return s;
	struct nodes k = { &b->columns[ROW_NODE], &nodes, b->rows, t->node_count,
		(uint64_t *)sums };
	s = add_nodes(&k, &v, scratch, e);
	*samples += linear_sum(&count, 0, b->rows);
	return s == OK ? OK
		       : err_prefix(e, s, "%s: block at +%llu", part_path(p),
				 (unsigned long long)b->columns[ROW_NODE].offset);
}
