/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever arrow_stream_next() gives can be read to its last value without a check; what
 * it refuses it says why.
 */
#include "fuzz/fuzz.h"

#include "tests/arrow/dump.h"

#define LIMIT ((size_t)8 << 20)
#define TEXT_MAX ((size_t)1 << 20)
/* Of a few bytes: millions of equal rows. */
#define TEXT_SHORT ((size_t)2 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out;
	struct err e = { 0 };
	buf_init(&out, fuzz_thorough(data, size) ? TEXT_MAX : TEXT_SHORT);
	enum status s = arrow_dump(str_make(data, size), LIMIT, &out, &e);
	FUZZ_CHECK(s == OK || e.text[0] || buf_status(&out) != OK);
	FUZZ_CHECK(s != E_CORRUPT);
	buf_deinit(&out);
	return 0;
}
