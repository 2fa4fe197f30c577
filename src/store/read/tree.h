/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/tree: the answer to a sum by stack in the making: the stacks of several sources, and
 * their sums, in one tree.
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

/* The stacks of `from` that have a sum, or an average of a gauge, by node. Scratch memory comes
 * from the budget and goes back. E_CORRUPT when `from` is damaged. */
NODISCARD enum status tree_add(struct tree *t, const struct tabs *from, const int64_t *sums,
	const double *averages, struct err *e);
/* The stacks of `from` that are used[], by node, without sums. `used` is marked up to the roots;
 * to[], all 0 before, says which node of the tree each of them became. */
NODISCARD enum status tree_add_used(
	struct tree *t, const struct tabs *from, uint8_t *used, uint32_t *to, struct err *e);
/* All of another tree. */
NODISCARD enum status tree_add_tree(struct tree *t, const struct tree *from, struct err *e);
