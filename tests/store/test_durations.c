/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long profiles took: the same from memory, from parts, merged, thinned, exported and after a
 * restart; not known as soon as samples are among them that do not say it.
 */
#include "tests/store/fixture.h"

#define MINUTE (60 * SEC)
#define TYPE "cpu:samples:count:cpu:nanoseconds:delta"

static uint64_t query_bytes; /* of memory; 0: as the store has it */

static struct store *open_store(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fixture_stop_merging(s);
	return s;
}

/* A profile of `n` samples of one series; `own_ns`: later than it began. */
static void append(struct store *s, const char *comm, const char *pid, int64_t time_ns,
	int64_t duration_ns, int n, int64_t own_ns)
{
	static uint64_t batch;
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", duration_ns > 0, 1000);
	p.heads.v[head].time_ns = time_ns;
	p.heads.v[head].duration_ns = duration_ns;
	for (int i = 0; i < n; i++) {
		char address[16];
		snprintf(address, sizeof(address), "%d", i % 3);
		const char *pairs[] = { "comm", comm, NULL };
		const char *own[] = { "pid", pid, "cpu", address, NULL };
		uint32_t stack, frame = fx_frame(&p, "/bin/a", (uint64_t)i % 5);
		CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
		fx_sample(&p, time_ns + own_ns, 1, head, stack, fx_labels(&p, pairs),
			fx_labels(&p, own));
	}
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ ++batch, 9 }, &e), &e);
	profile_deinit(&p);
}

/* What a tree of all that is picked says, and cells and the tree agree. */
static int64_t tree_covered(struct store *s, const char *selector, int64_t from, int64_t to)
{
	struct fx_query f;
	struct store_view *v;
	struct samples_tree t;
	struct samples_cells c;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, selector, from, to);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	CHECK(t.covered_ns == 0); /* nobody asked */
	samples_tree_deinit(&t);
	q->durations = true;
	q->memory_bytes = query_bytes;
	CHECK_OK(store_sum_stacks(v, q, &t, &e), &e);
	CHECK_OK(store_sum_cells(v, q, NULL, 0, &c, &e), &e);
	CHECK(c.tree.covered_ns == t.covered_ns);
	int64_t covered = t.covered_ns;
	samples_cells_deinit(&c);
	samples_tree_deinit(&t);
	store_view_close(v);
	fx_query_end(&f);
	return covered;
}

/* The same of each point of the series with comm=`comm`, as text: "0:20 60:10", in seconds. */
static void check_points(struct store *s, const char *comm, int64_t step, const char *want)
{
	static const struct str by[] = { { "comm", 4 } };
	struct fx_query f;
	struct store_view *v;
	struct samples_series *series;
	struct buf text;
	size_t n;
	struct err e = { 0 };
	buf_init(&text, 4096);
	struct samples_query *q = fx_query(&f, "{__name__=\"" TYPE "\"}", INT64_MIN, INT64_MAX);
	q->durations = true;
	q->memory_bytes = query_bytes;
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_sum_series(v, q, by, 1, step, &f.arena, &series, &n, NULL, NULL, &e), &e);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0;
			str_eq(series[i].values[0], str_of(comm)) && k < series[i].point_count;
			k++) {
			const struct samples_point *p = &series[i].points[k];
			buf_printf(&text, "%s%lld:%g", text.len ? " " : "",
				(long long)((p->time_ns - T0 / step * step) / SEC),
				(double)p->covered_ns / SEC);
		}
	CHECK_STR(buf_view(&text), want);
	buf_deinit(&text);
	store_view_close(v);
	fx_query_end(&f);
}

static void merge_all(struct store *s)
{
	struct err e = { 0 };
	bool merged = true;
	lock_take(&s->merge_lock);
	s->merge_retry_ns = 0;
	lock_release(&s->merge_lock);
	while (merged)
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	fixture_stop_merging(s);
}

/* "a" is scraped for 10 s each 30 s by two jobs that overlap, "b" for all of a minute, "c" has one
 * profile whose samples have times of their own, "d" says nothing of its second profile. */
static void fill(struct store *s, bool flush)
{
	struct err e = { 0 };
	for (int i = 0; i < 4; i++) {
		append(s, "a", "1", T0 + i * 30 * SEC + 200, 10 * SEC, 7, 0);
		append(s, "a", "2", T0 + i * 30 * SEC + 5 * SEC + 200, 10 * SEC, 3, 0);
		if (i % 2 == 0)
			append(s, "b", "1", T0 + i * 30 * SEC, 60 * SEC, 10, 0);
		if (flush)
			CHECK_OK(store_flush(s, &e), &e);
	}
	append(s, "c", "1", T0, 10 * SEC, 5, 0);
	append(s, "c", "1", T0, 10 * SEC, 5, 3 * SEC);
	append(s, "d", "1", T0 + 1 * SEC, 20 * SEC, 5, 0);
	if (flush)
		CHECK_OK(store_flush(s, &e), &e);
	append(s, "d", "1", T0 + 61 * SEC, 1, 5, 500); /* its samples lie past its time */
}

