/* SPDX-License-Identifier: Apache-2.0 */
/* A table with one sparse and one dense page, and every way in which its bytes can be wrong. */
#include "test.h"

#include "unwind/pages.h"

static struct unwind_table *make(void)
{
	struct unwind_table *t = calloc(1, sizeof(*t));
	struct pages *p = pages_new(PAGES_BYTES_MAX);
	CHECK(t && p);
	struct unwind_rule rule = { UNWIND_CFA_SP, UNWIND_FP_SAME, 8, 0, -8 };
	for (uint32_t i = 0; i < 1000; i++) {
		rule.cfa_off = (int16_t)(8 + 8 * (i % 3));
		pages_put(p, i < 10 ? 0x10010 + i * 6000 : 0x20000 + i * 40, rule);
	}
	CHECK(pages_finish(p, t) == OK);
	pages_free(p);
	return t;
}

static void is_as_it_should_be(void **state)
{
	(void)state;
	struct unwind_table *t = make();
	struct err e = { 0 };
	CHECK_OK(unwind_table_check(t, &e), &e);
	CHECK(t->first_page == 1);
	unwind_table_free(t);
	unwind_table_free(NULL);
}

static void equal_tables_have_equal_hashes(void **state)
{
	(void)state;
	struct unwind_table *t[2] = { make(), make() };
	struct hash128 h = unwind_table_hash(t[0]);
	CHECK(hash128_eq(h, unwind_table_hash(t[1])));
	for (uint32_t i = 0; i < t[1]->pages[0].blob_len; i++) {
		uint8_t *byte = (uint8_t *)t[1]->memory +
				(t[1]->pages[0].blob - (const uint8_t *)t[1]->memory) + i;
		*byte ^= 1;
		CHECK(!hash128_eq(h, unwind_table_hash(t[1])));
		*byte ^= 1;
	}
	t[1]->first_page++;
	CHECK(!hash128_eq(h, unwind_table_hash(t[1])));
	unwind_table_free(t[0]);
	unwind_table_free(t[1]);
}

static void says_nothing_outside(void **state)
{
	(void)state;
	struct unwind_table *t = make();
	CHECK(unwind_table_find(t, 0).cfa == UNWIND_CFA_NONE);
	CHECK(unwind_table_find(t, 0xffff).cfa == UNWIND_CFA_NONE);
	CHECK(unwind_table_find(t, 0x1000f).cfa == UNWIND_CFA_NONE);
	CHECK(unwind_table_find(t, 0x10010).cfa == UNWIND_CFA_SP);
	CHECK(unwind_table_find(t, 1ull << 40).cfa == UNWIND_CFA_NONE);
	CHECK(unwind_table_find(t, UINT64_MAX).cfa == UNWIND_CFA_NONE);
	unwind_table_free(t);
}

/* Two pages made by hand, small enough to damage byte by byte. */
struct made {
	struct unwind_table t;
	struct unwind_table_page page;
	uint8_t bytes[UNWIND_DENSE_HEAD_BYTES + 2 * 8 + 3 * 2];
};

static void make_sparse(struct made *m)
{
	static const uint8_t blob[] = { 1, 0, 8, 0, 0, 0, 0xf8, 0xff, 7, 0, 0, 0, 0, 0, 0, 0,
		/* rows at 0, 16, 300 */ 0, 0, 16, 0, 0x2c, 1, 0, 1, 0 };
	*m = (struct made){ .t = { .page_count = 1 } };
	memcpy(m->bytes, blob, sizeof(blob));
	m->page = (struct unwind_table_page){ m->bytes, sizeof(blob), 2, 3 };
	m->t.pages = &m->page;
}

static void put_u16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)v;
	at[1] = (uint8_t)(v >> 8);
}

static void make_dense(struct made *m)
{
	struct made sparse;
	make_sparse(&sparse);
	*m = (struct made){ .t = { .page_count = 1 } };
	put_u16(m->bytes, 0);
	put_u16(m->bytes + 2, 2);
	for (uint32_t i = 2; i < UNWIND_DENSE_STARTS; i++)
		put_u16(m->bytes + i * 2, 3);
	memcpy(m->bytes + UNWIND_DENSE_HEAD_BYTES, sparse.bytes, 16);
	memcpy(m->bytes + UNWIND_DENSE_HEAD_BYTES + 16, "\x00\x00\x10\x01\x2c\x00", 6);
	m->page = (struct unwind_table_page){ m->bytes, sizeof(m->bytes), 2, 0 };
	m->t.pages = &m->page;
}

