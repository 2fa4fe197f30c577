/* SPDX-License-Identifier: Apache-2.0 */
/* Panics, and OTLP's other signals: acknowledged, counted, refused when they are not what they say.
 */
#include "test.h"

#include "ask.h"
#include "pb/pb.h"
#include "server/receive/receive.h"
#include "server/request/state.h"

static struct server server;

static int setup(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	return 0;
}

static void put_items(struct buf *b, int resources, int scopes, int items)
{
	for (int i = 0; i < resources; i++) {
		size_t resource = pb_begin(b, 1);
		pb_put_str(b, 1, STR("\x0a\x00")); /* a resource, looked over */
		for (int j = 0; j < scopes; j++) {
			size_t scope = pb_begin(b, 2);
			for (int k = 0; k < items; k++)
				pb_put_str_always(b, 2, STR(""));
			pb_end(b, scope);
		}
		pb_end(b, resource);
	}
}

static void counts_signals(void **state)
{
	(void)state;
	/* clang-format off */
	const struct { const char *name; net_handler_fn *fn; const char *json; metric_value *count; } signals[] = {
		{ "traces", server_otlp_traces, "{\"resourceSpans\":[{\"scopeSpans\":[{\"spans\":"
			"[{\"traceId\":\"x\"},{\"kind\":2}]}]}]}", &server.metrics.otlp_spans },
		{ "logs", server_otlp_logs, "{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":[{},{}]}]}]}",
			&server.metrics.otlp_logs },
		{ "metrics", server_otlp_metrics, "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":"
			"[{\"name\":\"a\"},{}]}]}]}", &server.metrics.otlp_metrics },
	};
	/* clang-format on */
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, 1 << 20);
	put_items(&message, 2, 3, 5);
	FOR_EACH_CASE (c, signals) {
		struct ask a;
		ask_init(&a, "/", "");
		a.r.is_rpc = true;
		a.r.body = buf_view(&message);
		c->fn(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == OK && a.out.body.len == 0);
		CHECK_CASE(c, metric_get(c->count) == 30);
		ask_deinit(&a);
		ask_init(&a, "/", "");
		ask_header(&a, "content-type", "application/json");
		a.r.body = str_of(c->json);
		c->fn(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == OK && str_eq(buf_view(&a.out.body), STR("{}")));
		CHECK_CASE(c, metric_get(c->count) == 32);
		ask_deinit(&a);
		ask_init(&a, "/", "");
		a.r.is_rpc = true;
		a.r.body = STR("\x0a\x05\x12");
		c->fn(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == E_INVALID && strstr(a.out.message, "malformed"));
		ask_deinit(&a);
		ask_init(&a, "/", "");
		ask_header(&a, "content-type", "text/plain");
		c->fn(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.http_status == 415);
		ask_deinit(&a);
	}
	assert_int_equal(metric_get(&server.metrics.otlp_failed), 6);
}

static void logs_panics(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf message;
	struct ask a;
	buf_init(&message, 1 << 20);
	size_t text = pb_begin(&message, 1);
	for (int i = 0; i < 10000; i++)
		buf_cstr(&message, "goroutine \"1\"\n");
	pb_end(&message, text);
	ask_init(&a, "/", "");
	a.r.body = buf_view(&message);
	server_report_panic(&server, &a.r, &a.out);
	assert_int_equal(a.out.status, OK);
	assert_int_equal(metric_get(&server.metrics.panics), 1);
	ask_deinit(&a);
	ask_init(&a, "/", "");
	a.r.body = STR("\x0a\x05");
	server_report_panic(&server, &a.r, &a.out);
	assert_int_equal(a.out.status, E_INVALID);
	assert_int_equal(metric_get(&server.metrics.panics), 1);
	ask_deinit(&a);
}

TEST_MAIN(cmocka_unit_test_setup(counts_signals, setup), cmocka_unit_test_setup(logs_panics, setup))
