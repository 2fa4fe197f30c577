/* SPDX-License-Identifier: Apache-2.0 */
/*
 * discover: asks services where targets are. There is a module for each kind of service, with the
 * name, the keys and the __meta_ labels that it has in Prometheus (NAME_sd_configs).
 *
 * Layer 6. A configuration is read once; discover_find() may then be called by one thread at a time
 * and asks for all targets anew. An answer beyond the limits below, or one that makes no sense, is
 * an error, and the caller keeps the targets that it had.
 * Source: https://prometheus.io/docs/prometheus/latest/configuration/configuration/
 */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "conf/conf.h"
#include "scrape/client/client.h"

#define DISCOVER_TIMEOUT_NS ((int64_t)30 * 1000000000) /* of each request */
#define DISCOVER_ANSWER_MAX CONF_JSON_BYTES_MAX
#define DISCOVER_TREE_BYTES ((size_t)256 << 20) /* of the answers that are joined */
#define DISCOVER_TARGETS_MAX 100000u
#define DISCOVER_FOUND_BYTES ((size_t)64 << 20) /* of targets and their labels */
#define DISCOVER_LABELS_MAX 400                 /* of one target; further ones are left out */

struct discover_label {
	const char *name, *value;
};
struct discover_labels {
	const struct discover_label *v;
	uint32_t count;
};
struct discover_target {
	const char *address;
	const struct discover_labels *shared; /* with other targets; NULL: none */
	struct discover_labels own;           /* these come before shared ones of the same name */
};
struct discover_found {
	struct arena arena; /* of all texts */
	VEC(struct discover_target) targets;
};
void discover_found_init(struct discover_found *f);
void discover_found_deinit(struct discover_found *f);

/* ---- a discovery ---- */

struct discover_kind;
struct discover {
	const struct discover_kind *kind;
	int64_t refresh_ns;
	struct client_config client;
	/* a module's own settings follow */
};

struct discover_run {
	int wake_fd; /* the run ends with E_CANCELED once it can be read; -1: none */
};

struct discover_kind {
	const char *key; /* "kubernetes_sd_configs" */
	size_t size;     /* of its struct, which begins with a struct discover */
	int64_t refresh_ns;
	const struct conf_field *fields;
	void (*begin)(struct discover *d); /* puts defaults in; NULL: all is 0 */
	/* Refuses settings that make no sense; `n` is their place for errors. */
	enum status (*check)(struct discover *d, const struct conf_node *n, struct err *e);
	enum status (*find)(struct discover *d, const struct discover_run *run,
		struct discover_found *out, struct err *e);
};
/* All kinds, NULL at the end. */
extern const struct discover_kind *const discover_kinds[];
/* Keys of Prometheus that are refused by name, NULL at the end, and the sentence. */
extern const char *const discover_refused[];
#define DISCOVER_REFUSED "firn does not find targets this way"

/* Texts are the document's, which outlives it. */
NODISCARD enum status discover_read(const struct discover_kind *kind, const struct conf_node *n,
	struct discover **out, struct err *e);
void discover_free(struct discover *d); /* NULL is fine */
NODISCARD enum status discover_find(struct discover *d, const struct discover_run *run,
	struct discover_found *out, struct err *e);

/* ---- for the modules ---- */

#define DISCOVER_FIELDS                                                                           \
	{ "refresh_interval", conf_field_duration, offsetof(struct discover, refresh_ns), NULL }, \
		CLIENT_FIELDS(offsetof(struct discover, client))

/* Labels of a target that is being made. Texts are copied when they are kept. */
struct discover_draft {
	struct arena *arena;
	struct discover_label v[DISCOVER_LABELS_MAX];
	uint32_t count;
	bool no_memory;
};
void discover_draft_begin(struct discover_draft *d, struct discover_found *f);
/* name: a literal. An empty value is no label. */
void discover_put(struct discover_draft *d, const char *name, struct str value);
/* Adds a label whose name is `prefix` and a service's key, in which '_' replaces all but letters
 * and digits. */
void discover_put_key(
	struct discover_draft *d, const char *prefix, struct str key, struct str value);
/* The same for each text of a map; NULL is fine. */
void discover_put_map(struct discover_draft *d, const char *prefix, const struct conf_node *map);
void discover_put_number(struct discover_draft *d, const char *name, uint64_t value);
/* Drops all labels but the first `count`; discover_draft_back(d, 0) drops all. */
static inline void discover_draft_back(struct discover_draft *d, uint32_t count)
{
	d->count = count;
}
/* The draft as labels that targets share; NULL: no memory. */
const struct discover_labels *discover_keep(struct discover_draft *d, struct discover_found *f);
/* Adds a target with the labels of the draft. E_LIMIT: too many. */
NODISCARD enum status discover_add(struct discover_found *f, struct str address,
	const struct discover_labels *shared, struct discover_draft *d, struct err *e);
/* "HOST:PORT", with brackets around an address of IPv6; in `a`, NULL: no memory. */
const char *discover_join(struct arena *a, struct str host, struct str port);

/* GETs JSON: `target` is a whole URL, or a path where `f` has an address. The answer's tree lies in
 * `a`. Any HTTP status but 200 is an error that names it. `without` as in conf_json_parse(). */
NODISCARD enum status discover_get(const struct discover *d, const struct discover_run *run,
	struct fetch *f, const char *target, const char *const *without, struct arena *a,
	const struct conf_node **out, struct err *e);
void discover_put_escaped(struct buf *b, struct str s); /* for URLs */

/* One run of a module that asks a single server. */
struct discover_search {
	struct discover *d;
	const struct discover_run *run;
	struct fetch *fetch;
	struct discover_found *out;
	struct discover_draft draft;
	struct arena list;    /* for the answer that lists all services */
	struct arena service; /* for the answer about one service */
	uint32_t services;    /* that were asked for */
};
typedef enum status discover_search_fn(struct discover_search *x, struct err *e);
/* Opens a client (`address`: as in client_open()) and calls fn. A failure names `server`. */
NODISCARD enum status discover_server(struct discover *d, const struct discover_run *run,
	const char *address, const char *server, discover_search_fn *fn, struct discover_found *out,
	struct err *e);

#define DISCOVER_SERVICES_MAX 2000u /* a request each */
struct discover_registry {
	/* Asks for the list of a service's instances, which lies in x->service. */
	enum status (*ask)(struct discover_search *x, struct str service,
		const struct conf_node **out, struct err *e);
	/* Adds an instance as a target. */
	enum status (*add)(struct discover_search *x, struct str service,
		const struct conf_node *instance, struct err *e);
};
/* Adds all instances of one more service. Errors name the service. E_LIMIT: too many services. */
NODISCARD enum status discover_service(struct discover_search *x, const struct discover_registry *r,
	struct str service, struct err *e);

/* An address as messages may name it: without a user and password, and without its query, which may
 * have a password too. */
struct str discover_shown(const char *address);
