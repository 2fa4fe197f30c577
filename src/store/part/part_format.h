/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_format: what lies in a part (docs/formats/part.md): sections, META, slices of
 * time.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "base/clock.h"
#include "base/hash.h"
#include "base/vec.h"
#include "store/part/column.h"

#define PART_SECTIONS_MAX 64
#define PART_RANGES_MAX 65536
#define PART_REPLACES_MAX 65536
#define PART_IMPORTS_MAX 65536
/* Rows of an hour lie together. */
#define PART_SLICE_NS (3600 * NS_PER_SEC)

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
	PART_SERIES_SET_COUNTS = 19,
	PART_SERIES_SETS,
	PART_LOCATION_COUNTS,
	PART_LOCATION_SERIES,
	PART_TOTALS,
	PART_KINDS,
	PART_KIND_NAMES,
	PART_KIND_VALUES,
	PART_PROFILES,
	PART_SAMPLES = 32,
};
#define PART_FLAG_MUST_KNOW 1u
#define PART_FLAG_PIECEWISE 2u

/* The unpacked texts of a section take at most this many times the bytes that are stored of them.
 */
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

struct part_meta {
	uint64_t id;
	struct hash128 store_id;
	uint32_t level;
	enum part_order order;
	int64_t resolution_ns;
	uint64_t rows;
	uint64_t samples;
	int64_t first_ns;
	int64_t last_ns;
	int64_t written_ns;
	VEC(struct sequence_range) covers;
	VEC(uint64_t) replaces;
	VEC(struct hash128) imports;
};
void part_meta_deinit(struct part_meta *m);
/* Adds the imports of a source to those of the part that replaces it. E_LIMIT: more than a part may
 * have. */
NODISCARD enum status part_meta_inherit(struct part_meta *to, const struct part_meta *from);

/* The greatest multiple of `unit` that is not above `t`. */
static inline int64_t part_round_down(int64_t t, int64_t unit)
{
	int64_t r = t % unit, down;
	if (__builtin_sub_overflow(t, r < 0 ? r + unit : r, &down))
		return t;
	return down;
}

struct part_slice {
	int64_t first_ns;
	int64_t last_ns; /* inclusive */
};
static inline struct part_slice part_slice_of(int64_t t)
{
	struct part_slice s = { .first_ns = part_round_down(t, PART_SLICE_NS) };
	if (__builtin_add_overflow(s.first_ns, PART_SLICE_NS - 1, &s.last_ns))
		s.last_ns = INT64_MAX;
	return s;
}
/* Rounds a time down to META's resolution, but not below the beginning of its slice. */
static inline int64_t part_round_time(int64_t t, int64_t resolution_ns, struct part_slice s)
{
	return MAX(part_round_down(t, resolution_ns), s.first_ns);
}

/* The time of the rows of a delta type that came with time `t`. */
static inline int64_t part_row_time(const struct part_meta *m, int64_t t)
{
	return m->resolution_ns > 0 ? part_round_time(t, m->resolution_ns, part_slice_of(t)) : t;
}

enum part_group {
	PART_LOAD_TEXTS = 1,  /* names, label_strings */
	PART_LOAD_SETS = 2,   /* sample_strings, sets */
	PART_LOAD_STACKS = 4, /* parent, node_location */
	PART_LOAD_SYMBOLS = 8,
	PART_LOAD_BLOCKS = 16,
	PART_LOAD_SERIES = 32, /* series, labels: with texts only */
	PART_LOAD_LABELS = PART_LOAD_TEXTS | PART_LOAD_SERIES,
	PART_LOAD_INDEX = 64,
	PART_LOAD_KINDS = 128,                   /* with texts only */
	PART_LOAD_PROFILES = 256,                /* with series only */
	PART_LOAD_ALL = 63 | PART_LOAD_PROFILES, /* what rows refer to, and what they took */
};
#define PART_GROUPS 9
/* Groups that every page needs and that take little memory. */
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
