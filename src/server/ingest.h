/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ingest: what happens to samples between a decoder and the store, whatever they came by: limits,
 * the count of series, the store, the list of agents.
 *
 * Private to server/. Thread safe.
 */
#pragma once

#include "base/vec.h"
#include "net/net.h"
#include "profile/profile.h"
#include "server/server.h"
#include "store/store.h"

#include <pthread.h>

struct server;

/* ---- limits of single tenants: limits.c ---- */

#define TENANT_RULES_MAX 10000
#define TENANT_RULES_BYTES_MAX ((size_t)4 << 20)

struct tenant_rule {
	char tenant[STORE_TENANT_MAX + 1];
	bool is_prefix;
	struct server_limits limits; /* but for connections */
};
struct tenant_rules {
	VEC(struct tenant_rule) v;
};
/* The text of --tenant-limits (docs/api.md). What a line does not name is as in `base`. E_INVALID
 * and E_LIMIT name the line. */
NODISCARD enum status tenant_rules_parse(
	struct str text, const struct server_limits *base, struct tenant_rules *out, struct err *e);
void tenant_rules_deinit(struct tenant_rules *r);
/* NULL: none fits. */
const struct tenant_rule *tenant_rules_find(const struct tenant_rules *r, struct str tenant);

/* ---- series of a tenant ---- */

/* Tenants whose series are counted apart; those beyond share one count. */
#define SERIES_TENANTS_MAX 256
/* A series that got no sample for this long (up to twice that) is not counted any more. */
#define SERIES_WINDOW_NS ((int64_t)3600 * 1000000000)

struct series_guard {
	pthread_mutex_t lock;
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

/* ---- agents ---- */

/* Agents that are remembered; the one heard of longest ago goes. */
#define AGENTS_MAX 4096
#define AGENT_FORGOTTEN_NS ((int64_t)300 * 1000000000)

struct agent_list {
	pthread_mutex_t lock;
	struct agent_entry *v;
	size_t count;
	size_t cap;
};
void agent_list_init(struct agent_list *l);
void agent_list_deinit(struct agent_list *l);
/* What the agents of a tenant whose labels are in `p` (label node) have pushed; where none has that
 * label, the peer. `error` is "" for none. */
void agent_list_note(struct agent_list *l, struct str tenant, const struct profile *p,
	const char *peer, int64_t begin_ns, int64_t end_ns, const char *error);
uint64_t agent_list_count(struct agent_list *l, int64_t now_ns);

/* ---- the way in ---- */

enum ingest_protocol {
	INGEST_OTLP,
	INGEST_RAW,
	INGEST_ARROW_V1,
	INGEST_ARROW_V2,
	INGEST_PYROSCOPE_PUSH,
	INGEST_PYROSCOPE_INGEST
};

struct ingest {
	struct series_guard series;
	struct agent_list agents;
	struct parca_stacks *stacks; /* of schema v1 */
	struct server_limits limits; /* of a tenant that no rule names */
	struct tenant_rules rules;
};
/* ingest_deinit() is due after a failure too. `tenant_limits`: a file; NULL: none. */
NODISCARD enum status ingest_init(
	struct ingest *in, const struct server_limits *l, const char *tenant_limits, struct err *e);
void ingest_deinit(struct ingest *in);
void ingest_write_metrics(struct ingest *in, struct buf *out);

/* Memory for decoding a message of that many bytes. */
size_t ingest_memory(size_t message_bytes);
/* Of that size, with the limit of stacks. */
NODISCARD enum status ingest_profile_init(const struct ingest *in, struct str tenant,
	struct profile *p, size_t message_bytes, struct err *e);
/* E_LIMIT: a message of that many bytes is more than the tenant may send. */
NODISCARD enum status ingest_check_size(
	const struct ingest *in, struct str tenant, size_t message_bytes, struct err *e);

/* Demangles names, and stores the samples that pass every limit; those that do not are in *out
 * (samples, first reason) and counted. OK too when none is left. */
NODISCARD enum status ingest_store(struct server *s, enum ingest_protocol how, struct str tenant,
	struct profile *p, struct hash128 batch_id, struct profile_refused *out, struct err *e);
/* A message of which nothing was stored, by the reason. */
void ingest_count_refused(struct server *s, enum status why);
/* The sentence for a sender whose protocol knows no partial success: E_INVALID (E_LIMIT where too
 * many series are the reason) when samples were refused. */
NODISCARD enum status ingest_verdict(const struct profile_refused *refused, struct err *e);
