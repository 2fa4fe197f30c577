/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void asks(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_labels, "labels");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url), "/api/labels?from=0&to=now&format=text&required=1");
	capture_run(&c, cli_labels, "labels a/b --query {}");
	CHECK_STR(str_of(fake_url),
		"/api/labels/a%2Fb/values?query=%7B%7D&from=0&to=now&format=text&required=1");
}

static void takes_a_selector(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_labels, "labels comm {a=\"b\"}");
	CHECK_STR(str_of(fake_url), "/api/labels/comm/values?query=%7Ba%3D%22b%22%7D&from=0&to=now"
				    "&format=text&required=1");
	capture_run(&c, cli_labels, "labels {a=\"b\"} --from now-1h");
	CHECK_STR(str_of(fake_url), "/api/labels?query=%7Ba%3D%22b%22%7D&from=now-1h&to=now"
				    "&format=text&required=1");
	capture_run(&c, cli_labels, "labels comm python3");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "'python3' is no selector");
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

TEST_MAIN(cmocka_unit_test(asks), cmocka_unit_test(takes_a_selector), cmocka_unit_test(helps))
