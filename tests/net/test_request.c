/* SPDX-License-Identifier: Apache-2.0 */
#include "net/net.h"
#include "net/rpc.h"
#include "test.h"

static void finds(void **state)
{
	(void)state;
	struct http_header headers[] = { { STR("a"), STR("1") }, { STR("b"), STR("2") },
		{ STR("a"), STR("3") } };
	struct net_request r = { .headers = headers, .header_count = 3, .query = STR("x=1&x=%2B") };
	CHECK_STR(net_header_find(&r, "a"), "1");
	CHECK_STR(net_header_find(&r, "c"), "");
	struct arena a;
	struct str v;
	arena_init(&a, 1000);
	CHECK(net_query_param(&r, "x", 1, &a, &v));
	CHECK_STR(v, "+");
	CHECK(!net_query_param(&r, "x", 2, &a, &v));
	arena_deinit(&a);
}

static void fails(void **state)
{
	(void)state;
	static struct net_response out;
	struct err e;
	net_response_init(&out);
	buf_cstr(&out.body, "half");
	err_set(&e, E_UNAVAILABLE, "not \"now\"");
	net_fail(&out, E_UNAVAILABLE, &e);
	assert_int_equal(out.http_status, 503);
	assert_int_equal(out.status, E_UNAVAILABLE);
	CHECK_STR(
		buf_view(&out.body), "{\"error\":\"not \\\"now\\\"\",\"code\":\"UNAVAILABLE\"}\n");
	net_fail(&out, E_NOTFOUND, NULL);
	CHECK_STR(buf_view(&out.body), "{\"error\":\"no such object\",\"code\":\"NOTFOUND\"}\n");
	buf_deinit(&out.body);
}

TEST_MAIN(cmocka_unit_test(finds), cmocka_unit_test(fails))
