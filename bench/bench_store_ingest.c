/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples stored for each second of processor time of the whole process (validating, log, memtable,
 * parts and their merging), durable; how long a caller waits for an acknowledgement, alone and as
 * one of several that send one batch after the other, compared with a plain write and fdatasync of
 * as many bytes into a preallocated file; and the rate of several senders on several cores, into a
 * table in memory only and into the store.
 *
 *     bench_store_ingest ingest     only the first of the three
 *     bench_store_ingest cores      only the last
 */
#include "bench_store.h"
#include "store/merge/merge.h"
#include "store/state/state.h"

#include <fcntl.h>

enum { PROFILES = 100, SAMPLES = 1000, ROUNDS = 20, ACKS = 500, CALLERS = 8 };
/* Short runs, alternately of one sender and of several; the best of each counts. As in a server
 * there are more senders than cores: a core of one that waits is used by another. */
enum { SENDERS = 4, SENDER_PROFILES = 24, SENDER_ROUNDS = 2, TURNS = 15 };

static void move(struct profile *p, int64_t by_ns)
{
	for (size_t i = 0; i < p->samples.len; i++)
		p->samples.v[i].time_ns += by_ns;
}

static double ingest(const char *dir, struct fleet *f)
{
	static struct profile profiles[PROFILES];
	struct store *s;
	struct err e = { 0 };
	struct store_config c;
	bool merged;
	for (uint32_t i = 0; i < PROFILES; i++) {
		BENCH_CHECK(profile_init(&profiles[i], 64 << 20) == OK);
		fleet_batch(f, &profiles[i], i * 2, FLEET_T0, SAMPLES, true);
	}
	store_config_default(&c);
	c.path = dir;
	BENCH_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	int64_t cpu = os_self_cpu_ns(), wall = clock_monotonic_ns();
	for (int round = 0; round < ROUNDS; round++)
		for (uint32_t i = 0; i < PROFILES; i++) {
			enum status st;
			while ((st = store_append(s, STR(""), &profiles[i], (struct hash128){ 0 },
					&e)) == E_UNAVAILABLE)
				;
			BENCH_OK(st, &e);
			move(&profiles[i], FLEET_BATCH_NS);
		}
	BENCH_OK(store_flush(s, &e), &e);
	do
		BENCH_OK(store_merge_step(s, clock_realtime_ns(), &merged, &e), &e);
	while (merged);
	cpu = os_self_cpu_ns() - cpu;
	wall = clock_monotonic_ns() - wall;
	const double samples = (double)PROFILES * SAMPLES * ROUNDS;
	fprintf(stderr,
		"ingest: %.0f samples in %.2f s, %.2f s of processor time, %.0f MiB resident\n",
		samples, (double)wall * 1e-9, (double)cpu * 1e-9,
		(double)os_self_rss_bytes() / (1 << 20));
	store_close(s);
	for (uint32_t i = 0; i < PROFILES; i++)
		profile_deinit(&profiles[i]);
	return samples / ((double)cpu * 1e-9);
}

