/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses and bodies of OTLP's answers. A sink stands in for the store. */
#include "test.h"

#include "otlp/otlp.h"
#include "pb/pb.h"

#include "ask.h"
#include "server/receive/otlp.h"
#include "server/receive/receive.h"
#include "server/request/inlet.h"
#include "server/request/state.h"
#include "sink.h"

static struct server server;
static struct server_inlet *inlet;
static struct fake_sink sink;
static size_t put_samples;
static struct profile_link put_link;

static void look(const struct profile *p)
{
	put_samples = p->samples.len;
	put_link = p->links.v[p->samples.v[0].link];
}

static int setup(void **state)
{
	(void)state;
	struct err e = { 0 };
	memset(&server, 0, sizeof(server));
	fake_sink_ingest(&sink, &server.ingest);
	sink.look = look;
	CHECK_OK(server_inlet_of(&server, &server_protocol_otlp, &inlet, &e), &e);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	server_inlets_close(&server);
	ingest_deinit(&server.ingest);
	CHECK(sink.admitted == 0);
	return 0;
}

/* One sample of one CPU profile. */
static void make_message(struct buf *out)
{
	struct profile p;
	uint32_t name, text, unit, type, head, loc, stack;
	CHECK(profile_init(&p, 1 << 24) == OK);
	CHECK(profile_add_string(&p, STR("parca_agent"), &name) == OK);
	CHECK(profile_add_string(&p, STR("samples"), &text) == OK);
	CHECK(profile_add_string(&p, STR("count"), &unit) == OK);
	struct profile_type t = { name, text, unit, text, unit, true };
	CHECK(profile_add_type(&p, &t, &type) == OK);
	struct profile_head h = { type, 1, 1700000000000000000, 1000000000 };
	CHECK(profile_add_head(&p, &h, &head) == OK);
	struct profile_location l = { .address = 0x1234, .kind = FRAME_NATIVE };
	CHECK(profile_add_location(&p, &l, NULL, 0, &loc) == OK);
	CHECK(profile_add_stack(&p, &loc, 1, &stack) == OK);
	struct profile_sample s = { 3, h.time_ns, head, stack, 0, 0, 0 };
	CHECK(profile_add_sample(&p, &s) == OK);
	CHECK(otlp_encode(&p, out) == OK);
	profile_deinit(&p);
}

static void post(struct ask *a, struct str body, bool rpc, const char *type)
{
	ask_init(a, SERVER_OTLP_HTTP, "");
	a->r.body = body;
	a->r.is_rpc = rpc;
	if (type)
		ask_header(a, "content-type", type);
	server_handle_otlp(inlet, &a->r, &a->out);
}

static void stores_messages(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, 1 << 20);
	make_message(&message);
	for (int rpc = 0; rpc < 2; rpc++) {
		struct ask a;
		struct otlp_rejects rejects;
		struct err e;
		post(&a, buf_view(&message), rpc, rpc ? NULL : "application/x-protobuf; x=y");
		assert_int_equal(a.out.status, OK);
		assert_string_equal(a.out.content_type, "application/x-protobuf");
		CHECK_OK(otlp_decode_response(buf_view(&a.out.body), &rejects, &e), &e);
		assert_int_equal(rejects.profiles, 0);
		assert_int_equal(put_samples, 1);
		/* The same bytes have the same id, however they came. */
		CHECK(hash128_eq(sink.id, hash128(message.data, message.len)));
		ask_deinit(&a);
	}
	assert_int_equal(sink.puts, 2);
	assert_int_equal(metric_get(&inlet->in->samples), 2);
	struct ask a;
	post(&a, STR(""), true, NULL);
	assert_int_equal(a.out.status, OK);
	assert_int_equal(sink.puts, 2);
	ask_deinit(&a);
}

#define JSON_TIME "1700000000000000000"
static const char json_message[] =
	"{\"resourceProfiles\":[{\"resource\":{\"attributes\":[{\"key\":\"host.name\","
	"\"value\":{\"stringValue\":\"here\"}}]},\"scopeProfiles\":[{\"scope\":{\"name\":\"me\"},"
	"\"profiles\":[{\"sampleType\":{\"typeStrindex\":1,\"unitStrindex\":2},\"what\":[{}],"
	"\"samples\":[{\"stackIndex\":1,\"linkIndex\":1,\"values\":[\"3\",4],"
	"\"timestampsUnixNano\":[\"" JSON_TIME "\"," JSON_TIME "]}],\"timeUnixNano\":\"" JSON_TIME
	"\",\"durationNano\":\"1000000000\"}]}]}],\"dictionary\":{\"stringTable\":[\"\","
	"\"samples\","
	"\"count\",\"main\"],\"linkTable\":[{},{\"traceId\":\"0102030405060708090A0b0c0d0e0f10\","
	"\"spanId\":\"1112131415161718\"}],\"mappingTable\":[{}],\"functionTable\":[{},"
	"{\"nameStrindex\":3}],\"locationTable\":[{},{\"lines\":[{\"functionIndex\":1}]}],"
	"\"stackTable\":[{},{\"locationIndices\":[1]}],\"attributeTable\":[{}]}}";

