/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sample/offcpu.h"
#include "test.h"

#define S NS_PER_SEC
#define FRAMES 3

static struct {
	uint32_t count;
	int64_t away_ns; /* of all */
	uint32_t tid;    /* the last one's */
	int64_t time_ns;
	uint64_t frames[FRAMES];
	enum thread_state state;
} told;

static void on_emit(void *ctx, const struct event_sample *s, int64_t away_ns)
{
	(void)ctx;
	told.count++;
	told.away_ns += away_ns;
	told.tid = s->h.tid;
	told.time_ns = (int64_t)s->h.time_ns;
	told.state = event_state(&s->h);
	assert_int_equal(s->kernel_count + s->user_count, FRAMES);
	memcpy(told.frames, s->frames, sizeof(told.frames));
}

static struct offcpu *begin(int64_t min_ns)
{
	const struct offcpu_config c = { min_ns, 1, on_emit, NULL };
	struct offcpu *o = NULL;
	struct err e = { 0 };
	memset(&told, 0, sizeof(told));
	CHECK_OK(offcpu_new(&c, &o, &e), &e);
	return o;
}

static void left_at(struct offcpu *o, uint32_t tid, int64_t time_ns, uint64_t place)
{
	struct event_sample *s = calloc(1, sizeof(*s) + FRAMES * sizeof(uint64_t));
	CHECK(s != NULL);
	s->h = (struct event_header){ .type = EVENT_SAMPLE,
		.tid = tid,
		.time_ns = (uint64_t)time_ns,
		.flags = THREAD_BLOCKED << EVENT_STATE_SHIFT };
	s->kernel_count = 1;
	s->user_count = 2;
	for (uint64_t i = 0; i < FRAMES; i++)
		s->frames[i] = place + i;
	offcpu_left(o, s);
	free(s);
}

static void resumes_at(struct offcpu *o, uint32_t tid, int64_t left_ns, int64_t time_ns)
{
	const struct event_resume r = { EVENT_RESUME, 0, tid, (uint64_t)left_ns,
		(uint64_t)time_ns };
	offcpu_resume(o, &r);
}

static uint64_t waiting(const struct offcpu *o)
{
	return metric_get(&offcpu_metrics(o)->waiting);
}

static void tells_how_long(void **state)
{
	(void)state;
	struct offcpu *o = begin(0);
	left_at(o, 7, 10 * S, 100);
	left_at(o, 8, 11 * S, 200);
	assert_int_equal(waiting(o), 2);
	resumes_at(o, 7, 10 * S, 13 * S);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.tid, 7);
	assert_int_equal(told.away_ns, 3 * S);
	assert_int_equal(told.time_ns, 13 * S);
	assert_int_equal(told.state, THREAD_BLOCKED);
	assert_int_equal(told.frames[2], 102);
	resumes_at(o, 8, 11 * S, 12 * S);
	assert_int_equal(told.away_ns, 4 * S);
	assert_int_equal(told.frames[0], 200);
	assert_int_equal(waiting(o), 0);
	assert_int_equal(metric_get(&offcpu_metrics(o)->stays), 2);
	offcpu_free(o);
}

/* Its sample was being finished elsewhere. */
static void takes_the_end_before_the_sample(void **state)
{
	(void)state;
	struct offcpu *o = begin(0);
	resumes_at(o, 7, 10 * S, 13 * S);
	left_at(o, 7, 20 * S, 100); /* a later stay */
	assert_int_equal(told.count, 0);
	left_at(o, 7, 10 * S, 200);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.frames[0], 200);
	assert_int_equal(told.away_ns, 3 * S);
	assert_int_equal(waiting(o), 1);
	/* A sample that never comes. */
	resumes_at(o, 9, 10 * S, 21 * S);
	offcpu_tick(o, 21 * S + OFFCPU_WAIT_NS, 0);
	assert_int_equal(waiting(o), 2);
	offcpu_tick(o, 22 * S + OFFCPU_WAIT_NS, 0);
	assert_int_equal(waiting(o), 1);
	assert_int_equal(metric_get(&offcpu_metrics(o)->lost), 0);
	offcpu_free(o);
}

static void leaves_short_stays_out(void **state)
{
	(void)state;
	struct offcpu *o = begin(2 * S);
	left_at(o, 7, 10 * S, 100);
	resumes_at(o, 7, 10 * S, 12 * S - 1);
	assert_int_equal(told.count, 0);
	left_at(o, 7, 20 * S, 100);
	resumes_at(o, 7, 20 * S, 22 * S);
	assert_int_equal(told.count, 1);
	assert_int_equal(metric_get(&offcpu_metrics(o)->too_short), 1);
	offcpu_free(o);
}

