/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/retain/retain: drops old samples, or makes them coarser.
 *
 * Layer 3, private to store/. Each function is the merging thread's.
 */
#pragma once

#include "store/state/state.h"

/* Drops samples that are older than the retention, and the oldest where there are more bytes than
 * the limit. `now_ns` AGE_UNKNOWN: only the limit of bytes counts. */
void store_retain(struct store *s, int64_t now_ns);
/* Makes one part coarser if one is due. *out: whether it did. `now_ns` AGE_UNKNOWN: none is due. */
NODISCARD enum status store_thin_step(struct store *s, int64_t now_ns, bool *out, struct err *e);
