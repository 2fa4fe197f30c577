/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part: an immutable file of samples (docs/formats/part.md): written once, read by any
 * thread.
 *
 * Layer 3, private to store/. A part has counted references; what was loaded of it stays as long
 * as somebody has it pinned, and is dropped by part_trim().
 */
#pragma once

#include "base/clock.h"
#include "base/hash.h"
#include "store/disk/io.h"
#include "store/disk/object.h"
#include "store/memory/canon.h"
#include "store/memory/dictionary.h"
#include "store/memory/memtable.h"
#include "store/part/column.h"

#include <stdatomic.h>

#define PART_SECTIONS_MAX 64
#define PART_RANGES_MAX 65536
#define PART_REPLACES_MAX 65536
#define PART_IMPORTS_MAX 65536
#define PART_ORIGINS_MAX 65536
/* What parts are written with: rows of an hour lie together. */
#define PART_SLICE_NS (3600 * NS_PER_SEC)
/* How often a part with other slices is gone through, once for each of ours. */
#define PART_PASSES_MAX 20000

enum part_section {
	PART_META = 1,
	PART_LABEL_STRINGS,
	PART_SERIES,
	PART_SERIES_LABELS,
	PART_SAMPLE_NAMES,
	PART_SAMPLE_STRINGS,
	PART_SAMPLE_SETS,
	PART_SYMBOL_STRINGS,
	PART_FUNCTIONS,
	PART_MAPPINGS,
	PART_LOCATIONS,
	PART_LINES,
	PART_TRIE,
	PART_BLOCKS,
	PART_BATCHES,
	PART_FUNCTION_COUNTS,
	PART_FUNCTION_SERIES,
	PART_NEEDS,
	PART_SERIES_SET_COUNTS,
	PART_SERIES_SETS,
	PART_LOCATION_COUNTS,
	PART_LOCATION_SERIES,
	PART_TOTALS,
	PART_KINDS,
	PART_KIND_NAMES,
	PART_KIND_VALUES,
	PART_SAMPLES = 32,
};
#define PART_FLAG_MUST_KNOW 1u
#define PART_FLAG_PIECEWISE 2u

/* What a reader must know (NEEDS). */
enum part_need {
	PART_NEED_TICKS = 1,
	PART_NEED_SLICES,
	PART_NEED_SHARED,
	PART_NEED_MAX = PART_NEED_SHARED
};
/* Texts of a section are together at most so many times as long as what is there of them. */
#define PART_SHARED_GAIN_MAX 64

enum part_column {
	ROW_SERIES = 1,
	ROW_TIME,
	ROW_NODE,
	ROW_VALUE,
	ROW_SET,
	ROW_COUNT,
	ROW_COLUMNS, /* one more than the last */
};

/* Within a slice of time. */
enum part_order { PART_ORDER_TIME = 1, PART_ORDER_STACK = 2 };

struct sequence_range {
	uint64_t first;
	uint64_t last;
};

/* Imported rows: of which store, and between which times (inclusive). */
struct part_origin {
	struct hash128 store_id;
	int64_t first_ns;
	int64_t last_ns;
};

struct part_meta {
	uint64_t id;
	struct hash128 store_id;
	uint32_t level;
	enum part_order order;
	int64_t slice_ns; /* 0: all time is one */
	int64_t resolution_ns;
	int64_t step_ns; /* of an export: the coarsest that times of rows were rounded to */
	uint64_t rows;
	uint64_t samples;
	int64_t first_ns;
	int64_t last_ns;
	int64_t written_ns;
	VEC(struct sequence_range) covers;
	VEC(uint64_t) replaces;
	VEC(struct hash128) imports;
	VEC(struct part_origin) origins;
};
void part_meta_deinit(struct part_meta *m);
/* E_LIMIT, of both: more than a part may have. */
NODISCARD enum status part_meta_add_origin(struct part_meta *m, struct part_origin o);
/* Imports and origins of a source, to those of the part that takes its place. */
NODISCARD enum status part_meta_inherit(struct part_meta *to, const struct part_meta *from);

/* The greatest multiple of `unit` that is not above `t`. */
static inline int64_t part_round_down(int64_t t, int64_t unit)
{
	int64_t r = t % unit, down;
	if (__builtin_sub_overflow(t, r < 0 ? r + unit : r, &down))
		return t;
	return down;
}

