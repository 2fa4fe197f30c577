/* SPDX-License-Identifier: Apache-2.0 */
/* Names are the same whether one thread gives them or two, in whatever order these come to it. */
#include "own.h"

#include "os/os.h"

/* More than are named by one thread, in each of some mappings. */
enum { MAPPINGS = 12, EACH = 1000 };

enum order { FIRST_ONLY, FIRST_BEFORE, SECOND_BEFORE, TOGETHER, ORDERS };

struct job {
	os_pool_fn *fn;
	void *arg;
};

static void *run_second(void *ctx)
{
	struct job *j = ctx;
	j->fn(j->arg, 1);
	return NULL;
}

static enum order order;

/* In place of the pool's own. */
void os_pool_run(struct os_pool *p, unsigned n, os_pool_fn *fn, void *arg)
{
	struct job j = { fn, arg };
	pthread_t thread;
	CHECK(!p && n == 2);
	if (order == FIRST_ONLY || order == FIRST_BEFORE)
		fn(arg, 0);
	if (order == FIRST_BEFORE || order == SECOND_BEFORE)
		fn(arg, 1);
	if (order == SECOND_BEFORE)
		fn(arg, 0);
	if (order != TOGETHER)
		return;
	CHECK(pthread_create(&thread, NULL, run_second, &j) == 0);
	fn(arg, 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* Addresses of this program, ascending and then in no order, under several paths; some beyond it,
 * some of other kinds, some that have lines. */
static void fill(void)
{
	struct objfile *obj;
	CHECK_OK(objfile_open(t.exe, &obj, NULL), NULL);
	const struct objfile_section *text = objfile_section(obj, ".text");
	CHECK(text);
	profile_deinit(&t.p);
	CHECK_OK(profile_init(&t.p, 64 << 20), NULL);
	for (uint32_t m = 0; m < MAPPINGS; m++) {
		char path[64];
		snprintf(path, sizeof(path), "/a/program-%u", m);
		uint32_t map = add_mapping(path, m % 4 == 3 ? "" : t.build_id, 0, 0, 0);
		uint64_t step = text->size / EACH + 1;
		for (uint64_t i = 0; i < EACH; i++) {
			uint64_t at = m % 2 ? i * 7919 % EACH : i;
			add_location(map, text->addr + at * step,
				i % 50 == 49 ? FRAME_KERNEL : FRAME_NATIVE);
		}
	}
	struct profile_function f = { .name = string("_ZN3FooIiE3barEv") };
	struct profile_line line = { .line = 7 };
	uint32_t id;
	CHECK_OK(profile_add_function(&t.p, &f, &line.function), NULL);
	for (uint32_t i = 1; i < t.p.locations.len; i += 97)
		CHECK_OK(profile_add_location(
				 &t.p, &(struct profile_location){ .address = i }, &line, 1, &id),
			NULL);
	objfile_close(obj);
}

static void check_same(const struct profile *a, const struct profile *b)
{
	CHECK(a->strings.len == b->strings.len);
	for (uint32_t i = 0; i < a->strings.len; i++)
		CHECK(str_eq(profile_str(a, i), profile_str(b, i)));
	CHECK(a->functions.len == b->functions.len && a->lines.len == b->lines.len &&
		a->locations.len == b->locations.len);
	CHECK(memcmp(a->functions.v, b->functions.v, a->functions.len * sizeof(*a->functions.v)) ==
		0);
	CHECK(memcmp(a->lines.v, b->lines.v, a->lines.len * sizeof(*a->lines.v)) == 0);
	for (size_t i = 0; i < a->locations.len; i++)
		CHECK(a->locations.v[i].line_first == b->locations.v[i].line_first &&
			a->locations.v[i].line_count == b->locations.v[i].line_count);
}

static void two_threads_name_as_one_does(void **state)
{
	(void)state;
	struct profile alone;
	uint32_t pending;
	struct err e = { 0 };
	/* The table is made by its path, then found by its id. */
	add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), 1, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	fill();
	CHECK(resolve(WAIT_MS) == 0);
	CHECK(t.p.functions.len > 100);
	alone = t.p;
	CHECK_OK(profile_init(&t.p, 1 << 20), NULL);
	for (order = FIRST_ONLY; order < ORDERS; order++) {
		fill();
		CHECK_OK(symbolizer_resolve(t.s, &t.p, WAIT_MS, &pending, &e), &e);
		CHECK(pending == 0);
		CHECK_OK(profile_validate(&t.p, &e), &e);
		check_same(&alone, &t.p);
	}
	profile_deinit(&alone);
}

TEST_PROGRAM_WITH(debuginfo_child_main)
{
	const struct CMUnitTest tests[] = { CASE(two_threads_name_as_one_does) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
