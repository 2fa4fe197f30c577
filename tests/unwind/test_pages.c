/* SPDX-License-Identifier: Apache-2.0 */
/* Rows put into pages against the plainest model: the list of what was put, searched backwards. */
#include "test.h"

#include "base/hash.h"
#include "unwind/pages.h"

struct put {
	uint64_t offset;
	struct unwind_rule rule;
};

struct model {
	VEC(struct put) rows;
	struct pages *pages;
	struct unwind_table table;
	uint64_t seed;
};

static uint32_t random_below(struct model *m, uint32_t n)
{
	m->seed = m->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(m->seed >> 33) % n;
}

static struct unwind_rule rule_number(uint32_t n)
{
	return (struct unwind_rule){ UNWIND_CFA_SP, UNWIND_FP_SAME, (int16_t)(8 + 8 * (n % 4000)),
		(int16_t)(n / 4000), -8 };
}

static const struct unwind_rule none;
static const struct unwind_rule unsupported = { .cfa = UNWIND_CFA_UNSUPPORTED };

static void begin(struct model *m, uint64_t seed)
{
	*m = (struct model){ .pages = pages_new(PAGES_BYTES_MAX), .seed = seed };
	CHECK(m->pages != NULL);
}

static void put(struct model *m, uint64_t offset, struct unwind_rule rule)
{
	pages_put(m->pages, offset, rule);
	CHECK(VEC_PUSH(&m->rows, (struct put){ offset, rule }));
}

static void finish(struct model *m)
{
	struct err e = { 0 };
	CHECK(pages_finish(m->pages, &m->table) == OK);
	CHECK_OK(unwind_table_check(&m->table, &e), &e);
}

static void end(struct model *m)
{
	VEC_FREE(&m->rows);
	pages_free(m->pages);
	free(m->table.pages);
	free(m->table.memory);
}

static bool same(struct unwind_rule a, struct unwind_rule b)
{
	return memcmp(&a, &b, sizeof(a)) == 0;
}

/* The model's answer, by binary search for the last row at or before. */
static struct unwind_rule model_find(const struct model *m, uint64_t offset)
{
	size_t from = 0, to = m->rows.len;
	while (from < to) {
		size_t middle = (from + to) / 2;
		if (m->rows.v[middle].offset <= offset)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? m->rows.v[from - 1].rule : none;
}

/* How many answers differ, of which none but to UNSUPPORTED. */
static size_t compare(const struct model *m)
{
	size_t different = 0;
	for (size_t i = 0; i < m->rows.len; i++) {
		uint64_t at = m->rows.v[i].offset;
		for (uint64_t o = at ? at - 1 : 0; o <= at + 1; o++) {
			struct unwind_rule got = unwind_table_find(&m->table, o);
			if (same(got, model_find(m, o)))
				continue;
			CHECK(same(got, unsupported));
			different++;
		}
	}
	return different;
}

/* clang-format off */
static const struct {
	const char *name; uint32_t rows; uint32_t step; uint32_t rules; uint64_t first;
} shapes[] = {
	{ "one row",                1,     1,      1,   0x12345 },
	{ "sparse",                 100,   1000,   5,   0x1000 },
	{ "127 rows in a page",     126,   100,    9,   0x10001 },
	{ "128 rows in a page",     127,   100,    9,   0x10001 },
	{ "dense",                  50000, 20,     200, 0x400 },
	{ "every byte",             20000, 1,      3,   0xfff0 },
	{ "pages apart",            50,    900000, 7,   0 },
	{ "255 rules",              20000, 30,     254, 0x20000 },
	{ "high in a large file",   3000,  300,    50,  0x3fff00000 },
};
/* clang-format on */

static void answers_as_the_model(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, shapes) {
		struct model m;
		begin(&m, 42);
		uint64_t offset = c->first;
		for (uint32_t i = 0; i < c->rows; i++) {
			uint32_t pick = random_below(&m, c->rules + 1);
			put(&m, offset, pick == c->rules ? none : rule_number(pick));
			offset += c->step == 1 ? 1 : 1 + random_below(&m, 2 * c->step);
		}
		put(&m, offset, none);
		finish(&m);
		CHECK_CASE(c, compare(&m) == 0);
		CHECK_CASE(c, m.table.unsupported_rows == 0);
		CHECK_CASE(c, same(unwind_table_find(&m.table, offset + 1000000), none));
		CHECK_CASE(c, c->first == 0 || same(unwind_table_find(&m.table, 0), none));
		end(&m);
	}
}

static void rare_rules_of_a_full_dictionary_are_unsupported(void **state)
{
	(void)state;
	struct model m;
	begin(&m, 7);
	/* 100 rules of many rows, then 400 of one row each, in one page */
	uint32_t at = 0;
	for (uint32_t i = 0; i < 2000; i++)
		put(&m, at += 8, rule_number(i % 100));
	for (uint32_t i = 0; i < 400; i++)
		put(&m, at += 8, rule_number(1000 + i));
	put(&m, at + 8, none);
	finish(&m);
	CHECK(m.table.page_count == 1 && m.table.pages[0].rule_count == UNWIND_RULES_MAX);
	for (uint32_t i = 0; i < 2000; i++)
		CHECK(same(unwind_table_find(&m.table, m.rows.v[i].offset), m.rows.v[i].rule));
	uint32_t kept = 0;
	for (uint32_t i = 2000; i < 2400; i++)
		kept += same(unwind_table_find(&m.table, m.rows.v[i].offset), m.rows.v[i].rule);
	CHECK(kept >= UNWIND_RULES_MAX - 103 && kept <= UNWIND_RULES_MAX - 100);
	CHECK(compare(&m) > 0);
	CHECK(m.table.unsupported_rows > 0);
	end(&m);
}

