/* SPDX-License-Identifier: Apache-2.0 */
/* Push and /ingest: which status for which request, what reaches the store. What becomes of bodies:
 * tests/pyroscope. The store is stood in for. */
#include "test.h"

#include "../pyroscope/say.h"
#include "ask.h"
#include "base/clock.h"
#include "pb/pb.h"
#include "server/receive/receive.h"
#include "server/request/inlet.h"
#include "server/request/state.h"
#include "sink.h"

static struct server server;
static struct server_inlet *pushes, *ingests;
static struct fake_sink sink;

static int setup(void **state)
{
	(void)state;
	struct err e = { 0 };
	memset(&server, 0, sizeof(server));
	fake_sink_ingest(&sink, &server.ingest);
	CHECK_OK(server_inlet_of(&server, &server_protocol_pyroscope_push, &pushes, &e), &e);
	CHECK_OK(server_inlet_of(&server, &server_protocol_pyroscope_ingest, &ingests, &e), &e);
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

static void ingest(struct ask *a, const char *query, struct str body)
{
	ask_init(a, "/ingest", query);
	a->r.body = body;
	server_pyroscope_ingest(ingests, &a->r, &a->out);
}

static void answers_ingest(void **state)
{
	(void)state;
	static const struct {
		const char *name, *query, *body;
		int status; /* 0: not set, which is 200 */
		const char *says;
	} cases[] = {
		{ "folded", "name=app.cpu%7Bk%3Dv%7D&from=now-10s", "a;b 2", 0, NULL },
		{ "nothing", "name=app", "", 0, NULL },
		{ "no such format", "name=app&format=banana", "a 1", 400,
			"format: \\\"banana\\\"" },
		{ "no time", "name=app&from=banana", "a 1", 400, "from: " },
		{ "no time, too", "name=app&until=banana", "a 1", 400, "until: " },
		{ "no stacks", "name=app", "hello", 422, "line 1: " },
		{ "a line torn", "name=app", "a 1\nb\n", 0, NULL },
		{ "no name", "from=1", "a 1", 400, "\"code\":\"invalid_argument\"" },
		{ "no type", "name=my.app", "a 1", 422, "unknown profile type" },
		{ "no file of speedscope", "name=app&format=speedscope", "{}", 422, "$schema" },
		{ "bad pprof", "name=app&format=pprof", "hello", 422, "profile: " },
		{ "long", "name=app&format=trie", "\x01\x61\x01", 422, "malformed" },
		{ "old", "name=app&from=1000000000", "a 1", 0, NULL },
	};
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		ingest(&a, c->query, str_of(c->body));
		struct str body = buf_view(&a.out.body);
		CHECK_CASE(c, a.out.http_status == c->status);
		CHECK_CASE(c, (body.len == 0) == (c->status == 0));
		if (c->says) {
			buf_u8(&a.out.body, 0);
			CHECK_CASE(c, strstr((const char *)a.out.body.data, c->says));
			CHECK_CASE(c, strcmp(a.out.content_type, "application/json") == 0);
		}
		ask_deinit(&a);
	}
	CHECK(sink.samples == 3 && ingests->in->samples == 3);
	CHECK(server.ingest.metrics.bad_lines == 1);
	CHECK(ingests->in->failed == 9 && server.ingest.metrics.messages_malformed == 9);
	CHECK(ingests->in->requests == ARRAY_COUNT(cases));
}

