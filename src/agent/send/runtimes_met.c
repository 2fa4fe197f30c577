/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/send/runtimes_met.h"

#include "runtimes/runtimes.h"

#include <stdio.h>

void runtimes_met_add(struct runtimes_met *m, uint32_t what, bool is_whole)
{
	for (uint32_t i = 0; i < RUNTIMES_MET_MAX; i++) {
		struct runtime_met *v = &m->v[i];
		if (!metric_get(&v->what))
			metric_set(&v->what, what);
		if (metric_get(&v->what) != what)
			continue;
		metric_add(&v->whole, is_whole);
		metric_add(&v->samples, 1);
		return;
	}
}

void runtimes_met_name(uint32_t what, char out[RUNTIMES_MET_NAME_BYTES])
{
	unsigned kind = what >> 16, major = what >> 8 & 0xff, minor = what & 0xff;
	bool has_minor = kind != RUNTIME_HOTSPOT && kind != RUNTIME_BEAM;
	int n = snprintf(out, RUNTIMES_MET_NAME_BYTES, "%s %u", runtime_name(kind), major);
	if (has_minor && n > 0 && n < RUNTIMES_MET_NAME_BYTES)
		snprintf(out + n, RUNTIMES_MET_NAME_BYTES - (size_t)n, ".%u", minor);
}
