/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what is read is written again as the same bytes. */
#include "fuzz/fuzz.h"

#include "base/hash.h"
#include "debuginfo/debuginfo.h"

#include <inttypes.h>
#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct debuginfo_record r;
	struct err e = { 0 };
	char check[32];
	CLEANUP(buf_deinit) struct buf in;
	CLEANUP(buf_deinit) struct buf again;
	buf_init(&in, 1 << 20);
	buf_init(&again, 1 << 20);
	buf_cstr(&in, "firn-debuginfo 1\n");
	buf_put(&in, data, size);
	if (in.failed)
		return 0;
	/* The check is made here: it would hide everything else. */
	snprintf(check, sizeof(check), "check %016" PRIx64 "\n", hash64(in.data, in.len));
	buf_cstr(&in, check);
	if (debuginfo_record_decode(buf_view(&in), &r, &e) != OK) {
		FUZZ_CHECK(e.text[0]);
		return 0;
	}
	debuginfo_record_encode(&r, &again);
	struct debuginfo_record second;
	FUZZ_CHECK(debuginfo_record_decode(buf_view(&again), &second, &e) == OK);
	CLEANUP(buf_deinit) struct buf third;
	buf_init(&third, 1 << 20);
	debuginfo_record_encode(&second, &third);
	FUZZ_CHECK(str_eq(buf_view(&again), buf_view(&third)));
	return 0;
}
