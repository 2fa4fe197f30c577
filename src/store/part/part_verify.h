/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_verify: every byte of a part, read and checked.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/part/part_open.h"

/* Every byte is read and checked. The second: with at most so much memory for its tables, and
 * without BATCHES, which an import does not use; E_LIMIT. */
NODISCARD enum status part_verify(struct part *p, struct err *e);
NODISCARD enum status part_verify_import(struct part *p, uint64_t limit_bytes, struct err *e);
