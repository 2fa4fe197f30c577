/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs for Graphviz: recursion, limits, names that have to be escaped. */
#include "test.h"

#include "base/arena.h"
#include "pyroscope/pyroscope.h"

/* root { a 1 { b 2 { a 4 { b 8 } } }, b 16 } */
static const uint32_t parents[] = { 0, 0, 1, 2, 3, 0 };
static const uint32_t names[] = { 0, 0, 1, 0, 1, 1 };
static const int64_t selves[] = { 0, 1, 2, 4, 8, 16 };
static const struct str strings[] = { { "a", 1 }, { "b\"\n", 3 } };
static const struct pyroscope_side side = { 6, parents, names, strings, selves };

static void write(const struct pyroscope_side *from, int64_t nodes, struct buf *out)
{
	CLEANUP(arena_deinit) struct arena a;
	struct pyroscope_flame f;
	struct err e;
	arena_init(&a, 1 << 20);
	CHECK_OK(pyroscope_flame_make(from, NULL, 0, &a, &f, &e), &e);
	CHECK_OK(pyroscope_dot_write(&f, STR("count"), nodes, &a, out, &e), &e);
}

static void writes_graphs(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t nodes;
		const char *want;
	} cases[] = {
		{ "all", 0,
			"digraph \"count\" {\nnode [shape=box]\n"
			"N1 [label=\"b\\\" \\n26 (83.87%)\\nof 30 (96.77%)\"]\n"
			"N2 [label=\"a\\n5 (16.13%)\\nof 15 (48.39%)\"]\n"
			"N2 -> N1 [label=\"14\" weight=45]\n}\n" },
		{ "one", 1,
			"digraph \"count\" {\nnode [shape=box]\n"
			"N1 [label=\"b\\\" \\n26 (83.87%)\\nof 30 (96.77%)\"]\n}\n" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, 4096);
		write(&side, c->nodes, &b);
		CHECK_STR(buf_view(&b), c->want);
	}
}

static void writes_an_empty_graph(void **state)
{
	(void)state;
	static const int64_t none[1];
	const struct pyroscope_side empty = { 1, parents, names, strings, none };
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 4096);
	write(&empty, 0, &b);
	CHECK_STR(buf_view(&b), "digraph \"count\" {\nnode [shape=box]\n}\n");
}

TEST_MAIN(cmocka_unit_test(writes_graphs), cmocka_unit_test(writes_an_empty_graph))
