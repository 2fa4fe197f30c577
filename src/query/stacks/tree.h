/* SPDX-License-Identifier: Apache-2.0 */
/* tree: which stacks are kept, and what they sum to. */
#pragma once

#include "query/query.h"
#include "query/stacks/lines.h"
#include "query/stacks/loaded.h"

struct query_tree {
	struct query_stacks stacks; /* a stack that is not kept has own value 0 */
	struct query_lines lines;
	uint32_t count;        /* of stacks */
	int64_t *total;        /* by stack: own and all below, of a sandwich down to the next cut */
	int64_t *total_diff;   /* NULL: not a comparison */
	uint8_t *live;         /* by stack: it or something below it is kept and is not nothing */
	uint8_t *left_out;     /* by stack; NULL: all are kept */
	uint32_t *first_child; /* live children of i: child[first_child[i] .. first_child[i + 1]) */
	uint32_t *child;
	uint32_t *cut; /* by stack, of a sandwich: the one where the function is */
	int64_t sum, sum_diff, filtered; /* of all stacks */
};
NODISCARD enum status query_tree_make(struct query_tree *t, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e);
void query_tree_deinit(struct query_tree *t);

/* The frames of stack i: lines.v[first .. *out_end), outermost first. */
static inline uint32_t query_tree_lines(const struct query_tree *t, uint32_t i, uint32_t *out_end)
{
	uint32_t location = t->stacks.v.v[i].location;
	*out_end = location ? t->lines.first[location + 1] : 0;
	return location ? t->lines.first[location] : 0;
}

/* Of the frames first .. end the one where the sandwich cuts: of a recursion the outermost for the
 * callers, the innermost for the called. `end`: none does. */
static inline uint32_t query_tree_cut_line(
	const struct query_tree *t, uint32_t first, uint32_t end, bool outermost)
{
	uint32_t at = end;
	for (uint32_t i = first; i < end && (at == end || !outermost); i++)
		if (t->lines.v[i].sandwich)
			at = i;
	return at;
}

/* What goes with each report. */
void query_tree_info(const struct query_tree *t, struct query_report *info);

/* Which nodes are left out, with all that is below them. */
enum query_trim {
	QUERY_TRIM_WHOLE, /* |total| below `least`, which is not 0 */
	QUERY_TRIM_ABOVE, /* total not above the request's share of the parent's, as a whole number
			   */
	QUERY_TRIM_LEAST, /* total below the request's share of the parent's, or nothing */
};
/* Whether a node of this total is kept below a parent of that one. */
bool query_trim_keeps(enum query_trim trim, double share, uint64_t least, int64_t parent,
	int64_t total, int64_t total_diff);