static void more_rules_than_are_counted(void **state)
{
	(void)state;
	struct model m;
	begin(&m, 7);
	for (uint32_t i = 0; i < 2 * PAGES_RULES_MAX; i++)
		put(&m, i * 4, rule_number(i));
	put(&m, 8 * PAGES_RULES_MAX, none);
	finish(&m);
	CHECK(compare(&m) > 0); /* to UNSUPPORTED only */
	end(&m);
}

static void more_rows_than_a_page_holds(void **state)
{
	(void)state;
	struct model m;
	begin(&m, 7);
	for (uint32_t i = 0; i < 65536 + 100; i++)
		put(&m, i, rule_number(i % 7));
	put(&m, 65536 + 100, none);
	finish(&m);
	CHECK(m.table.page_count == 2);
	CHECK(m.table.pages[0].blob_len <= UNWIND_BLOB_BYTES_MAX);
	CHECK(same(unwind_table_find(&m.table, 30000), rule_number(30000 % 7)));
	CHECK(same(unwind_table_find(&m.table, 65000), unsupported));
	CHECK(same(unwind_table_find(&m.table, 65537), rule_number(65537 % 7)));
	(void)compare(&m);
	end(&m);
}

static void the_last_word_on_an_offset_counts(void **state)
{
	(void)state;
	struct model m;
	begin(&m, 7);
	put(&m, 0x100, rule_number(1));
	put(&m, 0x110, rule_number(2));
	put(&m, 0x110, rule_number(1)); /* as before: no row at all */
	put(&m, 0x120, rule_number(3));
	put(&m, 0x120, rule_number(4));
	put(&m, 0x10000, rule_number(5)); /* first byte of a page */
	put(&m, 0x10000, rule_number(4));
	put(&m, 0x10010, none);
	finish(&m);
	CHECK(same(unwind_table_find(&m.table, 0x110), rule_number(1)));
	CHECK(same(unwind_table_find(&m.table, 0x120), rule_number(4)));
	CHECK(same(unwind_table_find(&m.table, 0x10000), rule_number(4)));
	CHECK(m.table.pages[0].row_count == 3); /* carried, 0x100, 0x120 */
	CHECK(m.table.pages[1].row_count == 2);
	end(&m);
}

static void a_rule_reaches_over_pages_and_gaps_have_no_blob(void **state)
{
	(void)state;
	struct model m;
	begin(&m, 7);
	put(&m, 0x8000, rule_number(1));
	put(&m, 0x38000, none);
	put(&m, 0x98000, rule_number(2));
	put(&m, 0x98010, none);
	finish(&m);
	CHECK(m.table.first_page == 0 && m.table.page_count == 10);
	CHECK(same(unwind_table_find(&m.table, 0x21234), rule_number(1)));
	CHECK(m.table.pages[2].row_count == 1 && m.table.pages[2].blob_len == 11);
	CHECK(!m.table.pages[5].blob && same(unwind_table_find(&m.table, 0x51234), none));
	CHECK(compare(&m) == 0);
	end(&m);
}

static void nothing_put_is_an_empty_table(void **state)
{
	(void)state;
	struct model m;
	begin(&m, 7);
	put(&m, 0x8000, none);
	finish(&m);
	CHECK(m.table.page_count == 0 && m.table.row_count == 0);
	end(&m);
}

/* Rules that all begin at one place of the hash table. */
static void rules_that_collide(void **state)
{
	(void)state;
	enum { COUNT = 1000, SLOTS = 2 * PAGES_RULES_MAX };
	struct model m;
	begin(&m, 8);
	uint32_t count = 0;
	for (uint64_t n = 0; count < COUNT; n++) {
		struct unwind_rule rule = { UNWIND_CFA_SP, UNWIND_FP_SAVED, (int16_t)n,
			(int16_t)(n >> 16), (int16_t)(n >> 32) };
		uint64_t key;
		memcpy(&key, &rule, sizeof(key));
		if (hash_u64(key) % SLOTS == 7)
			put(&m, 16 * count++, rule);
	}
	finish(&m);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < COUNT; i++) {
		struct unwind_rule found = unwind_table_find(&m.table, 16 * i);
		kept += same(found, m.rows.v[i].rule);
		CHECK(same(found, m.rows.v[i].rule) || same(found, unsupported));
	}
	CHECK(kept == PAGES_PROBES_MAX);
	end(&m);
}

TEST_MAIN(cmocka_unit_test(answers_as_the_model),
	cmocka_unit_test(rare_rules_of_a_full_dictionary_are_unsupported),
	cmocka_unit_test(more_rules_than_are_counted),
	cmocka_unit_test(more_rows_than_a_page_holds), cmocka_unit_test(rules_that_collide),
	cmocka_unit_test(the_last_word_on_an_offset_counts),
	cmocka_unit_test(a_rule_reaches_over_pages_and_gaps_have_no_blob),
	cmocka_unit_test(nothing_put_is_an_empty_table))
