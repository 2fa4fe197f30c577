/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "sample.h"

static void writes_what_is_there(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; struct str bytes; unsigned flags; const char *want; } cases[] = {
		{ "empty", { "", 0 }, 0, "{}" },
		{ "unknown field", { "\xB8\x3E\x01", 3 }, 0, "{}" },
		{ "the last counts", { "\x28\x01\x28\x02", 4 }, 0, "{\"anInt32\":2}" },
		{ "of a choice too", { "\xB8\x01\x05\xB2\x01\x01x", 7 }, 0, "{\"oneText\":\"x\"}" },
		{ "packed and not", { "\x92\x01\x02\x01\x02\x90\x01\x03", 8 }, 0, "{\"ints\":[1,2,3]}" },
		{ "no UTF-8", { "\x4A\x02" "a\xFF", 4 }, 0, "{\"aString\":\"a\xEF\xBF\xBD\"}" },
		{ "enum by number", { "\x80\x01\x01", 3 }, PB_ENUM_NUMBERS, "{\"colour\":1}" },
		{ "a text where a number belongs", { "\x2A\x01x", 3 }, 0, "{}" },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		buf_init(&out, 1 << 20);
		enum status s = pb_json_encode(&sample_desc, c->bytes, c->flags, &out, &e);
		CHECK_CASE(c, s == (c->want ? OK : E_INVALID));
		if (c->want)
			CHECK_STR(buf_view(&out), c->want);
	}
}

static void writes_zeros_when_asked(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	CHECK_OK(pb_json_encode(&sample_desc, STR(""), PB_EMIT_ZERO, &out, &e), &e);
	CHECK_STR(buf_view(&out),
		"{\"aDouble\":0,\"aFloat\":0,\"anInt64\":\"0\",\"aUint64\":\"0\",\"anInt32\":0,"
		"\"aFixed64\":\"0\",\"aFixed32\":0,\"aBool\":false,\"aString\":\"\","
		"\"someBytes\":\"\",\"aUint32\":0,\"anSfixed32\":0,\"anSfixed64\":\"0\","
		"\"anSint32\":0,\"anSint64\":\"0\",\"colour\":\"COLOUR_NONE\",\"inner\":null,"
		"\"ints\":[],\"texts\":[],\"inners\":[],\"counts\":{},\"names\":{},\"at\":null,"
		"\"took\":null,\"traceId\":\"\",\"doubles\":[],\"bools\":[]}");
}

static void refuses_malformed_bytes(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct str bytes;
	} cases[] = { { "cut", { "\x28", 1 } }, { "cut inside", { "\x8A\x01\x01\x28", 4 } },
		{ "torn list", { "\x92\x01\x01\xFF", 4 } } };
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		buf_init(&out, 1 << 20);
		CHECK_CASE(c, pb_json_encode(&sample_desc, c->bytes, 0, &out, &e) == E_INVALID);
	}
}

/* A flame graph of Parca's old form is as deep as its longest stack. */
static void writes_deep_messages(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		size_t depth;
		enum status want;
	} cases[] = { { "a stack", 2060, OK }, { "the limit", PB_JSON_WRITE_DEPTH_MAX - 1, OK },
		{ "beyond", PB_JSON_WRITE_DEPTH_MAX, E_LIMIT }, { "far beyond", 10000, E_LIMIT } };
	static uint8_t bytes[10000 * 8];
	FOR_EACH_CASE (c, cases) {
		size_t at = sizeof(bytes); /* from the inside out: field 17, its length, the rest */
		for (size_t i = 0; i < c->depth; i++) {
			uint8_t head[8] = { 0x8A, 0x01 };
			size_t n = 2, len = sizeof(bytes) - at;
			for (; len >= 0x80; len >>= 7)
				head[n++] = (uint8_t)(len | 0x80);
			head[n++] = (uint8_t)len;
			at -= n;
			memcpy(bytes + at, head, n);
		}
		CLEANUP(buf_deinit) struct buf out;
		struct err e = { 0 };
		buf_init(&out, 1 << 20);
		struct str message = str_make(bytes + at, sizeof(bytes) - at);
		CHECK_CASE(c, pb_json_encode(&sample_desc, message, 0, &out, &e) == c->want);
		CHECK_CASE(c, c->want == OK || strstr(e.text, "JSON of more than 2560 levels"));
		CHECK_CASE(c, c->want != OK || out.len == 2 + strlen("{\"inner\":}") * c->depth);
	}
}

TEST_MAIN(cmocka_unit_test(writes_what_is_there), cmocka_unit_test(writes_zeros_when_asked),
	cmocka_unit_test(refuses_malformed_bytes), cmocka_unit_test(writes_deep_messages))
