/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrow: Arrow's IPC stream format, from and to bytes in memory.
 *
 * Layer 2 (may use base, codec). No I/O. Source: arrow.apache.org/docs/format/Columnar.html (1.5),
 * arrow/format/{Message,Schema}.fbs. Little endian only.
 *
 * Reading. A stream is a schema, then dictionary and record batches in any number; columns are read
 * in place where the body is not compressed, so the bytes must live as long as the stream. Each
 * batch is checked when it is read: offsets, run ends, views and dictionary indices are in range
 * from then on, and no accessor can fail or read outside. Not thread safe.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"
#include "base/reader.h"
#include "base/vec.h"

/* ---- reading ---- */

/* Fields inside fields. */
#define ARROW_DEPTH_MAX 32
/* Fields of a schema, with those inside others. */
#define ARROW_FIELDS_MAX 8192
/* Elements of one array: rows, elements of lists, entries of dictionaries. */
#define ARROW_LENGTH_MAX ((uint64_t)1 << 26)
/* Bytes of a message's metadata. */
#define ARROW_METADATA_MAX ((size_t)16 << 20)
/* Different dictionaries of one schema. */
#define ARROW_DICTIONARIES_MAX 4096
/* Dictionary and record batches of one stream. */
#define ARROW_BATCHES_MAX 65536
/* Rows of one stream: equal ones cost no bytes (run-end encoding), but time. */
#define ARROW_ROWS_MAX ((uint64_t)1 << 25)

/* How an array lies in memory; several of Arrow's types share one. */
enum arrow_type {
	ARROW_NULL,
	ARROW_BOOL,
	ARROW_INT,        /* `bits`, is_signed; also Date, Time, Timestamp, Duration */
	ARROW_FLOAT,      /* `bits` */
	ARROW_BINARY,     /* offsets and bytes: Binary, Utf8, is_large */
	ARROW_VIEW,       /* BinaryView, Utf8View */
	ARROW_FIXED,      /* `width` bytes each: FixedSizeBinary, Decimal, Interval */
	ARROW_LIST,       /* offsets into the child: List, Map, is_large */
	ARROW_LIST_VIEW,  /* offsets and sizes in any order: ListView, is_large */
	ARROW_FIXED_LIST, /* `width` elements each */
	ARROW_STRUCT,
	ARROW_RUNS,  /* RunEndEncoded: children run_ends and values */
	ARROW_UNION, /* taken, but not read: its values are null */
};

struct arrow_dictionary;

struct arrow_field {
	struct str name;
	struct str extension; /* ARROW:extension:name, "" for none */
	enum arrow_type type; /* if there is a dictionary, the type of its values */
	uint8_t bits;
	uint8_t unit; /* of times: 0 s, 1 ms, 2 us, 3 ns */
	bool is_time; /* Timestamp */
	uint32_t width;
	bool is_signed;
	bool is_large; /* offsets (and sizes) have 64 bits */
	bool is_text;  /* Utf8 of any kind */
	bool is_dense; /* Union */
	bool nullable;
	const struct arrow_field *children;
	uint32_t child_count;
	bool has_dictionary;
	bool index_signed;
	uint8_t index_bits;
	uint32_t dictionary; /* which of the stream's */
};

struct arrow_array {
	const struct arrow_field *field;
	uint64_t length;
	const uint8_t *validity;   /* a bit each; NULL: nothing is null */
	const uint8_t *data;       /* values, offsets, views, or a dictionary's indices */
	struct str more;           /* bytes of BINARY; sizes of LIST_VIEW */
	const struct str *buffers; /* bytes of VIEW */
	const struct arrow_array *children;
	uint32_t child_count;
	const struct arrow_dictionary *dictionary; /* NULL: the values themselves */
};

/* The values of a dictionary; deltas add chunks, a replacement makes a new one. */
struct arrow_dictionary {
	uint32_t serial; /* 0, 1, …: distinct within its stream, so that caches may use it as a key
			  */
	uint64_t length;
	struct arrow_chunk *chunks;
	uint32_t chunk_count;
	uint32_t chunk_cap;
};
struct arrow_chunk {
	uint64_t first; /* index of its first value */
	struct arrow_array array;
};

struct arrow_stream {
	struct reader in;
	struct arena arena;      /* fields, arrays, decompressed bytes */
	struct arrow_field root; /* a struct of the columns */
	struct str *metadata;    /* key, value, key, value, … of the schema */
	uint32_t metadata_count; /* pairs */
	struct arrow_dictionary_slot *dictionaries;
	uint32_t dictionary_count;
	uint32_t serial_count;
	uint32_t batch_count;
	uint64_t row_count;
	uint32_t field_count;
	bool is_v4;
};

/* Reads the schema. limit_bytes: limit of the memory for fields, arrays and decompressed bytes. On
 * failure the stream needs no arrow_stream_close(). E_INVALID names the field; E_UNSUPPORTED: big
 * endian, an unknown type or codec. */
NODISCARD enum status arrow_stream_open(
	struct arrow_stream *s, struct str bytes, size_t limit_bytes, struct err *e);
