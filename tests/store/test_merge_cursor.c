/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of many hours come out of merging, thinning and exporting in slices of an hour, whatever
 * slices and order their parts were in, and none is lost.
 */
#include "store/merge/merge_cursor.h"
#include "tests/store/model_check.h"

#define HOUR (3600 * SEC)

/* Each row behind the one before it: slice, series, then as META says. */
static void check_order(struct part *p, bool sliced)
{
	const struct part_meta *m = part_meta(p);
	struct tabs t;
	struct part_rows r;
	struct err e = { 0 };
	struct merge_key last = { 0 };
	size_t n;
	uint64_t rows = 0;
	part_rows_init(&r);
	CHECK(m->slice_ns == (sliced ? PART_SLICE_NS : 0));
	CHECK_OK(part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	const struct part_block *b = part_blocks(p, &n);
	for (size_t i = 0; i < n; i++) {
		CHECK_OK(part_read_block(p, &t, &b[i], ~0u, &r, &e), &e);
		for (size_t k = 0; k < r.count; k++) {
			struct row row = { r.time_ns[k], r.value[k], r.n[k], r.series[k], r.node[k],
				r.set[k] };
			struct part_slice s = part_slice_of(row.time_ns, m->slice_ns);
			struct merge_key key = merge_key_of(&row, m->order, s.first_ns);
			CHECK(rows++ == 0 || merge_key_compare(&last, &key) < 0);
			last = key;
		}
	}
	part_unpin(p, PART_LOAD_ALL);
	part_rows_deinit(&r);
	CHECK_OK(part_verify(p, &e), &e);
}

static void check_parts(struct store *s)
{
	pthread_mutex_lock(&s->merge_lock); /* the merging thread waits */
	CHECK(s->parts.len > 0);
	for (size_t i = 0; i < s->parts.len; i++)
		check_order(s->parts.v[i], true);
	pthread_mutex_unlock(&s->merge_lock);
}

static void merge_all(struct store *s)
{
	struct err e = { 0 };
	bool merged;
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
}

static void round_model(struct model *m, int64_t resolution_ns)
{
	for (size_t i = 0; i < m->samples.len; i++) {
		struct model_sample *x = &m->samples.v[i];
		if (model_types[x->type].delta)
			x->time_ns = part_round_time(x->time_ns, resolution_ns,
				part_slice_of(x->time_ns, PART_SLICE_NS));
	}
}

static void check_all(struct store *s, const struct model *m)
{
	model_check(s, m, INT64_MIN, INT64_MAX);
	model_check(s, m, T0 + HOUR + 777 * SEC, T0 + 4 * HOUR + 111 * SEC);
}

/* Resolutions that divide an hour, that do not, and that are longer. */
static void hours_lie_together(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t resolution_ns;
	} cases[] = { { "10 s", 10 * SEC }, { "7 s", 7 * SEC }, { "2 h", 2 * HOUR },
		{ "1 us", 1000 } };
	FOR_EACH_CASE (c, cases) {
		char dir[64];
		struct model m = { .random = 5 };
		struct store *s;
		struct err e = { 0 };
		fixture_dir(dir);
		struct store_config config = fixture_config(dir);
		config.resolution_ns = c->resolution_ns;
		CHECK_OK(store_open(&config, NULL, NULL, &s, &e), &e);
		for (int i = 0; i < 5; i++) {
			model_append(&m, s, 400, T0 + i * HOUR / 2, 5 * HOUR);
			CHECK_OK(store_flush(s, &e), &e);
		}
		check_parts(s);
		merge_all(s);
		check_parts(s);
		/* Half of it once more, into what is merged. */
		model_append(&m, s, 600, T0 + 2 * HOUR, 6 * HOUR);
		CHECK_OK(store_flush(s, &e), &e);
		merge_all(s);
		check_parts(s);
		round_model(&m, c->resolution_ns);
		check_all(s, &m);
		store_close(s);
		VEC_FREE(&m.samples);
		fixture_clean(dir);
	}
}

static int by_old_order(const void *a, const void *b)
{
	return merge_row_compare(a, b);
}

/* Sets in another order than today's, as older versions had. */
static void turn_sets(struct canon *c)
{
	uint32_t n = c->sets.count;
	for (uint32_t i = 1; i < n; i++)
		c->sets.to[i] = n - c->sets.to[i];
	for (uint32_t i = 1; i < n; i++)
		c->sets.order[c->sets.to[i]] = i;
}

