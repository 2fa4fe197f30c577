/* SPDX-License-Identifier: Apache-2.0 */
/* Files that were offered wait until their table is needed, or would be the last of their names. */
#include "own.h"

#include "base/clock.h"

#include <dlfcn.h>

/* Its build id; *out_path: where it lies. */
static void find_libc(char id[129], const char **out_path)
{
	Dl_info libc;
	struct objfile *obj;
	CHECK(dladdr((void *)(uintptr_t)getppid, &libc) != 0);
	CHECK_OK(objfile_open(libc.dli_fname, &obj, NULL), NULL);
	snprintf(id, 129, "%s", objfile_build_id(obj));
	objfile_close(obj);
	*out_path = libc.dli_fname;
}

/* A copy in the folder that has not been changed for long. */
static void make_old(const char *from, const char *name, char out[128])
{
	snprintf(out, 128, "%s/%s", t.dir, name);
	shell("cp %s %s && touch -d '2 days ago' %s", from, out, out);
}

static void start_on_demand(uint32_t wants_min, bool local_files)
{
	t.config.on_demand = true;
	t.config.wants_min = wants_min;
	t.config.look_ns = 10 * NS_PER_MS;
	t.config.local_files = local_files;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
}

static void offer(const char *id, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK_OK(symbolizer_offer(t.s, id, path, fd, NULL), NULL);
}

static void wait_for_built(uint64_t count)
{
	int64_t end = clock_monotonic_ns() + WAIT_MS * NS_PER_MS;
	while (metric("firn_symbolizer_tables_built_total") < count && clock_monotonic_ns() < end)
		usleep(1000);
	CHECK(metric("firn_symbolizer_tables_built_total") == count);
}

/* What was offered first and is not asked for is left alone, until it is. */
static void builds_on_demand(void **state)
{
	(void)state;
	const char *libc;
	char id[129];
	struct str pending[2];
	find_libc(id, &libc);
	start_on_demand(1, false);
	offer(t.build_id, t.exe);
	offer(id, libc);
	symbolizer_want(t.s, str_of(id), STR("/nowhere/libc.so.6"));
	add_location(add_mapping("/nowhere/libc.so.6", id, 0, 0, 0), 0x1234, FRAME_NATIVE);
	size_t waiting = symbolizer_list_pending(t.s, &t.p, pending, ARRAY_COUNT(pending));
	CHECK(waiting == 0 || (waiting == 1 && str_eq(pending[0], STR("libc.so.6"))));
	CHECK(resolve(WAIT_MS) == 0);
	CHECK(metric("firn_symbolizer_tables_built_total") == 1);
	uint32_t a = add_location(add_mapping("/nowhere/exe", t.build_id, 0, 0, 0),
		outer_function(1) - base(), FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
	CHECK(metric("firn_symbolizer_tables_built_total") == 2);
	CHECK(symbolizer_list_pending(t.s, &t.p, pending, ARRAY_COUNT(pending)) == 0);
}

/* A file that had few samples waits as long as it is there; not when it goes, or is another one, or
 * may be written over. */
static void builds_what_goes(void **state)
{
	(void)state;
	static const char *const makes_it_go[] = { "rm copy", "cp copy new && mv new copy",
		"touch copy" };
	const char *libc;
	char id[129], copy[128], exe[128];
	find_libc(id, &libc);
	for (size_t i = 0; i < ARRAY_COUNT(makes_it_go); i++) {
		shell("rm -rf %s/*", t.dir);
		start_on_demand(3, true);
		make_old(libc, "copy", copy);
		make_old(t.exe, "exe", exe);
		offer(t.build_id, exe); /* stays */
		offer(id, copy);
		symbolizer_want(t.s, str_of(t.build_id), str_of(exe));
		symbolizer_want(t.s, str_of(id), str_of(copy));
		shell("cd %s && %s", t.dir, makes_it_go[i]);
		wait_for_built(1);
		symbolizer_want(t.s, str_of(t.build_id), str_of(exe));
		symbolizer_want(t.s, str_of(id), str_of(copy)); /* no other time */
		CHECK(metric("firn_symbolizer_tables_built_total") == 1);
		symbolizer_want(t.s, str_of(t.build_id), str_of(exe));
		wait_for_built(2);
	}
}

/* Of another mount namespace, say: its process may be its only way to it. */
static void builds_what_is_not_at_its_path(void **state)
{
	(void)state;
	char exe[128];
	make_old(t.exe, "exe", exe);
	start_on_demand(3, true);
	int fd = open(exe, O_RDONLY | O_CLOEXEC);
	CHECK_OK(symbolizer_offer(t.s, t.build_id, "/nowhere/exe", fd, NULL), NULL);
	symbolizer_want(t.s, str_of(t.build_id), STR("/nowhere/exe"));
	wait_for_built(1);
}

static bool has_table(const char *id)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%.2s/%s.sym", t.dir, id, id + 2);
	return access(path, F_OK) == 0;
}

/* Its pages are memory of the process; the next question has it back. */
static void closes_what_no_question_uses(void **state)
{
	(void)state;
	t.config.close_ns = 0;
	t.config.look_ns = 10 * NS_PER_MS;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	offer(t.build_id, t.exe);
	for (int round = 1; round <= 2; round++) {
		CHECK_OK(profile_clear(&t.p), NULL);
		uint32_t a = add_location(add_mapping("/nowhere/exe", t.build_id, 0, 0, 0),
			outer_function(1) - base(), FRAME_NATIVE);
		CHECK(resolve(WAIT_MS) == 0);
		check_own(a);
		int64_t end = clock_monotonic_ns() + WAIT_MS * NS_PER_MS;
		while (metric("firn_symbolizer_open_tables") > 0 && clock_monotonic_ns() < end)
			usleep(1000);
		CHECK(metric("firn_symbolizer_open_tables") == 0);
		CHECK(has_table(t.build_id));
	}
	CHECK(metric("firn_symbolizer_tables_built_total") == 1);
}

TEST_MAIN_WITH(debuginfo_child_main, CASE(builds_on_demand), CASE(builds_what_goes),
	CASE(builds_what_is_not_at_its_path), CASE(closes_what_no_question_uses))