static int by_time(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static double p99_ms(int64_t *v, size_t n)
{
	qsort(v, n, sizeof(*v), by_time);
	return (double)v[n * 99 / 100] * 1e-6;
}

struct caller {
	struct store *s;
	struct profile p;
	int64_t took[ACKS];
};

static void *call(void *ctx)
{
	struct caller *c = ctx;
	struct err e = { 0 };
	for (int i = 0; i < ACKS; i++) {
		int64_t begin = clock_monotonic_ns();
		BENCH_OK(store_append(c->s, STR(""), &c->p, (struct hash128){ 0 }, &e), &e);
		c->took[i] = clock_monotonic_ns() - begin;
		move(&c->p, FLEET_BATCH_NS);
	}
	return NULL;
}

/* The 99th percentile of the time of all calls; `rate`: samples a second of all callers. */
static double acknowledge(
	const char *dir, struct fleet *f, int callers, uint64_t *bytes, double *rate)
{
	static struct caller all[CALLERS];
	static int64_t took[CALLERS * ACKS];
	pthread_t threads[CALLERS];
	struct store *s;
	struct err e = { 0 };
	struct store_config c;
	store_config_default(&c);
	c.path = dir;
	BENCH_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int i = 0; i < callers; i++) {
		BENCH_CHECK(profile_init(&all[i].p, 64 << 20) == OK);
		fleet_batch(f, &all[i].p, (uint32_t)i, FLEET_T0, 200, true);
		all[i].s = s;
		BENCH_OK(store_append(s, STR(""), &all[i].p, (struct hash128){ 0 }, &e), &e);
	}
	uint64_t before = log_stats_get(s->log).bytes;
	int64_t begin = clock_monotonic_ns();
	for (int i = 0; i < callers; i++)
		BENCH_OK(os_thread_start(&threads[i], "call", call, &all[i], &e), &e);
	for (int i = 0; i < callers; i++)
		pthread_join(threads[i], NULL);
	*rate = callers * ACKS * 200.0 / ((double)(clock_monotonic_ns() - begin) * 1e-9);
	*bytes = (log_stats_get(s->log).bytes - before) / (uint64_t)(callers * ACKS);
	store_close(s);
	for (int i = 0; i < callers; i++) {
		memcpy(took + i * ACKS, all[i].took, sizeof(all[i].took));
		profile_deinit(&all[i].p);
	}
	return p99_ms(took, (size_t)(callers * ACKS));
}

/* ---- more cores ---- */

struct sender {
	struct memtable *m; /* NULL: appends to the store */
	struct store *s;
	struct profile v[SENDER_PROFILES];
};

static void *send_all(void *ctx)
{
	struct sender *me = ctx;
	struct err e = { 0 };
	for (int round = 0; round < SENDER_ROUNDS; round++)
		for (int i = 0; i < SENDER_PROFILES; i++) {
			enum status st;
			while ((st = me->m ? memtable_add(me->m, STR(""), &me->v[i],
						     (struct batch_seen){ 0 }, &e)
					   : store_append(me->s, STR(""), &me->v[i],
						     (struct hash128){ 0 }, &e)) == E_UNAVAILABLE)
				;
			BENCH_OK(st, &e);
			move(&me->v[i], FLEET_BATCH_NS);
		}
	return NULL;
}

/* Samples a second of `senders` senders together. */
static double turn(struct sender *all, int senders, struct store *s)
{
	pthread_t threads[SENDERS];
	struct memtable *m = NULL;
	struct err e = { 0 };
	if (!s)
		BENCH_CHECK(memtable_new((size_t)256 << 20, &m) == OK);
	for (int i = 0; i < SENDERS; i++) {
		all[i].s = s;
		all[i].m = m;
		send_all(&all[i]); /* so that the table has their stacks and labels */
	}
	int64_t begin = clock_monotonic_ns();
	for (int i = 0; i < senders; i++)
		BENCH_OK(os_thread_start(&threads[i], "send", send_all, &all[i], &e), &e);
	for (int i = 0; i < senders; i++)
		pthread_join(threads[i], NULL);
	double took_s = (double)(clock_monotonic_ns() - begin) * 1e-9;
	memtable_unref(m);
	return (double)senders * SENDER_ROUNDS * SENDER_PROFILES * SAMPLES / took_s;
}

static void measure_cores(const char *name, struct sender *all, struct store *s)
{
	double one = 0, all_of = 0;
	char note[128];
	for (int i = 0; i < TURNS; i++) {
		one = MAX(one, turn(all, 1, s));
		all_of = MAX(all_of, turn(all, SENDERS, s));
	}
	snprintf(note, sizeof(note),
		"%d senders of batches of %d samples; the best of %d turns of each", SENDERS,
		SAMPLES, TURNS);
	bench_report(name, all_of, "samples/s", "one sender", all_of / one, note);
}

