/* SPDX-License-Identifier: Apache-2.0 */
/* Known stacks: found again as they were, forgotten by halves, never beyond their memory. */
#include "test.h"

#include "parca/parca.h"
#include "profile_dump.h"

#define MEMORY ((size_t)1 << 20)

static struct hash128 key_of(uint32_t i)
{
	return hash128(&i, sizeof(i));
}

/* Stack number i of a profile: a few locations with names that differ from stack to stack. */
static uint32_t make_stack(struct profile *p, uint32_t i)
{
	uint32_t locations[4], id;
	for (uint32_t j = 0; j < 4; j++) {
		char name[32];
		struct profile_function f = { .start_line = i };
		struct profile_mapping m = { .start = j };
		struct profile_line line = { .line = j };
		struct profile_location loc = { .address = i * 16 + j, .kind = FRAME_RUBY };
		snprintf(name, sizeof(name), "function %u", (unsigned)(i * 4 + j));
		CHECK(profile_add_string(p, str_of(name), &f.name) == OK);
		CHECK(profile_add_string(p, STR("a.rb"), &f.filename) == OK);
		CHECK(profile_add_string(p, STR("abcd"), &m.build_id) == OK);
		CHECK(profile_add_function(p, &f, &line.function) == OK);
		CHECK(profile_add_mapping(p, &m, &loc.mapping) == OK);
		CHECK(profile_add_location(p, &loc, &line, 1, &locations[j]) == OK);
	}
	CHECK(profile_add_stack(p, locations, 4, &id) == OK);
	return id;
}

/* Whether it is known; then it is what was remembered. */
static bool check_known(struct parca_stacks *c, uint32_t i)
{
	struct profile p, want;
	uint32_t stack;
	CHECK(profile_init(&p, MEMORY) == OK && profile_init(&want, MEMORY) == OK);
	bool found = parca_stacks_find(c, key_of(i), &p, &stack);
	if (found) {
		uint32_t same = make_stack(&want, i);
		struct buf got, expected;
		buf_init(&got, MEMORY);
		buf_init(&expected, MEMORY);
		for (uint32_t j = 0; j < 4; j++) {
			dump_location(&got, &p, p.stack_locations.v[p.stacks.v[stack].first + j]);
			dump_location(&expected, &want,
				want.stack_locations.v[want.stacks.v[same].first + j]);
		}
		CHECK(p.stacks.v[stack].count == 4);
		CHECK(str_eq(buf_view(&got), buf_view(&expected)));
		buf_deinit(&got);
		buf_deinit(&expected);
	}
	profile_deinit(&p);
	profile_deinit(&want);
	return found;
}

static void finds_what_was_added(void **state)
{
	(void)state;
	struct parca_stacks *c;
	struct profile p;
	CHECK(parca_stacks_new(MEMORY, &c) == OK && profile_init(&p, MEMORY) == OK);
	CHECK(!check_known(c, 1));
	for (uint32_t i = 1; i < 50; i++)
		parca_stacks_add(c, key_of(i), &p, make_stack(&p, i));
	parca_stacks_add(c, key_of(7), &p, make_stack(&p, 8)); /* the first stays */
	for (uint32_t i = 1; i < 50; i++)
		CHECK(check_known(c, i));
	CHECK(!check_known(c, 50));
	assert_int_equal(parca_stacks_count(c), 49);
	profile_deinit(&p);
	parca_stacks_free(c);
}

static void forgets_what_is_not_used(void **state)
{
	(void)state;
	struct parca_stacks *c;
	CHECK(parca_stacks_new(MEMORY, &c) == OK);
	uint64_t most = 0;
	for (uint32_t i = 1; i < 5000; i++) {
		struct profile p;
		CHECK(profile_init(&p, MEMORY) == OK);
		parca_stacks_add(c, key_of(i), &p, make_stack(&p, i));
		profile_deinit(&p);
		CHECK(check_known(c, i)); /* the newest */
		CHECK(check_known(c, 1)); /* asked for again and again */
		most = MAX(most, parca_stacks_count(c));
	}
	CHECK(!check_known(c, 2));
	CHECK(most > 100 && most < 4000);
	parca_stacks_free(c);
}

/* A stack that is too large for the cache is not known, and does no harm. */
static void passes_over_what_does_not_fit(void **state)
{
	(void)state;
	struct parca_stacks *c;
	struct profile p;
	uint32_t locations[2000], stack;
	CHECK(parca_stacks_new((size_t)64 << 10, &c) == OK && profile_init(&p, 8 * MEMORY) == OK);
	for (uint32_t i = 0; i < 2000; i++) {
		struct profile_location loc = { .address = i + 1 };
		CHECK(profile_add_location(&p, &loc, NULL, 0, &locations[i]) == OK);
	}
	CHECK(profile_add_stack(&p, locations, 2000, &stack) == OK);
	parca_stacks_add(c, key_of(1), &p, stack);
	CHECK(!check_known(c, 1));
	profile_deinit(&p);
	parca_stacks_free(c);
}

TEST_MAIN(cmocka_unit_test(finds_what_was_added), cmocka_unit_test(forgets_what_is_not_used),
	cmocka_unit_test(passes_over_what_does_not_fit))
