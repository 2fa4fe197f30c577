/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

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

TEST_MAIN(cmocka_unit_test(aligns), cmocka_unit_test(cannot_drive_the_terminal),
	cmocka_unit_test(keeps_to_the_limit), cmocka_unit_test(writes_times))