static void check(struct store *s)
{
	check_points(s, "a", MINUTE, "0:30 60:30");
	check_points(s, "b", MINUTE, "0:60 60:60");
	check_points(s, "c", MINUTE, "0:0");
	check_points(s, "d", MINUTE, "0:20 60:0");
	check_points(s, "a", 1000 * SEC, "0:60");
	CHECK(tree_covered(s, TYPE "{comm=\"a\"}", INT64_MIN, INT64_MAX) == 60 * SEC);
	CHECK(tree_covered(s, TYPE "{comm=~\"a|b\"}", INT64_MIN, INT64_MAX) == 120 * SEC);
	CHECK(tree_covered(s, TYPE "{comm=\"b\"}", T0 - 1, T0 + SEC) == 60 * SEC);
	CHECK(tree_covered(s, TYPE "{comm=\"d\"}", T0, T0 + 60 * SEC) == 20 * SEC);
	CHECK(tree_covered(s, TYPE "{comm=~\"a|c\"}", INT64_MIN, INT64_MAX) == 0);
	CHECK(tree_covered(s, TYPE "{comm=\"d\"}", INT64_MIN, INT64_MAX) == 0);
	/* Samples of one process: not all of the profiles. */
	CHECK(tree_covered(s, TYPE "{comm=\"b\",cpu=\"1\"}", INT64_MIN, INT64_MAX) == 0);
}

static void wherever_they_lie(void **state)
{
	(void)state;
	char dir[64];
	struct err e = { 0 };
	for (int flush = 0; flush < 2; flush++) {
		fixture_dir(dir);
		struct store *s = open_store(dir);
		fill(s, flush);
		check(s);
		store_close(s); /* without a flush: the log has it */
		s = open_store(dir);
		check(s);
		CHECK_OK(store_flush(s, &e), &e);
		check(s);
		merge_all(s);
		CHECK(s->parts.len == 1);
		check(s);
		struct err bad = { 0 };
		CHECK_OK(part_verify(s->parts.v[0], &bad), &bad);
		store_close(s);
		fixture_clean(dir);
	}
}

/* The reader that was written from the documents prints them. */
static void another_reader_finds_them(void **state)
{
	(void)state;
	char dir[64], command[512];
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_store(dir);
	append(s, "a", "1", T0 + 200, 10 * SEC, 7, 0);
	append(s, "a", "2", T0 + 200, 12 * SEC, 3, 0);
	append(s, "c", "1", T0, 10 * SEC, 5, 3 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	snprintf(command, sizeof(command),
		"test \"$(/usr/bin/python3 %s/part_reader.py --profiles %s/parts/*.part)\" = "
		"'|" TYPE "|1000|comm=a|%lld|12000000000|10'",
		FIRN_TESTS_DIR, dir, (long long)T0 + 200);
	CHECK(system(command) == 0); // NOLINT
	store_close(s);
	fixture_clean(dir);
}

static void deleted_and_exported(void **state)
{
	(void)state;
	char dir[2][64];
	struct buf b;
	struct fx_query f;
	struct store_view *v;
	struct store_deleted gone;
	struct store_imported done;
	struct err e = { 0 };
	buf_init(&b, 16 << 20);
	fixture_dir(dir[0]);
	fixture_dir(dir[1]);
	struct store *s = open_store(dir[0]), *other = open_store(dir[1]);
	fill(s, true); /* and some in memory */
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_export(v, fx_query(&f, "{}", INT64_MIN, INT64_MAX), &b, &e), &e);
	store_view_close(v);
	fx_query_end(&f);
	CHECK_OK(store_import(other, buf_view(&b), NULL, &done, &e), &e);
	check(other);
	/* The second minute goes, and of "b" the samples of one CPU. */
	CHECK_OK(store_delete(s, STR(""), fx_query(&f, "{}", T0 + 40 * SEC, INT64_MAX), &gone, &e),
		&e);
	fx_query_end(&f);
	check_points(s, "a", 1000 * SEC, "0:30");
	CHECK(tree_covered(s, TYPE "{comm=\"d\"}", INT64_MIN, INT64_MAX) == 20 * SEC);
	/* A profile of which no sample is left makes no point. */
	append(s, "b", "7", T0 + 120 * SEC, 10 * SEC, 3, 0);
	append(s, "b", "8", T0 + 180 * SEC, 10 * SEC, 3, 0);
	CHECK_OK(store_delete(
			 s, STR(""), fx_query(&f, "{pid=\"7\"}", INT64_MIN, INT64_MAX), &gone, &e),
		&e);
	fx_query_end(&f);
	check_points(s, "b", MINUTE, "0:60 180:10");
	CHECK_OK(store_delete(s, STR(""),
			 fx_query(&f, "{comm=\"b\",cpu=\"1\"}", INT64_MIN, INT64_MAX), &gone, &e),
		&e);
	fx_query_end(&f);
	CHECK(gone.samples > 0);
	check_points(s, "b", MINUTE, "0:0 180:0");
	store_close(s);
	store_close(other);
	buf_deinit(&b);
	fixture_clean(dir[0]);
	fixture_clean(dir[1]);
}

