/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include "test.h"

static bool same(const void *ctx, uint32_t value, const void *key)
{
	(void)ctx;
	return value == *(const uint32_t *)key;
}

/* Few distinct hashes, so that runs are long and wrap around. */
static uint64_t bad_hash(uint32_t v)
{
	return v % 13 * 5;
}

static void finds_and_removes_in_long_runs(void **state)
{
	(void)state;
	CLEANUP(map_deinit) struct map m = { 0 };
	bool there[400] = { false };
	uint64_t random = 1;
	for (int step = 0; step < 20000; step++) {
		random = hash_u64(random + 1);
		uint32_t v = (uint32_t)(random % 400);
		if (!there[v])
			CHECK(map_insert(&m, bad_hash(v), v));
		else
			CHECK(map_remove(&m, bad_hash(v), v));
		there[v] = !there[v];
		uint32_t probe = (uint32_t)(random >> 32) % 400;
		CHECK(map_find(&m, bad_hash(probe), same, NULL, &probe) ==
			(there[probe] ? probe : MAP_NONE));
	}
	uint32_t count = 0;
	for (uint32_t v = 0; v < 400; v++)
		count += there[v];
	CHECK(m.count == count);
	CHECK(!map_remove(&m, bad_hash(1), 401));
}

static void numbers_texts(void **state)
{
	(void)state;
	CLEANUP(strtab_deinit) struct strtab t;
	CHECK(strtab_init(&t, 1 << 20) == OK);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			char text[16];
			snprintf(text, sizeof(text), "s%u", i);
			uint32_t id;
			CHECK(strtab_intern(&t, str_of(text), &id) == OK && id == i + 1);
			CHECK_STR(strtab_get(&t, id), text);
		}
	}
	uint32_t id;
	CHECK(strtab_intern(&t, STR(""), &id) == OK && id == 0);
	CHECK(strtab_find(&t, STR("s7")) == 8 && strtab_find(&t, STR("absent")) == MAP_NONE);
	CHECK(strtab_clear(&t) == OK && t.len == 1);
	CHECK(strtab_find(&t, STR("s7")) == MAP_NONE);
}

static void keeps_what_is_there_when_room_is_made(void **state)
{
	(void)state;
	CLEANUP(map_deinit) struct map m = { 0 };
	for (uint32_t v = 0; v < 10; v++)
		CHECK(map_insert(&m, hash_u64(v), v));
	CHECK(map_reserve(&m, 1000));
	const void *slots = m.slots;
	for (uint32_t v = 10; v < 1000; v++)
		CHECK(map_insert(&m, hash_u64(v), v));
	CHECK(m.slots == slots && m.count == 1000);
	CHECK(map_reserve(&m, 5) && m.slots == slots);
	for (uint32_t v = 0; v < 1000; v++)
		CHECK(map_find(&m, hash_u64(v), same, NULL, &v) == v);
	CLEANUP(strtab_deinit) struct strtab t;
	CHECK(strtab_init(&t, 1 << 20) == OK && strtab_reserve(&t, 100) == OK);
	uint32_t id;
	CHECK(strtab_intern(&t, STR("a"), &id) == OK && id == 1 && t.cap >= 101);
	CHECK(strtab_reserve(&t, UINT32_MAX) == E_LIMIT && t.len == 2);
	CHECK(strtab_find(&t, STR("a")) == 1);
}

static void texts_have_a_limit(void **state)
{
	(void)state;
	CLEANUP(strtab_deinit) struct strtab t;
	CHECK(strtab_init(&t, 16) == OK);
	uint32_t id;
	CHECK(strtab_intern(&t, STR("0123456789"), &id) == OK);
	CHECK(strtab_intern(&t, STR("abcdefghij"), &id) == E_LIMIT);
	CHECK(strtab_intern(&t, STR("0123456789"), &id) == OK && id == 1);
}

TEST_MAIN(cmocka_unit_test(finds_and_removes_in_long_runs), cmocka_unit_test(numbers_texts),
	cmocka_unit_test(keeps_what_is_there_when_room_is_made),
	cmocka_unit_test(texts_have_a_limit))
