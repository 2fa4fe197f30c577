/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void asks(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_ready, "ready");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_server), "http://127.0.0.1:7070");
	CHECK_STR(str_of(fake_url), "/ready");
	CHECK_STR(str_of(c.out), "ready\n");
	capture_run(&c, cli_ready, "ready --server https://h:1/firn/");
	CHECK_STR(str_of(fake_url), "/firn/ready");
	capture_run(&c, cli_ready, "ready --server unix:/run/firn --timeout 1s");
	CHECK_STR(str_of(fake_url), "/ready");
	CHECK_STR(str_of(fake_server), "unix:/run/firn");
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	struct capture c;
	fake_http_status = 503;
	capture_run(&c, cli_ready, "ready");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_STR(str_of(c.out), "");
	CHECK_HAS(c.err, "http://127.0.0.1:7070 is not ready: HTTP status 503");
	fake_http_status = 200;
	fake_status = E_UNAVAILABLE;
	capture_run(&c, cli_ready, "ready");
	assert_int_equal(c.code, CLI_UNREACHABLE);
	CHECK_HAS(c.err, "Connection refused");
	fake_status = E_UNSUPPORTED;
	capture_run(&c, cli_ready, "ready");
	assert_int_equal(c.code, CLI_FAILED);
	fake_status = OK;
	capture_run(&c, cli_ready, "ready --server https://here");
	assert_int_equal(c.code, CLI_USAGE);
	capture_run(&c, cli_ready, "ready --timeout 0s");
	assert_int_equal(c.code, CLI_USAGE);
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_ready, "ready --help");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "--timeout DURATION");
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(asks), cmocka_unit_test(says_what_is_wrong), cmocka_unit_test(helps))
