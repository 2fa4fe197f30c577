/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void asks(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_top, "top");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url), "/api/top?limit=20&from=now-15m&to=now&format=text&required=1");
	CHECK_STR(str_of(fake_server), "http://127.0.0.1:7070");
	CHECK_STR(str_of(c.out), "{}\n");
	setenv("FIRN_SERVER", "http://there:1", 1);
	capture_run(&c, cli_top,
		"top {} --limit 3 --match mem --from now-1h --to 5 --format text --query other");
	unsetenv("FIRN_SERVER");
	CHECK_STR(str_of(fake_server), "http://there:1");
	CHECK_STR(str_of(fake_url),
		"/api/top?limit=3&query=%7B%7D&from=now-1h&to=5&match=mem&format=text&required=1");
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_top, "top --help");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "firn top");
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(asks), cmocka_unit_test(helps))
