/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is taken over from one set of tables into another is the same there, without the names that
 * are left out; names of several sources are sorted, each once.
 */
#include "store/merge/take.h"
#include "test.h"

static const struct str some[] = { { "cpu", 3 }, { "pid", 3 }, { "trace_id", 8 } };

static uint32_t text(struct tables *t, const char *s)
{
	uint32_t id;
	CHECK(tables_add_string(t, str_of(s), &id) == OK);
	return id;
}

static void names_are_a_union(void **state)
{
	(void)state;
	static const struct str others[] = { { "bytes", 5 }, { "cpu", 3 }, { "span_id", 7 } };
	const struct tabs a = { .names = some, .name_count = 3 };
	const struct tabs b = { .names = others, .name_count = 3 };
	struct take_names n = { 0 };
	CHECK(take_names_add(&n, &a, &some[1], 1) == OK); /* without pid */
	CHECK(take_names_add(&n, &b, NULL, 0) == OK);
	CHECK(take_names_add(&n, &a, &some[1], 1) == OK);
	CHECK(n.count == 4 && str_eq(n.v[0], STR("bytes")) && str_eq(n.v[1], STR("cpu")));
	CHECK(str_eq(n.v[2], STR("span_id")) && str_eq(n.v[3], STR("trace_id")));
	static char texts[TABLES_NAMES_MAX][4];
	struct str many[TABLES_NAMES_MAX];
	for (int i = 0; i < TABLES_NAMES_MAX; i++) {
		snprintf(texts[i], sizeof(texts[i]), "n%02d", i);
		many[i] = str_of(texts[i]);
	}
	const struct tabs c = { .names = many, .name_count = TABLES_NAMES_MAX };
	CHECK(take_names_add(&n, &c, NULL, 0) == E_LIMIT && n.count == TABLES_NAMES_MAX);
}

/* Two sets, of which the second has a trace; one series; one location. */
static void fill(struct tables *t, uint32_t sets[2], uint32_t *series, uint32_t *location)
{
	struct tab_series key = { .delta = 1, .period = 9 };
	struct profile_location l = { .address = 5 };
	CHECK(tables_init(t, 1 << 20, some, 3) == OK);
	uint32_t values[] = { 0, text(t, "1"), text(t, "77"), 0 };
	struct profile_label label = { text(t, "comm"), text(t, "x") };
	CHECK(tables_add_set(t, values, &sets[0]) == OK);
	values[3] = text(t, "abc");
	CHECK(tables_add_set(t, values, &sets[1]) == OK);
	for (int i = 0; i < TABLES_TYPE_PARTS; i++)
		key.type[i] = text(t, "samples");
	CHECK(tables_add_series(t, &key, &label, 1, series) == OK);
	CHECK(tables_add_location(t, &l, NULL, 0, location) == OK);
}

static void dropped_names_are_left_out(void **state)
{
	(void)state;
	struct tables from, to;
	struct tabs tabs, got;
	uint32_t sets[2], series, location, out[2], id;
	CLEANUP(take_deinit) struct take t = { 0 };
	fill(&from, sets, &series, &location);
	tables_view(&from, &tabs);
	CHECK(tables_init(&to, 1 << 20, &some[1], 1) == OK); /* pid alone */
	CHECK(take_init(&t, &to, &tabs) == OK);
	for (int i = 0; i < 2; i++)
		CHECK(take_set(&t, sets[i], &out[i]) == OK);
	CHECK(out[0] == out[1] && out[0] != 0); /* what told them apart is gone */
	CHECK(take_series(&t, series, &id) == OK);
	tables_view(&to, &got);
	CHECK(str_eq(got.sample_strings[got.sets[2 * out[0] + 1]], STR("77")));
	CHECK(got.series[id].period == 9 && got.series[id].delta == 1);
	CHECK(str_eq(tabs_series_label(&got, id, STR("comm")), STR("x")));
	CHECK(str_eq(got.label_strings[got.series[id].type[4]], STR("samples")));
	CHECK(take_location(&t, location, &id) == OK && to.locations.v[id].address == 5);
	CHECK(take_location(&t, location + 1, &id) == E_CORRUPT);
	tables_deinit(&from);
	tables_deinit(&to);
}

static void traced_rows_keep_their_time(void **state)
{
	(void)state;
	struct tables from;
	struct tabs tabs;
	uint32_t sets[2], series, location;
	CLEANUP(canon_deinit) struct canon c = { 0 };
	CLEANUP(take_rounding_deinit) struct take_rounding r = { 0 };
	fill(&from, sets, &series, &location);
	tables_view(&from, &tabs);
	CHECK(canon_init(&c, &tabs) == OK);
	CHECK(take_rounding_init(&r, &tabs, &c) == OK);
	CHECK(r.delta[c.series.to[series]] == 1);
	CHECK(!r.keep_time[c.sets.to[sets[0]]] && r.keep_time[c.sets.to[sets[1]]]);
	tables_deinit(&from);
}

TEST_MAIN(cmocka_unit_test(names_are_a_union), cmocka_unit_test(dropped_names_are_left_out),
	cmocka_unit_test(traced_rows_keep_their_time))
