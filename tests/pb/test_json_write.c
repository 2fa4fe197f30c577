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

TEST_MAIN(cmocka_unit_test(writes_what_is_there), cmocka_unit_test(writes_zeros_when_asked),
	cmocka_unit_test(refuses_malformed_bytes))
