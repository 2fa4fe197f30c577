/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void asks(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_diff, "diff {} --base-from now-1h --base-query x --fail-above 0.1");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url),
		"/api/diff?limit=20&base_query=x&base_from=now-1h&worse_above=0.1&query=%7B%7D&"
		"from=now-15m&to=now&format=text&required=1");
	CHECK_STR(str_of(c.out), "{}\n");
}

static void says_by_its_exit_code_what_grew(void **state)
{
	(void)state;
	struct capture c;
	const char *before = fake_body;
	fake_body = "{\"worse\":true}";
	capture_run(&c, cli_diff, "diff {}");
	assert_int_equal(c.code, CLI_WORSE);
	fake_body = "worse: x\n";
	capture_run(&c, cli_diff, "diff {} --format text");
	assert_int_equal(c.code, CLI_WORSE);
	CHECK_STR(str_of(c.out), "worse: x\n");
	fake_body = before;
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_diff, "diff --help");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "firn diff");
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(asks), cmocka_unit_test(says_by_its_exit_code_what_grew),
	cmocka_unit_test(helps))
