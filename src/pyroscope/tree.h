/* SPDX-License-Identifier: Apache-2.0 */
/* tree: a walk over the nodes of a flame graph. */
#pragma once

#include "pyroscope/pyroscope.h"

/* Visits the nodes of a flame graph of one side: parents before their children, children from left
 * to right; no node if the total is 0. Scratch lies in `a`. */
struct tree_node {
	size_t level;  /* 0: the root */
	uint32_t name; /* names of the flame graph */
	int64_t total, self;
	uint64_t children;
};
typedef void tree_visit_fn(void *ctx, const struct tree_node *n);
NODISCARD enum status tree_walk(const struct pyroscope_flame *f, struct arena *a,
	tree_visit_fn *visit, void *ctx, struct err *e);
