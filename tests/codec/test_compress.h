/* SPDX-License-Identifier: Apache-2.0 */
/* Half repetitive, half random bytes of length `len`, for the compression tests. */
#pragma once

#include "base/buf.h"
#include "base/hash.h"

static inline void fill_sample(struct buf *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		buf_u8(b, (uint8_t)(i % 64 < 32 ? i % 7 : hash_u64(i)));
}
