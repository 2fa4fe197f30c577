/* SPDX-License-Identifier: Apache-2.0 */
/* A linear search: there are few devices, and each answer of a broker took a system call. */
#include "agent/broker/device_credits.h"

static int64_t most_of(const struct device_credits *d)
{
	return d->most_ns ? d->most_ns : DEVICE_CREDIT_NS;
}

static int64_t credit_of(const struct device_credits *d, size_t i, int64_t now_ns)
{
	int64_t grown_ns = (now_ns - d->of[i].at_ns) / 100 * DEVICE_CREDIT_SHARE_PERCENT;
	return d->of[i].at_ns ? MIN(d->of[i].credit_ns + grown_ns, most_of(d)) : most_of(d);
}

static size_t find(const struct device_credits *d, uint64_t device)
{
	size_t i = 0;
	while (i < DEVICE_CREDITS_MAX && !(d->of[i].at_ns && d->of[i].device == device))
		i++;
	return i;
}

static size_t find_richest(const struct device_credits *d, int64_t now_ns)
{
	size_t best = 0;
	for (size_t i = 1; i < DEVICE_CREDITS_MAX; i++)
		if (credit_of(d, i, now_ns) > credit_of(d, best, now_ns))
			best = i;
	return best;
}

void device_credits_charge(
	struct device_credits *d, uint64_t device, int64_t waited_ns, int64_t now_ns)
{
	if (waited_ns <= DEVICE_CREDIT_FREE_NS)
		return;
	size_t i = find(d, device);
	if (i == DEVICE_CREDITS_MAX) {
		i = find_richest(d, now_ns);
		d->of[i] = (struct device_credit){ device, most_of(d), now_ns, false };
	}
	d->of[i].credit_ns = credit_of(d, i, now_ns) - waited_ns;
	d->of[i].at_ns = now_ns;
	d->of[i].rests = d->of[i].credit_ns < 0;
}

bool device_credits_are_spent(const struct device_credits *d, uint64_t device, int64_t now_ns)
{
	size_t i = find(d, device);
	return i < DEVICE_CREDITS_MAX && d->of[i].rests && credit_of(d, i, now_ns) < most_of(d) / 2;
}
