/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"
#include "query/plan/sums.h"

#include <stdio.h>

#define SECOND_NS NS_PER_SEC

struct graph {
	struct arena arena;
	struct query_flame f;
};

static void ask(struct graph *g, const struct query_request *r)
{
	struct err e = { 0 };
	arena_init(&g->arena, 64 << 20);
	g->f = (struct query_flame){ 0 };
	CHECK_OK(query_flame(&fake_engine, r, &g->arena, &g->f, &e), &e);
}

static void done(struct graph *g)
{
	arena_deinit(&g->arena);
}

/* "name self total" a node, indented by depth. */
static void show(const struct query_flame *f, char *out, size_t size)
{
	uint32_t depth[256] = { 0 };
	size_t len = 0;
	CHECK(f->count <= ARRAY_COUNT(depth));
	out[0] = 0;
	for (uint32_t i = 1; i < f->count; i++) {
		struct str name = f->strings[f->name[i]];
		depth[i] = depth[f->parent[i]] + 1;
		len += (size_t)snprintf(out + len, size - len, "%*s%.*s%s %lld %lld\n",
			(int)depth[i] - 1, "", STR_ARG(name), f->inlined[i] ? "^" : "",
			(long long)f->self[i], (long long)f->total[i]);
		CHECK(len < size);
	}
}

#define CHECK_GRAPH(g, want)                                          \
	do {                                                          \
		char got_[8192];                                      \
		show(&(g)->f, got_, sizeof(got_));                    \
		if (strcmp(got_, want) != 0) {                        \
			print_error("got:\n%swant:\n%s", got_, want); \
			_fail(__FILE__, __LINE__);                    \
		}                                                     \
	} while (0)

static void folds(void **state)
{
	(void)state;
	struct graph g;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, 1 * SECOND_NS, 2, PERIOD, "comm=a", "main@/bin/app;work@/bin/app");
	fake_sample(CPU, 2 * SECOND_NS, 1, PERIOD, "comm=b", "main@/bin/app;rest@/bin/app");
	fake_sample(CPU, 3 * SECOND_NS, 4, PERIOD, "comm=b",
		"main@/bin/app;work@/bin/app;sys_read@[kernel]%kernel");
	fake_sample(CPU, 4 * SECOND_NS, 1, PERIOD, "comm=b", "other@/bin/b");
	fake_sample(HEAP, 4 * SECOND_NS, 9, 0, "comm=b", "other@/bin/b");
	ask(&g, &r);
	CHECK_GRAPH(&g, "main 0 70000000\n"
			" work 20000000 60000000\n"
			"  sys_read 40000000 40000000\n"
			" rest 10000000 10000000\n"
			"other 10000000 10000000\n");
	CHECK(g.f.total[0] == 80000000 && g.f.self[0] == 0 && g.f.parent[0] == 0);
	CHECK(g.f.trimmed == 0 && g.f.sample_count == 4 && g.f.pending == 0);
	CHECK_STR(g.f.unit, "nanoseconds");
	CHECK_STR(g.f.strings[0], "");
	CHECK_STR(g.f.strings[g.f.binary[1]], "app");
	CHECK_STR(g.f.strings[g.f.binary[3]], "[kernel]");
	CHECK_STR(g.f.strings[g.f.file[2]], "/src/work.c");
	CHECK(g.f.line[2] == 40 && g.f.kind[2] == FRAME_NATIVE && g.f.kind[3] == FRAME_KERNEL);
	done(&g);

	r.from_ns = 2 * SECOND_NS;
	r.to_ns = 3 * SECOND_NS;
	ask(&g, &r);
	CHECK_GRAPH(&g, "main 0 10000000\n rest 10000000 10000000\n");
	done(&g);

	r = fake_request(CPU "{comm=\"a\"}");
	ask(&g, &r);
	CHECK_GRAPH(&g, "main 0 20000000\n work 20000000 20000000\n");
	done(&g);
}

