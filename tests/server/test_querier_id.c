/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of exemplars: a profile is found again by its id, and nothing else is. */
#include "querier_ask.h"
#include "server/pyroscope/pyroscope.h"

static void finds_a_profile_again(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	char id[40];
	buf_init(&b, 1 << 16);
	querier_put_steps(&b, "{comm=~\"a|b\"}", 10);
	pb_put_u64(&b, 10, 2);
	struct str point = querier_first_point(querier_call(server_querier_select_series, &b, OK));
	CHECK(querier_double(made_find(point, 1, 0)) == 5);
	struct str exemplar = made_find(point, 4, 0).bytes;
	CHECK(made_find(exemplar, 4, 0).u64 == 3 && made_find(point, 4, 1).number == 0);
	CHECK((int64_t)made_find(exemplar, 1, 0).u64 == MS);
	CHECK_STR(made_find(made_find(exemplar, 5, 0).bytes, 2, 0).bytes, "a");
	struct str text = made_find(exemplar, 2, 0).bytes;
	CHECK(text.len == 36);
	snprintf(id, sizeof(id), "%.*s", STR_ARG(text));
	/* Of all samples of this time only those of its series, also where it is asked for more. */
	const struct {
		const char *name, *selector;
		uint64_t want;
	} cases[] = { { "all", "{}", 3 }, { "another", "{comm=\"b\"}", 0 } };
	FOR_EACH_CASE (c, cases) {
		buf_clear(&b);
		querier_put_merge(&b, TYPE, c->selector);
		pb_put_str(&b, 8, str_of(id));
		struct str flame =
			made_find(querier_call(server_querier_merge_stacktraces, &b, OK), 1, 0)
				.bytes;
		CHECK_CASE(c, made_find(flame, 3, 0).u64 == c->want);
	}
	/* Another series' hash, another time, no id. */
	static const struct {
		const char *name;
		size_t at;
		enum status want;
	} changes[] = { { "series", 35, OK }, { "time", 3, OK }, { "none", 8, E_INVALID } };
	FOR_EACH_CASE (c, changes) {
		char other[40];
		memcpy(other, id, sizeof(other));
		other[c->at] = c->want != OK ? 'x' : other[c->at] == '0' ? '1' : '0';
		buf_clear(&b);
		querier_put_merge(&b, TYPE, "{}");
		pb_put_str(&b, 8, str_of(other));
		struct str answer = querier_call(server_querier_merge_stacktraces, &b, c->want);
		if (c->want == OK)
			CHECK_CASE(c, made_find(made_find(answer, 1, 0).bytes, 3, 0).u64 == 0);
	}
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(finds_a_profile_again) };
	return cmocka_run_group_tests(tests, made_setup, querier_teardown);
}
