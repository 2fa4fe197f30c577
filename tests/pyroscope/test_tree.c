/* SPDX-License-Identifier: Apache-2.0 */
/* Trees are read again as POST /ingest reads them: the same stacks and values. */
#include "test.h"

#include "base/arena.h"
#include "pyroscope/stacks.h"
#include "say.h"

/* root { b 1 { c 2 }, a 0 { c 4, d 8 }, b 16 }, the two of b being one. */
static const uint32_t parents[] = { 0, 0, 1, 0, 3, 3, 0 };
static const uint32_t names[] = { 0, 1, 2, 0, 2, 3, 1 };
static const int64_t selves[] = { 0, 1, 2, 0, 4, 8, 16 };
static const struct str strings[] = { { "a", 1 }, { "b", 1 }, { "c", 1 }, { "d", 1 } };
static const struct pyroscope_side side = { 7, parents, names, strings, selves };

static void writes_trees(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t nodes;
		struct str want;
	} cases[] = {
		{ "all", 0, STR("\0\0\2\1a\0\2\1c\4\0\1d\10\0\1b\21\1\1c\2\0") },
		{ "four", 4, STR("\0\0\2\1a\0\2\1d\10\0\5other\4\0\1b\21\1\5other\2\0") },
		{ "one", 1, STR("\0\0\1\5other\37\0") },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		CLEANUP(arena_deinit) struct arena a;
		struct pyroscope_flame f;
		struct err e;
		buf_init(&b, 4096);
		arena_init(&a, 1 << 20);
		CHECK_OK(pyroscope_flame_make(&side, NULL, c->nodes, &a, &f, &e), &e);
		CHECK_OK(pyroscope_tree_write(&f, &a, &b, &e), &e);
		CHECK_CASE(c, str_eq(buf_view(&b), c->want));
		struct profile p;
		struct text_body body = { .format = TEXT_TREE, .bytes = buf_view(&b), .rate = 1 };
		struct str app = STR("x.alloc_space");
		int64_t sum = 0;
		CHECK_OK(text_type_of(&app, &body.type, &e), &e);
		CHECK_OK(profile_init(&p, 1 << 20), &e);
		CHECK_OK(text_decode(&body, &p, &e), &e);
		for (size_t i = 0; i < p.samples.len; i++)
			sum += p.samples.v[i].value;
		CHECK_CASE(c, sum == 31);
		profile_deinit(&p);
	}
}

/* Values that are too large to be added give figures that say nothing, and no more harm. */
static void wraps(void **state)
{
	(void)state;
	static const int64_t large[] = { 0, INT64_MAX, INT64_MAX, 1, INT64_MAX, INT64_MIN,
		INT64_MAX };
	const struct pyroscope_side wrong = { 7, parents, names, strings, large };
	for (int64_t nodes = 0; nodes < 7; nodes++) {
		CLEANUP(buf_deinit) struct buf b;
		CLEANUP(arena_deinit) struct arena a;
		struct pyroscope_flame f;
		struct err e;
		buf_init(&b, 4096);
		arena_init(&a, 1 << 20);
		CHECK_OK(pyroscope_flame_make(&wrong, NULL, nodes, &a, &f, &e), &e);
		CHECK_OK(pyroscope_tree_write(&f, &a, &b, &e), &e);
		CHECK_OK(pyroscope_flame_make(&wrong, &wrong, nodes, &a, &f, &e), &e);
	}
}

/* Nodes without a value have no width, and are still their parent's. */
static void keeps_nodes_without_width(void **state)
{
	(void)state;
	static const int64_t few[] = { 0, 0, 0, 0, 0, 0, 31 };
	const struct pyroscope_side side_of_one = { 7, parents, names, strings, few };
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(arena_deinit) struct arena a;
	struct pyroscope_flame f;
	struct err e;
	buf_init(&b, 4096);
	arena_init(&a, 1 << 20);
	CHECK_OK(pyroscope_flame_make(&side_of_one, NULL, 0, &a, &f, &e), &e);
	CHECK_OK(pyroscope_tree_write(&f, &a, &b, &e), &e);
	CHECK(str_eq(buf_view(&b), STR("\0\0\2\1a\0\2\1c\0\0\1d\0\0\1b\37\1\1c\0\0")));
}

static void writes_nothing(void **state)
{
	(void)state;
	static const int64_t none[1];
	const struct pyroscope_side empty = { 1, parents, names, strings, none };
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(arena_deinit) struct arena a;
	struct pyroscope_flame f;
	struct err e;
	buf_init(&b, 4096);
	arena_init(&a, 1 << 20);
	CHECK_OK(pyroscope_flame_make(&empty, NULL, 0, &a, &f, &e), &e);
	CHECK_OK(pyroscope_tree_write(&f, &a, &b, &e), &e);
	CHECK(b.len == 0);
}

TEST_MAIN(cmocka_unit_test(writes_trees), cmocka_unit_test(wraps),
	cmocka_unit_test(keeps_nodes_without_width), cmocka_unit_test(writes_nothing))
