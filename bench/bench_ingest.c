/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One batch of a host in each format that agents send: samples stored for each second of processor
 * time, from the message's bytes to the store (decoding, limits, log, memtable). It is compared
 * with the least work of any decoder: reading every field of protobuf, or reading and checking
 * every column of Arrow. The Arrow messages are made by parca_maker.py, in parca-agent's layout;
 * OTLP and pprof are made of the same samples.
 */
#include "arrow/arrow.h"
#include "bench_store.h"
#include "otlp/otlp.h"
#include "parca/parca.h"
#include "pb/pb.h"
#include "pprof/pprof.h"

enum { SAMPLES = 5000 };
#define MEMORY ((size_t)256 << 20)
#define AT_LEAST_NS (NS_PER_SEC / 2)

struct message {
	const char *name;
	struct buf bytes;
	struct buf stacks; /* schema v1 */
	enum status (*decode)(const struct message *m, struct profile *out, struct err *e);
	void (*look)(const struct message *m);
};

static void load(const char *dir, const char *file, struct buf *out)
{
	char path[128];
	struct err e;
	buf_init(out, MEMORY);
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	BENCH_OK(os_read_file(path, out, &e), &e);
}

/* ---- decoders ---- */

static enum status decode_pprof(const struct message *m, struct profile *out, struct err *e)
{
	return pprof_decode(buf_view(&m->bytes), STR("parca_agent"), out, e);
}

static enum status decode_otlp(const struct message *m, struct profile *out, struct err *e)
{
	struct otlp_rejects rejects;
	return otlp_decode(buf_view(&m->bytes), out, &rejects, e);
}

static enum status decode_v1(const struct message *m, struct profile *out, struct err *e)
{
	struct parca_arrow_stats stats = { 0 };
	struct parca_session *s;
	enum status st = parca_session_new(MEMORY, out, &stats, &s);
	if (st == OK)
		st = parca_session_samples(s, buf_view(&m->bytes), e);
	if (st == OK)
		st = parca_session_stacks(s, buf_view(&m->stacks), e);
	if (st == OK)
		st = parca_session_finish(s, e);
	parca_session_free(s);
	return st;
}

static enum status decode_v2(const struct message *m, struct profile *out, struct err *e)
{
	struct parca_arrow_stats stats = { 0 };
	return parca_arrow_decode(buf_view(&m->bytes), MEMORY, out, &stats, e);
}

/* ---- the least ---- */

static volatile uint64_t sink;

/* Reads every field; in the outer levels every field of bytes is a message. */
static void look_at_fields(struct str bytes, int depth)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	uint64_t sum = 0;
	while (pb_next(&r, &f)) {
		sum += f.u64 + f.bytes.len;
		if (f.wire == PB_BYTES && depth > 0)
			look_at_fields(f.bytes, depth - 1);
	}
	sink += sum;
}

static void look_at_pprof(const struct message *m)
{
	look_at_fields(buf_view(&m->bytes), 2);
}

static void look_at_otlp(const struct message *m)
{
	look_at_fields(buf_view(&m->bytes), 4);
}

static void look_at_stream(struct str bytes)
{
	struct arrow_stream s;
	struct arrow_array batch;
	struct err e;
	bool more = true;
	BENCH_OK(arrow_stream_open(&s, bytes, MEMORY, &e), &e);
	while (more)
		BENCH_OK(arrow_stream_next(&s, &batch, &more, &e), &e);
	arrow_stream_close(&s);
}

static void look_at_arrow(const struct message *m)
{
	look_at_stream(buf_view(&m->bytes));
	if (m->stacks.len)
		look_at_stream(buf_view(&m->stacks));
}

/* ---- measuring ---- */

/* Seconds of this thread for one turn: the best of five rounds. */
static double best(void (*turn)(void *ctx), void *ctx)
{
	double least = 1e9;
	for (int round = 0; round < 5; round++) {
		int64_t begin = clock_thread_cpu_ns(), took;
		uint32_t n = 0;
		do {
			turn(ctx);
			n++;
			took = clock_thread_cpu_ns() - begin;
		} while (took < AT_LEAST_NS / 5);
		least = MIN(least, (double)took * 1e-9 / n);
	}
	return least;
}

static void turn_decode(void *ctx)
{
	struct message *m = ctx;
	struct profile p;
	struct err e;
	BENCH_CHECK(profile_init(&p, MEMORY) == OK);
	BENCH_OK(m->decode(m, &p, &e), &e);
	profile_deinit(&p);
}

