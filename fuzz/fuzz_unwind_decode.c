/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checksum is put right first, as somebody who means harm would do. Property: what decodes can
 * be searched anywhere without leaving its bytes, and encodes to the same bytes.
 */
#include "fuzz/fuzz.h"

#include "codec/codec.h"
#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4 || size > 1 << 20)
		return 0;
	uint8_t *copy = malloc(size);
	memcpy(copy, data, size);
	uint32_t crc = codec_crc32c(0, copy, size - 4);
	memcpy(copy + size - 4, &crc, sizeof(crc));
	struct unwind_table *t = NULL;
	if (unwind_table_decode(str_make(copy, size), &t, NULL) == OK) {
		uint64_t begin = (uint64_t)t->first_page << UNWIND_PAGE_SHIFT;
		const uint32_t step = fuzz_thorough(data, size) ? 97 : 9973;
		for (uint32_t page = 0; page < t->page_count && page < 64; page++) {
			for (uint32_t i = 0; i < 65536; i += step)
				(void)unwind_table_find(t, begin + (page << 16) + i);
			(void)unwind_table_find(t, begin + (page << 16) + 65535);
		}
		CLEANUP(buf_deinit) struct buf again;
		buf_init(&again, 1 << 21);
		FUZZ_CHECK(unwind_table_encode(t, &again) == OK);
		FUZZ_CHECK(again.len == size && memcmp(again.data, copy, size) == 0);
	}
	unwind_table_free(t);
	free(copy);
	return 0;
}
