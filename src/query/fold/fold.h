/* SPDX-License-Identifier: Apache-2.0 */
/* query/fold/fold: a flame graph or a chart over time, made of a tree; with rows.h, which makes a
 * table of it. Private to query/. */
#pragma once

#include "base/vec.h"
#include "query/fold/rows.h"
#include "query/stacks/stacks.h"

struct query_fold_node {
	int64_t self, total;
	uint32_t parent; /* always smaller; node 0 is the root, its own parent */
	uint32_t line;   /* lines.v, of the first frame; QUERY_LINE_NONE: root, group of labels */
	uint32_t group;
	uint8_t mixed; /* QUERY_MIXED_… */
	bool inlined;  /* the first frame */
};
/* A tree of frames: depth first, children by descending total, of a chart by time. */
struct query_fold {
	VEC(struct query_fold_node) nodes;
	VEC(int64_t) total_diff; /* by node; empty: not a comparison */
	VEC(int64_t) time_ns;    /* by node, when it began; empty: not a chart */
	int64_t trimmed;         /* what the nodes that were left out sum to */
	size_t memory_max;       /* bytes, of everything that grows in the making */
};
static inline int64_t query_fold_diff(const struct query_fold *f, size_t node)
{
	return f->total_diff.len ? f->total_diff.v[node] : 0;
}

/* Make a flame graph, from the root down or, if the request says so, from the leaves up; and a
 * chart. Free with query_fold_deinit(), also after a failure. */
NODISCARD enum status query_fold_make(struct query_fold *f, const struct query_tree *t,
	const struct query_report_request *r, enum query_trim trim, uint64_t least,
	size_t memory_max, struct err *e);
void query_fold_deinit(struct query_fold *f);

NODISCARD enum status query_chart_make(struct query_fold *f, const struct query_tree *t,
	enum query_trim trim, double share, struct err *e);
