/* SPDX-License-Identifier: Apache-2.0 */
/* Property: what is told of a context lies within its limits, and of a malformed one nothing is. */
#include "fuzz/fuzz.h"
#include "fuzz/mutate_pb.h"

#include "otlp/otlp.h"

FUZZ_MUTATES_PB(0)

static void tell(void *ctx, struct str key, struct str value)
{
	uint32_t *told = ctx;
	FUZZ_CHECK(key.len && key.len <= OTLP_CONTEXT_KEY_BYTES_MAX && str_is_utf8(key));
	FUZZ_CHECK(value.len && value.len <= OTLP_CONTEXT_VALUE_BYTES_MAX && str_is_utf8(value));
	FUZZ_CHECK(++*told <= OTLP_CONTEXT_ATTRIBUTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };
	uint32_t told = 0;
	if (otlp_decode_process_context(str_make(data, size), tell, &told, &e) != OK)
		FUZZ_CHECK(told == 0 && e.text[0]);
	return 0;
}
