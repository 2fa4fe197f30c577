/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "os/os.h"

#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/firn-test-os-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static const char *in_dir(const char *name)
{
	static char path[200];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static int remove_dir(void **state)
{
	(void)state;
	unlink(in_dir("f"));
	rmdir(in_dir("a/b"));
	rmdir(in_dir("a"));
	return rmdir(dir);
}

static void replaces_and_reads(void **state)
{
	(void)state;
	struct err e;
	CHECK_OK(os_replace_file(in_dir("f"), "first", 5, 0640, &e), &e);
	CHECK_OK(os_replace_file(in_dir("f"), "replaced", 8, 0640, &e), &e);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 8);
	CHECK_OK(os_read_file(in_dir("f"), &b, &e), &e);
	CHECK_STR(buf_view(&b), "replaced");
	const struct str parts[] = { STR("re"), STR(""), STR("placed") };
	CHECK(unlink(in_dir("f")) == 0);
	CHECK_OK(os_replace_file_parts(in_dir("f"), parts, ARRAY_COUNT(parts), 0640, &e), &e);
	b.len = 0;
	CHECK_OK(os_read_file(in_dir("f"), &b, &e), &e);
	CHECK_STR(buf_view(&b), "replaced");
	CLEANUP(buf_deinit) struct buf small;
	buf_init(&small, 7);
	CHECK(os_read_file(in_dir("f"), &small, &e) == E_LIMIT);
	CHECK(os_read_file(in_dir("absent"), &b, &e) == E_NOTFOUND);
	CHECK(os_replace_file("/proc/nowhere/x", "x", 1, 0600, &e) == E_NOTFOUND);
	CLEANUP(fd_cleanup) int fd = open(in_dir("f"), O_RDONLY);
	char got[8];
	CHECK_OK(os_pread_full(fd, got, 4, 4, "f", &e), &e);
	CHECK(memcmp(got, "aced", 4) == 0);
	CHECK(os_pread_full(fd, got, 5, 4, "f", &e) == E_CORRUPT);
	CHECK(strstr(e.text, "+8"));
}

static void opens_regular_files_only(void **state)
{
	(void)state;
	struct err e;
	int fd = -1;
	CHECK_OK(os_replace_file(in_dir("f"), "text", 4, 0640, &e), &e);
	CHECK_OK(os_open_regular(AT_FDCWD, in_dir("f"), &fd, &e), &e);
	char got[4];
	CHECK_OK(os_pread_full(fd, got, 4, 0, "f", &e), &e);
	CHECK(memcmp(got, "text", 4) == 0);
	CHECK(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	fd_cleanup(&fd);
	CHECK(os_open_regular(AT_FDCWD, in_dir("absent"), &fd, &e) == E_NOTFOUND);
	CHECK(os_open_regular(AT_FDCWD, dir, &fd, &e) == E_INVALID);
	/* A pipe stands for a device: the kernel would tell if anybody opened it. */
	CHECK(mkfifo(in_dir("pipe"), 0600) == 0);
	CLEANUP(fd_cleanup) int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	CHECK(inotify_add_watch(watch, in_dir("pipe"), IN_OPEN) >= 0);
	CHECK(os_open_regular(AT_FDCWD, in_dir("pipe"), &fd, &e) == E_INVALID);
	char event[512];
	CHECK(read(watch, event, sizeof(event)) < 0 && errno == EAGAIN);
	CLEANUP(fd_cleanup) int opened = open(in_dir("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	CHECK(opened >= 0);
	CHECK(read(watch, event, sizeof(event)) > 0);
	unlink(in_dir("pipe"));
}

static void makes_and_lists_folders(void **state)
{
	(void)state;
	struct err e;
	CHECK_OK(os_make_dirs(in_dir("a/b"), &e), &e);
	CHECK_OK(os_make_dirs(in_dir("a/b"), &e), &e);
	CHECK_OK(os_replace_file(in_dir("f"), "", 0, 0600, &e), &e);
	CHECK(os_make_dirs(in_dir("f"), &e) == E_EXISTS);
	CHECK(os_make_dirs("", &e) == E_INVALID);
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 16);
	struct str *names;
	size_t count;
	CHECK_OK(os_list_dir(dir, &a, &names, &count, &e), &e);
	CHECK(count == 2);
	CHECK_STR(names[0], "a");
	CHECK_STR(names[1], "f");
	CHECK(os_list_dir(in_dir("absent"), &a, &names, &count, &e) == E_NOTFOUND);
}

static void knows_itself(void **state)
{
	(void)state;
	CHECK(os_self_rss_bytes() > 100000);
	volatile uint64_t x = 1;
	int64_t before = os_self_cpu_ns();
	while (os_self_cpu_ns() == before)
		x = x * 3;
	CHECK(os_self_cpu_ns() > before);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(replaces_and_reads),
		cmocka_unit_test(opens_regular_files_only),
		cmocka_unit_test(makes_and_lists_folders), cmocka_unit_test(knows_itself) };
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