void arrow_stream_close(struct arrow_stream *s);
/* A key of the schema's metadata; "" when absent. */
struct str arrow_stream_metadata(const struct arrow_stream *s, struct str key);
/* The next record batch as an array of type STRUCT: its children are the columns. It lives until
 * arrow_stream_close(). *out_more is false at the end of the stream (with or without its mark). */
NODISCARD enum status arrow_stream_next(
	struct arrow_stream *s, struct arrow_array *out, bool *out_more, struct err *e);
/* Dictionaries seen so far: serials are below. */
static inline uint32_t arrow_stream_serials(const struct arrow_stream *s)
{
	return s->serial_count;
}

/* A child by name, or NULL. */
const struct arrow_array *arrow_child(const struct arrow_array *a, struct str name);
/* The field of the values that arrow_at() returns: the values of run-end encoded fields. */
const struct arrow_field *arrow_leaf(const struct arrow_field *f);

/* Where one value lies, after dictionaries and runs have been followed. */
struct arrow_value {
	const struct arrow_array *array; /* NULL: null */
	uint64_t index;
	const struct arrow_dictionary *dictionary; /* the first one on the way; NULL: none */
	uint64_t key;                              /* the index in it */
};
struct arrow_value arrow_at(const struct arrow_array *a, uint64_t index);

/* Reads a column in ascending order: it searches again only at the end of a run. */
struct arrow_cursor {
	const struct arrow_array *column;
	uint64_t run;
	uint64_t until; /* rows from the last one asked for up to this have the same value */
	struct arrow_value value;
};
static inline struct arrow_cursor arrow_cursor_over(const struct arrow_array *column)
{
	return (struct arrow_cursor){ .column = column };
}
void arrow_cursor_move(struct arrow_cursor *c, uint64_t row);
static inline const struct arrow_value *arrow_cursor_at(struct arrow_cursor *c, uint64_t row)
{
	if (row >= c->until)
		arrow_cursor_move(c, row);
	return &c->value;
}

/* The value itself, if the leaf has one of these types; the array must not be NULL. */
int64_t arrow_int(const struct arrow_value *v);      /* INT; unsigned ones as their bits */
bool arrow_bool(const struct arrow_value *v);        /* BOOL */
struct str arrow_bytes(const struct arrow_value *v); /* BINARY, VIEW, FIXED */
/* LIST, LIST_VIEW, FIXED_LIST: elements first .. first + count of the only child. */
void arrow_list(const struct arrow_value *v, uint64_t *out_first, uint64_t *out_count);
static inline bool arrow_is_bytes(const struct arrow_field *f)
{
	return f->type == ARROW_BINARY || f->type == ARROW_VIEW || f->type == ARROW_FIXED;
}
static inline bool arrow_is_list(const struct arrow_field *f)
{
	return f->type == ARROW_LIST || f->type == ARROW_LIST_VIEW || f->type == ARROW_FIXED_LIST;
}

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

/* Set the fields that the column's kind needs; the others are zero. arrow_write_column() keeps no
 * pointer. */
struct arrow_write_column {
	struct str name;
	enum arrow_write_kind kind;
	bool nullable;
	/* Bits of integers, of a dictionary's indices, of a list's elements: 8, 16, 32 or 64. 0:
	 * the fewest that hold all values, with the largest number of that many bits to spare, as
	 * Parca chooses. */
	uint8_t bits;
	bool is_signed;
	const uint8_t *valid; /* a byte a row, 0: null; NULL: no nulls */
	const int64_t *ints; /* INT: a row each (unsigned ones by their bits). LIST: the elements */
	/* In place of ints: the same in 32 bits each; if they are signed, only with `bits` of at
	 * most 32. */
	const uint32_t *words;
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
	uint32_t first_dictionary;
	uint32_t dictionary_count; /* the number of the next */
	enum status status;        /* the first failure */
};

/* A stream of at most `max_bytes`. Columns come one by one, and arrow_write_end() appends the
 * stream to `out` and frees the writer, also after a failure, which it reports: E_LIMIT or E_NOMEM.
 * There is no end-of-stream mark, as Parca writes none; `with_end` adds it. */
void arrow_write_begin(
	struct arrow_writer *w, size_t rows, enum arrow_write_codec codec, size_t max_bytes);
/* Later columns of such a stream, for arrow_write_append(). first_dictionary: how many columns with
 * a dictionary come before them. */
void arrow_write_begin_part(struct arrow_writer *w, size_t rows, uint32_t first_dictionary,
	enum arrow_write_codec codec, size_t max_bytes);
/* A hint before the first column: about so many bytes of columns will come. */
void arrow_write_expect(struct arrow_writer *w, size_t bytes);
void arrow_write_metadata(struct arrow_writer *w, struct str key, struct str value);
void arrow_write_column(struct arrow_writer *w, const struct arrow_write_column *c);
/* Appends the columns of `part`, which another thread may have written, and frees it, also after a
 * failure, which arrow_write_end() reports. Rows and codec are the same; it has no metadata. */
void arrow_write_append(struct arrow_writer *w, struct arrow_writer *part);
NODISCARD enum status arrow_write_end(
	struct arrow_writer *w, bool with_end, struct buf *out, struct err *e);
