/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/scan: reads the rows of a source that a pick wants, some at a time.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/part/part.h"
#include "store/read/pick.h"

/* Rows of a source that the pick wants, some at a time. `sel`: their positions in the columns;
 * NULL: all from 0 to n. */
struct scan_rows {
	size_t n;
	const uint32_t *sel;
	const uint32_t *series;
	const uint32_t *node;
	const uint32_t *set;
	const int64_t *time_ns;
	const int64_t *value;
	const int64_t *count; /* NULL: 1 each */
};
typedef enum status scan_fn(void *ctx, const struct scan_rows *rows, struct err *e);

/* Buffers of one thread that scans. */
struct scanner {
	struct part_rows rows;
	uint32_t *sel;
	size_t sel_cap;
};
void scanner_init(struct scanner *s);
void scanner_deinit(struct scanner *s);

struct scan {
	struct store_view *view;
	struct source *source;
	const struct pick *pick;
	const struct samples_query *query;
	unsigned columns; /* mask of 1u << ROW_…: what fn reads */
};
/* Loads what the scan needs of its source. The rows come in pieces, numbered from 0. */
NODISCARD enum status scan_prepare(
	const struct scan *s, const struct budget *b, size_t *out_pieces, struct err *e);
/* Whether the scan wants none, some or all rows of a piece. */
enum scan_wants { SCAN_NONE, SCAN_SOME, SCAN_ALL };
enum scan_wants scan_wants(const struct scan *s, size_t piece);
/* Which rows of a part's piece are wanted. */
struct part_filter scan_filter(const struct scan *s, size_t piece);
/* The rows of one piece that are wanted; fn is not called when there are none. */
NODISCARD enum status scan_piece(const struct scan *s, size_t piece, struct scanner *scanner,
	scan_fn *fn, void *ctx, struct err *e);
/* All pieces. */
NODISCARD enum status scan_run(
	const struct scan *s, scan_fn *fn, void *ctx, struct budget *b, struct err *e);
