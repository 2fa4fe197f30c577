/* SPDX-License-Identifier: Apache-2.0 */
/* A request that was handled is a span at the collector; whose fault a failure is. */
#include "test.h"

#include <pthread.h>

#include "server/request/state.h"
#include "server/start.h"
#include "trace/trace.h"

static struct {
	pthread_mutex_t lock;
	char bytes[4096];
	size_t len;
} got = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void take(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)out;
	pthread_mutex_lock(&got.lock);
	got.len = MIN(r->body.len, sizeof(got.bytes));
	memcpy(got.bytes, r->body.p, got.len);
	pthread_mutex_unlock(&got.lock);
}

static bool has(const char *bytes, size_t len)
{
	return memmem(got.bytes, got.len, bytes, len);
}

static void makes_spans(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum status status;
		int http_status;
		bool fault;
	} cases[] = { { "good", OK, 0, false }, { "not found", E_NOTFOUND, 404, false },
		{ "ours", E_IO, 500, true }, { "plain", OK, 503, true },
		{ "not known", E_UNAUTHENTICATED, 401, false },
		{ "too large", E_LIMIT, 413, false } };
	static const struct net_route route = {
		.method = "POST", .path = "/v1/traces", .fn = take
	};
	FOR_EACH_CASE (c, cases) {
		struct net_server_config config, mine = { 0 };
		struct net_server *collector = NULL;
		struct err e = { 0 };
		net_server_config_default(&config);
		config.address = "127.0.0.1:0";
		CHECK_OK(net_server_start(&config, &route, 1, &collector, &e), &e);
		const struct server_config of_server = {
			.otlp_address = net_server_address(collector), .otlp_http = true
		};
		struct server s = { .config = &of_server };
		CHECK_OK(server_traces_open(&s, &mine, &e), &e);
		const struct net_request r = { .method = STR("GET"), .path = STR("/api/labels/x") };
		const struct net_handled h = { .request = &r,
			.route = "/api/labels/*",
			.http_status = c->http_status,
			.status = c->status };
		mine.handled(mine.handled_ctx, &h);
		trace_close(s.trace);
		net_server_stop(collector);
		CHECK_CASE(c, has("GET /api/labels/*", 17));
		CHECK_CASE(c, has("\x7a\x02\x18\x02", 4) == c->fault);
	}
}

static void is_off_without_an_address(void **state)
{
	(void)state;
	const struct server_config none = { 0 }, wrong = { .otlp_address = "ftp://x" };
	struct server s = { .config = &none };
	struct net_server_config c = { 0 };
	struct err e = { 0 };
	CHECK_OK(server_traces_open(&s, &c, &e), &e);
	CHECK(!c.handled && !s.trace);
	s.config = &wrong;
	CHECK(server_traces_open(&s, &c, &e) != OK && strstr(e.text, "--otlp-address"));
}

TEST_MAIN(cmocka_unit_test(makes_spans), cmocka_unit_test(is_off_without_an_address))
