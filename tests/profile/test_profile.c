/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "profile/profile.h"

#define LIMIT ((size_t)16 << 20)

static uint32_t text(struct profile *p, const char *s)
{
	uint32_t id;
	CHECK(profile_add_string(p, str_of(s), &id) == OK);
	return id;
}

static uint32_t location(struct profile *p, uint64_t address)
{
	uint32_t id;
	CHECK(profile_add_location(
		      p, &(struct profile_location){ .address = address }, NULL, 0, &id) == OK);
	return id;
}

static void nulls_are_there(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	for (int round = 0; round < 2; round++) {
		CHECK(p.strings.len == 1 && p.functions.len == 1 && p.mappings.len == 1);
		CHECK(p.locations.len == 1 && p.stacks.len == 1 && p.label_sets.len == 1);
		CHECK(p.links.len == 1 && p.types.len == 1 && p.heads.len == 1);
		CHECK(p.samples.len == 0);
		uint32_t id = 7;
		CHECK(profile_add_string(&p, STR(""), &id) == OK && id == 0);
		id = 7;
		CHECK(profile_add_stack(&p, NULL, 0, &id) == OK && id == 0);
		id = 7;
		CHECK(profile_add_labels(&p, NULL, 0, &id) == OK && id == 0);
		CHECK(profile_validate(&p, NULL) == OK);
		location(&p, 5);
		text(&p, "x");
		CHECK(profile_clear(&p) == OK);
	}
}

static void equal_content_is_one_element(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	uint32_t a = 0, b = 0, c = 0;
	struct profile_function f = { .name = text(&p, "f"), .filename = text(&p, "f.c") };
	CHECK(profile_add_function(&p, &f, &a) == OK && profile_add_function(&p, &f, &b) == OK);
	CHECK(a == b && a == 1);
	f.start_line = 3;
	CHECK(profile_add_function(&p, &f, &b) == OK && b == 2);

	struct profile_mapping m = { .start = 0x1000, .limit = 0x2000 };
	CHECK(profile_add_mapping(&p, &m, &a) == OK && profile_add_mapping(&p, &m, &b) == OK);
	CHECK(a == b);

	struct profile_line lines[] = { { 1, 10, 0 }, { 2, 20, 0 } };
	struct profile_location l = { .address = 9, .mapping = a, .kind = FRAME_NATIVE };
	CHECK(profile_add_location(&p, &l, lines, 2, &a) == OK);
	CHECK(profile_add_location(&p, &l, lines, 2, &b) == OK && a == b);
	struct profile_location other = { .address = 4711, .kind = FRAME_NATIVE };
	CHECK(profile_append_location(&p, &other, lines, 2, &c) == OK && c != a);
	CHECK(profile_add_location(&p, &other, lines, 2, &b) == OK && b == c);
	CHECK(profile_add_location(&p, &l, lines, 2, &b) == OK && a == b);
	CHECK(profile_add_location(&p, &l, lines, 1, &b) == OK && a != b);
	l.kind = FRAME_KERNEL;
	CHECK(profile_add_location(&p, &l, lines, 2, &b) == OK && a != b);
	CHECK(p.locations.v[a].line_count == 2 && p.lines.len == 7);

	uint32_t stack[] = { a, b, a };
	uint32_t s1, s2;
	CHECK(profile_add_stack(&p, stack, 3, &s1) == OK);
	CHECK(profile_add_stack(&p, stack, 3, &s2) == OK && s1 == s2);
	CHECK(profile_add_stack(&p, stack, 2, &s2) == OK && s1 != s2);
	CHECK(profile_validate(&p, NULL) == OK);
}

static void many_elements_are_found_again(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	for (int round = 0; round < 2; round++)
		for (uint32_t i = 1; i <= 5000; i++) {
			CHECK(location(&p, i) == i);
			uint32_t stack[2] = { i, i / 2 + 1 }, id;
			CHECK(profile_add_stack(&p, stack, 2, &id) == OK && id == i);
		}
	CHECK(p.locations.len == 5001 && p.stacks.len == 5001);
	CHECK(profile_validate(&p, NULL) == OK);
}

