/* SPDX-License-Identifier: Apache-2.0 */
/* Times of timers are read as they were written, and take little; what is damaged is refused. */
#include "base/hash.h"
#include "codec/codec.h"
#include "store/part/column.h"
#include "tests/test.h"

#include <string.h>

enum { N = 20000 };
#define PERIOD 52631578ull

static uint64_t state = 11;

static uint64_t next(void)
{
	return hash_u64(state += 0x9E3779B97F4A7C15ull);
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* Rows [from, to) of one series on the CPUs of `host`, ascending. */
static void series(int64_t *v, int from, int to, int cpus, uint64_t host, int64_t unit)
{
	for (int i = from; i < to; i++) {
		uint64_t cpu = next() % (uint64_t)cpus, tick = next() % 20000;
		uint64_t phase = hash_u64(host * 1000 + cpu) % PERIOD;
		uint64_t late = 2000 + next() % 50000 + (next() % 100 ? 0 : next() % 3000000);
		v[i] = 1700000000000000000 + (int64_t)(tick * PERIOD + phase + late);
		v[i] -= v[i] % unit;
	}
	qsort(v + from, (size_t)(to - from), sizeof(*v), by_time);
}

static void one_host(int64_t *v)
{
	for (int i = 0; i < N; i += 100)
		series(v, i, i + 100, 2, 1, 1000);
}
static void many_hosts(int64_t *v)
{
	for (int i = 0; i < N; i += 5000)
		series(v, i, i + 5000, 8, 2 + (uint64_t)i, 1000);
}
static void nanoseconds(int64_t *v)
{
	series(v, 0, N, 8, 3, 1);
}
static void no_timer(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = 1700000000000000000 + (int64_t)(next() % 100000000) * 1000;
	qsort(v, N, sizeof(*v), by_time);
}
static void negative(int64_t *v)
{
	series(v, 0, N, 2, 4, 1000);
	for (int i = 0; i < N; i++)
		v[i] -= 3400000000000000000;
}
static void extremes(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = i % 2 ? INT64_MAX : INT64_MIN + i;
}

static const struct {
	const char *name;
	void (*fill)(int64_t *v);
	bool ticks;
	uint64_t bytes_max;
} cases[] = {
	{ "one host", one_host, true, N * 26 / 10 },
	{ "many hosts", many_hosts, true, N * 26 / 10 },
	{ "nanoseconds", nanoseconds, true, N * 34 / 10 },
	{ "no timer", no_timer, false, N * 2 },
	{ "negative", negative, true, N * 16 / 10 },
	{ "extremes", extremes, false, N * 16 },
};

static void round_trips(void **unused)
{
	(void)unused;
	static int64_t v[N], got[N];
	FOR_EACH_CASE (c, cases) {
		struct column_writer w;
		struct column col;
		struct column_streams s;
		struct buf out;
		struct err e = { 0 };
		column_writer_init(&w);
		buf_init(&out, 1 << 20);
		c->fill(v);
		CHECK(column_encode_times(&w, 2, v, N, PERIOD, &out, &col) == OK);
		CHECK_CASE(c, (col.encoding == COLUMN_TICKS) == c->ticks);
		CHECK_CASE(c, column_stored_len(&col) <= c->bytes_max);
		CHECK_OK(column_unpack(&col, buf_view(&out), N, &s, &e), &e);
		CHECK_OK(column_decode(&col, &s, N, got, &e), &e);
		CHECK_CASE(c, memcmp(v, got, sizeof(v)) == 0);
		column_streams_free(&s);
		buf_deinit(&out);
		column_writer_deinit(&w);
	}
}

/* The format's own words, byte by byte: period 100, 3 rows of 2 phases at 5 and 30, 1 row of 1. */
static void reads_what_the_document_says(void **unused)
{
	(void)unused;
	static const uint8_t tables[] = { 100, 3, 2, 5, 25, 1, 1, 7 };
	static const uint8_t late[] = { 0, 1, 2, 3 }, slots[] = { 0, 2, 6, 4 };
	static const int64_t expected[] = { 1000 + 10 * 5, 1000 + 10 * 31, 1000 + 10 * (20 + 7),
		1000 + 10 * (20 + 7 + 3) };
	struct column c = { .id = 2,
		.encoding = COLUMN_TICKS,
		.width = 1,
		.stream_count = 3,
		.base = 1000,
		.unit = 10 };
	struct column_streams s = { { tables, late, slots }, { sizeof(tables), 4, 4 }, NULL };
	int64_t got[4];
	struct err e;
	CHECK_OK(column_decode(&c, &s, 4, got, &e), &e);
	for (int i = 0; i < 4; i++)
		CHECK(got[i] == expected[i]);
	uint32_t narrow[4];
	CHECK(column_decode_u32(&c, &s, 4, 1 << 30, narrow, &e) == E_UNSUPPORTED);
}

static const struct {
	const char *name;
	const char *tables;
	size_t len;
} damaged[] = {
	{ "no table", "\x64", 1 },
	{ "no rows", "\x64\x00\x01\x05", 4 },
	{ "no phases", "\x64\x04\x00", 3 },
	{ "256 phases", "\x64\x04\x80\x02\x01\x01", 6 },
	{ "too many rows", "\x64\x05\x01\x05", 4 },
	{ "too few rows", "\x64\x03\x01\x05", 4 },
	{ "cut short", "\x64\x04\x02\x05", 4 },
	{ "more behind", "\x64\x04\x01\x05\x01", 5 },
};

static void refuses_damage(void **unused)
{
	(void)unused;
	static const uint8_t zeros[4] = { 0 };
	FOR_EACH_CASE (d, damaged) {
		struct column c = {
			.encoding = COLUMN_TICKS, .width = 1, .stream_count = 3, .unit = 1
		};
		struct column_streams s = { { (const uint8_t *)d->tables, zeros, zeros },
			{ d->len, 4, 4 }, NULL };
		int64_t got[4];
		struct err e;
		CHECK_CASE(d, column_decode(&c, &s, 4, got, &e) == E_CORRUPT);
	}
	struct column c = { .encoding = COLUMN_TICKS, .width = 3, .stream_count = 3, .unit = 1 };
	struct column_streams s;
	struct err e;
	CHECK(column_unpack(&c, str_make(zeros, 4), 4, &s, &e) == E_CORRUPT);
}

TEST_MAIN(cmocka_unit_test(round_trips), cmocka_unit_test(reads_what_the_document_says),
	cmocka_unit_test(refuses_damage))
