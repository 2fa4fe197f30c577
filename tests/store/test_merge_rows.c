/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that a foreign part has in another order than it says are refused, and nothing is stored;
 * the rows of several sources come out as one part, equal ones summed; who asks may stop it.
 */
#include "store/merge/merge_rows.h"
#include "tests/store/model_check.h"

static struct store *open_store(const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	fixture_stop_merging(s);
	return s;
}

/* The part's rows in a file of their own, the last of them first where `turned`. */
static void copy_part(const char *dir, struct part *from, bool turned, struct buf *out)
{
	struct tabs t;
	struct part_rows r;
	struct canon c;
	struct part_writer *w;
	struct err e = { 0 };
	char path[128];
	struct part_meta meta = { .order = part_meta(from)->order, .store_id = { 1, 2 } };
	VEC(struct row) rows = { 0 };
	size_t n;
	part_rows_init(&r);
	CHECK_OK(part_pin(from, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	CHECK(canon_init(&c, &t) == OK);
	const struct part_block *b = part_blocks(from, &n);
	for (size_t i = 0; i < n; i++) {
		CHECK_OK(part_read_block(from, &t, &b[i], ~0u, &r, &e), &e);
		for (size_t k = 0; k < r.count; k++) {
			struct row row = { r.time_ns[k], r.value[k], r.n[k], r.series[k], r.node[k],
				r.set[k] };
			CHECK(VEC_PUSH(&rows, row));
		}
	}
	CHECK(rows.len > 10);
	struct place *place = fixture_place(dir);
	CHECK_OK(part_writer_open(place, 1, &t, &c, &w, &e), &e);
	for (size_t i = 0; i < rows.len; i++)
		CHECK_OK(part_writer_row(w, &rows.v[turned ? rows.len - 1 - i : i], &e), &e);
	CHECK_OK(part_writer_finish(w, &t, &c, &meta, NULL, 0, &e), &e);
	part_writer_close(w);
	place_close(place);
	snprintf(path, sizeof(path), "%s/0000000000000001.part", dir);
	buf_init(out, 16 << 20);
	CHECK_OK(os_read_file(path, out, &e), &e);
	CHECK(unlink(path) == 0);
	canon_deinit(&c);
	part_unpin(from, PART_LOAD_ALL);
	part_rows_deinit(&r);
	VEC_FREE(&rows);
}

static void order_is_checked(void **state)
{
	(void)state;
	for (int turned = 0; turned < 2; turned++) {
		char dir[64], other[64];
		struct model m = { .random = 6 };
		struct store_imported done;
		struct buf b;
		struct err e = { 0 };
		fixture_dir(dir);
		fixture_dir(other);
		struct store *s = open_store(dir), *to = open_store(other);
		model_append(&m, s, 200, T0, 60 * SEC);
		CHECK_OK(store_flush(s, &e), &e);
		copy_part(dir, s->parts.v[0], turned, &b);
		enum status st = store_import(to, buf_view(&b), NULL, &done, &e);
		CHECK(st == (turned ? E_UNSUPPORTED : OK));
		CHECK(!turned || strstr(e.text, "its rows are not in the order of META"));
		CHECK(to->parts.len == !turned);
		store_close(s);
		store_close(to);
		buf_deinit(&b);
		VEC_FREE(&m.samples);
		fixture_clean(dir);
		fixture_clean(other);
	}
}

/* The same samples twice, in a part and in memory, and others behind them. */
static void equal_rows_are_summed(void **state)
{
	(void)state;
	char dir[64], other[64];
	struct model m = { .random = 6 }, again = { .random = 6, .next_batch = 1000 };
	struct store_imported done;
	struct buf b;
	struct fx_query f;
	struct store_view *v;
	struct err e = { 0 };
	fixture_dir(dir);
	fixture_dir(other);
	buf_init(&b, 16 << 20);
	struct store *s = open_store(dir), *to = open_store(other);
	model_append(&m, s, 300, T0, 60 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	model_append(&again, s, 300, T0, 60 * SEC);
	for (size_t i = 0; i < again.samples.len; i++)
		CHECK(VEC_PUSH(&m.samples, again.samples.v[i]));
	model_append(&m, s, 50, T0 + 7200 * SEC, 60 * SEC);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_export(v, fx_query(&f, "{}", INT64_MIN, INT64_MAX), &b, &e), &e);
	store_view_close(v);
	fx_query_end(&f);
	CHECK_OK(store_import(to, buf_view(&b), NULL, &done, &e), &e);
	CHECK(done.samples == 650 && done.rows <= 350);
	model_check(to, &m, INT64_MIN, INT64_MAX);
	store_close(s);
	store_close(to);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	VEC_FREE(&again.samples);
	fixture_clean(dir);
	fixture_clean(other);
}

static bool is_gone(void *ctx)
{
	return --*(int *)ctx < 0;
}

static void it_may_be_stopped(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 6 };
	struct buf b;
	struct fx_query f;
	struct store_view *v;
	struct err e = { 0 };
	int left = 0;
	fixture_dir(dir);
	buf_init(&b, 64 << 20);
	struct store *s = open_store(dir);
	model_append(&m, s, 500, T0, 60 * SEC);
	CHECK_OK(store_flush(s, &e), &e);
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	q->cancel = is_gone;
	q->cancel_ctx = &left;
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK(store_export(v, q, &b, &e) == E_CANCELED && b.len == 0);
	store_view_close(v);
	fx_query_end(&f);
	store_close(s);
	buf_deinit(&b);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(order_is_checked), cmocka_unit_test(equal_rows_are_summed),
	cmocka_unit_test(it_may_be_stopped))