/* Those that come in the order of their texts are not looked for: they are found all the same. */
static void what_was_not_looked_for_is_found(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	for (uint32_t i = 1; i <= 500; i++) {
		char name[16];
		uint32_t function, at;
		snprintf(name, sizeof(name), "f%u", i);
		struct profile_function f = { .name = text(&p, name) };
		CHECK(profile_add_function(&p, &f, &function) == OK && function == i);
		struct profile_line line = { .function = function, .line = i };
		struct profile_location l = { .address = i };
		CHECK(profile_add_location(&p, &l, &line, 1, &at) == OK && at == i);
	}
	for (uint32_t i = 500; i > 0; i -= 3) {
		uint32_t id;
		struct profile_function f = p.functions.v[i];
		struct profile_location l = p.locations.v[i];
		struct profile_line line = p.lines.v[l.line_first];
		CHECK(profile_add_function(&p, &f, &id) == OK && id == i);
		CHECK(profile_add_location(&p, &l, &line, 1, &id) == OK && id == i);
		if (i < 4)
			break;
	}
	struct profile_function again = { .name = p.functions.v[7].name, .start_line = 1 };
	uint32_t id;
	CHECK(profile_add_function(&p, &again, &id) == OK && id == 501);
	CHECK(profile_add_function(&p, &again, &id) == OK && id == 501);
	CHECK(p.functions.len == 502 && p.locations.len == 501);
	CHECK(profile_validate(&p, NULL) == OK);
}

static void what_is_expected_is_believed_within_limits(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	profile_expect(&p, &(struct profile_room){ 100, 200, 300, 4000, 500 });
	CHECK(p.strings.cap >= 100 && p.functions.cap >= 200 && p.locations.cap >= 300);
	CHECK(p.stack_locations.cap >= 4000 && p.stacks.cap >= 500 && p.samples.cap >= 500);
	size_t before = profile_bytes(&p);
	profile_expect(&p, &(struct profile_room){ 90, 190, 290, 3000, 400 });
	CHECK(profile_bytes(&p) == before);
	const size_t all = SIZE_MAX;
	profile_expect(&p, &(struct profile_room){ all, all, all, all, all });
	CHECK(profile_bytes(&p) <= 2 * LIMIT);
	equal_content_is_one_element(state);
}

static void labels_are_sorted_sets(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	uint32_t z = text(&p, "z"), b = text(&p, "b"), a = text(&p, "a");
	uint32_t one = text(&p, "1"), two = text(&p, "2");
	struct profile_label in[] = { { z, one }, { b, two }, { a, one }, { b, one }, { a, 0 },
		{ 0, one } };
	uint32_t id, again;
	CHECK(profile_add_labels(&p, in, ARRAY_COUNT(in), &id) == OK);
	const struct profile_labels *set = &p.label_sets.v[id];
	CHECK(set->count == 3);
	const struct profile_label *l = p.labels.v + set->first;
	CHECK(l[0].name == a && l[0].value == one);
	CHECK(l[1].name == b && l[1].value == two); /* the first wins */
	CHECK(l[2].name == z);

	struct profile_label other[] = { { a, one }, { z, one }, { b, two } };
	CHECK(profile_add_labels(&p, other, 3, &again) == OK && again == id);
	/* An empty value does not shadow a later one. */
	struct profile_label empty[] = { { a, 0 }, { a, two } };
	CHECK(profile_add_labels(&p, empty, 2, &again) == OK);
	CHECK(p.label_sets.v[again].count == 1);
	CHECK(profile_validate(&p, NULL) == OK);
}

static void limits_hold(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	struct profile_label many[PROFILE_LABELS_MAX + 1];
	for (uint32_t i = 0; i <= PROFILE_LABELS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "n%u", i);
		many[i] = (struct profile_label){ text(&p, name), 1 };
	}
	uint32_t id = 77;
	CHECK(profile_add_labels(&p, many, PROFILE_LABELS_MAX + 1, &id) == E_LIMIT && id == 77);
	CHECK(profile_add_labels(&p, many, PROFILE_LABELS_MAX, &id) == OK && id == 1);

	static struct profile_line lines[PROFILE_LINES_MAX + 1];
	struct profile_location l = { .address = 1 };
	id = 77;
	CHECK(profile_add_location(&p, &l, lines, PROFILE_LINES_MAX + 1, &id) == E_LIMIT);
	CHECK(id == 77);
	CHECK(profile_add_location(&p, &l, lines, PROFILE_LINES_MAX, &id) == OK);
	CHECK(profile_validate(&p, NULL) == OK);
}

