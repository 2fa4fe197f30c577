/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sample/governor.h"
#include "test.h"

static const struct governor_config plain = { .frequency_hz = 19,
	.cpus = 2,
	.cpu_share = 0.01,
	.memory_bytes = 100,
	.chance_ns = 60 * NS_PER_SEC,
	.chance_threshold = 100 };

/* A window in which `share` of both CPUs is used. */
static struct governor_decision window(
	struct governor *g, struct governor_usage *u, double share, uint64_t resident)
{
	u->now_ns += GOVERNOR_WINDOW_NS;
	u->cpu_ns += (int64_t)(share * 2 * GOVERNOR_WINDOW_NS);
	u->resident_bytes = resident;
	return governor_step(g, u);
}

static void halves_and_doubles_by_cpu(void **state)
{
	(void)state;
	struct governor g;
	struct governor_usage u = { .now_ns = 7, .cpu_ns = 5 };
	governor_init(&g, &plain);
	CHECK(governor_step(&g, &u).frequency_hz == 19);
	CHECK(!window(&g, &u, 0.009, 50).changed);
	struct governor_decision d = window(&g, &u, 0.02, 50);
	CHECK(d.changed && d.frequency_hz == 9 && strstr(d.why, "CPU"));
	CHECK(window(&g, &u, 0.02, 50).frequency_hz == 4);
	/* At twice the rate it would be too near the limit. */
	for (int i = 0; i < 10; i++)
		CHECK(!window(&g, &u, 0.005, 50).changed);
	CHECK(!window(&g, &u, 0.003, 50).changed);
	CHECK(!window(&g, &u, 0.003, 50).changed);
	CHECK(!window(&g, &u, 0.009, 50).changed); /* no calm */
	CHECK(!window(&g, &u, 0.003, 50).changed);
	CHECK(!window(&g, &u, 0.003, 50).changed);
	d = window(&g, &u, 0.003, 50);
	CHECK(d.changed && d.frequency_hz == 8);
	for (int i = 0; i < 3; i++)
		d = window(&g, &u, 0.001, 50);
	CHECK(d.frequency_hz == 16);
	for (int i = 0; i < 3; i++)
		d = window(&g, &u, 0.001, 50);
	CHECK(d.frequency_hz == 19); /* and no more than was asked for */
	for (int i = 0; i < 10; i++)
		CHECK(!window(&g, &u, 0.001, 50).changed);
	CHECK(metric_get(&g.metrics.lowered_cpu) == 2 && metric_get(&g.metrics.raised) == 3);
	CHECK(metric_get(&g.metrics.used_ppm) >= 999 && metric_get(&g.metrics.used_ppm) <= 1000);
}

static void never_stops_altogether(void **state)
{
	(void)state;
	struct governor g;
	struct governor_usage u = { 0 };
	governor_init(&g, &plain);
	(void)governor_step(&g, &u);
	for (int i = 0; i < 20; i++)
		(void)window(&g, &u, 0.5, 50);
	CHECK(metric_get(&g.metrics.frequency_hz) == 1);
	CHECK(metric_get(&g.metrics.lowered_cpu) == 4); /* 9, 4, 2, 1 */
}

static void memory_lowers_too(void **state)
{
	(void)state;
	struct governor g;
	struct governor_usage u = { 0 };
	governor_init(&g, &plain);
	(void)governor_step(&g, &u);
	struct governor_decision d = window(&g, &u, 0.001, 101);
	CHECK(d.drop_caches && d.frequency_hz == 9 && strstr(d.why, "memory"));
	CHECK(!window(&g, &u, 0.001, 100).drop_caches);
	CHECK(metric_get(&g.metrics.lowered_memory) == 1);
}

/* As window(), with so many samples of each kind. */
static struct governor_decision busy_window(struct governor *g, struct governor_usage *u,
	double share, uint64_t on_cpu, uint64_t off_cpu)
{
	u->samples += on_cpu + off_cpu;
	u->off_cpu_samples += off_cpu;
	return window(g, u, share, 50);
}

