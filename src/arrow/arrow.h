/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow: Arrow's IPC stream format (arrow.apache.org/docs/format/Columnar.html, metadata V5): bytes
 * to and from columns in memory.
 *
 * Layer 2 (may use base, codec). No I/O. Not thread safe: one reader or writer is one thread's.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

/* ---- writing: a stream of one record batch ---- */

/* Columns of one batch, and rows in it. */
#define ARROW_WRITE_COLUMNS_MAX 512
#define ARROW_WRITE_ROWS_MAX ((size_t)1 << 30)

enum arrow_write_kind {
	ARROW_WRITE_BOOL,
	ARROW_WRITE_INT,
	ARROW_WRITE_BINARY,
	ARROW_WRITE_UTF8,
	ARROW_WRITE_DICT_BINARY, /* dictionary of binary */
	ARROW_WRITE_DICT_UTF8,
	ARROW_WRITE_LIST, /* of integers that are never null */
};

/* What a kind needs is set, the rest is zero. Nothing of it is kept after arrow_write_column(). */
struct arrow_write_column {
	struct str name;
	enum arrow_write_kind kind;
	bool nullable;
	/* Integers, a dictionary's indices, a list's elements: 8, 16, 32 or 64 bits. 0: the least
	 * that hold all of them with the largest number of that many bits to spare, as Parca
	 * chooses. */
	uint8_t bits;
	bool is_signed;
	const uint8_t *valid; /* a byte a row, 0: null; NULL: no nulls */
	const int64_t *ints; /* INT: a row each (unsigned ones by their bits). LIST: the elements */
	const uint8_t *bools;    /* BOOL */
	const uint32_t *indices; /* DICT: a row each, below text_count unless null */
	const struct str *texts; /* DICT: the dictionary. BINARY, UTF8: a row each */
	size_t text_count;
	const uint32_t *offsets; /* LIST: elements of row i: ints[offsets[i] .. offsets[i + 1]) */
};

enum arrow_write_codec { ARROW_WRITE_PLAIN, ARROW_WRITE_LZ4 };

struct arrow_writer {
	size_t rows;
	enum arrow_write_codec codec;
	size_t max_bytes;
	VEC(struct arrow_write_field) fields;
	VEC(struct arrow_write_node) nodes; /* of the batch */
	VEC(struct arrow_write_span) spans; /* its buffers */
	struct buf names;
	struct buf metadata;     /* texts "key\0value\0" */
	struct buf dictionaries; /* whole messages */
	struct buf body;
	struct buf scratch;
	uint32_t dictionary_count;
	enum status status; /* the first failure */
};

/* A stream of at most `max_bytes`. Columns come one by one, and arrow_write_end() appends the
 * stream to `out` and frees the writer, also after a failure, which it reports: E_LIMIT or E_NOMEM.
 * There is no end-of-stream mark, as Parca writes none; `with_end` adds it. */
void arrow_write_begin(
	struct arrow_writer *w, size_t rows, enum arrow_write_codec codec, size_t max_bytes);
void arrow_write_metadata(struct arrow_writer *w, struct str key, struct str value);
void arrow_write_column(struct arrow_writer *w, const struct arrow_write_column *c);
NODISCARD enum status arrow_write_end(
	struct arrow_writer *w, bool with_end, struct buf *out, struct err *e);
