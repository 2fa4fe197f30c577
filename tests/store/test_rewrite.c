/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Deleting, importing and thinning while each call of the heap and of the operating system fails in
 * turn, and a power cut behind each change of the disk: what was answered holds, what was not is
 * there as a whole or not at all, the rest stays what it was, and asking again does it.
 *
 * sweep.h says how many of the calls are tried.
 */
#include "tests/store/counted.h"
#include "tests/store/faults.h"
#include "tests/store/powercut.h"
#include "tests/store/sweep.h"

enum {
	BATCHES = 7,
	OTHERS = 100,
	OTHER_BATCHES = 3,
	ANSWERED = 500,
	CALLS_TRIED = TEST_TSAN ? 8 : 60
};

#define DAY (24 * 3600 * SEC)

static struct store_thin_rule thin_rule;
static struct buf other; /* an export of the batches OTHERS… */

static struct store *open_store(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_thin_parse(STR("20000d=1h"), &thin_rule, &e), &e);
	c.thin = &thin_rule;
	c.thin_count = 1;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	return s;
}

/* ---- what is done ---- */

/* Batches of comm b: each third. */
static enum status do_delete(struct store *s)
{
	struct fx_query f;
	struct store_deleted d;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, "{comm=\"b\"}", 0, INT64_MAX);
	faults_begin();
	enum status st = store_delete(s, STR(""), q, &d, &e);
	faults_end();
	fx_query_end(&f);
	CHECK(st == OK || e.text[0]);
	return st;
}

static enum status do_import(struct store *s)
{
	struct store_imported done;
	struct err e = { 0 };
	faults_begin();
	enum status st = store_import(s, buf_view(&other), NULL, &done, &e);
	faults_end();
	CHECK(st == OK || e.text[0]);
	return st;
}

static enum status do_thin(struct store *s)
{
	struct err e = { 0 };
	enum status st = OK;
	bool more = true;
	faults_begin();
	while (st == OK && more)
		st = store_thin_step(s, T0 + 30000 * DAY, &more, &e);
	faults_end();
	CHECK(st == OK || e.text[0]);
	lock_take(&s->retain_lock);
	s->rewrite_retry_ns = 0;
	lock_release(&s->retain_lock);
	return st;
}

static const struct deed {
	const char *name;
	enum status (*fn)(struct store *s);
} deeds[] = { { "delete", do_delete }, { "import", do_import }, { "thin", do_thin } };

/* ---- what is there ---- */

static void check_counts(const struct deed *d, struct store *s, bool answered)
{
	uint32_t counts[ANSWERED];
	uint64_t all = counted_read_up_to(s, counts, ARRAY_COUNT(counts)), seen = 0;
	for (uint32_t i = 0; i < BATCHES; i++) {
		bool goes = d->fn == do_delete && i % 3 == 0;
		CHECK_CASE(d, counts[i] == COUNTED_SAMPLES || (goes && counts[i] == 0));
		CHECK_CASE(d, !goes || !answered || counts[i] == 0);
		seen += counts[i];
	}
	for (uint32_t i = OTHERS; i < OTHERS + OTHER_BATCHES; i++) {
		bool comes = d->fn == do_import;
		CHECK_CASE(d, counts[i] == 0 || (comes && counts[i] == COUNTED_SAMPLES));
		CHECK_CASE(d, !comes || !answered || counts[i]);
		CHECK_CASE(d, counts[i] == counts[OTHERS]); /* all of them or none */
		seen += counts[i];
	}
	CHECK_CASE(d, all == seen);
}

static void fill(struct store *s, void (*told)(uint32_t))
{
	struct err e = { 0 };
	for (uint32_t i = 0; i < BATCHES; i++) {
		CHECK_OK(counted_append(s, i, &e), &e);
		if (told)
			told(i);
		if (i == 0 || i == 5) /* the first part, and the memtable, are of comm b alone */
			CHECK_OK(store_flush(s, &e), &e);
	}
}

