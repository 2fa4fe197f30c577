/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void asks(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_labels, "labels");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url), "/api/labels?from=now-15m&to=now&format=text&required=1");
	capture_run(&c, cli_labels, "labels a/b --query {}");
	CHECK_STR(str_of(fake_url),
		"/api/labels/a%2Fb/values?query=%7B%7D&from=now-15m&to=now&format=text&required=1");
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_labels, "labels -h");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "firn labels comm");
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(asks), cmocka_unit_test(helps))
