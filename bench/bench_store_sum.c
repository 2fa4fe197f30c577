/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sum by stack over merged parts, from the file (in the page cache) to the result tree. It is done
 * twice: for all series of the type, which the totals in the part answer; and for all but 4 of the
 * 200, where rows are read. The results are rows a second and core, and the share of the rate that
 * memory bandwidth allows for plain columns of 8 bytes (stack, value).
 *
 * 	bench_store_sum [DIRECTORY [MILLIONS]]    millions of samples (default 10); keeps the store
 * in DIRECTORY
 */
#include "bench_store.h"
#include "store/merge/merge.h"
#include "store/read/queries.h"
#include "store/state/state.h"

enum { SAMPLES = 200, RUNS = 9 };
#define BATCH_SAMPLES ((uint64_t)SAMPLES * FLEET_SERIES)

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

static void fill(struct store *s, struct fleet *f, uint64_t samples)
{
	struct err e = { 0 };
	bool merged;
	for (uint32_t b = 0; b < samples / BATCH_SAMPLES; b++)
		for (uint32_t i = 0; i < FLEET_SERIES; i++) {
			struct profile p;
			BENCH_CHECK(profile_init(&p, 64 << 20) == OK);
			fleet_batch(f, &p, i, FLEET_T0 + b * FLEET_BATCH_NS, SAMPLES, false);
			enum status st;
			while ((st = store_append(s, STR(""), &p, (struct hash128){ 0 }, &e)) ==
				E_UNAVAILABLE)
				usleep(20000);
			BENCH_OK(st, &e);
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

/* CPU time of all threads, since a sum may run on several. */
static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The best and the median of the processor time of a sum over [from, to), in seconds. */
struct took {
	double best, median;
};

static struct took sum(struct store *s, const char *text, int64_t from, int64_t to, int64_t *total)
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
	return (struct took){ took[0], took[RUNS / 2] };
}

int main(int argc, char **argv)
{
	static struct fleet f;
	char made[64], note[400];
	struct store *s;
	struct err e = { 0 };
	struct store_config c;
	int64_t total, some, none;
	uint64_t samples = (argc > 2 ? (uint64_t)atoi(argv[2]) : 10) * 1000000;
	if (argc < 2)
		bench_dir(made);
	const char *dir = argc < 2 ? made : argv[1];
	bool filled = argc > 1 && access(dir, F_OK) == 0;
	store_config_default(&c);
	c.path = dir;
	c.memory_bytes = (uint64_t)2 << 30;
	BENCH_OK(os_pool_new(os_cpus() - 1, "query", &c.pool, &e), &e);
	BENCH_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	if (!filled) {
		fleet_init(&f);
		fill(s, &f, samples);
		fleet_deinit(&f);
	}
	double rows = 0;
	for (size_t i = 0; i < s->parts.len; i++)
		rows += (double)part_meta(s->parts.v[i])->rows;
	struct took whole = sum(s, FLEET_TYPE, 0, INT64_MAX, &total);
	struct took read = sum(s, FLEET_TYPE "{node!=\"node-7\"}", 0, INT64_MAX, &some);
	/* The fixed cost: tables and most of the result's tree, for few rows. */
	struct took fixed = sum(s, FLEET_TYPE, FLEET_T0, FLEET_T0 + FLEET_BATCH_NS, &none);
	struct took part_of = sum(s, FLEET_TYPE "{comm=\"service1\"}", FLEET_T0 + 200 * NS_PER_SEC,
		FLEET_T0 + 700 * NS_PER_SEC, &none);
	BENCH_CHECK(some == total / FLEET_SERIES * (FLEET_SERIES - 4));
	rows *= (double)some / (double)total;
	double bandwidth = read_bandwidth(), rate = rows / read.best;
	snprintf(note, sizeof(note),
		"%lld samples in %zu part(s), milliseconds of processor time, best and median of "
		"%d: all by their totals %.1f, %.1f; %.0f rows of 196 of 200 series %.1f, %.1f; 10 "
		"s of all %.1f; a quarter of the series in 500 s %.1f; %.0f M rows/s and core",
		(long long)total, s->parts.len, RUNS, whole.best * 1e3, whole.median * 1e3, rows,
		read.best * 1e3, read.median * 1e3, fixed.best * 1e3, part_of.best * 1e3,
		rate * 1e-6);
	bench_report("store.sum_bandwidth_share", rate * 8 / bandwidth, "share",
		"memory read bandwidth over 8-byte rows", rate * 8 / bandwidth, note);
	store_close(s);
	if (argc < 2)
		bench_clean(dir);
	return 0;
}
