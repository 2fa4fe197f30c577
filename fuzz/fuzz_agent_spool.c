/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: a spooled file is read or refused, and what is read has the length that its header
 * says. The checksum is made right first, so that the fuzzer gets behind it.
 */
#include "fuzz/fuzz.h"

#include "agent/send/spool.h"
#include "codec/codec.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf file, out;
	buf_init(&file, (size_t)1 << 20);
	buf_init(&out, SPOOL_MESSAGE_BYTES_MAX + 1);
	buf_put(&file, data, size);
	if (buf_status(&file) == OK && size >= 24) {
		uint32_t crc = codec_crc32c(0, file.data + 12, size - 12);
		memcpy(file.data + 8, &crc, sizeof(crc));
		memcpy(file.data, "FIRNSPL1", 8);
	}
	uint32_t samples = 77;
	struct err e = { 0 };
	if (spool_decode(buf_view(&file), &out, &samples, &e) == OK) {
		uint64_t bytes;
		memcpy(&bytes, file.data + 16, sizeof(bytes));
		FUZZ_CHECK(out.len == bytes && memcmp(&samples, file.data + 12, 4) == 0);
	} else {
		FUZZ_CHECK(out.len == 0 && samples == 77 && e.text[0]);
	}
	buf_deinit(&file);
	buf_deinit(&out);
	return 0;
}
