/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include "test.h"

#define LIST(X)                                                               \
	X(ok, COUNTER, "x_total{result=\"ok\"}", "Things done, by result.")   \
	X(bad, COUNTER, "x_total{result=\"bad\"}", "Things done, by result.") \
	X(now, GAUGE, "y", "Things there.")                                   \
	X(time, SECONDS, "z_seconds_total", "Time.")
struct values {
	LIST(METRIC_FIELD)
};
static const struct metric_def defs[] = { LIST(METRIC_DEF) };

static void writes_prometheus_text(void **state)
{
	(void)state;
	struct values v = { 0 };
	metric_add(&v.ok, 2);
	metric_add(&v.ok, 3);
	metric_set(&v.now, 9);
	metric_add(&v.time, 2000000009);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 4096);
	metrics_write(&b, defs, &v.ok, ARRAY_COUNT(defs));
	CHECK_STR(buf_view(&b), "# HELP x_total Things done, by result.\n# TYPE x_total counter\n"
				"x_total{result=\"ok\"} 5\nx_total{result=\"bad\"} 0\n"
				"# HELP y Things there.\n# TYPE y gauge\ny 9\n"
				"# HELP z_seconds_total Time.\n# TYPE z_seconds_total counter\n"
				"z_seconds_total 2.000000009\n");
}

TEST_MAIN(cmocka_unit_test(writes_prometheus_text))
