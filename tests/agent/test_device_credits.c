/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/device_credits.h"
#include "test.h"

#define BEGIN_NS (1000 * NS_PER_SEC)

static void waits_within_the_credit(void **state)
{
	(void)state;
	struct device_credits d = { 0 };
	CHECK(!device_credits_are_spent(&d, 7, BEGIN_NS));
	device_credits_charge(&d, 7, 1 * NS_PER_SEC, BEGIN_NS);
	device_credits_charge(&d, 7, 1 * NS_PER_SEC, BEGIN_NS);
	CHECK(!device_credits_are_spent(&d, 7, BEGIN_NS)); /* nothing left, and no debt */
	device_credits_charge(&d, 7, DEVICE_CREDIT_FREE_NS, BEGIN_NS);
	CHECK(!device_credits_are_spent(&d, 7, BEGIN_NS));
	device_credits_charge(&d, 7, DEVICE_CREDIT_FREE_NS + 1, BEGIN_NS);
	CHECK(device_credits_are_spent(&d, 7, BEGIN_NS));
	CHECK(!device_credits_are_spent(&d, 8, BEGIN_NS));
}

/* What was waited too much is back after ten times as long. */
static void lets_a_debtor_rest(void **state)
{
	(void)state;
	struct device_credits d = { 0 };
	device_credits_charge(&d, 0, 5 * NS_PER_SEC, BEGIN_NS);
	CHECK(device_credits_are_spent(&d, 0, BEGIN_NS));
	CHECK(device_credits_are_spent(&d, 0, BEGIN_NS + 30 * NS_PER_SEC - NS_PER_MS));
	CHECK(!device_credits_are_spent(&d, 0, BEGIN_NS + 30 * NS_PER_SEC));
	/* It is not richer than in the beginning after a long time. */
	device_credits_charge(&d, 0, 3 * NS_PER_SEC, BEGIN_NS + 100000 * NS_PER_SEC);
	CHECK(device_credits_are_spent(&d, 0, BEGIN_NS + 100009 * NS_PER_SEC));
	CHECK(!device_credits_are_spent(&d, 0, BEGIN_NS + 100010 * NS_PER_SEC));
}

/* Many that are a little slow do not make it forget the one in debt. */
static void forgets_the_richest(void **state)
{
	(void)state;
	struct device_credits d = { 0 };
	device_credits_charge(&d, 1, 100 * NS_PER_SEC, BEGIN_NS);
	for (uint64_t i = 2; i < 10 * DEVICE_CREDITS_MAX; i++)
		device_credits_charge(&d, i, NS_PER_SEC, BEGIN_NS);
	CHECK(device_credits_are_spent(&d, 1, BEGIN_NS));
	device_credits_charge(&d, 10 * DEVICE_CREDITS_MAX, 5 * NS_PER_SEC, BEGIN_NS);
	CHECK(device_credits_are_spent(&d, 10 * DEVICE_CREDITS_MAX, BEGIN_NS));
	CHECK(device_credits_are_spent(&d, 1, BEGIN_NS));
}

TEST_MAIN(cmocka_unit_test(waits_within_the_credit), cmocka_unit_test(lets_a_debtor_rest),
	cmocka_unit_test(forgets_the_richest))
