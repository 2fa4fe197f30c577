/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The three calls of ProfileStoreService with what parca_maker.py makes; the stream and the store
 * are stood in for.
 */
#include "test.h"

#include "ask.h"
#include "base/clock.h"
#include "os/os.h"
#include "parca/parca.h"
#include "pb/pb.h"
#include "server/receive/receive.h"
#include "server/request/inlet.h"
#include "server/request/state.h"
#include "sink.h"
#include "temp_dir.h"

#include <stdio.h>

#define MEMORY ((size_t)64 << 20)

static struct fake_sink sink;
static char last_type[512]; /* of the first sample */
static uint32_t last_labels;

static void look(const struct profile *p)
{
	CLEANUP(buf_deinit) struct buf type;
	buf_init(&type, sizeof(last_type));
	if (p->samples.len)
		profile_type_write(&type, p, &p->types.v[p->heads.v[p->samples.v[0].head].type]);
	snprintf(last_type, sizeof(last_type), "%.*s", STR_ARG(buf_view(&type)));
	const struct profile_labels *set =
		p->samples.len ? &p->label_sets.v[p->samples.v[0].resource] : NULL;
	last_labels = set ? set->count : 0;
}

/* ---- the stream: messages that the client sends, and what it is sent ---- */

static struct str incoming[4];
static size_t incoming_count, incoming_next;
static struct buf outgoing; /* the last message */
static uint32_t outgoing_count;
/* What receiving fails with, from a message on; what sending fails with. */
static enum status receive_status, send_status;
static size_t receive_from;

enum status net_stream_receive(
	struct net_stream *stream, struct str *out, bool *out_end, struct err *e)
{
	(void)stream;
	if (receive_status != OK && incoming_next >= receive_from)
		return err_set(e, receive_status, "what the stream says");
	*out_end = incoming_next == incoming_count;
	if (!*out_end)
		*out = incoming[incoming_next++];
	return OK;
}

enum status net_stream_send(struct net_stream *stream, struct str message, struct err *e)
{
	(void)stream;
	if (send_status != OK)
		return err_set(e, send_status, "what the stream says");
	buf_clear(&outgoing);
	buf_str(&outgoing, message);
	outgoing_count++;
	return OK;
}

static struct server server;
static struct server_inlet *raw, *pushed, *arrow_v1, *arrow_v2;
static struct buf v1, stacks, longer, longer_stacks, v2, bad; /* wrapped in their messages */

static void load(const char *dir, const char *name, struct buf *out)
{
	char path[256];
	struct buf file;
	struct err e;
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	buf_init(&file, MEMORY);
	buf_init(out, MEMORY);
	CHECK_OK(os_read_file(path, &file, &e), &e);
	pb_put_str(out, 1, buf_view(&file));
	buf_deinit(&file);
}

static int make(void **state)
{
	(void)state;
	struct temp_dir d;
	char command[1024];
	temp_dir_init(&d);
	snprintf(command, sizeof(command), "python3 %s/parca_maker.py %s %s", PARCA_DIR, ARROW_DIR,
		d.path);
	CHECK(system(command) == 0);
	load(d.path, "v1_whole.arrow", &v1);
	load(d.path, "v1_whole.stacks", &stacks);
	load(d.path, "sender_v1.arrow", &longer);
	load(d.path, "sender_v1.stacks", &longer_stacks);
	load(d.path, "v2_lz4.arrow", &v2);
	load(d.path, "bad_minus_period.arrow", &bad);
	temp_dir_deinit(&d);
	return 0;
}

