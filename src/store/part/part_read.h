/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_read: rows of the blocks of a part.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/part/part_open.h"

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
/* One column of a block, unpacked but not decoded. The streams point into `stored` and `room`. */
NODISCARD enum status part_read_streams(struct part *p, const struct part_block *b,
	enum part_column id, struct buf *stored, struct buf *room, struct column_streams *out,
	struct err *e);

/* Checks that values which are scaled from another column are scaled from one that can be read. */
NODISCARD enum status part_check_scale(
	const struct part *p, const struct part_block *b, struct err *e);
/* Batches whose samples the part holds: malloc'ed. */
NODISCARD enum status part_read_batches(
	struct part *p, struct batch_seen **out, size_t *out_count, struct err *e);
