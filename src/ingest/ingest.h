/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest: the way of samples from a protocol to where they are kept (samples/sink.h), whatever the
 * protocol: memory, limits of tenants, the count of series, names, counters, the list of agents.
 *
 * Layer 5 (may use base, os, profile, samples, symbolize). Thread safe: one ingest_batch is one
 * thread's.
 *
 * A protocol has one row (struct ingest_protocol), takes its way in once (ingest_inlet()), and then
 * handles each message like this, whatever fails in between:
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

/* Beyond one a sample or message is refused, and the answer names the flag; stacks are cut. */
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
/* The text of --tenant-limits (docs/api.md). What a line does not name is as in `base`. E_INVALID
 * and E_LIMIT name the line. */
NODISCARD enum status tenant_rules_parse(
	struct str text, const struct ingest_limits *base, struct tenant_rules *out, struct err *e);
void tenant_rules_deinit(struct tenant_rules *r);
/* NULL: none fits. */
const struct tenant_rule *tenant_rules_find(const struct tenant_rules *r, struct str tenant);

/* ---- series of a tenant: series.c ---- */

/* Tenants whose series are counted apart; those beyond share one count. */
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
/* Takes the samples of series that would be more than series_max (0: no limit) out of the profile;
 * *out_refused of them. */
NODISCARD enum status series_guard_limit(struct series_guard *g, struct str tenant,
	uint32_t series_max, struct profile *p, int64_t now_ns, uint64_t *out_refused);
uint64_t series_guard_count(struct series_guard *g);

/* ---- agents: agents.c ---- */

/* Agents that are remembered; the one heard of longest ago goes. */
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
	int64_t failure_ns;                /* since 1970, of the push that had it */
	int64_t last_ns;                   /* since 1970 */
	int64_t took_ns;
	uint64_t refused; /* samples that limits refused, since it is listed */
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
/* What the agents whose labels are in `p` (label node) have pushed; where none has that label, the
 * peer. */
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

/* What a protocol is called, and the counters that only it has. */
struct ingest_protocol {
	const char *name; /* in the metrics: protocol="name" */
	/* A message may be compressed inside: it takes the memory of one so many times as long;
	 * 0 is 1. */
	uint32_t expansion;
	bool asks; /* firn asks for the messages: the client is no agent */
	const struct metric_def *own;
	size_t own_count;
};

/* Protocols at a time. */
#define INGEST_PROTOCOLS_MAX 32

/* The way in of one protocol, and what came by it. */
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
	int64_t retention_ns;           /* samples that are older are refused; 0: none */
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
	struct symbolizer *wants;          /* set before the sink; NULL: names are not looked for */
};
/* ingest_deinit() is due after a failure too. */
NODISCARD enum status ingest_init(struct ingest *in, const struct ingest_config *c, struct err *e);
void ingest_deinit(struct ingest *in);
/* Once for each protocol, before the first message (not thread safe); the same protocol again gives
 * the same inlet. It lives as long as `in`. E_LIMIT: too many protocols. */
NODISCARD enum status ingest_inlet(struct ingest *in, const struct ingest_protocol *p,
	struct ingest_inlet **out, struct err *e);
/* From now on samples go there; before that ingest_health() says that the store is being opened.
 * `wants` is told which executables have samples (symbolizer_want()); NULL: none. */
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

/* A request has come. `peer` ("address:port" of the sender, or who was asked) has to live until the
 * end. ingest_batch_end() is due from here on, whatever fails. */
void ingest_batch_init(
	struct ingest_batch *b, struct ingest_inlet *in, const char *peer, size_t message_bytes);
/* Asks for health, for the tenant's limit of messages, and for memory, in this order. The text of
 * `tenant` has to live until the end. `message_bytes` 0: not known yet, ingest_batch_more() says
 * it. E_UNAVAILABLE: try again later. E_LIMIT: more than the tenant may send. */
NODISCARD enum status ingest_batch_begin(
	struct ingest_batch *b, struct str tenant, size_t message_bytes, struct err *e);
/* The same for one more message of a stream. */
NODISCARD enum status ingest_batch_more(
	struct ingest_batch *b, size_t message_bytes, struct err *e);
/* The sender is waited for: all memory but `bytes` and what the profile takes is given back, and
 * asked for again by the next ingest_batch_more(). */
void ingest_batch_wait(struct ingest_batch *b, uint64_t bytes);
/* Demangles names, and puts the samples that pass every limit into the sink; the others are in
 * b->refused (samples, first reason) and counted. OK too when none is left. */
NODISCARD enum status ingest_batch_put(
	struct ingest_batch *b, struct hash128 batch_id, struct err *e);
/* For a sender whose protocol knows no partial success: E_INVALID (E_QUOTA where too many series
 * are the reason) when samples were refused. */
NODISCARD enum status ingest_batch_verdict(const struct ingest_batch *b, struct err *e);
/* Counts, notes the agent (if it is one) and gives back all memory, the profile's too. `error`:
 * what the list of agents says of this push; "" for nothing. */
void ingest_batch_end(struct ingest_batch *b, enum status s, const char *error);
