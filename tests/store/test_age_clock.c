/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By which clock samples grow old: single looks, and whole lives of a store on made clocks, which
 * its own thread goes by as well (the linker puts them in the place of base/clock's).
 */
#include "tests/store/counted.h"

#define HOUR (3600 * SEC)
#define DAY (24 * HOUR)
#define MINUTE (60 * SEC)

static atomic_int_fast64_t wall, boot;

int64_t __wrap_clock_realtime_ns(void);
int64_t __wrap_clock_boottime_ns(void);

int64_t __wrap_clock_realtime_ns(void)
{
	return atomic_load(&wall);
}

int64_t __wrap_clock_boottime_ns(void)
{
	return atomic_load(&boot);
}

/* ---- single looks ---- */

/* One after the other; a line tells what happens before the look. */
static const struct {
	const char *name;
	int64_t passes_ns; /* both clocks */
	int64_t set_ns;    /* and the wall clock is set by */
	bool trusted, far;
	int64_t left_ns;
} looks[] = {
	{ "the start", 0, 0, false, false, 10 * MINUTE },
	{ "it goes on", 9 * MINUTE, 0, false, false, 1 * MINUTE },
	{ "set: anew", SEC, -2 * HOUR, false, false, 10 * MINUTE },
	{ "steady", 10 * MINUTE, 0, true, false, 0 },
	{ "slewed", MINUTE, -59 * SEC, true, false, 0 },
	{ "slewed again", MINUTE, -59 * SEC, true, false, 0 },
	{ "asleep", 30 * DAY, 0, true, false, 0 },
	{ "set a little", MINUTE, 61 * SEC, false, false, 10 * MINUTE },
	{ "set by less than half", MINUTE, 7 * DAY - 2 * MINUTE, false, false, 10 * MINUTE },
	{ "set by more", MINUTE, 2 * MINUTE, false, true, HOUR },
	{ "it goes on so", 59 * MINUTE, 0, false, true, MINUTE },
	{ "and is set again", MINUTE, DAY, false, true, HOUR },
	{ "back to what was known", MINUTE, -8 * DAY, false, false, 10 * MINUTE },
	{ "which is trusted", 10 * MINUTE, 0, true, false, 0 },
	{ "years back", MINUTE, -10000 * DAY, false, false, 10 * MINUTE },
	{ "and to the present", MINUTE, 10000 * DAY, false, false, 10 * MINUTE },
	{ "far, and it stays so", MINUTE, 40 * DAY, false, true, HOUR },
	{ "an hour", HOUR, 0, true, false, 0 },
};

static void it_has_to_be_steady(void **state)
{
	(void)state;
	struct age_clock c;
	int64_t w = T0, b = 1000 * SEC;
	age_clock_init(&c, T0 - MINUTE, b - 5 * SEC);
	FOR_EACH_CASE (x, looks) {
		w += x->passes_ns + x->set_ns;
		b += x->passes_ns;
		CHECK_CASE(x, age_clock_look(&c, w, b, 14 * DAY) == (x->trusted ? w : AGE_UNKNOWN));
		CHECK_CASE(x, c.far == x->far);
		CHECK_CASE(x, c.left_ns == x->left_ns);
		CHECK_CASE(x, !x->trusted || c.trusted_ns == w);
	}
}

/* What was known at the start: the wait, and none that overflows. */
static void what_was_known(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t trusted_ns, age_ns;
		bool far;
	} cases[] = {
		{ "nothing", 0, DAY, false },
		{ "yesterday", T0 - DAY, DAY, true },
		{ "this morning", T0 - DAY / 2, DAY, false },
		{ "yesterday, and nothing goes", T0 - DAY, 0, false },
		{ "tomorrow", T0 + DAY, DAY, false },
		{ "the end of time", INT64_MAX, DAY, false },
		{ "its beginning", INT64_MIN, DAY, false },
		{ "soon after", 1, DAY, true },
	};
	FOR_EACH_CASE (x, cases) {
		struct age_clock c;
		age_clock_init(&c, x->trusted_ns, 0);
		CHECK_CASE(x, age_clock_look(&c, T0, 0, x->age_ns) == AGE_UNKNOWN);
		CHECK_CASE(x, c.far == x->far);
		CHECK_CASE(x, c.left_ns == (x->far ? HOUR : 10 * MINUTE));
		CHECK_CASE(x, age_clock_look(&c, T0 + HOUR, HOUR, x->age_ns) == T0 + HOUR);
		CHECK_CASE(x, c.trusted_ns == T0 + HOUR);
	}
}