/* A slice: times from `first_ns`, whatever the length of slices, to `last_ns`. */
struct part_slice {
	int64_t first_ns;
	int64_t last_ns; /* inclusive */
};
static inline struct part_slice part_slice_of(int64_t t, int64_t slice_ns)
{
	struct part_slice s = { INT64_MIN, INT64_MAX };
	if (slice_ns > 0) {
		s.first_ns = part_round_down(t, slice_ns);
		if (__builtin_add_overflow(s.first_ns, slice_ns - 1, &s.last_ns))
			s.last_ns = INT64_MAX;
	}
	return s;
}
/* As META says times are rounded: a time stays in its slice. */
static inline int64_t part_round_time(int64_t t, int64_t resolution_ns, struct part_slice s)
{
	return MAX(part_round_down(t, resolution_ns), s.first_ns);
}

/* ---- writing ---- */

struct part_writer;
/* A file of the same id in `dir` is an error of ours. */
NODISCARD enum status part_writer_open(const char *dir, uint64_t id, const struct tabs *t,
	const struct canon *c, struct part_writer **out, struct err *e);
/* Memory for each node of the part, of what comes next. */
#define PART_TOTAL_NODE_BYTES (2 * sizeof(int64_t))
/* Before the first row, of parts that last: the part shall have TOTALS, by slices. */
NODISCARD enum status part_writer_total(
	struct part_writer *w, uint32_t node_count, int64_t slice_ns, struct err *e);
/* Before the first row, of parts that stay for long: they are packed harder; and of those that are
 * merged soon, and written anew: what takes least time. */
void part_writer_keep(struct part_writer *w);
void part_writer_young(struct part_writer *w);
/* In the order of the part; numbers are canonical. */
NODISCARD enum status part_writer_row(struct part_writer *w, const struct row *row, struct err *e);
/* Several of one series and slice. */
NODISCARD enum status part_writer_rows(
	struct part_writer *w, const struct row *rows, size_t n, struct err *e);
/* Of the file so far. */
uint64_t part_writer_bytes(const struct part_writer *w);
/* Durable under its name when OK. Rows, samples and times of `meta` are set here. */
NODISCARD enum status part_writer_finish(struct part_writer *w, const struct tabs *t,
	const struct canon *c, struct part_meta *meta, const struct batch_seen *batches,
	size_t batch_count, struct err *e);
/* Also after success; a file that was not finished is removed. */
void part_writer_close(struct part_writer *w);

/* ---- reading ---- */

enum part_group {
	PART_LOAD_TEXTS = 1,  /* names, label_strings */
	PART_LOAD_SETS = 2,   /* sample_strings, sets */
	PART_LOAD_STACKS = 4, /* parent, node_location */
	PART_LOAD_SYMBOLS = 8,
	PART_LOAD_BLOCKS = 16,
	PART_LOAD_SERIES = 32, /* series, labels: with texts only */
	PART_LOAD_LABELS = PART_LOAD_TEXTS | PART_LOAD_SERIES,
	PART_LOAD_ALL = 63, /* what rows refer to */
	PART_LOAD_INDEX = 64,
	PART_LOAD_KINDS = 128, /* with texts only */
};
#define PART_GROUPS 8
/* What every page asks for, and takes little room. */
#define PART_KEEP (PART_LOAD_LABELS | PART_LOAD_KINDS)

struct part_block {
	uint32_t rows;
	uint32_t series_min, series_max;
	uint32_t node_min, node_max;
	int64_t time_min, time_max;
	struct column columns[ROW_COLUMNS]; /* by id; absent: CONST of the default */
};

/* What blocks[first .. + count) sum up to: the rows of `sums` are nodes and values. */
struct part_total {
	size_t first;
	size_t count;
	uint64_t samples;
	struct part_block sums;
};

struct part_section_entry {
	uint16_t kind;
	uint16_t flags;
	uint32_t crc;
	uint64_t offset;
	uint64_t length;
};