static int unmake(void **state)
{
	(void)state;
	buf_deinit(&v1);
	buf_deinit(&stacks);
	buf_deinit(&longer);
	buf_deinit(&longer_stacks);
	buf_deinit(&v2);
	buf_deinit(&bad);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	struct err e = { 0 };
	memset(&server, 0, sizeof(server));
	fake_sink_ingest(&sink, &server.ingest);
	sink.look = look;
	CHECK_OK(server_inlet_of(&server, &server_protocol_raw, &raw, &e), &e);
	CHECK_OK(server_inlet_of(&server, &server_protocol_push, &pushed, &e), &e);
	CHECK_OK(server_inlet_of(&server, &server_protocol_arrow_v1, &arrow_v1, &e), &e);
	CHECK_OK(server_inlet_of(&server, &server_protocol_arrow_v2, &arrow_v2, &e), &e);
	receive_status = send_status = OK;
	receive_from = incoming_count = incoming_next = 0;
	outgoing_count = 0;
	buf_init(&outgoing, MEMORY);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	buf_deinit(&outgoing);
	server_inlets_close(&server);
	ingest_deinit(&server.ingest);
	CHECK(sink.admitted == 0);
	return 0;
}

/* A counter of schema v1's own. */
static uint64_t own(const char *name)
{
	const struct ingest_protocol *p = arrow_v1->in->protocol;
	for (size_t i = 0; i < p->own_count; i++)
		if (strcmp(p->own[i].name, name) == 0)
			return metric_get(&arrow_v1->in->own[i]);
	fail();
	return 0;
}

static void call(struct ask *a, struct str first, struct str second)
{
	ask_init(a, "/", "");
	incoming_next = incoming_count = 0;
	if (first.len)
		incoming[incoming_count++] = first;
	if (second.len)
		incoming[incoming_count++] = second;
	server_write(arrow_v1, &a->r, NULL, &a->out);
}

static void writes_schema_v1(void **state)
{
	(void)state;
	struct ask a;
	call(&a, buf_view(&v1), buf_view(&stacks));
	assert_int_equal(a.out.status, OK);
	CHECK(sink.samples > 100 && sink.puts == 1 && outgoing_count == 1);
	/* While it waited it held what it had made of the message, and later all again. */
	CHECK(sink.kept > 0 && sink.kept < fake_sink_bytes(v1.len) && sink.lent == 0);
	size_t once = sink.samples;
	assert_int_equal(metric_get(&arrow_v1->in->samples), once);
	struct hash128 id = sink.id;
	ask_deinit(&a);
	/* Again: the stacks are known, nothing is asked, the batch has the same id. */
	call(&a, buf_view(&v1), STR(""));
	assert_int_equal(a.out.status, OK);
	CHECK(sink.samples == 2 * once && outgoing_count == 1 && hash128_eq(id, sink.id));
	CHECK(own("firn_ingest_known_stacks_total") > 5);
	ask_deinit(&a);
	/* Another sender's stacks are its own. */
	ask_init(&a, "/", "");
	a.r.peer = "10.1.1.1:5";
	incoming_next = 0;
	incoming_count = 2;
	incoming[1] = buf_view(&stacks);
	server_write(arrow_v1, &a.r, NULL, &a.out);
	assert_int_equal(a.out.status, OK);
	assert_int_equal(outgoing_count, 2);
	ask_deinit(&a);
}

static void call_from(const char *peer, struct str first, struct str second)
{
	struct ask a;
	ask_init(&a, "/", "");
	a.r.peer = peer;
	incoming_next = 0;
	incoming_count = 2;
	incoming[0] = first;
	incoming[1] = second;
	server_write(arrow_v1, &a.r, NULL, &a.out);
	assert_int_equal(a.out.status, OK);
	ask_deinit(&a);
}

/* Ids are the sender's own, also when "10.0.0.1" and "2x" read like "10.0.0.12" and "x". */
static void keeps_senders_apart(void **state)
{
	(void)state;
	call_from("10.0.0.1:5", buf_view(&longer), buf_view(&longer_stacks));
	assert_int_equal(outgoing_count, 1);
	call_from("10.0.0.12:5", buf_view(&v1), buf_view(&stacks));
	assert_int_equal(outgoing_count, 2);
	assert_int_equal(own("firn_ingest_known_stacks_total"), 0);
	call_from("10.0.0.12:6", buf_view(&v1), buf_view(&stacks));
	assert_int_equal(outgoing_count, 2);
}

