/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "otlp/otlp.h"

static void responses_come_back(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	struct otlp_rejects in = { 0 }, out = { .profiles = 9 };
	struct err e;
	otlp_encode_response(&in, &b);
	CHECK(b.len == 0); /* all taken: the empty message */
	CHECK_OK(otlp_decode_response(buf_view(&b), &out, &e), &e);
	CHECK(out.profiles == 0 && out.reason[0] == 0);

	in.profiles = 3;
	strcpy(in.reason, "no sample_type");
	otlp_encode_response(&in, &b);
	CHECK_OK(otlp_decode_response(buf_view(&b), &out, &e), &e);
	CHECK(out.profiles == 3);
	CHECK_STR(str_of(out.reason), "no sample_type");

	struct otlp_rejects untouched = { .profiles = 5 };
	CHECK(otlp_decode_response(str_make(b.data, b.len - 1), &untouched, &e) == E_INVALID);
	CHECK(untouched.profiles == 5);
}

static void long_reasons_are_cut(void **state)
{
	(void)state;
	/* partial_success { error_message: 300 x } */
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	buf_put(&b, "\x0a\xaf\x02\x12\xac\x02", 6);
	for (int i = 0; i < 300; i++)
		buf_u8(&b, 'x');
	struct otlp_rejects out;
	struct err e;
	CHECK_OK(otlp_decode_response(buf_view(&b), &out, &e), &e);
	CHECK(strlen(out.reason) == sizeof(out.reason) - 1);
}

TEST_MAIN(cmocka_unit_test(responses_come_back), cmocka_unit_test(long_reasons_are_cut))
