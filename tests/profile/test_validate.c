/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "profile/profile.h"

/* One element in each table, and a sample that uses them all. */
static void fill(struct profile *p)
{
	CHECK(profile_init(p, 1 << 20) == OK);
	uint32_t a, b, set, loc, stack, link;
	CHECK(profile_add_string(p, STR("a"), &a) == OK);
	CHECK(profile_add_string(p, STR("b"), &b) == OK);
	struct profile_label labels[] = { { b, a }, { a, b } };
	CHECK(profile_add_labels(p, labels, 2, &set) == OK);
	struct profile_line line = { 0 };
	CHECK(profile_add_function(p, &(struct profile_function){ a, a, b, 1 }, &line.function) ==
		OK);
	struct profile_location l = { .address = 5, .kind = FRAME_NATIVE };
	CHECK(profile_add_mapping(p, &(struct profile_mapping){ .filename = a }, &l.mapping) == OK);
	CHECK(profile_add_location(p, &l, &line, 1, &loc) == OK);
	CHECK(profile_add_stack(p, &loc, 1, &stack) == OK);
	CHECK(profile_add_link(p, &(struct profile_link){ .trace_id = { 1 } }, &link) == OK);
	struct profile_head h = { .time_ns = 1 };
	CHECK(profile_add_type(p, &(struct profile_type){ a, a, a, a, a, true }, &h.type) == OK);
	struct profile_sample s = { 1, 1, 0, stack, set, set, link };
	CHECK(profile_add_head(p, &h, &s.head) == OK);
	CHECK(profile_add_sample(p, &s) == OK);
}

/* Each damage is one field; the sentence names its table. */
#define DAMAGES(X)                                             \
	X(functions, p.functions.v[1].name = 99)               \
	X(functions, p.functions.v[1].system_name = 99)        \
	X(functions, p.functions.v[1].filename = 99)           \
	X(mappings, p.mappings.v[1].filename = 99)             \
	X(mappings, p.mappings.v[1].build_id = 99)             \
	X(lines, p.lines.v[0].function = 2)                    \
	X(locations, p.locations.v[1].mapping = 2)             \
	X(locations, p.locations.v[1].kind = FRAME_KIND_COUNT) \
	X(locations, p.locations.v[1].line_count = 2)          \
	X(locations, p.locations.v[1].line_first = UINT32_MAX) \
	X(locations, p.locations.v[1].line_count = UINT32_MAX) \
	X(stack_locations, p.stack_locations.v[0] = 2)         \
	X(stacks, p.stacks.v[1].count = 2)                     \
	X(stacks, p.stacks.v[1].count = UINT32_MAX)            \
	X(stacks, p.stacks.v[1].first = 1)                     \
	X(labels, p.labels.v[0].name = 99)                     \
	X(labels, p.labels.v[0].value = 99)                    \
	X(label_sets, p.labels.v[0].value = 0)                 \
	X(label_sets, p.labels.v[0].name = 0)                  \
	X(label_sets, p.labels.v[1].name = p.labels.v[0].name) \
	X(label_sets, p.label_sets.v[1].count = 3)             \
	X(types, p.types.v[1].name = 99)                       \
	X(types, p.types.v[1].period_unit = 99)                \
	X(heads, p.heads.v[1].type = 2)                        \
	X(heads, p.heads.v[1].type = 0)                        \
	X(samples, p.samples.v[0].head = 2)                    \
	X(samples, p.samples.v[0].head = 0)                    \
	X(samples, p.samples.v[0].stack = 2)                   \
	X(samples, p.samples.v[0].resource = 2)                \
	X(samples, p.samples.v[0].own = 2)                     \
	X(samples, p.samples.v[0].link = 2)                    \
	X(a null element, p.stacks.v[0].count = 1)             \
	X(a table without, p.links.len = 0)

static void names_what_is_wrong(void **state)
{
	(void)state;
#define DAMAGE(table, change)                                                           \
	{                                                                               \
		CLEANUP(profile_deinit) struct profile p;                               \
		fill(&p);                                                               \
		struct err e = { 0 };                                                   \
		CHECK_OK(profile_validate(&p, &e), &e);                                 \
		change;                                                                 \
		if (profile_validate(&p, &e) != E_INVALID || !strstr(e.text, #table)) { \
			print_error("after %s: \"%s\"\n", #change, e.text);             \
			_fail(__FILE__, __LINE__);                                      \
		}                                                                       \
	}
	DAMAGES(DAMAGE)
}

TEST_MAIN(cmocka_unit_test(names_what_is_wrong))
