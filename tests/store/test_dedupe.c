/* SPDX-License-Identifier: Apache-2.0 */
#include "store/state/dedupe.h"

#include "tests/store/fixture.h"

static struct hash128 id_of(uint64_t n)
{
	return (struct hash128){ n, n ^ 0x55 };
}

static void answers(void **state)
{
	(void)state;
	struct dedupe d;
	dedupe_init(&d, UINT64_MAX);
	CHECK(dedupe_begin(&d, id_of(1), T0) == DEDUPE_NEW);
	CHECK(dedupe_begin(&d, id_of(1), T0) == DEDUPE_PENDING);
	dedupe_end(&d, id_of(1), T0, true);
	CHECK(dedupe_begin(&d, id_of(1), T0) == DEDUPE_KNOWN);
	CHECK(dedupe_begin(&d, id_of(2), T0) == DEDUPE_NEW);
	dedupe_end(&d, id_of(2), T0, false);
	CHECK(dedupe_begin(&d, id_of(2), T0) == DEDUPE_NEW); /* it may be tried again */
	dedupe_end(&d, id_of(2), T0, true);
	dedupe_add(&d, id_of(3), T0);
	CHECK(dedupe_begin(&d, id_of(3), T0) == DEDUPE_KNOWN);
	struct hash128 none = { 0 };
	CHECK(dedupe_begin(&d, none, T0) == DEDUPE_NEW);
	CHECK(dedupe_begin(&d, none, T0) == DEDUPE_NEW);
	dedupe_end(&d, none, T0, true);
	dedupe_deinit(&d);
}

static void forgets_after_an_hour(void **state)
{
	(void)state;
	struct dedupe d;
	dedupe_init(&d, UINT64_MAX);
	for (uint64_t i = 1; i <= 5000; i++) {
		CHECK(dedupe_begin(&d, id_of(i), T0 + (int64_t)i * SEC) == DEDUPE_NEW);
		dedupe_end(&d, id_of(i), T0 + (int64_t)i * SEC, true);
	}
	CHECK(d.count == 3601);
	CHECK(dedupe_begin(&d, id_of(5000), T0 + 5000 * SEC) == DEDUPE_KNOWN);
	CHECK(dedupe_begin(&d, id_of(1400), T0 + 5000 * SEC) == DEDUPE_KNOWN);
	CHECK(dedupe_begin(&d, id_of(1399), T0 + 5000 * SEC) == DEDUPE_NEW);
	dedupe_deinit(&d);
}

/* After a start, what parts hold does not come in the order of arrival. */
static void forgets_in_any_order(void **state)
{
	(void)state;
	struct dedupe d;
	dedupe_init(&d, UINT64_MAX);
	dedupe_add(&d, id_of(1), T0 + 3000 * SEC);
	dedupe_add(&d, id_of(2), T0);
	CHECK(dedupe_begin(&d, id_of(2), T0 + 3600 * SEC) == DEDUPE_KNOWN);
	CHECK(dedupe_begin(&d, id_of(2), T0 + 3601 * SEC) == DEDUPE_NEW);
	CHECK(dedupe_begin(&d, id_of(2), T0 + 3601 * SEC) == DEDUPE_PENDING);
	dedupe_end(&d, id_of(2), T0 + 3601 * SEC, true);
	CHECK(dedupe_begin(&d, id_of(1), T0 + 3601 * SEC) == DEDUPE_KNOWN);
	CHECK(dedupe_begin(&d, id_of(1), T0 + 7000 * SEC) == DEDUPE_NEW);
	dedupe_end(&d, id_of(1), T0 + 7000 * SEC, true);
	CHECK(dedupe_begin(&d, id_of(2), T0 + 7000 * SEC) == DEDUPE_KNOWN);
	dedupe_deinit(&d);
}

static void has_a_limit(void **state)
{
	(void)state;
	struct dedupe d;
	dedupe_init(&d, UINT64_MAX);
	for (uint64_t i = 1; i <= DEDUPE_MAX + 10; i++)
		dedupe_add(&d, id_of(i), T0);
	CHECK(d.count == DEDUPE_MAX && d.cap == DEDUPE_MAX);
	CHECK(dedupe_begin(&d, id_of(11), T0) == DEDUPE_KNOWN);
	CHECK(dedupe_begin(&d, id_of(10), T0) == DEDUPE_NEW);
	dedupe_deinit(&d);
}

static void less_memory_remembers_less(void **state)
{
	(void)state;
	struct dedupe d;
	dedupe_init(&d, 2 * DEDUPE_MIN * DEDUPE_ENTRY_BYTES);
	for (uint64_t i = 1; i <= 3 * DEDUPE_MIN; i++)
		dedupe_add(&d, (struct hash128){ i, i }, 1000);
	CHECK(d.count == 2 * DEDUPE_MIN && d.cap == 2 * DEDUPE_MIN);
	CHECK(dedupe_begin(&d, (struct hash128){ 1, 1 }, 1000) == DEDUPE_NEW);
	CHECK(dedupe_begin(&d, (struct hash128){ 3 * DEDUPE_MIN, 3 * DEDUPE_MIN }, 1000) ==
		DEDUPE_KNOWN);
	size_t slots = d.index.mask + 1;
	CHECK(d.cap * sizeof(*d.v) + slots * sizeof(uint64_t) * 2 <= d.max * DEDUPE_ENTRY_BYTES);
	dedupe_deinit(&d);
	dedupe_init(&d, 0);
	CHECK(d.max == DEDUPE_MIN);
	dedupe_deinit(&d);
}

TEST_MAIN(cmocka_unit_test(less_memory_remembers_less), cmocka_unit_test(answers),
	cmocka_unit_test(forgets_after_an_hour), cmocka_unit_test(forgets_in_any_order),
	cmocka_unit_test(has_a_limit))
