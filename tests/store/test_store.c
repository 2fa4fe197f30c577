/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include "store/state/state.h"
#include "tests/store/fixture.h"

static const char *const alice[] = { "comm", "alice", "node", "a", "pid", "1", NULL };
static const char *const bob[] = { "comm", "bob", "node", "b", "pid", "2", NULL };
static const char *const main_thread[] = { "thread_name", "main", "cpu", "0", NULL };
static const char *const worker[] = { "thread_name", "worker", "cpu", "1", NULL };

#define CPU "cpu:samples:count:cpu:nanoseconds:delta"

/* Two processes, two threads, three stacks; values 1, 2, 4, 8 at seconds 0, 1, 2, 3. */
static void make_profile(struct profile *p, int64_t t)
{
	CHECK(profile_init(p, 1 << 20) == OK);
	uint32_t head = fx_head(p, "cpu", true, 52631578);
	uint32_t a = fx_frame(p, "/bin/x", 0x10), b = fx_frame(p, "/bin/x", 0x20);
	uint32_t c = fx_named(p, "run", 12, "inlined");
	uint32_t s1, s2, s3;
	CHECK(profile_add_stack(p, (uint32_t[]){ b, a }, 2, &s1) == OK); /* leaf first */
	CHECK(profile_add_stack(p, (uint32_t[]){ c, b, a }, 3, &s2) == OK);
	CHECK(profile_add_stack(p, (uint32_t[]){ a }, 1, &s3) == OK);
	uint32_t ra = fx_labels(p, alice), rb = fx_labels(p, bob);
	uint32_t om = fx_labels(p, main_thread), ow = fx_labels(p, worker);
	fx_sample(p, t, 1, head, s1, ra, om);
	fx_sample(p, t + SEC, 2, head, s2, ra, ow);
	fx_sample(p, t + 2 * SEC, 4, head, s3, rb, om);
	fx_sample(p, t + 3 * SEC, 8, head, s1, rb, ow);
}

static void append(struct store *s, int64_t t, uint64_t id)
{
	struct profile p;
	struct err e = { 0 };
	make_profile(&p, t);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ id, 0 }, &e), &e);
	profile_deinit(&p);
}

static int64_t total(struct store *s, const char *selector, int64_t from, int64_t to)
{
	struct fx_query f;
	struct store_view *v;
	struct samples_tree t;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, selector, from, to);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	int64_t sum = t.total;
	for (uint32_t i = 1; i < t.nodes.len; i++)
		CHECK(t.nodes.v[i].parent < i);
	samples_tree_deinit(&t);
	store_view_close(v);
	fx_query_end(&f);
	return sum;
}

static void check_all(struct store *s, int64_t n)
{
	CHECK(total(s, CPU, 0, INT64_MAX) == 15 * n);
	CHECK(total(s, CPU "{comm=\"alice\"}", 0, INT64_MAX) == 3 * n);
	CHECK(total(s, CPU "{pid=\"2\"}", 0, INT64_MAX) == 12 * n);
	CHECK(total(s, CPU "{thread_name=~\"w.*\"}", 0, INT64_MAX) == 10 * n);
	CHECK(total(s, CPU "{thread_name!=\"worker\",comm=\"bob\"}", 0, INT64_MAX) == 4 * n);
	CHECK(total(s, CPU "{absent=\"\"}", 0, INT64_MAX) == 15 * n);
	CHECK(total(s, CPU "{absent!=\"\"}", 0, INT64_MAX) == 0);
	CHECK(total(s, "{comm=\"bob\"}", 0, INT64_MAX) == 12 * n);
	CHECK(total(s, "other:samples:count:cpu:nanoseconds", 0, INT64_MAX) == 0);
}

static void stores_and_answers(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	c.resolution_ns = SEC; /* the part may be merged, and its times rounded, at any moment */
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	append(s, T0, 1);
	check_all(s, 1);
	CHECK(total(s, CPU, T0 + SEC, T0 + 3 * SEC) == 6);
	append(s, T0, 1); /* a retry */
	check_all(s, 1);
	CHECK_OK(store_flush(s, &e), &e);
	check_all(s, 1);
	CHECK(total(s, CPU, T0 + SEC, T0 + 3 * SEC) == 6);
	append(s, T0 + 10 * SEC, 2);
	check_all(s, 2);
	CHECK_OK(store_flush(s, &e), &e);
	append(s, T0 + 20 * SEC, 3);
	check_all(s, 3);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	check_all(s, 3);
	append(s, T0 + 10 * SEC, 2); /* a retry after a restart */
	check_all(s, 3);
	store_close(s);
	fixture_clean(dir);
}

