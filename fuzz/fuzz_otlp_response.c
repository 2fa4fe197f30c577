/* SPDX-License-Identifier: Apache-2.0 */
/* Property: an answer that is read is read the same when it was written again. */
#include "fuzz/fuzz.h"
#include "fuzz/mutate_pb.h"

#include "otlp/otlp.h"

#include <string.h>

FUZZ_MUTATES_PB(0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct otlp_rejects first = { .profiles = 77 }, again = { 0 };
	struct err e = { 0 };
	if (otlp_decode_response(str_make(data, size), &first, &e) != OK) {
		FUZZ_CHECK(first.profiles == 77 && e.text[0]);
		return 0;
	}
	struct buf b;
	buf_init(&b, 4096);
	otlp_encode_response(&first, &b);
	FUZZ_CHECK(buf_status(&b) == OK);
	FUZZ_CHECK(otlp_decode_response(buf_view(&b), &again, NULL) == OK);
	FUZZ_CHECK(first.profiles == again.profiles && strcmp(first.reason, again.reason) == 0);
	buf_deinit(&b);
	return 0;
}
