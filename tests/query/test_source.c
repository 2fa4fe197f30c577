/* SPDX-License-Identifier: Apache-2.0 */
/* Values by line and by address: what counts once, builds, and what is of another file. */
#include "fake.h"

/* As fake.c numbers addresses. */
static uint64_t address_of(const char *spec)
{
	return hash64(spec, strlen(spec)) >> 16;
}

static const struct query_place *place_at(const struct query_places *p, uint64_t at)
{
	for (uint32_t i = 0; i < p->count; i++)
		if (p->v[i].at == at)
			return &p->v[i];
	return NULL;
}

static void samples(void)
{
	fake_sample(HEAP, 1, 300, 0, "comm=a", "main@/bin/x;f@/bin/x;f@/bin/x;g@/lib/y");
	fake_sample(HEAP, 2, 50, 0, "comm=b", "main@/bin/x;f>inner@/bin/x");
	fake_sample(HEAP, 3, 7, 0, "comm=b", "main@/bin/x;f@/bin/x");
	fake_sample(HEAP, 4, 1, 0, "", "main@/bin/x;0x12@/lib/y");
}

static void sums_lines(void **state)
{
	(void)state;
	static const struct {
		const char *name, *selector, *file, *build;
		uint32_t count;
		int64_t self, total; /* of the first */
	} cases[] = {
		{ "recursion counts once", HEAP, "/src/f.c", "", 1, 7, 357 },
		{ "inlined", HEAP, "/src/inner.c", "", 1, 50, 50 },
		{ "leaf", HEAP, "/src/g.c", "", 1, 300, 300 },
		{ "selector", HEAP "{comm=\"b\"}", "/src/f.c", "", 1, 7, 57 },
		{ "not the end of a path", HEAP, "f.c", "", 0, 0, 0 },
		{ "another build", HEAP, "/src/f.c", "abcd", 0, 0, 0 },
		{ "no such file", HEAP, "/src/none.c", "", 0, 0, 0 },
	};
	samples();
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		struct query_places p;
		struct err e = { 0 };
		struct query_request r = fake_request(c->selector);
		arena_init(&a, 1 << 20);
		CHECK_OK(query_source_places(
				 &fake_engine, &r, str_of(c->file), str_of(c->build), &a, &p, &e),
			&e);
		CHECK_CASE(c, p.count == c->count);
		CHECK_CASE(c, p.count == 0 || (p.v[0].self == c->self && p.v[0].total == c->total));
		CHECK_CASE(c, str_eq(p.unit, STR("bytes")));
		CHECK_CASE(c, p.total == (strstr(c->selector, "comm") ? 57 : 358));
	}
}

/* An instruction is of the function that it lies in; what was inlined there is part of it. */
static void sums_addresses(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_places p;
	struct err e = { 0 };
	struct query_request r = fake_request(HEAP);
	arena_init(&a, 1 << 20);
	samples();
	CHECK_OK(query_code_places(&fake_engine, &r, STR("f"), STR("x"), STR(""), &a, &p, &e), &e);
	CHECK(p.count == 2 && p.v[0].at < p.v[1].at && p.build_count == 1);
	const struct query_place *call = place_at(&p, address_of("f@/bin/x"));
	const struct query_place *inlined = place_at(&p, address_of("f>inner@/bin/x"));
	CHECK(call && inlined);
	CHECK(call->self == 7 && call->total == 307);
	CHECK(inlined->self == 50 && inlined->total == 50);
	CHECK_OK(query_code_places(&fake_engine, &r, STR("inner"), STR("x"), STR(""), &a, &p, &e),
		&e);
	CHECK(p.count == 0);
	CHECK_OK(query_code_places(&fake_engine, &r, STR("f"), STR("y"), STR(""), &a, &p, &e), &e);
	CHECK(p.count == 0 && p.build_count == 0);
	/* Of any binary: that of the build which costs most, which the path tells. */
	fake_sample(HEAP, 5, 2, 0, "", "h@/built/y");
	fake_sample(HEAP, 6, 3, 0, "", "h@/built/x");
	CHECK_OK(query_code_places(&fake_engine, &r, STR("h"), STR(""), STR(""), &a, &p, &e), &e);
	CHECK(p.count == 1 && p.v[0].self == 3 && str_eq(p.path, STR("/built/x")));
	CHECK(p.build_count == 2 && str_eq(p.builds[1], STR("y")));
	CHECK_OK(query_code_places(&fake_engine, &r, STR("h"), STR(""), STR("y"), &a, &p, &e), &e);
	CHECK(p.count == 1 && p.v[0].self == 2 && str_eq(p.path, STR("/built/y")));
}

static void passes_errors_on(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_places p = { .count = 9 };
	struct err e = { 0 };
	struct query_request r = fake_request(HEAP "{comm=");
	arena_init(&a, 1 << 20);
	samples();
	CHECK(query_source_places(&fake_engine, &r, STR("f"), STR(""), &a, &p, &e) == E_INVALID);
	CHECK(p.count == 9);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, fake_setup, fake_teardown)
TEST_MAIN(TEST(sums_lines), TEST(sums_addresses), TEST(passes_errors_on))
