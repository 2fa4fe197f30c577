/* SPDX-License-Identifier: Apache-2.0 */
#include "jit/jit.h"

#include "test.h"

#define ROUNDS 4000
#define PLACES 512

static struct jit_map *new_map(void)
{
	struct jit_map *m = NULL;
	assert_int_equal(jit_map_new(&m), OK);
	return m;
}

static bool add(struct jit_map *m, uint64_t start, uint64_t size, uint64_t since, const char *name)
{
	return jit_map_add(
		m, &(struct jit_code){
			   .start = start, .size = size, .since_ns = since, .name = str_of(name) });
}

/* Against the plainest search there is: every byte of a small memory, over time. */
static void finds_what_was_there(void **state)
{
	(void)state;
	static uint32_t owner[ROUNDS + 1][PLACES];
	struct jit_map *m = new_map();
	uint32_t seed = 7;
	for (uint32_t t = 1; t <= ROUNDS; t++) {
		char name[16];
		seed = seed * 1664525 + 1013904223;
		uint32_t start = seed >> 8 & (PLACES - 1);
		uint32_t size = 1 + (seed >> 20 & 31);
		size = MIN(size, PLACES - start);
		snprintf(name, sizeof(name), "%u", t);
		memcpy(owner[t], owner[t - 1], sizeof(owner[t]));
		for (uint32_t i = start; i < start + size; i++)
			owner[t][i] = t;
		CHECK(add(m, 0x1000 + start, size, (uint64_t)t * 2000000000, name));
	}
	for (uint32_t t = 1; t <= ROUNDS; t += 37) {
		for (uint32_t i = 0; i < PLACES; i++) {
			struct jit_found f = { 0 };
			char want[16];
			bool found = jit_map_find(m, 0x1000 + i, (uint64_t)t * 2000000000, &f);
			snprintf(want, sizeof(want), "%u", owner[t][i]);
			CHECK(found == (owner[t][i] != 0));
			if (found)
				CHECK_STR(f.name, want);
		}
	}
	jit_map_free(m);
}

static void takes_code_that_was_told_of_a_little_later(void **state)
{
	(void)state;
	struct jit_map *m = new_map();
	struct jit_found f;
	add(m, 0x1000, 16, 5000000000, "a");
	CHECK(jit_map_find(m, 0x1000, 4900000000, &f));
	CHECK(!jit_map_find(m, 0x1000, 3900000000, &f));
	jit_map_free(m);
}

static void finds_lines(void **state)
{
	(void)state;
	struct jit_map *m = new_map();
	const struct jit_place places[] = { { 0x1008, STR("b.js"), 20 },
		{ 0x1000, STR("a.js"), 10 }, { 0xfff, STR("c.js"), 30 } };
	CHECK(jit_map_add(m, &(struct jit_code){ .start = 0x1000,
				     .size = 16,
				     .name = STR("f"),
				     .places = places,
				     .place_count = 3 }));
	struct jit_found f;
	CHECK(jit_map_find(m, 0x1007, 0, &f) && f.line == 10 && f.start == 0x1000);
	CHECK_STR(f.file, "a.js");
	CHECK(jit_map_find(m, 0x100f, 0, &f) && f.line == 20);
	CHECK_STR(f.file, "b.js");
	assert_int_equal(jit_map_bad(m), 0);
	jit_map_free(m);
}

static void forgets_what_was_written_over_when_full(void **state)
{
	(void)state;
	struct jit_map *m = new_map();
	struct jit_found f;
	for (uint32_t i = 0; i < JIT_CODES_MAX * 3; i++)
		CHECK(add(m, 0x1000 + i % 1000 * 16, 16, (uint64_t)i * 10000000, "f"));
	CHECK(add(m, 0x1000, 16, (uint64_t)JIT_CODES_MAX * 3 * 10000000, "last"));
	CHECK(jit_map_find(m, 0x1000, UINT64_MAX, &f));
	CHECK_STR(f.name, "last");
	assert_int_equal(jit_map_refused(m), 0);
	jit_map_free(m);
}

static void refuses_more_than_there_is_room_for(void **state)
{
	(void)state;
	struct jit_map *m = new_map();
	for (uint32_t i = 0; i < JIT_CODES_MAX; i++)
		CHECK(add(m, 0x1000 + (uint64_t)i * 16, 16, 1, "f"));
	CHECK(!add(m, 1, 16, 1, "f"));
	assert_int_equal(jit_map_refused(m), 1);
	assert_int_equal(jit_map_len(m), JIT_CODES_MAX);
	CHECK(jit_map_bytes(m) < (size_t)32 << 20);
	jit_map_free(m);
}

/* As a large program does: what a full table refuses costs next to nothing, and what is written
 * over at last makes room. */
static void does_not_search_for_dead_code_at_each_refusal(void **state)
{
	(void)state;
	struct jit_map *m = new_map();
	const uint64_t later = JIT_KEEP_NS * 2;
	for (uint32_t i = 0; i < JIT_CODES_MAX; i++)
		CHECK(add(m, 0x1000 + (uint64_t)i * 16, 16, 1, "f"));
	for (uint32_t i = 0; i < 1000000; i++)
		CHECK(!add(m, 1, 16, later, "f"));
	assert_int_equal(jit_map_refused(m), 1000000);
	assert_int_equal(jit_map_len(m), JIT_CODES_MAX);
	jit_map_free(m);
}

/* All lines of a function or none: the first ones would stand for the rest. */
static void leaves_out_lines_without_room(void **state)
{
	(void)state;
	static struct jit_place places[1000];
	struct jit_map *m = new_map();
	struct jit_found f;
	const uint32_t whole = JIT_LINES_MAX / 1000;
	for (uint32_t i = 0; i <= whole; i++) {
		uint64_t start = 0x100000 * (uint64_t)(i + 1);
		for (uint32_t k = 0; k < 1000; k++)
			places[k] = (struct jit_place){ start + k, STR("a.js"), k + 1 };
		CHECK(jit_map_add(m, &(struct jit_code){ .start = start,
					     .size = 1000,
					     .name = STR("f"),
					     .places = places,
					     .place_count = 1000 }));
	}
	CHECK(jit_map_find(m, 0x100000 * (uint64_t)whole + 999, 0, &f) && f.line == 1000);
	CHECK(jit_map_find(m, 0x100000 * (uint64_t)(whole + 1) + 999, 0, &f));
	CHECK(f.file.len == 0 && f.line == 0);
	assert_int_equal(jit_map_refused(m), 1);
	jit_map_free(m);
}

TEST_MAIN(cmocka_unit_test(leaves_out_lines_without_room), cmocka_unit_test(finds_what_was_there),
	cmocka_unit_test(takes_code_that_was_told_of_a_little_later), cmocka_unit_test(finds_lines),
	cmocka_unit_test(forgets_what_was_written_over_when_full),
	cmocka_unit_test(refuses_more_than_there_is_room_for),
	cmocka_unit_test(does_not_search_for_dead_code_at_each_refusal))
