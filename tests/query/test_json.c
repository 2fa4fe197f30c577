/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include "query/write/json.h"

#include <stdio.h>

static void writes_integers(void **state)
{
	(void)state;
	static const int64_t cases[] = { 0, 1, -1, 9, 10, 1234567890, INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		CLEANUP(buf_deinit) struct buf b;
		char want[32];
		buf_init(&b, 100);
		query_json_i64(&b, cases[i]);
		snprintf(want, sizeof(want), "%lld", (long long)cases[i]);
		CHECK_STR(buf_view(&b), want);
	}
}

static void writes_pairs(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1000);
	buf_u8(&b, '{');
	query_json_pair_i64(&b, "a", -5);
	query_json_pair_str(&b, "b", STR("x\"\n\xff"));
	query_json_key(&b, "c");
	buf_cstr(&b, "[]");
	buf_u8(&b, '}');
	CHECK_STR(buf_view(&b), "{\"a\":-5,\"b\":\"x\\\"\\n\xef\xbf\xbd\",\"c\":[]}");
}

TEST_MAIN(cmocka_unit_test(writes_integers), cmocka_unit_test(writes_pairs))
