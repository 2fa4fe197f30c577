/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

static void prints(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_version, "version");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.out), "firn " FIRN_VERSION "\n");
	capture_run(&c, cli_version, "version x");
	assert_int_equal(c.code, CLI_USAGE);
	capture_run(&c, cli_version, "version --help");
	assert_int_equal(c.code, CLI_OK);
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(prints))
