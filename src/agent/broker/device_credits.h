/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_credits: how long the broker may still be waited for, by device. Private to agent/
 * (broker.c). No clock and no lock of its own.
 *
 * A device that always answers late delays a thread that reads file after file as much as a device
 * that never answers. So each device has a credit, the time that the broker may wait for it. The
 * credit is at most DEVICE_CREDIT_NS and grows by DEVICE_CREDIT_SHARE_PERCENT of the time that
 * passes. A device without credit rests until it has half of it back, so that the next file on it
 * can get more than one answer.
 */
#pragma once

#include "base/clock.h"

#define DEVICE_CREDIT_NS (2 * NS_PER_SEC)
#define DEVICE_CREDIT_SHARE_PERCENT 10
/* Any answer may take so long without using up credit. */
#define DEVICE_CREDIT_FREE_NS (10 * NS_PER_MS)
/* Devices that are remembered. If there are more, the one with the most credit is forgotten. */
#define DEVICE_CREDITS_MAX 64

struct device_credit {
	uint64_t device;
	int64_t credit_ns; /* at `at_ns` */
	int64_t at_ns;     /* 0: the record is free */
	bool rests;        /* until it has half of it */
};

struct device_credits {
	int64_t most_ns; /* 0: DEVICE_CREDIT_NS */
	struct device_credit of[DEVICE_CREDITS_MAX];
};

void device_credits_charge(
	struct device_credits *d, uint64_t device, int64_t waited_ns, int64_t now_ns);
/* The device rests: it is not to be waited for now. */
bool device_credits_are_spent(const struct device_credits *d, uint64_t device, int64_t now_ns);
