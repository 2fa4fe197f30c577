/* SPDX-License-Identifier: Apache-2.0 */
/* server's own: what the handlers share. Handlers run on net's threads. */
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
#include <stdio.h>
#include <sys/stat.h>

#define SERVER_METRICS(X)                                                                       \
	X(otlp_requests, COUNTER, "firn_otlp_requests_total",                                   \
		"Requests of OTLP's traces, logs and metrics.")                                 \
	X(otlp_bytes, COUNTER, "firn_otlp_bytes_total", "Bytes of these, decompressed.")        \
	X(otlp_failed, COUNTER, "firn_otlp_failed_total", "Of these requests, refused ones.")   \
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
		"Questions for a file by its build id.")                                        \
	X(debuginfod_refused, COUNTER, "firn_debuginfod_answers_total{result=\"refused\"}",     \
		"Questions for a file by its build id.")                                        \
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

/* Lanes of requests (net.h): a report may wait long for memory, a batch for seconds; neither holds
 * up the others, nor what is cheap. */
enum server_lane {
	SERVER_LANE_OTHERS,
	SERVER_LANE_WRITES,
	SERVER_LANE_LOOKUPS,
	SERVER_LANE_REPORTS
};
static_assert(SERVER_LANE_REPORTS < NET_LANES, "a lane without workers");

/* A protocol that brings samples: what rows of routes.c name. Its handlers get a server_inlet as
 * ctx: they know neither the server nor where samples go. */
struct server_protocol {
	struct ingest_protocol ingest;
	/* What it keeps between messages: E_NOMEM. NULL: nothing. */
	enum status (*open)(void **out_state);
	void (*close)(void *state);
};
struct server_inlet {
	const struct server_protocol *protocol;
	struct ingest_inlet *in;
	const char *tenant_header; /* NULL: all are of the tenant without a name */
	void *state;
};
/* inlet.c: whose message it is, and ingest_batch_begin(). The text lies in the request. */
NODISCARD enum status server_batch_begin(struct ingest_batch *b, const struct server_inlet *in,
	const struct net_request *r, size_t message_bytes, struct err *e);

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
	struct query_engine engine; /* over it */
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
	struct lock notes_lock;   /* of the files of notes.c */
	struct lock figures_lock; /* of the agent's own metrics: */
	struct buf figures;       /* empty: none came */
	int64_t figures_at_ns;    /* monotonic */
	struct buf page;          /* its status page, likewise; empty: none came */
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

/* tenant.c: whose samples the request is about; the text lies in it. E_INVALID names the header. */
NODISCARD enum status server_tenant_by(
	const char *header, const struct net_request *r, struct str *out, struct err *e);
NODISCARD enum status server_tenant(
	const struct server *s, const struct net_request *r, struct str *out, struct err *e);

/* server.c: reads the configuration again after SIGHUP. */
void server_reload_if_wanted(struct server *s);

/* guard.c: in front of the routes. */

/* A route that needs no scope: the page, and those that tell whether a server is alive. */
#define SERVER_SCOPE_OPEN (1u << 31)
/* E_DENIED: other hosts reach the address, and there is no authentication. */
NODISCARD enum status server_guard_open(struct server *s, struct err *e);
void server_guard_config(struct server *s, struct net_server_config *c);
/* What flags say of the port: address, hosts, TLS, and the guard. All else has its default. */
void server_port_config(struct server *s, struct net_server_config *c);
/* About once a second: the file may have changed. */
void server_guard_look(struct server *s);

/* traces.c: before the port is opened, and what it is to be told of. */
NODISCARD enum status server_traces_open(
	struct server *s, struct net_server_config *c, struct err *e);

/* routes.c: every URL and RPC; s->routes, s->paths and s->services. */
NODISCARD enum status server_make_routes(struct server *s, size_t *out_count, struct err *e);
/* inlet.c: the inlet of a protocol, made when it is asked for first. */
NODISCARD enum status server_inlet_of(struct server *s, const struct server_protocol *p,
	struct server_inlet **out, struct err *e);
void server_inlets_close(struct server *s);

/* call.c */

/* So long a request waits for a worker. A refusal costs it its place among those that wait, so this
 * is near what the page (90 s) and the command line (120 s) give an answer; a client that leaves
 * before takes its request along. */
#define SERVER_TURN_MAX_NS ((int64_t)60 * 1000000000)
/* So long a query that has a worker waits for memory. */
#define SERVER_MEMORY_TURN_MAX_NS ((int64_t)30 * 1000000000)
/* Around each query: counted, timed; it waits its turn for memory as long as its client does, at
 * most SERVER_MEMORY_TURN_MAX_NS. server_query_end() always follows; while server_query_again()
 * says so, the answer is made anew. */