/* The resource's label wins; ids of a link become labels; a tenant sees its own samples only. */
static void labels_of_all_kinds(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	struct profile p;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(profile_init(&p, 1 << 20) == OK);
	static const char *const resource[] = { "comm", "outer", "pid", "7", NULL };
	static const char *const own[] = { "comm", "inner", "pid", "8", "cpu", "3", NULL };
	struct profile_link link = { .trace_id = { 0xAB, 0xCD }, .span_id = { 1 } };
	uint32_t head = fx_head(&p, "cpu", true, 1), id;
	CHECK(profile_add_link(&p, &link, &id) == OK);
	fx_sample(&p, T0, 5, head, 0, fx_labels(&p, resource), fx_labels(&p, own));
	p.samples.v[0].link = id;
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	CHECK_OK(store_append(s, STR("other"), &p, (struct hash128){ 0 }, &e), &e);
	for (int i = 0; i < 2; i++) {
		CHECK(total(s, CPU, 0, INT64_MAX) == 5);
		CHECK(total(s, CPU "{comm=\"outer\",pid=\"7\",cpu=\"3\"}", 0, INT64_MAX) == 5);
		CHECK(total(s, CPU "{comm=\"inner\"}", 0, INT64_MAX) == 0);
		CHECK(total(s, CPU "{trace_id=~\"abcd0{28}\",span_id=\"0100000000000000\"}", 0,
			      INT64_MAX) == 5);
		CHECK(total(s, CPU "{span_id=\"\"}", 0, INT64_MAX) == 0);
		CHECK_OK(store_flush(s, &e), &e);
	}
	char long_name[STORE_TENANT_MAX + 1];
	memset(long_name, 't', sizeof(long_name));
	struct str tenant = str_make(long_name, sizeof(long_name));
	CHECK(store_append(s, tenant, &p, (struct hash128){ 0 }, &e) == E_INVALID);
	p.samples.v[0].stack = 99;
	CHECK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e) == E_INVALID);
	CHECK(metric_get(&s->metrics.rejected) == 2);
	profile_deinit(&p);
	store_close(s);
	fixture_clean(dir);
}

/* A batch of `n` stacks that no other batch has. */
static enum status append_stacks(struct store *s, uint64_t *address, int n, struct err *e)
{
	CLEANUP(profile_deinit) struct profile p;
	CHECK(profile_init(&p, 64 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1), stack;
	for (int i = 0; i < n; i++) {
		uint32_t frames[8];
		for (int k = 0; k < 8; k++)
			frames[k] = fx_frame(&p, "/bin/x", ++*address);
		CHECK(profile_add_stack(&p, frames, 8, &stack) == OK);
		fx_sample(&p, T0, 1, head, stack, 0, 0);
	}
	return store_append(s, STR(""), &p, (struct hash128){ 0 }, e);
}

/* While nothing can be written as a part, appending stops at the budget, and goes on after it. */
static void memory_has_a_limit(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	uint64_t address = 0;
	int64_t stored = 0;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	c.memory_bytes = 16 << 20;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(append_stacks(s, &address, 20000, &e) == E_LIMIT); /* never fits */
	lock_take(&s->flush_lock);
	enum status st = OK;
	for (int i = 0; i < 1000 && st == OK; i++) {
		st = append_stacks(s, &address, 50, &e);
		stored += st == OK ? 50 : 0;
	}
	CHECK(st == E_UNAVAILABLE && strstr(e.text, "memory") != NULL);
	CHECK(atomic_load(&s->active->bytes) <= s->memtable_bytes * 5 / 4);
	lock_release(&s->flush_lock);
	while ((st = append_stacks(s, &address, 50, &e)) == E_UNAVAILABLE)
		;
	CHECK_OK(st, &e);
	stored += 50;
	CHECK(total(s, CPU, 0, INT64_MAX) == stored);
	/* A batch that is larger than the share comes in alone. */
	uint64_t largest = 0;
	for (int n = 100; st == OK; n += n / 4) {
		CHECK_OK(store_flush(s, &e), &e);
		st = append_stacks(s, &address, n, &e);
		largest = MAX(largest, atomic_load(&s->active->bytes));
		stored += st == OK ? n : 0;
	}
	CHECK(st == E_LIMIT && strstr(e.text, "--storage-memory"));
	CHECK(largest > s->memtable_bytes);
	CHECK(metric_get(&s->metrics.samples) == (uint64_t)stored);
	store_close(s);
	fixture_clean(dir);
}

/* No other thread of this process runs or would like to. */
static bool others_sleep(void)
{
	bool sleep = true;
	DIR *d = opendir("/proc/self/task");
	CHECK(d);
	for (struct dirent *x; (x = readdir(d));) {
		char path[300];
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 4096);
		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", x->d_name);
		if (x->d_name[0] == '.' || strtol(x->d_name, NULL, 10) == (long)gettid() ||
			os_read_file(path, &b, NULL) != OK)
			continue;
		const char *end = memrchr(b.data, ')', b.len); /* "12 (its name) S ..." */
		sleep &= end && end[2] == 'S';
	}
	closedir(d);
	return sleep;
}