static void lowers_what_most_came_from(void **state)
{
	(void)state;
	struct governor g;
	struct governor_usage u = { .samples = 5000, .off_cpu_samples = 4000 };
	governor_init(&g, &plain);
	(void)governor_step(&g, &u);
	struct governor_decision d = busy_window(&g, &u, 0.02, 100, 101);
	CHECK(d.changed && d.frequency_hz == 19 && d.off_cpu_halvings == 1);
	CHECK(metric_get(&g.metrics.lowered_cpu) == 1);
	CHECK(metric_get(&g.metrics.lowered_off_cpu) == 1);
	d = busy_window(&g, &u, 0.02, 100, 99);
	CHECK(d.frequency_hz == 9 && d.off_cpu_halvings == 1);
	/* The timer can go no lower, the other still can; and then neither. */
	for (int i = 0; i < 40; i++)
		d = busy_window(&g, &u, 0.02, 100, 1);
	CHECK(d.frequency_hz == 1 && d.off_cpu_halvings == GOVERNOR_HALVINGS_MAX);
	CHECK(metric_get(&g.metrics.off_cpu_halvings) == GOVERNOR_HALVINGS_MAX);
	CHECK(!busy_window(&g, &u, 0.02, 1, 1).changed);
	/* And back: what was halved most often first, both in the end. */
	for (int i = 0; i < 3; i++)
		d = busy_window(&g, &u, 0.001, 1, 1);
	CHECK(d.frequency_hz == 1 && d.off_cpu_halvings == GOVERNOR_HALVINGS_MAX - 1);
	for (int i = 0; i < 100; i++)
		d = busy_window(&g, &u, 0.001, 1, 1);
	CHECK(d.frequency_hz == 19 && d.off_cpu_halvings == 0);
	CHECK(!busy_window(&g, &u, 0.001, 1, 1).changed);
}

static void without_limits_nothing_changes(void **state)
{
	(void)state;
	struct governor g;
	struct governor_usage u = { 0 };
	struct governor_config c = plain;
	c.cpu_share = 0;
	c.memory_bytes = 0;
	governor_init(&g, &c);
	(void)governor_step(&g, &u);
	for (int i = 0; i < 10; i++)
		CHECK(!window(&g, &u, 1, 1 << 30).changed);
}

static uint32_t drawn;

static uint32_t draw(void)
{
	return drawn;
}

static void takes_its_chance_once_an_interval(void **state)
{
	(void)state;
	struct governor g;
	struct governor_usage u = { .now_ns = 1000 };
	struct governor_config c = plain;
	c.chance_threshold = 30;
	c.draw = draw;
	governor_init(&g, &c);
	drawn = 30; /* the threshold is not above it */
	CHECK(governor_step(&g, &u).paused);
	drawn = 0;
	u.now_ns += 59 * NS_PER_SEC;
	CHECK(governor_step(&g, &u).paused);
	u.now_ns += NS_PER_SEC;
	struct governor_decision d = governor_step(&g, &u);
	CHECK(d.changed && !d.paused);
	drawn = 29;
	u.now_ns += 60 * NS_PER_SEC;
	CHECK(!governor_step(&g, &u).paused);
	drawn = 99;
	u.now_ns += 3600 * NS_PER_SEC; /* asleep: one draw for all that */
	CHECK(governor_step(&g, &u).paused);
	CHECK(governor_step(&g, &u).paused);
	CHECK(metric_get(&g.metrics.intervals) == 4);
	CHECK(metric_get(&g.metrics.intervals_left_out) == 2);
}

/* The system's numbers, over many intervals: about the share that was asked for. */
static void is_fair(void **state)
{
	(void)state;
	struct governor g;
	struct governor_usage u = { .now_ns = 1 };
	struct governor_config c = plain;
	c.chance_threshold = 25;
	governor_init(&g, &c);
	uint32_t sampled = 0;
	for (int i = 0; i < 20000; i++) {
		sampled += !governor_step(&g, &u).paused;
		u.now_ns += c.chance_ns;
	}
	/* Eight standard deviations. */
	CHECK(sampled > 5000 - 490 && sampled < 5000 + 490);
}

static void writes_its_figures(void **state)
{
	(void)state;
	struct governor g;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	governor_init(&g, &plain);
	governor_write_metrics(&g, &b);
	buf_u8(&b, 0);
	CHECK(strstr((char *)b.data, "firn_agent_sampling_frequency_hz 19\n"));
}

TEST_MAIN(cmocka_unit_test(halves_and_doubles_by_cpu), cmocka_unit_test(never_stops_altogether),
	cmocka_unit_test(memory_lowers_too), cmocka_unit_test(lowers_what_most_came_from),
	cmocka_unit_test(without_limits_nothing_changes),
	cmocka_unit_test(takes_its_chance_once_an_interval), cmocka_unit_test(is_fair),
	cmocka_unit_test(writes_its_figures))