/* Every nanosecond once, whatever the pieces. */
static void tells_long_stays_in_pieces(void **state)
{
	(void)state;
	struct offcpu *o = begin(0);
	left_at(o, 7, 10 * S, 100);
	offcpu_tick(o, 10 * S + OFFCPU_PIECE_NS - 1, 0);
	assert_int_equal(told.count, 0);
	offcpu_tick(o, 15 * S + OFFCPU_PIECE_NS, 0);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.away_ns, 5 * S + OFFCPU_PIECE_NS);
	offcpu_tick(o, 16 * S + OFFCPU_PIECE_NS, 0);
	assert_int_equal(told.count, 1);
	resumes_at(o, 7, 10 * S, 200 * S);
	assert_int_equal(told.count, 2);
	assert_int_equal(told.away_ns, 190 * S);
	/* One that is still away at the end, and one whose return lies before what was told. */
	left_at(o, 8, 300 * S, 100);
	left_at(o, 9, 300 * S, 100);
	offcpu_tick(o, 400 * S, 0);
	assert_int_equal(told.away_ns, 390 * S);
	resumes_at(o, 9, 300 * S, 399 * S);
	assert_int_equal(told.away_ns, 390 * S);
	offcpu_finish(o, 401 * S);
	assert_int_equal(told.away_ns, 391 * S);
	assert_int_equal(waiting(o), 0);
	offcpu_free(o);
}

/* Nobody knows whose return it was that was lost. */
static void forgets_when_a_return_was_lost(void **state)
{
	(void)state;
	struct offcpu *o = begin(0);
	left_at(o, 7, 10 * S, 100);
	left_at(o, 8, 10 * S, 200);
	offcpu_tick(o, 11 * S, 1);
	assert_int_equal(waiting(o), 0);
	assert_int_equal(metric_get(&offcpu_metrics(o)->lost), 2);
	resumes_at(o, 7, 10 * S, 12 * S);
	left_at(o, 7, 13 * S, 100);
	offcpu_tick(o, 14 * S, 1); /* no new loss */
	resumes_at(o, 7, 13 * S, 15 * S);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.away_ns, 2 * S);
	offcpu_free(o);
}

static void holds_its_limits(void **state)
{
	(void)state;
	struct offcpu *o = begin(0);
	for (uint32_t i = 0; i < OFFCPU_THREADS_MAX + 5; i++)
		left_at(o, i, S, i % 3);
	assert_int_equal(waiting(o), OFFCPU_THREADS_MAX);
	assert_int_equal(metric_get(&offcpu_metrics(o)->lost), 5);
	for (uint32_t i = 0; i < OFFCPU_THREADS_MAX; i++) {
		resumes_at(o, i, S, 2 * S);
		assert_int_equal(told.frames[0], i % 3);
	}
	assert_int_equal(told.count, OFFCPU_THREADS_MAX);
	assert_int_equal(waiting(o), 0);
	offcpu_free(o);
}

/* By what held when the thread left, whenever its sample comes and it is back. */
static void stands_for_those_not_sampled(void **state)
{
	(void)state;
	const struct offcpu_config c = { 0, 0.5, on_emit, NULL };
	struct offcpu *o = NULL;
	struct err e = { 0 };
	memset(&told, 0, sizeof(told));
	CHECK_OK(offcpu_new(&c, &o, &e), &e);
	left_at(o, 7, 10 * S, 100);
	resumes_at(o, 7, 10 * S, 13 * S);
	assert_int_equal(told.away_ns, 6 * S);
	left_at(o, 7, 14 * S, 100);
	offcpu_set_probability(o, 0.25, 15 * S);
	left_at(o, 8, 14 * S, 100);
	left_at(o, 9, 15 * S, 100);
	told.away_ns = 0;
	resumes_at(o, 7, 14 * S, 20 * S);
	resumes_at(o, 8, 14 * S, 20 * S);
	assert_int_equal(told.away_ns, 2 * 12 * S);
	told.away_ns = 0;
	resumes_at(o, 9, 15 * S, 16 * S);
	assert_int_equal(told.away_ns, 4 * S);
	offcpu_set_probability(o, 1, 17 * S);
	left_at(o, 9, 18 * S, 100);
	told.away_ns = 0;
	resumes_at(o, 9, 18 * S, 19 * S);
	assert_int_equal(told.away_ns, S);
	offcpu_free(o);
}

TEST_MAIN(cmocka_unit_test(stands_for_those_not_sampled), cmocka_unit_test(tells_how_long),
	cmocka_unit_test(takes_the_end_before_the_sample), cmocka_unit_test(leaves_short_stays_out),
	cmocka_unit_test(tells_long_stays_in_pieces),
	cmocka_unit_test(forgets_when_a_return_was_lost), cmocka_unit_test(holds_its_limits))
