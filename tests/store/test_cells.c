/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of random cells equal those of a plain table, however little memory there is for them. */
#include "tests/store/fixture.h"

#include "store/read/cells.h"

enum { NODES = 300, GROUPS = 20 };

static uint64_t state_of = 1;

static uint32_t below(uint32_t n)
{
	state_of += 0x9E3779B97F4A7C15ull;
	return (uint32_t)(hash_u64(state_of) % n);
}

/* Numbers with something in each byte, ascending as i does. */
static uint32_t wide(uint32_t i)
{
	return i * 0x00A1B2C3u;
}

static void check_ascends(const struct cells *c, size_t from)
{
	for (size_t i = from + 1; i < c->len; i++)
		CHECK(c->v[i - 1].node < c->v[i].node ||
			(c->v[i - 1].node == c->v[i].node && c->v[i - 1].group < c->v[i].group));
}

/* Rows of several sources, whose cells are set aside one after the other. */
static void sums_equal_a_table(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t limit;
		int rows;
	} cases[] = {
		{ "none", 1 << 20, 0 },
		{ "few", 1 << 20, 10 },
		{ "many", 1 << 20, 40000 },
		{ "as many as there is room for", NODES * GROUPS / 4 * 9 * 16, 40000 },
	};
	FOR_EACH_CASE (k, cases) {
		static int64_t want[NODES][GROUPS];
		struct budget b = { .limit = k->limit };
		struct cells c;
		size_t count = 0, n;
		memset(want, 0, sizeof(want));
		cells_init(&c, false, &b);
		for (int i = 0; i < k->rows; i++) {
			uint32_t node = below(NODES), group = below(GROUPS), run = 1 + below(3);
			for (uint32_t j = 0; j < run; j++) {
				int64_t value = (int64_t)below(1000) - 300;
				want[node][group] += value;
				CHECK(cells_add(&c, wide(node), wide(group), value, NULL) == OK);
			}
			if (i % 9000 == 8999) {
				cells_settle(&c);
				check_ascends(&c, c.begin);
				cells_set_aside(&c);
			}
		}
		cells_finish(&c);
		check_ascends(&c, 0);
		for (size_t i = 0; i < c.len; i++)
			CHECK_CASE(k, c.v[i].value ==
					      want[c.v[i].node / wide(1)][c.v[i].group / wide(1)]);
		for (uint32_t i = 0; i < NODES; i++)
			for (uint32_t j = 0; j < GROUPS; j++)
				count += want[i][j] != 0;
		CHECK_CASE(k, c.len >= count && b.used <= b.limit);
		struct samples_cell *v = cells_steal(&c, &n);
		CHECK_CASE(k, n >= count && b.used == 0 && c.len == 0);
		free(v);
		cells_deinit(&c);
	}
}

static void adds_fractions(void **state)
{
	(void)state;
	struct budget b = { .limit = 1 << 20 };
	struct cells c;
	double parts[] = { 0.25, 2, -0.5 }, sum;
	cells_init(&c, true, &b);
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		int64_t bits;
		memcpy(&bits, &parts[i], sizeof(bits));
		CHECK(cells_add(&c, 7, 1, bits, NULL) == OK);
		CHECK(cells_add(&c, 3, 1, bits, NULL) == OK);
	}
	cells_finish(&c);
	CHECK(c.len == 2 && c.v[0].node == 3 && c.v[1].node == 7);
	memcpy(&sum, &c.v[1].value, sizeof(sum));
	CHECK(sum == 1.75);
	cells_deinit(&c);
	CHECK(b.used == 0);
}

static void says_when_there_is_no_room(void **state)
{
	(void)state;
	struct budget b = { .limit = 100000 };
	struct cells c;
	struct err e = { 0 };
	enum status s = OK;
	uint32_t n = 0;
	cells_init(&c, false, &b);
	for (; s == OK; n++)
		s = cells_add(&c, n, 0, 1, &e);
	CHECK(s == E_LIMIT && e.text[0]);
	CHECK(n > 100000 / 16 / 2 && c.len == n - 1 && b.used <= b.limit);
	cells_deinit(&c);
	CHECK(b.used == 0);
}

TEST_MAIN(cmocka_unit_test(sums_equal_a_table), cmocka_unit_test(adds_fractions),
	cmocka_unit_test(says_when_there_is_no_room))
