/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention by age and by size, of all and by rules for tenants and types: what goes, what stays,
 * and what an exit at any operation leaves.
 */
#define FIXTURE_FORKS
#include "base/clock.h"
#include "tests/store/countdown.h"
#include "tests/store/counted.h"
#include "tests/store/forker.h"
#include "tests/store/model_check.h"
#include "tests/store/sweep.h"

#include <sys/wait.h>

#define DAY (24 * 3600 * SEC)

static void append_at(struct store *s, int64_t t, int i)
{
	struct profile p;
	struct err e = { 0 };
	char id[16];
	snprintf(id, sizeof(id), "%d", i);
	const char *const labels[] = { "thread_id", id, NULL };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1);
	for (int k = 0; k < COUNTED_SAMPLES; k++)
		fx_sample(&p, t, 1, head, 0, 0, fx_labels(&p, labels));
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
}

static void at_time(struct store *s, int64_t t, int i)
{
	struct err e = { 0 };
	append_at(s, t, i);
	CHECK_OK(store_flush(s, &e), &e);
}

static uint64_t samples_left(struct store *s)
{
	uint32_t *counts = malloc(COUNTED_MAX * sizeof(*counts));
	CHECK(counts != NULL);
	uint64_t n = counted_read(s, counts);
	free(counts);
	return n;
}

static void old_parts_go(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	c.retention_ns = 24 * 3600 * SEC;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	int64_t now = clock_realtime_ns();
	at_time(s, now - 3600 * SEC, 1);
	at_time(s, now, 2);
	store_retain(s, now);
	store_retain(s, AGE_UNKNOWN);
	CHECK(samples_left(s) == 2 * COUNTED_SAMPLES);
	store_retain(s, now + 24 * 3600 * SEC - 1800 * SEC);
	CHECK(samples_left(s) == COUNTED_SAMPLES);
	store_retain(s, now + 48 * 3600 * SEC);
	CHECK(samples_left(s) == 0);
	store_close(s);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	CHECK(samples_left(s) == 0);
	store_close(s);
	fixture_clean(dir);
}

/* Samples that come days late lie in a part with new ones. */
static void late_samples_go(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	c.retention_ns = 3 * DAY;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	int64_t now = clock_realtime_ns();
	append_at(s, now - 9 * DAY, 0);
	append_at(s, now - 3 * DAY - 3600 * SEC, 1); /* too old, by less than a part spans */
	append_at(s, now - 2 * DAY, 2);
	append_at(s, now, 3);
	CHECK_OK(store_flush(s, &e), &e);
	uint32_t *counts = malloc(COUNTED_MAX * sizeof(*counts));
	CHECK(counts != NULL);
	for (int i = 0; i < 2; i++) {
		store_retain(s, now);
		CHECK(counted_read(s, counts) == 2 * COUNTED_SAMPLES);
		CHECK(counts[0] == 0 && counts[1] == 0 && counts[2] && counts[3]);
		CHECK(metric_get(&s->metrics.expired_rows) == 2);
	}
	store_retain(s, now + 3600 * SEC); /* nothing is a day too old yet */
	CHECK(metric_get(&s->metrics.expired_rows) == 2);
	store_retain(s, now + 2 * DAY + 3600 * SEC);
	CHECK(counted_read(s, counts) == COUNTED_SAMPLES && counts[3]);
	free(counts);
	store_close(s);
	fixture_clean(dir);
}

static void too_much_goes_oldest_first(void **state)
{
	(void)state;
	char dir[64];
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int i = 0; i < 4; i++)
		at_time(s, T0 + i * 7 * 24 * 3600 * SEC, i); /* windows that do not merge */
	bool merged = true;
	while (merged)
		CHECK_OK(store_merge_step(s, clock_realtime_ns(), &merged, &e), &e);
	lock_take(&s->retain_lock); /* the store's own thread looks at limits under it */
	lock_take(&s->merge_lock);
	CHECK(s->parts.len == 4);
	uint64_t one = part_file_bytes(s->parts.v[0]);
	s->config.retention_bytes = 5 * one; /* half of it for the log, which is larger */
	lock_release(&s->merge_lock);
	lock_release(&s->retain_lock);
	store_retain(s, AGE_UNKNOWN); /* sizes do not wait for the clock */
	uint32_t *counts = malloc(COUNTED_MAX * sizeof(*counts));
	CHECK(counts != NULL);
	CHECK(counted_read(s, counts) == 2 * COUNTED_SAMPLES);
	CHECK(counts[0] == 0 && counts[1] == 0 && counts[2] && counts[3]);
	free(counts);
	store_close(s);
	fixture_clean(dir);
}

