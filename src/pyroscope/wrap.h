/* SPDX-License-Identifier: Apache-2.0 */
/* wrap: sums and differences modulo 2^64, without overflow. */
#pragma once

#include <stdint.h>

/* Sums are taken modulo 2^64, as in all of firn: senders choose the values. */
static inline int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t wrap_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}