/* Frames of one function at several addresses are one node; of one name in two binaries, two. */
static void merges_by_function(void **state)
{
	(void)state;
	struct graph g;
	struct query_request r = fake_request(HEAP);
	fake_sample(HEAP, 1, 1, 0, "", "main@a;f@a;0x10@a");
	fake_sample(HEAP, 1, 2, 0, "", "main@a;f>g@a");
	fake_sample(HEAP, 1, 4, 0, "", "main>f@a");
	fake_sample(HEAP, 1, 8, 0, "", "main@b");
	fake_sample(HEAP, 1, 16, 0, "", "main@a%kernel");
	ask(&g, &r);
	CHECK_GRAPH(&g, "main 16 16\n"
			"main 8 8\n"
			"main 0 7\n"
			" f 4 7\n"
			"  g^ 2 2\n"
			"  sym_0x10 1 1\n");
	CHECK_STR(g.f.unit, "bytes");
	done(&g);
	fake_pending = 3;
	ask(&g, &r);
	CHECK(g.f.pending == 3);
	done(&g);
	/* Without a symbolizer an address is at least told with its binary. */
	fake_engine.symbolizer = NULL;
	r.match = STR("0x10");
	ask(&g, &r);
	CHECK_GRAPH(&g, "main 0 1\n f 0 1\n  a+0x10 1 1\n");
	done(&g);
}

static void is_empty_without_samples(void **state)
{
	(void)state;
	struct graph g;
	struct query_request r = fake_request("");
	ask(&g, &r);
	CHECK(g.f.count == 1 && g.f.total[0] == 0 && g.f.string_count == 1 && g.f.trimmed == 0);
	done(&g);
	r = fake_request(CPU);
	ask(&g, &r);
	CHECK(g.f.count == 1 && g.f.total[0] == 0);
	CHECK_STR(g.f.unit, "nanoseconds"); /* the selector says it */
	done(&g);
	/* A stack without frames belongs to the root. */
	fake_sample(CPU, 1, 3, PERIOD, "", "");
	fake_sample(CPU, 1, 0, PERIOD, "", "nothing@a");
	ask(&g, &r);
	CHECK(g.f.count == 1 && g.f.self[0] == 3 * PERIOD && g.f.total[0] == 3 * PERIOD);
	done(&g);
}

static void trims(void **state)
{
	(void)state;
	struct graph g;
	struct query_request r = fake_request(HEAP);
	fake_sample(HEAP, 1, 900, 0, "", "main@a;big@a");
	fake_sample(HEAP, 1, 60, 0, "", "main@a;small@a");
	fake_sample(HEAP, 1, 30, 0, "", "main@a;small@a;smaller@a");
	fake_sample(HEAP, 1, 10, 0, "", "tiny@a");
	r.trim = 0.09;
	ask(&g, &r);
	CHECK_GRAPH(&g, "main 0 990\n big 900 900\n small 60 90\n");
	CHECK(g.f.total[0] == 1000 && g.f.trimmed == 40);
	done(&g);
	r.trim = 0.0901;
	ask(&g, &r);
	CHECK_GRAPH(&g, "main 0 990\n big 900 900\n");
	CHECK(g.f.total[0] == 1000 && g.f.trimmed == 100);
	done(&g);
	r.trim = 1;
	ask(&g, &r);
	CHECK(g.f.count == 1 && g.f.trimmed == 1000);
	done(&g);
}

static void inverts(void **state)
{
	(void)state;
	struct graph g;
	struct query_request r = fake_request(HEAP);
	fake_sample(HEAP, 1, 1, 0, "", "main@a;f@a;malloc@libc");
	fake_sample(HEAP, 1, 2, 0, "", "main@a;g@a;malloc@libc");
	fake_sample(HEAP, 1, 4, 0, "", "main@a;g@a");
	fake_sample(HEAP, 1, 8, 0, "", "main@a;g>h@a;malloc@libc");
	r.invert = true;
	ask(&g, &r);
	CHECK_GRAPH(&g, "malloc 0 11\n"
			" h^ 0 8\n"
			"  g 0 8\n"
			"   main 8 8\n"
			" g 0 2\n"
			"  main 2 2\n"
			" f 0 1\n"
			"  main 1 1\n"
			"g 0 4\n"
			" main 4 4\n");
	CHECK(g.f.total[0] == 15 && g.f.trimmed == 0);
	done(&g);
	r.trim = 0.2;
	ask(&g, &r);
	CHECK_GRAPH(&g, "malloc 0 11\n h^ 0 8\n  g 0 8\n   main 8 8\ng 0 4\n main 4 4\n");
	CHECK(g.f.trimmed == 3);
	done(&g);
}

