/* SPDX-License-Identifier: Apache-2.0 */
/* Property: a file of limits is taken, and then each limit is one that the flags would take too, or
 * refused with the number of a line. */
#include "fuzz/fuzz.h"

#include "ingest/ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ingest_limits base = { .labels = 128,
		.label_name_bytes = 256,
		.label_value_bytes = 4096,
		.stack_frames = 2048,
		.series = 1000000,
		.message_bytes = 32 << 20 };
	struct tenant_rules r = { 0 };
	struct err e = { 0 };
	if (tenant_rules_parse(str_make(data, size), &base, &r, &e) != OK) {
		FUZZ_CHECK(str_starts(str_of(e.text), STR("line ")) && r.v.len == 0);
		return 0;
	}
	for (size_t i = 0; i < r.v.len; i++) {
		const struct ingest_limits *l = &r.v.v[i].limits;
		FUZZ_CHECK(l->labels >= 1 && l->labels <= 256 && l->stack_frames >= 2);
		FUZZ_CHECK(l->message_bytes >= 65536 && l->message_bytes <= base.message_bytes);
		FUZZ_CHECK(strlen(r.v.v[i].tenant) <= SAMPLES_TENANT_MAX);
		FUZZ_CHECK(tenant_rules_find(&r, str_of(r.v.v[i].tenant)));
	}
	tenant_rules_deinit(&r);
	return 0;
}
