/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/nearest.h"

static void finds_what_was_meant(void **state)
{
	(void)state;
	static const char *const names[] = { "http-address", "storage-path", "node", "top", NULL };
	static const struct {
		const char *name, *want;
	} cases[] = {
		{ "htp-adress", "http-address" },
		{ "address", "http-address" },
		{ "storage-paht", "storage-path" },
		{ "stroage-path", "storage-path" }, /* neighbours change places */
		{ "storage_path", "storage-path" },
		{ "colour", NULL },
		{ "foo", NULL },
		{ "tpo", "top" },
		{ "", NULL },
	};
	FOR_EACH_CASE (c, cases) {
		const char *got = nearest_word(c->name, names);
		CHECK_CASE(c, c->want ? got && strcmp(got, c->want) == 0 : !got);
	}
	char long_one[200] = "";
	memset(long_one, 'x', sizeof(long_one) - 1);
	CHECK(!nearest_word(long_one, names));
}

TEST_MAIN(cmocka_unit_test(finds_what_was_meant))
