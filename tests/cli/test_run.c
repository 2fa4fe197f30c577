/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

static int called_argc;
static char called_with[256];

static int record(int argc, char **argv)
{
	called_argc = argc;
	snprintf(called_with, sizeof(called_with), "%s %s", argv[0], argc > 1 ? argv[1] : "");
	return 42;
}

static const struct cli_verb verbs[] = {
	{ "first", record, "does the first thing" },
	{ "second", record, "does another" },
	{ "version", record, "prints the version" },
	{ "__hidden", record, NULL },
	{ NULL, NULL, NULL },
};

static int program(int argc, char **argv)
{
	return cli_main(argc, argv, verbs);
}

static void finds_verbs(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, program, "firn second --flag x");
	assert_int_equal(c.code, 42);
	CHECK(called_argc == 3);
	CHECK_STR(str_of(called_with), "second --flag");
	capture_run(&c, program, "firn __hidden");
	CHECK_STR(str_of(called_with), "__hidden ");
	capture_run(&c, program, "firn --version");
	CHECK(c.code == 42 && called_argc == 1);
	capture_run(&c, program, "firn help first");
	CHECK_STR(str_of(called_with), "first --help");
}

static void gives_an_overview(void **state)
{
	(void)state;
	struct capture c;
	static const char *const lines[] = { "firn help", "firn --help", "firn -h" };
	for (size_t i = 0; i < ARRAY_COUNT(lines); i++) {
		capture_run(&c, program, lines[i]);
		assert_int_equal(c.code, CLI_OK);
		CHECK_HAS(c.out, "usage: firn VERB [flags]");
		CHECK_HAS(c.out, "  first     does the first thing\n");
		CHECK_HAS(c.out, "Exit codes: 0 ");
		CHECK(!strstr(c.out, "hidden"));
		CHECK_STR(str_of(c.err), "");
		check_width(c.out);
	}
	capture_run(&c, program, "firn");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_STR(str_of(c.out), "");
	CHECK_HAS(c.err, "usage: firn VERB [flags]");
}

static void suggests(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, program, "firn firsz");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_STR(str_of(c.err), "firn: there is no verb 'firsz'; did you mean `firn first`?\n");
	capture_run(&c, program, "firn help __hidden");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "there is no verb '__hidden'; `firn help` lists");
	capture_run(&c, program, "firn --wrong");
	assert_int_equal(c.code, CLI_USAGE);
}

TEST_MAIN(cmocka_unit_test(finds_verbs), cmocka_unit_test(gives_an_overview),
	cmocka_unit_test(suggests))
