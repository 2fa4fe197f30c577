/* SPDX-License-Identifier: Apache-2.0 */
/* From a decoder to the store: what is taken, what is refused, and that the two are all. */
#include "test.h"

#include "base/clock.h"
#include "sink.h"

#define HOURS ((int64_t)3600 * NS_PER_SEC)

static const struct metric_def own_defs[] = { { "own_a", "A.", METRIC_COUNTER },
	{ "own_b", "B.", METRIC_GAUGE } };
static const struct ingest_protocol protocol = {
	.name = "mine", .expansion = 4, .own = own_defs, .own_count = 2
};

static struct ingest in;
static struct ingest_inlet *inlet;
static struct fake_sink sink;
static int setup(void **state)
{
	(void)state;
	struct err e = { 0 };
	memset(&in, 0, sizeof(in));
	fake_sink_ingest(&sink, &in);
	CHECK_OK(ingest_inlet(&in, &protocol, &inlet, &e), &e);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	CHECK(sink.admitted == 0);
	ingest_deinit(&in);
	return 0;
}

/* `count` samples, an hour apart, the first at `first`; each of a series of its own. */
static void fill(struct profile *p, int64_t first, uint32_t count)
{
	struct profile_type t = { 0 };
	struct profile_head h = { 0 };
	uint32_t head;
	CHECK(profile_add_string(p, STR("cpu"), &t.name) == OK);
	CHECK(profile_add_type(p, &t, &h.type) == OK && profile_add_head(p, &h, &head) == OK);
	for (uint32_t i = 0; i < count; i++) {
		struct profile_sample s = { .value = 1, .head = head };
		struct profile_label l;
		char text[16];
		snprintf(text, sizeof(text), "%u", (unsigned)i);
		s.time_ns = first + (int64_t)i * 3600 * NS_PER_SEC;
		CHECK(profile_add_string(p, STR("comm"), &l.name) == OK);
		CHECK(profile_add_string(p, str_of(text), &l.value) == OK);
		CHECK(profile_add_labels(p, &l, 1, &s.resource) == OK);
		CHECK(profile_add_sample(p, &s) == OK);
	}
}

static void begin(struct ingest_batch *b)
{
	struct err e = { 0 };
	ingest_batch_init(b, inlet, "10.0.0.1:5", 100);
	CHECK_OK(ingest_batch_begin(b, STR(""), 100, &e), &e);
}

static enum status put(struct ingest_batch *b, struct err *e)
{
	return ingest_batch_put(b, (struct hash128){ 1, 2 }, e);
}

static void refuses_by_time(void **state)
{
	(void)state;
	struct ingest_batch b;
	struct err e = { 0 };
	in.retention_ns = 10 * HOURS;
	/* 20 hours ago to 9 hours ahead: ten of them are kept, and now, and an hour ahead at most.
	 */
	begin(&b);
	fill(&b.profile, clock_realtime_ns() - 20 * HOURS - NS_PER_SEC, 30);
	CHECK_OK(put(&b, &e), &e);
	assert_int_equal(sink.samples + b.refused.samples, 30);
	CHECK(sink.samples == 11);
	assert_int_equal(metric_get(&inlet->samples), 11);
	assert_int_equal(metric_get(&in.metrics.refused_old), 11);
	assert_int_equal(metric_get(&in.metrics.refused_future), 8);
	assert_int_equal(ingest_batch_verdict(&b, &e), E_INVALID);
	CHECK(strstr(e.text, "19 samples were refused, the others are stored: time "));
	/* What was stored in part is not a message of which nothing was. */
	ingest_batch_end(&b, E_INVALID, "");
	assert_int_equal(metric_get(&inlet->failed), 1);
	assert_int_equal(metric_get(&in.metrics.messages_malformed), 0);
}

