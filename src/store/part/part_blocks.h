/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_blocks: BLOCKS and TOTALS, parsed.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/part/part_format.h"

NODISCARD enum status part_blocks_parse(
	struct str bytes, struct part_block **out, size_t *out_count, struct err *e);
/* `block_count`: how many blocks the part has. */
NODISCARD enum status part_totals_parse(struct str bytes, size_t block_count,
	struct part_total **out, size_t *out_count, struct err *e);
