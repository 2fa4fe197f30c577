/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

/* Locations 1, 2, … with one frame each, of the same number. */
static struct query_frames plain_frames(uint32_t *first, uint32_t *ids, uint32_t locations)
{
	for (uint32_t i = 0; i < locations; i++)
		first[i] = ids[i] = i;
	first[locations] = locations;
	return (struct query_frames){ .count = locations, .first = first, .ids = ids };
}

static void add(struct store_tree *t, uint32_t parent, uint32_t location, int64_t self)
{
	CHECK(VEC_PUSH(&t->nodes, (struct store_tree_node){ parent, location, self }));
}

/* A chain longer than any table to begin with, and many children of one node. */
static void grows(void **state)
{
	(void)state;
	enum { CHAIN = 5000, LOCATIONS = 2 * CHAIN + 1 };
	uint32_t *first = calloc(LOCATIONS + 1, sizeof(*first));
	uint32_t *ids = calloc(LOCATIONS, sizeof(*ids));
	struct query_frames frames = plain_frames(first, ids, LOCATIONS);
	struct store_tree tree = { 0 };
	struct query_fold f;
	struct err e = { 0 };
	add(&tree, 0, 0, 0);
	for (uint32_t i = 1; i <= CHAIN; i++)
		add(&tree, i - 1, i, 1);
	for (uint32_t i = 1; i <= CHAIN; i++)
		add(&tree, 7, CHAIN + i, 2);
	CHECK_OK(query_fold_make(&f, &tree, &frames, 3, 64 << 20, &e), &e);
	CHECK(f.nodes.len == 2 * CHAIN + 1);
	CHECK(f.nodes.v[0].total == 9 * CHAIN && f.nodes.v[0].self == 0);
	CHECK(f.nodes.v[8].total == 3 * (CHAIN - 7));
	CHECK(f.nodes.v[7].total == 9 * CHAIN - 3 * 6);
	query_fold_deinit(&f);

	CHECK(query_fold_make(&f, &tree, &frames, 3, 300 << 10, &e) == E_LIMIT);
	CHECK(strstr(e.text, "choose a shorter time range"));
	query_fold_deinit(&f);
	VEC_FREE(&tree.nodes);
	free(first);
	free(ids);
}

static void lists_children(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	uint32_t first[8], ids[8], *begin, *list;
	struct query_frames frames = plain_frames(first, ids, 7);
	struct store_tree tree = { 0 };
	struct query_fold f;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	static const uint32_t parents[] = { 0, 0, 0, 1, 1, 2, 4 };
	for (uint32_t i = 0; i < ARRAY_COUNT(parents); i++)
		add(&tree, parents[i], i, 1);
	CHECK_OK(query_fold_make(&f, &tree, &frames, 1, 1 << 20, &e), &e);
	CHECK_OK(query_fold_children(&f, &a, &begin, &list, &e), &e);
	static const uint32_t want_begin[] = { 0, 2, 4, 5, 5, 6, 6, 6 };
	static const uint32_t want_list[] = { 1, 2, 3, 4, 5, 6 };
	CHECK(memcmp(begin, want_begin, sizeof(want_begin)) == 0);
	CHECK(memcmp(list, want_list, sizeof(want_list)) == 0);
	query_fold_deinit(&f);
	VEC_FREE(&tree.nodes);
}

static void turns_over(void **state)
{
	(void)state;
	uint32_t first[8], ids[8];
	struct query_frames frames = plain_frames(first, ids, 4);
	struct store_tree tree = { 0 };
	struct query_fold f, up;
	struct err e = { 0 };
	add(&tree, 0, 0, 5); /* no frames: stays at the root */
	add(&tree, 0, 1, 0);
	add(&tree, 1, 2, 10);
	add(&tree, 1, 3, 1);
	add(&tree, 3, 2, 100);
	CHECK_OK(query_fold_make(&f, &tree, &frames, 1, 1 << 20, &e), &e);
	CHECK_OK(query_fold_invert(&up, &f, 0, 1 << 20, &e), &e);
	CHECK(up.nodes.v[0].total == 116 && up.nodes.v[0].self == 5);
	int64_t self = 0;
	for (size_t i = 0; i < up.nodes.len; i++) {
		self += up.nodes.v[i].self;
		if (up.nodes.v[i].parent == 0 && up.nodes.v[i].frame == 2)
			CHECK(up.nodes.v[i].total == 110);
	}
	CHECK(self == 116);
	query_fold_deinit(&up);
	/* 3 is below the least: it is there, but nothing above it. */
	CHECK_OK(query_fold_invert(&up, &f, 2, 1 << 20, &e), &e);
	CHECK(up.nodes.len == 6);
	query_fold_deinit(&up);
	CHECK(query_fold_invert(&up, &f, 0, 100, &e) == E_LIMIT);
	query_fold_deinit(&up);
	query_fold_deinit(&f);
	VEC_FREE(&tree.nodes);
}

TEST_MAIN(cmocka_unit_test(grows), cmocka_unit_test(lists_children), cmocka_unit_test(turns_over))
