/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/merge/merge_cursor: the rows and tables of one source of a merge, in the order and the
 * numbers of the merged part.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "base/radix.h"
#include "store/part/part.h"

/* Where a row belongs in a part's order: compared word by word. */
struct merge_key {
	uint64_t w[4];
};
/* `slice_first_ns`: of the row's slice. */
struct merge_key merge_key_of(const struct row *r, enum part_order order, int64_t slice_first_ns);
static inline int merge_key_compare(const struct merge_key *a, const struct merge_key *b)
{
	for (int i = 0; i < 3; i++)
		if (a->w[i] != b->w[i])
			return a->w[i] < b->w[i] ? -1 : 1;
	return a->w[3] < b->w[3] ? -1 : a->w[3] > b->w[3];
}
/* -1, 0, 1 by series, stack, time, set: of rows of one slice. */
int merge_row_compare(const struct row *a, const struct row *b);

/* A filter of rows. It takes the rows that match, or all others (`take_matching`). */
struct merge_filter {
	const uint8_t *series; /* one byte for each series of the source; NULL: none matches */
	const uint8_t *sets;   /* NULL: all match */
	int64_t from_ns;       /* both inclusive */
	int64_t last_ns;
	bool take_matching;
};
static inline bool merge_filter_takes(
	const struct merge_filter *f, uint32_t series, uint32_t set, int64_t time_ns)
{
	bool match = f->series && f->series[series] && (!f->sets || f->sets[set]) &&
		     time_ns >= f->from_ns && time_ns <= f->last_ns;
	return match == f->take_matching;
}

/* Where a cursor is in its blocks. */
struct merge_place {
	size_t next_block;
	size_t at;               /* in the block that was read last */
	struct part_slice slice; /* of the row read last */
	struct row ahead;        /* read, and of the next series or slice */
	bool has_ahead;
};

/* The rows of one source in the order of the merged part, and in its numbers. */
struct merge_cursor {
	struct part *part;          /* NULL: */
	const struct memtable *mem; /* its rows `list`, by slice and series */
	uint32_t *list;
	size_t list_count;
	const struct merge_filter *filter; /* of a part; NULL: all rows */
	struct tabs tabs;
	unsigned pinned; /* groups */
	bool sorted;     /* rows come as they lie; else series by series of a slice, sorted here */
	enum part_order order;
	int64_t resolution_ns;
	uint32_t *series;
	uint32_t *nodes;
	uint16_t *depths; /* of the nodes, until the tries are merged */
	uint32_t *sets;
	const uint8_t *delta;     /* by merged series */
	const uint8_t *keep_time; /* by merged set */
	const struct part_block *blocks;
	size_t block_count;
	struct part_rows rows;
	struct merge_place place;
	int64_t rounded_ns;      /* of the row that was rounded last, without regard to slices */
	size_t pending_max;      /* rows; 0: as many as there are */
	VEC(struct row) pending; /* a series in a slice, or the next of its rows */
	VEC(struct radix_item) sorting; /* twice as many */
	size_t pending_at;
	struct merge_place series_begin; /* of the series that is pending */
	bool cut;                        /* it has more rows than are pending */
	struct merge_key cut_at;         /* the first of them */
	struct row head;
	struct merge_key key; /* of head */
	bool done;
};
/* For a source that is not sorted: the rows of a series are gathered in pieces that fit into
 * `memory_bytes`. E_LIMIT: there would be too many pieces. */
NODISCARD enum status merge_cursor_limit(
	struct merge_cursor *c, uint64_t memory_bytes, struct err *e);
/* Rows of the largest series, if the source is not sorted; else 0. */
uint64_t merge_cursor_series_rows(const struct merge_cursor *c);
/* Memory of a row that is gathered and sorted. */
#define MERGE_SORT_ROW_BYTES (sizeof(struct row) + 2 * sizeof(struct radix_item))
/* To be called before the first row, when everything else in the cursor is set. */
void merge_cursor_begin(struct merge_cursor *c);
/* Moves to the first row, then to each next one. */
NODISCARD enum status merge_cursor_next(struct merge_cursor *c, struct err *e);
void merge_cursor_deinit(struct merge_cursor *c);

/* Adds all tables of a source to `t`, except the nodes of its trie. The cursor's arrays get the
 * numbers in `t`; `nodes` gets the numbers of the nodes' locations for now. */
NODISCARD enum status merge_tables_add(
	struct tables *t, const struct tabs *from, struct merge_cursor *c, struct err *e);
/* To be called after merge_tables_add() for all sources, with the `canon` of `t`. Merges the tries,
 * so that the nodes in `t` are in canonical order, and sets `nodes` of the cursors. E_UNSUPPORTED:
 * the trie of cursors[*out_unfit] is not in canonical order. E_NOMEM, E_LIMIT. */
NODISCARD enum status merge_tries(struct tables *t, struct canon *canon,
	struct merge_cursor *cursors, size_t count, size_t *out_unfit);
