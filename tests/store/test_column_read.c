/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever is written is read again; which encoding is chosen; what is refused. */
#include "store/part/column.h"

#include "base/hash.h"
#include "codec/codec.h"
#include "store/part/varints.h"
#include "tests/test.h"

#include <string.h>

enum { N = 5000 };

static uint64_t state = 7;

static uint64_t next(void)
{
	return hash_u64(state += 0x9E3779B97F4A7C15ull);
}

static void constant(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = -12345678901234;
}
static void bytes(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = (int64_t)(next() % 200);
}
static void words(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = (int64_t)next();
}
static void extremes(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = i % 3 ? INT64_MIN : INT64_MAX;
}
static void ascending(int64_t *v)
{
	v[0] = 1700000000000000000;
	for (int i = 1; i < N; i++)
		v[i] = v[i - 1] + (int64_t)(next() % 100000);
}
static void multiples(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = 52631578 * (int64_t)(next() % 9);
}
static void runs(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = i / 100 * (i / 1000 % 2 ? 7 : -3);
}
static void scattered(int64_t *v)
{
	for (int i = 0; i < N; i++) {
		uint64_t r = next() % 64; /* few values, far apart, some of them often */
		v[i] = (int64_t)(hash_u64(r & next()) >> 20);
	}
}

static void wide_multiples(int64_t *v)
{
	const uint64_t unit = 3ull << 40; /* up to nearly all of 64 bits */
	for (int i = 0; i < N; i++)
		v[i] = (int64_t)(INT64_MIN + unit * (next() % (UINT64_MAX / unit)));
	v[0] = INT64_MIN;
}
static void powers(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = (int64_t)(next() % 200 << 55);
}
static void indices(int64_t *v)
{
	for (int i = 0; i < N; i++)
		v[i] = (int64_t)(hash_u64(next() % 64 & next()) % 200000);
}

static const struct {
	const char *name;
	void (*fill)(int64_t *v);
	int encoding; /* -1: any */
	uint64_t bytes_max;
} cases[] = {
	{ "constant", constant, COLUMN_CONST, 0 },
	{ "bytes", bytes, COLUMN_PLANES, N },
	{ "words", words, -1, 8 * N },
	{ "extremes", extremes, -1, N },
	{ "ascending", ascending, COLUMN_DELTA, 3 * N },
	{ "multiples", multiples, COLUMN_PLANES, N },
	{ "runs", runs, COLUMN_RUNS, 400 },
	{ "scattered", scattered, COLUMN_DICT, N + 600 },
	{ "wide multiples", wide_multiples, -1, 3 * N },
	{ "powers", powers, COLUMN_PLANES, N },
	{ "indices", indices, COLUMN_DICT, N + 400 },
};

static void round_trips(void **unused)
{
	(void)unused;
	static int64_t v[N], got[N];
	FOR_EACH_CASE (c, cases) {
		struct column_writer w;
		struct column col, parsed;
		struct buf out, header;
		struct err e = { 0 };
		column_writer_init(&w);
		buf_init(&out, 1 << 20);
		buf_init(&header, 1 << 20);
		c->fill(v);
		buf_cstr(&out, "before");
		CHECK(column_encode(&w, 9, v, N, COLUMN_TRY_DICT, &out, &col) == OK);
		CHECK_CASE(c, col.offset == 6);
		CHECK_CASE(c, c->encoding < 0 || col.encoding == c->encoding);
		CHECK_CASE(c, column_stored_len(&col) <= c->bytes_max);
		column_write_header(&header, &col);
		struct reader r = reader_over(header.data, header.len);
		CHECK_OK(column_parse_header(&r, &parsed, &e), &e);
		CHECK_CASE(c, r.at == r.end && parsed.id == 9);
		struct column_streams s;
		CHECK_OK(column_unpack(&parsed, str_sub(buf_view(&out), 6, SIZE_MAX), N, &s, &e),
			&e);
		CHECK_OK(column_decode(&parsed, &s, N, got, &e), &e);
		CHECK_CASE(c, memcmp(v, got, sizeof(v)) == 0);
		column_streams_free(&s);
		buf_deinit(&out);
		buf_deinit(&header);
		column_writer_deinit(&w);
	}
}

static void refuses_damage(void **unused)
{
	(void)unused;
	static int64_t v[N], got[N];
	static uint32_t narrow[N];
	struct column_writer w;
	struct column col;
	struct column_streams s = { 0 };
	struct buf out;
	struct err e;
	column_writer_init(&w);
	buf_init(&out, 1 << 20);
	bytes(v);
	CHECK(column_encode(&w, 1, v, N, COLUMN_PLAIN, &out, &col) == OK);
	out.data[5] ^= 1;
	CHECK(column_unpack(&col, buf_view(&out), N, &s, &e) == E_CORRUPT); /* checksum */
	out.data[5] ^= 1;
	CHECK(column_unpack(&col, buf_view(&out), N + 1, &s, &e) == E_CORRUPT); /* rows */
	struct column odd = col;
	odd.encoding = 99;
	CHECK(column_unpack(&odd, buf_view(&out), N, &s, &e) == E_UNSUPPORTED);
	odd = col;
	odd.encoding = COLUMN_RUNS;
	CHECK(column_unpack(&odd, buf_view(&out), N, &s, &e) == E_CORRUPT);
	CHECK_OK(column_unpack(&col, buf_view(&out), N, &s, &e), &e);
	CHECK(column_decode_u32(&col, &s, N, 100, narrow, &e) == E_CORRUPT); /* over the limit */
	CHECK_OK(column_decode_u32(&col, &s, N, 200, narrow, &e), &e);
	odd = col;
	odd.encoding = COLUMN_SCALE;
	CHECK(column_decode(&odd, &s, N, got, &e) == E_UNSUPPORTED);
	column_streams_free(&s);
	buf_deinit(&out);
	column_writer_deinit(&w);
}

