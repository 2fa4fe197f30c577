/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

static struct str name_of(const struct query_frames *f, uint32_t id)
{
	return profile_str(&fake_profile, f->v[id & ~QUERY_FRAME_INLINED].name);
}

static void lists_frames_outermost_first(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_frames f;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	fake_sample(HEAP, 1, 1, 0, "", "main>f>g@/usr/bin/app");
	fake_sample(HEAP, 1, 1, 0, "", "g@/usr/bin/app");
	CHECK_OK(query_frames_make(&fake_profile, STR(""), &a, &f, &e), &e);
	CHECK(!f.matched);
	CHECK(f.first[2] - f.first[1] == 3 && f.first[3] - f.first[2] == 1);
	const uint32_t *ids = f.ids + f.first[1];
	CHECK_STR(name_of(&f, ids[0]), "main");
	CHECK_STR(name_of(&f, ids[1]), "f");
	CHECK_STR(name_of(&f, ids[2]), "g");
	CHECK(!(ids[0] & QUERY_FRAME_INLINED) && (ids[1] & QUERY_FRAME_INLINED));
	CHECK((ids[2] & ~QUERY_FRAME_INLINED) == f.ids[f.first[2]]); /* one function, one frame */
	CHECK_STR(profile_str(&fake_profile, f.v[f.ids[f.first[2]]].binary), "app");
	CHECK(f.count == 4); /* and the null location's */
}

static uint32_t add_python(const char *name, const char *file)
{
	struct profile_function f = { 0 };
	struct profile_line line = { 0 };
	struct profile_location l = { .kind = FRAME_CPYTHON };
	uint32_t id = 0;
	CHECK(profile_add_string(&fake_profile, str_of(name), &f.name) == OK);
	CHECK(profile_add_string(&fake_profile, str_of(file), &f.filename) == OK);
	CHECK(profile_add_function(&fake_profile, &f, &line.function) == OK);
	CHECK(profile_add_location(&fake_profile, &l, &line, 1, &id) == OK);
	return id;
}

static void tells_functions_apart_by_their_file(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_frames f;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	uint32_t here = add_python("process", "/srv/a.py"),
		 there = add_python("process", "/srv/b.py"),
		 package = add_python("<module>", "/srv/shop/__init__.py");
	CHECK_OK(query_frames_make(&fake_profile, STR(""), &a, &f, &e), &e);
	CHECK(f.ids[f.first[here]] != f.ids[f.first[there]]);
	CHECK_STR(profile_str(&fake_profile, f.v[f.ids[f.first[here]]].binary), "a.py");
	CHECK_STR(profile_str(&fake_profile, f.v[f.ids[f.first[there]]].binary), "b.py");
	CHECK_STR(profile_str(&fake_profile, f.v[f.ids[f.first[package]]].binary),
		"shop/__init__.py");
}

static void names_what_has_no_name(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_frames f;
	struct err e = { 0 };
	uint32_t id = 0;
	arena_init(&a, 1 << 20);
	struct profile_mapping m = { 0 };
	struct profile_function system_only = { 0 };
	struct profile_line lines[2] = { { 0 } };
	struct profile_location l = { .address = 0x1f };
	CHECK(profile_add_string(&fake_profile, STR("/lib/x.so"), &m.filename) == OK);
	CHECK(profile_add_mapping(&fake_profile, &m, &l.mapping) == OK);
	CHECK(profile_add_location(&fake_profile, &l, NULL, 0, &id) == OK);
	CHECK(profile_add_string(&fake_profile, STR("_Zsys"), &system_only.system_name) == OK);
	CHECK(profile_add_function(&fake_profile, &system_only, &lines[0].function) == OK);
	l.address = 0x2f;
	CHECK(profile_add_location(&fake_profile, &l, lines, 1, &id) == OK);
	lines[0].function = 0;
	l.address = 0x3f;
	CHECK(profile_add_location(&fake_profile, &l, lines, 1, &id) == OK);
	l.mapping = 0;
	CHECK(profile_add_location(&fake_profile, &l, NULL, 0, &id) == OK);
	CHECK_OK(query_frames_make(&fake_profile, STR(""), &a, &f, &e), &e);
	CHECK_STR(name_of(&f, f.ids[f.first[1]]), "x.so+0x1f");
	CHECK_STR(name_of(&f, f.ids[f.first[2]]), "_Zsys");
	CHECK_STR(name_of(&f, f.ids[f.first[3]]), "x.so+0x3f");
	CHECK_STR(name_of(&f, f.ids[f.first[4]]), "0x3f");
}

static void marks_matches(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_frames f;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	fake_sample(HEAP, 1, 1, 0, "", "abc@x;ABD@x;b@x;xab@x");
	CHECK_OK(query_frames_make(&fake_profile, STR("aB"), &a, &f, &e), &e);
	static const bool want[] = { true, true, false, true };
	for (uint32_t i = 0; i < 4; i++)
		CHECK(f.matched[f.ids[f.first[i + 1]]] == want[i]);
}

static void keeps_to_the_limit(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_frames f = { .count = 77 };
	struct err e = { 0 };
	arena_init(&a, 64);
	fake_sample(HEAP, 1, 1, 0, "", "a@x;b@x;c@x");
	CHECK(query_frames_make(&fake_profile, STR(""), &a, &f, &e) == E_LIMIT);
	CHECK(f.count == 77);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(lists_frames_outermost_first), WITH_STORE(names_what_has_no_name),
	WITH_STORE(tells_functions_apart_by_their_file), WITH_STORE(marks_matches),
	WITH_STORE(keeps_to_the_limit))