static void refuses_1970_whatever_is_kept(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t first;
		uint64_t refused;
	} cases[] = { { "1970", 1, 3 }, { "2001", (int64_t)1000000000 * NS_PER_SEC, 0 } };
	FOR_EACH_CASE (c, cases) { /* no retention: for ever */
		struct ingest_batch b;
		struct err e = { 0 };
		begin(&b);
		fill(&b.profile, c->first, 3);
		CHECK_OK(put(&b, &e), &e);
		CHECK_CASE(c, b.refused.samples == c->refused && sink.samples == 3 - c->refused);
		CHECK_CASE(c, ingest_batch_verdict(&b, &e) == (c->refused ? E_INVALID : OK));
		ingest_batch_end(&b, OK, "");
	}
}

static void refuses_by_series(void **state)
{
	(void)state;
	struct ingest_batch b;
	struct err e = { 0 };
	in.limits.series = 4;
	begin(&b);
	fill(&b.profile, (int64_t)1000000000 * NS_PER_SEC, 10);
	CHECK_OK(put(&b, &e), &e);
	assert_int_equal(sink.samples, 4);
	assert_int_equal(b.refused.samples, 6);
	assert_int_equal(metric_get(&in.metrics.refused_series), 6);
	assert_int_equal(ingest_batch_verdict(&b, &e), E_QUOTA);
	CHECK(strstr(e.text, "more than 4 series"));
	ingest_batch_end(&b, OK, "");
}

static void counts_what_failed_as_refused(void **state)
{
	(void)state;
	struct ingest_batch b;
	struct err e = { 0 };
	sink.put = E_UNAVAILABLE;
	begin(&b);
	fill(&b.profile, (int64_t)1000000000 * NS_PER_SEC, 3);
	CHECK(put(&b, &e) == E_UNAVAILABLE);
	ingest_batch_end(&b, E_UNAVAILABLE, e.text);
	assert_int_equal(metric_get(&inlet->samples), 0);
	assert_int_equal(metric_get(&in.metrics.messages_busy), 1);
	assert_int_equal(agent_list_count(&in.agents, clock_realtime_ns()), 1);
}

/* Nothing is decoded without memory, of which a message may take several times its length; one
 * whose length was not known asks for more. All of it is given back (teardown). */
static void asks_for_memory_first(void **state)
{
	(void)state;
	struct ingest_batch b;
	struct err e = { 0 };
	begin(&b);
	assert_int_equal(sink.admitted, fake_sink_bytes(400));
	ingest_batch_end(&b, OK, "");
	ingest_batch_init(&b, inlet, "10.0.0.1:5", 0);
	CHECK_OK(ingest_batch_begin(&b, STR(""), 0, &e), &e);
	CHECK_OK(ingest_batch_more(&b, 500000, &e), &e);
	assert_int_equal(sink.admitted, fake_sink_bytes(0) + fake_sink_bytes(500000));
	ingest_batch_wait(&b, 3);
	CHECK(sink.admitted == sink.kept && sink.kept > 3 && sink.lent > 0);
	CHECK_OK(ingest_batch_more(&b, 10, &e), &e);
	assert_int_equal(
		sink.admitted, fake_sink_bytes(0) + fake_sink_bytes(500000) + fake_sink_bytes(10));
	ingest_batch_end(&b, OK, "");
	sink.admit = E_UNAVAILABLE;
	ingest_batch_init(&b, inlet, "10.0.0.1:5", 100);
	CHECK(ingest_batch_begin(&b, STR(""), 100, &e) == E_UNAVAILABLE);
	ingest_batch_end(&b, E_UNAVAILABLE, "");
	assert_int_equal(metric_get(&inlet->requests), 3);
	assert_int_equal(metric_get(&inlet->bytes), 100 + 500000 + 10 + 100);
}

