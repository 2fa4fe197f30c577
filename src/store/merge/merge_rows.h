/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/merge/merge_rows: the rows of several cursors as the rows of one part: in its order, equal
 * ones summed.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/merge/merge_cursor.h"

/* Called again and again with the bytes of the file so far. A status other than OK ends the merge.
 */
typedef enum status merge_go_on_fn(void *ctx, uint64_t bytes, struct err *e);

struct merge_rows {
	/* The caller's array of all cursors, changed here. They have begun (merge_cursor_begin()).
	 */
	struct merge_cursor **cursors;
	size_t count;
	merge_go_on_fn *go_on;
	void *ctx;
	struct part *failed; /* what an E_CORRUPT, or E_UNSUPPORTED, is about; else NULL */
};
/* E_CORRUPT. E_UNSUPPORTED: the rows of a part are not in the order that its META says. */
NODISCARD enum status merge_rows_write(struct merge_rows *m, struct part_writer *w, struct err *e);
