/* SPDX-License-Identifier: Apache-2.0 */
#include "base/metrics.h"

#include "base/clock.h"

#include <inttypes.h>

static struct str family(const char *name)
{
	struct str s = str_of(name);
	return str_sub(s, 0, str_index(s, '{'));
}

void metrics_write(
	struct buf *out, const struct metric_def *defs, const metric_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct metric_def *d = &defs[i];
		struct str name = family(d->name);
		if (i == 0 || !str_eq(name, family(defs[i - 1].name))) {
			buf_printf(out, "# HELP %.*s %s\n", STR_ARG(name), d->help);
			buf_printf(out, "# TYPE %.*s %s\n", STR_ARG(name),
				d->kind == METRIC_GAUGE ? "gauge" : "counter");
		}
		uint64_t value = metric_get(&values[i]);
		if (d->kind == METRIC_SECONDS)
			buf_printf(out, "%s %" PRIu64 ".%09" PRIu64 "\n", d->name,
				value / (uint64_t)NS_PER_SEC, value % (uint64_t)NS_PER_SEC);
		else
			buf_printf(out, "%s %" PRIu64 "\n", d->name, value);
	}
}
