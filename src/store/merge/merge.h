/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/merge/merge: several parts become one, and one or several are rewritten (rewrite.h). This
 * is what the other folders of store/ see of it.
 *
 * Private to store/.
 */
#pragma once

#include "store/merge/rewrite.h"
#include "store/state/state.h"

/* Does one merge if one is due. *out: whether it did. */
NODISCARD enum status store_merge_step(struct store *s, int64_t now_ns, bool *out, struct err *e);