static void cores(const char *dir, struct fleet *f)
{
	static struct sender all[SENDERS];
	struct store_config c;
	struct store *s;
	struct err e = { 0 };
	for (uint32_t i = 0; i < SENDERS * SENDER_PROFILES; i++) {
		struct profile *p = &all[i % SENDERS].v[i / SENDERS];
		BENCH_CHECK(profile_init(p, 64 << 20) == OK);
		fleet_batch(f, p, i, FLEET_T0, SAMPLES, true);
	}
	measure_cores("store.memtable_senders", all, NULL);
	store_config_default(&c);
	c.path = dir;
	BENCH_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	measure_cores("store.append_senders", all, s);
	store_close(s);
	for (int i = 0; i < SENDERS * SENDER_PROFILES; i++)
		profile_deinit(&all[i % SENDERS].v[i / SENDERS]);
}

static double bare_sync(const char *dir, uint64_t bytes)
{
	static int64_t took[ACKS];
	char path[128];
	void *zeros = calloc(1, bytes);
	snprintf(path, sizeof(path), "%s/bare", dir);
	int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	BENCH_CHECK(fd >= 0 && zeros);
	BENCH_CHECK(fallocate(fd, 0, 0, (off_t)(bytes * (ACKS + 1))) == 0);
	for (int i = 0; i < ACKS; i++) {
		int64_t begin = clock_monotonic_ns();
		BENCH_CHECK(
			pwrite(fd, zeros, bytes, (off_t)(bytes * (uint64_t)i)) == (ssize_t)bytes);
		BENCH_CHECK(fdatasync(fd) == 0);
		took[i] = clock_monotonic_ns() - begin;
	}
	close(fd);
	free(zeros);
	return p99_ms(took, ACKS);
}

/* The limit of one core, without CRC and zstd: each sample's row is written once. */
static double copies_per_second(void)
{
	enum { BYTES = 64 << 20, ROW = 28 };
	uint8_t *from = malloc(BYTES), *to = malloc(BYTES);
	BENCH_CHECK(from && to);
	memset(from, 1, BYTES);
	memset(to, 2, BYTES);
	int64_t begin = clock_monotonic_ns();
	for (int i = 0; i < 8; i++) {
		memcpy(to, from, BYTES);
		__asm__ volatile("" ::"r"(to) : "memory");
	}
	double s = (double)(clock_monotonic_ns() - begin) * 1e-9;
	free(from);
	free(to);
	return 8.0 * BYTES / ROW / s;
}

int main(int argc, char **argv)
{
	static struct fleet f;
	char dir[64], sub[80], note[256];
	uint64_t bytes, ignored;
	double one_rate, all_rate;
	fleet_init(&f);
	bench_dir(dir);
	snprintf(sub, sizeof(sub), "%s/d", dir);
	if (argc > 1 && strcmp(argv[1], "cores") == 0) {
		cores(sub, &f);
		bench_clean(dir);
		return 0;
	}
	snprintf(sub, sizeof(sub), "%s/a", dir);
	double rate = ingest(sub, &f), copies = copies_per_second();
	snprintf(note, sizeof(note),
		"batches of %d samples with pid, thread_id, cpu; parts and merging "
		"included",
		SAMPLES);
	bench_report("store.ingest_per_second_core", rate, "samples/s",
		"memcpy of the 28-byte rows", rate / copies, note);
	if (argc > 1 && strcmp(argv[1], "ingest") == 0) {
		bench_clean(dir);
		return 0;
	}
	snprintf(sub, sizeof(sub), "%s/b", dir);
	double one = acknowledge(sub, &f, 1, &bytes, &one_rate), bare = bare_sync(dir, bytes);
	snprintf(sub, sizeof(sub), "%s/c", dir);
	double ack = acknowledge(sub, &f, CALLERS, &ignored, &all_rate);
	snprintf(note, sizeof(note),
		"%d callers that send a batch of 200 samples after the other, %.0f samples/s in "
		"all; one alone %.2f ms, %.0f samples/s; %llu bytes a batch in the log",
		CALLERS, all_rate, one, one_rate, (unsigned long long)bytes);
	bench_report("store.ack_p99_ms", ack, "ms", "p99 of pwrite and fdatasync of as many bytes",
		ack / bare, note);
	snprintf(sub, sizeof(sub), "%s/d", dir);
	cores(sub, &f);
	bench_clean(dir);
	fleet_deinit(&f);
	return 0;
}
