/* SPDX-License-Identifier: Apache-2.0 */
#include "base/hash.h"
#include "codec/codec.h"

#include "test.h"

uint32_t codec_crc32c_portable(uint32_t crc, const void *bytes, size_t len);

static void agrees_with_rfc_3720(void **state)
{
	(void)state;
	uint8_t bytes[32];
	CHECK(codec_crc32c(0, "123456789", 9) == 0xE3069283);
	CHECK(codec_crc32c(0, "", 0) == 0);
	memset(bytes, 0, sizeof(bytes));
	CHECK(codec_crc32c(0, bytes, sizeof(bytes)) == 0x8A9136AA);
	memset(bytes, 0xFF, sizeof(bytes));
	CHECK(codec_crc32c(0, bytes, sizeof(bytes)) == 0x62A8AB43);
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)i;
	CHECK(codec_crc32c(0, bytes, sizeof(bytes)) == 0x46DD794E);
}

static void both_implementations_agree(void **state)
{
	(void)state;
	uint8_t bytes[300];
	for (unsigned i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)hash_u64(i);
	for (size_t from = 0; from < 16; from++)
		for (size_t len = 0; from + len <= sizeof(bytes); len += 7) {
			uint32_t crc = codec_crc32c(0, bytes + from, len);
			CHECK(crc == codec_crc32c_portable(0, bytes + from, len));
			size_t cut = len / 3;
			uint32_t half = codec_crc32c(0, bytes + from, cut);
			CHECK(crc == codec_crc32c(half, bytes + from + cut, len - cut));
		}
}

TEST_MAIN(cmocka_unit_test(agrees_with_rfc_3720), cmocka_unit_test(both_implementations_agree))
