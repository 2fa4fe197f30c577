/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest: takes samples from all protocols to the sink (samples/sink.h): memory, limits of tenants,
 * the count of series, names, counters, the list of agents.
 *
 * Layer 5 (may use base, os, profile, samples, symbolize). Thread safe: one ingest_batch is one
 * thread's.
 *
 * A protocol has one row (struct ingest_protocol) and gets its inlet once (ingest_inlet()). It then
 * handles each message like this, even if a step fails:
 *
 *	struct ingest_batch b;
 *	ingest_batch_init(&b, inlet, peer, body.len);
 *	s = ingest_batch_begin(&b, tenant, body.len, &e);
 *	if (s == OK)
 *		s = otlp_decode(body, &b.profile, …, &e);
 *	if (s == OK)
 *		s = ingest_batch_put(&b, hash128(body.p, body.len), &e);
 *	ingest_batch_end(&b, s, s == OK ? "" : err_text(&e, s));
 */
#pragma once

#include "base/lock.h"
#include "base/metrics.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "samples/sink.h"

#include <pthread.h>

struct symbolizer;

/* ---- limits of tenants: limits.c ---- */

/* A sample or message beyond one of these is refused, and the answer names the flag; longer stacks
 * are cut. */
struct ingest_limits {
	uint32_t labels; /* of a sample */
	uint32_t label_name_bytes;
	uint32_t label_value_bytes;
	uint32_t stack_frames;  /* 2 to 2,048 */
	uint32_t series;        /* in one to two hours; 0: no limit */
	uint64_t message_bytes; /* at most 64 MiB */
};

#define TENANT_RULES_MAX 10000
#define TENANT_RULES_BYTES_MAX ((size_t)4 << 20)

struct tenant_rule {
	char tenant[SAMPLES_TENANT_MAX + 1];
	bool is_prefix;
	struct ingest_limits limits;
};
struct tenant_rules {
	VEC(struct tenant_rule) v;
};
/* 1 to SAMPLES_TENANT_MAX letters, digits and !-_.*'(). */
bool ingest_is_tenant(struct str name);
/* The text of --tenant-limits (docs/api.md). A limit that a line does not name is that of `base`.
 * E_INVALID and E_LIMIT name the line. */
NODISCARD enum status tenant_rules_parse(
	struct str text, const struct ingest_limits *base, struct tenant_rules *out, struct err *e);
void tenant_rules_deinit(struct tenant_rules *r);
/* NULL: none fits. */
const struct tenant_rule *tenant_rules_find(const struct tenant_rules *r, struct str tenant);

/* ---- series of a tenant: series.c ---- */

/* Tenants whose series are counted separately; all others share one count. */
#define SERIES_TENANTS_MAX 256
/* A series that got no sample for this long (up to twice that) is not counted any more. */
#define SERIES_WINDOW_NS ((int64_t)3600 * 1000000000)

struct series_guard {
	struct lock lock;
	struct series_tenant *tenants;
	size_t tenant_count;
};
NODISCARD enum status series_guard_init(struct series_guard *g);
void series_guard_deinit(struct series_guard *g);
/* Removes the samples of series beyond series_max (0: no limit) from the profile; *out_refused is
 * their number. */
NODISCARD enum status series_guard_limit(struct series_guard *g, struct str tenant,
	uint32_t series_max, struct profile *p, int64_t now_ns, uint64_t *out_refused);
uint64_t series_guard_count(struct series_guard *g);

/* ---- agents: agents.c ---- */

/* Agents that are remembered; a new one replaces the one that was silent for longest. */
#define AGENTS_MAX 4096
#define AGENT_FORGOTTEN_NS ((int64_t)300 * 1000000000)
#define AGENT_NODE_BYTES 256
#define AGENT_ADDRESS_BYTES 64
#define AGENT_VERSION_BYTES 64

