/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/retain/retain: what grows old is dropped, or made coarser.
 *
 * Layer 3, private to store/. Each function is the merging thread's.
 */
#pragma once

#include "store/state/state.h"

/* Drops what is too old or too much. AGE_UNKNOWN: too much only. */
void store_retain(struct store *s, int64_t now_ns);
/* One part made coarser, if one is due; *out tells whether there was. AGE_UNKNOWN: none is. */
NODISCARD enum status store_thin_step(struct store *s, int64_t now_ns, bool *out, struct err *e);
