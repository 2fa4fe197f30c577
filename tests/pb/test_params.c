/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "sample.h"

/* "a=1&b.c=2", without escapes. */
static enum status read_params(const char *text, unsigned flags, struct buf *out, struct err *e)
{
	struct pb_param v[16];
	size_t count = 0;
	struct str rest = str_of(text), part;
	while (str_split(&rest, '&', &part)) {
		size_t eq = str_index(part, '=');
		v[count++] =
			(struct pb_param){ str_sub(part, 0, eq), str_sub(part, eq + 1, part.len) };
	}
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, 1 << 20);
	enum status s = pb_params_decode(&sample_desc, v, count, flags, &bytes, e);
	return s == OK ? pb_json_encode(&sample_desc, buf_view(&bytes), 0, out, e) : s;
}

/* clang-format off */
static const struct { const char *name, *want; } reads[] = {
	{ "", "{}" },
	{ "aString=x&an_int64=5", "{\"anInt64\":\"5\",\"aString\":\"x\"}" },
	{ "ints=1&ints=2&texts=&texts=y", "{\"ints\":[1,2],\"texts\":[\"\",\"y\"]}" },
	{ "inner.inner.aBool=true&inner.colour=COLOUR_RED", "{\"inner\":{\"colour\":\"COLOUR_RED\",\"inner\":{\"aBool\":true}}}" },
	{ "at=2026-11-21T17:00:00Z&took=1.5s", "{\"at\":\"2026-11-21T17:00:00Z\",\"took\":\"1.500s\"}" },
	{ "took=1h30m", "{\"took\":\"5400s\"}" },
	{ "at.seconds=5&at.nanos=7", "{\"at\":\"1970-01-01T00:00:05.000000007Z\"}" },
	{ "someBytes=-_8", "{\"someBytes\":\"+/8=\"}" },
	{ "oneInner.maybe=0", "{\"oneInner\":{\"maybe\":0}}" },
	{ "colour=1", "{\"colour\":\"COLOUR_RED\"}" },
};
static const struct { const char *name, *says; } refuses[] = {
	{ "x=1", "unknown parameter \"x\"" },
	{ "inner.x=1", "unknown parameter \"inner.x\"" },
	{ "aBool.x=1", "unknown parameter \"aBool.x\"" },
	{ "anInt32=x", "an_int32: \"x\" is not" },
	{ "anInt32=1&an_int32=2", "an_int32: given twice" },
	{ "inner=1", "inner: a message" },
	{ "inner.at=1", "inner: at: \"1\" is not a time" },
	{ "aString=\xFF", "a_string: not UTF-8" },
	{ "inners.aBool=true", "inners: it has no fields" },
	{ "at=2026-11-21T17:00:00Z&at.nanos=1", "at: given twice" },
};
/* clang-format on */

static void reads_paths_and_lists(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, reads) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		buf_init(&out, 1 << 20);
		CHECK_OK(read_params(c->name, 0, &out, &e), &e);
		CHECK_STR(buf_view(&out), c->want);
	}
}

static void refuses_and_says_why(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, refuses) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		buf_init(&out, 1 << 20);
		CHECK_CASE(c, read_params(c->name, 0, &out, &e) == E_INVALID);
		CHECK_CASE(c, strstr(e.text, c->says));
	}
}

static void passes_over_unknown_ones(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	CHECK_OK(read_params("x=1&y.z=2&aBool=true", PB_IGNORE_UNKNOWN, &out, &e), &e);
	CHECK_STR(buf_view(&out), "{\"aBool\":true}");
	char deep[2000] = "";
	for (int i = 0; i < 100; i++)
		memcpy(deep + 6 * i, "inner.", 7);
	memcpy(deep + 600, "aBool=true", 11);
	CHECK(read_params(deep, 0, &out, &e) == E_INVALID);
	CHECK(strstr(e.text, "inner: inner: "));
}

TEST_MAIN(cmocka_unit_test(reads_paths_and_lists), cmocka_unit_test(refuses_and_says_why),
	cmocka_unit_test(passes_over_unknown_ones))