struct part;
/* Checks header, trailer, table of contents and META. E_CORRUPT, E_UNSUPPORTED (newer version). */
NODISCARD enum status part_open(const char *path, struct part **out, struct err *e);
/* The same wherever it lies; `o` is the part's from here on, also after a failure. */
NODISCARD enum status part_open_object(struct object *o, struct part **out, struct err *e);
struct part *part_ref(struct part *p);
void part_unref(struct part *p);

const struct part_meta *part_meta(const struct part *p);
const char *part_path(const struct part *p);
uint64_t part_file_bytes(const struct part *p);
const struct part_section_entry *part_sections(const struct part *p, size_t *count);

/* Loads what is missing of `groups` (a mask), and pins these until part_unpin(). `limit_bytes`:
 * of what these groups take in memory; beyond it E_LIMIT. */
NODISCARD enum status part_pin(
	struct part *p, unsigned groups, uint64_t limit_bytes, struct tabs *out, struct err *e);
void part_unpin(struct part *p, unsigned groups);
/* Bytes that the loaded ones of these groups take. */
uint64_t part_group_bytes(struct part *p, unsigned groups);
/* Forgets what was loaded of `groups`, unless pinned or used after `before_ns` (monotonic); returns
 * the bytes that are still loaded of all. Never waits: a part that somebody loads just now is left
 * alone, and 0. */
uint64_t part_trim(struct part *p, unsigned groups, int64_t before_ns);

/* Unpins groups that the caller has pinned, and forgets them at once unless somebody else has. */
uint64_t part_forget(struct part *p, unsigned groups);

/* Numbers of the label strings in `d`, kept with them: with PART_LOAD_TEXTS pinned. E_LIMIT: the
 * dictionary is full. */
NODISCARD enum status part_label_ids(struct part *p, struct dictionary *d, struct label_ids **out);
/* The same where they are there already; else NULL. */
struct label_ids *part_known_ids(struct part *p, const struct dictionary *d);

/* With PART_LOAD_BLOCKS pinned. */
const struct part_block *part_blocks(const struct part *p, size_t *count);
/* Those with more blocks first. Several may have a block in common. */
const struct part_total *part_totals(const struct part *p, size_t *count);

/* Rows of one block, unpacked; memory is used again by the next read. */
struct part_rows {
	size_t count;
	size_t cap;
	uint32_t *series, *node, *set;
	int64_t *time_ns, *value, *n;
	uint8_t *keep;  /* block_keep.h */
	uint8_t *bytes; /* and COLUMN_BYTES_SLACK more */
	struct buf stored[ROW_COLUMNS];
	struct buf room[ROW_COLUMNS]; /* what these unpack to */
	uint64_t *by_code;            /* sums by code of a dictionary */
};
void part_rows_init(struct part_rows *r);
void part_rows_deinit(struct part_rows *r);
NODISCARD enum status part_rows_reserve(struct part_rows *r, size_t n);
/* `columns`: mask of 1u << ROW_…; indices are checked against `t`. */
NODISCARD enum status part_read_block(struct part *p, const struct tabs *t,
	const struct part_block *b, unsigned columns, struct part_rows *out, struct err *e);
/* One column of a block as it lies there: unpacked streams, not decoded, which point into `stored`
 * and `room`. */
NODISCARD enum status part_read_streams(struct part *p, const struct part_block *b,
	enum part_column id, struct buf *stored, struct buf *room, struct column_streams *out,
	struct err *e);

/* Values scaled from counts are scaled from a column that can be read. */
NODISCARD enum status part_check_scale(
	const struct part *p, const struct part_block *b, struct err *e);
/* Each row's value is added to sums[node], the number of samples to *samples. After a failure the
 * sums are spoilt. */
NODISCARD enum status part_sum_block(struct part *p, const struct tabs *t,
	const struct part_block *b, struct part_rows *scratch, int64_t *sums, uint64_t *samples,
	struct err *e);

/* Batches whose samples the part holds: malloc'ed. */
NODISCARD enum status part_read_batches(
	struct part *p, struct batch_seen **out, size_t *out_count, struct err *e);
/* Every byte is read and checked. The second: with at most so much memory for its tables, and
 * without BATCHES, which an import does not use; E_LIMIT. */
NODISCARD enum status part_verify(struct part *p, struct err *e);
NODISCARD enum status part_verify_import(struct part *p, uint64_t limit_bytes, struct err *e);
