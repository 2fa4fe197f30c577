/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine over a real store in a temporary directory: made samples go in by batches, some into
 * parts and some still in memory, and every report must give the sum that was counted beside.
 */
#include "base/clock.h"
#include "query/query.h"
#include "store/store.h"
#include "test.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CPU "parca_agent:samples:count:cpu:nanoseconds:delta"
#define PERIOD 52631578       /* 19 Hz */
#define OTHER_PERIOD 10309278 /* 97 Hz */
#define BATCHES 6
#define SAMPLES 2000 /* of a batch */
#define DEPTH_MAX 20
#define BEGIN_NS (1767323040 * NS_PER_SEC)
#define STEP_NS (10 * NS_PER_SEC) /* time of a batch */

static char dir[64];
static struct store *store;
static struct query_engine engine;
static uint32_t seed;
static bool mixed; /* each other batch is of another rate */
/* What went in, by batch and comm. */
static int64_t counted[BATCHES][4];
static const char *const comms[] = { "python3", "cc1", "bash", "kworker" };

static int64_t period_of(uint32_t batch)
{
	return mixed && batch % 2 ? OTHER_PERIOD : PERIOD;
}

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static uint32_t text(struct profile *p, const char *s)
{
	uint32_t id = 0;
	CHECK(profile_add_string(p, str_of(s), &id) == OK);
	return id;
}

static uint32_t random_location(struct profile *p)
{
	uint32_t n = random_below(40), id = 0, count = 0;
	char name[32];
	snprintf(name, sizeof(name), "/usr/lib/lib%u.so", n % 5);
	struct profile_mapping m = { .filename = text(p, name) };
	snprintf(name, sizeof(name), "%04x%016u", n % 5, 0);
	m.build_id = text(p, name);
	struct profile_location l = { .address = 0x1000 + 16 * n, .kind = FRAME_NATIVE };
	struct profile_line lines[2] = { { 0 } };
	CHECK(profile_add_mapping(p, &m, &l.mapping) == OK);
	/* A quarter has no names. */
	for (; count < n % 4 && count < 2; count++) {
		snprintf(name, sizeof(name), "function_%u", n / 2 + count);
		struct profile_function f = {
			.name = text(p, name), .filename = text(p, "/src/x.c"), .start_line = n
		};
		CHECK(profile_add_function(p, &f, &lines[count].function) == OK);
		lines[count].line = n + 5;
	}
	CHECK(profile_add_location(p, &l, lines, count, &id) == OK);
	return id;
}

static void add_sample(struct profile *p, uint32_t batch, uint32_t head)
{
	uint32_t locations[DEPTH_MAX], depth = random_below(DEPTH_MAX), comm = random_below(4);
	char number[16];
	struct profile_sample s = { .head = head, .value = 1 + random_below(3) };
	s.time_ns = BEGIN_NS + batch * STEP_NS + random_below(1000) * (STEP_NS / 1000);
	for (uint32_t i = 0; i < depth; i++)
		locations[i] = random_location(p);
	CHECK(profile_add_stack(p, locations, depth, &s.stack) == OK);
	struct profile_label resource[] = { { text(p, "comm"), text(p, comms[comm]) },
		{ text(p, "node"), text(p, "n1") } };
	snprintf(number, sizeof(number), "%u", random_below(8));
	struct profile_label own[] = { { text(p, "cpu"), text(p, number) },
		{ text(p, "pid"), text(p, number) } };
	CHECK(profile_add_labels(p, resource, 2, &s.resource) == OK);
	CHECK(profile_add_labels(p, own, 2, &s.own) == OK);
	CHECK(profile_add_sample(p, &s) == OK);
	counted[batch][comm] += s.value;
}

static void append_batch(uint32_t batch)
{
	struct profile p;
	struct err e = { 0 };
	uint32_t head = 0;
	CHECK(profile_init(&p, 64 << 20) == OK);
	struct profile_type type = { text(&p, "parca_agent"), text(&p, "samples"),
		text(&p, "count"), text(&p, "cpu"), text(&p, "nanoseconds"), true };
	struct profile_head h = { .period = period_of(batch),
		.time_ns = BEGIN_NS + batch * STEP_NS,
		.duration_ns = STEP_NS };
	CHECK(profile_add_type(&p, &type, &h.type) == OK);
	CHECK(profile_add_head(&p, &h, &head) == OK);
	for (int i = 0; i < SAMPLES; i++)
		add_sample(&p, batch, head);
	CHECK_OK(store_append(store, STR(""), &p, hash128(&batch, sizeof(batch)), &e), &e);
	profile_deinit(&p);
}