static void both_forms_answer_alike(void **state)
{
	(void)state;
	struct made s, d;
	make_sparse(&s);
	make_dense(&d);
	CHECK(unwind_table_check(&s.t, NULL) == OK && unwind_table_check(&d.t, NULL) == OK);
	for (uint64_t o = 0; o < 0x10000; o += 4) {
		struct unwind_rule want = unwind_table_find(&s.t, o);
		struct unwind_rule got = unwind_table_find(&d.t, o);
		CHECK(memcmp(&want, &got, sizeof(want)) == 0);
		CHECK(want.cfa == (o >= 16 && o < 300 ? UNWIND_CFA_STOP : UNWIND_CFA_SP));
	}
}

/* clang-format off */
static const struct {
	const char *name; bool dense; size_t at; uint32_t value; /* u16 */
} damage[] = {
	{ "sparse: a rule of no kind",       false, 0, UNWIND_CFA_COUNT },
	{ "sparse: fp of no kind",           false, 8, UNWIND_FP_COUNT << 8 },
	{ "sparse: no row at 0",             false, 16, 1 },
	{ "sparse: the same offset twice",   false, 18, 0 },
	{ "sparse: not ascending",           false, 20, 15 },
	{ "sparse: a row of no rule",        false, 22, 2 },
	{ "dense: a rule of no kind",        true, UNWIND_DENSE_HEAD_BYTES, UNWIND_CFA_COUNT },
	{ "dense: does not begin at row 0",  true, 0, 1 },
	{ "dense: first bucket is empty",    true, 2, 0 },
	{ "dense: buckets go back",          true, 4, 1 },
	{ "dense: behind the last row",      true, 6, 4 },
	{ "dense: more rows than bytes",     true, 512, 4 },
	{ "dense: fewer rows than bytes",    true, 512, 2 },
	{ "dense: no row",                   true, 512, 0 },
	{ "dense: row 0 not at 0",           true, UNWIND_DENSE_HEAD_BYTES + 16, 1 },
	{ "dense: not ascending",            true, UNWIND_DENSE_HEAD_BYTES + 18, 0x0100 },
	{ "dense: a row of no rule",         true, UNWIND_DENSE_HEAD_BYTES + 20, 0x022c },
};
/* clang-format on */

static void refuses_damaged_blobs(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, damage) {
		struct made m;
		if (c->dense)
			make_dense(&m);
		else
			make_sparse(&m);
		put_u16(m.bytes + c->at, c->value);
		struct err e = { 0 };
		CHECK_CASE(c, unwind_table_check(&m.t, &e) == E_CORRUPT && e.text[0]);
	}
}

static void refuses_wrong_counts(void **state)
{
	(void)state;
	for (int i = 0; i < 9; i++) {
		struct made m;
		if (i < 5)
			make_sparse(&m);
		else
			make_dense(&m);
		m.page.blob_len -= i == 0 || i == 5;
		m.page.rule_count = i == 1 || i == 6   ? 0
				    : i == 2 || i == 7 ? 256
						       : m.page.rule_count;
		m.page.row_count = i == 3 ? UNWIND_SPARSE_ROWS_MAX + 1 : m.page.row_count;
		if (i == 4)
			m.page.blob = NULL; /* counts without bytes */
		if (i == 8)
			m.page.blob_len = UNWIND_DENSE_HEAD_BYTES - 1;
		CHECK(unwind_table_check(&m.t, NULL) == E_CORRUPT);
	}
}

TEST_MAIN(cmocka_unit_test(is_as_it_should_be), cmocka_unit_test(says_nothing_outside),
	cmocka_unit_test(equal_tables_have_equal_hashes), cmocka_unit_test(both_forms_answer_alike),
	cmocka_unit_test(refuses_damaged_blobs), cmocka_unit_test(refuses_wrong_counts))
