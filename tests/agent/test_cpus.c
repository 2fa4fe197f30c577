/* SPDX-License-Identifier: Apache-2.0 */
/* The list of CPUs; attaching is tested with the sampler. */
#include "agent/sample/cpus.h"
#include "test.h"

/* clang-format off */
static const struct {
	const char *name, *list, *want; /* want: a digit for each CPU; NULL: refused */
} cases[] = {
	{ "one", "0\n", "10000000" },
	{ "a range", "0-3\n", "11110000" },
	{ "ranges and single ones", "0-1,3,5-7\n", "11010111" },
	{ "none online", "\n", "00000000" },
	{ "the last possible", "7", "00000001" },
	{ "one too many", "0-8", NULL },
	{ "backwards", "3-1", NULL },
	{ "no number", "a", NULL },
	{ "half a range", "1-", NULL },
	{ "empty part", "1,,2", NULL },
	{ "overflow", "99999999999999999999", NULL },
	{ "sign", "-1", NULL },
};
/* clang-format on */

static void reads_lists_of_cpus(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		bool *got = calloc(8, sizeof(*got));
		assert_non_null(got);
		bool ok = cpus_parse(str_of(c->list), got, 8);
		CHECK_CASE(c, ok == (c->want != NULL));
		for (int i = 0; ok && i < 8; i++)
			CHECK_CASE(c, got[i] == (c->want[i] == '1'));
		free(got);
	}
}

TEST_MAIN(cmocka_unit_test(reads_lists_of_cpus))
