/* SPDX-License-Identifier: Apache-2.0 */
/* Levels as Pyroscope's own (pkg/model/flamegraph.go): places, "other", two sides. */
#include "test.h"

#include "base/arena.h"
#include "pb/pb.h"
#include "pyroscope/pyroscope.h"

/* root { b 1 { c 2 }, a 0 { c 4, d 8 }, b 16 }: b is there twice, and comes behind a. */
static const uint32_t parents[] = { 0, 0, 1, 0, 3, 3, 0 };
static const uint32_t names[] = { 0, 1, 2, 0, 2, 3, 1 };
static const int64_t selves[] = { 0, 1, 2, 0, 4, 8, 16 };
static const struct str strings[] = { { "a", 1 }, { "b", 1 }, { "c", 1 }, { "d", 1 } };
static const struct pyroscope_side side = { 7, parents, names, strings, selves };

static void check(const struct pyroscope_flame *f, const char *want)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 65536);
	for (size_t i = 0; i < f->level_count; i++) {
		size_t width = f->sides == 2 ? 7 : 4;
		buf_cstr(&b, i ? "|" : "");
		for (size_t k = 0; k < f->levels[i].count; k++) {
			if (k % width == width - 1)
				buf_str(&b, f->names[f->levels[i].v[k]]);
			else
				buf_printf(&b, "%lld", (long long)f->levels[i].v[k]);
			buf_cstr(&b, k + 1 < f->levels[i].count ? "," : "");
		}
	}
	CHECK_STR(buf_view(&b), want);
}

static void lays_out_one_side(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t nodes;
		const char *want;
	} cases[] = {
		{ "all", 0, "0,31,0,total|0,12,0,a,0,19,17,b|0,4,4,c,0,8,8,d,17,2,2,c" },
		{ "enough", 6, "0,31,0,total|0,12,0,a,0,19,17,b|0,4,4,c,0,8,8,d,17,2,2,c" },
		/* The smallest that is shown is 8: c is "other", last. */
		{ "four", 4, "0,31,0,total|0,12,0,a,0,19,17,b|0,8,8,d,0,4,4,other,17,2,2,other" },
		{ "one", 1, "0,31,0,total|0,31,31,other" },
	};
	FOR_EACH_CASE (c, cases) {
		struct pyroscope_flame f;
		struct arena a;
		struct err e;
		arena_init(&a, 1 << 20);
		CHECK_OK(pyroscope_flame_make(&side, NULL, c->nodes, &a, &f, &e), &e);
		check(&f, c->want);
		CHECK_CASE(c, f.total == 31 && f.max_self == (c->nodes == 1 ? 31 : 17));
		arena_deinit(&a);
	}
}

/* Of a side that has the four largest nodes, and what the others sum to, the same is drawn. */
static void adds_what_a_side_left_out(void **state)
{
	(void)state;
	/* root 31 { b 1 of 3, a 0 of 12 { d 8 }, b 16 } */
	static const uint32_t few_parents[] = { 0, 0, 0, 2, 0 }, few_names[] = { 0, 1, 0, 3, 1 };
	static const int64_t few_selves[] = { 0, 1, 0, 8, 16 }, totals[] = { 31, 3, 12, 8, 16 };
	const struct pyroscope_side few = { 5, few_parents, few_names, strings, few_selves,
		totals };
	for (int64_t nodes = 1; nodes <= 4; nodes++) {
		struct pyroscope_flame f, whole;
		struct arena a;
		struct err e;
		arena_init(&a, 1 << 20);
		CHECK_OK(pyroscope_flame_make(&few, NULL, nodes, &a, &f, &e), &e);
		CHECK_OK(pyroscope_flame_make(&side, NULL, nodes, &a, &whole, &e), &e);
		CHECK(f.level_count == whole.level_count && f.max_self == whole.max_self);
		if (nodes == 4)
			check(&f,
				"0,31,0,total|0,12,0,a,0,19,17,b|0,8,8,d,0,4,4,other,17,2,2,other");
		for (size_t i = 0; i < f.level_count; i++) {
			const struct pyroscope_level *x = &f.levels[i], *y = &whole.levels[i];
			CHECK(x->count == y->count);
			for (size_t k = 0; k < x->count; k++)
				if (k % 4 == 3)
					CHECK(str_eq(f.names[x->v[k]], whole.names[y->v[k]]));
				else
					CHECK(x->v[k] == y->v[k]);
		}
		arena_deinit(&a);
	}
}

