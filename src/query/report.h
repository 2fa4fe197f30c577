/* SPDX-License-Identifier: Apache-2.0 */
/* report: the one engine of all reports about stacks, whichever API asks for them. In this order:
 *
 * 	stacks.c  the store's tree of locations with its values, its locations named; with groups.c,
 * 	          events.c and what they share, loader.c
 * 	lines.c   the frames of each location, and which of them are one node: their keys
 * 	tree.c    which stacks are kept, their totals, their children
 * 	fold.c    a flame graph: places of the tree with the same path of keys are one node
 * 	chart.c   the same in the order of time
 * 	rows.c    a table: sums by key, and by caller and callee
 *
 * A report is written from a fold, from rows, or from the stacks of the tree. Each file has a
 * header of its own. Everything is in the caller's arena, except structures with a _deinit. */
#pragma once

#include "query/query.h"

struct query_shown {
	struct filter_condition condition;
	struct frame_filter filters[2];
};
/* Frames as they are shown. The filters `match` and `frames` lie in `room`. */
struct query_report_request query_shown_request(
	const struct query_request *r, struct query_shown *room);
