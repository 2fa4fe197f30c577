/* SPDX-License-Identifier: Apache-2.0 */
#include "store/column.h"

#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

/* What one stream may unpack to, for its rows: a varint takes at most ten bytes. */
static uint64_t raw_max(const struct column *c, uint64_t rows)
{
	if (c->encoding == COLUMN_BYTES)
		return (uint64_t)1 << 31;
	return rows * 10;
}

enum status column_parse_header(struct reader *r, struct column *out, struct err *e)
{
	struct column c = { .id = reader_u8(r) };
	size_t at = reader_offset(r);
	c.encoding = reader_u8(r);
	c.width = reader_u8(r);
	c.stream_count = reader_u8(r);
	if (r->failed || c.stream_count > COLUMN_STREAMS_MAX || c.width > COLUMN_WIDTH_MAX)
		return err_set(e, E_CORRUPT, "column header at +%zu: %u streams of width %u", at,
			c.stream_count, c.width);
	c.base = reader_zigzag(r);
	c.unit = reader_varint(r);
	c.offset = reader_varint(r);
	uint64_t sum = 0;
	for (unsigned i = 0; i < c.stream_count; i++) {
		c.raw_len[i] = reader_varint(r);
		c.stored_len[i] = reader_varint(r);
		if (c.stored_len[i] > c.raw_len[i] ||
			__builtin_add_overflow(sum, c.raw_len[i], &sum))
			r->failed = true;
	}
	c.crc = reader_u32(r);
	if (r->failed || c.offset > INT64_MAX || sum > INT64_MAX)
		return err_set(e, E_CORRUPT, "column header at +%zu is malformed", at);
	*out = c;
	return OK;
}

static unsigned streams_expected(const struct column *c)
{
	switch (c->encoding) {
	case COLUMN_PLANES:
	case COLUMN_DELTA:
		return c->width;
	case COLUMN_RUNS:
		return 2;
	case COLUMN_DICT:
		return c->width == 1 || c->width == 2 ? 1u + c->width : UINT32_MAX;
	case COLUMN_BYTES:
		return 1;
	default:
		return 0;
	}
}

static enum status check_streams(const struct column *c, size_t rows, struct err *e)
{
	if (c->encoding >= COLUMN_ENCODINGS)
		return err_set(e, E_UNSUPPORTED, "column %u: encoding %u", c->id, c->encoding);
	if (c->stream_count != streams_expected(c))
		return err_set(e, E_CORRUPT, "column %u: %u streams", c->id, c->stream_count);
	unsigned planes_from = c->encoding == COLUMN_DICT ? 1 : 0;
	bool has_planes = c->encoding == COLUMN_PLANES || c->encoding == COLUMN_DELTA ||
			  c->encoding == COLUMN_DICT;
	for (unsigned i = 0; i < c->stream_count; i++) {
		bool plane = has_planes && i >= planes_from;
		if (plane ? c->raw_len[i] != rows : c->raw_len[i] > raw_max(c, rows))
			return err_set(e, E_CORRUPT, "column %u: stream %u of %llu bytes", c->id, i,
				(unsigned long long)c->raw_len[i]);
	}
	return OK;
}

enum status column_unpack(const struct column *c, struct str stored, size_t rows,
	struct column_streams *out, struct err *e)
{
	enum status s = check_streams(c, rows, e);
	if (s != OK)
		return s;
	if (stored.len != column_stored_len(c) || codec_crc32c(0, stored.p, stored.len) != c->crc)
		return err_set(e, E_CORRUPT, "column %u at +%llu: checksum", c->id,
			(unsigned long long)c->offset);
	struct column_streams u = { 0 };
	size_t need = 0;
	for (unsigned i = 0; i < c->stream_count; i++)
		need += c->stored_len[i] == c->raw_len[i] ? 0 : (size_t)c->raw_len[i];
	u.memory = need ? malloc(need) : NULL;
	if (need && !u.memory)
		return err_set(e, E_NOMEM, "column %u: %zu bytes", c->id, need);
	uint8_t *to = u.memory;
	const uint8_t *from = (const uint8_t *)stored.p;
	for (unsigned i = 0; i < c->stream_count && s == OK; i++) {
		size_t raw = (size_t)c->raw_len[i], packed = (size_t)c->stored_len[i];
		u.len[i] = raw;
		u.p[i] = packed == raw ? from : to;
		if (packed != raw) {
			s = codec_zstd_decompress_exact(from, packed, to, raw, e);
			to += raw;
		}
		from += packed;
	}
	if (s != OK) {
		free(u.memory);
		return s == E_NOMEM ? s : err_prefix(e, E_CORRUPT, "column %u", c->id);
	}
	*out = u;
	return OK;
}

