/* SPDX-License-Identifier: Apache-2.0 */
/* Profiles that are compressed in one piece, and as they come, are the same to a reader. */
#include "query/plan/plan.h"
#include "query/pprof/pprof_writer.h"

#include "codec/codec.h"
#include "fake.h"

enum { DEPTH = 400, SAMPLES_MAX = 12000 };

static bool gone(void *ctx)
{
	(void)ctx;
	return true;
}

/* So many samples of one stack, the values 1, 2, …, in `out`. */
static enum status write(const struct query_request *r, uint32_t samples, struct buf *out)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	CLEANUP(query_pprof_writer_deinit) struct query_pprof_writer w = { 0 };
	struct profile p;
	struct err e = { 0 };
	uint32_t locations[DEPTH], type;
	arena_init(&a, 1 << 20);
	CHECK_OK(query_plan_open(&fake_engine, r, true, &a, &plan, &e), &e);
	CHECK(profile_init(&p, 1 << 20) == OK);
	for (uint32_t i = 0; i < DEPTH; i++) {
		struct profile_location l = { .address = 0x1000 + i };
		CHECK(profile_add_location(&p, &l, NULL, 0, &locations[i]) == OK);
	}
	struct profile_type t = { .delta = true };
	CHECK(profile_add_string(&p, STR("samples"), &t.sample_type) == OK);
	CHECK(profile_add_string(&p, STR("count"), &t.sample_unit) == OK);
	CHECK(profile_add_type(&p, &t, &type) == OK);
	enum status s = query_pprof_begin(&w, &plan, &p, &type, 1, out, &e);
	for (int64_t i = 1; s == OK && i <= samples; i++)
		s = query_pprof_sample(&w, locations, DEPTH, &i, 0, &e);
	if (s == OK)
		s = query_pprof_end(&w, 7, 8, 9, &e);
	profile_deinit(&p);
	return s;
}

static void check(const struct query_request *r, uint32_t samples)
{
	CLEANUP(buf_deinit) struct buf gzip, plain;
	struct profile p;
	struct err e = { 0 };
	int64_t sum = 0;
	buf_init(&gzip, 64 << 20);
	buf_init(&plain, 64 << 20);
	CHECK(write(r, samples, &gzip) == OK);
	CHECK_OK(codec_gunzip(gzip.data, gzip.len, &plain, &e), &e);
	CHECK(profile_init(&p, 64 << 20) == OK);
	CHECK_OK(pprof_decode(buf_view(&plain), STR("cpu"), &p, &e), &e);
	CHECK(p.samples.len == samples);
	for (size_t i = 0; i < p.samples.len; i++) {
		CHECK(p.stacks.v[p.samples.v[i].stack].count == DEPTH);
		sum += p.samples.v[i].value;
	}
	CHECK(sum == (int64_t)samples * (samples + 1) / 2);
	profile_deinit(&p);
}

static void writes_any_size(void **state)
{
	(void)state;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, NS_PER_SEC, 1, PERIOD, "", "main@x");
	check(&r, 0);
	check(&r, 1);
	check(&r, SAMPLES_MAX); /* more bytes than are kept plain */
}

static void ends_early(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, NS_PER_SEC, 1, PERIOD, "", "main@x");
	buf_init(&out, 16);
	CHECK(write(&r, 1, &out) == E_LIMIT);
	CHECK(write(&r, SAMPLES_MAX, &out) == E_LIMIT);
	r.cancel = gone;
	CHECK(write(&r, 1, &out) == E_CANCELED);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(writes_any_size, fake_setup, fake_teardown),
	cmocka_unit_test_setup_teardown(ends_early, fake_setup, fake_teardown))
