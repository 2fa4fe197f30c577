/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sample/governor.h"

#include <sys/random.h>

/* The rate may be doubled if at twice the rate the cost stays below this share of the limit. */
#define RAISE_SHARE 0.75

static uint32_t draw_at_random(void)
{
	uint32_t r = 0;
	(void)!getrandom(&r, sizeof(r), 0);
	return r % GOVERNOR_THRESHOLD_MAX; /* 2^32 is 96 more than a multiple: the bias does not
					      matter */
}

void governor_init(struct governor *g, const struct governor_config *c)
{
	*g = (struct governor){ .c = *c, .frequency_hz = c->frequency_hz };
	if (!g->c.draw)
		g->c.draw = draw_at_random;
	metric_set(&g->metrics.frequency_hz, c->frequency_hz);
	metric_set(&g->metrics.wanted_hz, c->frequency_hz);
}

/* ---- chance ---- */

static void take_a_chance(struct governor *g, int64_t now_ns)
{
	if (g->c.chance_threshold >= GOVERNOR_THRESHOLD_MAX || now_ns < g->chance_end_ns)
		return;
	/* Intervals keep their grid, unless one was slept through. */
	int64_t next_ns = g->chance_end_ns + g->c.chance_ns;
	g->chance_end_ns = next_ns > now_ns ? next_ns : now_ns + g->c.chance_ns;
	g->paused = g->c.draw() >= g->c.chance_threshold;
	metric_add(&g->metrics.intervals, 1);
	metric_add(&g->metrics.intervals_left_out, g->paused);
	metric_set(&g->metrics.paused, g->paused);
}

/* ---- limits ---- */

/* Are off-CPU samples the cause? Most samples of the window came from the scheduler, or the timer's
 * rate cannot be lowered any more. */
static bool off_cpu_is_to_blame(const struct governor *g, const struct governor_usage *u)
{
	uint64_t off_cpu = u->off_cpu_samples - g->window_off_cpu;
	uint64_t all = u->samples - g->window_samples;
	return off_cpu > 0 && g->off_cpu_halvings < GOVERNOR_HALVINGS_MAX &&
	       (off_cpu * 2 > all || g->frequency_hz == 1);
}

static void lower(struct governor *g, const struct governor_usage *u, metric_value *counter)
{
	g->calm_windows = 0;
	if (off_cpu_is_to_blame(g, u)) {
		g->off_cpu_halvings++;
		metric_add(&g->metrics.lowered_off_cpu, 1);
	} else if (g->frequency_hz > 1) {
		g->frequency_hz /= 2;
	} else {
		return;
	}
	metric_add(counter, 1);
}

static void raise_again(struct governor *g)
{
	bool is_low = g->frequency_hz < g->c.frequency_hz;
	if ((!is_low && !g->off_cpu_halvings) || ++g->calm_windows < GOVERNOR_CALM_WINDOWS)
		return;
	g->calm_windows = 0;
	if (g->off_cpu_halvings && g->frequency_hz << g->off_cpu_halvings >= g->c.frequency_hz)
		g->off_cpu_halvings--;
	else
		g->frequency_hz = MIN(g->frequency_hz * 2, g->c.frequency_hz);
	metric_add(&g->metrics.raised, 1);
}

/* To be called at the end of a window: changes the rate if necessary. */
static void judge(struct governor *g, const struct governor_usage *u, struct governor_decision *out)
{
	double all_ns = (double)(u->now_ns - g->window_begin_ns) * g->c.cpus;
	double share = (double)(u->cpu_ns - g->window_cpu_ns) / all_ns;
	bool cpu_high = g->c.cpu_share > 0 && share > g->c.cpu_share;
	bool memory_high = g->c.memory_bytes && u->resident_bytes > g->c.memory_bytes;
	bool calm = g->c.cpu_share <= 0 || share * 2 < g->c.cpu_share * RAISE_SHARE;
	metric_set(&g->metrics.used_ppm, (uint64_t)(MAX(share, 0.0) * 1e6));
	out->drop_caches = memory_high;
	/* While nothing is sampled, the cost says nothing about the rate. */
	if (g->paused)
		return;
	if (memory_high) {
		lower(g, u, &g->metrics.lowered_memory);
		out->why = "memory above its limit";
	} else if (cpu_high) {
		lower(g, u, &g->metrics.lowered_cpu);
		out->why = "CPU time above its limit";
	} else if (calm) {
		raise_again(g);
		out->why = "within the limits again";
	} else {
		g->calm_windows = 0;
	}
	metric_set(&g->metrics.frequency_hz, g->frequency_hz);
	metric_set(&g->metrics.off_cpu_halvings, g->off_cpu_halvings);
}

static void begin_window(struct governor *g, const struct governor_usage *u)
{
	g->window_begin_ns = u->now_ns;
	g->window_cpu_ns = u->cpu_ns;
	g->window_samples = u->samples;
	g->window_off_cpu = u->off_cpu_samples;
}

struct governor_decision governor_step(struct governor *g, const struct governor_usage *u)
{
	struct governor_decision d = { .why = "" };
	uint32_t frequency_hz = g->frequency_hz, halvings = g->off_cpu_halvings;
	bool paused = g->paused;
	if (!g->started) {
		g->started = true;
		begin_window(g, u);
		g->chance_end_ns = u->now_ns;
	}
	if (u->now_ns - g->window_begin_ns >= GOVERNOR_WINDOW_NS) {
		judge(g, u, &d);
		begin_window(g, u);
	}
	take_a_chance(g, u->now_ns);
	d.frequency_hz = g->frequency_hz;
	d.off_cpu_halvings = g->off_cpu_halvings;
	d.paused = g->paused;
	d.changed = frequency_hz != d.frequency_hz || halvings != d.off_cpu_halvings ||
		    paused != d.paused;
	return d;
}

void governor_write_metrics(const struct governor *g, struct buf *out)
{
	static const struct metric_def defs[] = { GOVERNOR_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &g->metrics.frequency_hz, ARRAY_COUNT(defs));
}
