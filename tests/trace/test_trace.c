/* SPDX-License-Identifier: Apache-2.0 */
/* Spans as a collector gets them, over HTTP and gRPC, and what becomes of them without one. */
#include "test.h"

#include <unistd.h>

#include "base/clock.h"
#include "net/net.h"
#include "pb/pb.h"
#include "trace/trace.h"

static struct {
	pthread_mutex_t lock;
	struct buf got;
	int calls;
} collector = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void take(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)out;
	pthread_mutex_lock(&collector.lock);
	buf_clear(&collector.got);
	buf_str(&collector.got, r->body);
	collector.calls++;
	pthread_mutex_unlock(&collector.lock);
}

static struct net_server *start(void)
{
	static const struct net_route routes[] = {
		{ .method = "POST", .path = "/v1/traces", .fn = take },
		{ .method = "POST",
			.path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
			.fn = take,
			.is_rpc = true },
	};
	struct net_server_config c;
	struct net_server *s = NULL;
	struct err e = { 0 };
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, ARRAY_COUNT(routes), &s, &e), &e);
	return s;
}

/* The field of a message: its last one. */
static struct str field(struct str message, uint32_t number)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	struct str found = STR("");
	while (pb_next(&r, &f))
		if (f.number == number)
			found = f.bytes;
	return found;
}

static const struct trace_span good = {
	.method = { "GET", 3 },
	.route = { "/api/top", 8 },
	.parent = { "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 55 },
	.http_status = 200,
	.begun_ns = 1000,
	.ended_ns = 3000,
};

static void sends(bool http)
{
	struct net_server *server = start();
	const struct trace_config c = { .address = net_server_address(server), .http = http };
	struct trace *t = NULL;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf metrics;
	buf_init(&metrics, 1 << 16);
	CHECK_OK(trace_open(&c, NULL, &t, &e), &e);
	trace_add(t, &good);
	struct trace_span not_sampled = good;
	not_sampled.parent = STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00");
	trace_add(t, &not_sampled);
	trace_close(t);
	net_server_stop(server);
	struct str spans = field(field(buf_view(&collector.got), 1), 2), span = field(spans, 2);
	CHECK(field(span, 1).len == 16 && memcmp(field(span, 1).p, "\x0a\xf7\x65\x19", 4) == 0);
	CHECK(field(span, 2).len == 8);
	CHECK(field(span, 4).len == 8 && memcmp(field(span, 4).p, "\xb7\xad\x6b\x71", 4) == 0);
	CHECK_STR(field(span, 5), "GET /api/top");
	CHECK(!field(span, 15).len);
	struct str resource = field(field(buf_view(&collector.got), 1), 1);
	CHECK_STR(field(field(resource, 1), 1), "host.name");
}

static void sends_by_both_ways(void **state)
{
	(void)state;
	buf_init(&collector.got, 1 << 20);
	sends(false);
	sends(true);
	CHECK(collector.calls == 2);
	buf_deinit(&collector.got);
}

static enum status told_status;
static void told(enum status s, const struct err *e)
{
	told_status = s;
	CHECK(e->text[0]);
}

static void drops_and_counts(void **state)
{
	(void)state;
	const struct trace_config c = { .address = "127.0.0.1:1" };
	struct trace *t = NULL;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	char want[200];
	buf_init(&out, 1 << 16);
	CHECK_OK(trace_open(&c, told, &t, &e), &e);
	for (int i = 0; i < TRACE_WAITING_MAX + 7; i++)
		trace_add(t, &good);
	trace_write_metrics(t, &out);
	buf_u8(&out, 0);
	/* Unless the thread took some meanwhile, on a machine that has no time. */
	snprintf(want, sizeof(want), "firn_trace_spans_dropped_total{reason=\"full\"} ");
	CHECK(strstr((const char *)out.data, want));
	trace_close(t);
	CHECK(told_status == E_UNAVAILABLE);
	CHECK(trace_open(&(struct trace_config){ .address = "ftp://x" }, NULL, &t, &e) != OK);
}

static void reads_parents(void **state)
{
	(void)state;
	static const struct {
		const char *name, *parent;
		bool continues;
	} cases[] = {
		{ "good", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true },
		{ "later", "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", true },
		{ "more", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", false },
		{ "none", "", false },
		{ "zero", "00-00000000000000000000000000000000-b7ad6b7169203331-01", false },
		{ "no hex", "00-0af7651916cd43dd8448eb211c80319x-b7ad6b7169203331-01", false },
		{ "signs", "00-+af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false },
		{ "version", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", false },
	};
	buf_init(&collector.got, 1 << 20);
	FOR_EACH_CASE (c, cases) {
		struct net_server *server = start();
		const struct trace_config config = { .address = net_server_address(server) };
		struct trace_span s = good;
		struct trace *t = NULL;
		struct err e = { 0 };
		s.parent = str_of(c->parent);
		CHECK_OK(trace_open(&config, NULL, &t, &e), &e);
		trace_add(t, &s);
		trace_close(t);
		net_server_stop(server);
		struct str span = field(field(field(buf_view(&collector.got), 1), 2), 2);
		CHECK_CASE(c, field(span, 1).len == 16);
		CHECK_CASE(c, (field(span, 4).len == 8) == c->continues);
	}
	buf_deinit(&collector.got);
}

TEST_MAIN(cmocka_unit_test(sends_by_both_ways), cmocka_unit_test(drops_and_counts),
	cmocka_unit_test(reads_parents))
