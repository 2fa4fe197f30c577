/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random tries are put into one tree, one after the other or as two trees that become one: each
 * stack is there once, with the sum over all of them.
 */
#include "store/read/tree.h"

#include "store/memory/canon.h"
#include "tests/store/fixture.h"

enum { SOURCES = 6, STACKS = 300, LOCATIONS = 40, DEPTH = 6 };

struct world {
	struct tables t[SOURCES];
	struct tabs tabs[SOURCES];
	int64_t *sums[SOURCES];
	VEC(struct buf) texts; /* of all stacks; */
	VEC(int64_t) wants;    /* their sums */
};

static void want(struct world *w, const uint32_t *frames, uint32_t n, int64_t value)
{
	struct buf text;
	buf_init(&text, 4096);
	for (uint32_t k = n; k-- > 0;)
		buf_printf(&text, "%u;", frames[k]);
	size_t i = 0;
	while (i < w->texts.len && !str_eq(buf_view(&w->texts.v[i]), buf_view(&text)))
		i++;
	if (i < w->texts.len) {
		w->wants.v[i] += value;
		buf_deinit(&text);
		return;
	}
	CHECK(VEC_PUSH(&w->texts, text) && VEC_PUSH(&w->wants, value));
}

/* The addresses of locations are their names; some sources lack some. */
static void make_source(struct world *w, int at, uint64_t *r)
{
	struct tables *t = &w->t[at];
	CHECK(tables_init(t, 64 << 20, NULL, 0) == OK);
	for (int i = 0; i < STACKS; i++) {
		uint32_t frames[DEPTH], addresses[DEPTH], node = 0;
		uint32_t n = (uint32_t)rnd_below(r, DEPTH + 1);
		for (uint32_t k = 0; k < n; k++) {
			struct profile_location l = { .kind = FRAME_NATIVE };
			addresses[k] = 1 + (uint32_t)rnd_below(r, LOCATIONS) * (n - k);
			l.address = addresses[k];
			CHECK(tables_add_location(t, &l, NULL, 0, &frames[k]) == OK);
		}
		for (uint32_t k = n; k-- > 0;)
			CHECK(tables_add_node(t, node, frames[k], &node) == OK);
	}
}

/* Values by node: a third of them nothing. */
static void make_sums(struct world *w, int at, uint64_t *r)
{
	struct tabs *t = &w->tabs[at];
	tables_view(&w->t[at], t);
	free(w->sums[at]);
	w->sums[at] = calloc(t->node_count, sizeof(int64_t));
	CHECK(w->sums[at]);
	for (uint32_t i = 0; i < t->node_count; i++) {
		uint32_t frames[DEPTH], n = 0;
		if (rnd_below(r, 3) == 0)
			continue;
		w->sums[at][i] = (int64_t)rnd_below(r, 1000) + 1;
		for (uint32_t k = i; k; k = t->parent[k])
			frames[n++] = (uint32_t)t->locations[t->node_location[k]].address;
		want(w, frames, n, w->sums[at][i]);
	}
}

static void path(const struct tree *t, uint32_t node, struct buf *out)
{
	if (!node)
		return;
	path(t, t->nodes.v[node].parent, out);
	buf_printf(out, "%u;", (unsigned)t->tables.locations.v[t->nodes.v[node].location].address);
}

static void check(struct world *w, const struct tree *t)
{
	size_t found = 0, with_sum = 0;
	for (uint32_t i = 0; i < t->nodes.len; i++) {
		CLEANUP(buf_deinit) struct buf text;
		CHECK(i == 0 || t->nodes.v[i].parent < i);
		if (!t->nodes.v[i].self)
			continue;
		with_sum++;
		buf_init(&text, 4096);
		path(t, i, &text);
		size_t k = 0;
		while (k < w->texts.len && !str_eq(buf_view(&w->texts.v[k]), buf_view(&text)))
			k++;
		CHECK(k < w->texts.len);
		CHECK(w->wants.v[k] == t->nodes.v[i].self);
		found++;
	}
	CHECK(found == w->texts.len && with_sum == found);
}

static void sums_of_all(void **state)
{
	(void)state;
	struct world w = { 0 };
	uint64_t r = 99;
	struct err e = { 0 };
	struct budget b = { .limit = 64 << 20 };
	struct tree one, a, c;
	for (int i = 0; i < SOURCES; i++) {
		make_source(&w, i, &r);
		make_sums(&w, i, &r);
	}
	CHECK_OK(tree_init(&one, false, &b, &e), &e);
	CHECK_OK(tree_init(&a, false, &b, &e), &e);
	CHECK_OK(tree_init(&c, false, &b, &e), &e);
	for (int i = 0; i < SOURCES; i++) {
		CHECK_OK(tree_add(&one, &w.tabs[i], w.sums[i], NULL, &e), &e);
		CHECK_OK(tree_add(i % 2 ? &a : &c, &w.tabs[i], w.sums[i], NULL, &e), &e);
	}
	check(&w, &one);
	CHECK_OK(tree_add_tree(&a, &c, &e), &e);
	check(&w, &a);
	tree_deinit(&c);
	CHECK_OK(tree_init(&c, false, &b, &e), &e);
	CHECK_OK(tree_add_tree(&c, &a, &e), &e); /* into one that is empty */
	check(&w, &c);
	tree_deinit(&one);
	tree_deinit(&a);
	tree_deinit(&c);
	for (int i = 0; i < SOURCES; i++) {
		tables_deinit(&w.t[i]);
		free(w.sums[i]);
	}
	for (size_t i = 0; i < w.texts.len; i++)
		buf_deinit(&w.texts.v[i]);
	VEC_FREE(&w.texts);
	VEC_FREE(&w.wants);
}

static void limits(void **state)
{
	(void)state;
	struct world w = { 0 };
	uint64_t r = 5;
	struct err e = { 0 };
	make_source(&w, 0, &r);
	make_sums(&w, 0, &r);
	for (uint64_t limit = 1000; limit < 40000; limit += 1000) {
		struct budget b = { .limit = limit };
		struct tree t;
		if (tree_init(&t, false, &b, &e) != OK)
			continue;
		enum status s = tree_add(&t, &w.tabs[0], w.sums[0], NULL, &e);
		CHECK(s == OK || s == E_LIMIT);
		CHECK(limit > 5000 || s == E_LIMIT);
		CHECK(b.used <= b.limit);
		tree_deinit(&t);
	}
	w.tabs[0].location_count = 3; /* as a damaged part might say */
	struct budget b = { .limit = 64 << 20 };
	struct tree t;
	CHECK_OK(tree_init(&t, false, &b, &e), &e);
	CHECK(tree_add(&t, &w.tabs[0], w.sums[0], NULL, &e) == E_CORRUPT);
	tree_deinit(&t);
	tables_deinit(&w.t[0]);
	free(w.sums[0]);
	for (size_t i = 0; i < w.texts.len; i++)
		buf_deinit(&w.texts.v[i]);
	VEC_FREE(&w.texts);
	VEC_FREE(&w.wants);
}

TEST_MAIN(cmocka_unit_test(sums_of_all), cmocka_unit_test(limits))
