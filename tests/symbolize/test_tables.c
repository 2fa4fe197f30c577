/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on disk, in memory, missing and damaged. */
#include "own.h"

#include "base/clock.h"

#include <dlfcn.h>

static void first_asks_then_answers(void **state)
{
	(void)state;
	uint64_t vaddr = outer_function(1) - base();
	uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	uint32_t pending = resolve(0);
	char want[128];
	snprintf(want, sizeof(want), "test_symbolize_tables+0x%llx", (unsigned long long)vaddr);
	if (pending) { /* else the build was faster than this thread */
		CHECK(pending == 1);
		CHECK_STR(name_of(a, 0), want);
	}
	CHECK_OK(profile_clear(&t.p), NULL);
	a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
	/* Profiles have it as it was sent. */
	char upper[sizeof(t.build_id)];
	for (size_t i = 0; i < sizeof(upper); i++) {
		char c = t.build_id[i];
		upper[i] = c >= 'a' && c <= 'f' ? (char)(c - 'a' + 'A') : c;
	}
	CHECK_OK(profile_clear(&t.p), NULL);
	a = add_location(add_mapping(t.exe, upper, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
}

static void remembers_what_is_missing(void **state)
{
	(void)state;
	static const char id[] = "ffeeddccbbaa99887766554433221100ffeeddcc";
	add_location(add_mapping("/usr/lib/libnothere.so.1", id, 0, 0, 0), 0x1234, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	CHECK(metric("firn_symbolizer_files_missing_total") == 1);
	CHECK_OK(profile_clear(&t.p), NULL);
	uint32_t a = add_location(
		add_mapping("/usr/lib/libnothere.so.1", id, 0, 0, 0), 0x1234, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	CHECK_STR(name_of(a, 0), "libnothere.so.1+0x1234");
	CHECK(metric("firn_symbolizer_files_missing_total") == 1);
	CHECK(metric("firn_symbolizer_unknown_total") == 2);
}

static void works_on_a_budget(void **state)
{
	(void)state;
	t.config.memory_bytes = 1;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	for (int round = 0; round < 2; round++) {
		CHECK_OK(profile_clear(&t.p), NULL);
		uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0),
			outer_function(1) - base(), FRAME_NATIVE);
		CHECK(resolve(WAIT_MS) == 0);
		check_own(a);
		CHECK(metric("firn_symbolizer_open_tables") == 0);
	}
	CHECK(metric("firn_symbolizer_tables_built_total") == 1);
}

static void makes_a_damaged_table_again(void **state)
{
	(void)state;
	uint64_t vaddr = outer_function(1) - base();
	add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	symbolizer_free(t.s);
	shell("printf x | dd of=%s/%.2s/%s.sym bs=1 seek=300 conv=notrunc 2>/dev/null", t.dir,
		t.build_id, t.build_id + 2);
	shell("touch %s/%.2s/%s.sym.Abc123", t.dir, t.build_id, t.build_id + 2);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK_OK(profile_clear(&t.p), NULL);
	uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
	shell("test ! -e %s/%.2s/%s.sym.Abc123", t.dir, t.build_id, t.build_id + 2);
}

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

/* A file that had few samples waits as long as it is there; not when it goes, or is another one. */
static void builds_what_goes(void **state)
{
	(void)state;
	static const char *const makes_it_go[] = { "rm copy", "cp copy new && mv new copy" };
	const char *libc;
	char id[129], copy[128];
	find_libc(id, &libc);
	snprintf(copy, sizeof(copy), "%s/copy", t.dir);
	for (size_t i = 0; i < ARRAY_COUNT(makes_it_go); i++) {
		shell("rm -rf %s/*", t.dir);
		start_on_demand(3, true);
		shell("cp %s %s", libc, copy);
		offer(t.build_id, t.exe); /* stays */
		offer(id, copy);
		symbolizer_want(t.s, str_of(t.build_id), str_of(t.exe));
		symbolizer_want(t.s, str_of(id), str_of(copy));
		shell("cd %s && %s", t.dir, makes_it_go[i]);
		wait_for_built(1);
		symbolizer_want(t.s, str_of(t.build_id), str_of(t.exe));
		symbolizer_want(t.s, str_of(id), str_of(copy)); /* no other time */
		CHECK(metric("firn_symbolizer_tables_built_total") == 1);
		symbolizer_want(t.s, str_of(t.build_id), str_of(t.exe));
		wait_for_built(2);
	}
}

/* Of another mount namespace, say: its process may be its only way to it. */
static void builds_what_is_not_at_its_path(void **state)
{
	(void)state;
	start_on_demand(3, true);
	int fd = open(t.exe, O_RDONLY | O_CLOEXEC);
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

static void wait_until_dropped(const char *id)
{
	int64_t end = clock_monotonic_ns() + WAIT_MS * NS_PER_MS;
	while (has_table(id) && clock_monotonic_ns() < end)
		usleep(1000);
	CHECK(!has_table(id));
}

/* A question's table goes when it is not used, and not where that was the last of its names. */
static void drops_what_no_question_uses(void **state)
{
	(void)state;
	const char *libc;
	char id[129], copy[128];
	find_libc(id, &libc);
	snprintf(copy, sizeof(copy), "%s/copy", t.dir);
	shell("cp %s %s", libc, copy);
	t.config.brief_ns = 3600 * NS_PER_SEC;
	start_on_demand(3, true);
	offer(t.build_id, t.exe);
	offer(id, copy);
	add_location(add_mapping(copy, id, 0, 0, 0), 0x1234, FRAME_NATIVE);
	add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), 1, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	CHECK(has_table(id) && has_table(t.build_id));
	symbolizer_free(t.s);
	shell("rm -r %s/??", t.dir);

	t.config.brief_ns = 0;
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	for (int round = 1; round <= 2; round++) {
		CHECK_OK(profile_clear(&t.p), NULL);
		offer(t.build_id, t.exe);
		uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0),
			outer_function(1) - base(), FRAME_NATIVE);
		CHECK(resolve(WAIT_MS) == 0);
		check_own(a);
		wait_until_dropped(t.build_id);
	}
	int fd = open(copy, O_RDONLY | O_CLOEXEC);
	unlink(copy);
	CHECK_OK(symbolizer_offer(t.s, id, copy, fd, NULL), NULL);
	add_location(add_mapping(copy, id, 0, 0, 0), 0x1234, FRAME_NATIVE);
	add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), 2, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	wait_until_dropped(t.build_id);
	CHECK(has_table(id));
	CHECK(metric("firn_symbolizer_tables_unused_total") >= 3);
}

