/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses and bodies of OTLP's answers. store_append() is stood in for: it says what the test
 * wants and keeps what it was given. */
#include "test.h"

#include "otlp/otlp.h"
#include "pb/pb.h"

#include "ask.h"
#include "limits.h"

static enum status append_status;
static uint32_t appends;
static size_t appended_samples;
static struct hash128 appended_id;
static struct profile_link appended_link;

enum status store_append(struct store *s, struct str tenant, const struct profile *p,
	struct hash128 batch_id, struct err *e)
{
	(void)s;
	(void)tenant;
	appends++;
	appended_samples = p->samples.len;
	appended_id = batch_id;
	appended_link = p->links.v[p->samples.v[0].link];
	return append_status == OK ? OK : err_set(e, append_status, "the store says no");
}

static enum status admit_status;
static uint64_t admitted; /* bytes, not given back yet */

enum status store_admit(struct store *s, uint64_t bytes, struct store_entry **entry, struct err *e)
{
	(void)s;
	if (admit_status != OK)
		return err_set(e, admit_status, "no memory now");
	admitted += bytes;
	*entry = (struct store_entry *)&admitted;
	return OK;
}

void store_admit_end(struct store *s, struct store_entry *entry)
{
	(void)s;
	CHECK((entry != NULL) == (admitted > 0));
	admitted = 0;
}

static struct server server;

static int setup(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	atomic_store(&server.ready, true);
	append_status = admit_status = OK;
	appends = 0;
	return ingest_init(&server.ingest, &test_limits, NULL, NULL) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	ingest_deinit(&server.ingest);
	CHECK(admitted == 0);
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
	server_handle_otlp(&server, &a->r, &a->out);
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
		assert_int_equal(appended_samples, 1);
		/* The same bytes have the same id, however they came. */
		CHECK(hash128_eq(appended_id, hash128(message.data, message.len)));
		ask_deinit(&a);
	}
	assert_int_equal(appends, 2);
	assert_int_equal(metric_get(&server.metrics.samples_otlp), 2);
	struct ask a;
	post(&a, STR(""), true, NULL);
	assert_int_equal(a.out.status, OK);
	assert_int_equal(appends, 2);
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
	assert_int_equal(appended_samples, 2);
	CHECK(memcmp(appended_link.trace_id, "\1\2\3\4\5\6\7\x8\x9\xA\xB\xC\xD\xE\xF\x10", 16) ==
		0);
	CHECK(memcmp(appended_link.span_id, "\x11\x12\x13\x14\x15\x16\x17\x18", 8) == 0);
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
	struct server_config config = { .retention_ns = (int64_t)86400 * 1000000000 };
	server.config = &config; /* the sample is of 2023 */
	post(&a, buf_view(&message), true, NULL);
	assert_int_equal(a.out.status, OK);
	CHECK_OK(otlp_decode_response(buf_view(&a.out.body), &rejects, &e), &e);
	assert_int_equal(rejects.profiles, 1);
	CHECK(strstr(rejects.reason, "1 samples were refused: time 2023-11-14T22:13:20Z"));
	assert_int_equal(appends, 0);
	assert_int_equal(metric_get(&server.metrics.refused_old), 1);
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
		{ "invalid", E_INVALID, 400, 3 },         { "limit", E_LIMIT, 413, 8 },
		{ "unavailable", E_UNAVAILABLE, 503, 14 }, { "io", E_IO, 500, 13 },
	};
	/* clang-format on */
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, 1 << 20);
	make_message(&message);
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		append_status = c->s;
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
	assert_int_equal(metric_get(&server.metrics.otlp_failed), 8);
	CHECK(metric_get(&server.metrics.messages_busy) > 0);
	CHECK(metric_get(&server.metrics.messages_failed) > 0);
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
	atomic_store(&server.ready, false);
	post(&a, STR(""), true, NULL);
	assert_int_equal(a.out.status, E_UNAVAILABLE);
	ask_deinit(&a);
	assert_int_equal(appends, 0);
}

/* Nothing is decoded without memory for it; what was admitted is given back. */
static void asks_for_memory_first(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, 1 << 20);
	make_message(&message);
	struct ask a;
	admit_status = E_UNAVAILABLE;
	post(&a, buf_view(&message), false, "application/x-protobuf");
	assert_int_equal(a.out.http_status, 503);
	assert_int_equal(appends, 0);
	ask_deinit(&a);
	admit_status = OK;
	post(&a, buf_view(&message), false, "application/x-protobuf");
	assert_int_equal(appends, 1);
	assert_int_equal(admitted, 0);
	ask_deinit(&a);
}

#define UNIT(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

TEST_MAIN(UNIT(asks_for_memory_first), UNIT(stores_messages), UNIT(takes_json),
	UNIT(says_what_it_left_out), UNIT(maps_statuses), UNIT(refuses))
