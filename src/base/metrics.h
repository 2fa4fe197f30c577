/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics: counters and gauges of a module, written as Prometheus text (version 0.0.4).
 *
 * Layer 0. A module keeps a struct of `metric_value`s made by an X-macro and a table of the same
 * list; the server of /metrics calls metrics_write() for each. Adding is atomic and relaxed.
 *
 *	#define STORE_METRICS(X) X(samples, COUNTER, "firn_store_samples_total", "Samples stored.")
 *	struct store_metrics { STORE_METRICS(METRIC_FIELD) };
 *	static const struct metric_def defs[] = { STORE_METRICS(METRIC_DEF) };
 */
#pragma once

#include "base/buf.h"

#include <stdatomic.h>

typedef _Atomic uint64_t metric_value;

/* SECONDS: a counter that holds nanoseconds and is written in seconds, as Prometheus has it. */
enum metric_kind { METRIC_COUNTER, METRIC_GAUGE, METRIC_SECONDS };

struct metric_def {
	const char *name; /* may hold labels: firn_x_total{reason="y"} */
	const char *help;
	enum metric_kind kind;
};

#define METRIC_FIELD(field, kind, name, help) metric_value field;
#define METRIC_DEF(field, kind, name, help) { name, help, METRIC_##kind },

static inline void metric_add(metric_value *m, uint64_t n)
{
	atomic_fetch_add_explicit(m, n, memory_order_relaxed);
}

static inline void metric_set(metric_value *m, uint64_t v)
{
	atomic_store_explicit(m, v, memory_order_relaxed);
}

static inline uint64_t metric_get(const metric_value *m)
{
	return atomic_load_explicit(m, memory_order_relaxed);
}

/* `values`: the module's struct, `count` metric_values in the order of `defs`. HELP and TYPE are
 * written once for neighbours that differ in their labels only. */
void metrics_write(
	struct buf *out, const struct metric_def *defs, const metric_value *values, size_t count);