static void matches(void **state)
{
	(void)state;
	struct graph g;
	struct query_request r = fake_request(HEAP);
	fake_sample(HEAP, 1, 1, 0, "", "main@a;Malloc_Hook@a");
	fake_sample(HEAP, 1, 2, 0, "", "main@a");
	fake_sample(HEAP, 1, 4, 0, "", "main@a;x@a;y>my_malloc@a;z@a");
	fake_sample(HEAP, 1, 8, 0, "", "malloc@libc;z@a");
	r.match = STR("mALLOc");
	ask(&g, &r);
	CHECK_GRAPH(&g, "malloc 0 8\n"
			" z 8 8\n"
			"main 0 5\n"
			" x 0 4\n"
			"  y 0 4\n"
			"   my_malloc^ 0 4\n"
			"    z 4 4\n"
			" Malloc_Hook 1 1\n");
	done(&g);
	r.match = STR("nothing like this");
	ask(&g, &r);
	CHECK(g.f.count == 1 && g.f.total[0] == 0);
	done(&g);
}

/* Values near the edge wrap, and the graph stays a graph. */
static void wraps(void **state)
{
	(void)state;
	struct graph g;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, 1, INT64_MAX, PERIOD, "", "a@a");
	fake_sample(CPU, 1, INT64_MAX, PERIOD, "", "a@a;b@a");
	fake_sample(CPU, 1, INT64_MIN, PERIOD, "", "c@a");
	ask(&g, &r);
	int64_t self = 0;
	for (uint32_t i = 0; i < g.f.count; i++)
		self = query_add(self, g.f.self[i]);
	CHECK(query_add(self, g.f.trimmed) == g.f.total[0]);
	done(&g);
}

static void passes_failures_on(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct query_flame f = { .count = 77 };
	struct query_request r = fake_request(CPU);
	struct err e = { 0 };
	fake_sample(CPU, 1, 1, PERIOD, "", "main@a;work@a");
	arena_init(&a, 64 << 20);
	fake_error = E_CANCELED;
	CHECK(query_flame(&fake_engine, &r, &a, &f, &e) == E_CANCELED);
	fake_error = OK;
	CHECK(f.count == 77);
	CLEANUP(arena_deinit) struct arena small;
	arena_init(&small, 300);
	CHECK(query_flame(&fake_engine, &r, &small, &f, &e) == E_LIMIT);
	CHECK(f.count == 77);
}

/* ---- random stacks, against a count of paths by text ---- */

#define STACKS 3000
#define DEPTH_MAX 12
#define NAMES 6

static uint32_t seed;

static uint32_t random_below(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

struct made {
	char path[DEPTH_MAX * 3 + 1]; /* "a;b;" */
	int64_t value;
};

static void make_stacks(struct made *made, int binaries)
{
	for (int i = 0; i < STACKS; i++) {
		char stack[512] = "";
		uint32_t depth = 1 + random_below(DEPTH_MAX - 1);
		made[i].path[0] = 0;
		for (uint32_t k = 0; k < depth; k++) {
			char name[2] = { (char)('a' + random_below(NAMES)), 0 };
			/* The same function, now called, now inlined. */
			bool inlined = k > 0 && random_below(3) == 0;
			if (inlined) {
				stack[strlen(stack) - 2] = 0;
				strcat(stack, ">");
			} else if (k > 0) {
				strcat(stack, ";");
			}
			strcat(stack, name);
			strcat(stack, binaries > 1 && random_below(2) ? "@y" : "@x");
			strcat(made[i].path, name);
			strcat(made[i].path, ";");
		}
		made[i].value = 1 + random_below(1000);
		fake_sample(HEAP, 1, made[i].value, 0, "", stack);
	}
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct made *)a)->path, ((const struct made *)b)->path);
}

