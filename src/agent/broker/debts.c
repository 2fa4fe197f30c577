/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/debts.h"

static int64_t credit_of(const struct debt *d, int64_t now_ns)
{
	int64_t grown_ns = (now_ns - d->at_ns) / 100 * DEBTS_SHARE_PERCENT;
	return d->at_ns ? MIN(d->credit_ns + grown_ns, (int64_t)DEBTS_CREDIT_NS) : DEBTS_CREDIT_NS;
}

static size_t find(const struct debts *d, uint64_t device)
{
	size_t i = 0;
	while (i < DEBTS_DEVICES_MAX && !(d->of[i].at_ns && d->of[i].device == device))
		i++;
	return i;
}

static size_t find_richest(const struct debts *d, int64_t now_ns)
{
	size_t best = 0;
	for (size_t i = 1; i < DEBTS_DEVICES_MAX; i++)
		if (credit_of(&d->of[i], now_ns) > credit_of(&d->of[best], now_ns))
			best = i;
	return best;
}

void debts_charge(struct debts *d, uint64_t device, int64_t waited_ns, int64_t now_ns)
{
	if (waited_ns <= DEBTS_FREE_NS)
		return;
	size_t i = find(d, device);
	if (i == DEBTS_DEVICES_MAX) {
		i = find_richest(d, now_ns);
		d->of[i] = (struct debt){ device, DEBTS_CREDIT_NS, now_ns };
	}
	d->of[i].credit_ns = credit_of(&d->of[i], now_ns) - waited_ns;
	d->of[i].at_ns = now_ns;
}

bool debts_has(const struct debts *d, uint64_t device, int64_t now_ns)
{
	size_t i = find(d, device);
	return i < DEBTS_DEVICES_MAX && credit_of(&d->of[i], now_ns) < 0;
}
