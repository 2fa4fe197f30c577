/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs/procfs.h"

#include "test.h"

#include <unistd.h>

/* clang-format off */
static const struct { const char *name; const char *text; const char *want; } files[] = {
	{ "version 2", "0::/system.slice/x.service\n", "/system.slice/x.service" },
	{ "both, 2 says more", "9:cpu:/a\n0::/b\n", "/b" },
	{ "both, 2 says nothing", "9:memory:/m\n8:cpu,cpuacct:/a\n0::/\n", "/a" },
	{ "only memory says something", "9:memory:/m\n8:cpu:/\n0::/\n", "/m" },
	{ "nothing says anything", "8:cpu:/\n0::/\n", "/" },
	{ "colons in the path", "0::/a:b:c\n", "/a:b:c" },
	{ "no newline", "0::/a", "/a" },
};
/* clang-format on */

static void chooses_a_line(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 4096);
	struct str path;
	FOR_EACH_CASE (c, files) {
		CHECK_CASE(c, procfs_cgroup_parse(str_of(c->text), &a, &path, NULL) == OK);
		CHECK_CASE(c, str_eq(path, str_of(c->want)));
	}
	struct err e;
	CHECK(procfs_cgroup_parse(STR(""), &a, &path, &e) == E_NOTFOUND);
	CHECK(procfs_cgroup_parse(STR("0:/a\n"), &a, &path, &e) == E_INVALID);
	CHECK(procfs_cgroup_parse(STR("0::a\n"), &a, &path, &e) == E_INVALID);
	CHECK_OK(procfs_cgroup((int)getpid(), &a, &path, &e), &e);
	CHECK(path.len && path.p[0] == '/');
}

TEST_MAIN(cmocka_unit_test(chooses_a_line))
