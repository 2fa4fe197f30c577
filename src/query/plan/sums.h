/* SPDX-License-Identifier: Apache-2.0 */
/* sums: sums and differences modulo 2^64. Values near the edge give figures that wrap, and the
 * equations between them hold all the same. */
#pragma once

#include <stdint.h>

static inline int64_t query_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t query_sub(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a - (uint64_t)b);
}

static inline int64_t query_scale(int64_t value, int64_t factor)
{
	return (int64_t)((uint64_t)value * (uint64_t)factor);
}

static inline uint64_t query_abs(int64_t v)
{
	return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}
