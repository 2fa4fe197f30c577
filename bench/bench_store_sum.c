/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sum by stack over a merged part, from the file (in the page cache) to the result tree: rows a
 * second and core, and the share of what memory bandwidth would allow if the rows lay there as
 * plain columns of 8 bytes (stack, value).
 */
#include "bench_store.h"
#include "store/state.h"

enum { BATCHES = 100, SAMPLES = 200, RUNS = 7 };

static double read_bandwidth(void)
{
	enum { WORDS = 32 << 20 };
	uint64_t *v = malloc(WORDS * sizeof(*v)), sum = 0;
	BENCH_CHECK(v);
	memset(v, 3, WORDS * sizeof(*v));
	double best = 0;
	for (int run = 0; run < 5; run++) {
		int64_t begin = clock_thread_cpu_ns();
		uint64_t a = 0, b = 0, c = 0, d = 0;
		for (size_t i = 0; i < WORDS; i += 4) {
			a += v[i];
			b += v[i + 1];
			c += v[i + 2];
			d += v[i + 3];
		}
		sum += a + b + c + d;
		double s = (double)(clock_thread_cpu_ns() - begin) * 1e-9;
		best = MAX(best, WORDS * 8.0 / s);
	}
	__asm__ volatile("" ::"r"(sum));
	free(v);
	return best;
}

static void fill(struct store *s, struct fleet *f)
{
	struct err e = { 0 };
	bool merged;
	for (uint32_t b = 0; b < BATCHES; b++)
		for (uint32_t i = 0; i < FLEET_SERIES; i++) {
			struct profile p;
			BENCH_CHECK(profile_init(&p, 64 << 20) == OK);
			fleet_batch(f, &p, i, FLEET_T0 + b * FLEET_BATCH_NS, SAMPLES, false);
			BENCH_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
			profile_deinit(&p);
		}
	BENCH_OK(store_flush(s, &e), &e);
	do
		BENCH_OK(store_merge_step(s, clock_realtime_ns(), &merged, &e), &e);
	while (merged);
}

static int by_value(const void *a, const void *b)
{
	const double *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

/* Of all threads: a sum may run on several. */
static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Median seconds of a sum over [from, to). */
static double sum(struct store *s, const char *text, int64_t from, int64_t to, int64_t *total)
{
	double took[RUNS];
	struct err e = { 0 };
	struct arena a;
	struct selector sel;
	arena_init(&a, 1 << 20);
	BENCH_OK(selector_parse(str_of(text), &a, &sel, &e), &e);
	struct samples_query q = {
		.selector = &sel, .from_ns = from, .to_ns = to, .memory_bytes = (uint64_t)1 << 30
	};
	for (int i = 0; i < RUNS; i++) {
		struct store_view *v;
		struct samples_tree t;
		double begin = cpu_seconds();
		BENCH_OK(store_view_open(s, STR(""), &v, &e), &e);
		BENCH_OK(store_sum_stacks(v, &q, &t, &e), &e);
		took[i] = cpu_seconds() - begin;
		*total = t.total;
		samples_tree_deinit(&t);
		store_view_close(v);
	}
	selector_deinit(&sel);
	arena_deinit(&a);
	qsort(took, RUNS, sizeof(took[0]), by_value);
	return took[RUNS / 2];
}

int main(void)
{
	static struct fleet f;
	char dir[64], note[256];
	struct store *s;
	struct err e = { 0 };
	struct store_config c;
	int64_t total, none;
	fleet_init(&f);
	bench_dir(dir);
	store_config_default(&c);
	c.path = dir;
	c.memory_bytes = (uint64_t)2 << 30;
	BENCH_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fill(s, &f);
	double rows = 0;
	for (size_t i = 0; i < s->parts.len; i++)
		rows += (double)part_meta(s->parts.v[i])->rows;
	double whole = sum(s, FLEET_TYPE, 0, INT64_MAX, &total);
	/* One hundredth of the samples: the tables and most of the result's tree, for few rows. */
	double fixed = sum(s, FLEET_TYPE, FLEET_T0, FLEET_T0 + FLEET_BATCH_NS, &none);
	double part_of = sum(s, FLEET_TYPE "{comm=\"service1\"}", FLEET_T0 + 200 * NS_PER_SEC,
		FLEET_T0 + 700 * NS_PER_SEC, &none);
	BENCH_CHECK(total == (int64_t)BATCHES * SAMPLES * FLEET_SERIES);
	double bandwidth = read_bandwidth(), rate = rows / whole;
	snprintf(note, sizeof(note),
		"%.0f rows of %lld samples in %zu part(s): %.1f ms of processor time; only their "
		"first 10 of 1000 s %.1f ms; a quarter of the series in half of the time %.1f ms; "
		"%.0f M rows/s and core",
		rows, (long long)total, s->parts.len, whole * 1e3, fixed * 1e3, part_of * 1e3,
		rate * 1e-6);
	bench_report("store.sum_bandwidth_share", rate * 8 / bandwidth, "share",
		"memory read bandwidth over 8-byte rows", rate * 8 / bandwidth, note);
	store_close(s);
	bench_clean(dir);
	fleet_deinit(&f);
	return 0;
}