static void refuses_half_a_stream(void **state)
{
	(void)state;
	/* clang-format off */
	const struct { const char *name; struct str first, second; const char *says; } cases[] = {
		{ "nothing", STR(""), STR(""), "ended before its first message" },
		{ "no stacks", buf_view(&v1), STR(""), "ended before the stacks" },
		{ "other order", buf_view(&stacks), buf_view(&v1), "record of samples: column value is missing" },
		{ "samples twice", buf_view(&v1), buf_view(&v1), "record of stacks: column locations is missing" },
		{ "no record", STR("\x12\x00"), STR(""), "record is empty" },
		{ "torn", STR("\x0a\x05"), STR(""), "malformed at byte" },
		{ "other schema", buf_view(&v2), STR(""), "WriteArrow" },
		{ "no arrow", STR("\x0a\x04" "abcd"), STR(""), "record of samples: message at byte 0" },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		call(&a, c->first, c->second);
		CHECK_CASE(c, a.out.status == E_INVALID);
		if (!strstr(a.out.message, c->says)) {
			print_error("[%s] %s\n", c->name, a.out.message);
			fail();
		}
		ask_deinit(&a);
	}
	assert_int_equal(sink.samples, 0);
	assert_int_equal(metric_get(&arrow_v1->in->failed), ARRAY_COUNT(cases));
	assert_int_equal(metric_get(&server.ingest.metrics.messages_malformed), ARRAY_COUNT(cases));
}

/* The status and the sentence of the stream become those of the call; nothing is stored, nothing is
 * remembered, and the memory is given back (teardown). */
static void ends_with_the_stream(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		enum status receive, send, admit;
		size_t receive_from;
		uint32_t admit_from;
		const char *says;
	} cases[] = {
		{ "gone at once", .receive = E_CANCELED, .says = "what the stream says" },
		{ "too large at once", .receive = E_LIMIT, .says = "what the stream says" },
		{ "gone before the stacks", .receive = E_CANCELED, .receive_from = 1,
			.says = "what the stream says" },
		{ "silent before the stacks", .receive = E_TIMEOUT, .receive_from = 1,
			.says = "what the stream says" },
		{ "gone when asked", .send = E_CANCELED, .says = "what the stream says" },
		{ "no memory", .admit = E_UNAVAILABLE, .says = "no memory now" },
		{ "no memory for samples", .admit = E_UNAVAILABLE, .admit_from = 1,
			.says = "no memory now" },
		{ "no memory for stacks", .admit = E_UNAVAILABLE, .admit_from = 2,
			.says = "no memory now" },
	};
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		receive_status = c->receive;
		receive_from = c->receive_from;
		send_status = c->send;
		sink.admit = c->admit;
		sink.admit_from = c->admit_from;
		sink.admits = 0;
		call(&a, buf_view(&v1), buf_view(&stacks));
		CHECK_CASE(c, a.out.status == c->receive + c->send + c->admit); /* one of them */
		CHECK_CASE(c, strcmp(a.out.message, c->says) == 0);
		CHECK_CASE(c, sink.admitted == 0 && sink.samples == 0);
		CHECK_CASE(c, parca_stacks_count(arrow_v1->state) == 0);
		ask_deinit(&a);
	}
	assert_int_equal(metric_get(&arrow_v1->in->failed), ARRAY_COUNT(cases));
	assert_int_equal(metric_get(&server.ingest.metrics.messages_canceled), 4);
	assert_int_equal(metric_get(&server.ingest.metrics.messages_limit), 1);
	assert_int_equal(metric_get(&server.ingest.metrics.messages_busy), 3);
	sink.admit = receive_status = send_status = OK;
	struct ask a;
	sink.health = E_UNAVAILABLE;
	call(&a, buf_view(&v1), buf_view(&stacks));
	assert_int_equal(a.out.status, E_UNAVAILABLE);
	ask_deinit(&a);
	sink.health = OK;
	call(&a, buf_view(&v1), buf_view(&stacks)); /* as if nothing had been */
	assert_int_equal(a.out.status, OK);
	CHECK(sink.samples > 100);
	ask_deinit(&a);
}

