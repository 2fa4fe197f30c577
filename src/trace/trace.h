/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace: traces of firn's own requests, sent to a collector by OTLP.
 *
 * Layer 4 (may use base, os, pb, fetch, net). Thread safe. trace_add() never waits: spans lie in a
 * queue, which a thread of its own sends every TRACE_EVERY_NS. Spans that do not fit, and a batch
 * that the collector does not accept, are dropped and counted.
 * Source: OTLP 1.x, opentelemetry/proto/collector/trace/v1; W3C Trace Context, level 1.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"

#define TRACE_WAITING_MAX 2048 /* spans */
#define TRACE_NAME_MAX 128     /* bytes of a route's name; the rest is cut off */
#define TRACE_EVERY_NS ((int64_t)5 * 1000000000)
#define TRACE_SEND_TIMEOUT_NS ((int64_t)10 * 1000000000)
#define TRACE_LAST_TIMEOUT_NS ((int64_t)2 * 1000000000) /* of what waits at the end */
#define TRACE_BATCH_BYTES_MAX ((size_t)2 << 20)

struct trace_config {
	const char *address; /* "HOST:PORT", "http://HOST:PORT", "https://HOST:PORT" */
	bool http;           /* POST /v1/traces; else gRPC */
	bool secure;         /* TLS, where the address does not say */
};

/* A request that was answered. Texts are copied. */
struct trace_span {
	struct str method, route; /* "GET", "/api/top" */
	struct str parent;        /* the request's traceparent; "" for none */
	int http_status;
	bool failed;                /* by a fault of the server's */
	int64_t begun_ns, ended_ns; /* since 1970 */
};

#define TRACE_METRICS(X)                                                                         \
	X(sent, COUNTER, "firn_trace_spans_sent_total", "Spans that the collector took.")        \
	X(full, COUNTER, "firn_trace_spans_dropped_total{reason=\"full\"}",                      \
		"Spans that were dropped: too many waited, or the collector did not take them.") \
	X(failed, COUNTER, "firn_trace_spans_dropped_total{reason=\"not_taken\"}",               \
		"Spans that were dropped: too many waited, or the collector did not take them.")
struct trace_metrics {
	TRACE_METRICS(METRIC_FIELD)
};

/* Called by the thread when sending begins to fail, or (OK) works again. */
typedef void trace_told_fn(enum status s, const struct err *e);

struct trace;
/* Texts of the configuration must outlive it. E_INVALID: no address. */
NODISCARD enum status trace_open(
	const struct trace_config *c, trace_told_fn *told, struct trace **out, struct err *e);
/* Breaks off the running call, sends the waiting spans within TRACE_LAST_TIMEOUT_NS, and ends; NULL
 * is fine. */
void trace_close(struct trace *t);
/* Does nothing if the request belongs to a trace that is not sampled. */
void trace_add(struct trace *t, const struct trace_span *span);
void trace_write_metrics(struct trace *t, struct buf *out); /* NULL: nothing */
