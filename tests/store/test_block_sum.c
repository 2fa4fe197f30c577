/* SPDX-License-Identifier: Apache-2.0 */
/* A block summed from its columns as they lie is the same as its rows summed one by one. */
#include "store/merge/merge.h"
#include "tests/store/model.h"

static int encodings[COLUMN_ENCODINGS];

static void check_part(struct part *p)
{
	struct tabs t;
	struct part_rows rows;
	struct err e = { 0 };
	size_t n;
	part_rows_init(&rows);
	CHECK_OK(part_pin(p, PART_LOAD_ALL, UINT64_MAX, &t, &e), &e);
	const struct part_block *b = part_blocks(p, &n);
	CHECK(n > 0);
	int64_t *want = calloc(t.node_count, sizeof(*want));
	int64_t *got = calloc(t.node_count, sizeof(*got));
	uint64_t count = 0, samples = 0;
	CHECK(want && got);
	for (size_t i = 0; i < n; i++) {
		CHECK_OK(part_read_block(p, &t, &b[i], ~0u, &rows, &e), &e);
		for (size_t k = 0; k < rows.count; k++) {
			want[rows.node[k]] += rows.value[k];
			count += (uint64_t)rows.n[k];
		}
		CHECK_OK(part_sum_block(p, &t, &b[i], &rows, got, &samples, &e), &e);
		encodings[b[i].columns[ROW_NODE].encoding]++;
	}
	CHECK(memcmp(want, got, t.node_count * sizeof(*got)) == 0);
	CHECK(count == samples);
	free(want);
	free(got);
	part_unpin(p, PART_LOAD_ALL);
	part_rows_deinit(&rows);
}

/* With merge_lock held. */
static void check(struct store *s)
{
	for (size_t i = 0; i < s->parts.len; i++)
		check_part(s->parts.v[i]);
}

/* Samples of one stack after the other or of all in turn, of one value or of many. */
/* Deep stacks have numbers that lie far apart. */
static void append(struct store *s, int stacks, int values, int each, uint32_t depth)
{
	struct profile p;
	struct err e = { 0 };
	CHECK(profile_init(&p, 64 << 20) == OK);
	uint32_t head = fx_head(&p, "cpu", true, 7), stack;
	for (int i = 0; i < 4000; i++) {
		int which =
			each ? i / each % stacks : (int)(hash_u64((uint64_t)i) % (uint64_t)stacks);
		uint32_t frames[512], n = 1 + (uint32_t)hash_u64((uint64_t)which) % depth;
		for (uint32_t k = 0; k < n; k++)
			frames[n - 1 - k] = fx_frame(&p, "/bin/a", (uint64_t)which * k);
		CHECK(profile_add_stack(&p, frames, n, &stack) == OK);
		fx_sample(&p, T0 + i * (each ? 1 : SEC / 100),
			1 + (int64_t)(i * 31 % values) * values, head, stack, 0, 0);
	}
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ 0 }, &e), &e);
	profile_deinit(&p);
	CHECK_OK(store_flush(s, &e), &e);
}

static void equal_to_rows(void **state)
{
	(void)state;
	char dir[64];
	struct model m = { .random = 21 };
	struct store *s;
	struct err e = { 0 };
	bool merged;
	fixture_dir(dir);
	struct store_config c = fixture_config(dir);
	CHECK_OK(store_open(&c, NULL, NULL, &s, &e), &e);
	/* The store's own thread waits, so that young parts are looked at as well as merged ones.
	 */
	lock_take(&s->merge_lock);
	append(s, 1, 1, 0, 4);
	append(s, 700, 1, 0, 4);
	append(s, 250, 3, 0, 400);
	append(s, 40, 90, 100, 4);
	append(s, 2000, 100000, 0, 4);
	for (int i = 0; i < 3; i++) {
		model_append(&m, s, 400, T0 + i * SEC, 30 * SEC);
		CHECK_OK(store_flush(s, &e), &e);
	}
	check(s);
	lock_release(&s->merge_lock);
	do
		CHECK_OK(store_merge_step(s, T0 + 90000 * SEC, &merged, &e), &e);
	while (merged);
	lock_take(&s->merge_lock);
	check(s);
	lock_release(&s->merge_lock);
	CHECK(encodings[COLUMN_RUNS] > 0 && encodings[COLUMN_DICT] > 0);
	store_close(s);
	VEC_FREE(&m.samples);
	fixture_clean(dir);
}

TEST_MAIN(cmocka_unit_test(equal_to_rows))
