/* SPDX-License-Identifier: Apache-2.0 */
/* JSON to bytes, judged by the bytes' own JSON, and what is refused with which sentence. */
#include "test.h"

#include "sample.h"

static enum status around(const char *json, unsigned flags, struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, 1 << 20);
	enum status s = pb_json_decode(&sample_desc, str_of(json), flags, &bytes, e);
	return s == OK ? pb_json_encode(&sample_desc, buf_view(&bytes), 0, out, e) : s;
}

/* clang-format off */
static const struct { const char *name, *want; } reads[] = {
	{ "{}", "{}" },
	{ " {\n\t} \r\n", "{}" },
	{ "{\"aDouble\":1.5,\"a_float\":0.1}", "{\"aDouble\":1.5,\"aFloat\":0.1}" },
	{ "{\"aDouble\":\"NaN\",\"doubles\":[\"Infinity\",\"-Infinity\",-0.0,1e300]}", "{\"aDouble\":\"NaN\",\"doubles\":[\"Infinity\",\"-Infinity\",-0,1e+300]}" },
	{ "{\"anInt64\":\"-9223372036854775808\",\"aUint64\":18446744073709551615}", "{\"anInt64\":\"-9223372036854775808\",\"aUint64\":\"18446744073709551615\"}" },
	{ "{\"anInt32\":-1,\"aUint32\":4294967295,\"anSint32\":-2,\"anSint64\":\"-3\"}", "{\"anInt32\":-1,\"aUint32\":4294967295,\"anSint32\":-2,\"anSint64\":\"-3\"}" },
	{ "{\"anInt32\":1e3,\"anInt64\":\"2.0\"}", "{\"anInt64\":\"2\",\"anInt32\":1000}" },
	{ "{\"aFixed64\":\"7\",\"aFixed32\":8,\"anSfixed32\":-9,\"anSfixed64\":-10}", "{\"aFixed64\":\"7\",\"aFixed32\":8,\"anSfixed32\":-9,\"anSfixed64\":\"-10\"}" },
	{ "{\"aBool\":true,\"bools\":[true,false]}", "{\"aBool\":true,\"bools\":[true,false]}" },
	{ "{\"aString\":\"a\\u00e9\\ud83d\\ude00\\n\\/\\\"\"}", "{\"aString\":\"a\xC3\xA9\xF0\x9F\x98\x80\\n/\\\"\"}" },
	{ "{\"someBytes\":\"+/8=\"}", "{\"someBytes\":\"+/8=\"}" },
	{ "{\"some_bytes\":\"-_8\"}", "{\"someBytes\":\"+/8=\"}" },
	{ "{\"traceId\":\"00FFa0\"}", "{\"traceId\":\"00ffa0\"}" },
	{ "{\"colour\":\"COLOUR_RED\"}", "{\"colour\":\"COLOUR_RED\"}" },
	{ "{\"colour\":-7}", "{\"colour\":\"COLOUR_ODD\"}" },
	{ "{\"colour\":5}", "{\"colour\":5}" },
	{ "{\"inner\":{\"inner\":{\"aBool\":true}}}", "{\"inner\":{\"inner\":{\"aBool\":true}}}" },
	{ "{\"inner\":{}}", "{\"inner\":{}}" },
	{ "{\"inner\":null,\"ints\":null,\"aString\":null}", "{}" },
	{ "{\"ints\":[1,-2,\"3\"],\"texts\":[\"\",\"x\"],\"inners\":[{},{\"aBool\":true}]}", "{\"ints\":[1,-2,3],\"texts\":[\"\",\"x\"],\"inners\":[{},{\"aBool\":true}]}" },
	{ "{\"ints\":[]}", "{}" },
	{ "{\"maybe\":0}", "{\"maybe\":0}" },
	{ "{\"oneText\":\"\"}", "{\"oneText\":\"\"}" },
	{ "{\"oneInner\":{}}", "{\"oneInner\":{}}" },
	{ "{\"counts\":{\"a\":\"1\",\"\":2,\"z\":0}}", "{\"counts\":{\"a\":\"1\",\"\":\"2\",\"z\":\"0\"}}" },
	{ "{\"names\":{\"5\":{\"aBool\":true}}}", "{\"names\":{\"5\":{\"aBool\":true}}}" },
	{ "{\"at\":\"2026-11-21T17:00:00.5+01:00\"}", "{\"at\":\"2026-11-21T16:00:00.500Z\"}" },
	{ "{\"took\":\"-1.000000001s\"}", "{\"took\":\"-1.000000001s\"}" },
	{ "{\"took\":\"0s\",\"at\":\"1970-01-01T00:00:00Z\"}", "{\"at\":\"1970-01-01T00:00:00Z\",\"took\":\"0s\"}" },
};
static const struct { const char *name, *says; } refuses[] = {
	{ "", "an object is expected at byte 0" },
	{ "[]", "an object is expected" },
	{ "{\"aBool\":true}x", "more than one value" },
	{ "{\"aBool\":true", "',' or '}' is expected" },
	{ "{\"aBool\" true}", "':' is expected" },
	{ "{aBool:true}", "a string is expected" },
	{ "{\"aBool\":true,}", "a string is expected" },
	{ "{\"aBol\":true}", "unknown field \"aBol\" of t.Sample" },
	{ "{\"aBool\":\"true\"}", "a_bool: true or false is expected" },
	{ "{\"aBool\":1}", "a_bool: \"1\" is not true or false" },
	{ "{\"aBool\":true,\"a_bool\":true}", "a_bool: given twice" },
	{ "{\"oneText\":\"x\",\"oneNumber\":1}", "one_number: another of the same choice" },
	{ "{\"anInt32\":2147483648}", "an_int32: \"2147483648\" is not a 32 bit number" },
	{ "{\"anInt32\":1.5}", "is not a 32 bit number" },
	{ "{\"anInt32\":01}", "is not a 32 bit number" },
	{ "{\"anInt32\":0x10}", "is not a 32 bit number" },
	{ "{\"aUint32\":-1}", "is not an unsigned 32 bit number" },
	{ "{\"aUint64\":18446744073709551616}", "is not an unsigned 64 bit number" },
	{ "{\"aFloat\":1e39}", "within a float's range" },
	{ "{\"aDouble\":1e999}", "is not a number" },
	{ "{\"aString\":1}", "a_string: a string is expected, not 1" },
	{ "{\"aString\":\"a\nb\"}", "a control character" },
	{ "{\"aString\":\"\\x\"}", "a bad escape" },
	{ "{\"aString\":\"\\ud800\"}", "a bad escape" },
	{ "{\"aString\":\"\\udc00\"}", "a bad escape" },
	{ "{\"aString\":\"\xFF\"}", "not UTF-8" },
	{ "{\"aString\":\"", "does not end" },
	{ "{\"someBytes\":\"a\"}", "not base64" },
	{ "{\"someBytes\":\"a*==\"}", "not base64" },
	{ "{\"traceId\":\"0\"}", "not hexadecimal" },
	{ "{\"colour\":\"PINK\"}", "\"PINK\" is not a value of t.Sample.Colour" },
	{ "{\"ints\":1}", "ints: a list is expected" },
	{ "{\"ints\":[null]}", "is not a 32 bit number" },
	{ "{\"ints\":[1 2]}", "',' or ']' is expected" },
	{ "{\"inner\":{\"inner\":{\"anInt32\":\"x\"}}}", "inner: inner: an_int32: \"x\" is not" },
	{ "{\"counts\":{\"a\":{}}}", "counts: " },
	{ "{\"at\":\"2026-02-29T00:00:00Z\"}", "is not a time" },
	{ "{\"at\":\"2026-11-21\"}", "is not a time" },
	{ "{\"at\":\"0000-12-31T23:59:59Z\"}", "is not a time" },
	{ "{\"took\":\"1m\"}", "is not a duration" },
	{ "{\"took\":\"1.0000000001s\"}", "is not a duration" },
	{ "{\"took\":\"315576000001s\"}", "is not a duration" },
};
/* clang-format on */