struct server_query {
	struct server *s;
	int64_t begun_ns;
	struct store_query query;
	struct query_engine engine; /* over it */
};
NODISCARD enum status server_query_begin(
	struct server *s, const struct net_request *r, struct server_query *out, struct err *e);
bool server_query_again(struct server_query *q, enum status status);
void server_query_end(struct server_query *q, enum status status);
/* A samples_cancel_fn whose ctx is a net_request: its client has closed the connection. */
bool server_client_gone(void *ctx);

/* source.c: the answer of GET /api/source but for what all reports take from their parameters. */

/* The source file of this path on this host, appended to `out`. False: there is none, or the client
 * may not have it. The caller has seen that symbols name it. */
#define SERVER_HOST_SOURCE_BYTES_MAX ((size_t)4 << 20)
bool server_host_source(const struct server *s, const struct net_request *r, struct str file,
	struct buf *out, struct stat *out_stat);
NODISCARD enum status server_source(struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct query_request *q, struct buf *out, struct err *e);
/* The beginning of an answer with places in code, up to "builds" and its value. */
void server_write_places(const struct query_places *p, struct buf *b);
/* code.c: the same of GET /api/instructions. */
NODISCARD enum status server_instructions(struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct query_request *q, struct buf *out, struct err *e);

/* parca_query.c */
struct parca_query_request;
struct query_report;
/* The report of a decoded request, as QueryResponse's member of its kind. */
NODISCARD enum status server_parca_report(const struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct parca_query_request *q, struct arena *a,
	struct buf *out, struct query_report *info, struct err *e);

/* share.c */

/* Keeps a gzipped profile.proto until `end_ns`; to `out` what POST /api/snapshots answers. */
NODISCARD enum status server_snapshot(struct server *s, struct str tenant, struct str profile,
	int64_t end_ns, struct buf *out, struct err *e);

/* targets.c */
void server_reloaded(enum status s, const struct err *e);
void server_scrape_told(enum scrape_news of, enum status s, const struct err *e);

/* debuginfod.c: the executable or debug file of a build id, if the client may have it. E_NOTFOUND:
 * there is none, or not for them. */
NODISCARD enum status server_build_file(struct server *s, const struct net_request *r,
	const struct debuginfo_key *key, int *out_fd, struct err *e);

/* debuginfo.c */

/* The text of a source file as it was uploaded, or as another debuginfod server has it, appended to
 * `out`; *out_origin (may be NULL) is "upload" or "debuginfod". Their answer is waited for until
 * `until_ns`, which is the deadline of all texts of one request: clock_monotonic_ns() +
 * SERVER_SOURCE_WAIT_NS. E_NOTFOUND: there is none; E_UNAVAILABLE: it may come later. */
#define SERVER_SOURCE_WAIT_NS (5 * NS_PER_SEC)
NODISCARD enum status server_source_text(const struct server *s, struct str tenant,
	struct str build_id, struct str filename, int64_t until_ns, debuginfo_cancel_fn *cancel,
	void *cancel_ctx, const char **out_origin, struct buf *out, struct err *e);
bool server_has_sources(const struct server *s, struct str tenant, struct str build_id);

/* otlp.c */

/* The message of a request of any signal, whatever it came in. */
struct server_otlp_body {
	struct str message;
	struct buf made; /* of JSON */
	bool json;
	bool bad_type; /* of the content */
};
NODISCARD enum status server_otlp_body_read(const struct net_request *r, const struct pb_desc *d,
	struct server_otlp_body *out, struct err *e);
void server_otlp_body_deinit(struct server_otlp_body *b);
/* out->body, a message of `d`, as the sender wants it; or the failure. */
void server_otlp_answer(const struct net_request *r, const struct server_otlp_body *b,
	const struct pb_desc *d, enum status st, const struct err *e, struct net_response *out);
#define SERVER_OTLP_GRPC \
	"/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
#define SERVER_OTLP_HTTP "/v1development/profiles"

/* assets.c: the page, and the pages of docs/ for people, embedded by tools/embed.py. The last entry
 * of each table has no path. */
struct server_asset {
	const char *path; /* "/", "/assets/app-1a2b3c4d.js" */
	const char *content_type;
	const char *etag; /* quoted */
	const uint8_t *gzip;
	uint64_t gzip_len;
	uint64_t immutable; /* its name carries its hash */
};
extern const struct server_asset server_assets[];
extern const struct server_asset server_docs[]; /* "/docs/", "/docs/symbols.html" */
/* handover.c */
NODISCARD enum status server_handover_start(struct server *s, struct err *e);
void server_handover_stop(struct server *s);
/* The agent's last figures, when it has sent some. */
void server_handover_write_figures(struct server *s, struct buf *out);
