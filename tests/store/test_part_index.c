/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of what occurs with what, whatever the order of rows, against a table of bits. */
#include "store/part/part_index.h"

#include "tests/store/fixture.h"

enum { SERIES = 30, NODES = 120, SETS = 40, LOCATIONS = 50, ROWS = 3000 };

struct world {
	uint32_t parent[NODES], location[NODES];
	bool sets[SERIES][SETS], locations[LOCATIONS][SERIES];
};

static void make_rows(struct world *w, struct part_index *x, bool in_order)
{
	uint64_t r = 3;
	for (uint32_t i = 1; i < NODES; i++) {
		w->parent[i] = (uint32_t)rnd_below(&r, i);
		w->location[i] = 1 + (uint32_t)rnd_below(&r, LOCATIONS - 1);
	}
	for (uint32_t i = 0; i < ROWS; i++) {
		uint32_t series = in_order ? i * SERIES / ROWS : (uint32_t)rnd_below(&r, SERIES);
		uint32_t node = (uint32_t)rnd_below(&r, NODES) % (series * 3 + 2);
		uint32_t set = (uint32_t)rnd_below(&r, SETS) % (series + 1);
		CHECK(part_index_row(x, series, node, set) == OK);
		w->sets[series][set] = true;
		for (; node; node = w->parent[node])
			w->locations[w->location[node]][series] = true;
	}
}

/* Row by row: the items of key i are those whose bit is set. */
static void check(const struct part_lists *l, const bool *bits, uint32_t keys, uint32_t items)
{
	size_t at = 0;
	CHECK(l->found);
	for (uint32_t i = 0; i < keys; i++) {
		uint32_t n = 0;
		for (uint32_t k = 0; k < items; k++) {
			if (!bits[i * items + k])
				continue;
			CHECK(at < l->item_count && l->items[at++] == k);
			n++;
		}
		CHECK(l->counts[i] == n);
	}
	CHECK(at == l->item_count);
}

static void each_pair_once(void **state)
{
	(void)state;
	for (int in_order = 0; in_order < 2; in_order++) {
		static struct world w;
		struct part_index x = { 0 };
		struct part_lists sets, locations;
		struct part_trie t = { w.parent, w.location, NODES, LOCATIONS };
		w = (struct world){ 0 };
		make_rows(&w, &x, in_order);
		CHECK(part_index_sets(&x, SERIES, &sets) == OK);
		CHECK(part_index_locations(&x, &t, SIZE_MAX, &locations) == OK);
		check(&sets, &w.sets[0][0], SERIES, SETS);
		check(&locations, &w.locations[0][0], LOCATIONS, SERIES);
		part_lists_deinit(&sets);
		part_lists_deinit(&locations);
		CHECK(part_index_locations(&x, &t, 3, &locations) == OK);
		CHECK(!locations.found); /* too many for somebody who wants three */
		part_lists_deinit(&locations);
		part_index_deinit(&x);
	}
}

TEST_MAIN(cmocka_unit_test(each_pair_once))