/* Runs that do not fill the rows, a dictionary code beyond its end. */
static void refuses_wrong_contents(void **unused)
{
	(void)unused;
	static int64_t got[16];
	struct err e;
	static const uint8_t deltas[] = { 2, 4 }, short_runs[] = { 3, 3 }, long_runs[] = { 3, 99 };
	struct column runs_column = {
		.id = 1, .encoding = COLUMN_RUNS, .stream_count = 2, .unit = 1
	};
	struct column_streams s = { { deltas, short_runs }, { 2, 2 }, NULL };
	CHECK(column_decode(&runs_column, &s, 16, got, &e) == E_CORRUPT);
	CHECK(column_decode(&runs_column, &s, 8, got, &e) == OK);
	CHECK(got[0] == 1 && got[7] == 3);
	s.p[1] = long_runs;
	CHECK(column_decode(&runs_column, &s, 16, got, &e) == E_CORRUPT);
	static const uint8_t entries[] = { 2 }, codes[4] = { 0, 0, 1, 0 };
	struct column dict = {
		.id = 1, .encoding = COLUMN_DICT, .width = 1, .stream_count = 2, .unit = 1
	};
	struct column_streams d = { { entries, codes }, { 1, 4 }, NULL };
	CHECK(column_decode(&dict, &d, 4, got, &e) == E_CORRUPT);
	CHECK(column_decode(&dict, &d, 2, got, &e) == OK);
	CHECK(got[1] == 1);
}

/* Varints of all lengths, by twos and one by one. */
static void reads_varints(void **unused)
{
	(void)unused;
	static uint64_t v[N];
	struct buf out;
	buf_init(&out, 1 << 20);
	for (int i = 0; i < N; i++) {
		v[i] = next() >> (i < N / 2 ? 36 + next() % 28 : next() % 64);
		buf_varint(&out, v[i]);
	}
	struct varints two = varints_over(out.data, out.len), one = two;
	for (int i = 0; i < N; i += 2) {
		uint64_t a, b;
		CHECK(!varints_done(&two));
		varints_two(&two, &a, &b);
		CHECK(a == v[i] && b == v[i + 1]);
		CHECK(varints_short(&one) == a && varints_short(&one) == b);
		CHECK(one.at == two.at);
	}
	CHECK(varints_done(&two) && varints_done(&one));
	for (size_t len = 0; len < 64; len++) { /* cut short at every place */
		struct varints cut = varints_over(out.data, len);
		struct reader r = reader_over(out.data, len);
		while (!r.failed) {
			uint64_t a, b, want = reader_varint(&r);
			bool first = !r.failed;
			uint64_t after = reader_varint(&r);
			varints_two(&cut, &a, &b);
			CHECK(cut.bad == r.failed && a == want && b == after);
			CHECK(!first || cut.at == r.at);
		}
	}
	buf_deinit(&out);
}

/* Runs of small values as bytes: lengths about what is written at once, and at the end. */
static void decodes_bytes(void **unused)
{
	(void)unused;
	static int64_t v[N];
	static uint8_t got[N + COLUMN_BYTES_SLACK];
	for (int round = 0; round < 60; round++) {
		struct column_writer w;
		struct column col;
		struct column_streams s;
		struct buf out;
		struct err e = { 0 };
		bool fit = false, small = round % 3 != 0;
		size_t longest = 1 + next() % 60, n = 0;
		column_writer_init(&w);
		buf_init(&out, 1 << 20);
		while (n < N) {
			int64_t value = (int64_t)(next() % (small ? 256 : 258));
			for (size_t k = next() % longest + 1; k && n < N; k--)
				v[n++] = value;
		}
		CHECK(column_encode(&w, 1, v, N, COLUMN_PLAIN, &out, &col) == OK);
		CHECK_OK(column_unpack(&col, buf_view(&out), N, &s, &e), &e);
		bool all = true;
		for (size_t i = 0; i < N; i++)
			all &= v[i] < 256;
		memset(got, 0xEE, sizeof(got));
		CHECK_OK(column_decode_bytes(&col, &s, N, got, &fit, &e), &e);
		CHECK(fit == (all && col.encoding == COLUMN_RUNS));
		for (size_t i = 0; i < N && fit; i++)
			CHECK(got[i] == v[i]);
		if (fit && col.encoding == COLUMN_RUNS) { /* another number of rows */
			CHECK(column_decode_bytes(&col, &s, N - 1, got, &fit, &e) == E_CORRUPT);
			s.len[1]--;
			CHECK(column_decode_bytes(&col, &s, N, got, &fit, &e) == E_CORRUPT);
		}
		column_streams_free(&s);
		buf_deinit(&out);
		column_writer_deinit(&w);
	}
}

TEST_MAIN(cmocka_unit_test(round_trips), cmocka_unit_test(refuses_damage),
	cmocka_unit_test(refuses_wrong_contents), cmocka_unit_test(reads_varints),
	cmocka_unit_test(decodes_bytes))
