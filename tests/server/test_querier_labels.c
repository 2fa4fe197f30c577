/* SPDX-License-Identifier: Apache-2.0 */
/* Types, labels and sets of labels as querier.v1 lists them. */
#include "querier_ask.h"
#include "server/pyroscope/pyroscope.h"

static void lists_types(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	struct str type = made_find(querier_call(server_querier_profile_types, &b, OK), 1, 0).bytes;
	CHECK_STR(made_find(type, 1, 0).bytes, TYPE);
	CHECK_STR(made_find(type, 4, 0).bytes, "samples");
	struct str stats = querier_call(server_querier_profile_stats, &b, OK);
	CHECK(made_find(stats, 1, 0).u64 == 1 && (int64_t)made_find(stats, 2, 0).u64 == MS);
	CHECK((int64_t)made_find(stats, 3, 0).u64 == MS + 1000);
	/* Another time has none. */
	pb_put_i64(&b, 1, MS - 5000);
	pb_put_i64(&b, 2, MS - 1);
	CHECK(querier_call(server_querier_profile_types, &b, OK).len == 0);
}

static void lists_sets(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	struct str all = querier_call(server_querier_series, &b, OK);
	struct str last = made_find(made_find(all, 2, 1).bytes, 1, 6).bytes;
	CHECK_STR(made_find(last, 1, 0).bytes, "comm");
	CHECK_STR(made_find(last, 2, 0).bytes, "b");
	CHECK(made_find(all, 2, 2).number == 0);
	pb_put_str(&b, 2, STR("service_name"));
	pb_put_str(&b, 2, STR("comm"));
	pb_put_str(&b, 2, STR("__profile_type__"));
	struct str sets = querier_call(server_querier_series, &b, OK);
	/* No service_name: left out. */
	struct str set = made_find(sets, 2, 1).bytes;
	CHECK_STR(made_find(made_find(set, 1, 0).bytes, 2, 0).bytes, "b");
	CHECK_STR(made_find(made_find(set, 1, 1).bytes, 2, 0).bytes, TYPE);
	CHECK(made_find(sets, 2, 2).number == 0);
	ask_gone_value = true;
	querier_call(server_querier_series, &b, E_CANCELED);
	ask_gone_value = false;
	/* What two selectors have is one set, and a set of nothing is none. */
	buf_clear(&b);
	pb_put_str(&b, 1, STR("{comm=~\".+\"}"));
	pb_put_str(&b, 1, STR("{comm=\"b\"}"));
	pb_put_str(&b, 2, STR("comm"));
	sets = querier_call(server_querier_series, &b, OK);
	CHECK(made_find(sets, 2, 1).number == 2 && made_find(sets, 2, 2).number == 0);
	buf_clear(&b);
	pb_put_str(&b, 2, STR("service_name"));
	CHECK(querier_call(server_querier_series, &b, OK).len == 0);
	/* Types of what a selector names, and none where nothing has that label. */
	buf_clear(&b);
	pb_put_str(&b, 1, STR("{comm=\"b\"}"));
	pb_put_str(&b, 2, STR("__profile_type__"));
	set = made_find(querier_call(server_querier_series, &b, OK), 2, 0).bytes;
	CHECK_STR(made_find(made_find(set, 1, 0).bytes, 2, 0).bytes, TYPE);
	buf_clear(&b);
	pb_put_str(&b, 1, STR("{comm=\"c\"}"));
	pb_put_str(&b, 2, STR("__profile_type__"));
	CHECK(querier_call(server_querier_series, &b, OK).len == 0);
	buf_clear(&b);
	pb_put_str(&b, 1, STR("__profile_type__"));
	pb_put_str(&b, 2, STR("{comm=\"c\"}"));
	CHECK(querier_call(server_querier_label_values, &b, OK).len == 0);
	pb_put_str(&b, 2, STR("{comm=\"b\"}"));
	CHECK_STR(made_find(querier_call(server_querier_label_values, &b, OK), 1, 0).bytes, TYPE);
}

static void add_type_without_period(void)
{
	CLEANUP(profile_deinit) struct profile p = { 0 };
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 24) == OK);
	struct profile_type type = { .name = made_text(&p, "memory"),
		.sample_type = made_text(&p, "malloc_bytes"),
		.sample_unit = made_text(&p, "bytes"),
		.delta = true };
	struct profile_head h = { .time_ns = MADE_NS, .duration_ns = 1000 };
	struct profile_sample s = { .time_ns = MADE_NS, .value = 1 };
	const struct profile_label label = { made_text(&p, "comm"), made_text(&p, "m") };
	CHECK(profile_add_type(&p, &type, &h.type) == OK);
	CHECK(profile_add_head(&p, &h, &s.head) == OK);
	CHECK(profile_add_labels(&p, &label, 1, &s.resource) == OK);
	CHECK(profile_add_sample(&p, &s) == OK);
	CHECK_OK(store_append(made_store, STR(""), &p, hash128("none", 4), &e), &e);
}

/* The labels __period_type__ and __period_unit__ of a type that has no period are absent. */
static void leaves_empty_parts_out(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	add_type_without_period();
	pb_put_str(&b, 1, STR("{comm=\"m\"}"));
	struct str set = made_find(querier_call(server_querier_series, &b, OK), 2, 0).bytes;
	const char *const want[][2] = { { "__name__", "memory" },
		{ "__profile_type__", "memory:malloc_bytes:bytes::" },
		{ "__type__", "malloc_bytes" }, { "__unit__", "bytes" }, { "comm", "m" } };
	for (uint32_t i = 0; i < ARRAY_COUNT(want); i++) {
		struct str pair = made_find(set, 1, i).bytes;
		CHECK_STR(made_find(pair, 1, 0).bytes, want[i][0]);
		CHECK_STR(made_find(pair, 2, 0).bytes, want[i][1]);
	}
	CHECK(made_find(set, 1, ARRAY_COUNT(want)).number == 0);
	pb_put_str(&b, 2, STR("__period_type__"));
	CHECK(querier_call(server_querier_series, &b, OK).len == 0);
	buf_clear(&b);
	pb_put_str(&b, 1, STR("__period_unit__"));
	pb_put_str(&b, 2, STR("{comm=\"m\"}"));
	CHECK(querier_call(server_querier_label_values, &b, OK).len == 0);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(lists_types),
		cmocka_unit_test(lists_sets), cmocka_unit_test(leaves_empty_parts_out) };
	return cmocka_run_group_tests(tests, made_setup, querier_teardown);
}
