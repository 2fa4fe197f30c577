/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is translated is what it was, each element once, and nothing that nobody asked for; a
 * failure of what takes it leaves the rest to be asked for again.
 */
#include "profile/translate.h"
#include "test.h"

#include <stdlib.h>

static uint32_t string(struct profile *p, const char *s)
{
	uint32_t id;
	CHECK(profile_add_string(p, str_of(s), &id) == OK);
	return id;
}

static uint32_t function(struct profile *p, const char *name, const char *file)
{
	struct profile_function f = { string(p, name), string(p, name), string(p, file), 7 };
	uint32_t id;
	CHECK(profile_add_function(p, &f, &id) == OK);
	return id;
}

/* A location of two inlined functions; one of a file without names; texts that nothing refers to.
 */
static void fill(struct profile *p, uint32_t out[2])
{
	struct profile_mapping m = { 0x1000, 0x2000, 0x10, 0, 0 };
	struct profile_location l = { .address = 0x1234, .kind = FRAME_NATIVE };
	CHECK(profile_init(p, 1 << 20) == OK);
	(void)string(p, "nobody's");
	(void)function(p, "nobody's function", "x.c");
	m.filename = string(p, "/bin/a");
	m.build_id = string(p, "00ff");
	CHECK(profile_add_mapping(p, &m, &l.mapping) == OK);
	struct profile_line lines[] = { { function(p, "inner", "a.c"), 3, 1 },
		{ function(p, "outer", "a.c"), 9, 0 } };
	CHECK(profile_add_location(p, &l, lines, 2, &out[0]) == OK);
	l.address = 0x99;
	CHECK(profile_add_location(p, &l, NULL, 0, &out[1]) == OK);
}

static void check_text(const struct profile *p, uint32_t id, const char *want)
{
	CHECK_STR(profile_str(p, id), want);
}

static void check_translated(const struct profile *p, uint32_t first, uint32_t second)
{
	const struct profile_location *l = &p->locations.v[first];
	const struct profile_mapping *m = &p->mappings.v[l->mapping];
	const struct profile_line *lines = &p->lines.v[l->line_first];
	CHECK(l->address == 0x1234 && l->kind == FRAME_NATIVE && l->line_count == 2);
	CHECK(m->start == 0x1000 && m->limit == 0x2000 && m->offset == 0x10);
	check_text(p, m->filename, "/bin/a");
	check_text(p, m->build_id, "00ff");
	CHECK(lines[0].line == 3 && lines[0].column == 1 && lines[1].line == 9);
	check_text(p, p->functions.v[lines[0].function].name, "inner");
	check_text(p, p->functions.v[lines[1].function].filename, "a.c");
	CHECK(p->functions.v[lines[1].function].start_line == 7);
	CHECK(p->locations.v[second].address == 0x99 &&
		p->locations.v[second].mapping == l->mapping);
}

static void once_and_what_is_asked(void **state)
{
	(void)state;
	for (int kept = 0; kept < 3; kept++) {
		bool keep = kept == 1;
		struct profile from, to;
		struct translate t;
		uint32_t ids[2], out[2], again, null;
		fill(&from, ids);
		CHECK(profile_init(&to, 1 << 20) == OK);
		const struct translate_from source = translate_from_profile(&from);
		uint32_t *memory =
			kept < 2 ? malloc(translate_words(&source, keep) * sizeof(*memory)) : NULL;
		CHECK(memory || kept == 2);
		translate_init(&t, &source, &translate_to_profile, &to, keep, memory);
		for (int i = 0; i < 2; i++)
			CHECK(translate_location(&t, ids[i], &out[i]) == OK);
		check_translated(&to, out[0], out[1]);
		CHECK(translate_location(&t, ids[0], &again) == OK && again == out[0]);
		CHECK(translate_location(&t, 0, &null) == OK && null == 0);
		CHECK(!memory || memory[ids[0]] == out[0]); /* the locations are first */
		CHECK(to.locations.len == 3 && to.functions.len == 3 && to.mappings.len == 2);
		/* "", /bin/a, 00ff, inner, a.c, outer */
		CHECK(to.strings.len == 6);
		free(memory);
		profile_deinit(&from);
		profile_deinit(&to);
	}
}

struct failing {
	struct profile *p;
	int left; /* calls until one fails */
};

static enum status step(struct failing *f)
{
	return f->left-- ? OK : E_NOMEM;
}

static enum status add_string(void *to, struct str s, uint32_t *out)
{
	struct failing *f = to;
	return step(f) == OK ? profile_add_string(f->p, s, out) : E_NOMEM;
}

static enum status add_function(void *to, const struct profile_function *x, uint32_t *out)
{
	struct failing *f = to;
	return step(f) == OK ? profile_add_function(f->p, x, out) : E_NOMEM;
}

static enum status add_mapping(void *to, const struct profile_mapping *m, uint32_t *out)
{
	struct failing *f = to;
	return step(f) == OK ? profile_add_mapping(f->p, m, out) : E_NOMEM;
}

static enum status add_location(void *to, const struct profile_location *l,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out)
{
	struct failing *f = to;
	return step(f) == OK ? profile_add_location(f->p, l, lines, line_count, out) : E_NOMEM;
}

/* Each call fails once. */
static void failures_are_passed_on(void **state)
{
	(void)state;
	static const struct translate_ops ops = { add_string, add_function, add_mapping,
		add_location };
	struct profile from, to;
	struct failing f = { .p = &to };
	uint32_t ids[2], out[2] = { 77, 77 }, memory[64];
	int failed = 0;
	fill(&from, ids);
	CHECK(profile_init(&to, 1 << 20) == OK);
	const struct translate_from source = translate_from_profile(&from);
	CHECK(translate_words(&source, true) <= ARRAY_COUNT(memory));
	struct translate t;
	translate_init(&t, &source, &ops, &f, true, memory);
	for (int i = 0; i < 2; i++)
		for (f.left = 0; translate_location(&t, ids[i], &out[i]) != OK; f.left = 1) {
			CHECK(out[i] == 77);
			failed++;
		}
	CHECK(failed > 8);
	check_translated(&to, out[0], out[1]);
	CHECK(to.locations.len == 3 && to.functions.len == 3 && to.strings.len == 6);
	profile_deinit(&from);
	profile_deinit(&to);
}

TEST_MAIN(cmocka_unit_test(once_and_what_is_asked), cmocka_unit_test(failures_are_passed_on))
