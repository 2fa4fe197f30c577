/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "agent/status/log_once.h"

static void tells_each_once(void **state)
{
	(void)state;
	struct log_once t = { .count = 0 };
	CHECK(log_once_is_new(&t, STR("a")) && log_once_is_new(&t, STR("b")));
	CHECK(!log_once_is_new(&t, STR("a")) && !log_once_is_new(&t, STR("b")));
	CHECK(log_once_is_new(&t, STR("")) && !log_once_is_new(&t, STR("")));
}

static void ends_somewhere(void **state)
{
	(void)state;
	struct log_once t = { .count = 0 };
	char text[16];
	for (int i = 0; i < 2 * LOG_ONCE_MAX; i++) {
		snprintf(text, sizeof(text), "%d", i);
		CHECK(log_once_is_new(&t, str_of(text)) == (i < LOG_ONCE_MAX));
	}
}

TEST_MAIN(cmocka_unit_test(tells_each_once), cmocka_unit_test(ends_somewhere))
