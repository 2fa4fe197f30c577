/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that pass, and their sums, are the same from columns as they lie as from rows one by one. */
#include "store/part/block_keep.h"

#include "store/merge/merge.h"
#include "tests/store/model.h"

enum { FILTERS = 24 };

static int time_encodings[COLUMN_ENCODINGS], node_encodings[COLUMN_ENCODINGS];
static int some_kept, none_kept, all_kept;

struct expected {
	struct part_kept kept;
	uint64_t samples;
};

static bool passes(const struct part_filter *f, const struct part_rows *r, size_t i)
{
	return (!f->series || f->series[r->series[i]]) && (!f->sets || f->sets[r->set[i]]) &&
	       (!f->times || (r->time_ns[i] >= f->from_ns && r->time_ns[i] < f->to_ns));
}

static struct expected slowly(
	const struct part_filter *f, const struct part_rows *r, int64_t *sums, uint8_t *keep)
{
	struct expected x = { { 0, INT64_MAX, INT64_MIN }, 0 };
	for (size_t i = 0; i < r->count; i++) {
		keep[i] = passes(f, r, i);
		if (!keep[i])
			continue;
		x.kept.rows++;
		x.kept.first_ns = MIN(x.kept.first_ns, r->time_ns[i]);
		x.kept.last_ns = MAX(x.kept.last_ns, r->time_ns[i]);
		x.samples += (uint64_t)r->n[i];
		sums[r->node[i]] += r->value[i];
	}
	return x;
}

/* Ranges that begin and end on times of rows, beside them, and outside of the block. */
static int64_t draw_time(uint64_t *random, const struct part_block *b)
{
	int64_t span = b->time_max - b->time_min + 1;
	switch (rnd_below(random, 8)) {
	case 0:
		return INT64_MIN;
	case 1:
		return INT64_MAX;
	case 2:
		return b->time_min + (int64_t)rnd_below(random, 3) - 1;
	case 3:
		return b->time_max + (int64_t)rnd_below(random, 3) - 1;
	default:
		return b->time_min + (int64_t)rnd_below(random, (uint64_t)span);
	}
}

static void check_filter(struct part *p, const struct tabs *t, const struct part_block *b,
	const struct part_rows *rows, const struct part_filter *f)
{
	struct part_rows scratch;
	struct part_kept kept, again;
	struct err e = { 0 };
	int64_t *want = calloc(t->node_count, sizeof(*want));
	int64_t *got = calloc(t->node_count, sizeof(*got));
	uint8_t *keep = calloc(rows->count, 1);
	uint64_t samples = 0;
	CHECK(want && got && keep);
	part_rows_init(&scratch);
	struct expected x = slowly(f, rows, want, keep);
	CHECK_OK(part_keep_rows(p, t, b, f, &scratch, &kept, &e), &e);
	CHECK(kept.rows == x.kept.rows);
	CHECK(memcmp(keep, scratch.keep, rows->count) == 0 || kept.rows == 0);
	if (f->times && kept.rows) {
		CHECK(kept.first_ns == x.kept.first_ns);
		CHECK(kept.last_ns == x.kept.last_ns);
	}
	CHECK_OK(part_sum_kept(p, t, b, f, &scratch, got, &samples, &again, &e), &e);
	CHECK(samples == x.samples);
	CHECK(memcmp(want, got, t->node_count * sizeof(*got)) == 0);
	none_kept += kept.rows == 0;
	all_kept += kept.rows == rows->count;
	some_kept += kept.rows != 0 && kept.rows != rows->count;
	part_rows_deinit(&scratch);
	free(want);
	free(got);
	free(keep);
}

static void check_block(
	struct part *p, const struct tabs *t, const struct part_block *b, uint64_t *random)
{
	struct part_rows rows;
	struct err e = { 0 };
	uint8_t *series = calloc(t->series_count, 1), *sets = calloc(t->set_count, 1);
	CHECK(series && sets);
	part_rows_init(&rows);
	CHECK_OK(part_read_block(p, t, b, ~0u, &rows, &e), &e);
	for (int i = 0; i < FILTERS; i++) {
		uint64_t one_in = 1 + rnd_below(random, 4);
		for (uint32_t k = 0; k < t->series_count; k++)
			series[k] = rnd_below(random, one_in) == 0;
		for (uint32_t k = 0; k < t->set_count; k++)
			sets[k] = rnd_below(random, one_in) == 0;
		struct part_filter f = { .series = i & 1 ? series : NULL,
			.sets = i & 2 ? sets : NULL,
			.times = i & 4,
			.from_ns = draw_time(random, b),
			.to_ns = draw_time(random, b) };
		check_filter(p, t, b, &rows, &f);
	}
	time_encodings[b->columns[ROW_TIME].encoding]++;
	node_encodings[b->columns[ROW_NODE].encoding]++;
	part_rows_deinit(&rows);
	free(series);
	free(sets);
}

static void check(struct store *s, uint64_t *random)
{
	for (size_t i = 0; i < s->parts.len; i++) {
		struct part *p = s->parts.v[i];
		struct tabs t;
		struct err e = { 0 };
		size_t n;
		CHECK_OK(part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
		const struct part_block *b = part_blocks(p, &n);
		for (size_t k = 0; k < n; k++)
			check_block(p, &t, &b[k], random);
		part_unpin(p, PART_LOAD_ALL);
	}
}

/* Samples of a timer of 19 Hz on some CPUs, of `stacks` stacks in no order. Those of deep stacks
 * have numbers that lie far apart. Each has a value from `least` to `most`. */
static void append_ticks(struct store *s, int stacks, uint32_t depth, int64_t least, int64_t most)
{
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 64 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 52631578), stack;
	for (int i = 0; i < 6000; i++) {
		uint64_t which = hash_u64((uint64_t)i) % (uint64_t)stacks;
		uint32_t frames[512], n = 1 + (uint32_t)hash_u64(which) % depth;
		for (uint32_t k = 0; k < n; k++)
			frames[n - 1 - k] = fx_frame(&p, "/bin/a", which * k);
		CHECK(profile_add_stack(&p, frames, n, &stack) == OK);
		fx_sample(&p, T0 + i / 4 * 52631578LL + i % 4 * 7000000,
			least + i * 7 % (most - least + 1), head, stack, 0, 0);
	}
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
	CHECK_OK(store_flush(s, &e), &e);
}

static void equal_to_rows(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 5 };
	struct store *s;
	struct err e = { 0 };
	uint64_t random = 77;
	bool merged;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	lock_take(&s->merge_lock);
	append_ticks(s, 1, 1, 1, 1);
	append_ticks(s, 900, 4, 1, 1);
	append_ticks(s, 250, 400, 1, 1);
	append_ticks(s, 250, 4, -3, 90); /* as of the difference of two profiles */
	for (int i = 0; i < 4; i++) {
		model_append(&m, s, 3000, T0 + i * 700 * SEC, 2000 * SEC);
		CHECK_OK(store_flush(s, &e), &e);
	}
	check(s, &random);
	lock_release(&s->merge_lock);
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
	lock_take(&s->merge_lock);
	check(s, &random);
	lock_release(&s->merge_lock);
	CHECK(time_encodings[COLUMN_TICKS] && time_encodings[COLUMN_DELTA]);
	CHECK(node_encodings[COLUMN_RUNS] && node_encodings[COLUMN_DICT]);
	CHECK(none_kept && some_kept && all_kept);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(equal_to_rows))
