/* SPDX-License-Identifier: Apache-2.0 */
#include "jit/jit.h"

#include "test.h"

static struct str name_at(struct jit_map *m, uint64_t address, uint64_t time_ns)
{
	struct jit_found f;
	return jit_map_find(m, address, time_ns, &f) ? f.name : STR("none");
}

static void reads_lines_as_they_come(void **state)
{
	(void)state;
	const char text[] = "1000 10 first one\n0x2000 0x20 JDK 25\n\n3000 8 cut in";
	struct jit_map *m;
	assert_int_equal(jit_map_new(&m), OK);
	size_t done = jit_perfmap_read(m, str_of(text), 0);
	assert_int_equal(done, strlen("1000 10 first one\n0x2000 0x20 JDK 25\n\n"));
	CHECK_STR(name_at(m, 0x1000, 5), "first one");
	CHECK_STR(name_at(m, 0x100f, 5), "first one");
	CHECK_STR(name_at(m, 0x1010, 5), "none");
	CHECK_STR(name_at(m, 0x0fff, 5), "none");
	CHECK_STR(name_at(m, 0x201f, 5), "JDK 25");
	CHECK_STR(name_at(m, 0x3000, 5), "none");
	assert_int_equal(jit_perfmap_read(m, STR("3000 8 cut in two\n"), 0), 18);
	CHECK_STR(name_at(m, 0x3000, 5), "cut in two");
	assert_int_equal(jit_map_bad(m), 0);
	jit_map_free(m);
}

static void later_lines_win_from_their_time_on(void **state)
{
	(void)state;
	struct jit_map *m;
	assert_int_equal(jit_map_new(&m), OK);
	jit_perfmap_read(m, STR("1000 100 a\n1080 10 b\n"), 0);
	jit_perfmap_read(m, STR("1000 40 c\n"), 100);
	CHECK_STR(name_at(m, 0x1000, 99), "a");
	CHECK_STR(name_at(m, 0x1000, 100), "c");
	CHECK_STR(name_at(m, 0x1080, 100), "b");
	CHECK_STR(name_at(m, 0x1090, 100), "a");
	jit_map_free(m);
}

/* clang-format off */
static const struct { const char *name; const char *line; } bad[] = {
	{ "no name", "1000 10\n" },
	{ "a blank name", "1000 10  \n" },
	{ "no size", "1000\n" },
	{ "no number", "xyz 10 f\n" },
	{ "a sign", "-10 10 f\n" },
	{ "empty code", "1000 0 f\n" },
	{ "too large", "1000 40000001 f\n" },
	{ "past the end of memory", "fffffffffffffff0 20 f\n" },
	{ "a number of 17 digits", "10000000000000000 10 f\n" },
};
/* clang-format on */

static void passes_over_what_is_no_line(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, bad) {
		struct jit_map *m;
		assert_int_equal(jit_map_new(&m), OK);
		CHECK_CASE(c, jit_perfmap_read(m, str_of(c->line), 0) == strlen(c->line));
		CHECK_CASE(c, jit_map_bad(m) == 1);
		CHECK_CASE(c, jit_map_len(m) == 0);
		jit_map_free(m);
	}
}

static void passes_over_a_line_without_end(void **state)
{
	(void)state;
	static char text[JIT_PERFMAP_LINE_MAX + 100];
	struct jit_map *m;
	memset(text, 'x', sizeof(text));
	assert_int_equal(jit_map_new(&m), OK);
	assert_int_equal(jit_perfmap_read(m, str_make(text, sizeof(text)), 0), sizeof(text));
	assert_int_equal(jit_perfmap_read(m, str_make(text, 100), 0), 0);
	assert_int_equal(jit_map_bad(m), 1);
	jit_map_free(m);
}

static void cuts_and_cleans_names(void **state)
{
	(void)state;
	char text[2000 + JIT_NAME_BYTES_MAX] = "1000 10 ";
	struct jit_map *m;
	size_t at = strlen(text);
	memset(text + at, 'n', sizeof(text) - at);
	text[sizeof(text) - 1] = '\n';
	assert_int_equal(jit_map_new(&m), OK);
	jit_perfmap_read(m, str_make(text, sizeof(text)), 0);
	jit_perfmap_read(m, STR("2000 10 a\tb\xff\xc3\n3000 10 \xc3\xa4\n"), 0);
	assert_int_equal(name_at(m, 0x1000, 0).len, JIT_NAME_BYTES_MAX);
	CHECK_STR(name_at(m, 0x2000, 0), "a?b??");
	CHECK_STR(name_at(m, 0x3000, 0), "\xc3\xa4");
	jit_map_free(m);
}

TEST_MAIN(cmocka_unit_test(reads_lines_as_they_come),
	cmocka_unit_test(later_lines_win_from_their_time_on),
	cmocka_unit_test(passes_over_what_is_no_line),
	cmocka_unit_test(passes_over_a_line_without_end), cmocka_unit_test(cuts_and_cleans_names))
