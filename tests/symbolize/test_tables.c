/* SPDX-License-Identifier: Apache-2.0 */
/* Tables on disk, in memory, missing and damaged. */
#include "own.h"

#include <errno.h>

static void first_asks_then_answers(void **state)
{
	(void)state;
	uint64_t vaddr = outer_function(1) - base();
	uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	uint32_t pending = resolve(0);
	char want[128];
	snprintf(want, sizeof(want), "%s+0x%llx", program_invocation_short_name,
		(unsigned long long)vaddr);
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
		CHECK_OK(symbolizer_resolve(t.s, &p, i % 2 ? WAIT_MS : 0, &pending, NULL), NULL);
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
	CASE(works_on_a_budget), CASE(makes_a_damaged_table_again), CASE(answers_many_threads))
