/* SPDX-License-Identifier: Apache-2.0 */
/* query/report/report: the one engine of all reports about stacks, whichever API asks for them. In
 * this order:
 *
 * 	stacks/stacks.c  the store's tree of locations with its values, its locations named; with
 * 	                 groups.c, events.c and what they share, loader.c
 * 	stacks/lines.c   the frames of each location, and which of them are one node: their keys
 * 	stacks/tree.c    which stacks are kept, their totals, their children
 * 	fold/fold.c      a flame graph: places of the tree with the same path of keys are one node
 * 	fold/chart.c     the same in the order of time
 * 	fold/rows.c      a table: sums by key, and by caller and callee
 *
 * A report is written from a fold, from rows, or from the stacks of the tree. Everything is in the
 * caller's arena, except structures with a _deinit. Private to query/. */
#pragma once

#include "query/query.h"
#include "query/report/series.h"

struct query_shown {
	struct filter_condition condition;
	struct frame_filter filters[2];
};
/* Frames as they are shown. The filters `match` and `frames` lie in `room`. */
struct query_report_request query_shown_request(
	const struct query_request *r, struct query_shown *room);