/* The part is merged, and all threads have gone to sleep after that. */
static void wait_until_idle(struct store *s)
{
	int64_t deadline = clock_monotonic_ns() + 120 * SEC;
	while (metric_get(&s->metrics.merges) == 0 && clock_monotonic_ns() < deadline) {
		lock_take(&s->lock);
		pthread_cond_signal(&s->merge_wake);
		lock_release(&s->lock);
		usleep(1000);
	}
	for (int n = 0; n < 20 && clock_monotonic_ns() < deadline; usleep(1000))
		n = others_sleep() ? n + 1 : 0;
}

/* An open store that nobody uses costs no processor time. */
static void idles(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	append(s, T0, 1);
	CHECK_OK(store_flush(s, &e), &e);
	append(s, T0, 2);
	wait_until_idle(s);
	int64_t before = os_self_cpu_ns();
	usleep(1500000);
	int64_t used = os_self_cpu_ns() - before;
	print_message("%.3f ms of processor time in 1.5 s\n", (double)used * 1e-6);
	CHECK(used < 15 * 1000000);
	store_close(s);
	fixture_clean(dir);
}

static void second_store_is_refused(void **state)
{
	(void)state;
	char dir[64];
	struct store *s, *t;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(store_open(&c, NULL, NULL, &t, &e) == E_EXISTS);
	CHECK(strstr(e.text, "in use") != NULL);
	store_close(s);
	fixture_clean(dir);
}

static void append_of_period(struct store *s, int64_t period, int64_t value, uint64_t id)
{
	CLEANUP(profile_deinit) struct profile p;
	struct err e = { 0 };
	uint32_t stack;
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, period), frame = fx_frame(&p, "/bin/x", 0x10);
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	fx_sample(&p, T0, value, head, stack, fx_labels(&p, alice), 0);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ id, 0 }, &e), &e);
}

static void check_periods(struct store *s, bool times_period, int64_t want, int64_t want_period)
{
	struct fx_query f;
	struct store_view *v;
	struct samples_tree t;
	struct samples_series *series;
	struct err e = { 0 };
	int64_t period;
	size_t n;
	struct samples_query *q = fx_query(&f, CPU, T0, T0 + SEC);
	q->times_period = times_period;
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	CHECK(t.total == want && t.period == want_period);
	CHECK_OK(
		store_sum_series(v, q, NULL, 0, SEC, &f.arena, &series, &n, NULL, &period, &e), &e);
	CHECK(n == 1 && series[0].point_count == 1 && series[0].points[0].value == want);
	CHECK(period == want_period);
	samples_tree_deinit(&t);
	store_view_close(v);
	fx_query_end(&f);
}

static void periods_that_differ_weigh(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	append_of_period(s, 10, 3, 1);
	check_periods(s, true, 3, 10);
	CHECK_OK(store_flush(s, &e), &e);
	append_of_period(s, 25, 2, 2);
	check_periods(s, true, 3 * 10 + 2 * 25, 1);
	check_periods(s, false, 5, 0);
	append_of_period(s, 0, 1, 3); /* what has no period counts as it is */
	check_periods(s, true, 3 * 10 + 2 * 25 + 1, 1);
	check_periods(s, false, 6, 0);
	store_close(s);
	fixture_clean(dir);
}

/* ---- memory ---- */

enum { NAMES = 5000, WRITERS = 6, WRITES = 12 };

/* NAMES samples, each with a function that nobody else has. */
static void make_wide(struct profile *p, uint32_t n)
{
	char name[128];
	CHECK(profile_init(p, 16 << 20) == OK);
	uint32_t head = fx_head(p, "cpu", true, 1);
	for (uint32_t i = 0; i < NAMES; i++) {
		uint32_t frame, stack;
		snprintf(name, sizeof(name), "%0100u", n * NAMES + i);
		frame = fx_named(p, name, 1, NULL);
		CHECK(profile_add_stack(p, &frame, 1, &stack) == OK);
		fx_sample(p, T0 + (int64_t)n * SEC, 1, head, stack, 0, 0);
	}
}

static int64_t total_between(struct store *s, int64_t from, int64_t to)
{
	struct fx_query f;
	struct store_view *v;
	struct samples_tree t;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, CPU, from, to);
	q->memory_bytes = 256 << 20;
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	int64_t total = t.total;
	samples_tree_deinit(&t);
	store_view_close(v);
	fx_query_end(&f);
	return total;
}

