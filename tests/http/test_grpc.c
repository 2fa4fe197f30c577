/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "codec/codec.h"
#include "http/http.h"

static void cuts_frames(void **state)
{
	(void)state;
	static const char bytes[] = "\0\0\0\0\3abc\1\0\0\0\0\200\0\0\0\2x";
	struct str in = str_make(bytes, sizeof(bytes) - 1);
	struct http_grpc_frame f;
	struct err e;
	CHECK_OK(http_grpc_next(&in, 3, &f, &e), &e);
	CHECK_STR(f.bytes, "abc");
	assert_int_equal(f.flags, 0);
	CHECK_OK(http_grpc_next(&in, 3, &f, &e), &e);
	CHECK(f.bytes.len == 0 && f.flags == HTTP_GRPC_COMPRESSED);
	assert_int_equal(http_grpc_next(&in, 3, &f, &e), E_UNAVAILABLE);
	assert_int_equal(in.len, 6);
	assert_int_equal(http_grpc_next(&in, 1, &f, &e), E_LIMIT);
	in.len = 4;
	assert_int_equal(http_grpc_next(&in, 1, &f, &e), E_UNAVAILABLE);
	struct str huge = str_make("\0\377\377\377\377", 5);
	assert_int_equal(http_grpc_next(&huge, 64 << 20, &f, &e), E_LIMIT);
}

static void decompresses(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf zip, scratch;
	buf_init(&zip, 1 << 20);
	buf_init(&scratch, 5000);
	char zeros[5000] = { 0 };
	CHECK(codec_gzip(zeros, sizeof(zeros), 1, &zip) == OK);
	struct http_grpc_frame f = { HTTP_GRPC_COMPRESSED, buf_view(&zip) };
	struct str m;
	struct err e;
	CHECK_OK(http_grpc_message(&f, STR("gzip"), &scratch, &m, &e), &e);
	assert_int_equal(m.len, 5000);
	/* A bomb ends at the limit of the scratch buffer. */
	buf_deinit(&scratch);
	buf_init(&scratch, 4999);
	assert_int_equal(http_grpc_message(&f, STR("gzip"), &scratch, &m, &e), E_LIMIT);
	assert_int_equal(http_grpc_message(&f, STR(""), &scratch, &m, &e), E_INVALID);
	assert_int_equal(http_grpc_message(&f, STR("snappy"), &scratch, &m, &e), E_UNSUPPORTED);
	f.bytes = STR("this is no gzip");
	assert_int_equal(http_grpc_message(&f, STR("gzip"), &scratch, &m, &e), E_INVALID);
	f.flags = 2;
	assert_int_equal(http_grpc_message(&f, STR("gzip"), &scratch, &m, &e), E_INVALID);
	f.flags = 0;
	CHECK_OK(http_grpc_message(&f, STR("identity"), &scratch, &m, &e), &e);
	CHECK_STR(m, "this is no gzip");
}

static void writes_trailers(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	http_grpc_put_trailers(&b, 0, STR(""));
	CHECK(str_eq(buf_view(&b), str_make("\200\0\0\0\20grpc-status: 0\r\n", 21)));
	buf_clear(&b);
	http_grpc_put_trailers(&b, 3, STR("bad % \xC3\xA9\n"));
	static const char want[] = "\200\0\0\0\073grpc-status: 3\r\ngrpc-message: bad %25 "
				   "%C3%A9%0A\r\n";
	assert_int_equal(b.len, sizeof(want) - 1);
	assert_int_equal(b.data[4], b.len - 5);
	CHECK(memcmp(b.data + 5, want + 5, b.len - 5) == 0);
	CLEANUP(buf_deinit) struct buf back;
	buf_init(&back, 100);
	http_grpc_get_text(&back, STR("bad %25 %C3%A9%0A%zz%2"));
	CHECK_STR(buf_view(&back), "bad % \xC3\xA9\n%zz%2");
}

static void reads_timeouts(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; int64_t ns; } texts[] = {
		{ "10S", 10000000000 }, { "250m", 250000000 }, { "7u", 7000 }, { "99999999n", 99999999 },
		{ "1H", 3600000000000 }, { "2M", 120000000000 }, { "99999999H", INT64_MAX },
		{ "", -1 }, { "S", -1 }, { "10", -1 }, { "123456789S", -1 }, { "-1S", -1 }, { "1s", -1 },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, texts) {
		int64_t ns = -1;
		CHECK_CASE(c, http_grpc_parse_timeout(str_of(c->name), &ns) == (c->ns >= 0));
		CHECK_CASE(c, ns == c->ns);
	}
}

static void converts_base64(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name, *bytes, *text; } pairs[] = {
		{ "empty", "", "" },          { "one", "f", "Zg==" },      { "two", "fo", "Zm8=" },
		{ "three", "foo", "Zm9v" },   { "six", "foobar", "Zm9vYmFy" },
		{ "above 127", "\xFF\xFE\xFD", "//79" },
	};
	static const struct { const char *name, *text, *bytes; } texts[] = {
		{ "pieces", "Zg==Zm8=", "ffo" }, { "odd", "Zg=", NULL }, { "alphabet", "Zg-_", NULL },
		{ "padding first", "=Zg=", NULL }, { "three pads", "Z===", NULL },
		{ "bits behind", "Zh==", NULL }, { "inner pad", "Zg=a", NULL }, { "space", "Zg= ", NULL },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, pairs) {
		CLEANUP(buf_deinit) struct buf b, back;
		buf_init(&b, 100);
		buf_init(&back, 100);
		http_base64_encode(&b, str_of(c->bytes));
		CHECK_CASE(c, str_eq(buf_view(&b), str_of(c->text)));
		CHECK_CASE(c, http_base64_decode(&back, buf_view(&b)));
		CHECK_CASE(c, str_eq(buf_view(&back), str_of(c->bytes)));
	}
	FOR_EACH_CASE (c, texts) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 100);
		CHECK_CASE(c, http_base64_decode(&b, str_of(c->text)) == (c->bytes != NULL));
		CHECK_CASE(c, !c->bytes || str_eq(buf_view(&b), str_of(c->bytes)));
	}
}

TEST_MAIN(cmocka_unit_test(cuts_frames), cmocka_unit_test(decompresses),
	cmocka_unit_test(writes_trailers), cmocka_unit_test(reads_timeouts),
	cmocka_unit_test(converts_base64))
