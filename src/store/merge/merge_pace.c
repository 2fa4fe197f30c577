/* SPDX-License-Identifier: Apache-2.0 */
#include "store/merge/merge_pace.h"

#include "base/clock.h"

int64_t merge_pace_delay_ns(int64_t wall_ns, int64_t cpu_ns, uint64_t bytes)
{
	int64_t by_cpu = cpu_ns * 100 / MERGE_CPU_PERCENT;
	int64_t by_bytes = (int64_t)((double)bytes * (double)NS_PER_SEC / MERGE_BYTES_PER_SECOND);
	return MAX(MAX(by_cpu, by_bytes) - wall_ns, (int64_t)0);
}

void merge_pace_begin(struct merge_pace *p)
{
	*p = (struct merge_pace){ clock_monotonic_ns(), clock_thread_cpu_ns() };
}

/* With the store's lock held. */
static bool is_behind(const struct store *s)
{
	size_t young = 0;
	for (size_t i = 0; i < s->parts.len; i++)
		young += part_meta(s->parts.v[i])->level == 0;
	return young >= MERGE_BEHIND_PARTS;
}

bool merge_pace_wait(struct merge_pace *p, struct store *s, uint64_t bytes)
{
	int64_t now = clock_monotonic_ns();
	int64_t delay =
		merge_pace_delay_ns(now - p->wall_ns, clock_thread_cpu_ns() - p->cpu_ns, bytes);
	lock_take(&s->lock);
	bool background = s->merger_runs && pthread_equal(pthread_self(), s->merger) &&
			  (delay == 0 || !is_behind(s));
	int64_t until = now + MIN(delay, MERGE_PAUSE_NS_MAX);
	while (background && !s->stopping && clock_monotonic_ns() < until) {
		struct timespec t = { until / NS_PER_SEC, until % NS_PER_SEC };
		(void)lock_wait_until(&s->merge_wake, &s->lock, &t);
	}
	bool stop = s->stopping;
	lock_release(&s->lock);
	return !stop;
}
