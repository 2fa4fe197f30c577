/* SPDX-License-Identifier: Apache-2.0 */
/* From a decoder to the store: what is taken, what is refused, and that the two are all. */
#include "test.h"

#include "ask.h"
#include "base/clock.h"
#include "limits.h"

#define MEMORY ((size_t)16 << 20)

static size_t stored;
static enum status append_status;

enum status store_append(struct store *s, struct str tenant, const struct profile *p,
	struct hash128 batch_id, struct err *e)
{
	(void)s;
	(void)tenant;
	(void)batch_id;
	stored += append_status == OK ? p->samples.len : 0;
	return append_status == OK ? OK : err_set(e, append_status, "the store says no");
}

static struct server server;

static int setup(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	stored = 0;
	append_status = OK;
	return ingest_init(&server.ingest, &test_limits, NULL, NULL) == OK ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	ingest_deinit(&server.ingest);
	return 0;
}

/* `count` samples, an hour apart, the first at `first`; each of a series of its own. */
static void make_profile(struct profile *p, int64_t first, uint32_t count)
{
	struct profile_type t = { 0 };
	struct profile_head h = { 0 };
	uint32_t head;
	CHECK(profile_init(p, MEMORY) == OK);
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

static void refuses_by_time(void **state)
{
	(void)state;
	struct server_config config = { .retention_ns = (int64_t)10 * 3600 * NS_PER_SEC };
	struct profile p;
	struct profile_refused refused;
	struct err e = { 0 };
	server.config = &config;
	/* 20 hours ago to 9 hours ahead: ten of them are kept, and now, and an hour ahead at most.
	 */
	make_profile(&p, clock_realtime_ns() - (int64_t)20 * 3600 * NS_PER_SEC - NS_PER_SEC, 30);
	CHECK_OK(
		ingest_store(&server, INGEST_RAW, STR(""), &p, (struct hash128){ 0 }, &refused, &e),
		&e);
	assert_int_equal(stored + refused.samples, 30);
	CHECK(stored == 11);
	assert_int_equal(metric_get(&server.metrics.samples_raw), 11);
	assert_int_equal(metric_get(&server.metrics.refused_old), 11);
	assert_int_equal(metric_get(&server.metrics.refused_future), 8);
	assert_int_equal(ingest_verdict(&refused, &e), E_INVALID);
	CHECK(strstr(e.text, "19 samples were refused, the others are stored: time "));
	profile_deinit(&p);
}

static void refuses_1970_whatever_is_kept(void **state)
{
	(void)state;
	struct profile p;
	struct profile_refused refused;
	struct err e = { 0 };
	make_profile(&p, 1, 3); /* no retention: for ever */
	CHECK_OK(ingest_store(
			 &server, INGEST_OTLP, STR(""), &p, (struct hash128){ 0 }, &refused, &e),
		&e);
	assert_int_equal(refused.samples, 3);
	assert_int_equal(stored, 0);
	profile_deinit(&p);
	make_profile(&p, (int64_t)1000000000 * NS_PER_SEC, 3); /* 2001 */
	CHECK_OK(ingest_store(
			 &server, INGEST_OTLP, STR(""), &p, (struct hash128){ 0 }, &refused, &e),
		&e);
	assert_int_equal(refused.samples, 0);
	assert_int_equal(ingest_verdict(&refused, &e), OK);
	assert_int_equal(stored, 3);
	profile_deinit(&p);
}

static void refuses_by_series(void **state)
{
	(void)state;
	struct profile p;
	struct profile_refused refused;
	struct err e = { 0 };
	server.ingest.limits.series = 4;
	make_profile(&p, (int64_t)1000000000 * NS_PER_SEC, 10);
	CHECK_OK(ingest_store(&server, INGEST_ARROW_V2, STR(""), &p, (struct hash128){ 0 },
			 &refused, &e),
		&e);
	assert_int_equal(stored, 4);
	assert_int_equal(refused.samples, 6);
	assert_int_equal(metric_get(&server.metrics.refused_series), 6);
	assert_int_equal(metric_get(&server.metrics.samples_arrow_v2), 4);
	assert_int_equal(ingest_verdict(&refused, &e), E_LIMIT);
	CHECK(strstr(e.text, "more than 4 series"));
	profile_deinit(&p);
}

static void counts_nothing_that_failed(void **state)
{
	(void)state;
	struct profile p;
	struct profile_refused refused;
	struct err e = { 0 };
	append_status = E_UNAVAILABLE;
	make_profile(&p, (int64_t)1000000000 * NS_PER_SEC, 3);
	CHECK(ingest_store(&server, INGEST_ARROW_V1, STR(""), &p, (struct hash128){ 0 }, &refused,
		      &e) == E_UNAVAILABLE);
	assert_int_equal(metric_get(&server.metrics.samples_arrow_v1), 0);
	profile_deinit(&p);
}

/* A rule may keep some types for longer than the others. */
static void takes_what_a_rule_keeps(void **state)
{
	(void)state;
	struct store_retention_rule rules[2] = { { .time_ns = (int64_t)50 * 3600 * NS_PER_SEC },
		{ .time_ns = 0 } };
	struct server_config config = { .retention_ns = (int64_t)10 * 3600 * NS_PER_SEC,
		.retention_rules = rules };
	static const uint64_t old[] = { 10, 0, 0 };
	server.config = &config;
	for (size_t count = 0; count < 3; count++) {
		struct profile p;
		struct profile_refused refused;
		struct err e = { 0 };
		config.retention_rule_count = count;
		make_profile(&p, clock_realtime_ns() - (int64_t)(20 * 3600 - 60) * NS_PER_SEC, 20);
		CHECK_OK(ingest_store(&server, INGEST_RAW, STR(""), &p, (struct hash128){ 0 },
				 &refused, &e),
			&e);
		assert_int_equal(refused.samples, old[count]);
		profile_deinit(&p);
	}
}

static void demangles(void **state)
{
	(void)state;
	struct profile p;
	struct profile_refused refused;
	struct err e = { 0 };
	uint32_t ids[3];
	static const char *const names[] = { "_ZN3foo3barEv", "main", "_Znonsense" };
	make_profile(&p, (int64_t)1000000000 * NS_PER_SEC, 1);
	for (int i = 0; i < 3; i++) {
		struct profile_function f = { 0 };
		CHECK(profile_add_string(&p, str_of(names[i]), &f.name) == OK);
		CHECK(profile_add_function(&p, &f, &ids[i]) == OK);
	}
	CHECK_OK(ingest_store(&server, INGEST_ARROW_V2, STR(""), &p, (struct hash128){ 0 },
			 &refused, &e),
		&e);
	CHECK_STR(profile_str(&p, p.functions.v[ids[0]].name), "foo::bar");
	CHECK_STR(profile_str(&p, p.functions.v[ids[0]].system_name), "_ZN3foo3barEv");
	CHECK_STR(profile_str(&p, p.functions.v[ids[1]].name), "main");
	CHECK_STR(profile_str(&p, p.functions.v[ids[2]].name), "_Znonsense");
	profile_deinit(&p);
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
	UNIT(counts_nothing_that_failed), UNIT(takes_what_a_rule_keeps), UNIT(demangles),
	UNIT(bounds_its_memory))
