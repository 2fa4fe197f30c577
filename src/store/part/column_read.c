/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header says how long each stream is. The stored bytes are checked by their checksum, the
 * streams are unpacked, and then each encoding has a loop of its own over the rows.
 */
#include "store/part/column.h"

#include "codec/codec.h"
#include "store/part/varints.h"

#include <stdlib.h>
#include <string.h>

/* The most bytes that one stream may unpack to, for its rows: a varint takes at most ten. */
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
	case COLUMN_TICKS: /* and as many planes of rests as there are */
		return c->width && c->stream_count > c->width ? c->stream_count : UINT32_MAX;
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
	bool first_is_table = c->encoding == COLUMN_DICT || c->encoding == COLUMN_TICKS;
	unsigned planes_from = first_is_table ? 1 : 0;
	bool has_planes =
		c->encoding == COLUMN_PLANES || c->encoding == COLUMN_DELTA || first_is_table;
	for (unsigned i = 0; i < c->stream_count; i++) {
		bool plane = has_planes && i >= planes_from;
		if (plane ? c->raw_len[i] != rows : c->raw_len[i] > raw_max(c, rows))
			return err_set(e, E_CORRUPT, "column %u: stream %u of %llu bytes", c->id, i,
				(unsigned long long)c->raw_len[i]);
	}
	return OK;
}

enum status column_unpack_into(const struct column *c, struct str stored, size_t rows,
	struct buf *room, struct column_streams *out, struct err *e)
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
	uint8_t *to = NULL;
	if (room)
		buf_clear(room);
	if (need && room)
		to = buf_extend(room, need);
	else if (need)
		to = u.memory = malloc(need);
	if (need && !to)
		return err_set(e, E_NOMEM, "column %u: %zu bytes", c->id, need);
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

enum status column_unpack(const struct column *c, struct str stored, size_t rows,
	struct column_streams *out, struct err *e)
{
	return column_unpack_into(c, stored, rows, NULL, out, e);
}

void column_streams_free(struct column_streams *s)
{
	free(s->memory);
	s->memory = NULL;
}

/*
 * Decoding proper. One body serves both widths of the result: it is inlined with `narrow` constant,
 * so that the common encodings become plain loops over bytes.
 */
#define INLINE static inline __attribute__((always_inline))

struct sink {
	void *out; /* uint32_t when narrow, else uint64_t */
	bool narrow;
	uint64_t limit; /* narrow values must be below it */
	uint64_t over;  /* not 0: some value was not below the limit */
};

INLINE void put(struct sink *k, size_t i, uint64_t v)
{
	if (k->narrow) {
		((uint32_t *)k->out)[i] = (uint32_t)v;
		k->over |= v >= k->limit;
	} else {
		((uint64_t *)k->out)[i] = v;
	}
}

INLINE uint64_t planes_at(const uint8_t *const *p, unsigned width, size_t i)
{
	uint64_t u = p[0][i];
	for (unsigned j = 1; j < width; j++)
		u |= (uint64_t)p[j][i] << (8 * j);
	return u;
}

INLINE void decode_planes(struct sink *k, const struct column *c, const uint8_t *const *p,
	unsigned width, size_t rows)
{
	uint64_t base = (uint64_t)c->base, unit = c->unit;
	for (size_t i = 0; i < rows; i++)
		put(k, i, base + unit * planes_at(p, width, i));
}

INLINE void decode_delta(struct sink *k, const struct column *c, const uint8_t *const *p,
	unsigned width, size_t rows)
{
	uint64_t v = (uint64_t)c->base, unit = c->unit;
	for (size_t i = 0; i < rows; i++) {
		v += unit * (uint64_t)varints_unzigzag(planes_at(p, width, i));
		put(k, i, v);
	}
}

INLINE void by_width(struct sink *k, const struct column *c, const struct column_streams *s,
	size_t rows, bool delta)
{
	switch (c->width) {
	case 0:
		for (size_t i = 0; i < rows; i++)
			put(k, i, (uint64_t)c->base);
		break;
	case 1:
		delta ? decode_delta(k, c, s->p, 1, rows) : decode_planes(k, c, s->p, 1, rows);
		break;
	case 2:
		delta ? decode_delta(k, c, s->p, 2, rows) : decode_planes(k, c, s->p, 2, rows);
		break;
	case 3:
		delta ? decode_delta(k, c, s->p, 3, rows) : decode_planes(k, c, s->p, 3, rows);
		break;
	default:
		delta ? decode_delta(k, c, s->p, c->width, rows)
		      : decode_planes(k, c, s->p, c->width, rows);
		break;
	}
}

