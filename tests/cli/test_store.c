/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void verifies(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_store, "store verify /some/path");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_store_call), "verify /some/path");
	CHECK_STR(str_of(c.out), "finding\n");
	fake_store_status = E_CORRUPT;
	capture_run(&c, cli_store, "store verify /some/path");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_STR(str_of(c.out), "finding\n");
	CHECK_STR(str_of(c.err), "firn: 1 of 2 is damaged\n");
}

static void inspects(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_store, "store inspect x");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_store_call), "inspect x");
	CHECK_STR(str_of(c.out), "content\n");
}

static void refuses(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_store, "store repair x");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "store can verify or inspect, not 'repair'");
	capture_run(&c, cli_store, "store verify");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "usage: firn store verify|inspect PATH");
	capture_run(&c, cli_store, "store -h");
	assert_int_equal(c.code, CLI_OK);
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(verifies), cmocka_unit_test(inspects), cmocka_unit_test(refuses))
