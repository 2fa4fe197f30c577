/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each call of the heap and of the operating system fails in turn, once, in writing, flushing,
 * merging, retention and asking; then all changes of the disk from some point on, as on a full one,
 * until there is room again. Nothing acknowledged is lost or doubled, nothing wrong is answered,
 * nothing sound is set aside, and the store goes on. (test_recover.c does the same to recovery.)
 *
 * The calls are a few thousand: sweep.h says how many of them are tried.
 */
#include "store/disk/io.h"

#include "tests/store/counted.h"
#include "tests/store/faults.h"
#include "tests/store/sweep.h"

enum { STEPS = 9, CALLS_TRIED = 100 };

static bool try_append(struct store *s, uint32_t i, uint8_t *acknowledged)
{
	struct err e = { 0 };
	struct profile p;
	counted_profile(&p, i);
	faults_begin();
	enum status st = store_append(s, STR(""), &p, counted_id(i), &e);
	faults_end();
	profile_deinit(&p);
	if (st == OK)
		acknowledged[i] = 1;
	else if (st != E_UNAVAILABLE || e.status != st || !e.text[0])
		print_error("batch %u: %s: %s\n", i, status_name(st), e.text);
	CHECK(st == OK || (st == E_UNAVAILABLE && e.status == st && e.text[0]));
	return st == OK;
}

/* A question is answered right, or not at all. */
static void try_sum(struct store *s, uint32_t acknowledged, uint32_t tried)
{
	struct fx_query f;
	struct store_view *v = NULL;
	struct samples_tree t;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, COUNTED_TYPE, 0, INT64_MAX);
	faults_begin();
	enum status st = store_view_open(s, STR(""), &v, &e);
	if (st == OK)
		st = store_sum_stacks(v, q, &t, &e);
	faults_end();
	if (st == OK) {
		CHECK(t.sample_count >= (uint64_t)acknowledged * COUNTED_SAMPLES);
		CHECK(t.sample_count <= (uint64_t)tried * COUNTED_SAMPLES);
		CHECK(t.total == (int64_t)t.sample_count);
		samples_tree_deinit(&t);
	} else if (st != E_NOMEM && st != E_IO && st != E_LIMIT && st != E_UNAVAILABLE) {
		print_error("a question: %s: %s\n", status_name(st), e.text);
		CHECK(false);
	}
	store_view_close(v);
	fx_query_end(&f);
}

static uint32_t count(const uint8_t *acknowledged)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < 1000; i++)
		n += acknowledged[i];
	return n;
}

static void script(struct store *s, uint32_t from, uint8_t *acknowledged)
{
	struct err e;
	bool merged = true;
	uint32_t before = count(acknowledged), tried = 0;
	for (uint32_t i = from; i < from + STEPS; i++) {
		try_append(s, i, acknowledged);
		tried++;
		faults_begin();
		if (i % 3 == 2)
			(void)!store_flush(s, &e);
		faults_end();
		if (i % 4 == 3)
			try_sum(s, count(acknowledged), before + tried + STEPS);
	}
	faults_begin();
	for (int i = 0; i < 3 && merged; i++)
		if (store_merge_step(s, T0 + 90000 * SEC, &merged, &e) != OK)
			break;
	faults_end();
	try_sum(s, count(acknowledged), before + tried + STEPS);
}

/* Parts that are old go; a failure leaves them, whole. */
static void expire(struct store *s)
{
	faults_begin();
	s->config.retention_ns = 1000000 * SEC;
	store_retain(s, T0 + 4000000 * SEC);
	faults_end();
}

static void check_store(const char *dir, const uint8_t *acknowledged)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	counted_check(s, acknowledged);
	CHECK(metric_get(&s->metrics.quarantined) == 0);
	store_close(s);
}

/* All that is in parts goes, or is there whole. */
static void check_expiry(const char *dir, struct faults *f)
{
	struct store *s;
	struct err e = { 0 };
	uint8_t *nothing = calloc(COUNTED_MAX, 1);
	CHECK(nothing != NULL);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	faults_arm(f);
	expire(s);
	counted_check(s, nothing);
	atomic_store(&f->off, true);
	expire(s);
	CHECK(s->parts.len == 0);
	store_close(s);
	faults_arm(NULL);
	check_store(dir, nothing);
	free(nothing);
}

