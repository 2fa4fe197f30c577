/* SPDX-License-Identifier: Apache-2.0 */
#include "selector/selector.h"
#include "test.h"

static void compares_texts(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum filter_op op;
		const char *text;
		bool holds; /* for "Runtime.main" */
	} cases[] = {
		{ "equal", FILTER_EQ, "runtime.MAIN", true },
		{ "equal, longer", FILTER_EQ, "runtime.main2", false },
		{ "not equal", FILTER_NE, "runtime.main", false },
		{ "not equal, other", FILTER_NE, "main", true },
		{ "contains", FILTER_CONTAINS, "E.M", true },
		{ "contains, end", FILTER_CONTAINS, "main", true },
		{ "contains nothing", FILTER_CONTAINS, "", true },
		{ "contains, absent", FILTER_CONTAINS, "mainx", false },
		{ "contains not", FILTER_NOT_CONTAINS, "time", false },
		{ "contains not, absent", FILTER_NOT_CONTAINS, "tome", true },
		{ "starts", FILTER_STARTS, "run", true },
		{ "starts, inside", FILTER_STARTS, "time", false },
		{ "starts not", FILTER_NOT_STARTS, "RUN", false },
		{ "starts not, longer", FILTER_NOT_STARTS, "runtime.main.x", true },
		{ "is", FILTER_IS, "Runtime.main", true },
		{ "is, another case", FILTER_IS, "runtime.main", false },
		{ "is not", FILTER_IS_NOT, "Runtime.main", false },
		{ "matches, inside", FILTER_MATCHES, "t.me\\.", true },
		{ "matches, another case", FILTER_MATCHES, "^runtime", false },
		{ "matches not", FILTER_NOT_MATCHES, "main$", false },
		{ "matches not, absent", FILTER_NOT_MATCHES, "^main", true },
	};
	FOR_EACH_CASE (c, cases) {
		struct filter_condition f = { .op = c->op, .text = str_of(c->text) };
		struct err e = { 0 };
		CHECK_OK(filter_condition_compile(&f, &e), &e);
		CHECK_CASE(c, filter_text_holds(&f, STR("Runtime.main")) == c->holds);
		filter_condition_deinit(&f);
	}
	/* Bytes outside ASCII are as they are. */
	struct filter_condition f = { .op = FILTER_EQ, .text = STR("\xc3\x84") };
	CHECK(!filter_text_holds(&f, STR("\xc3\xa4")));
}

static void refuses_expressions(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct filter_condition f = { .op = FILTER_MATCHES, .text = STR("a(") };
	CHECK(filter_condition_compile(&f, &e) == E_INVALID && !f.regex);
	CHECK(strstr(e.text, "'a('"));
}

static void compares_numbers(void **state)
{
	(void)state;
	struct filter_condition eq = { .field = FILTER_LINE, .op = FILTER_EQ, .number = 7 };
	struct filter_condition ne = { .field = FILTER_LINE, .op = FILTER_NE, .number = 7 };
	CHECK(filter_number_holds(&eq, 7) && !filter_number_holds(&eq, 8));
	CHECK(!filter_number_holds(&ne, 7) && filter_number_holds(&ne, 8));
	CHECK(filter_op_is_negative(FILTER_NE) && !filter_op_is_negative(FILTER_STARTS));
}

TEST_MAIN(cmocka_unit_test(compares_texts), cmocka_unit_test(refuses_expressions),
	cmocka_unit_test(compares_numbers))
