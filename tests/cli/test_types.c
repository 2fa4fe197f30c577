/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void asks(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_types, "types --from now-1d");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_url), "/api/types?from=now-1d&to=now&format=text&required=1");
	capture_run(&c, cli_types, "types --match x");
	assert_int_equal(c.code, CLI_USAGE);
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_types, "types -h");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "firn types");
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(asks), cmocka_unit_test(helps))
