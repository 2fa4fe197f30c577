/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "debuginfo/symtab/readers.h"

/* clang-format off */
static const struct { const char *name, *dir, *path, *want; } cases[] = {
	{ "absolute", "/build", "/src/a.c", "/src/a.c" },
	{ "relative", "/build", "src/a.c", "/build/src/a.c" },
	{ "here", "/build", "./a.c", "/build/a.c" },
	{ "up", "/build/out", "../src/a.c", "/build/src/a.c" },
	{ "up inside", "/build", "/usr/lib/../include//b.h", "/usr/include/b.h" },
	{ "up beyond the root", "/", "../../a.c", "/a.c" },
	{ "no folder", NULL, "../src/./a.c", "../src/a.c" },
	{ "a folder that says nothing", "out", "a/../../b.c", "../b.c" },
	{ "up twice", "", "../../b.c", "../../b.c" },
	{ "a name alone", NULL, "a.c", "a.c" },
	{ "not a path", "/build", "<built-in>", "/build/<built-in>" },
	{ "nothing", NULL, "", "" },
};
/* clang-format on */

static void joins(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		char out[DEBUGINFO_SOURCE_PATH_MAX];
		CHECK_CASE(c, debuginfo_path_join(c->dir, c->path, out));
		CHECK_STR(str_of(out), c->want);
	}
}

static void too_long(void **state)
{
	(void)state;
	static char path[DEBUGINFO_SOURCE_PATH_MAX + 1], out[DEBUGINFO_SOURCE_PATH_MAX];
	memset(path, 'a', DEBUGINFO_SOURCE_PATH_MAX);
	CHECK(!debuginfo_path_join(NULL, path, out));
	path[DEBUGINFO_SOURCE_PATH_MAX - 1] = 0;
	CHECK(debuginfo_path_join(NULL, path, out) && strcmp(path, out) == 0);
	CHECK(!debuginfo_path_join("/x", path, out));
}

TEST_MAIN(cmocka_unit_test(joins), cmocka_unit_test(too_long))