/* A part as it was written before there were slices: one of these samples, from the file. */
static void write_old(const char *dir, struct part *from)
{
	struct tabs t;
	struct part_rows r;
	struct err e = { 0 };
	struct canon c;
	struct part_writer *w;
	struct part_meta meta = { .order = PART_ORDER_STACK, .level = 1, .store_id = { 1, 2 } };
	VEC(struct row) rows = { 0 };
	size_t n;
	part_rows_init(&r);
	CHECK_OK(part_pin(from, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	CHECK(canon_init(&c, &t) == OK);
	CHECK(c.sets.count > 2);
	turn_sets(&c);
	const struct part_block *b = part_blocks(from, &n);
	for (size_t i = 0; i < n; i++) {
		CHECK_OK(part_read_block(from, &t, &b[i], ~0u, &r, &e), &e);
		for (size_t k = 0; k < r.count; k++) {
			struct row row = { r.time_ns[k], r.value[k], r.n[k], r.series[k], r.node[k],
				c.sets.to[r.set[k]] };
			CHECK(VEC_PUSH(&rows, row));
		}
	}
	CHECK(rows.len > 0);
	qsort(rows.v, rows.len, sizeof(*rows.v), by_old_order);
	struct place *place = fixture_place(dir);
	CHECK_OK(part_writer_open(place, 1, &t, &c, &w, &e), &e);
	for (size_t i = 0; i < rows.len; i++)
		CHECK_OK(part_writer_row(w, &rows.v[i], &e), &e);
	CHECK_OK(part_writer_finish(w, &t, &c, &meta, NULL, 0, &e), &e);
	part_writer_close(w);
	place_close(place);
	canon_deinit(&c);
	part_unpin(from, PART_LOAD_ALL);
	part_rows_deinit(&r);
	VEC_FREE(&rows);
}

static void import_old(struct store *s, const char *dir)
{
	char path[128];
	struct err e = { 0 };
	struct store_imported done;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 64 << 20);
	snprintf(path, sizeof(path), "%s/0000000000000001.part", dir);
	CHECK_OK(os_read_file(path, &b, &e), &e);
	CHECK_OK(store_import(s, buf_view(&b), NULL, &done, &e), &e);
	CHECK(done.rows > 0);
}

static void export_all(struct store *s, struct buf *out)
{
	struct fx_query f;
	struct store_view *v;
	struct err e = { 0 };
	struct samples_query *q = fx_query(&f, "{}", INT64_MIN, INT64_MAX);
	CHECK_OK(store_view_open(s, STR(""), &v, &e), &e);
	CHECK_OK(store_export(v, q, out, &e), &e);
	fx_query_end(&f);
	store_view_close(v);
}

/* An old part in a directory of its own: 700 samples of seven hours. */
static void make_old(struct model *m, const char *dir)
{
	struct store *s;
	struct err e = { 0 };
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	pthread_mutex_lock(&s->merge_lock);
	model_append(m, s, 700, T0, 7 * HOUR);
	CHECK_OK(store_flush(s, &e), &e);
	write_old(dir, s->parts.v[0]);
	pthread_mutex_unlock(&s->merge_lock);
	store_close(s);
}

/* Parts without slices are read, exported and merged with others; the merging thread may be first,
 * which changes no time where all are kept. */
static void old_parts_are_taken(void **state)
{
	(void)state;
	static const int64_t resolutions_ns[] = { 1, 10 * SEC };
	for (size_t i = 0; i < ARRAY_COUNT(resolutions_ns); i++) {
		char dir[64], old[64], third[64];
		struct model m = { .random = 11 };
		struct store *s;
		struct err e = { 0 };
		struct store_imported done;
		CLEANUP(buf_deinit) struct buf exported;
		buf_init(&exported, 64 << 20);
		fixture_dir(dir);
		fixture_dir(old);
		fixture_dir(third);
		make_old(&m, old);
		struct store_config c = fixture_config(dir);
		c.resolution_ns = resolutions_ns[i];
		CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
		import_old(s, old);
		model_append(&m, s, 500, T0 + HOUR, 3 * HOUR);
		CHECK_OK(store_flush(s, &e), &e);
		model_append(&m, s, 100, T0 + 5 * HOUR, 3 * HOUR); /* stays in memory */
		export_all(s, &exported);
		CHECK_OK(store_flush(s, &e), &e);
		merge_all(s);
		check_parts(s);
		round_model(&m, c.resolution_ns);
		check_all(s, &m);
		store_close(s);
		c = fixture_config(third);
		c.resolution_ns = resolutions_ns[i];
		CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
		CHECK_OK(store_import(s, buf_view(&exported), NULL, &done, &e), &e);
		CHECK(done.samples == m.samples.len);
		merge_all(s);
		check_parts(s);
		if (i == 0)
			check_all(s, &m);
		store_close(s);
		VEC_FREE(&m.samples);
		fixture_clean(dir);
		fixture_clean(old);
		fixture_clean(third);
	}
}

static uint32_t *identity(uint32_t n)
{
	uint32_t *v = calloc(MAX(n, 1u), sizeof(*v));
	CHECK(v != NULL);
	for (uint32_t i = 0; i < n; i++)
		v[i] = i;
	return v;
}

struct folded {
	VEC(struct row) rows; /* ascending, equal ones summed */
	uint32_t cuts;
};

/* All rows of a part by a cursor that sorts, at most `most` of a series at a time. */
static void walk(
	struct part *p, enum part_order order, int64_t unit, size_t most, struct folded *out)
{
	struct merge_cursor c = { .part = part_ref(p), .order = order, .pending_max = most };
	struct err e = { 0 };
	struct merge_key last = { 0 };
	part_rows_init(&c.rows);
	CHECK_OK(part_pin(p, PART_LOAD_ALL, UINT64_MAX, &c.tabs, &e), &e);
	c.pinned = PART_LOAD_ALL;
	c.blocks = part_blocks(p, &c.block_count);
	c.series = identity(c.tabs.series_count);
	c.nodes = identity(c.tabs.node_count);
	c.sets = identity(c.tabs.set_count);
	uint8_t *delta = calloc(c.tabs.series_count, 1), *keep = calloc(c.tabs.set_count, 1);
	CHECK(delta && keep);
	for (uint32_t i = 0; i < c.tabs.series_count; i++)
		delta[i] = c.tabs.series[i].delta != 0;
	c.delta = delta;
	c.keep_time = keep;
	c.slice_ns = PART_SLICE_NS;
	c.resolution_ns = unit;
	c.passes = part_meta(p)->slice_ns != c.slice_ns;
	merge_cursor_begin(&c);
	for (;;) {
		CHECK_OK(merge_cursor_next(&c, &e), &e);
		if (c.done)
			break;
		CHECK(most == 0 || c.pending.len <= most);
		out->cuts += c.cut;
		int order_of = out->rows.len ? merge_key_compare(&last, &c.key) : -1;
		CHECK(order_of <= 0);
		if (order_of < 0) {
			CHECK(VEC_PUSH(&out->rows, c.head));
		} else {
			out->rows.v[out->rows.len - 1].value += c.head.value;
			out->rows.v[out->rows.len - 1].count += c.head.count;
		}
		last = c.key;
	}
	free(delta);
	free(keep);
	merge_cursor_deinit(&c);
}

static void check_pieces(struct part *p, enum part_order order, int64_t unit)
{
	static const size_t most[] = { 4, 7, 16, 100000 };
	struct folded whole = { 0 };
	uint64_t samples = 0;
	walk(p, order, unit, 0, &whole);
	for (size_t i = 0; i < whole.rows.len; i++)
		samples += (uint64_t)whole.rows.v[i].count;
	CHECK(samples == part_meta(p)->samples && whole.cuts == 0);
	for (size_t i = 0; i < ARRAY_COUNT(most); i++) {
		struct folded pieces = { 0 };
		walk(p, order, unit, most[i], &pieces);
		CHECK((pieces.cuts > 0) == (most[i] < 100000));
		CHECK(pieces.rows.len == whole.rows.len);
		for (size_t k = 0; k < whole.rows.len; k++) {
			const struct row *a = &whole.rows.v[k], *b = &pieces.rows.v[k];
			CHECK(a->time_ns == b->time_ns && a->value == b->value &&
				a->count == b->count && a->series == b->series &&
				a->node == b->node && a->set == b->set);
		}
		VEC_FREE(&pieces.rows);
	}
	VEC_FREE(&whole.rows);
}

/* A series that does not fit is sorted in pieces, and nothing of it is lost or counted twice. */
static void series_come_in_pieces(void **state)
{
	(void)state;
	char dir[64], path[128];
	struct model m = { .random = 23 };
	struct store *s;
	struct part *old;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	pthread_mutex_lock(&s->merge_lock); /* the merging thread waits */
	model_append(&m, s, 3000, T0, 2 * HOUR);
	CHECK_OK(store_flush(s, &e), &e);
	struct part *fine = s->parts.v[0];
	write_old(dir, fine); /* has no slices */
	snprintf(path, sizeof(path), "%s/0000000000000001.part", dir);
	CHECK_OK(part_open(path, &old, &e), &e);
	check_pieces(fine, PART_ORDER_STACK, 10 * SEC);
	check_pieces(fine, PART_ORDER_STACK, HOUR); /* nearly all are equal */
	check_pieces(fine, PART_ORDER_TIME, 0);
	check_pieces(old, PART_ORDER_STACK, 10 * SEC);
	check_pieces(old, PART_ORDER_TIME, 0);
	part_unref(old);
	pthread_mutex_unlock(&s->merge_lock);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(hours_lie_together), cmocka_unit_test(old_parts_are_taken),
	cmocka_unit_test(series_come_in_pieces))
