/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random tries become one: each node of each is found in it by its path, it has no other node, and
 * is in canonical order; a trie that is not is named.
 */
#include "store/merge/merge_choose.h"
#include "store/merge/merge_cursor.h"
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#define LOCATIONS 6
#define NODES_MAX 400

struct trie {
	uint32_t parent[NODES_MAX], location[NODES_MAX], depth[NODES_MAX], count;
};

static uint32_t dice(uint64_t *state, uint32_t below)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(*state >> 33) % below;
}

/* In preorder, children by location. */
static void grow(struct trie *t, uint32_t node, uint64_t *state)
{
	for (uint32_t l = 1; l <= LOCATIONS && t->depth[node] < 9; l++) {
		if (dice(state, 10) >= 3 || t->count == NODES_MAX)
			continue;
		uint32_t child = t->count++;
		t->parent[child] = node;
		t->location[child] = l;
		t->depth[child] = t->depth[node] + 1;
		grow(t, child, state);
	}
}

static void make_cursor(struct merge_cursor *c, const struct trie *t, const uint32_t *ids)
{
	*c = (struct merge_cursor){ .tabs.node_count = t->count };
	c->nodes = calloc(t->count, sizeof(*c->nodes));
	c->depths = calloc(t->count, sizeof(*c->depths));
	assert_true(c->nodes && c->depths);
	for (uint32_t i = 1; i < t->count; i++) {
		c->nodes[i] = ids[t->location[i]];
		c->depths[i] = (uint16_t)t->depth[i];
	}
}

/* ids[l]: of a location with address l; added in another order than theirs. */
static void make_tables(struct tables *t, struct canon *canon, uint32_t ids[LOCATIONS + 1])
{
	struct tabs view;
	assert_int_equal(tables_init(t, 1 << 20, NULL, 0), OK);
	ids[0] = 0;
	for (uint32_t l = LOCATIONS; l > 0; l--)
		assert_int_equal(tables_add_location(t, &(struct profile_location){ .address = l },
					 NULL, 0, &ids[l]),
			OK);
	tables_view(t, &view);
	assert_int_equal(canon_init(canon, &view), OK);
}

static bool same_path(const struct trie *a, uint32_t i, const struct tabs *b, uint32_t k)
{
	for (; i && k; i = a->parent[i], k = b->parent[k])
		if (b->locations[b->node_location[k]].address != a->location[i])
			return false;
	return i == k;
}

static void check_order(const struct tabs *v)
{
	uint32_t depth[LOCATIONS * NODES_MAX] = { 0 }, last[16] = { 0 };
	for (uint32_t i = 1; i < v->node_count; i++) {
		uint32_t up = v->parent[i];
		depth[i] = depth[up] + 1;
		assert_true(depth[i] <= depth[i - 1] + 1 && last[depth[up]] == up);
		uint64_t address = v->locations[v->node_location[i]].address;
		uint32_t before = last[depth[i]];
		if (depth[i] <= depth[i - 1] && before && v->parent[before] == up)
			assert_true(v->locations[v->node_location[before]].address < address);
		last[depth[i]] = i;
	}
}

static void each_node_is_found_by_its_path(void **state)
{
	(void)state;
	static struct trie tries[5];
	uint64_t seed = 42;
	for (int round = 0; round < 300; round++) {
		struct tables t;
		struct canon canon;
		struct merge_cursor cursors[ARRAY_COUNT(tries)];
		uint32_t ids[LOCATIONS + 1];
		size_t n = 1 + dice(&seed, ARRAY_COUNT(tries)), unfit;
		make_tables(&t, &canon, ids);
		for (size_t k = 0; k < n; k++) {
			tries[k].count = 1;
			grow(&tries[k], 0, &seed);
			make_cursor(&cursors[k], &tries[k], ids);
		}
		assert_int_equal(merge_tries(&t, &canon, cursors, n, &unfit), OK);
		assert_int_equal(unfit, n);
		struct tabs v;
		static bool met[LOCATIONS * NODES_MAX];
		memset(met, 0, sizeof(met));
		tables_view(&t, &v);
		check_order(&v);
		for (size_t k = 0; k < n; k++)
			for (uint32_t i = 0; i < tries[k].count; i++) {
				assert_true(cursors[k].nodes[i] < v.node_count);
				assert_true(same_path(&tries[k], i, &v, cursors[k].nodes[i]));
				met[cursors[k].nodes[i]] = true;
			}
		assert_int_equal(canon.nodes.count, v.node_count);
		for (uint32_t i = 1; i < v.node_count; i++)
			assert_true(met[i] && canon.nodes.to[i] == i && canon.nodes.order[i] == i);
		for (size_t k = 0; k < n; k++) {
			free(cursors[k].nodes);
			free(cursors[k].depths);
		}
		canon_deinit(&canon);
		tables_deinit(&t);
	}
}

/* Two of the second trie's siblings: the other way round, or twice the same. */
static void another_order_is_named(void **state)
{
	(void)state;
	static const uint32_t siblings[][2] = { { 3, 2 }, { 2, 2 } };
	for (size_t i = 0; i < ARRAY_COUNT(siblings); i++) {
		struct tables t;
		struct canon canon;
		struct trie tries[2] = { { .count = 4 }, { .count = 5 } };
		struct merge_cursor cursors[2];
		uint32_t ids[LOCATIONS + 1];
		size_t unfit;
		for (int k = 0; k < 2; k++)
			for (uint32_t node = 1; node < 4; node++) {
				tries[k].parent[node] = node - 1;
				tries[k].depth[node] = node;
				tries[k].location[node] = node == 3 && k ? siblings[i][0] : node;
			}
		tries[1].parent[4] = 2;
		tries[1].depth[4] = 3;
		tries[1].location[4] = siblings[i][1];
		make_tables(&t, &canon, ids);
		for (int k = 0; k < 2; k++)
			make_cursor(&cursors[k], &tries[k], ids);
		assert_int_equal(merge_tries(&t, &canon, cursors, 2, &unfit), E_UNSUPPORTED);
		assert_int_equal(unfit, 1);
		for (int k = 0; k < 2; k++) {
			free(cursors[k].nodes);
			free(cursors[k].depths);
		}
		canon_deinit(&canon);
		tables_deinit(&t);
	}
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_node_is_found_by_its_path),
		cmocka_unit_test(another_order_is_named),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
