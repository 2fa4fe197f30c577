/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/tree: builds the answer to a sum by stack: one tree of the stacks of several sources,
 * with their sums.
 *
 * Layer 3, private to store/. One thread's.
 */
#pragma once

#include "store/read/view.h"

struct tree {
	struct profile tables;
	VEC(struct samples_node) nodes; /* parents come first */
	double *averages;               /* by node, of a gauge */
	uint32_t *next;                 /* by node: its successor in the last source */
	size_t cap;                     /* of these two */
	uint32_t *slots;                /* node by (parent, location); 0: none */
	uint32_t slot_mask;
	bool indexed;
	bool is_gauge;
	struct budget *budget;
};

NODISCARD enum status tree_init(struct tree *t, bool is_gauge, struct budget *b, struct err *e);
void tree_deinit(struct tree *t);

/* Adds the stacks of `from` whose node has a sum, or an average of a gauge. Scratch memory is taken
 * from the budget and given back. E_CORRUPT when `from` is damaged. */
NODISCARD enum status tree_add(struct tree *t, const struct tabs *from, const int64_t *sums,
	const double *averages, struct err *e);
/* Adds the stacks of `from` whose nodes are used[], without sums. It marks `used` up to the roots.
 * to[], all 0 before, receives the node of the tree for each of them. */
NODISCARD enum status tree_add_used(
	struct tree *t, const struct tabs *from, uint8_t *used, uint32_t *to, struct err *e);
/* Adds all of another tree. */
NODISCARD enum status tree_add_tree(struct tree *t, const struct tree *from, struct err *e);