static void holds_to_the_limits_of_a_tenant(void **state)
{
	(void)state;
	struct ingest_limits base = fake_sink_config.limits;
	struct ask a;
	struct err e = { 0 };
	base.message_bytes = 64 << 20;
	CHECK_OK(tenant_rules_parse(
			 STR("\"\" max-profile-size=64KiB"), &base, &server.ingest.rules, &e),
		&e);
	server.ingest.rules.v.v[0].limits.message_bytes = v1.len; /* the stacks pass it, or not */
	call(&a, buf_view(&v1), buf_view(&stacks));
	assert_int_equal(a.out.status, stacks.len > v1.len ? E_LIMIT : OK);
	ask_deinit(&a);
	server.ingest.rules.v.v[0].limits.message_bytes = v1.len - 1;
	call(&a, buf_view(&v1), buf_view(&stacks));
	assert_int_equal(a.out.status, E_LIMIT);
	CHECK(strstr(a.out.message, "(--tenant-limits)"));
	ask_deinit(&a);
}

static void post(struct ask *a, net_handler_fn *fn, struct str body)
{
	ask_init(a, "/", "");
	a->r.body = body;
	fn(fn == server_write_raw ? raw : arrow_v2, &a->r, &a->out);
}

static void writes_schema_v2(void **state)
{
	(void)state;
	struct ask a;
	post(&a, server_write_arrow, buf_view(&v2));
	assert_int_equal(a.out.status, OK);
	CHECK(a.out.body.len == 0 && sink.samples > 100);
	assert_int_equal(metric_get(&arrow_v2->in->samples), sink.samples);
	CHECK(metric_get(&server.ingest.metrics.samples_zero) > 0);
	CHECK(metric_get(&server.ingest.metrics.stacks_cut) > 0);
	ask_deinit(&a);
	post(&a, server_write_arrow, buf_view(&bad));
	assert_int_equal(a.out.status, E_INVALID);
	assert_string_equal(a.out.message, "ipc_buffer: row 0: period -1");
	ask_deinit(&a);
	post(&a, server_write_arrow, STR(""));
	CHECK(a.out.status == E_INVALID && strstr(a.out.message, "ipc_buffer is empty"));
	ask_deinit(&a);
	assert_int_equal(agent_list_count(&server.ingest.agents, clock_realtime_ns()), 2);
}

/* Samples older than retention: the others are stored, and the sender is told. */
static void tells_what_it_refused(void **state)
{
	(void)state;
	struct ask a;
	server.ingest.retention_ns = (int64_t)86400 * NS_PER_SEC;
	post(&a, server_write_arrow, buf_view(&v2));
	assert_int_equal(a.out.status, E_INVALID);
	CHECK(strstr(a.out.message, "samples were refused") &&
		strstr(a.out.message, "where retention begins"));
	assert_int_equal(sink.samples, 0);
	/* Its samples are counted, by their own reason. */
	assert_int_equal(metric_get(&server.ingest.metrics.messages_malformed), 0);
	ask_deinit(&a);
}

static void writes_pprof(void **state)
{
	(void)state;
	struct ask a;
	post(&a, server_write_raw, STR("\xFF"));
	CHECK(a.out.status == E_INVALID && strstr(a.out.message, "WriteRawRequest"));
	ask_deinit(&a);
	post(&a, server_write_raw, STR("")); /* no series: nothing to do */
	assert_int_equal(a.out.status, OK);
	ask_deinit(&a);
	sink.admit = E_UNAVAILABLE;
	post(&a, server_write_raw, STR(""));
	assert_int_equal(a.out.status, E_UNAVAILABLE);
	ask_deinit(&a);
	sink.admit = OK;
	sink.health = E_UNAVAILABLE;
	post(&a, server_write_raw, STR(""));
	assert_int_equal(a.out.status, E_UNAVAILABLE);
	ask_deinit(&a);
}

