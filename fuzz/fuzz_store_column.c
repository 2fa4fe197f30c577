/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A column of hostile bytes is refused or decoded to as many values as it should have. Input: the
 * number of rows (two bytes), a column header as in part.md section 2, the stored bytes. Checksums
 * are all zero in this program. Mutation seen: column_ticks.c without `t.rows > rows - i` writes
 * behind the array.
 */
#include "fuzz/fuzz.h"

#include "codec/codec.h"
#include "store/part/column.h"

/* Instead of codec's. */
uint32_t codec_crc32c(uint32_t crc, const void *bytes, size_t len)
{
	(void)crc, (void)bytes, (void)len;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct reader r = reader_over(data, size);
	size_t rows = reader_u16(&r);
	struct column c;
	struct column_streams s;
	struct err e = { 0 };
	if (r.failed || column_parse_header(&r, &c, &e) != OK)
		return 0;
	c.crc = 0;
	if (column_unpack(&c, str_make(r.at, reader_left(&r)), rows, &s, &e) != OK)
		return 0;
	int64_t *wide = malloc(rows * sizeof(*wide));
	uint32_t *narrow = malloc(rows * sizeof(*narrow));
	uint8_t *bytes = malloc(rows + COLUMN_BYTES_SLACK);
	bool fit = false;
	FUZZ_CHECK(wide && narrow && bytes);
	bool read = column_decode(&c, &s, rows, wide, &e) == OK;
	enum status st = column_decode_bytes(&c, &s, rows, bytes, &fit, &e);
	FUZZ_CHECK(st != OK || !fit || read);
	for (size_t i = 0; i < rows && st == OK && fit; i++)
		FUZZ_CHECK(bytes[i] == (uint64_t)wide[i]);
	if (column_decode_u32(&c, &s, rows, 1000, narrow, &e) == OK)
		for (size_t i = 0; i < rows; i++)
			FUZZ_CHECK(read && narrow[i] < 1000 && narrow[i] == (uint64_t)wide[i]);
	free(wide);
	free(narrow);
	free(bytes);
	column_streams_free(&s);
	return 0;
}
