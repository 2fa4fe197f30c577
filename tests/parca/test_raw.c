/* SPDX-License-Identifier: Apache-2.0 */
/* WriteRawRequest: series, labels, gzip, addresses, and each way to be refused. */
#include "test.h"

#include "codec/codec.h"
#include "parca/parca.h"
#include "pb/pb.h"
#include "profile_dump.h"

#define MEMORY ((size_t)64 << 20)
#define NOW 1700000001000000000

/* What a test changes; all 0 gives a plain request. */
struct request {
	bool no_name, twice, empty_name, no_profile, gzip, torn_gzip, normalized, no_time;
	bool segments, too_many_segments, samples_first;
	const char *label;
	uint64_t period;
};

static void put_pair(struct buf *b, uint32_t field, uint64_t x, uint64_t y)
{
	size_t at = pb_begin(b, field);
	pb_put_u64(b, 1, x);
	pb_put_u64(b, 2, y);
	pb_end(b, at);
}

/* One sample of value 5 at 0x7f0000401234, in a mapping at 0x7f0000400000 of file offset 0x1000. */
static void put_pprof(struct buf *b, const struct request *q)
{
	static const char *const strings[] = { "", "samples", "count", "cpu", "nanoseconds",
		"/bin/x", "abcd", "node", "from sample", "thread name", "main", "bytes" };
	put_pair(b, 1, 1, 2);
	size_t at = pb_begin(b, 2);
	pb_put_packed_u64(b, 1, (uint64_t[]){ 1 }, 1);
	pb_put_packed_u64(b, 2, (uint64_t[]){ 5 }, 1);
	put_pair(b, 3, 7, 8);
	put_pair(b, 3, 9, 10);
	size_t number = pb_begin(b, 3);
	pb_put_u64(b, 1, 11);
	pb_put_u64(b, 3, 4096);
	pb_end(b, number);
	pb_end(b, at);
	at = pb_begin(b, 3);
	pb_put_u64(b, 1, 1);
	pb_put_u64(b, 2, 0x7f0000400000);
	pb_put_u64(b, 3, 0x7f0000500000);
	pb_put_u64(b, 4, 0x1000);
	pb_put_u64(b, 5, 5);
	pb_put_u64(b, 6, 6);
	pb_end(b, at);
	at = pb_begin(b, 4);
	pb_put_u64(b, 1, 1);
	pb_put_u64(b, 2, 1);
	pb_put_u64(b, 3, 0x7f0000401234);
	pb_end(b, at);
	for (size_t i = 0; i < ARRAY_COUNT(strings); i++)
		pb_put_str_always(b, 6, str_of(strings[i]));
	pb_put_u64(b, 9, q->no_time ? 0 : 1700000000000000000);
	pb_put_u64(b, 10, 1000000000);
	put_pair(b, 11, 3, 4);
	pb_put_u64(b, 12, q->period ? q->period : 10000000);
}

static void put_label(struct buf *b, const char *name, const char *value)
{
	size_t at = pb_begin(b, 1);
	pb_put_str(b, 1, str_of(name));
	pb_put_str(b, 2, str_of(value));
	pb_end(b, at);
}

static void put_labels(struct buf *b, const struct request *q)
{
	size_t at = pb_begin(b, 1);
	if (!q->no_name)
		put_label(b, "__name__", "process_cpu");
	put_label(b, "node", "host-1");
	if (q->label)
		put_label(b, q->label, "x");
	if (q->twice)
		put_label(b, "node", "host-2");
	if (q->empty_name)
		put_label(b, "", "x");
	pb_end(b, at);
}

static void put_sample(struct buf *b, const struct request *q)
{
	struct buf plain, zip;
	buf_init(&plain, MEMORY);
	buf_init(&zip, MEMORY);
	put_pprof(&plain, q);
	CHECK(codec_gzip(plain.data, plain.len, 6, &zip) == OK);
	size_t at = pb_begin(b, 2);
	if (!q->no_profile)
		pb_put_str(b, 1, q->gzip ? buf_view(&zip) : buf_view(&plain));
	if (q->torn_gzip)
		pb_put_str(b, 1, str_make(zip.data, zip.len / 2));
	for (int i = 0; i < q->segments + q->too_many_segments; i++) {
		size_t info = pb_begin(b, 2);
		pb_put_u64(b, 1, 3); /* ET_DYN */
		put_pair(b, 2, 0x1000, 0x3000);
		pb_end(b, info);
	}
	pb_end(b, at);
	buf_deinit(&plain);
	buf_deinit(&zip);
}

static void put_request(struct buf *b, const struct request *q)
{
	size_t at = pb_begin(b, 2);
	if (q->samples_first)
		put_sample(b, q);
	put_labels(b, q);
	if (!q->samples_first)
		put_sample(b, q);
	pb_end(b, at);
	pb_put_bool(b, 3, q->normalized);
}

#define HEAD                                                                                     \
	"5 process_cpu:samples:count:cpu:nanoseconds:delta period=10000000 duration=1000000000 " \
	"time="
#define LABELS " {node=host-1,} {bytes=4096,exported_node=from sample,thread_name=main,} link="
#define IN_MEMORY " 7f0000401234@7f0000400000-7f0000500000+1000,/bin/x,abcd/()\n"