/* Coarse times: one entry each, the time that was covered is the same. */
static void thinned(void **state)
{
	(void)state;
	char dir[64], command[256];
	struct store_thin_rule rule;
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_thin_parse(STR("1d=5m/*"), &rule, &e), &e);
	c.thin = &rule;
	c.thin_count = 1;
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fixture_stop_merging(s);
	fill(s, true);
	CHECK_OK(store_flush(s, &e), &e);
	for (bool more = true; more;)
		CHECK_OK(store_thin_step(s, T0 + 10 * 86400 * SEC, &more, &e), &e);
	check_points(s, "a", 300 * SEC, "0:60");
	check_points(s, "b", 300 * SEC, "0:120");
	check_points(s, "c", 300 * SEC, "0:0");
	merge_all(s);
	check_points(s, "a", 300 * SEC, "0:60");
	snprintf(command, sizeof(command),
		"test $(/usr/bin/python3 %s/part_reader.py --profiles %s/parts/*.part | grep -c "
		"comm=a) = 1",
		FIRN_TESTS_DIR, dir);
	CHECK(system(command) == 0); // NOLINT
	store_close(s);
	fixture_clean(dir);
}

#define MANY 20000

/* One sample each, all of one minute. */
static void append_many(struct store *s)
{
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 8 << 20) == OK);
	const char *pairs[] = { "comm", "m", NULL };
	uint32_t stack, frame = fx_frame(&p, "/bin/a", 1), labels = fx_labels(&p, pairs);
	CHECK(profile_add_stack(&p, &frame, 1, &stack) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1000);
	struct profile_head h = p.heads.v[head];
	for (int i = 0; i < MANY; i++) {
		h.time_ns = T0 + i;
		h.duration_ns = SEC;
		CHECK(profile_add_head(&p, &h, &head) == OK);
		fx_sample(&p, h.time_ns, 1, head, stack, labels, 0);
	}
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 1, 10 }, &e), &e);
	profile_deinit(&p);
}

/* Where profiles take more memory than a query has, it is answered without. */
static void more_than_fit(void **state)
{
	(void)state;
	char dir[] = "/tmp/firn-durations-XXXXXX";
	CHECK(mkdtemp(dir));
	struct err e = { 0 };
	struct store *s = open_store(dir);
	append_many(s);
	for (int in_part = 0; in_part < 2; in_part++) {
		query_bytes = 512 << 10;
		check_points(s, "m", MINUTE, "0:0");
		CHECK(tree_covered(s, "{comm=\"m\"}", INT64_MIN, INT64_MAX) == 0);
		query_bytes = 0;
		check_points(s, "m", MINUTE, "0:1.00002");
		CHECK(tree_covered(s, "{comm=\"m\"}", INT64_MIN, INT64_MAX) == SEC + MANY - 1);
		CHECK_OK(store_flush(s, &e), &e);
	}
	store_close(s);
	fixture_clean(dir);
}

/* Numbers of an import may be any: sums of them stay what a reader takes. */
static void too_many_samples(void **state)
{
	(void)state;
	struct tab_profile v[] = { { 1, T0, SEC, INT64_MAX }, { 1, T0, 2 * SEC, 7 },
		{ 1, T0 + 1, SEC, 7 } };
	CHECK(tab_profiles_settle(v, 3) == 2);
	CHECK(v[0].samples == INT64_MAX && v[0].duration_ns == 2 * SEC && v[1].samples == 7);
}

TEST_MAIN(cmocka_unit_test(more_than_fit), cmocka_unit_test(too_many_samples),
	cmocka_unit_test(wherever_they_lie), cmocka_unit_test(another_reader_finds_them),
	cmocka_unit_test(deleted_and_exported), cmocka_unit_test(thinned))
