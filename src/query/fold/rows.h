/* SPDX-License-Identifier: Apache-2.0 */
/* rows: a table, sums by key. */
#pragma once

#include "base/vec.h"
#include "query/stacks/stacks.h"

struct query_key_row {
	uint32_t line; /* lines.v: of its frames in a mapping that with the smallest address */
	uint32_t row;  /* number among those that occur, or QUERY_LINE_NONE */
	int64_t total, total_diff, self, self_diff;
	bool many; /* frames of more than one line, of more than one mapping */
	bool many_mappings;
};
struct query_key_edge {
	uint32_t caller, callee; /* keys */
	int64_t total;
};
struct query_key_rows {
	struct query_key_row *v; /* by key */
	uint32_t *order;         /* keys: by descending self, then address */
	uint32_t count;
	VEC(struct query_key_edge) edges; /* by caller, then callee */
};
/* A function counts once in a stack, however often it recurs. invert: as the tree was made. edges:
 * those are wanted, too. */
NODISCARD enum status query_rows_make(struct query_key_rows *r, const struct query_tree *t,
	bool invert, bool edges, struct arena *a, struct err *e);
void query_rows_deinit(struct query_key_rows *r);
