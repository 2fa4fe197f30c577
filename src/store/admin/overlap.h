/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/admin/overlap: whether samples that are about to be imported may be in the store already,
 * because another import from the same store brought them (docs/formats/export.md).
 *
 * Layer 3, private to store/. With merge_lock held, so that no part takes another's place.
 */
#pragma once

#include "store/part/part.h"

struct store;

/* Where rows of `from` between two times (inclusive, of its rows) are from: their times before they
 * were rounded. */
struct part_origin overlap_origin(const struct part_meta *from, int64_t first_ns, int64_t last_ns);

/* E_EXISTS, with a sentence: what is taken (`own`) may hold samples of this very store, which
 * another one imported (`of`) and hands out again. */
NODISCARD enum status overlap_check_own(
	const struct store *s, struct part_origin of, struct part_origin own, struct err *e);

/* E_EXISTS, with a sentence: a part that is live has samples of the same origin in a common time
 * and series. `series`: those of `t` that matter, a byte each; `limit_bytes`: of memory. */
NODISCARD enum status overlap_check(struct store *s, const struct tabs *t, const uint8_t *series,
	struct part_origin from, uint64_t limit_bytes, struct err *e);
