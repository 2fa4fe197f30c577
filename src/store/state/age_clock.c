/* SPDX-License-Identifier: Apache-2.0 */
/*
 * There are two checks of the clock. If it was set, the wait begins anew: nothing counts as old
 * while programs still correct the time. If it is far ahead of the last trusted time plus the time
 * that has passed since, either the machine was off, or the clock is wrong: the wait is longer.
 * Samples cannot decide it: those of the last minutes have the wrong time themselves.
 *
 * The time since boot counts suspends, so that waking up is no step.
 */
#include "store/state/age_clock.h"

#include "store/state/state.h"

#include <stdio.h>
#include <time.h>

void age_clock_init(struct age_clock *c, int64_t trusted_ns, int64_t boot_ns)
{
	*c = (struct age_clock){ .trusted_boot_ns = boot_ns };
	c->trusted_ns = MIN(MAX(trusted_ns, (int64_t)0), INT64_MAX / 2);
}

int64_t age_clock_look(struct age_clock *c, int64_t wall_ns, int64_t boot_ns, int64_t age_ns)
{
	int64_t offset = wall_ns - boot_ns, moved = offset - c->offset_ns;
	bool set = !c->looked || moved > AGE_CLOCK_STEP_NS || moved < -AGE_CLOCK_STEP_NS;
	bool trusted = !set && c->left_ns == 0;
	c->looked = true;
	c->offset_ns = offset;
	if (set)
		c->steady_boot_ns = boot_ns;
	if (!trusted) {
		int64_t passed = boot_ns - c->trusted_boot_ns;
		c->ahead_ns = c->trusted_ns ? wall_ns - c->trusted_ns - passed : 0;
		c->far = age_ns && c->ahead_ns > age_ns / 2;
		int64_t wait = c->far ? AGE_CLOCK_FAR_WAIT_NS : AGE_CLOCK_WAIT_NS;
		c->left_ns = MAX(c->steady_boot_ns + wait - boot_ns, (int64_t)0);
	}
	if (c->left_ns)
		return AGE_UNKNOWN;
	c->far = false;
	c->trusted_ns = MIN(MAX(wall_ns, (int64_t)1), INT64_MAX / 2);
	c->trusted_boot_ns = boot_ns;
	return wall_ns;
}

struct time_text time_text(int64_t ns)
{
	struct time_text out;
	struct tm tm;
	time_t t = (time_t)(ns / NS_PER_SEC);
	if (!gmtime_r(&t, &tm) || !strftime(out.text, sizeof(out.text), "%Y-%m-%dT%H:%M:%SZ", &tm))
		snprintf(out.text, sizeof(out.text), "%lld s", (long long)t);
	return out;
}

/* ---- of an open store ---- */

static int64_t shorter(int64_t a, int64_t b)
{
	return a > 0 && (b == 0 || a < b) ? a : b;
}

/* The shortest age at which anything is deleted or thinned; 0: nothing is. */
static int64_t shortest_age(const struct store_config *c)
{
	int64_t age = shorter(c->retention_ns, 0);
	for (size_t i = 0; i < c->rule_count; i++)
		age = shorter(c->rules[i].time_ns, age);
	for (size_t i = 0; i < c->thin_count; i++)
		age = shorter(c->thin[i].age_ns, age);
	return age;
}

static void tell(struct store *s, const struct age_clock *c, int64_t wall_ns)
{
	struct time_text now = time_text(wall_ns);
	if (c->far)
		store_say(s,
			"the clock says %s, %lld hours more than this store knows of: nothing goes "
			"by age before it has been steady for an hour; if it is wrong, set it "
			"right, or stop the server, before that",
			now.text, (long long)(c->ahead_ns / (3600 * NS_PER_SEC)));
	else
		store_say(s, "the clock says %s, and is not far ahead any more%s", now.text,
			c->left_ns ? "" : ": it has been steady for an hour, samples go by age");
}

int64_t store_age_now(struct store *s)
{
	int64_t age = shortest_age(&s->config);
	lock_take(&s->lock);
	int64_t boot = clock_boottime_ns(), wall = clock_realtime_ns();
	bool was_far = s->age.far;
	int64_t now = age_clock_look(&s->age, wall, boot, age);
	struct age_clock c = s->age;
	lock_release(&s->lock);
	int64_t left_s = (c.left_ns + NS_PER_SEC - 1) / NS_PER_SEC;
	metric_set(&s->metrics.age_wait, age ? (uint64_t)left_s : 0);
	if (c.far != was_far)
		tell(s, &c, wall);
	return now;
}