static void reads_every_form(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, reads) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		buf_init(&out, 1 << 20);
		CHECK_OK(around(c->name, 0, &out, &e), &e);
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
		CHECK_CASE(c, around(c->name, 0, &out, &e) == E_INVALID);
		if (!strstr(e.text, c->says))
			print_error("%s\n", e.text);
		CHECK_CASE(c, strstr(e.text, c->says));
	}
}

static void passes_over_unknown_fields(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	CHECK_OK(around("{\"x\":[1,{\"y\":[\"}\",null,true]}],\"z\":{},\"aBool\":true}",
			 PB_IGNORE_UNKNOWN, &out, &e),
		&e);
	CHECK_STR(buf_view(&out), "{\"aBool\":true}");
	CHECK(around("{\"x\":[1,}", PB_IGNORE_UNKNOWN, &out, &e) == E_INVALID);
	CHECK(around("{\"x\":nul}", PB_IGNORE_UNKNOWN, &out, &e) == E_INVALID);
}

/* Both in messages and in what is passed over. */
static void bounds_the_depth(void **state)
{
	(void)state;
	static const struct {
		const char *name, *open;
		char close;
	} cases[] = { { "messages", "{\"inner\":", '}' }, { "lists", "[", ']' } };
	FOR_EACH_CASE (c, cases) {
		for (size_t depth = 10; depth <= 100000; depth *= 100) {
			CLEANUP(buf_deinit) struct buf json;
			CLEANUP(buf_deinit) struct buf out;
			struct err e = { 0 };
			buf_init(&json, 4 << 20);
			buf_init(&out, 4 << 20);
			buf_cstr(&json, c->close == ']' ? "{\"x\":" : "");
			for (size_t i = 0; i < depth; i++)
				buf_cstr(&json, c->open);
			buf_cstr(&json, c->close == ']' ? "1" : "{}");
			for (size_t i = 0; i < depth; i++)
				buf_u8(&json, (uint8_t)c->close);
			buf_cstr(&json, c->close == ']' ? "}" : "");
			enum status s = pb_json_decode(
				&sample_desc, buf_view(&json), PB_IGNORE_UNKNOWN, &out, &e);
			CHECK_CASE(c, s == (depth < PB_JSON_DEPTH_MAX ? OK : E_INVALID));
			CHECK_CASE(c, s == OK || strstr(e.text, "too many levels"));
		}
	}
}

TEST_MAIN(cmocka_unit_test(reads_every_form), cmocka_unit_test(refuses_and_says_why),
	cmocka_unit_test(passes_over_unknown_fields), cmocka_unit_test(bounds_the_depth))
