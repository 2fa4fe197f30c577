/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "cli/process/tempdir.h"

#include <stdlib.h>
#include <sys/stat.h>

static void lives_as_long_as_it_is_wanted(void **state)
{
	(void)state;
	char dir[CLI_TEMP_DIR_BYTES], below[128];
	struct stat st;
	CHECK(unsetenv("TMPDIR") == 0 && cli_temp_dir_make("verb", dir));
	CHECK(str_starts(str_of(dir), STR("/tmp/firn-verb-")));
	snprintf(below, sizeof(below), "%s/a", dir);
	CHECK(mkdir(below, 0700) == 0);
	snprintf(below, sizeof(below), "%s/a/link", dir);
	CHECK(symlink("/etc", below) == 0);
	cli_temp_dir_remove(dir);
	CHECK(stat(dir, &st) < 0 && stat("/etc/passwd", &st) == 0);
	cli_temp_dir_remove("");
}

static int make(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	char dir[CLI_TEMP_DIR_BYTES];
	return cli_temp_dir_make("verb", dir) || dir[0];
}

static void says_where_it_cannot_be(void **state)
{
	(void)state;
	struct capture c;
	CHECK(setenv("TMPDIR", "/nonexistent", 1) == 0);
	capture_run(&c, make, "x");
	assert_int_equal(c.code, 0);
	CHECK_HAS(c.err, "/nonexistent/firn-verb-");
	CHECK(unsetenv("TMPDIR") == 0);
}

TEST_MAIN(
	cmocka_unit_test(lives_as_long_as_it_is_wanted), cmocka_unit_test(says_where_it_cannot_be))