static void make_other(void)
{
	char dir[64];
	struct fx_query f;
	struct store_view *v;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_store(dir);
	for (uint32_t i = OTHERS; i < OTHERS + OTHER_BATCHES; i++)
		CHECK_OK(counted_append(s, i, &e), &e);
	buf_init(&other, 1 << 20);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_export(v, fx_query(&f, "{}", INT64_MIN, INT64_MAX), &other, &e), &e);
	fx_query_end(&f);
	store_view_close(v);
	store_close(s);
	fixture_clean(dir);
}

/* ---- each call fails ---- */

/* True: a call was struck. */
static bool run(const struct deed *d, struct faults *f)
{
	char dir[64];
	fixture_dir(dir);
	struct store *s = open_store(dir);
	fill(s, NULL);
	faults_arm(f);
	bool answered = d->fn(s) == OK;
	atomic_store(&f->off, true);
	int all = atomic_load(&f->count);
	check_counts(d, s, answered);
	CHECK_CASE(d, metric_get(&s->metrics.quarantined) == 0);
	store_close(s);
	faults_arm(NULL);
	s = open_store(dir);
	check_counts(d, s, answered);
	CHECK_CASE(d, d->fn(s) == OK);
	check_counts(d, s, true);
	CHECK_CASE(d, metric_get(&s->metrics.quarantined) == 0);
	store_close(s);
	fixture_clean(dir);
	f->at = f->at ? f->at : all;
	return all >= f->at;
}

static void each_fails(const struct deed *d, unsigned classes, int error, bool sticky)
{
	struct faults none = { .classes = classes }; /* counts */
	run(d, &none);
	int all = none.at, step = sweep_step(all, CALLS_TRIED), n = 0;
	static uint64_t random;
	random = random ? random : sweep_seed();
	for (int at = 1 + (int)rnd_below(&random, (uint64_t)step); at <= all; at += step, n++) {
		struct faults f = {
			.classes = classes, .at = at, .error = error, .sticky = sticky
		};
		run(d, &f);
	}
	print_message("%s: %d of %d calls\n", d->name, n, all);
	CHECK_CASE(d, all > 3);
}

static void each_call_fails(void **state)
{
	(void)state;
	make_other();
	FOR_EACH_CASE (d, deeds) {
		each_fails(d, FAULT_WRITE, EIO, false);
		each_fails(d, FAULT_WRITE, ENOSPC, true);
		each_fails(d, FAULT_READ, EIO, false);
		each_fails(d, FAULT_MEMORY, 0, false);
	}
	buf_deinit(&other);
}

/* ---- the power fails ---- */

static void cut_behind_each_change(const struct deed *d)
{
	char dir[64];
	uint64_t random = sweep_seed();
	uint8_t *acknowledged = calloc(COUNTED_MAX, 1);
	CHECK(acknowledged != NULL);
	fixture_dir(dir);
	powercut_begin(dir);
	struct store *s = open_store(dir);
	fill(s, powercut_ack);
	size_t from = powercut_changes();
	CHECK_CASE(d, d->fn(s) == OK);
	powercut_ack(ANSWERED);
	size_t to = powercut_changes();
	store_close(s);
	powercut_end();
	fixture_clean(dir);
	for (size_t end = from; end <= to; end += TEST_TSAN ? 4 : 1)
		for (int luck = 0; luck < POWER_LUCKS; luck++) {
			powercut_acknowledged(end, acknowledged, COUNTED_MAX);
			CHECK(mkdir(dir, 0700) == 0);
			powercut_make(dir, end, (enum power_luck)luck, &random);
			s = open_store(dir);
			check_counts(d, s, acknowledged[ANSWERED]);
			CHECK_CASE(d, d->fn(s) == OK);
			check_counts(d, s, true);
			store_close(s);
			fixture_clean(dir);
		}
	print_message("%s: %zu changes\n", d->name, to - from);
	powercut_free();
	free(acknowledged);
}

static void power_fails(void **state)
{
	(void)state;
	make_other();
	FOR_EACH_CASE (d, deeds)
		cut_behind_each_change(d);
	buf_deinit(&other);
}

TEST_MAIN(cmocka_unit_test(each_call_fails), cmocka_unit_test(power_fails))
