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

/* What was waited too much, and half of the credit, are back after ten times as long. */
static void lets_a_debtor_rest(void **state)
{
	(void)state;
	struct device_credits d = { 0 };
	device_credits_charge(&d, 0, 5 * NS_PER_SEC, BEGIN_NS);
	CHECK(device_credits_are_spent(&d, 0, BEGIN_NS));
	CHECK(device_credits_are_spent(&d, 0, BEGIN_NS + 40 * NS_PER_SEC - NS_PER_MS));
	CHECK(!device_credits_are_spent(&d, 0, BEGIN_NS + 40 * NS_PER_SEC));
	/* It is not richer than in the beginning after a long time. */
	device_credits_charge(&d, 0, 3 * NS_PER_SEC, BEGIN_NS + 100000 * NS_PER_SEC);
	CHECK(device_credits_are_spent(&d, 0, BEGIN_NS + 100019 * NS_PER_SEC));
	CHECK(!device_credits_are_spent(&d, 0, BEGIN_NS + 100020 * NS_PER_SEC));
}

/* A device is not asked for one answer each time that its debt is just paid. */
static void goes_on_with_half_of_its_credit(void **state)
{
	(void)state;
	struct device_credits d = { .most_ns = 10 * NS_PER_SEC };
	device_credits_charge(&d, 3, 11 * NS_PER_SEC, BEGIN_NS);
	int64_t now = BEGIN_NS + 60 * NS_PER_SEC; /* 1 s of debt, 5 s of credit */
	CHECK(device_credits_are_spent(&d, 3, now - NS_PER_MS));
	for (int i = 0; i < 5; i++) {
		CHECK(!device_credits_are_spent(&d, 3, now));
		device_credits_charge(&d, 3, NS_PER_SEC, now);
	}
	CHECK(!device_credits_are_spent(&d, 3, now));
	device_credits_charge(&d, 3, NS_PER_SEC, now);
	CHECK(device_credits_are_spent(&d, 3, now));
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
	cmocka_unit_test(goes_on_with_half_of_its_credit), cmocka_unit_test(forgets_the_richest))
