/* SPDX-License-Identifier: Apache-2.0 */
/* Series of a tenant are counted once, forgotten after their windows, and refused beyond the limit.
 */
#include "test.h"

#include "ingest/ingest.h"

#define MEMORY ((size_t)64 << 20)
#define HOUR SERIES_WINDOW_NS

static uint32_t make_set(struct profile *p, const char *name, uint32_t value)
{
	struct profile_label l;
	char text[16];
	uint32_t id;
	snprintf(text, sizeof(text), "%u", (unsigned)value);
	CHECK(profile_add_string(p, str_of(name), &l.name) == OK);
	CHECK(profile_add_string(p, str_of(text), &l.value) == OK);
	CHECK(profile_add_labels(p, &l, 1, &id) == OK);
	return id;
}

/* Samples of series first … first + count, `each` of a series, each on a thread of its own. */
static void make_profile(
	struct profile *p, const char *name, uint32_t first, uint32_t count, uint32_t each)
{
	struct profile_type t = { 0 };
	struct profile_head h = { 0 };
	uint32_t head;
	CHECK(profile_init(p, MEMORY) == OK);
	CHECK(profile_add_string(p, str_of(name), &t.name) == OK);
	CHECK(profile_add_type(p, &t, &h.type) == OK && profile_add_head(p, &h, &head) == OK);
	for (uint32_t i = 0; i < count * each; i++) {
		struct profile_sample s = { .value = 1,
			.head = head,
			.resource = make_set(p, "comm", first + i % count),
			.own = make_set(p, "thread_id", i) };
		CHECK(profile_add_sample(p, &s) == OK);
	}
}

static uint32_t series_max;

static uint64_t push(struct series_guard *g, const char *tenant, const char *name, uint32_t first,
	uint32_t count, int64_t now)
{
	struct profile p;
	uint64_t refused;
	make_profile(&p, name, first, count, 3);
	CHECK(series_guard_limit(g, str_of(tenant), series_max, &p, now, &refused) == OK);
	assert_int_equal(p.samples.len + refused, 3 * count);
	for (size_t i = 0; i < p.samples.len; i++)
		CHECK(p.samples.v[i].value == 1);
	profile_deinit(&p);
	return refused;
}

static void counts_series(void **state)
{
	(void)state;
	struct series_guard g;
	CHECK(series_guard_init(&g) == OK);
	series_max = 10;
	assert_int_equal(push(&g, "", "cpu", 0, 6, HOUR), 0);
	assert_int_equal(push(&g, "", "cpu", 0, 6, HOUR), 0); /* the same */
	assert_int_equal(series_guard_count(&g), 6);
	assert_int_equal(
		push(&g, "", "memory", 0, 4, HOUR), 0); /* another type is another series */
	assert_int_equal(series_guard_count(&g), 10);
	assert_int_equal(push(&g, "", "cpu", 4, 4, HOUR), 6); /* two are known, two are too many */
	assert_int_equal(push(&g, "other", "cpu", 4, 4, HOUR), 0);
	assert_int_equal(series_guard_count(&g), 14);
	series_guard_deinit(&g);
}

static void forgets_series(void **state)
{
	(void)state;
	struct series_guard g;
	CHECK(series_guard_init(&g) == OK);
	series_max = 10;
	assert_int_equal(push(&g, "", "cpu", 0, 10, HOUR), 0);
	assert_int_equal(push(&g, "", "cpu", 10, 1, HOUR + 1), 3);
	/* An hour later the old ones still count, and still come in. */
	assert_int_equal(push(&g, "", "cpu", 0, 5, 2 * HOUR), 0);
	assert_int_equal(push(&g, "", "cpu", 10, 1, 2 * HOUR), 3);
	/* Two hours later only those that came again do. */
	assert_int_equal(push(&g, "", "cpu", 0, 5, 3 * HOUR), 0);
	assert_int_equal(push(&g, "", "cpu", 10, 5, 3 * HOUR), 0);
	assert_int_equal(push(&g, "", "cpu", 20, 1, 3 * HOUR), 3);
	/* After a long pause none does. */
	assert_int_equal(push(&g, "", "cpu", 30, 10, 100 * HOUR), 0);
	series_guard_deinit(&g);
}

static void has_no_limit(void **state)
{
	(void)state;
	struct series_guard g;
	CHECK(series_guard_init(&g) == OK);
	series_max = 0;
	assert_int_equal(push(&g, "", "cpu", 0, 5000, HOUR), 0);
	assert_int_equal(series_guard_count(&g), 5000);
	series_guard_deinit(&g);
}

static void has_room_for_tenants(void **state)
{
	(void)state;
	struct series_guard g;
	CHECK(series_guard_init(&g) == OK);
	series_max = 1000;
	for (int i = 0; i < 2 * SERIES_TENANTS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "%d", i);
		assert_int_equal(push(&g, name, "cpu", 0, 1, HOUR), 0);
	}
	assert_int_equal(series_guard_count(&g), SERIES_TENANTS_MAX);
	series_guard_deinit(&g);
}

TEST_MAIN(cmocka_unit_test(counts_series), cmocka_unit_test(forgets_series),
	cmocka_unit_test(has_no_limit), cmocka_unit_test(has_room_for_tenants))
