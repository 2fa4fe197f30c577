/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/column: numbers of one column, encoded (docs/formats/part.md section 2).
 *
 * Layer 3, private to store/. Bytes in, bytes out.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/reader.h"

#define COLUMN_STREAMS_MAX 9
#define COLUMN_WIDTH_MAX 8
#define COLUMN_DICT_MAX 65536
#define COLUMN_PHASES_MAX 255
#define COLUMN_ROWS_MAX (1u << 28)
#define COLUMN_COUNT_MAX 64 /* columns of one table */
#define BLOCK_ROWS_MAX 131072u
#define BLOCK_ROWS_READ_MAX (1u << 20)

enum column_encoding {
	COLUMN_CONST,
	COLUMN_PLANES,
	COLUMN_DELTA,
	COLUMN_RUNS,
	COLUMN_DICT,
	COLUMN_SCALE,
	COLUMN_BYTES,
	COLUMN_TICKS,
	COLUMN_ENCODINGS,
};

struct column {
	uint8_t id;
	uint8_t encoding;
	uint8_t width;
	uint8_t stream_count;
	int64_t base;
	uint64_t unit;
	uint64_t offset;
	uint64_t raw_len[COLUMN_STREAMS_MAX];
	uint64_t stored_len[COLUMN_STREAMS_MAX];
	uint32_t crc;
};

static inline uint64_t column_stored_len(const struct column *c)
{
	uint64_t n = 0;
	for (unsigned i = 0; i < c->stream_count; i++)
		n += c->stored_len[i];
	return n;
}

/* ---- writing ---- */

enum column_hint {
	COLUMN_PLAIN,
	COLUMN_TRY_DICT = 1, /* few distinct values in no order */
};

#define COLUMN_LEVEL 1          /* of zstd */
#define COLUMN_LEVEL_YOUNG (-3) /* of rows, not of tables */

/* Memory that encoding needs again and again. */
struct column_writer {
	int level; /* COLUMN_LEVEL from the beginning */
	struct buf raw;
	struct buf packed;
	struct buf best;
	size_t dict_rows; /* values for which codes and distinct have room */
	uint32_t *codes;
	uint64_t *distinct;
	size_t dict_slots; /* for which slots has room */
	uint32_t *slots;
};
void column_writer_init(struct column_writer *w);
void column_writer_deinit(struct column_writer *w);

/* Appends the streams of the smallest encoding to `out`. `*c` says how to read them; its offset is
 * the length of `out` before. */
NODISCARD enum status column_encode(struct column_writer *w, uint8_t id, const int64_t *v, size_t n,
	enum column_hint hint, struct buf *out, struct column *c);
/* The same for times. Many of them may lie on a grid of `period_ns` (0: there is no grid). */
NODISCARD enum status column_encode_times(struct column_writer *w, uint8_t id, const int64_t *v,
	size_t n, uint64_t period_ns, struct buf *out, struct column *c);
NODISCARD enum status column_encode_bytes(
	struct column_writer *w, uint8_t id, struct str bytes, struct buf *out, struct column *c);
/* Times as slots of a grid and how much later they are (column_ticks.c). On success `slots` and
 * `rests` have n numbers each, and `tables` is stream 0; false: these times have no such grid.
 * `scratch`: 2 × n items. */
struct radix_item;
NODISCARD bool column_ticks(const int64_t *v, size_t n, int64_t min, int64_t max, uint64_t unit,
	uint64_t period_ns, struct radix_item *scratch, uint64_t *slots, uint64_t *rests,
	struct buf *tables);
void column_write_header(struct buf *out, const struct column *c);

/* ---- reading ---- */

/* The header, and whether it can be read at all; E_CORRUPT. */
NODISCARD enum status column_parse_header(struct reader *r, struct column *out, struct err *e);

/* One column being read: its unpacked streams. */
struct column_streams {
	const uint8_t *p[COLUMN_STREAMS_MAX];
	size_t len[COLUMN_STREAMS_MAX];
	uint8_t *memory; /* free() */
};
/* `stored`: the bytes of all streams; they must outlive `out`. Checks the CRC. */
NODISCARD enum status column_unpack(const struct column *c, struct str stored, size_t rows,
	struct column_streams *out, struct err *e);
/* The same into the caller's buffer `room`, which the next call may reuse. */
NODISCARD enum status column_unpack_into(const struct column *c, struct str stored, size_t rows,
	struct buf *room, struct column_streams *out, struct err *e);
void column_streams_free(struct column_streams *s);

/* The grid of a TICKS column, row by row; false: it is damaged. */
NODISCARD bool column_ticks_decode(
	const struct column *c, const struct column_streams *s, size_t rows, int64_t *out);
/* Exactly `rows` values. Not for SCALE and BYTES. */
NODISCARD enum status column_decode(const struct column *c, const struct column_streams *s,
	size_t rows, int64_t *out, struct err *e);
/* The same, each value below `limit`. */
NODISCARD enum status column_decode_u32(const struct column *c, const struct column_streams *s,
	size_t rows, uint64_t limit, uint32_t *out, struct err *e);
/* Small values of RUNS, as bytes. *out_fit false: the encoding is another one, or a value is above
 * 255; then `out` has no meaning. `out` has room for COLUMN_BYTES_SLACK more. */
#define COLUMN_BYTES_SLACK 16
NODISCARD enum status column_decode_bytes(const struct column *c, const struct column_streams *s,
	size_t rows, uint8_t *out, bool *out_fit, struct err *e);