/* False when the run had fewer calls than `f->at`. */
static bool run(struct faults *f, uint8_t *acknowledged)
{
	char dir[64];
	struct store *s = NULL;
	struct err e = { 0 };
	fixture_dir(dir);
	memset(acknowledged, 0, COUNTED_MAX);
	struct store_config c = fixture_config(dir);
	faults_arm(f);
	faults_begin();
	enum status st = store_open(&c, NULL, NULL, &s, &e);
	faults_end();
	if (st == OK) {
		script(s, 0, acknowledged);
		atomic_store(&f->off, true); /* all is well again */
		counted_check(s, acknowledged);
		CHECK(metric_get(&s->metrics.quarantined) == 0);
		CHECK(try_append(s, 100, acknowledged));
		CHECK_OK(store_flush(s, &e), &e);
		script(s, 200, acknowledged);
		counted_check(s, acknowledged);
		CHECK(acknowledged[200 + STEPS - 1]);
		atomic_store(&f->off, false);
		faults_begin();
		store_close(s);
		faults_end();
	}
	bool reached = atomic_load(&f->count) >= f->at;
	faults_arm(NULL);
	check_store(dir, acknowledged);
	check_store(dir, acknowledged);
	struct faults again = { .classes = f->classes, .at = f->at % 50 + 1, .error = f->error };
	check_expiry(dir, &again);
	fixture_clean(dir);
	return reached;
}

static int calls_of(unsigned classes, uint8_t *acknowledged)
{
	struct faults f = { .classes = classes, .at = INT_MAX };
	CHECK(!run(&f, acknowledged));
	return atomic_load(&f.count);
}

/* Each call, or every so many of them from a random one on. */
static void each_fails_once(unsigned classes, int error, int calls_min)
{
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	int all = calls_of(classes, acknowledged), tried = 0;
	int step = sweep_step(all, CALLS_TRIED);
	uint64_t random = sweep_seed();
	int at = 1 + (int)rnd_below(&random, (uint64_t)step);
	struct faults f;
	do {
		f = (struct faults){ .classes = classes, .at = at, .error = error };
		at += step;
		tried++;
	} while (run(&f, acknowledged));
	print_message("%d calls, %d of them failed\n", all, tried - 1);
	CHECK(all > calls_min);
	free(acknowledged);
}

static void each_change_of_the_disk_fails_once(void **state)
{
	(void)state;
	each_fails_once(FAULT_WRITE, EIO, 100);
}

static void each_read_fails_once(void **state)
{
	(void)state;
	each_fails_once(FAULT_READ, EIO, 100);
}

/* Not the second time either: the part is set aside, and the rest is answered. */
static void a_part_that_cannot_be_read_is_set_aside(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	struct faults f = { .classes = FAULT_READ, .at = 1, .sticky = true, .error = EIO };
	uint8_t acknowledged[8] = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(try_append(s, 1, acknowledged));
	store_close(s); /* writes the part; whoever opens it reads it anew */
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fixture_stop_merging(s); /* nobody puts another part in its place, or sets it aside first */
	CHECK(s->parts.len == 1 && try_append(s, 2, acknowledged));
	faults_arm(&f);
	try_sum(s, 1, 1); /* of the two batches the one in memory */
	faults_arm(NULL);
	CHECK(s->parts.len == 0 && metric_get(&s->metrics.quarantined) == 1);
	try_sum(s, 1, 1);
	store_close(s);
	fixture_clean(dir);
}

static void each_allocation_fails_once(void **state)
{
	(void)state;
	each_fails_once(FAULT_MEMORY, 0, 1000);
}

static void disk_fills_up(void **state)
{
	(void)state;
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	for (int at = 5; at < 150; at += 7) {
		struct faults f = {
			.classes = FAULT_WRITE, .at = at, .sticky = true, .error = ENOSPC
		};
		CHECK(run(&f, acknowledged) || at > 100);
	}
	free(acknowledged);
}

static void memory_runs_out(void **state)
{
	(void)state;
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	int all = calls_of(FAULT_MEMORY, acknowledged);
	for (int i = 1; i < 30; i += 2) {
		struct faults f = { .classes = FAULT_MEMORY, .at = all * i / 60, .sticky = true };
		(void)run(&f, acknowledged);
	}
	free(acknowledged);
}

static void full_disk_is_a_clear_error(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	struct faults f = {
		.classes = FAULT_WRITE, .at = 1, .sticky = true, .error = ENOSPC, .off = true
	};
	uint8_t acknowledged[8] = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	faults_arm(&f);
	CHECK(try_append(s, 1, acknowledged));
	atomic_store(&f.off, false);
	faults_begin();
	CHECK(counted_append(s, 2, &e) == E_UNAVAILABLE);
	faults_end();
	CHECK(strstr(err_text(&e, E_UNAVAILABLE), "No space left") != NULL);
	CHECK(metric_get(&s->metrics.refused_disk) == 1);
	atomic_store(&f.off, true);
	CHECK(try_append(s, 2, acknowledged));
	store_close(s);
	faults_arm(NULL);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(each_change_of_the_disk_fails_once),
	cmocka_unit_test(each_read_fails_once),
	cmocka_unit_test(a_part_that_cannot_be_read_is_set_aside),
	cmocka_unit_test(each_allocation_fails_once), cmocka_unit_test(disk_fills_up),
	cmocka_unit_test(memory_runs_out), cmocka_unit_test(full_disk_is_a_clear_error))
