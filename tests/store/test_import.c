/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An import is stored once, or not at all: asked twice, cut, damaged, ended at any operation.
 */
#define FIXTURE_FORKS
#include "store/merge/rewrite.h"
#include "tests/store/countdown.h"
#include "tests/store/model_check.h"

#include <errno.h>
#include <sys/wait.h>

static struct store *open_store(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	return s;
}

static void export_all(struct store *s, struct buf *out)
{
	struct fx_query f;
	struct store_view *v;
	struct err e = { 0 };
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_export(v, fx_query(&f, "{}", INT64_MIN, INT64_MAX), out, &e), &e);
	store_view_close(v);
	fx_query_end(&f);
}

/* An export of `n` samples, and the model of them. */
static void make_export(struct model *m, int n, struct buf *out)
{
	char dir[64];
	fixture_dir(dir);
	struct store *s = open_store(dir);
	buf_init(out, 16 << 20);
	model_append(m, s, n, T0, 60 * SEC);
	export_all(s, out);
	store_close(s);
	fixture_clean(dir);
}

static void merge_all(struct store *s)
{
	struct err e = { 0 };
	bool merged = true;
	while (merged)
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
}

static void twice_is_once(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 4 };
	struct buf b;
	struct store_imported done;
	struct err e = { 0 };
	make_export(&m, 300, &b);
	fixture_dir(dir);
	struct store *s = open_store(dir);
	for (int i = 0; i < 4; i++) {
		CHECK_OK(store_import(s, buf_view(&b), NULL, &done, &e), &e);
		CHECK(done.known == (i > 0) && done.samples == (i ? 0 : m.samples.len));
		model_check(s, &m, INT64_MIN, INT64_MAX);
		if (i == 1)
			merge_all(s); /* the identity goes on */
		if (i == 2) {
			store_close(s);
			s = open_store(dir);
		}
	}
	/* Deleted as a whole, it may come back. */
	struct fx_query f;
	struct store_deleted gone;
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_delete(s, STR(""), q, &gone, &e), &e);
	CHECK(gone.samples == m.samples.len);
	CHECK_OK(store_import(s, buf_view(&b), NULL, &done, &e), &e);
	CHECK(!done.known);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	fx_query_end(&f);
	store_close(s);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static const struct store_import_wish again = { true, INT64_MIN, INT64_MAX };