/* A sender, and how its last push ended. Texts end with NUL. */
struct agent_entry {
	char tenant[SAMPLES_TENANT_MAX + 1];
	char node[AGENT_NODE_BYTES]; /* the label `node`; "": there was none */
	char address[AGENT_ADDRESS_BYTES];
	char version[AGENT_VERSION_BYTES]; /* first word of its user-agent: "firn/0.1.0" */
	char error[ERR_TEXT_MAX];          /* "": it went well */
	char failure[ERR_TEXT_MAX];        /* the last error there was */
	int64_t failure_ns;                /* since 1970: when that push came */
	int64_t last_ns;                   /* since 1970 */
	int64_t took_ns;
	uint64_t refused; /* samples that limits refused since the agent is in the list */
};
/* A push that ended. */
struct agent_push {
	struct str tenant;
	struct str user_agent;
	const char *peer;
	const char *error; /* "": none */
	int64_t begin_ns, end_ns;
	uint64_t refused; /* samples */
};
struct agent_list {
	struct lock lock;
	struct agent_entry *v;
	size_t count;
	size_t cap;
};
void agent_list_init(struct agent_list *l);
void agent_list_deinit(struct agent_list *l);
/* Notes a push for the agents named by the label node in `p`; without that label, for the peer. */
void agent_list_note(struct agent_list *l, const struct profile *p, const struct agent_push *push);
uint64_t agent_list_count(struct agent_list *l, int64_t now_ns);
/* fn() for each agent of a tenant, by node and address; the list is locked meanwhile. */
typedef void agent_fn(void *ctx, const struct agent_entry *a);
void agent_list_each(
	struct agent_list *l, struct str tenant, int64_t now_ns, agent_fn *fn, void *ctx);

/* ---- the whole ---- */

#define INGEST_METRICS(X)                                                                          \
	X(samples_zero, COUNTER, "firn_ingest_zero_samples_total",                                 \
		"Samples of value 0, left out.")                                                   \
	X(bad_lines, COUNTER, "firn_ingest_malformed_lines_total",                                 \
		"Lines of folded stacks that end without a count; the other lines of the message " \
		"are kept.")                                                                       \
	X(refused_labels, COUNTER, "firn_ingest_refused_samples_total{reason=\"labels\"}",         \
		"Samples refused.")                                                                \
	X(refused_label_name, COUNTER, "firn_ingest_refused_samples_total{reason=\"label_name\"}", \
		"Samples refused.")                                                                \
	X(refused_label_value, COUNTER,                                                            \
		"firn_ingest_refused_samples_total{reason=\"label_value\"}", "Samples refused.")   \
	X(refused_old, COUNTER, "firn_ingest_refused_samples_total{reason=\"old\"}",               \
		"Samples refused.")                                                                \
	X(refused_future, COUNTER, "firn_ingest_refused_samples_total{reason=\"future\"}",         \
		"Samples refused.")                                                                \
	X(refused_period, COUNTER, "firn_ingest_refused_samples_total{reason=\"period\"}",         \
		"Samples refused.")                                                                \
	X(refused_series, COUNTER, "firn_ingest_refused_samples_total{reason=\"series\"}",         \
		"Samples refused.")                                                                \
	X(messages_malformed, COUNTER, "firn_ingest_refused_messages_total{reason=\"malformed\"}", \
		"Messages of which nothing was stored.")                                           \
	X(messages_limit, COUNTER, "firn_ingest_refused_messages_total{reason=\"limit\"}",         \
		"Messages of which nothing was stored.")                                           \
	X(messages_busy, COUNTER, "firn_ingest_refused_messages_total{reason=\"busy\"}",           \
		"Messages of which nothing was stored.")                                           \
	X(messages_canceled, COUNTER, "firn_ingest_refused_messages_total{reason=\"canceled\"}",   \
		"Messages of which nothing was stored.")                                           \
	X(messages_failed, COUNTER, "firn_ingest_refused_messages_total{reason=\"failed\"}",       \
		"Messages of which nothing was stored.")                                           \
	X(stacks_cut, COUNTER, "firn_ingest_cut_stacks_total",                                     \
		"Stacks that were cut because they were too deep.")
struct ingest_metrics {
	INGEST_METRICS(METRIC_FIELD)
};

/* The name of a protocol, and the counters that only it has. */
struct ingest_protocol {
	const char *name; /* in the metrics: protocol="name" */
	/* How many times its length a message needs in memory, since parts of it may be compressed;
	 * 0 is 1. */
	uint32_t expansion;
	bool asks; /* firn fetches the messages: the client is no agent */
	const struct metric_def *own;
	size_t own_count;
};

/* Protocols at a time. */
#define INGEST_PROTOCOLS_MAX 32

/* The inlet of one protocol, with its counters. */
struct ingest_inlet {
	struct ingest *ingest;
	const struct ingest_protocol *protocol;
	metric_value requests; /* of senders; a stream is one */
	metric_value bytes;    /* of messages, decompressed */
	metric_value failed;   /* requests that were answered with an error */
	metric_value samples;  /* accepted */
	metric_value *own;     /* as protocol->own; NULL: it has none */
};

