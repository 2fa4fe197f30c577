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

TEST_MAIN(cmocka_unit_test(lays_out_one_side), cmocka_unit_test(lays_out_two_sides))