static void its_own_is_refused(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 4 };
	struct buf b;
	struct store_imported done;
	struct fx_query f;
	struct store_deleted gone;
	struct err e = { 0 };
	buf_init(&b, 16 << 20);
	fixture_dir(dir);
	struct store *s = open_store(dir);
	model_append(&m, s, 100, T0, 60 * SEC);
	export_all(s, &b);
	CHECK(store_import(s, buf_view(&b), NULL, &done, &e) == E_EXISTS);
	CHECK(strstr(e.text, "this very store") != NULL);
	/* To undo a deletion. */
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_delete(s, STR(""), q, &gone, &e), &e);
	CHECK_OK(store_import(s, buf_view(&b), &again, &done, &e), &e);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	fx_query_end(&f);
	store_close(s);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static void damage_is_refused(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 4 };
	struct buf b;
	struct store_imported done;
	struct err e = { 0 };
	make_export(&m, 20, &b);
	fixture_dir(dir);
	struct store *s = open_store(dir);
	for (size_t i = 0; i < b.len; i++) {
		b.data[i] ^= 0x20;
		enum status st = store_import(s, buf_view(&b), NULL, &done, &e);
		b.data[i] ^= 0x20;
		if (st == OK)
			print_error("byte %zu of %zu\n", i, b.len);
		/* The number of the part and what newer versions may set are free. */
		CHECK(st == E_CORRUPT || st == E_UNSUPPORTED);
		CHECK(e.text[0] != 0);
	}
	for (size_t i = 0; i < b.len; i += 7)
		CHECK(store_import(s, str_make(b.data, i), NULL, &done, &e) == E_CORRUPT);
	CHECK(metric_get(&s->metrics.parts) == 0);
	CHECK_OK(store_import(s, buf_view(&b), NULL, &done, &e), &e);
	store_close(s);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static int import_and_exit(const char *dir, const struct buf *b, int at)
{
	int status;
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct store_imported done;
		store_io_hook = (struct store_io_hook){ countdown_exit, NULL };
		struct store *s = open_store(dir);
		atomic_store(&countdown, at);
		enum status st = store_import(s, buf_view(b), NULL, &done, NULL);
		countdown_survive();
		_exit(st == OK ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void exit_at_each_operation(void **state)
{
	(void)state;
	struct model m = { .random = 4 };
	struct buf b;
	struct err e = { 0 };
	int rc = 9, at;
	make_export(&m, 50, &b);
	for (at = 1; rc == 9; at++) {
		char dir[64];
		struct store_imported done;
		fixture_dir(dir);
		rc = import_and_exit(dir, &b, at);
		CHECK(rc == 0 || rc == 9);
		struct store *s = open_store(dir);
		CHECK(metric_get(&s->metrics.parts) == 1 || rc == 9);
		CHECK_OK(store_import(s, buf_view(&b), NULL, &done, &e), &e);
		CHECK(done.known || rc == 9);
		model_check(s, &m, INT64_MIN, INT64_MAX);
		store_close(s);
		fixture_clean(dir);
	}
	print_message("%d operations\n", at - 1);
	CHECK(at > 8);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
}

/* A part that says of its times what is not so. */
static void make_false_resolution(struct buf *out)
{
	static const char *const threads[] = { "c", "b", "a" };
	static const struct str none = { "none", 4 };
	char dir[64], path[128];
	struct profile p;
	struct rewrite w;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_store(dir);
	CHECK(profile_init(&p, 1 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 1);
	for (size_t i = 0; i < ARRAY_COUNT(threads); i++) {
		const char *const own[] = { "thread_id", threads[i], NULL };
		fx_sample(&p, T0 + (int64_t)(i + 1) * SEC, 1, head, 0, 0, fx_labels(&p, own));
	}
	lock_take(&s->merge_lock); /* the merging thread waits */
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	CHECK_OK(store_flush(s, &e), &e);
	struct source src = { .part = s->parts.v[0], .pinned = PART_LOAD_ALL };
	CHECK_OK(part_pin(src.part, PART_LOAD_ALL, UINT64_MAX, &src.tabs, &e), &e);
	CHECK_OK(rewrite_init(&w, s, 1, &e), &e);
	w.sources[0].from = &src;
	w.drop = &none; /* any: so that rows are put in the order of stacks */
	w.drop_count = 1;
	w.meta.store_id = (struct hash128){ 1, 2 };
	w.meta.resolution_ns = 10 * SEC;
	CHECK_OK(rewrite_look(&w, &e), &e);
	struct place *place = fixture_place(dir);
	CHECK_OK(rewrite_write(&w, place, 0x77, &e), &e);
	place_close(place);
	snprintf(path, sizeof(path), "%s/0000000000000077.part", dir);
	buf_init(out, 1 << 20);
	CHECK_OK(os_read_file(path, out, &e), &e);
	rewrite_deinit(&w);
	part_unpin(src.part, PART_LOAD_ALL);
	lock_release(&s->merge_lock);
	profile_deinit(&p);
	store_close(s);
	fixture_clean(dir);
}

static void times_are_looked_at(void **state)
{
	(void)state;
	char dir[64];
	struct buf b;
	struct store_imported done;
	struct store_deleted gone;
	struct fx_query f;
	struct err e = { 0 };
	make_false_resolution(&b);
	fixture_dir(dir);
	struct store *s = open_store(dir);
	CHECK_OK(store_import(s, buf_view(&b), NULL, &done, &e), &e);
	CHECK(done.samples == 3);
	merge_all(s);
	CHECK(metric_get(&s->metrics.parts) == 1);
	struct samples_query *q = fx_query(&f, "{thread_id=\"b\"}", 0, INT64_MAX);
	CHECK_OK(store_delete(s, STR(""), q, &gone, &e), &e);
	CHECK(gone.samples == 1);
	fx_query_end(&f);
	store_close(s);
	buf_deinit(&b);
	fixture_clean(dir);
}

/* A part with one row that stands for `count` samples. */
static void make_count(int64_t count, int64_t value, struct buf *out)
{
	char dir[64], path[128];
	struct model m = { .random = 3 };
	struct canon c;
	struct part_writer *w;
	struct part_meta meta = { .store_id = { 1, 2 } };
	struct err e = { 0 };
	fixture_dir(dir);
	struct store *s = open_store(dir);
	lock_take(&s->merge_lock); /* the merging thread waits */
	model_append(&m, s, 1, T0, SEC);
	CHECK_OK(store_flush(s, &e), &e);
	struct part *p = s->parts.v[0];
	struct tabs t;
	CHECK_OK(part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	CHECK(canon_init(&c, &t) == OK);
	struct place *place = fixture_place(dir);
	CHECK_OK(part_writer_open(place, 0x77, &t, &c, &w, &e), &e);
	for (int i = 0; i < 2; i++) {
		struct row r = { .time_ns = T0 + i, .value = value + i, .count = count };
		CHECK_OK(part_writer_row(w, &r, &e), &e);
	}
	CHECK_OK(part_writer_finish(w, &t, &c, &meta, NULL, 0, &e), &e);
	part_writer_close(w);
	place_close(place);
	snprintf(path, sizeof(path), "%s/0000000000000077.part", dir);
	buf_init(out, 1 << 20);
	CHECK_OK(os_read_file(path, out, &e), &e);
	canon_deinit(&c);
	part_unpin(p, PART_LOAD_ALL);
	lock_release(&s->merge_lock);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

static void rows_stand_for_samples(void **state)
{
	(void)state;
	static const int64_t counts[] = { 1, 0, -1, INT64_MIN };
	char dir[64];
	fixture_dir(dir);
	struct store *s = open_store(dir);
	for (size_t i = 0; i < ARRAY_COUNT(counts); i++) {
		struct buf b;
		struct store_imported done;
		struct err e = { 0 };
		make_count(counts[i], INT64_MIN, &b);
		enum status st = store_import(s, buf_view(&b), NULL, &done, &e);
		CHECK(st == (i ? E_CORRUPT : OK));
		CHECK(i == 0 || strstr(e.text, "stands for") != NULL);
		buf_deinit(&b);
	}
	store_close(s);
	fixture_clean(dir);
}

static atomic_bool is_full;

/* Another time it may fit: that is not the same as too much. */
static void a_full_disk_is_told(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 5 };
	struct buf b;
	struct err e = { 0 };
	struct store_imported done;
	make_export(&m, 50, &b);
	fixture_dir(dir);
	store_io_hook = (struct store_io_hook){ fixture_full_disk, &is_full };
	struct store *s = open_store(dir);
	atomic_store(&is_full, true);
	CHECK(store_import(s, buf_view(&b), NULL, &done, &e) == E_NOSPACE);
	CHECK(strstr(e.text, "No space left") != NULL);
	atomic_store(&is_full, false);
	CHECK_OK(store_import(s, buf_view(&b), NULL, &done, &e), &e);
	CHECK(!done.known);
	model_check(s, &m, INT64_MIN, INT64_MAX);
	store_close(s);
	store_io_hook = (struct store_io_hook){ 0 };
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(a_full_disk_is_told), cmocka_unit_test(rows_stand_for_samples),
	cmocka_unit_test(times_are_looked_at), cmocka_unit_test(twice_is_once),
	cmocka_unit_test(its_own_is_refused), cmocka_unit_test(damage_is_refused),
	cmocka_unit_test(exit_at_each_operation))
