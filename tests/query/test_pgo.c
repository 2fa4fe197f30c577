/* SPDX-License-Identifier: Apache-2.0 */
/* Cut stacks as a file: tests/query/test_report_pprof.c. */
#include "fake.h"

#include "query/pprof/pgo.h"

static void adds_up_equal_stacks(void **state)
{
	(void)state;
	struct query_cuts c = { 0 };
	struct err e = { 0 };
	const uint32_t path[] = { 3, 2, 1 };
	CHECK_OK(query_cuts_add(&c, path, 2, 10, &e), &e);
	CHECK_OK(query_cuts_add(&c, path, 3, 1, &e), &e);
	CHECK_OK(query_cuts_add(&c, path + 1, 2, 7, &e), &e);
	CHECK_OK(query_cuts_add(&c, path, 2, 5, &e), &e);
	CHECK(c.v.len == 3 && c.v.v[0].value == 15 && c.v.v[1].value == 1 && c.v.v[2].value == 7);
	CHECK(c.v.v[2].count == 2 && c.paths.v[c.v.v[2].first] == 2);
	query_cuts_deinit(&c);
}

static void leaves_the_name_of_a_callee(void **state)
{
	(void)state;
	struct profile p;
	struct err e = { 0 };
	uint32_t f, full, unnamed, out, again;
	CHECK(profile_init(&p, 1 << 20) == OK);
	struct profile_function function = { 0 };
	CHECK(profile_add_string(&p, STR("f"), &function.name) == OK);
	CHECK(profile_add_function(&p, &function, &f) == OK);
	const struct profile_line lines[] = { { f, 10, 0 }, { f, 20, 0 } };
	struct profile_location l = { .address = 0x10 };
	CHECK(profile_add_location(&p, &l, lines, 2, &full) == OK);
	CHECK(profile_add_location(&p, &l, NULL, 0, &unnamed) == OK);
	CHECK_OK(query_callee_copy(&p, full, &out, &e), &e);
	const struct profile_location *copy = &p.locations.v[out];
	CHECK(copy->address == 0 && copy->line_count == 2);
	CHECK(p.lines.v[copy->line_first].line == 0 && p.lines.v[copy->line_first + 1].line == 20);
	CHECK_OK(query_callee_copy(&p, full, &again, &e), &e);
	CHECK(again == out);
	CHECK_OK(query_callee_copy(&p, unnamed, &out, &e), &e);
	CHECK(out == unnamed);
	profile_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(adds_up_equal_stacks), cmocka_unit_test(leaves_the_name_of_a_callee))
