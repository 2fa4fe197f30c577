/* SPDX-License-Identifier: Apache-2.0 */
/* PushRequest: labels as the SDKs send them, plain and gzip files, and each way to be refused. */
#include "test.h"

#include "codec/codec.h"
#include "pyroscope/pyroscope.h"
#include "say.h"

#define MEMORY ((size_t)64 << 20)
#define NOW INT64_C(1700000001000000000)

/* What a test changes; all 0 gives a plain request. */
struct request {
	const char *name;
	bool no_name, delta, gzip, torn_gzip, empty, no_time, no_duration, no_service, torn,
		bad_pprof;
};

static void put_label(struct buf *b, const char *name, const char *value)
{
	size_t at = pb_begin(b, 1);
	pb_put_str(b, 1, str_of(name));
	pb_put_str(b, 2, str_of(value));
	pb_end(b, at);
}

static void put_file(struct buf *b, const struct request *q)
{
	CLEANUP(buf_deinit) struct buf file;
	CLEANUP(buf_deinit) struct buf packed;
	buf_init(&file, 4096);
	buf_init(&packed, 4096);
	if (q->bad_pprof)
		buf_cstr(&file, "hello");
	else
		say_pprof(&file,
			&(struct pprof_example){ "cpu", NULL, q->no_time ? 0 : 1700000000000000000,
				q->no_duration ? 0 : 5 });
	CHECK(codec_gzip(file.data, file.len, 6, &packed) == OK);
	if (q->torn_gzip)
		packed.len -= 9;
	size_t sample = pb_begin(b, 2);
	if (!q->empty)
		pb_put_str(b, 1, q->gzip || q->torn_gzip ? buf_view(&packed) : buf_view(&file));
	pb_put_str(b, 2, STR("9a4c1b1e-0000-4000-8000-000000000000"));
	pb_end(b, sample);
}

static void put_request(struct buf *b, const struct request *q)
{
	size_t series = pb_begin(b, 1);
	put_file(b, q); /* in front of the labels */
	if (!q->no_name)
		put_label(b, "__name__", q->delta ? "godeltaprof_process_cpu" : "process_cpu");
	put_label(b, "region", "eu");
	if (!q->no_service)
		put_label(b, "service_name", "py.app");
	put_label(b, "otel.scope.name", "com.grafana.pyroscope/python");
	put_label(b, "__session_id__", "7");
	put_label(b, "__delta__", "false");
	pb_end(b, series);
	if (q->torn)
		buf_cstr(b, "\x0a\x7f");
}

#define TYPE "5 process_cpu:cpu:count:::delta 5 "
#define SCOPE "{otel_scope_name=com.grafana.pyroscope/python,region=eu,service_name="

static void reads_requests(void **state)
{
	(void)state;
	static const struct {
		struct request q;
		const char *want;
	} cases[] = {
		{ { .name = "plain" },
			TYPE "1700000000000000000 " SCOPE "py.app,}{span_id=abc,} main\n" },
		{ { .delta = true },
			TYPE "1700000000000000000 " SCOPE "py.app,}{span_id=abc,} main\n" },
		{ { .gzip = true },
			TYPE "1700000000000000000 " SCOPE "py.app,}{span_id=abc,} main\n" },
		{ { .no_time = true },
			TYPE "1700000001000000000 " SCOPE "py.app,}{span_id=abc,} main\n" },
		/* Sums, also where nobody says how long it took. */
		{ { .no_duration = true },
			"5 process_cpu:cpu:count:::delta 0 1700000000000000000 " SCOPE
			"py.app,}{span_id=abc,} main\n" },
		{ { .no_service = true },
			TYPE "1700000000000000000 " SCOPE "unspecified,}{span_id=abc,} main\n" },
	};
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&b, 65536);
	buf_init(&text, 65536);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct profile p;
		struct err e;
		buf_clear(&b);
		put_request(&b, &cases[i].q);
		CHECK_OK(profile_init(&p, MEMORY), &e);
		CHECK_OK(pyroscope_push_decode(buf_view(&b), NOW, &p, &e), &e);
		CHECK_STR(say(&text, &p), cases[i].want);
		CHECK_OK(profile_validate(&p, &e), &e);
		profile_deinit(&p);
	}
}

static void refuses_requests(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct request q;
	} bad[] = {
		{ "no label __name__", { .no_name = true } },
		{ "series[0]: samples[0]: raw_profile: it is empty", { .empty = true } },
		{ "series[0]: samples[0]: raw_profile: ", { .torn_gzip = true } },
		{ "series[0]: samples[0]: raw_profile: ", { .bad_pprof = true } },
		{ "PushRequest: malformed at byte", { .torn = true } },
	};
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 65536);
	FOR_EACH_CASE (c, bad) {
		struct profile p;
		struct err e;
		buf_clear(&b);
		put_request(&b, &c->q);
		CHECK_OK(profile_init(&p, MEMORY), &e);
		CHECK_CASE(c, pyroscope_push_decode(buf_view(&b), NOW, &p, &e) == E_INVALID);
		CHECK_CASE(c, strstr(e.text, c->name));
		CHECK_CASE(c, p.samples.len == 0);
		profile_deinit(&p);
	}
}

static void takes_nothing(void **state)
{
	(void)state;
	struct profile p;
	struct err e;
	CHECK_OK(profile_init(&p, MEMORY), &e);
	CHECK_OK(pyroscope_push_decode(STR(""), NOW, &p, &e), &e);
	CHECK(p.samples.len == 0);
	profile_deinit(&p);
}

TEST_MAIN(cmocka_unit_test(reads_requests), cmocka_unit_test(refuses_requests),
	cmocka_unit_test(takes_nothing))