INLINE bool decode_runs(
	struct sink *k, const struct column *c, const struct column_streams *s, size_t rows)
{
	struct varints deltas = varints_over(s->p[0], s->len[0]);
	struct varints lengths = varints_over(s->p[1], s->len[1]);
	uint64_t value = (uint64_t)c->base;
	size_t at = 0;
	while (at < rows) {
		value += c->unit * (uint64_t)varints_unzigzag(varints_short(&deltas));
		uint64_t n = varints_short(&lengths);
		if (deltas.bad || lengths.bad || n >= rows - at)
			return false;
		for (size_t end = at + (size_t)n; at <= end; at++)
			put(k, at, value);
	}
	return varints_done(&deltas) && varints_done(&lengths);
}

INLINE enum status decode_dict(struct sink *k, const struct column *c,
	const struct column_streams *s, size_t rows, struct err *e)
{
	CLEANUP(free_cleanup) uint64_t *dict = malloc(COLUMN_DICT_MAX * sizeof(*dict));
	if (!dict)
		return err_set(e, E_NOMEM, "column %u", c->id);
	struct reader r = reader_over(s->p[0], s->len[0]);
	size_t count = 0;
	uint64_t value = (uint64_t)c->base;
	while (!reader_done(&r) && count < COLUMN_DICT_MAX) {
		value += c->unit * (uint64_t)reader_zigzag(&r);
		dict[count++] = value;
	}
	if (r.failed || !reader_done(&r))
		return err_set(e, E_CORRUPT, "column %u: dictionary", c->id);
	/* Those that a code can name. */
	for (size_t i = count; i < (c->width == 2 ? COLUMN_DICT_MAX : 256); i++)
		dict[i] = 0;
	bool over = false;
	for (size_t i = 0; i < rows; i++) {
		uint64_t code = s->p[1][i];
		if (c->width == 2)
			code |= (uint64_t)s->p[2][i] << 8;
		over |= code >= count;
		put(k, i, dict[code]);
	}
	return over ? err_set(e, E_CORRUPT, "column %u: a code beyond its dictionary", c->id) : OK;
}

INLINE enum status decode(struct sink *k, const struct column *c, const struct column_streams *s,
	size_t rows, struct err *e)
{
	switch (c->encoding) {
	case COLUMN_CONST:
		for (size_t i = 0; i < rows; i++)
			put(k, i, (uint64_t)c->base);
		return OK;
	case COLUMN_PLANES:
		by_width(k, c, s, rows, false);
		return OK;
	case COLUMN_DELTA:
		by_width(k, c, s, rows, true);
		return OK;
	case COLUMN_RUNS:
		if (!decode_runs(k, c, s, rows))
			return err_set(e, E_CORRUPT, "column %u: runs", c->id);
		return OK;
	case COLUMN_DICT:
		return decode_dict(k, c, s, rows, e);
	default:
		return err_set(e, E_UNSUPPORTED, "column %u: encoding %u here", c->id, c->encoding);
	}
}

enum status column_decode(const struct column *c, const struct column_streams *s, size_t rows,
	int64_t *out, struct err *e)
{
	struct sink k = { .out = out, .narrow = false };
	if (c->encoding == COLUMN_TICKS)
		return column_ticks_decode(c, s, rows, out)
			       ? OK
			       : err_set(e, E_CORRUPT, "column %u: ticks", c->id);
	return decode(&k, c, s, rows, e);
}

enum status column_decode_u32(const struct column *c, const struct column_streams *s, size_t rows,
	uint64_t limit, uint32_t *out, struct err *e)
{
	struct sink k = { .out = out, .narrow = true, .limit = limit };
	enum status st = decode(&k, c, s, rows, e);
	if (st == OK && k.over)
		return err_set(e, E_CORRUPT, "column %u: a value that is not below %llu", c->id,
			(unsigned long long)limit);
	return st;
}

/* Runs are mostly short, so at least SPLAT_BYTES bytes are written for each. */
#define SPLAT_BYTES 16
static_assert(SPLAT_BYTES <= COLUMN_BYTES_SLACK + 1, "what is written behind the last row");

enum status column_decode_bytes(const struct column *c, const struct column_streams *s, size_t rows,
	uint8_t *out, bool *out_fit, struct err *e)
{
	struct varints deltas = varints_over(s->p[0], s->len[0]);
	struct varints lengths = varints_over(s->p[1], s->len[1]);
	uint64_t value = (uint64_t)c->base, unit = c->unit;
	size_t at = 0;
	*out_fit = false;
	if (c->encoding != COLUMN_RUNS)
		return OK;
	while (at < rows) {
		value += unit * (uint64_t)varints_unzigzag(varints_short(&deltas));
		uint64_t n = varints_short(&lengths);
		if (deltas.bad || lengths.bad || n >= rows - at)
			return err_set(e, E_CORRUPT, "column %u: runs", c->id);
		if (value > UINT8_MAX)
			return OK;
		memset(out + at, (int)value, SPLAT_BYTES);
		if (n >= SPLAT_BYTES)
			memset(out + at, (int)value, (size_t)n + 1);
		at += (size_t)n + 1;
	}
	if (!varints_done(&deltas) || !varints_done(&lengths))
		return err_set(e, E_CORRUPT, "column %u: runs", c->id);
	*out_fit = true;
	return OK;
}