static size_t merge_all(struct store *s, int64_t now_ns)
{
	struct err e = { 0 };
	bool merged = true;
	for (int i = 0; i < 100 && merged; i++)
		CHECK_OK(store_merge_step(s, now_ns, &merged, &e), &e);
	CHECK(!merged); /* what does not fit is not tried for ever */
	lock_take(&s->lock);
	size_t n = s->parts.len;
	lock_release(&s->lock);
	return n;
}

static void merging_has_a_budget(void **state)
{
	(void)state;
	enum { PARTS = 9 };
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	c.memory_bytes = 16 << 20;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (uint32_t n = 0; n < PARTS; n++) {
		struct profile p;
		make_wide(&p, n);
		CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ n + 1, 1 }, &e), &e);
		CHECK_OK(store_flush(s, &e), &e);
		profile_deinit(&p);
	}
	size_t left = merge_all(s, T0 + 90000 * SEC);
	print_message("%zu parts of %d, %lld left alone\n", left, PARTS,
		(long long)metric_get(&s->metrics.parts_left_alone));
	CHECK(left > 1 && left < PARTS);
	CHECK(total_between(s, 0, INT64_MAX) == PARTS * NAMES);
	store_close(s);
	c.memory_bytes = 256 << 20;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(merge_all(s, T0 + 90000 * SEC) == 1);
	CHECK(total_between(s, 0, INT64_MAX) == PARTS * NAMES);
	store_close(s);
	fixture_clean(dir);
}

struct writer {
	struct store *s;
	uint32_t number;
	uint64_t most; /* bytes of the memtable that were seen */
	uint32_t waited;
};

static void *write_much(void *ctx)
{
	struct writer *w = ctx;
	for (uint32_t i = 0; i < WRITES; i++) {
		struct profile p;
		uint32_t n = w->number * WRITES + i;
		enum status st;
		make_wide(&p, n);
		do {
			struct err e = { 0 };
			st = store_append(w->s, STR(""), &p, (struct hash128){ n + 1, 1 }, &e);
			CHECK(st == OK || st == E_UNAVAILABLE);
			w->waited += st != OK;
			lock_take(&w->s->lock);
			w->most = MAX(w->most, atomic_load(&w->s->active->bytes));
			lock_release(&w->s->lock);
		} while (st != OK);
		profile_deinit(&p);
	}
	return NULL;
}

static void many_writers_share_the_memory(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	struct writer w[WRITERS] = { 0 };
	pthread_t threads[WRITERS];
	uint64_t most = 0;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	c.memory_bytes = 24 << 20;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (uint32_t i = 0; i < WRITERS; i++) {
		w[i].s = s;
		w[i].number = i;
		CHECK(pthread_create(&threads[i], NULL, write_much, &w[i]) == 0);
	}
	for (int i = 0; i < WRITERS; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		most = MAX(most, w[i].most);
	}
	CHECK(most > 0 && most <= s->memtable_bytes);
	CHECK(s->reserved_bytes == 0);
	CHECK(total_between(s, 0, INT64_MAX) == (int64_t)WRITERS * WRITES * NAMES);
	store_close(s);
	fixture_clean(dir);
}

/* ---- late samples ---- */

/* Samples of thirty hours, in no order, while parts are made and merged. */
static void samples_may_be_late(void **state)
{
	(void)state;
	enum { HOURS = 30, BATCHES = 400 };
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	int64_t want[HOURS] = { 0 }, begin = T0 / (86400 * SEC) * (86400 * SEC);
	uint64_t random = 17;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (uint64_t i = 0; i < BATCHES; i++) {
		struct profile p;
		int64_t t = (int64_t)rnd_below(&random, (uint64_t)HOURS * 3600) * SEC;
		make_profile(&p, begin + t / (10 * SEC) * (10 * SEC));
		want[t / (3600 * SEC)] += 15;
		CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ i + 1, 2 }, &e), &e);
		profile_deinit(&p);
		if (i % 8 == 7)
			CHECK_OK(store_flush(s, &e), &e);
		if (i % 100 == 99)
			(void)merge_all(s, begin + (int64_t)(i / 8) * 3600 * SEC);
	}
	size_t left = merge_all(s, begin + 60LL * 3600 * SEC);
	CHECK(left < BATCHES / 8);
	for (int64_t h = 0; h < HOURS; h++)
		if (total_between(s, begin + h * 3600 * SEC, begin + (h + 1) * 3600 * SEC) !=
			want[h])
			fail_msg("hour %lld", (long long)h);
	store_close(s);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(stores_and_answers), cmocka_unit_test(merging_has_a_budget),
	cmocka_unit_test(many_writers_share_the_memory), cmocka_unit_test(samples_may_be_late),
	cmocka_unit_test(periods_that_differ_weigh), cmocka_unit_test(labels_of_all_kinds),
	cmocka_unit_test(memory_has_a_limit), cmocka_unit_test(idles),
	cmocka_unit_test(second_store_is_refused))
