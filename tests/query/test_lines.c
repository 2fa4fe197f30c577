/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include "query/report/report.h"
#include "query/stacks/lines.h"

static enum status make(const char *match, struct arena *a, struct query_lines *out, struct err *e)
{
	struct query_request plain = fake_request(HEAP);
	struct query_shown room;
	plain.match = str_of(match);
	struct query_report_request r = query_shown_request(&plain, &room);
	return query_lines_make(&fake_profile, &r, a, out, e);
}

static struct str name_of(const struct query_lines *l, uint32_t line)
{
	return profile_str(&fake_profile, l->keys[l->v[line].key].name);
}

static struct str binary_of(const struct query_lines *l, uint32_t line)
{
	return profile_str(&fake_profile, l->keys[l->v[line].key].mapping);
}

static void lists_frames_outermost_first(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_lines l;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	fake_sample(HEAP, 1, 1, 0, "", "main>f>g@/usr/bin/app");
	fake_sample(HEAP, 1, 1, 0, "", "g@/usr/bin/app");
	CHECK_OK(make("", &a, &l, &e), &e);
	CHECK(l.first[2] - l.first[1] == 3 && l.first[3] - l.first[2] == 1);
	uint32_t at = l.first[1];
	CHECK_STR(name_of(&l, at), "main");
	CHECK_STR(name_of(&l, at + 1), "f");
	CHECK_STR(name_of(&l, at + 2), "g");
	CHECK(!l.v[at].inlined && l.v[at + 1].inlined);
	CHECK(l.v[at + 2].key == l.v[l.first[2]].key); /* one function, one frame */
	CHECK_STR(binary_of(&l, at), "app");
	CHECK(l.key_count == 4); /* and the null location's */
}

static uint32_t add_python(const char *name, const char *file)
{
	struct profile_function f = { 0 };
	struct profile_line line = { 0 };
	struct profile_location loc = { .kind = FRAME_CPYTHON };
	uint32_t id = 0;
	CHECK(profile_add_string(&fake_profile, str_of(name), &f.name) == OK);
	CHECK(profile_add_string(&fake_profile, str_of(file), &f.filename) == OK);
	CHECK(profile_add_function(&fake_profile, &f, &line.function) == OK);
	CHECK(profile_add_location(&fake_profile, &loc, &line, 1, &id) == OK);
	return id;
}

static void tells_functions_apart_by_their_file(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_lines l;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	uint32_t here = add_python("process", "/srv/a.py"),
		 there = add_python("process", "/srv/b.py"),
		 package = add_python("<module>", "/srv/shop/__init__.py");
	CHECK_OK(make("", &a, &l, &e), &e);
	CHECK(l.v[l.first[here]].key != l.v[l.first[there]].key);
	CHECK_STR(binary_of(&l, l.first[here]), "a.py");
	CHECK_STR(binary_of(&l, l.first[there]), "b.py");
	CHECK_STR(binary_of(&l, l.first[package]), "shop/__init__.py");
}

static void names_what_has_no_name(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_lines l;
	struct err e = { 0 };
	uint32_t id = 0;
	arena_init(&a, 1 << 20);
	struct profile_mapping m = { 0 };
	struct profile_function system_only = { 0 };
	struct profile_line lines[2] = { { 0 } };
	struct profile_location loc = { .address = 0x1f };
	CHECK(profile_add_string(&fake_profile, STR("/lib/x.so"), &m.filename) == OK);
	CHECK(profile_add_mapping(&fake_profile, &m, &loc.mapping) == OK);
	CHECK(profile_add_location(&fake_profile, &loc, NULL, 0, &id) == OK);
	CHECK(profile_add_string(&fake_profile, STR("_Zsys"), &system_only.system_name) == OK);
	CHECK(profile_add_function(&fake_profile, &system_only, &lines[0].function) == OK);
	loc.address = 0x2f;
	CHECK(profile_add_location(&fake_profile, &loc, lines, 1, &id) == OK);
	lines[0].function = 0;
	loc.address = 0x3f;
	CHECK(profile_add_location(&fake_profile, &loc, lines, 1, &id) == OK);
	loc.mapping = 0;
	CHECK(profile_add_location(&fake_profile, &loc, NULL, 0, &id) == OK);
	CHECK_OK(make("", &a, &l, &e), &e);
	CHECK_STR(name_of(&l, l.first[1]), "x.so+0x1f");
	CHECK_STR(name_of(&l, l.first[2]), "_Zsys");
	CHECK_STR(name_of(&l, l.first[3]), "x.so+0x3f");
	CHECK_STR(name_of(&l, l.first[4]), "0x3f");
}

static void marks_matches(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_lines l;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	fake_sample(HEAP, 1, 1, 0, "", "abc@x;ABD@x;b@x;xab@x");
	CHECK_OK(make("aB", &a, &l, &e), &e);
	static const bool want[] = { true, true, false, true };
	for (uint32_t i = 0; i < 4; i++)
		CHECK((l.v[l.first[i + 1]].seen != 0) == want[i]);
}

static void keeps_to_the_limit(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_lines l = { .key_count = 77 };
	struct err e = { 0 };
	arena_init(&a, 64);
	fake_sample(HEAP, 1, 1, 0, "", "a@x;b@x;c@x");
	CHECK(make("", &a, &l, &e) == E_LIMIT);
	CHECK(l.key_count == 77);
}

static bool is_gone(void *ctx)
{
	(void)ctx;
	return true;
}

/* Conditions may be dear, and a query that nobody waits for is not gone on with. */
static void ends_with_its_query(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_lines l;
	struct err e = { 0 };
	struct query_request plain = fake_request(HEAP);
	struct query_shown room;
	arena_init(&a, 1 << 20);
	fake_sample(HEAP, 1, 1, 0, "", "main>f>g@/usr/bin/app");
	plain.match = STR("main");
	struct query_report_request r = query_shown_request(&plain, &room);
	r.cancel = is_gone;
	CHECK(query_lines_make(&fake_profile, &r, &a, &l, &e) == E_CANCELED);
	r.cancel = NULL;
	r.deadline_ns = 1;
	CHECK(query_lines_make(&fake_profile, &r, &a, &l, &e) == E_TIMEOUT);
	r.deadline_ns = 0;
	CHECK_OK(query_lines_make(&fake_profile, &r, &a, &l, &e), &e);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(lists_frames_outermost_first), WITH_STORE(names_what_has_no_name),
	WITH_STORE(tells_functions_apart_by_their_file), WITH_STORE(marks_matches),
	WITH_STORE(keeps_to_the_limit), WITH_STORE(ends_with_its_query))