static void turn_look(void *ctx)
{
	struct message *m = ctx;
	m->look(m);
}

/* Seconds of the whole process for one message, with the store. */
static double ingest(struct message *m, const char *dir)
{
	static const struct profile_limits limits = { 128, 256, 4096, 0, INT64_MAX };
	struct store *s;
	struct store_config c;
	struct profile_refused refused;
	struct err e;
	char path[128];
	enum { ROUNDS = 60 };
	store_config_default(&c);
	snprintf(path, sizeof(path), "%s/%s", dir, m->name);
	c.path = path;
	BENCH_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	int64_t begin = os_self_cpu_ns();
	for (int i = 0; i < ROUNDS; i++) {
		struct profile p;
		enum status st;
		BENCH_CHECK(profile_init(&p, MEMORY) == OK);
		BENCH_OK(m->decode(m, &p, &e), &e);
		BENCH_CHECK(profile_limit(&p, &limits, &refused) == OK && refused.samples == 0);
		for (size_t j = 0; j < p.samples.len; j++)
			p.samples.v[j].time_ns += i * 10 * NS_PER_SEC;
		while ((st = store_append(s, STR(""), &p, (struct hash128){ 0 }, &e)) ==
			E_UNAVAILABLE)
			;
		BENCH_OK(st, &e);
		profile_deinit(&p);
	}
	double took = (double)(os_self_cpu_ns() - begin) * 1e-9 / ROUNDS;
	store_close(s);
	return took;
}

static void measure(struct message *m, const char *dir)
{
	struct profile p;
	struct err e;
	char name[64], note[256];
	BENCH_CHECK(profile_init(&p, MEMORY) == OK);
	BENCH_OK(m->decode(m, &p, &e), &e);
	double samples = (double)p.samples.len;
	double bytes = (double)(m->bytes.len + m->stacks.len);
	profile_deinit(&p);
	double decode = best(turn_decode, m), look = best(turn_look, m), whole = ingest(m, dir);
	snprintf(name, sizeof(name), "ingest.%s", m->name);
	snprintf(note, sizeof(note),
		"%.0f samples in %.0f bytes; decoding alone %.0f samples/s and %.0f MB/s; with the "
		"store "
		"%.1f MB/s; the ratio is that of decoding",
		samples, bytes, samples / decode, bytes / decode * 1e-6, bytes / whole * 1e-6);
	bench_report(name, samples / whole, "samples/s and core",
		m->look == look_at_arrow ? "reading and checking the columns"
					 : "pb_next over every field",
		look / decode, note);
}

int main(void)
{
	char dir[64], command[512];
	struct profile p;
	struct err e;
	bench_dir(dir);
	snprintf(command, sizeof(command), "python3 %s/parca_maker.py %s %s %d", PARCA_DIR,
		ARROW_DIR, dir, SAMPLES);
	BENCH_CHECK(system(command) == 0);
	struct message v1 = { .name = "arrow_v1", .decode = decode_v1, .look = look_at_arrow };
	struct message v2 = { .name = "arrow_v2", .decode = decode_v2, .look = look_at_arrow };
	struct message otlp = { .name = "otlp", .decode = decode_otlp, .look = look_at_otlp };
	struct message pprof = { .name = "pprof", .decode = decode_pprof, .look = look_at_pprof };
	load(dir, "v1.arrow", &v1.bytes);
	load(dir, "v1.stacks", &v1.stacks);
	load(dir, "v2.arrow", &v2.bytes);
	buf_init(&otlp.bytes, MEMORY);
	buf_init(&pprof.bytes, MEMORY);
	BENCH_CHECK(profile_init(&p, MEMORY) == OK);
	BENCH_OK(decode_v2(&v2, &p, &e), &e);
	BENCH_OK(otlp_encode(&p, &otlp.bytes), &e);
	BENCH_OK(pprof_encode(&p, &pprof.bytes, &e), &e);
	profile_deinit(&p);
	measure(&pprof, dir);
	measure(&otlp, dir);
	measure(&v1, dir);
	measure(&v2, dir);
	bench_clean(dir);
	buf_deinit(&v1.bytes);
	buf_deinit(&v1.stacks);
	buf_deinit(&v2.bytes);
	buf_deinit(&otlp.bytes);
	buf_deinit(&pprof.bytes);
	return 0;
}
