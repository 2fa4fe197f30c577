/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static void verifies(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum status status;
		int code;
	} cases[] = {
		{ "sound", OK, CLI_OK },
		{ "damaged", E_CORRUPT, CLI_FAILED },
		{ "newer", E_UNSUPPORTED, 7 },
		{ "no such file", E_NOTFOUND, 5 },
		{ "not allowed", E_DENIED, 5 },
	};
	struct capture c;
	FOR_EACH_CASE (x, cases) {
		fake_store_status = x->status;
		capture_run(&c, cli_store, "store verify /some/path");
		CHECK_CASE(x, c.code == x->code);
		CHECK_STR(str_of(fake_store_call), "verify /some/path");
		CHECK_STR(str_of(c.out), "finding\n");
		CHECK_STR(str_of(c.err), x->status == OK ? "" : "firn: 1 of 2 is damaged\n");
	}
	fake_store_status = OK;
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
	CHECK_HAS(c.err, "not 'repair'");
	capture_run(&c, cli_store, "store");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "usage: firn store verify|inspect|delete|export|import");
	capture_run(&c, cli_store, "store verify");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "usage: firn store verify PATH");
}

static void helps(void **state)
{
	(void)state;
	static const char *const lines[] = { "store -h", "store verify -h", "store inspect -h",
		"store delete -h", "store export -h", "store import -h" };
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
		struct capture c;
		capture_run(&c, cli_store, lines[i]);
		assert_int_equal(c.code, CLI_OK);
		check_width(c.out);
	}
}

TEST_MAIN(cmocka_unit_test(verifies), cmocka_unit_test(inspects), cmocka_unit_test(refuses),
	cmocka_unit_test(helps))