static int setup(void **state)
{
	(void)state;
	struct store_config c;
	struct symbolizer_config sc;
	struct err e = { 0 };
	char symbols[96];
	strcpy(dir, "/tmp/firn-test-query-XXXXXX");
	CHECK(mkdtemp(dir));
	store_config_default(&c);
	c.path = dir;
	c.retention_ns = 0;
	CHECK_OK(os_pool_new(2, "query", &engine.pool, &e), &e);
	c.pool = engine.pool;
	CHECK_OK(store_open(&c, NULL, NULL, &store, &e), &e);
	engine.samples = store_samples(store);
	symbolizer_config_default(&sc);
	snprintf(symbols, sizeof(symbols), "%s/symbols", dir);
	CHECK_OK(os_make_dirs(symbols, &e), &e);
	sc.dir = symbols;
	sc.debug_dirs = "";
	sc.local_files = false;
	sc.pool = engine.pool;
	CHECK_OK(symbolizer_new(&sc, &engine.symbolizer, &e), &e);
	seed = 5;
	memset(counted, 0, sizeof(counted));
	for (uint32_t i = 0; i < BATCHES; i++) {
		append_batch(i);
		if (i == 1 || i == 3)
			CHECK_OK(store_flush(store, &e), &e);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	store_close(store);
	symbolizer_free(engine.symbolizer);
	os_pool_free(engine.pool);
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* ---- one question, all reports ---- */

struct sums {
	int64_t flame, flame_self, top, top_self, series;
};

static struct sums ask(const struct query_request *r)
{
	CLEANUP(arena_deinit) struct arena a;
	struct query_flame f;
	struct query_table t;
	struct err e = { 0 };
	struct sums sums = { 0 };
	arena_init(&a, 256 << 20);
	CHECK_OK(query_flame(&engine, r, &a, &f, &e), &e);
	sums.flame = f.total[0];
	sums.flame_self = f.trimmed;
	for (uint32_t i = 0; i < f.count; i++)
		sums.flame_self += f.self[i];
	CHECK_OK(query_top(&engine, r, &a, &t, &e), &e);
	sums.top = t.total;
	/* The own values of the root, or of the values of a label below it, belong to no function.
	 */
	for (uint32_t i = 0; i < f.count; i++)
		if (i == 0 || (r->by_count && f.parent[i] == 0))
			sums.top_self += f.self[i];
	for (uint32_t i = 0; i < t.count; i++)
		sums.top_self += t.rows[i].self;
	return sums;
}

/* By the text of the answer, as a client would. */
static int64_t series_sum(const struct query_request *r)
{
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	int64_t sum = 0;
	buf_init(&b, 16 << 20);
	CHECK_OK(query_write_series(&engine, r, QUERY_JSON, &b, &e), &e);
	buf_u8(&b, 0);
	for (const char *at = (const char *)b.data; (at = strstr(at, "\"points\":[")); at++) {
		at += strlen("\"points\":[");
		while (*at == '[' || *at == ',') {
			at += *at == ',';
			long long ms, value;
			int len = 0;
			CHECK(sscanf(at, "[%lld,%lld]%n", &ms, &value, &len) == 2 && len > 0);
			sum += value;
			at += len;
		}
	}
	return sum;
}

/* What was picked of what went in. */
struct wanted {
	int64_t count, time;
};

static void check_pprof(const struct query_request *r, struct wanted want)
{
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	char path[96], command[512];
	buf_init(&b, 64 << 20);
	CHECK_OK(query_pprof(&engine, r, &b, &e), &e);
	snprintf(path, sizeof(path), "%s/p.pb.gz", dir);
	FILE *f = fopen(path, "we");
	CHECK(f && fwrite(b.data, 1, b.len, f) == b.len && fclose(f) == 0);
	int len = snprintf(command, sizeof(command), "python3 %s %s", CHECK_PPROF, path);
	/* The checker must be able to say no: once by its exit status, then in the same run, since
	 * reading the profile takes it long. */
	if (want.count > 0)
		snprintf(command + len, sizeof(command) - (size_t)len,
			" samples/count=%lld cpu/nanoseconds=%lld --not samples/count=%lld "
			">/dev/null",
			(long long)want.count, (long long)want.time, (long long)want.count + 1);
	CHECK(system(command) == 0);
	static bool said_no;
	if (want.count > 0 && !said_no) {
		snprintf(command + len, sizeof(command) - (size_t)len,
			" samples/count=%lld >/dev/null 2>&1", (long long)want.count + 1);
		CHECK(system(command) != 0);
		said_no = true;
	}
	unlink(path);
}

static void check_all(const struct query_request *r, struct wanted want)
{
	struct sums s = ask(r);
	assert_int_equal(s.flame, want.time);
	assert_int_equal(s.flame_self, want.time);
	assert_int_equal(s.top, want.time);
	assert_int_equal(s.top_self, want.time);
	assert_int_equal(series_sum(r), want.time);
	check_pprof(r, want);
}

static struct wanted count_of(uint32_t from, uint32_t to, const char *comm)
{
	struct wanted sum = { 0 };
	for (uint32_t b = from; b < to; b++)
		for (size_t c = 0; c < ARRAY_COUNT(comms); c++)
			if (!comm || strcmp(comm, comms[c]) == 0) {
				sum.count += counted[b][c];
				sum.time += counted[b][c] * period_of(b);
			}
	return sum;
}

static struct query_request request(const char *selector, uint32_t from, uint32_t to)
{
	struct query_request r = {
		.selector = str_of(selector),
		.from_ns = BEGIN_NS + from * STEP_NS,
		.to_ns = BEGIN_NS + to * STEP_NS,
		.step_ns = STEP_NS,
	};
	r.by[r.by_count++] = STR("comm");
	return r;
}

static void all_reports_agree(void **state)
{
	(void)state;
	struct query_request r = request(CPU, 0, BATCHES);
	check_all(&r, count_of(0, BATCHES, NULL));
	r.limit = 2;
	assert_int_equal(series_sum(&r), count_of(0, BATCHES, NULL).time);
	r.limit = 0;
	r.trim = 0.01;
	check_all(&r, count_of(0, BATCHES, NULL));
	r.invert = true;
	check_all(&r, count_of(0, BATCHES, NULL));
	r = request(CPU "{comm=\"cc1\"}", 0, BATCHES);
	check_all(&r, count_of(0, BATCHES, "cc1"));
	r = request("{comm=~\"^(cc1|bash)$\"}", 1, 5);
	struct wanted cc1 = count_of(1, 5, "cc1"), bash = count_of(1, 5, "bash");
	check_all(&r, (struct wanted){ cc1.count + bash.count, cc1.time + bash.time });
	r = request("", 4, 6); /* in memory only */
	check_all(&r, count_of(4, 6, NULL));
	r = request("", 0, 1); /* in a part only */
	check_all(&r, count_of(0, 1, NULL));
	r = request("{comm=\"nobody\"}", 0, BATCHES);
	check_all(&r, (struct wanted){ 0 });
	r = request("{no_such_label=\"x\"}", 0, BATCHES);
	check_all(&r, (struct wanted){ 0 });
}

/* Parts of a whole: by a label beside the sample, and by time. */
static void parts_make_the_whole(void **state)
{
	(void)state;
	int64_t by_pid = 0, by_time = 0, whole = count_of(0, BATCHES, NULL).time;
	for (uint32_t i = 0; i < 8; i++) {
		char selector[64];
		snprintf(selector, sizeof(selector), "{pid=\"%u\"}", i);
		struct query_request r = request(selector, 0, BATCHES);
		by_pid += ask(&r).flame;
	}
	assert_int_equal(by_pid, whole);
	for (uint32_t i = 0; i < BATCHES; i++) {
		struct query_request r = request("", i, i + 1);
		by_time += ask(&r).flame;
	}
	assert_int_equal(by_time, whole);
}

static void lists_what_is_there(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	struct query_request r = request("", 0, BATCHES);
	buf_init(&b, 1 << 20);
	CHECK_OK(query_write_labels(&engine, &r, QUERY_JSON, &b, &e), &e);
	CHECK_STR(buf_view(&b), "{\"labels\":[\"comm\",\"cpu\",\"node\",\"pid\"]}");
	buf_clear(&b);
	CHECK_OK(query_write_label_values(&engine, &r, STR("comm"), QUERY_TEXT, &b, &e), &e);
	CHECK_STR(buf_view(&b), "bash\ncc1\nkworker\npython3\n");
	buf_clear(&b);
	CHECK_OK(query_write_types(&engine, &r, QUERY_TEXT, &b, &e), &e);
	buf_u8(&b, 0);
	CHECK(strstr((const char *)b.data, CPU));
}

/* Hosts that sample at 19 and at 97 Hz: a sample counts by the time that it stands for. */
static int setup_mixed(void **state)
{
	mixed = true;
	return setup(state);
}

static int teardown_mixed(void **state)
{
	mixed = false;
	return teardown(state);
}

static bool cancel(void *ctx)
{
	(void)ctx;
	return true;
}

static void can_be_canceled(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_flame f;
	struct err e = { 0 };
	struct query_request r = request("", 0, BATCHES);
	arena_init(&a, 256 << 20);
	r.cancel = cancel;
	CHECK(query_flame(&engine, &r, &a, &f, &e) == E_CANCELED);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_MAIN(WITH_STORE(all_reports_agree), WITH_STORE(parts_make_the_whole),
	cmocka_unit_test_setup_teardown(all_reports_agree, setup_mixed, teardown_mixed),
	cmocka_unit_test_setup_teardown(parts_make_the_whole, setup_mixed, teardown_mixed),
	WITH_STORE(lists_what_is_there), WITH_STORE(can_be_canceled))
