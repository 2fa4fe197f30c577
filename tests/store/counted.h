/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted: batches that can be counted one by one. Batch `n` has COUNTED_SAMPLES samples whose
 * thread_id is n, so grouping by thread_id tells how often it is there.
 */
#pragma once

#include "tests/store/fixture.h"

#include <stdio.h>

/* A test that appends as many as it can counts up to a number of its own. */
enum { COUNTED_SAMPLES = 5, COUNTED_MAX = 1024 };

#define COUNTED_TYPE "cpu:samples:count:cpu:nanoseconds:delta"

static inline void counted_profile(struct profile *p, uint32_t n)
{
	char id[16];
	snprintf(id, sizeof(id), "%u", n);
	const char *const resource[] = { "comm", n % 3 ? "a" : "b", NULL };
	const char *const own[] = { "thread_id", id, NULL };
	CHECK(profile_init(p, 1 << 20) == OK);
	uint32_t head = fx_head(p, "cpu", true, 1), stack;
	uint32_t frames[] = { fx_frame(p, "/bin/x", n % 7), fx_frame(p, "/bin/x", 100) };
	CHECK(profile_add_stack(p, frames, 2, &stack) == OK);
	uint32_t r = fx_labels(p, resource), o = fx_labels(p, own);
	for (int i = 0; i < COUNTED_SAMPLES; i++)
		fx_sample(p, T0 + (int64_t)(n % 100) * SEC + i, 1, head, stack, r, o);
}

static inline struct hash128 counted_id(uint32_t n)
{
	return (struct hash128){ n + 1, 99 };
}

static inline enum status counted_append(struct store *s, uint32_t n, struct err *e)
{
	struct profile p;
	counted_profile(&p, n);
	enum status st = store_append(s, STR(""), &p, counted_id(n), e);
	profile_deinit(&p);
	return st;
}

/* Samples of each batch in counts[0 .. max), which is all of them; returns those of all. */
static inline uint64_t counted_read_up_to(struct store *s, uint32_t *counts, size_t max)
{
	static const struct str by[] = { { "thread_id", 9 } };
	struct fx_query f;
	struct store_view *v;
	struct samples_series *series;
	size_t n;
	uint64_t all = 0;
	struct err e = { 0 };
	memset(counts, 0, max * sizeof(*counts));
	struct samples_query *q = fx_query(&f, COUNTED_TYPE, 0, INT64_MAX);
	f.arena.limit = 1 << 30;
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(
		store_sum_series(v, q, by, 1, 1000000 * SEC, &f.arena, &series, &n, NULL, NULL, &e),
		&e);
	for (size_t i = 0; i < n; i++) {
		uint64_t id;
		CHECK(str_parse_u64(series[i].values[0], 10, &id) && id < max);
		for (size_t k = 0; k < series[i].point_count; k++) {
			counts[id] += (uint32_t)series[i].points[k].count;
			all += series[i].points[k].count;
			CHECK((uint64_t)series[i].points[k].value == series[i].points[k].count);
		}
	}
	store_view_close(v);
	fx_query_end(&f);
	return all;
}

static inline uint64_t counted_read(struct store *s, uint32_t *counts)
{
	return counted_read_up_to(s, counts, COUNTED_MAX);
}

/* Every batch is there once or not at all; those in `acknowledged` are there. */
static inline void counted_check_up_to(struct store *s, const uint8_t *acknowledged, uint32_t max)
{
	uint32_t *counts = calloc(max, sizeof(*counts));
	CHECK(counts != NULL);
	counted_read_up_to(s, counts, max);
	for (uint32_t i = 0; i < max; i++) {
		if (counts[i] != 0 && counts[i] != COUNTED_SAMPLES)
			print_error("batch %u: %u samples\n", i, counts[i]);
		CHECK(counts[i] == 0 || counts[i] == COUNTED_SAMPLES);
		if (acknowledged[i] && !counts[i])
			print_error("batch %u was acknowledged and is lost\n", i);
		CHECK(!acknowledged[i] || counts[i]);
	}
	free(counts);
}

static inline void counted_check(struct store *s, const uint8_t *acknowledged)
{
	counted_check_up_to(s, acknowledged, COUNTED_MAX);
}