/* The counters that only this protocol has, as the structure of its X-macro. */
static inline void *ingest_own(const struct ingest_inlet *in)
{
	return (void *)(uintptr_t)in->own;
}

struct ingest_config {
	struct ingest_limits limits;    /* of a tenant that no rule names */
	const char *tenant_limits_file; /* NULL: none; read once */
	int64_t retention_ns;           /* older samples are refused; 0: none */
};

struct ingest {
	struct series_guard series;
	struct agent_list agents;
	struct ingest_limits limits;
	struct tenant_rules rules;
	int64_t retention_ns;
	struct ingest_metrics metrics;
	struct ingest_inlet inlets[INGEST_PROTOCOLS_MAX];
	size_t inlet_count;
	struct samples_sink *_Atomic sink; /* NULL: not open yet */
	struct symbolizer *wants;          /* set before the sink; NULL: no symbols are built */
};
/* ingest_deinit() must be called after a failure too. */
NODISCARD enum status ingest_init(struct ingest *in, const struct ingest_config *c, struct err *e);
void ingest_deinit(struct ingest *in);
/* Once for each protocol, before the first message (not thread safe); the same protocol again gives
 * the same inlet. It lives as long as `in`. E_LIMIT: too many protocols. */
NODISCARD enum status ingest_inlet(struct ingest *in, const struct ingest_protocol *p,
	struct ingest_inlet **out, struct err *e);
/* From now on samples go to `sink`; before that ingest_health() says that the store is being
 * opened. symbolizer_want() is called on `wants` for executables with samples; NULL: none. */
void ingest_open(struct ingest *in, struct samples_sink *sink, struct symbolizer *wants);
/* OK, or why no message can be taken now (E_UNAVAILABLE). */
NODISCARD enum status ingest_health(struct ingest *in, struct err *e);
void ingest_write_metrics(struct ingest *in, struct buf *out);

/* Memory for decoding a message of that many bytes. */
size_t ingest_memory(size_t message_bytes);

/* ---- one message ---- */

/* A message whose length is not known when it begins may take the memory of one of that length. */
#define INGEST_UNKNOWN_BYTES ((size_t)16 << 20)

struct ingest_batch {
	struct ingest_inlet *inlet;
	const char *peer;
	struct str tenant;
	struct str user_agent;          /* lives until the end; "": not known */
	int64_t begun_ns;               /* since 1970 */
	struct profile profile;         /* to decode into, after ingest_batch_begin() */
	struct profile_refused refused; /* set by ingest_batch_put() */
	bool stored;                    /* what passed the limits */
	struct samples_entry *entry;    /* memory of the sink */
};

/* To be called when a request has come. `peer` ("address:port" of the sender, or of a scraped
 * server) must live until the end. From here on ingest_batch_end() must be called, even after
 * failures. */
void ingest_batch_init(
	struct ingest_batch *b, struct ingest_inlet *in, const char *peer, size_t message_bytes);
/* Checks health and the tenant's limit of messages, and gets memory, in this order. The text of
 * `tenant` has to live until the end. `message_bytes` 0: not known yet, ingest_batch_more() says
 * it. E_UNAVAILABLE: try again later. E_LIMIT: more than the tenant may send. */
NODISCARD enum status ingest_batch_begin(
	struct ingest_batch *b, struct str tenant, size_t message_bytes, struct err *e);
/* The same for one more message of a stream. */
NODISCARD enum status ingest_batch_more(
	struct ingest_batch *b, size_t message_bytes, struct err *e);
/* To be called before waiting for the sender: gives back all memory but `bytes` and that of the
 * profile. The next ingest_batch_more() gets it again. */
void ingest_batch_wait(struct ingest_batch *b, uint64_t bytes);
/* Demangles names, and puts the samples that pass every limit into the sink; the others are in
 * b->refused (samples, first reason) and counted. OK too when none is left. */
NODISCARD enum status ingest_batch_put(
	struct ingest_batch *b, struct hash128 batch_id, struct err *e);
/* For a protocol without partial success: E_INVALID if samples were refused (E_QUOTA if because of
 * too many series). */
NODISCARD enum status ingest_batch_verdict(const struct ingest_batch *b, struct err *e);
/* Counts, notes the agent (if it is one) and gives back all memory, the profile's too. `error`: the
 * error of this push in the list of agents; "": none. */
void ingest_batch_end(struct ingest_batch *b, enum status s, const char *error);