static struct made *sorted_of(const struct made *made)
{
	struct made *sorted = malloc(STACKS * sizeof(*sorted));
	CHECK(sorted);
	memcpy(sorted, made, STACKS * sizeof(*sorted));
	qsort(sorted, STACKS, sizeof(*sorted), compare_paths);
	return sorted;
}

/* The values of stacks that begin with a path, and of those that are it. */
static void sum_of(const struct made *sorted, const char *path, int64_t *begin, int64_t *whole)
{
	size_t len = strlen(path), first = 0, end = STACKS;
	*begin = *whole = 0;
	while (first < end) {
		size_t middle = (first + end) / 2;
		if (strcmp(sorted[middle].path, path) < 0)
			first = middle + 1;
		else
			end = middle;
	}
	for (size_t i = first; i < STACKS && strncmp(sorted[i].path, path, len) == 0; i++) {
		*begin += sorted[i].value;
		*whole += sorted[i].path[len] ? 0 : sorted[i].value;
	}
}

static void check_paths(const struct query_flame *f, const struct made *made)
{
	char(*paths)[DEPTH_MAX * 3 + 1] = calloc(f->count, sizeof(*paths));
	struct made *sorted = sorted_of(made);
	int64_t self = f->trimmed, begin, whole;
	CHECK(paths);
	for (uint32_t i = 0; i < f->count; i++) {
		self += f->self[i];
		if (i == 0)
			continue;
		CHECK(f->parent[i] < i);
		char parent[DEPTH_MAX * 3 + 1];
		strcpy(parent, paths[f->parent[i]]);
		CHECK((size_t)snprintf(paths[i], sizeof(paths[i]), "%s%.*s;", parent,
			      STR_ARG(f->strings[f->name[i]])) < sizeof(paths[i]));
		sum_of(sorted, paths[i], &begin, &whole);
		CHECK(f->total[i] == begin && f->self[i] == whole);
		/* Depth first: a node follows its parent, or a descendant of its parent. */
		uint32_t before = i - 1;
		while (before != f->parent[i])
			before = f->parent[before];
	}
	sum_of(sorted, "", &begin, &whole);
	CHECK(self == f->total[0] && self == begin);
	free(sorted);
	free(paths);
}

static void agrees_with_a_count_of_paths(void **state)
{
	(void)state;
	struct made *made = calloc(STACKS, sizeof(*made));
	struct graph g;
	struct query_request r = fake_request(HEAP);
	CHECK(made);
	seed = 7;
	make_stacks(made, 1);
	ask(&g, &r);
	CHECK(g.f.trimmed == 0 && g.f.count > 3000);
	check_paths(&g.f, made);
	uint32_t all = g.f.count;
	done(&g);
	r.trim = 0.001;
	ask(&g, &r);
	CHECK(g.f.trimmed > 0 && g.f.count > 10 && g.f.count < all);
	check_paths(&g.f, made);
	done(&g);
	/* Upside down: the same stacks, each path reversed. */
	r.invert = true;
	for (int i = 0; i < STACKS; i++) {
		size_t len = strlen(made[i].path) / 2;
		for (size_t k = 0; k < len / 2; k++) {
			char c = made[i].path[2 * k];
			made[i].path[2 * k] = made[i].path[2 * (len - 1 - k)];
			made[i].path[2 * (len - 1 - k)] = c;
		}
	}
	ask(&g, &r);
	check_paths(&g.f, made);
	done(&g);
	r.trim = 0;
	ask(&g, &r);
	CHECK(g.f.trimmed == 0);
	check_paths(&g.f, made);
	done(&g);
	free(made);
}

static int64_t smallest_of(const struct query_flame *f)
{
	int64_t least = INT64_MAX;
	for (uint32_t i = 0; i < f->count; i++)
		least = MIN(least, f->total[i]);
	return least;
}

