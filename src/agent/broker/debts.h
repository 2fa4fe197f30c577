/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debts: how long devices have made us wait. Private to agent/ (broker.c). No clock and no lock of
 * its own.
 *
 * A device that answers late each time holds up whoever reads one file after the other no less than
 * one that never answers. So each has a credit of time that it may be waited for: DEBTS_CREDIT_NS,
 * which grows again by DEBTS_SHARE_PERCENT of the time that passes.
 */
#pragma once

#include "base/clock.h"

#define DEBTS_CREDIT_NS (2 * NS_PER_SEC)
#define DEBTS_SHARE_PERCENT 10
/* What any answer may take. */
#define DEBTS_FREE_NS (10 * NS_PER_MS)
/* Devices that are remembered; of more the one with the most credit is forgotten. */
#define DEBTS_DEVICES_MAX 64

struct debt {
	uint64_t device;
	int64_t credit_ns; /* at `at_ns` */
	int64_t at_ns;     /* 0: the record is free */
};

struct debts {
	struct debt of[DEBTS_DEVICES_MAX];
};

void debts_charge(struct debts *d, uint64_t device, int64_t waited_ns, int64_t now_ns);
/* It has used up more than its credit: it is not to be waited for now. */
bool debts_has(const struct debts *d, uint64_t device, int64_t now_ns);