/* Many threads, tables that do not fit together, offers in between: each answer is whole or not yet
 * there, never wrong. */
#define THREADS 4
#define ROUNDS 30

static void *ask(void *ctx)
{
	size_t *named = ctx;
	uint64_t vaddr = (uint64_t)((uintptr_t)outer_function - base());
	for (int i = 0; i < ROUNDS; i++) {
		struct profile p;
		CHECK_OK(profile_init(&p, 1 << 20), NULL);
		struct profile_mapping m = { 0 };
		CHECK_OK(profile_add_string(&p, str_of(t.exe), &m.filename), NULL);
		CHECK_OK(profile_add_string(&p, str_of(t.build_id), &m.build_id), NULL);
		struct profile_location loc = { .address = vaddr, .kind = FRAME_NATIVE };
		uint32_t id, pending;
		CHECK_OK(profile_add_mapping(&p, &m, &loc.mapping), NULL);
		CHECK_OK(profile_add_location(&p, &loc, NULL, 0, &id), NULL);
		if (i % 10 == 5)
			CHECK_OK(symbolizer_offer(t.s, t.build_id, t.exe,
					 open(t.exe, O_RDONLY | O_CLOEXEC), NULL),
				NULL);
		CHECK_OK(symbolizer_resolve(t.s, &p, i % 2 ? WAIT_MS : 0, NULL, &pending, NULL),
			NULL);
		const struct profile_location *l = &p.locations.v[id];
		const struct profile_function *f =
			&p.functions.v[p.lines.v[l->line_first + l->line_count - 1].function];
		bool good = str_eq(profile_str(&p, f->name), STR("outer_function"));
		CHECK(good || pending == 1);
		*named += good;
		profile_deinit(&p);
	}
	return NULL;
}

static void answers_many_threads(void **state)
{
	(void)state;
	t.config.memory_bytes = 1;
	t.config.workers = 3;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	pthread_t threads[THREADS];
	size_t named[THREADS] = { 0 };
	for (int i = 0; i < THREADS; i++)
		CHECK_OK(os_thread_start(&threads[i], "ask", ask, &named[i], NULL), NULL);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		CHECK(named[i] >= ROUNDS / 2);
	}
}

TEST_MAIN_WITH(debuginfo_child_main, CASE(first_asks_then_answers), CASE(remembers_what_is_missing),
	CASE(works_on_a_budget), CASE(makes_a_damaged_table_again), CASE(builds_on_demand),
	CASE(builds_what_goes), CASE(builds_what_is_not_at_its_path),
	CASE(drops_what_no_question_uses), CASE(answers_many_threads))