static void takes_json(void **state)
{
	(void)state;
	struct ask a;
	post(&a, str_of(json_message), false, "application/json; charset=utf-8");
	if (a.out.status != OK)
		print_error("%s\n", a.out.message);
	assert_int_equal(a.out.status, OK);
	assert_string_equal(a.out.content_type, "application/json");
	CHECK_STR(buf_view(&a.out.body), "{}");
	assert_int_equal(put_samples, 2);
	CHECK(memcmp(put_link.trace_id, "\1\2\3\4\5\6\7\x8\x9\xA\xB\xC\xD\xE\xF\x10", 16) == 0);
	CHECK(memcmp(put_link.span_id, "\x11\x12\x13\x14\x15\x16\x17\x18", 8) == 0);
	ask_deinit(&a);
}

/* What passes a limit is a partial success with its reason. */
static void says_what_it_left_out(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf message;
	struct ask a;
	struct otlp_rejects rejects;
	struct err e;
	buf_init(&message, 1 << 20);
	make_message(&message);
	server.ingest.retention_ns = (int64_t)86400 * 1000000000; /* the sample is of 2023 */
	post(&a, buf_view(&message), true, NULL);
	assert_int_equal(a.out.status, OK);
	CHECK_OK(otlp_decode_response(buf_view(&a.out.body), &rejects, &e), &e);
	assert_int_equal(rejects.profiles, 1);
	CHECK(strstr(rejects.reason, "1 samples were refused: time 2023-11-14T22:13:20Z"));
	assert_int_equal(sink.puts, 0);
	assert_int_equal(metric_get(&server.ingest.metrics.refused_old), 1);
	ask_deinit(&a);
	post(&a, str_of(json_message), false, "application/json");
	CHECK(str_starts(buf_view(&a.out.body), STR("{\"partialSuccess\":{\"rejectedProfiles\":"
						    "\"1\",\"errorMessage\":\"2 samples were "
						    "refused")));
	ask_deinit(&a);
}

static void maps_statuses(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; enum status s; int http, grpc; } cases[] = {
		{ "invalid", E_INVALID, 400, 3 },         { "limit", E_LIMIT, 422, 8 },
		{ "unavailable", E_UNAVAILABLE, 503, 14 }, { "io", E_IO, 500, 13 },
	};
	/* clang-format on */
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, 1 << 20);
	make_message(&message);
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		sink.put = c->s;
		post(&a, buf_view(&message), false, "application/x-protobuf");
		CHECK_CASE(c, a.out.status == c->s);
		CHECK_CASE(c, a.out.http_status == c->http);
		/* google.rpc.Status */
		struct reader r = reader_over(a.out.body.data, a.out.body.len);
		struct pb_field f;
		CHECK_CASE(c, pb_next(&r, &f) && f.number == 1 && f.u64 == (uint64_t)c->grpc);
		CHECK_CASE(c, pb_next(&r, &f) && f.number == 2 &&
				      str_eq(f.bytes, STR("the store says no")));
		ask_deinit(&a);
		post(&a, buf_view(&message), true, NULL);
		CHECK_CASE(c, a.out.status == c->s);
		CHECK_CASE(c, strcmp(a.out.message, "the store says no") == 0);
		ask_deinit(&a);
	}
	assert_int_equal(metric_get(&inlet->in->failed), 8);
	CHECK(metric_get(&server.ingest.metrics.messages_busy) > 0);
	CHECK(metric_get(&server.ingest.metrics.messages_failed) > 0);
}

static void refuses(void **state)
{
	(void)state;
	struct ask a;
	post(&a, STR("\xFF\xFF\xFF"), true, NULL);
	assert_int_equal(a.out.status, E_INVALID);
	ask_deinit(&a);
	post(&a, STR("{}"), false, "text/plain");
	assert_int_equal(a.out.http_status, 415);
	CHECK(strstr(a.out.message, "application/x-protobuf"));
	ask_deinit(&a);
	post(&a, STR("{\"resourceProfiles\":7}"), false, "application/json");
	assert_int_equal(a.out.http_status, 400);
	CHECK(str_starts(buf_view(&a.out.body), STR("{\"code\":3,\"message\":")));
	CHECK(strstr(a.out.message, "resource"));
	ask_deinit(&a);
	sink.health = E_UNAVAILABLE;
	post(&a, STR(""), true, NULL);
	assert_int_equal(a.out.status, E_UNAVAILABLE);
	ask_deinit(&a);
	assert_int_equal(sink.puts, 0);
}

/* Nothing is decoded without memory for it; what was admitted is given back. */
static void asks_for_memory_first(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, 1 << 20);
	make_message(&message);
	struct ask a;
	sink.admit = E_UNAVAILABLE;
	post(&a, buf_view(&message), false, "application/x-protobuf");
	assert_int_equal(a.out.http_status, 503);
	assert_int_equal(sink.puts, 0);
	ask_deinit(&a);
	sink.admit = OK;
	post(&a, buf_view(&message), false, "application/x-protobuf");
	assert_int_equal(sink.puts, 1);
	assert_int_equal(sink.admitted, 0);
	ask_deinit(&a);
}

#define UNIT(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

TEST_MAIN(UNIT(asks_for_memory_first), UNIT(stores_messages), UNIT(takes_json),
	UNIT(says_what_it_left_out), UNIT(maps_statuses), UNIT(refuses))
