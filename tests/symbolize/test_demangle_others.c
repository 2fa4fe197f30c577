/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "symbolize/symbolize.h"

/* clang-format off */
static const struct {
	const char *name, *in, *want;
} cases[] = {
	{ "D", "_D5zoo_d3fibFiZi", "zoo_d.fib" },
	{ "D's main", "_Dmain", "D main" },
	{ "D, method", "_D3std4math6traits__T5isNaNTeZQjFNaNbNiNeeZb", "std.math.traits.isNaN!(real)" },
	{ "D, constant method of a type in a function",
		"_D3std4conv__T7toCharsVii10TaVEQBd5ascii10LetterCasei1TkZQBrFNaNbNiNfkZ6Result7opIndexMxFNaNbNiNfmZa",
		"std.conv.toChars!(10, char, 1, uint).Result.opIndex" },
	{ "D, a bracket in a text", "_D1a__T1bVAyaa1_28ZQmFNaNbNiNfiZi", "a.b!(\"(\")" },
	{ "D, long arguments",
		"_D3std5range10primitives__T5doPutTSQBh5array__T8AppenderTAyaZQoTaZQBnFNaNbNfKQBrKaZv",
		"std.range.primitives.doPut!(…)" },
	{ "begins like D", "_DYNAMIC", "_DYNAMIC" },
	{ "Haskell", "base_GHCziBase_zgzgze_info", "base_GHC.Base_>>=_info" },
	{ "Haskell's worker", "Main_zdwfib_info", "Main_$wfib_info" },
	{ "Haskell, a tuple", "ghczmprim_GHCziTuple_Z2T_info", "ghczmprim_GHCziTuple_Z2T_info" },
	{ "C with a z", "resize_info", "resize_info" },
};
/* clang-format on */

static void reads_well(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 1 << 20);
	FOR_EACH_CASE (c, cases) {
		struct str got = symbolize_demangle(str_of(c->in), &a);
		if (!str_eq(got, str_of(c->want)))
			print_error("got %.*s\n", STR_ARG(got));
		CHECK_CASE(c, str_eq(got, str_of(c->want)));
	}
	arena_deinit(&a);
}

/* A tuple of three times the one before, 300 times. */
static void leaves_explosions_alone(void **state)
{
	(void)state;
	char name[4096];
	struct arena a;
	arena_init(&a, 1 << 20);
	size_t n = (size_t)snprintf(name, sizeof(name), "_D1aFG1B");
	for (int i = 0; i < 300; i++)
		n += (size_t)snprintf(name + n, sizeof(name) - n, "B3QcQcQc");
	CHECK(str_eq(symbolize_demangle(str_of(name), &a), str_of(name)));
	arena_deinit(&a);
}

static void does_without_memory(void **state)
{
	(void)state;
	struct arena a;
	arena_init(&a, 0);
	CHECK_STR(symbolize_demangle(STR("_D5zoo_d3fibFiZi"), &a), "_D5zoo_d3fibFiZi");
	CHECK_STR(symbolize_demangle(STR("Main_zdwfib_info"), &a), "Main_zdwfib_info");
	arena_deinit(&a);
}

TEST_MAIN(cmocka_unit_test(reads_well), cmocka_unit_test(leaves_explosions_alone),
	cmocka_unit_test(does_without_memory))
