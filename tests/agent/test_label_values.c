/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/label_values.h"
#include "test.h"

static bool admit(
	struct label_values *l, int pid, const char *name, unsigned value, bool *out_first)
{
	char text[16];
	snprintf(text, sizeof(text), "%u", value);
	return label_values_admit(l, pid, 1, str_of(name), str_of(text), out_first);
}

static void counts_values_of_each_label(void **state)
{
	(void)state;
	struct label_values l = { 0 };
	bool first;
	unsigned kept = 0, firsts = 0;
	for (unsigned i = 0; i < 2000; i++) {
		kept += admit(&l, 1, "request", i, &first);
		firsts += first;
		CHECK(admit(&l, 1, "endpoint", i % 50, &first) && !first);
	}
	CHECK(kept > 250 && kept < 450 && firsts == 1);
	CHECK(!admit(&l, 1, "request", 0, &first) && !first); /* one that was kept before */
	CHECK(admit(&l, 2, "request", 0, &first));            /* another process */
}

TEST_MAIN(cmocka_unit_test(counts_values_of_each_label))
