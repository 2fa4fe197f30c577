/* SPDX-License-Identifier: Apache-2.0 */
/* GET /pyroscope/render, render-diff and label-values. */
#include "querier_ask.h"
#include "server/pyroscope/pyroscope.h"

static void renders(void **state)
{
	(void)state;
	struct str text = querier_get(server_pyroscope_render,
		"query=" TYPE "%7Bcomm%3D%22a%22%7D&from=1767323040&until=1767323050", OK);
	CHECK(strstr(text.p, "\"names\":[\"total\",\"main\",\"f\"]"));
	CHECK(strstr(text.p, "\"levels\":[[0,3,0,0],[0,3,0,1],"));
	CHECK(strstr(text.p, "\"timeline\":{\"startTime\":1767323040,\"samples\":[3],"
			     "\"durationDelta\":15,\"watermarks\":null},\"groups\":null,"));
	text = querier_get(server_pyroscope_render,
		"query=" TYPE "&from=1767323020&until=1767323060&groupBy=comm", OK);
	CHECK(strstr(text.p, "\"timeline\":{\"startTime\":1767323010,\"samples\":[0,0,5,0],"));
	CHECK(strstr(text.p, "\"groups\":{\"a\":{\"startTime\":1767323010,\"samples\":[0,0,3,0],"));
	CHECK(strstr(text.p, "\"b\":{\"startTime\":1767323010,\"samples\":[0,0,2,0],"));
	/* Of a type that nobody has; of what is no type. */
	text = querier_get(
		server_pyroscope_render, "query=a:b:c:d:e&from=1767323040&until=1767323050", OK);
	CHECK(strstr(text.p, "\"samples\":[0],"));
	querier_get(server_pyroscope_render, "query=cpu&from=1767323040", E_INVALID);
	querier_get(server_pyroscope_render, "query=a:b:c:d:e:gauge", E_INVALID);
	text = querier_get(server_pyroscope_render_diff,
		"leftQuery=" TYPE "&leftFrom=1767323040&leftUntil=1767323050&rightQuery=" TYPE
		"%7Bcomm%3D%22a%22%7D&rightFrom=1767323040000&rightUntil=1767323050000",
		OK);
	CHECK(strstr(text.p, "\"format\":\"double\""));
	CHECK(strstr(text.p, "\"leftTicks\":5,\"rightTicks\":3"));
	CHECK(str_starts(querier_get(server_pyroscope_label_values, "label=comm", OK),
		STR("[\"a\",\"b\"]")));
	querier_get(server_pyroscope_label_values, "", E_INVALID);
	CHECK(querier_get(server_pyroscope_apps, "", OK).p[0] == '[');
	text = querier_get(server_pyroscope_render, "name=app.cpu%7Bcomm%3D%22a%22%7D", OK);
	CHECK(strstr(text.p, "\"numTicks\":0"));
	querier_get(server_pyroscope_render, "name=app.nothing", E_INVALID);
	querier_get(server_pyroscope_render, "name=%7B%7D", E_INVALID);
	CLEANUP(buf_deinit) struct buf none;
	buf_init(&none, 16);
	CHECK(made_find(querier_call(server_pyroscope_version, &none, OK), 1, 0).u64 == 1);
	CHECK(querier_call(server_pyroscope_nothing, &none, OK).len == 0);
	querier_get(server_pyroscope_render, "from=now-1h", E_INVALID);
	text = querier_get(server_pyroscope_render,
		"query=" TYPE "&from=1767323040&until=1767323050&format=dot&max-nodes=1", OK);
	CHECK(strstr(text.p, "N1 [label=\"main\\n0 (0.00%)\\nof 5 (100.00%)\"]\n}\n"));
	CHECK(str_starts(str_of(asked.out.content_type), STR("text/plain")));
	querier_get(server_pyroscope_render, "query=" TYPE "&format=svg", E_UNSUPPORTED);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(renders) };
	return cmocka_run_group_tests(tests, made_setup, querier_teardown);
}