/* ---- lives of a store ---- */

static struct notices told = { .lock = PTHREAD_MUTEX_INITIALIZER };
static struct store_thin_rule thin;

static struct store *begin(const char *dir, int64_t wall_ns)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	c.retention_ns = 14 * DAY;
	CHECK_OK(store_thin_parse(STR("10d=1h/*"), &thin, &e), &e);
	c.thin = &thin;
	c.thin_count = 1;
	atomic_store(&wall, wall_ns);
	atomic_store(&boot, 50 * SEC); /* each life has a boot of its own */
	pthread_mutex_lock(&told.lock);
	told.all[0] = 0;
	pthread_mutex_unlock(&told.lock);
	CHECK_OK(store_open(&c, fixture_notice, &told, &s, &e), &e);
	return s;
}

static bool was_told(const char *what)
{
	pthread_mutex_lock(&told.lock);
	bool found = strstr(told.all, what) != NULL;
	pthread_mutex_unlock(&told.lock);
	return found;
}

/* For the store's thread at once: it reads both with the lock held. */
static void pass(struct store *s, int64_t ns)
{
	lock_take(&s->lock);
	atomic_fetch_add(&boot, ns);
	atomic_fetch_add(&wall, ns);
	lock_release(&s->lock);
}

static void wake(struct store *s)
{
	lock_take(&s->lock);
	pthread_cond_signal(&s->merge_wake);
	lock_release(&s->lock);
	usleep(1000);
}

/* Until the store's thread has seen its clock in this way. */
static void wake_until_wait(struct store *s, uint64_t from_s, uint64_t to_s)
{
	int64_t deadline = clock_monotonic_ns() + 120 * SEC;
	uint64_t left = metric_get(&s->metrics.age_wait);
	while (!(left >= from_s && left <= to_s) && clock_monotonic_ns() < deadline) {
		wake(s);
		left = metric_get(&s->metrics.age_wait);
	}
	CHECK(left >= from_s && left <= to_s);
}

static void wake_until_told(struct store *s, const char *what)
{
	int64_t deadline = clock_monotonic_ns() + 120 * SEC;
	while (!was_told(what) && clock_monotonic_ns() < deadline)
		wake(s);
	CHECK(was_told(what));
}

/* A second look: what followed the first has been done. */
static void wake_and_wait(struct store *s, uint64_t left_s)
{
	wake_until_wait(s, left_s, left_s);
	pass(s, SEC);
	wake_until_wait(s, left_s - 1, left_s - 1);
}

static void add(struct store *s, int64_t time_ns, int n)
{
	struct profile p;
	struct err e = { 0 };
	char id[16];
	snprintf(id, sizeof(id), "%d", n);
	const char *const labels[] = { "thread_id", id, NULL };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1);
	for (int i = 0; i < COUNTED_SAMPLES; i++)
		fx_sample(&p, time_ns, 1, head, 0, 0, fx_labels(&p, labels));
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	CHECK_OK(store_flush(s, &e), &e);
	profile_deinit(&p);
}

static uint64_t samples_of(struct store *s)
{
	uint32_t *counts = malloc(COUNTED_MAX * sizeof(*counts));
	CHECK(counts != NULL);
	uint64_t n = counted_read(s, counts);
	free(counts);
	return n / COUNTED_SAMPLES;
}

static void untouched(struct store *s, uint64_t batches)
{
	CHECK(metric_get(&s->metrics.expired) == 0 && metric_get(&s->metrics.thinned) == 0);
	CHECK(metric_get(&s->metrics.expired_rows) == 0);
	CHECK(samples_of(s) == batches);
}