static void takes_nothing_in_bad_health(void **state)
{
	(void)state;
	struct ingest_batch b;
	struct err e = { 0 };
	sink.health = E_UNAVAILABLE;
	ingest_batch_init(&b, inlet, "10.0.0.1:5", 100);
	CHECK(ingest_batch_begin(&b, STR(""), 100, &e) == E_UNAVAILABLE);
	CHECK_STR(str_of(e.text), "the store is ill");
	ingest_batch_end(&b, E_UNAVAILABLE, e.text);
	sink.health = OK;
	CHECK_OK(ingest_health(&in, &e), &e);
	struct ingest closed = { 0 };
	CHECK_OK(ingest_init(&closed, &fake_sink_config, &e), &e);
	CHECK(ingest_health(&closed, &e) == E_UNAVAILABLE);
	CHECK_STR(str_of(e.text), "the store is being opened");
	ingest_deinit(&closed);
}

static void demangles(void **state)
{
	(void)state;
	struct ingest_batch b;
	struct err e = { 0 };
	uint32_t ids[3];
	static const char *const names[] = { "_ZN3foo3barEv", "main", "_Znonsense" };
	begin(&b);
	struct profile *p = &b.profile;
	fill(p, (int64_t)1000000000 * NS_PER_SEC, 1);
	for (int i = 0; i < 3; i++) {
		struct profile_function f = { 0 };
		CHECK(profile_add_string(p, str_of(names[i]), &f.name) == OK);
		CHECK(profile_add_function(p, &f, &ids[i]) == OK);
	}
	CHECK_OK(put(&b, &e), &e);
	CHECK_STR(profile_str(p, p->functions.v[ids[0]].name), "foo::bar");
	CHECK_STR(profile_str(p, p->functions.v[ids[0]].system_name), "_ZN3foo3barEv");
	CHECK_STR(profile_str(p, p->functions.v[ids[1]].name), "main");
	CHECK_STR(profile_str(p, p->functions.v[ids[2]].name), "_Znonsense");
	ingest_batch_end(&b, OK, "");
}

/* The counters of each protocol, one HELP and TYPE for all of them. */
static void writes_counters_by_protocol(void **state)
{
	(void)state;
	static const struct ingest_protocol other = { .name = "other" };
	struct ingest_inlet *again, *second;
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	CHECK_OK(ingest_inlet(&in, &protocol, &again, &e), &e);
	CHECK(again == inlet);
	CHECK_OK(ingest_inlet(&in, &other, &second, &e), &e);
	metric_add(&second->samples, 7);
	metric_add(&inlet->own[1], 5);
	ingest_write_metrics(&in, &out);
	buf_u8(&out, 0);
	const char *text = (const char *)out.data;
	CHECK(strstr(text, "# TYPE firn_ingest_samples_total counter\n"
			   "firn_ingest_samples_total{protocol=\"mine\"} 0\n"
			   "firn_ingest_samples_total{protocol=\"other\"} 7\n"));
	CHECK(strstr(text, "\nown_a 0\n") && strstr(text, "# TYPE own_b gauge\nown_b 5\n"));
	CHECK(strstr(text, "\nfirn_ingest_requests_total{protocol=\"other\"} 0\n"));
	for (size_t i = 0; i < INGEST_PROTOCOLS_MAX; i++) {
		static struct ingest_protocol many[INGEST_PROTOCOLS_MAX];
		many[i].name = "many";
		enum status s = ingest_inlet(&in, &many[i], &second, &e);
		CHECK(s == (i + 2 < INGEST_PROTOCOLS_MAX ? OK : E_LIMIT));
	}
}

static void bounds_its_memory(void **state)
{
	(void)state;
	CHECK(ingest_memory(0) >= ((size_t)1 << 20));
	CHECK(ingest_memory((size_t)64 << 20) > ingest_memory((size_t)1 << 20));
	CHECK(ingest_memory(SIZE_MAX / 16) <= ((size_t)1 << 30));
}

#define UNIT(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

TEST_MAIN(UNIT(refuses_by_time), UNIT(refuses_1970_whatever_is_kept), UNIT(refuses_by_series),
	UNIT(counts_what_failed_as_refused), UNIT(asks_for_memory_first),
	UNIT(takes_nothing_in_bad_health), UNIT(demangles), UNIT(writes_counters_by_protocol),
	UNIT(bounds_its_memory))
