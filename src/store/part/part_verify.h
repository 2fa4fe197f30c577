/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_verify: every byte of a part, read and checked.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/part/part_open.h"

/* Both read and check every byte. part_verify_import() takes at most `limit_bytes` of memory for
 * the tables (else E_LIMIT), and passes over BATCHES, which an import does not use. */
NODISCARD enum status part_verify(struct part *p, struct err *e);
NODISCARD enum status part_verify_import(struct part *p, uint64_t limit_bytes, struct err *e);