/* A profile.proto with one sample. */
static void make_pprof(const char *sample_type, const char *unit, struct buf *b)
{
	const char *const strings[] = { "", sample_type, unit, "f" };
	size_t at = pb_begin(b, 1);
	pb_put_u64(b, 1, 1);
	pb_put_u64(b, 2, 2);
	pb_end(b, at);
	at = pb_begin(b, 2);
	pb_put_u64(b, 1, 1);
	pb_put_u64(b, 2, 7);
	pb_end(b, at);
	at = pb_begin(b, 4);
	pb_put_u64(b, 1, 1);
	size_t line = pb_begin(b, 4);
	pb_put_u64(b, 1, 1);
	pb_end(b, line);
	pb_end(b, at);
	at = pb_begin(b, 5);
	pb_put_u64(b, 1, 1);
	pb_put_u64(b, 2, 3);
	pb_end(b, at);
	for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
		pb_put_str_always(b, 6, str_of(strings[i]));
	pb_put_u64(b, 9, (uint64_t)clock_realtime_ns());
	pb_put_u64(b, 10, NS_PER_SEC);
	CHECK(buf_status(b) == OK);
}

static void push(struct ask *a, const char *query, struct str body)
{
	ask_init(a, "/api/push", query);
	a->r.body = body;
	server_push(pushed, &a->r, &a->out);
}

static void takes_a_pprof_file(void **state)
{
	(void)state;
	static const struct {
		const char *name; /* sample type */
		const char *query, *type;
		uint32_t labels;
	} cases[] = {
		{ "cpu", "labels=job=api&labels=version=a%3Db", "process_cpu:cpu:bytes:::delta",
			2 },
		{ "inuse_space", "", "memory:inuse_space:bytes:::delta", 0 },
		{ "wall", "", "wall:wall:bytes:::delta", 0 },
		{ "cpu", "name=mine", "mine:cpu:bytes:::delta", 0 },
	};
	CLEANUP(buf_deinit) struct buf file;
	buf_init(&file, MEMORY);
	struct ask a;
	FOR_EACH_CASE (k, cases) {
		buf_clear(&file);
		make_pprof(k->name, "bytes", &file);
		push(&a, k->query, buf_view(&file));
		CHECK_CASE(k, a.out.status == OK && sink.samples == 1);
		CHECK_STR(buf_view(&a.out.body), "{\"samples\":1}");
		CHECK_STR(str_of(last_type), k->type);
		assert_int_equal(last_labels, k->labels);
		ask_deinit(&a);
		sink.samples = 0;
	}
	struct hash128 before = sink.id; /* with other labels it is another one */
	push(&a, "name=mine&labels=x=y", buf_view(&file));
	CHECK(a.out.status == OK && memcmp(&before, &sink.id, sizeof(before)) != 0);
	ask_deinit(&a);
}

static void refuses_other_files(void **state)
{
	(void)state;
	struct ask a;
	push(&a, "", STR(""));
	CHECK(a.out.status == E_INVALID && strstr(a.out.message, "the body is empty"));
	ask_deinit(&a);
	push(&a, "", STR("# a text"));
	CHECK(a.out.status == E_INVALID && strncmp(a.out.message, "profile.proto: ", 15) == 0);
	ask_deinit(&a);
	push(&a, "labels=x", STR("x"));
	CHECK(a.out.status == E_INVALID && strstr(a.out.message, "\"x\" is not NAME=VALUE"));
	ask_deinit(&a);
	push(&a, "labels=x=1&labels=x=2", STR("x"));
	CHECK(a.out.status == E_INVALID && strstr(a.out.message, "label x occurs twice"));
	ask_deinit(&a);
	assert_int_equal(metric_get(&server.ingest.metrics.messages_malformed), 4);
	assert_int_equal(sink.puts, 0);
}

#define UNIT(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static void all(void **state)
{
	(void)state;
	const struct CMUnitTest tests[] = { UNIT(writes_schema_v1), UNIT(keeps_senders_apart),
		UNIT(refuses_half_a_stream), UNIT(ends_with_the_stream),
		UNIT(holds_to_the_limits_of_a_tenant), UNIT(writes_schema_v2),
		UNIT(tells_what_it_refused), UNIT(writes_pprof), UNIT(takes_a_pprof_file),
		UNIT(refuses_other_files) };
	assert_int_equal(cmocka_run_group_tests(tests, make, unmake), 0);
}

TEST_MAIN(cmocka_unit_test(all))