/* Another query is another profile; the same one is stored once, by its id, if it says its time. */
static void tells_messages_apart(void **state)
{
	(void)state;
	static const struct {
		const char *name, *query, *again;
		bool has_time; /* the body */
		bool same;
	} cases[] = {
		{ "the same", "name=app&from=1700000000", NULL, false, true },
		{ "of another time", "name=app&from=1700000000", "name=app&from=1700000001", false,
			false },
		{ "of now", "name=app", NULL, false, false },
		{ "of now, too", "name=app&from=now-10s", NULL, false, false },
		{ "the body says it", "name=app&format=pprof", NULL, true, true },
		{ "nobody says it", "name=app&format=pprof", NULL, false, false },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf file;
		struct ask a;
		buf_init(&file, 4096);
		if (strstr(c->query, "pprof"))
			say_pprof(&file, &(struct pprof_example){ "cpu", NULL,
						 c->has_time ? clock_realtime_ns() : 0, 1000 });
		else
			buf_cstr(&file, "a 1");
		ingest(&a, c->query, buf_view(&file));
		CHECK_CASE(c, a.out.http_status == 0);
		struct hash128 first = sink.id;
		ask_deinit(&a);
		ingest(&a, c->again ? c->again : c->query, buf_view(&file));
		CHECK_CASE(c, (first.lo == sink.id.lo && first.hi == sink.id.hi) == c->same);
		ask_deinit(&a);
	}
}

static void says_when_to_come_again(void **state)
{
	(void)state;
	struct ask a;
	sink.admit = E_UNAVAILABLE;
	ingest(&a, "name=app", STR("a 1"));
	CHECK(a.out.http_status == 503);
	ask_deinit(&a);
	sink.admit = OK;
	sink.put = E_IO;
	ingest(&a, "name=app", STR("a 1"));
	CHECK(a.out.http_status == 500);
	ask_deinit(&a);
	sink.health = E_UNAVAILABLE;
	ingest(&a, "name=app", STR("a 1"));
	CHECK(a.out.http_status == 503);
	ask_deinit(&a);
}

static void push(struct ask *a, int64_t time_ns, bool named)
{
	CLEANUP(buf_deinit) struct buf message;
	CLEANUP(buf_deinit) struct buf file;
	buf_init(&message, 4096);
	buf_init(&file, 4096);
	say_pprof(&file, &(struct pprof_example){ "cpu", NULL, time_ns, 1000 });
	size_t series = pb_begin(&message, 1);
	size_t label = pb_begin(&message, 1);
	pb_put_str(&message, 1, STR("__name__"));
	pb_put_str(&message, 2, named ? STR("process_cpu") : STR(""));
	pb_end(&message, label);
	size_t sample = pb_begin(&message, 2);
	pb_put_str(&message, 1, buf_view(&file));
	pb_end(&message, sample);
	pb_end(&message, series);
	ask_init(a, "/push.v1.PusherService/Push", "");
	a->r.is_rpc = true;
	a->r.body = buf_view(&message);
	server_pyroscope_push(pushes, &a->r, &a->out);
	a->r.body = STR("");
}

static void answers_push(void **state)
{
	(void)state;
	struct ask a;
	push(&a, clock_realtime_ns(), true);
	CHECK(a.out.status == OK && a.out.body.len == 0 && sink.samples == 1);
	CHECK(pushes->in->samples == 1);
	ask_deinit(&a);
	push(&a, clock_realtime_ns(), false);
	CHECK(a.out.status == E_INVALID && strstr(a.out.message, "__name__"));
	ask_deinit(&a);
	/* In the future: told so, and not to be sent again. */
	push(&a, clock_realtime_ns() + 48 * 3600 * NS_PER_SEC, true);
	CHECK(a.out.status == E_INVALID && sink.samples == 1);
	CHECK(server.ingest.metrics.refused_future == 1);
	ask_deinit(&a);
}

static void tells_pushes_apart(void **state)
{
	(void)state;
	const int64_t times[] = { clock_realtime_ns(), 0 }; /* 0: the profile does not say it */
	for (size_t i = 0; i < ARRAY_COUNT(times); i++) {
		struct ask a;
		push(&a, times[i], true);
		struct hash128 first = sink.id;
		ask_deinit(&a);
		push(&a, times[i], true);
		CHECK((first.lo == sink.id.lo && first.hi == sink.id.hi) == (times[i] != 0));
		ask_deinit(&a);
	}
}

#define UNIT(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
TEST_MAIN(UNIT(answers_ingest), UNIT(tells_messages_apart), UNIT(says_when_to_come_again),
	UNIT(answers_push), UNIT(tells_pushes_apart))