void column_streams_free(struct column_streams *s)
{
	free(s->memory);
	s->memory = NULL;
}

static int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static void read_planes(const uint8_t *const *p, unsigned width, size_t rows, uint64_t *u)
{
	if (width == 0) {
		memset(u, 0, rows * sizeof(*u));
		return;
	}
	for (size_t i = 0; i < rows; i++)
		u[i] = p[0][i];
	for (unsigned k = 1; k < width; k++)
		for (size_t i = 0; i < rows; i++)
			u[i] |= (uint64_t)p[k][i] << (8 * k);
}

static bool decode_runs(
	const struct column *c, const struct column_streams *s, size_t rows, uint64_t *out)
{
	struct reader deltas = reader_over(s->p[0], s->len[0]);
	struct reader lengths = reader_over(s->p[1], s->len[1]);
	uint64_t a = 0;
	size_t at = 0;
	while (!reader_done(&deltas)) {
		a += (uint64_t)reader_zigzag(&deltas);
		uint64_t n = reader_varint(&lengths);
		if (deltas.failed || lengths.failed || n >= rows - at)
			return false;
		uint64_t value = (uint64_t)c->base + c->unit * a;
		for (uint64_t i = 0; i <= n; i++)
			out[at++] = value;
		if (at == rows)
			break;
	}
	return at == rows && reader_done(&deltas) && reader_done(&lengths) && !deltas.failed &&
	       !lengths.failed;
}

static enum status decode_dict(const struct column *c, const struct column_streams *s, size_t rows,
	uint64_t *out, struct err *e)
{
	CLEANUP(free_cleanup) uint64_t *dict = malloc(COLUMN_DICT_MAX * sizeof(*dict));
	if (!dict)
		return err_set(e, E_NOMEM, "column %u", c->id);
	struct reader r = reader_over(s->p[0], s->len[0]);
	size_t count = 0;
	uint64_t a = 0;
	while (!reader_done(&r) && count < COLUMN_DICT_MAX) {
		a += (uint64_t)reader_zigzag(&r);
		dict[count++] = (uint64_t)c->base + c->unit * a;
	}
	if (r.failed || !reader_done(&r))
		return err_set(e, E_CORRUPT, "column %u: dictionary", c->id);
	read_planes(s->p + 1, c->width, rows, out);
	for (size_t i = 0; i < rows; i++) {
		if (out[i] >= count)
			return err_set(e, E_CORRUPT, "column %u: code %llu of %zu", c->id,
				(unsigned long long)out[i], count);
		out[i] = dict[out[i]];
	}
	return OK;
}

enum status column_decode(const struct column *c, const struct column_streams *s, size_t rows,
	int64_t *out, struct err *e)
{
	uint64_t *u = (uint64_t *)out, base = (uint64_t)c->base, a = 0;
	switch (c->encoding) {
	case COLUMN_CONST:
		for (size_t i = 0; i < rows; i++)
			u[i] = base;
		return OK;
	case COLUMN_PLANES:
		read_planes(s->p, c->width, rows, u);
		for (size_t i = 0; i < rows; i++)
			u[i] = base + c->unit * u[i];
		return OK;
	case COLUMN_DELTA:
		read_planes(s->p, c->width, rows, u);
		for (size_t i = 0; i < rows; i++) {
			a += (uint64_t)unzigzag(u[i]);
			u[i] = base + c->unit * a;
		}
		return OK;
	case COLUMN_RUNS:
		if (!decode_runs(c, s, rows, u))
			return err_set(e, E_CORRUPT, "column %u: runs", c->id);
		return OK;
	case COLUMN_DICT:
		return decode_dict(c, s, rows, u, e);
	default:
		return err_set(e, E_UNSUPPORTED, "column %u: encoding %u here", c->id, c->encoding);
	}
}

enum status column_decode_u32(const struct column *c, const struct column_streams *s, size_t rows,
	uint64_t limit, uint32_t *out, struct err *e)
{
	CLEANUP(free_cleanup) int64_t *wide = malloc(MAX(rows, (size_t)1) * sizeof(*wide));
	if (!wide)
		return err_set(e, E_NOMEM, "column %u: %zu rows", c->id, rows);
	enum status st = column_decode(c, s, rows, wide, e);
	if (st != OK)
		return st;
	uint64_t over = 0;
	for (size_t i = 0; i < rows; i++) {
		over |= (uint64_t)wide[i] >= limit;
		out[i] = (uint32_t)wide[i];
	}
	if (over)
		return err_set(e, E_CORRUPT, "column %u: a value that is not below %llu", c->id,
			(unsigned long long)limit);
	return OK;
}