/* ---- rules ---- */

static struct store *open_with(
	const char *dir, const struct store_retention_rule *rules, size_t count)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	c.retention_ns = 10 * DAY;
	c.rules = rules;
	c.rule_count = count;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	return s;
}

static void make_rules(struct store_retention_rule *out, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct err e = { 0 };
		CHECK_OK(store_retention_parse(str_of(texts[i]), &out[i], &e), &e);
	}
}

static void model_drop_type(struct model *m, int type)
{
	size_t kept = 0;
	for (size_t i = 0; i < m->samples.len; i++)
		if (m->samples.v[i].type != type)
			m->samples.v[kept++] = m->samples.v[i];
	m->samples.len = kept;
}

/* "wall" three days, "inuse" for ever, "cpu" as all: ten. */
static const char *const by_type[] = { "type=\"wall:*\"=3d", "type=\"inuse:*\"=0s" };

static void each_type_has_its_time(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 8 };
	struct store_retention_rule rules[2];
	struct err e = { 0 };
	make_rules(rules, by_type, 2);
	fixture_dir(dir);
	struct store *s = open_with(dir, rules, 2);
	lock_take(&s->merge_lock); /* the merging thread waits */
	int64_t now = clock_realtime_ns() / (60 * SEC) * (60 * SEC);
	model_append(&m, s, 300, now - 60 * SEC, 60 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	lock_release(&s->merge_lock);
	store_retain(s, now + 2 * DAY);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	store_retain(s, now + 4 * DAY);
	model_drop_type(&m, 1);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	uint64_t rows = metric_get(&s->metrics.expired_rows);
	CHECK(rows > 0);
	store_retain(s, now + 5 * DAY); /* nothing more to do */
	CHECK(metric_get(&s->metrics.expired_rows) == rows);
	store_retain(s, now + 11 * DAY);
	model_drop_type(&m, 0);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	store_close(s);
	s = open_with(dir, rules, 2);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	store_retain(s, now + 1000 * DAY);
	model_check(s, &m, INT64_MIN, INT64_MAX); /* gauges stay for ever */
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static void tenants_and_sizes(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 8 };
	struct store_retention_rule rules[2];
	struct err e = { 0 };
	static const char *const texts[] = { "tenant=\"b*\"=0s/1B", "type=\"cpu:*\"=0s" };
	make_rules(rules, texts, 2);
	fixture_dir(dir);
	struct store *s = open_with(dir, rules, 2);
	int64_t now = clock_realtime_ns() / (60 * SEC) * (60 * SEC);
	lock_take(&s->merge_lock);
	for (int i = 0; i < 3; i++) {
		struct profile p;
		struct model other = { .random = 99 };
		model_append(&m, s, 50, now - 60 * SEC, 60 * SEC);
		model_batch(&other, &p, 50, now - 60 * SEC, 60 * SEC);
		CHECK_OK(store_append(s, STR("bb"), &p, (struct hash128){ 0 }, &e), &e);
		CHECK_OK(store_flush(s, &e), &e);
		profile_deinit(&p);
		VEC_FREE(&other.samples);
	}
	lock_release(&s->merge_lock);
	store_retain(s, AGE_UNKNOWN); /* sizes do not wait for the clock */
	model_check(s, &m, INT64_MIN, INT64_MAX);
	lock_take(&s->merge_lock);
	for (size_t i = 0; i < s->parts.len; i++) {
		struct tabs t;
		CHECK_OK(part_pin(s->parts.v[i], PART_LOAD_LABELS, UINT64_MAX, &t, &e), &e);
		for (uint32_t k = 0; k < t.label_string_count; k++)
			CHECK(!str_eq(t.label_strings[k], STR("bb"))); /* not even the name */
		part_unpin(s->parts.v[i], PART_LOAD_LABELS);
	}
	lock_release(&s->merge_lock);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

/* ---- an exit at each operation ---- */

static struct store_retention_rule exit_rules[2];

static void retain_and_exit(struct forked *child)
{
	store_io_hook = (struct store_io_hook){ countdown_exit, NULL };
	struct store *s = open_with(child->dir, exit_rules, 2);
	atomic_store(&countdown, child->at);
	store_retain(s, child->now_ns);
	countdown_survive();
	_exit(0);
}

static void exit_at_each_operation(void **state)
{
	(void)state;
	struct err e = { 0 };
	int rc = 9, at;
	struct forker f;
	make_rules(exit_rules, by_type, 2);
	forker_start(&f, retain_and_exit);
	char *dir = f.child->dir;
	for (at = 1; rc == 9; at += sweep_each()) {
		struct model m = { .random = 8 };
		fixture_dir(dir);
		struct store *s = open_with(dir, exit_rules, 2);
		int64_t now = clock_realtime_ns() / (60 * SEC) * (60 * SEC);
		for (int i = 0; i < 2; i++) {
			model_append(&m, s, 60, now - 60 * SEC, 60 * SEC);
			CHECK_OK(store_flush(s, &e), &e);
		}
		store_close(s);
		f.child->now_ns = now + 4 * DAY;
		rc = forker_run(&f, at);
		CHECK(rc == 0 || rc == 9);
		s = open_with(dir, exit_rules, 2);
		store_retain(s, now + 4 * DAY); /* the next life does the rest */
		model_drop_type(&m, 1);
		model_check(s, &m, INT64_MIN, INT64_MAX);
		store_close(s);
		VEC_FREE(&m.samples);
		fixture_clean(dir);
	}
	print_message("%d operations\n", at - 1);
	CHECK(at > 10);
	forker_stop(&f);
}

/* ---- the directory ---- */

static void write_zeros(const char *path, size_t len)
{
	uint8_t *zeros = calloc(len, 1);
	struct err e = { 0 };
	CHECK(zeros != NULL);
	CHECK_OK(os_replace_file(path, zeros, len, 0600, &e), &e);
	free(zeros);
}

static void the_quarantine_is_bounded(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct store *s;
	struct stat st;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	c.retention_bytes = 1 << 20;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	for (int i = 0; i < 4; i++) {
		struct timespec times[2] = { { .tv_sec = 1000 + i }, { .tv_sec = 1000 + i } };
		snprintf(path, sizeof(path), "%s/quarantine/%d.part", dir, i);
		write_zeros(path, 24 << 20);
		CHECK(utimensat(AT_FDCWD, path, times, 0) == 0);
	}
	store_retain(s, T0);
	for (int i = 0; i < 4; i++) { /* 64 MiB hold two of them */
		snprintf(path, sizeof(path), "%s/quarantine/%d.part", dir, i);
		CHECK((stat(path, &st) == 0) == (i >= 2));
	}
	CHECK(metric_get(&s->metrics.other_bytes) >= 48 << 20);
	/* An export that did not end, and one that may be under way. */
	int64_t now = clock_realtime_ns();
	snprintf(path, sizeof(path), "%s/export", dir);
	CHECK(mkdir(path, 0700) == 0);
	snprintf(path, sizeof(path), "%s/export/1.part", dir);
	write_zeros(path, 100);
	store_retain(s, now);
	CHECK(stat(path, &st) == 0);
	store_retain(s, now + 3700 * SEC);
	CHECK(stat(path, &st) < 0);
	store_close(s);
	fixture_clean(dir);
}

/* The process is small as long as it starts a forker. */
TEST_MAIN(cmocka_unit_test(exit_at_each_operation), cmocka_unit_test(old_parts_go),
	cmocka_unit_test(late_samples_go), cmocka_unit_test(too_much_goes_oldest_first),
	cmocka_unit_test(each_type_has_its_time), cmocka_unit_test(tenants_and_sizes),
	cmocka_unit_test(the_quarantine_is_bounded))