static void deep_stacks_end_in_a_marker(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	static uint32_t deep[PROFILE_STACK_MAX + 5];
	for (uint32_t i = 0; i < ARRAY_COUNT(deep); i++)
		deep[i] = location(&p, i + 1);
	uint32_t id;
	CHECK(profile_add_stack(&p, deep, PROFILE_STACK_MAX, &id) == OK);
	CHECK(p.stacks.v[id].count == PROFILE_STACK_MAX);
	CHECK(profile_add_stack(&p, deep, ARRAY_COUNT(deep), &id) == OK);
	CHECK(p.stacks.v[id].count == PROFILE_STACK_MAX);
	const uint32_t *v = p.stack_locations.v + p.stacks.v[id].first;
	CHECK(v[PROFILE_STACK_MAX - 2] == deep[PROFILE_STACK_MAX - 2]);
	const struct profile_location *l = &p.locations.v[v[PROFILE_STACK_MAX - 1]];
	CHECK(l->kind == FRAME_MARKER && l->line_count == 1);
	CHECK_STR(profile_str(&p, p.functions.v[p.lines.v[l->line_first].function].name),
		"[truncated]");
}

static void memory_ends_at_the_limit(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 64 << 10) == OK);
	enum status s = OK;
	uint32_t n = 0, id;
	for (; s == OK && n < 1000000; n++)
		s = profile_add_location(
			&p, &(struct profile_location){ .address = n + 1 }, NULL, 0, &id);
	CHECK(s == E_LIMIT && n > 100 && n < 10000);
	CHECK(p.locations.len == n);
	CHECK(profile_validate(&p, NULL) == OK);
	/* What is there is still found, and after clearing there is room again. */
	CHECK(location(&p, 1) == 1);
	CHECK(profile_clear(&p) == OK);
	CHECK(location(&p, 12345) == 1);

	char long_text[70000];
	memset(long_text, 'x', sizeof(long_text));
	CHECK(profile_add_string(&p, str_make(long_text, sizeof(long_text)), &id) == E_LIMIT);
}

static void types_have_a_text(void **state)
{
	(void)state;
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, LIMIT) == OK);
	struct profile_type t = { text(&p, "parca_agent"), text(&p, "samples"), text(&p, "count"),
		text(&p, "cpu"), text(&p, "nanoseconds"), true };
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	profile_type_write(&b, &p, &t);
	CHECK_STR(buf_view(&b), "parca_agent:samples:count:cpu:nanoseconds:delta");
	buf_clear(&b);
	t.delta = false;
	t.period_type = t.period_unit = 0;
	profile_type_write(&b, &p, &t);
	CHECK_STR(buf_view(&b), "parca_agent:samples:count::");
	uint32_t a, c;
	CHECK(profile_add_type(&p, &t, &a) == OK);
	t.delta = true;
	CHECK(profile_add_type(&p, &t, &c) == OK && a != c);
}

static void kinds_have_names(void **state)
{
	(void)state;
	for (int k = 0; k < FRAME_KIND_COUNT; k++)
		CHECK(frame_kind_parse(str_of(frame_kind_name((enum frame_kind)k))) ==
			(enum frame_kind)k);
	CHECK(frame_kind_parse(STR("cobol")) == FRAME_UNKNOWN);
	CHECK(frame_kind_name((enum frame_kind)200)[0] == 0);
}

TEST_MAIN(cmocka_unit_test(nulls_are_there), cmocka_unit_test(equal_content_is_one_element),
	cmocka_unit_test(many_elements_are_found_again),
	cmocka_unit_test(what_was_not_looked_for_is_found),
	cmocka_unit_test(what_is_expected_is_believed_within_limits),
	cmocka_unit_test(labels_are_sorted_sets), cmocka_unit_test(limits_hold),
	cmocka_unit_test(deep_stacks_end_in_a_marker), cmocka_unit_test(memory_ends_at_the_limit),
	cmocka_unit_test(types_have_a_text), cmocka_unit_test(kinds_have_names))
