/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include "query/write/text.h"

static void aligns(void **state)
{
	(void)state;
	CLEANUP(query_text_deinit) struct query_text t;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	query_text_begin(&t, 3, 1000);
	query_text_right(&t, 0);
	query_text_cell(&t, STR("N"));
	query_text_cell(&t, STR("NAME"));
	query_text_cell(&t, STR("LAST"));
	query_text_value(&t, 1230000000, STR("nanoseconds"));
	query_text_cell(&t, STR("ä"));
	query_text_cell(&t, STR("a long one"));
	query_text_share(&t, 456, 1000);
	query_text_cell(&t, STR(""));
	query_text_cell(&t, STR("x"));
	query_text_share(&t, 5, 0);
	query_text_cell(&t, STR("longer"));
	query_text_cell(&t, STR(""));
	query_text_end(&t, &b);
	CHECK_STR(buf_view(&b), "    N  NAME    LAST\n"
				"1.23s  ä       a long one\n"
				"45.6%          x\n"
				" 0.0%  longer  \n");
}

static void names_the_runtime_where_no_binary_is(void **state)
{
	(void)state;
	CLEANUP(query_text_deinit) struct query_text t;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	query_text_begin(&t, 1, 1000);
	query_text_binary(&t, STR("/bin/x"), FRAME_NATIVE);
	query_text_binary(&t, STR(""), FRAME_NATIVE);
	query_text_binary(&t, STR(""), FRAME_CPYTHON);
	query_text_binary(&t, STR("app.so"), FRAME_JVM);
	query_text_binary(&t, STR(""), FRAME_MARKER);
	query_text_end(&t, &b);
	CHECK_STR(buf_view(&b), "/bin/x\n\n[cpython]\napp.so\n\n");
}

static void fits(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t width;
		const char *text;
	} cases[] = {
		{ "net.(*conn).Read", 16, "net.(*conn).Read" },
		{ "github.com/a/b/grpc.(*Server).Serve", 24, "…/grpc.(*Server).Serve" },
		{ "github.com/a/b.Map[github.com/c/d.Key]", 16, "…/b.Map[…]" },
		{ "std::vector<std::pair<int, long>>::at(unsigned long) const", 30,
			"std::vector<…>::at(…) const" },
		{ "operator<<(std::ostream&, int const&)", 20, "operator<<(…)" },
		{ "operator<(std::ostream, int const&)", 20, "operator<(…)" },
		{ "std::function<void ()>::operator->(int, int, int)", 32,
			"std::funct…id ()>::operator->(…)" },
		{ "an_open<bracket_that_nobody_closes", 20, "an_ope…nobody_closes" },
		{ "abcdefghijklmnopqrstuvwxyz", 10, "abc…uvwxyz" },
		{ "äöüäöüäöüäöüäöü", 10, "äöü…äöüäöü" },
		{ " │  └ abcdefghijklmnopqrstuvwxyz", 26, " │  └ abcdef…nopqrstuvwxyz" },
		{ "", 5, "" },
	};
	FOR_EACH_CASE (k, cases) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1000);
		query_text_shorten(str_of(k->name), k->width, &b);
		CHECK_CASE(k, str_eq(buf_view(&b), str_of(k->text)));
	}
}

/* A long binary pushes its own line only; on a line of a given width both names give way. */
static void keeps_columns_together(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint32_t width;
		const char *text;
	} cases[] = {
		{ "no limit", 0,
			"N  BINARY                            FUNCTION\n"
			"1  a-binary-of-a-name-that-is-much-too-long-for-its-column  f\n"
			"2  b                                 "
			"a_function_of_a_name_that_is_long_enough_too\n" },
		{ "a terminal", 64,
			"N  BINARY               FUNCTION\n"
			"1  a-bina…r-its-column  f\n"
			"2  b                    "
			"a_function_of…me_that_is_long_enough_too\n" },
	};
	FOR_EACH_CASE (k, cases) {
		CLEANUP(query_text_deinit) struct query_text t;
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 1000);
		query_text_begin(&t, 3, 1000);
		query_text_fit(&t, 1, k->width);
		static const char *const cells[] = { "N", "BINARY", "FUNCTION", "1",
			"a-binary-of-a-name-that-is-much-too-long-for-its-column", "f", "2", "b",
			"a_function_of_a_name_that_is_long_enough_too" };
		for (size_t i = 0; i < ARRAY_COUNT(cells); i++)
			query_text_cell(&t, str_of(cells[i]));
		query_text_end(&t, &b);
		CHECK_STR(buf_view(&b), k->text);
	}
}

static void cannot_drive_the_terminal(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	query_text_clean(&b, STR("a\x1b[31mb\nc\x7f"
				 "d\xc2\x9b"
				 "e\xc3\xa4\0f"));
	CHECK_STR(buf_view(&b), "a?[31mb?c?d?e\xc3\xa4?f");
	buf_clear(&b);
	query_text_clean(&b, STR(""));
	query_text_clean(&b, STR("\xc2"));
	CHECK_STR(buf_view(&b), "\xc2");
}

static void keeps_to_the_limit(void **state)
{
	(void)state;
	CLEANUP(query_text_deinit) struct query_text t;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	query_text_begin(&t, 1, 10);
	query_text_cell(&t, STR("much longer than that"));
	query_text_end(&t, &b);
	CHECK(buf_status(&b) == E_LIMIT);
}

static void writes_times(void **state)
{
	(void)state;
	char text[32];
	query_text_time(1767323045 * NS_PER_SEC + 999999999, text);
	CHECK_STR(str_of(text), "2026-01-02 03:04:05Z");
	query_text_time(-1, text);
	CHECK_STR(str_of(text), "1969-12-31 23:59:59Z");
	query_text_time(INT64_MAX, text);
	CHECK_STR(str_of(text), "2262-04-11 23:47:16Z");
}

TEST_MAIN(cmocka_unit_test(aligns), cmocka_unit_test(names_the_runtime_where_no_binary_is),
	cmocka_unit_test(fits), cmocka_unit_test(keeps_columns_together),
	cmocka_unit_test(cannot_drive_the_terminal), cmocka_unit_test(keeps_to_the_limit),
	cmocka_unit_test(writes_times))
