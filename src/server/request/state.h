/* SPDX-License-Identifier: Apache-2.0 */
/* state: the server, its metrics and its lanes. Handlers run on net's threads. */
#pragma once

#include "auth/auth.h"
#include "base/lock.h"
#include "base/metrics.h"
#include "debuginfo/debuginfo.h"
#include "debuginfod/debuginfod.h"
#include "ingest/ingest.h"
#include "net/net.h"
#include "query/query.h"
#include "scrape/scrape.h"
#include "server/server.h"
#include "store/store.h"

#include <pthread.h>

#define SERVER_METRICS(X)                                                                       \
	X(otlp_requests, COUNTER, "firn_otlp_requests_total",                                   \
		"Requests of OTLP's traces, logs and metrics.")                                 \
	X(otlp_bytes, COUNTER, "firn_otlp_bytes_total",                                         \
		"Bytes of OTLP requests for traces, logs and metrics, decompressed.")           \
	X(otlp_failed, COUNTER, "firn_otlp_failed_total",                                       \
		"OTLP requests for traces, logs and metrics that were refused.")                \
	X(otlp_spans, COUNTER, "firn_otlp_ignored_total{signal=\"spans\"}",                     \
		"Items of other signals, acknowledged and not kept.")                           \
	X(otlp_logs, COUNTER, "firn_otlp_ignored_total{signal=\"logs\"}",                       \
		"Items of other signals, acknowledged and not kept.")                           \
	X(otlp_metrics, COUNTER, "firn_otlp_ignored_total{signal=\"metrics\"}",                 \
		"Items of other signals, acknowledged and not kept.")                           \
	X(panics, COUNTER, "firn_agent_panics_total", "Panics that agents reported.")           \
	X(queries, COUNTER, "firn_queries_total", "Queries answered or refused.")               \
	X(queries_failed, COUNTER, "firn_queries_failed_total", "Queries refused or given up.") \
	X(queries_running, GAUGE, "firn_queries_running", "Queries under way.")                 \
	X(shared, COUNTER, "firn_shared_profiles_total", "Profiles kept for sharing.")          \
	X(shared_dropped, COUNTER, "firn_shared_profiles_dropped_total",                        \
		"Shared profiles that gave way to younger ones.")                               \
	X(debuginfod_sent, COUNTER, "firn_debuginfod_answers_total{result=\"sent\"}",           \
		"Requests for a file by its build id, as a debuginfod server.")                 \
	X(debuginfod_refused, COUNTER, "firn_debuginfod_answers_total{result=\"refused\"}",     \
		"Requests for a file by its build id, as a debuginfod server.")                 \
	X(query_ns, SECONDS, "firn_query_seconds_total", "Time spent on queries.")              \
	X(handover_files, COUNTER, "firn_handover_files_total",                                 \
		"Executables taken from the agent.")                                            \
	X(handover_figures, COUNTER, "firn_handover_figures_total",                             \
		"Times that the agent's figures were taken.")                                   \
	X(handover_pages, COUNTER, "firn_handover_pages_total",                                 \
		"Times that the agent's status page was taken.")                                \
	X(handover_refused, COUNTER, "firn_handover_refused_total",                             \
		"Messages of the agent that were not of the right form.")                       \
	X(handover_dropped, COUNTER, "firn_handover_dropped_total",                             \
		"Executables that the symbolizer had no room for.")
struct server_metrics {
	SERVER_METRICS(METRIC_FIELD)
};

/* Lanes of requests (net.h). A report may wait long for memory, and a batch for seconds; neither
 * may delay the other, nor cheap requests. */
enum server_lane {
	SERVER_LANE_OTHERS,
	SERVER_LANE_WRITES,
	SERVER_LANE_LOOKUPS,
	SERVER_LANE_REPORTS
};
static_assert(SERVER_LANE_REPORTS < NET_LANES, "a lane without workers");

/* A protocol that brings samples, as rows of routes.c name it. Its handlers get a server_inlet as
 * ctx: they know neither the server nor where samples go. */
struct server_protocol {
	struct ingest_protocol ingest;
	/* Makes the state that it keeps between messages (E_NOMEM). NULL: it keeps none. */
	enum status (*open)(void **out_state);
	void (*close)(void *state);
};
struct server_inlet {
	const struct server_protocol *protocol;
	struct ingest_inlet *in;
	const char *tenant_header; /* NULL: all are of the tenant without a name */
	void *state;
};

#define SERVER_PATH_BYTES 160
#define SERVER_SERVICES_MAX 32
#define SERVER_DOWNLOADS_MAX 32 /* files of debuginfod; more are refused */
#define SERVER_WATCHERS_MAX 32  /* streams of health and reflection; more are refused */

struct server {
	const struct server_config *config;
	struct net_server *net;
	struct auth *auth; /* NULL: no authentication */
	struct http_header headers[AUTH_HEADERS_MAX];
	struct net_route *routes;
	char (*paths)[SERVER_PATH_BYTES];          /* of RPCs, one each */
	const char *services[SERVER_SERVICES_MAX]; /* of RPC, that have a route */
	size_t service_count;
	atomic_uint watchers;   /* of health and reflection */
	atomic_uint downloads;  /* of debuginfod */
	atomic_uint files_read; /* requests of adhoc.c under way */
	/* Set before `ready`, which handlers look at first. */
	struct store *store;
	atomic_bool admin_busy;     /* a request of the admin API is under way */
	struct query_engine engine; /* over the store */
	struct debuginfo_uploads *uploads;
	struct trace *trace;           /* NULL: no collector */
	struct debuginfod *debuginfod; /* NULL: no other server is asked */
	struct ingest ingest;
	struct scrape *scrape; /* NULL: no configuration file */
	struct server_inlet inlets[INGEST_PROTOCOLS_MAX];
	size_t inlet_count;
	atomic_bool ready;
	atomic_bool leaving; /* still serves, but load balancers are told not to come */
	int handover_fd;
	int handover_stop_fd; /* while handover_runs */
	pthread_t handover;
	bool handover_runs;
	struct lock notes_lock;   /* guards the files of notes.c */
	struct lock figures_lock; /* guards the agent's own metrics and page: */
	struct buf figures;       /* empty: none came */
	int64_t figures_at_ns;    /* monotonic */
	struct buf page;          /* the agent's status page; empty: none came */
	int64_t page_at_ns;
	struct server_metrics metrics;
};
static inline void server_init_locks(struct server *s)
{
	lock_init(&s->notes_lock, LOCK_NOTES);
	lock_init(&s->figures_lock, LOCK_FIGURES);
}

/* False: the store is not open yet, and `out` says so. */
static inline bool server_is_ready(struct server *s, struct net_response *out)
{
	if (atomic_load_explicit(&s->ready, memory_order_acquire))
		return true;
	struct err e;
	err_set(&e, E_UNAVAILABLE, "the store is being opened");
	net_fail(out, E_UNAVAILABLE, &e);
	return false;
}