static void lays_out_two_sides(void **state)
{
	(void)state;
	/* root { e 5, b 3 } */
	static const uint32_t right_parents[] = { 0, 0, 0 }, right_names[] = { 0, 0, 1 };
	static const int64_t right_selves[] = { 0, 5, 3 };
	static const struct str right_strings[] = { { "e", 1 }, { "b", 1 } };
	struct pyroscope_side right = { 3, right_parents, right_names, right_strings,
		right_selves };
	struct pyroscope_flame f;
	struct arena a;
	struct err e;
	arena_init(&a, 1 << 20);
	CHECK_OK(pyroscope_flame_make(&side, &right, 0, &a, &f, &e), &e);
	check(&f, "0,31,0,0,8,0,total|"
		  "0,12,0,0,0,0,a,0,19,17,0,3,3,b,0,0,0,0,5,5,e|"
		  "0,4,4,0,0,0,c,0,8,8,0,0,0,d,17,2,2,3,0,0,c");
	CHECK(f.total == 39 && f.side_totals[0] == 31 && f.side_totals[1] == 8);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 65536);
	pyroscope_flame_encode(&f, 1, &b);
	struct reader r = reader_over(b.data, b.len);
	struct pb_field field;
	int levels = 0, texts = 0;
	CHECK(pb_next(&r, &field) && field.number == 1);
	struct reader inner = pb_message(&field);
	while (pb_next(&inner, &field)) {
		levels += field.number == 2;
		texts += field.number == 1;
		CHECK(field.number != 5 || field.u64 == 31);
	}
	CHECK(levels == 3 && texts == 6 && !inner.failed);
	arena_deinit(&a);
}

#define WIDE 40

/* The root has so many children, each of them there twice, with values from 1 to WIDE in sum. */
struct wide {
	struct str strings[WIDE];
	char texts[WIDE][2];
	uint32_t parents[2 * WIDE + 1], names[2 * WIDE + 1];
	int64_t selves[2 * WIDE + 1];
	struct pyroscope_side side;
};

static void make_wide(struct wide *w)
{
	*w = (struct wide){ 0 };
	for (uint32_t i = 0; i < WIDE; i++) {
		w->texts[i][0] = (char)('a' + i / 10);
		w->texts[i][1] = (char)('0' + i % 10);
		w->strings[i] = str_make(w->texts[i], 2);
		w->names[i + 1] = w->names[WIDE + i + 1] = i;
		w->selves[i + 1] = 17 * (i + 1) % (WIDE + 1) - 1;
		w->selves[WIDE + i + 1] = 1;
	}
	w->side = (struct pyroscope_side){ 2 * WIDE + 1, w->parents, w->names, w->strings,
		w->selves };
}

static void shows_the_largest_of_many(void **state)
{
	(void)state;
	struct wide w;
	make_wide(&w);
	for (int64_t nodes = 2; nodes <= WIDE + 1; nodes++) {
		struct pyroscope_flame f;
		struct arena a;
		struct err e;
		arena_init(&a, 1 << 20);
		CHECK_OK(pyroscope_flame_make(&w.side, NULL, nodes, &a, &f, &e), &e);
		/* Besides the root so many that one fewer is left for it, and "other". */
		int64_t shown = MIN(nodes, WIDE), least = nodes > WIDE ? 1 : WIDE + 2 - nodes;
		CHECK(f.level_count == 2 && f.levels[1].count == 4 * (size_t)shown);
		int64_t total = 0;
		for (int64_t i = 0; i < shown; i++) {
			const int64_t *t = &f.levels[1].v[4 * i];
			bool other = str_eq(f.names[t[3]], STR("other"));
			CHECK(other ? i == nodes - 1 : t[1] >= least);
			total += t[1];
		}
		CHECK(total == WIDE * (WIDE + 1) / 2 && f.total == total);
		arena_deinit(&a);
	}
}

static void joins_many_children_of_two_sides(void **state)
{
	(void)state;
	struct wide w;
	make_wide(&w);
	struct pyroscope_flame f;
	struct arena a;
	struct err e;
	arena_init(&a, 1 << 20);
	CHECK_OK(pyroscope_flame_make(&w.side, &w.side, 0, &a, &f, &e), &e);
	CHECK(f.level_count == 2 && f.levels[1].count == 7 * (size_t)WIDE);
	for (int64_t i = 0; i < WIDE; i++) {
		const int64_t *t = &f.levels[1].v[7 * i];
		CHECK(t[1] == 17 * (i + 1) % (WIDE + 1) && t[1] == t[4]);
		CHECK(str_eq(f.names[t[6]], w.strings[i]));
	}
	arena_deinit(&a);
}

TEST_MAIN(cmocka_unit_test(lays_out_one_side), cmocka_unit_test(lays_out_two_sides),
	cmocka_unit_test(adds_what_a_side_left_out), cmocka_unit_test(shows_the_largest_of_many),
	cmocka_unit_test(joins_many_children_of_two_sides))
