/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of cgroups, in directories made as the kernel shows them. */
#include "os/os.h"

#include "test.h"

#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

struct file {
	const char *path, *text;
};

static const struct {
	const char *name;
	struct file files[5];
	uint64_t want;
} cases[] = {
	{ "nothing is known", { { 0 } }, UINT64_MAX },
	{ "v2: none",
		{ { "/proc/self/cgroup", "0::/a\n" }, { "/sys/fs/cgroup/a/memory.max", "max\n" } },
		UINT64_MAX },
	{ "v2: its own",
		{ { "/proc/self/cgroup", "0::/a/b.service\n" },
			{ "/sys/fs/cgroup/a/b.service/memory.max", "1048576\n" },
			{ "/sys/fs/cgroup/a/memory.max", "max\n" } },
		1048576 },
	{ "v2: of what it lies in",
		{ { "/proc/self/cgroup", "0::/a/b\n" },
			{ "/sys/fs/cgroup/a/b/memory.max", "9000\n" },
			{ "/sys/fs/cgroup/a/memory.max", "8000\n" } },
		8000 },
	{ "v2: a container without a namespace of its own",
		{ { "/proc/self/cgroup", "0::/docker/0123\n" },
			{ "/sys/fs/cgroup/memory.max", "7000\n" } },
		7000 },
	{ "v1",
		{ { "/proc/self/cgroup", "3:cpu,cpuacct:/x\n2:memory:/x\n1:name=systemd:/y\n" },
			{ "/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "6000\n" },
			{ "/sys/fs/cgroup/memory/memory.limit_in_bytes",
				"9223372036854771712\n" } },
		6000 },
	{ "what is no number",
		{ { "/proc/self/cgroup", "0::/\n:::\nx" },
			{ "/sys/fs/cgroup/memory.max", "many\n" } },
		UINT64_MAX },
};

static void write_file(const char *root, const struct file *f)
{
	char path[256], dir[256];
	struct err e = { 0 };
	snprintf(path, sizeof(path), "%s%s", root, f->path);
	snprintf(dir, sizeof(dir), "%s", path);
	*strrchr(dir, '/') = 0;
	CHECK_OK(os_make_dirs(dir, &e), &e);
	FILE *out = fopen(path, "w");
	CHECK(out && fputs(f->text, out) >= 0 && fclose(out) == 0);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *f)
{
	(void)st;
	(void)flag;
	(void)f;
	return remove(path);
}

static void finds_the_least_limit(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		char root[] = "/tmp/firn_test_XXXXXX";
		CHECK(mkdtemp(root));
		for (size_t i = 0; i < ARRAY_COUNT(c->files) && c->files[i].path; i++)
			write_file(root, &c->files[i]);
		CHECK_CASE(c, os_cgroup_memory_bytes(root) == c->want);
		CHECK(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
	}
}

static void the_host_has_some(void **state)
{
	(void)state;
	CHECK(os_host_memory_bytes() > (64 << 20));
	CHECK(os_cgroup_memory_bytes("") > 0);
}

TEST_MAIN(cmocka_unit_test(finds_the_least_limit), cmocka_unit_test(the_host_has_some))
