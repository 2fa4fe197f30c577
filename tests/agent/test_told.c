/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "agent/status/told.h"

static void tells_each_once(void **state)
{
	(void)state;
	struct told t = { .count = 0 };
	CHECK(told_is_new(&t, STR("a")) && told_is_new(&t, STR("b")));
	CHECK(!told_is_new(&t, STR("a")) && !told_is_new(&t, STR("b")));
	CHECK(told_is_new(&t, STR("")) && !told_is_new(&t, STR("")));
}

static void ends_somewhere(void **state)
{
	(void)state;
	struct told t = { .count = 0 };
	char text[16];
	for (int i = 0; i < 2 * TOLD_MAX; i++) {
		snprintf(text, sizeof(text), "%d", i);
		CHECK(told_is_new(&t, str_of(text)) == (i < TOLD_MAX));
	}
}

TEST_MAIN(cmocka_unit_test(tells_each_once), cmocka_unit_test(ends_somewhere))
