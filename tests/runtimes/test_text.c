/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes.h"
#include "test.h"

static const struct {
	const char *name;
	struct str bytes;
	unsigned character_bytes;
	const char *want;
} cases[] = {
	{ "ASCII", STR("main"), 1, "main" },
	{ "Latin-1", STR("caf\xe9"), 1, "caf\xc3\xa9" },
	{ "UCS-2", STR("\x42\x04\x3a\x00"), 2, "\xd1\x82:" },
	{ "UCS-2 of three bytes", STR("\xac\x20"), 2, "\xe2\x82\xac" },
	{ "half a pair", STR("\x3d\xd8"), 2, "\xef\xbf\xbd" },
	{ "UCS-4", STR("\x00\xf6\x01\x00"), 4, "\xf0\x9f\x98\x80" },
	{ "beyond Unicode", STR("\x00\x00\x11\x00"), 4, "\xef\xbf\xbd" },
	{ "cut in a character", STR("a\0b"), 2, "a" },
	{ "control characters", STR("a\nb\x7f"), 1, "a?b?" },
	{ "empty", STR(""), 4, "" },
};

static void makes_utf8(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 64);
		CHECK_CASE(c, runtimes_text(&out, c->bytes, c->character_bytes));
		CHECK_CASE(c, str_eq(buf_view(&out), str_of(c->want)));
		CHECK_CASE(c, str_is_utf8(buf_view(&out)));
	}
}

static void refuses_other_sizes(void **state)
{
	(void)state;
	struct buf out;
	buf_init(&out, 64);
	CHECK(!runtimes_text(&out, STR("abcdef"), 3) && !runtimes_text(&out, STR("abc"), 0));
	buf_deinit(&out);
}

TEST_MAIN(cmocka_unit_test(makes_utf8), cmocka_unit_test(refuses_other_sizes))
