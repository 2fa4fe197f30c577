/* SPDX-License-Identifier: Apache-2.0 */
#include "base/reader.h"

const uint8_t *reader_varint_long(const uint8_t *p, const uint8_t *end, uint64_t *out)
{
	uint64_t v = 0;
	for (unsigned shift = 0; shift < 70 && p < end; shift += 7) {
		uint8_t byte = *p++;
		if (shift == 63 && byte > 1)
			break;
		v |= (uint64_t)(byte & 0x7F) << shift;
		if (byte < 0x80) {
			*out = v;
			return p;
		}
	}
	return NULL;
}
