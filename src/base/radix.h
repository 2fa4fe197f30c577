/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix: sorting by numbers, digit by digit from the lowest; digits that are equal in all are
 * skipped. Stable.
 *
 * Layer 0.
 */
#pragma once

#include "base/status.h"

/* A key and the number of its element. */
struct radix_item {
	uint64_t key;
	uint32_t index;
};

/* `scratch` has room for n items. The result is in `v`. */
void radix_sort(struct radix_item *v, struct radix_item *scratch, size_t n);