static void has_the_largest_nodes(void **state)
{
	(void)state;
	static const uint32_t wanted[] = { 1, 7, 100, 1000, 3000, 1u << 20 };
	struct made *made = calloc(STACKS, sizeof(*made));
	struct graph all, g;
	struct query_request r = fake_request(HEAP);
	CHECK(made);
	seed = 11;
	make_stacks(made, 2);
	r.by_name = true;
	ask(&all, &r);
	CHECK(all.f.trimmed == 0 && all.f.count > 3000);
	check_paths(&all.f, made);
	for (size_t i = 0; i < ARRAY_COUNT(wanted); i++) {
		r.nodes_wanted = wanted[i];
		ask(&g, &r);
		check_paths(&g.f, made);
		uint32_t as_large = 0;
		int64_t smallest = smallest_of(&g.f);
		for (uint32_t k = 0; k < all.f.count; k++)
			as_large += all.f.total[k] >= smallest;
		CHECK(g.f.count == as_large && g.f.count >= MIN(wanted[i], all.f.count));
		CHECK(g.f.count < 16 * wanted[i]);
		done(&g);
	}
	done(&all);
	free(made);
}

/* By a label: the largest values, what has none, and the rest are frames below the root. */
static void has_values_of_a_label(void **state)
{
	(void)state;
	struct graph g;
	struct query_request r = fake_request(CPU);
	fake_sample(CPU, 1, 5, 1, "comm=a,pid=1", "main@x;f>g@x");
	fake_sample(CPU, 2, 2, 1, "comm=a,pid=2", "main@x;h@x");
	fake_sample(CPU, 3, 4, 1, "comm=b", "main@x;f>g@x");
	fake_sample(CPU, 4, 3, 1, "pid=7", "main@x");
	fake_sample(CPU, 5, 2, 1, "comm=c", "main@x;h@x");
	fake_sample(CPU, 6, 1, 2, "comm=d", "main@x"); /* of a longer period */
	r.by[r.by_count++] = STR("comm");
	r.limit = 3;
	ask(&g, &r);
	CHECK_GRAPH(&g, "a 0 7\n main 0 7\n  f 0 5\n   g^ 5 5\n  h 2 2\n"
			"b 0 4\n main 0 4\n  f 0 4\n   g^ 4 4\n"
			"everything else 0 4\n main 2 4\n  h 2 2\n"
			"no comm 0 3\n main 3 3\n");
	CHECK(g.f.total[0] == 18 && g.f.sample_count == 6 && g.f.kind[1] == FRAME_UNKNOWN);
	done(&g);
	r.invert = true;
	r.limit = 1;
	ask(&g, &r);
	CHECK_GRAPH(&g, "everything else 0 11\n main 5 5\n g^ 0 4\n  f 0 4\n   main 4 4\n h 0 2\n  "
			"main 2 2\n"
			"a 0 7\n g^ 0 5\n  f 0 5\n   main 5 5\n h 0 2\n  main 2 2\n");
	done(&g);
	r.invert = false;
	r.limit = 0;
	ask(&g, &r);
	CHECK_GRAPH(&g, "a 0 7\n main 0 7\n  f 0 5\n   g^ 5 5\n  h 2 2\n"
			"b 0 4\n main 0 4\n  f 0 4\n   g^ 4 4\n"
			"no comm 0 3\n main 3 3\n"
			"c 0 2\n main 0 2\n  h 2 2\nd 0 2\n main 2 2\n");
	done(&g);
	r.match = STR("H");
	ask(&g, &r);
	CHECK_GRAPH(&g, "a 0 2\n main 0 2\n  h 2 2\nc 0 2\n main 0 2\n  h 2 2\n");
	done(&g);
	r.by[r.by_count++] = STR("pid");
	struct err e = { 0 };
	arena_init(&g.arena, 1 << 20);
	CHECK(query_flame(&fake_engine, &r, &g.arena, &g.f, &e) == E_INVALID);
	done(&g);
}

#define WITH_STORE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

TEST_MAIN(WITH_STORE(folds), WITH_STORE(has_values_of_a_label), WITH_STORE(merges_by_function),
	WITH_STORE(is_empty_without_samples), WITH_STORE(trims), WITH_STORE(inverts),
	WITH_STORE(matches), WITH_STORE(wraps), WITH_STORE(passes_failures_on),
	WITH_STORE(agrees_with_a_count_of_paths), WITH_STORE(has_the_largest_nodes))
