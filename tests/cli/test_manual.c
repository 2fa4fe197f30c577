/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

static const struct cli_verb verbs[] = { { "store", cli_store, "look after samples" },
	{ "manual", cli_manual, "write man pages" }, { NULL, NULL, NULL } };

static int program(int argc, char **argv)
{
	return cli_main(argc, argv, verbs);
}

static void writes_files(void **state)
{
	(void)state;
	struct capture c;
	char dir[] = "/tmp/firn-manual-XXXXXX", line[128], path[256];
	CHECK(mkdtemp(dir) != NULL);
	snprintf(line, sizeof(line), "firn manual %s/share", dir);
	capture_run(&c, program, line);
	CHECK_STR(str_of(c.err), "");
	CHECK_STR(str_of(c.out), "");
	assert_int_equal(c.code, CLI_OK);
	static const char *const names[] = { "man/man1/firn.1", "man/man1/firn-store.1",
		"man/man1/firn-store-verify.1", "man/man1/firn-manual.1",
		"man/man7/firn-disk-layout.7", "bash-completion/completions/firn",
		"zsh/site-functions/_firn", "fish/vendor_completions.d/firn.fish" };
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		snprintf(path, sizeof(path), "%s/share/%s", dir, names[i]);
		assert_int_equal(access(path, R_OK), 0);
	}
	snprintf(path, sizeof(path), "rm -r %s", dir);
	assert_int_equal(system(path), 0);
}

static void refuses(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, program, "firn manual");
	assert_int_equal(c.code, CLI_USAGE);
	capture_run(&c, program, "firn manual /dev/null/x");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "Not a directory");
	capture_run(&c, program, "firn manual --help");
	assert_int_equal(c.code, CLI_OK);
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(writes_files), cmocka_unit_test(refuses))