static void is_decoded(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; struct request q; const char *want; } cases[] = {
		{ "plain", { 0 }, HEAD "1700000000000000000" LABELS IN_MEMORY },
		{ "gzip", { .gzip = true }, HEAD "1700000000000000000" LABELS IN_MEMORY },
		{ "labels last", { .samples_first = true }, HEAD "1700000000000000000" LABELS IN_MEMORY },
		{ "no time", { .no_time = true }, HEAD "1700000001000000000" LABELS IN_MEMORY },
		{ "normalized", { .normalized = true, .segments = true },
			HEAD "1700000000000000000" LABELS " 7f0000401234@0-0+0,/bin/x,abcd/()\n" },
		{ "segments", { .segments = true },
			HEAD "1700000000000000000" LABELS " 4234@0-0+0,/bin/x,abcd/()\n" },
		{ "odd label", { .label = "k8s.pod-name" }, HEAD "1700000000000000000"
			" {k8s_pod_name=x,node=host-1,} {bytes=4096,exported_node=from sample,thread_name=main,} link="
			IN_MEMORY },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, cases) {
		struct profile p;
		struct buf message, got;
		struct err e = { 0 };
		buf_init(&message, MEMORY);
		buf_init(&got, MEMORY);
		put_request(&message, &c->q);
		CHECK(profile_init(&p, MEMORY) == OK);
		CHECK_OK(parca_raw_decode(buf_view(&message), NOW, &p, &e), &e);
		CHECK_OK(profile_validate(&p, &e), &e);
		CHECK(profile_dump(&p, &got));
		if (!str_eq(buf_view(&got), str_of(c->want))) {
			print_error("[%s] got:\n%.*swant:\n%s", c->name, STR_ARG(buf_view(&got)),
				c->want);
			fail();
		}
		profile_deinit(&p);
		buf_deinit(&message);
		buf_deinit(&got);
	}
}

static void is_refused(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; struct request q; const char *says; } cases[] = {
		{ "no name", { .no_name = true }, "series[0]: no label __name__" },
		{ "twice", { .twice = true }, "series[0]: label node occurs twice" },
		{ "empty", { .empty_name = true }, "series[0]: a label without a name" },
		{ "no profile", { .no_profile = true }, "series[0]: samples[0]: no raw_profile" },
		{ "torn", { .no_profile = true, .torn_gzip = true }, "series[0]: samples[0]: raw_profile: gzip" },
		{ "segments", { .segments = true, .too_many_segments = true }, "1 mappings but 2 executable_info" },
		{ "period", { .period = (uint64_t)-7 }, "raw_profile: period -7" },
		{ "same after mending", { .label = "node " }, NULL },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, cases) {
		struct profile p;
		struct buf message;
		struct err e = { 0 };
		buf_init(&message, MEMORY);
		put_request(&message, &c->q);
		CHECK(profile_init(&p, MEMORY) == OK);
		enum status s = parca_raw_decode(buf_view(&message), NOW, &p, &e);
		CHECK_CASE(c, (s == E_INVALID) == (c->says != NULL));
		CHECK_CASE(c, !c->says || strstr(e.text, c->says));
		CHECK_CASE(c, (p.samples.len == 0) == (s != OK));
		profile_deinit(&p);
		buf_deinit(&message);
	}
}

static void survives_being_cut(void **state)
{
	(void)state;
	struct buf message;
	buf_init(&message, MEMORY);
	put_request(&message, &(struct request){ .gzip = true, .segments = true });
	for (size_t len = 0; len < message.len; len++) {
		struct profile p;
		struct err e = { 0 };
		CHECK(profile_init(&p, MEMORY) == OK);
		enum status s = parca_raw_decode(str_make(message.data, len), NOW, &p, &e);
		CHECK(s == OK || e.text[0]);
		profile_deinit(&p);
	}
	buf_deinit(&message);
}

/* 272 MiB of zeros: a gzip file of 17 members. */
static void ends_a_bomb(void **state)
{
	(void)state;
	enum { PIECE = 16 << 20 };
	uint8_t *zeros = calloc(1, PIECE);
	struct profile p;
	struct buf zip, message;
	struct err e = { 0 };
	buf_init(&zip, MEMORY);
	buf_init(&message, MEMORY);
	CHECK(zeros);
	for (size_t done = 0; done <= PARCA_RAW_BYTES_MAX; done += PIECE)
		CHECK(codec_gzip(zeros, PIECE, 1, &zip) == OK);
	size_t series = pb_begin(&message, 2);
	put_labels(&message, &(struct request){ 0 });
	size_t sample = pb_begin(&message, 2);
	pb_put_str(&message, 1, buf_view(&zip));
	pb_end(&message, sample);
	pb_end(&message, series);
	CHECK(profile_init(&p, MEMORY) == OK);
	CHECK(parca_raw_decode(buf_view(&message), NOW, &p, &e) == E_LIMIT);
	CHECK(strstr(e.text, "series[0]: samples[0]: raw_profile"));
	free(zeros);
	profile_deinit(&p);
	buf_deinit(&zip);
	buf_deinit(&message);
}

TEST_MAIN(cmocka_unit_test(is_decoded), cmocka_unit_test(is_refused),
	cmocka_unit_test(survives_being_cut), cmocka_unit_test(ends_a_bomb))
