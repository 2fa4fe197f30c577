/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples of many hours come out of merging, thinning and exporting in slices of an hour, whatever
 * order their parts were in, and none is lost.
 */
#include "store/merge/merge_cursor.h"
#include "tests/store/model_check.h"

#define HOUR (3600 * SEC)

/* Each row behind the one before it: slice, series, then as META says. */
static void check_order(struct part *p)
{
	const struct part_meta *m = part_meta(p);
	struct tabs t;
	struct part_rows r;
	struct err e = { 0 };
	struct merge_key last = { 0 };
	size_t n;
	uint64_t rows = 0;
	part_rows_init(&r);
	CHECK_OK(part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	const struct part_block *b = part_blocks(p, &n);
	for (size_t i = 0; i < n; i++) {
		CHECK_OK(part_read_block(p, &t, &b[i], ~0u, &r, &e), &e);
		for (size_t k = 0; k < r.count; k++) {
			struct row row = { r.time_ns[k], r.value[k], r.n[k], r.series[k], r.node[k],
				r.set[k] };
			struct part_slice s = part_slice_of(row.time_ns);
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
	lock_take(&s->merge_lock); /* the merging thread waits */
	CHECK(s->parts.len > 0);
	for (size_t i = 0; i < s->parts.len; i++)
		check_order(s->parts.v[i]);
	lock_release(&s->merge_lock);
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
			x->time_ns = part_round_time(
				x->time_ns, resolution_ns, part_slice_of(x->time_ns));
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
	c.resolution_ns = unit;
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
	char dir[64];
	struct model m = { .random = 23 };
	struct store *s;
	struct err e = { 0 };
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	lock_take(&s->merge_lock); /* the merging thread waits */
	model_append(&m, s, 3000, T0, 2 * HOUR);
	CHECK_OK(store_flush(s, &e), &e);
	struct part *fine = s->parts.v[0];
	check_pieces(fine, PART_ORDER_STACK, 10 * SEC);
	check_pieces(fine, PART_ORDER_STACK, HOUR); /* nearly all are equal */
	check_pieces(fine, PART_ORDER_TIME, 0);
	lock_release(&s->merge_lock);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(hours_lie_together), cmocka_unit_test(series_come_in_pieces))