/* The clock is 40 days ahead when the store opens, twice, and is set right in the third life. */
static void a_wrong_clock_costs_nothing(void **state)
{
	(void)state;
	char dir[64];
	int64_t now = T0 / HOUR * HOUR;
	fixture_dir(dir);
	struct store *s = begin(dir, now);
	add(s, now - 2 * DAY, 0);
	wake_and_wait(s, 600);
	pass(s, 10 * MINUTE);
	wake_until_wait(s, 0, 0);
	add(s, now + 10 * MINUTE, 1); /* the manifest knows what time it is */
	CHECK(!was_told("the clock"));
	untouched(s, 2);
	store_close(s);

	s = begin(dir, now + 40 * DAY);
	wake_and_wait(s, 3600);
	CHECK(was_told("the clock says") && was_told(" 959 hours more than this store knows of"));
	add(s, now + 40 * DAY + MINUTE, 2); /* samples have the wrong time as well */
	pass(s, 30 * MINUTE);
	wake_and_wait(s, 1799);
	untouched(s, 3);
	store_close(s);

	s = begin(dir, now + 40 * DAY + HOUR);
	wake_and_wait(s, 3600);
	CHECK(was_told(" 960 hours more"));
	atomic_fetch_sub(&wall, 40 * DAY);
	wake_and_wait(s, 600);
	CHECK(was_told("is not far ahead any more"));
	pass(s, 10 * MINUTE);
	wake_until_wait(s, 0, 0);
	pass(s, MINUTE);
	add(s, now + 2 * HOUR, 3);
	untouched(s, 4);
	store_close(s);

	/* It was right to wait: an hour later nobody has said anything else. */
	s = begin(dir, now + 40 * DAY);
	wake_and_wait(s, 3600);
	untouched(s, 4);
	pass(s, HOUR);
	wake_until_wait(s, 0, 0);
	wake_until_told(s, "steady for an hour, samples go by age");
	int64_t deadline = clock_monotonic_ns() + 120 * SEC;
	while (samples_of(s) > 1 && clock_monotonic_ns() < deadline)
		wake(s);
	lock_take(&s->retain_lock); /* what went is counted and told by then */
	lock_release(&s->retain_lock);
	CHECK(samples_of(s) == 1 && metric_get(&s->metrics.expired) > 0); /* one of that time */
	CHECK(metric_get(&s->metrics.expired_rows) > 0 && was_told(".part has expired, with "));
	store_close(s);
	fixture_clean(dir);
}

/* It is set while the store is open. Samples of the far future make no others old. */
static void a_step_begins_the_wait(void **state)
{
	(void)state;
	char dir[64];
	int64_t now = T0 / HOUR * HOUR;
	fixture_dir(dir);
	struct store *s = begin(dir, now);
	add(s, now - 9 * DAY, 0);
	add(s, now + 3000 * DAY, 1);
	wake_and_wait(s, 600);
	pass(s, 10 * MINUTE);
	wake_until_wait(s, 0, 0);
	atomic_fetch_add(&wall, 3 * DAY); /* the first ones are to be thinned, it says */
	wake_and_wait(s, 600);
	untouched(s, 2);
	atomic_fetch_add(&wall, 4 * DAY); /* and now to go */
	wake_and_wait(s, 3600);
	CHECK(was_told(" 168 hours more"));
	untouched(s, 2);
	atomic_fetch_sub(&wall, 4 * DAY);
	wake_and_wait(s, 600);
	pass(s, 10 * MINUTE);
	wake_until_wait(s, 0, 0);
	int64_t deadline = clock_monotonic_ns() + 120 * SEC;
	while (metric_get(&s->metrics.thinned) == 0 && clock_monotonic_ns() < deadline)
		wake(s);
	CHECK(metric_get(&s->metrics.thinned) == 1 && metric_get(&s->metrics.expired) == 0);
	store_close(s);
	CHECK(was_told("is old, and was made coarser"));
	fixture_clean(dir);
}

/* A store of which the manifest says nothing: its newest sample does. */
static void without_a_manifest(void **state)
{
	(void)state;
	char dir[64], path[128];
	int64_t now = T0 / HOUR * HOUR;
	fixture_dir(dir);
	struct store *s = begin(dir, now);
	add(s, now, 0);
	store_close(s);
	snprintf(path, sizeof(path), "%s/MANIFEST", dir);
	for (int i = 0; i < 2; i++) {
		CHECK(i || unlink(path) == 0);
		s = begin(dir, now + 8 * DAY);
		wake_and_wait(s, 3600);
		untouched(s, (uint64_t)i + 1);
		add(s, now + 8 * DAY, i + 1); /* the next life knows that this was not trusted */
		store_close(s);
	}
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(it_has_to_be_steady), cmocka_unit_test(what_was_known),
	cmocka_unit_test(a_wrong_clock_costs_nothing), cmocka_unit_test(a_step_begins_the_wait),
	cmocka_unit_test(without_a_manifest))
