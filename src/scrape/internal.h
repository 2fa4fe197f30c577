/* SPDX-License-Identifier: Apache-2.0 */
/* scrape's own. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/vec.h"
#include "conf/conf.h"
#include "fetch/fetch.h"
#include "os/os.h"
#include "relabel/relabel.h"
#include "scrape/client/client.h"
#include "scrape/discover/discover.h"
#include "scrape/scrape.h"

#define SCRAPE_KEEP_MAX 16
#define SCRAPE_SOURCES_MAX 64 /* of a job */
#define SCRAPE_PARAMS_MAX 32
#define SCRAPE_FOUND_MAX 100000u               /* addresses that one discovery found */
#define SCRAPE_GROUPS_BYTES ((size_t)16 << 20) /* of the groups that one discovery found */

/* ---- config.c ---- */

struct scrape_profile {
	const char *name, *path; /* "process_cpu", "/debug/pprof/profile" */
	bool enabled, delta;
	uint64_t seconds; /* 0: as the interval */
	struct {
		const char *type, *unit;
	} keep[SCRAPE_KEEP_MAX];
	uint32_t keep_count; /* 0: all sample types */
};

enum scrape_source_kind { SCRAPE_STATIC, SCRAPE_FILE, SCRAPE_HTTP, SCRAPE_MODULE };

struct scrape_group {
	const struct conf_node *targets;    /* a list of texts */
	const struct conf_node *labels;     /* a map; NULL */
	const char *meta_name, *meta_value; /* one more label, or NULL */
	const struct discover_target
		*found; /* from a module: all that is known of the target; NULL */
};

/* A source of targets. Its targets are always replaced as a whole. */
struct scrape_source {
	enum scrape_source_kind kind;
	const char *files[16]; /* patterns */
	uint32_t file_count;
	const char *url;
	struct client_config client;
	int64_t refresh_ns;
	struct discover *discover; /* of SCRAPE_MODULE, owned */
	uint64_t settings;         /* hash of its settings in the file */
	/* source.c's */
	uint64_t seen; /* hash of the files' stamps, or of the answer */
	struct arena arena;
	VEC(struct scrape_group) groups;
	struct discover_found discovered; /* of SCRAPE_MODULE */
	uint32_t found;                   /* addresses in the groups */
	pthread_t thread;                 /* of SCRAPE_HTTP and SCRAPE_MODULE */
	bool runs;
	int wake_fd;
	struct scrape *pool;
	char problem[ERR_TEXT_MAX]; /* its last failure, logged once; under the pool's lock */
};

struct scrape_job {
	const char *name, *scheme, *path_prefix;
	int64_t interval_ns, timeout_ns;
	struct {
		const char *name;
		const struct conf_node *values;
	} params[SCRAPE_PARAMS_MAX];
	uint32_t param_count;
	struct scrape_profile profiles[SCRAPE_PROFILES_MAX];
	uint32_t profile_count;
	struct client_config client;
	struct relabel *rules;
	struct scrape_source sources[SCRAPE_SOURCES_MAX];
	uint32_t source_count;
	uint64_t settings; /* hash of all settings but those that find targets */
};

struct scrape_config {
	atomic_uint refs;
	struct arena arena;
	VEC(struct scrape_job *) jobs;
};
NODISCARD enum status scrape_config_read(
	const struct conf_node *list, struct scrape_config *c, struct err *e);
NODISCARD enum status scrape_config_load(
	const char *path, struct scrape_config **out, struct os_stamp *stamp, struct err *e);
void scrape_config_unref(struct scrape_config *c);
/* [{targets: [], labels: {}}, …], of a file or an answer. */
NODISCARD enum status scrape_groups_read(const struct conf_node *list, const char *meta_name,
	const char *meta_value, struct scrape_source *to, struct err *e);

/* ---- target.c ---- */

struct scrape_target {
	struct scrape *pool;
	struct scrape_config *config; /* referenced; owns the next two */
	const struct scrape_job *job;
	const struct scrape_profile *profile;
	uint64_t key;
	struct arena arena; /* of the texts */
	struct scrape_label *discovered, *labels;
	size_t discovered_count, label_count;
	const char *url, *name; /* name: __name__ */
	bool dropped;
	/* run.c's; status is under the pool's lock */
	pthread_t thread;
	bool runs;
	int wake_fd;
	int64_t last_ns, next_ns, took_ns;
	enum scrape_health health;
	char error[ERR_TEXT_MAX];
	bool told_bad; /* under the lock too: what was logged last, and when (monotonic, 0: never)
			*/
	int64_t told_ns;
};
/* *out NULL: relabelling left nothing of it. E_INVALID: it is no target that could be scraped. */
NODISCARD enum status scrape_target_make(struct scrape_config *c, const struct scrape_job *job,
	const struct scrape_profile *profile, const struct scrape_group *g, struct str address,
	struct scrape_target **out, struct err *e);
void scrape_target_free(struct scrape_target *t);

/* ---- run.c ---- */

NODISCARD enum status scrape_target_start(struct scrape_target *t, struct err *e);
/* scrape_target_stop() may be called for many before the first is joined. */
void scrape_target_wake(struct scrape_target *t);
void scrape_target_join(struct scrape_target *t);
/* The moment of the next scrape after `last_ns` (0: there was none); it may be past by less than an
 * interval. If it is further away, because the clock was set or scraping took too long, the next
 * moment is chosen by `key`. */
int64_t scrape_moment(uint64_t key, int64_t interval_ns, int64_t last_ns, int64_t now_ns);
/* Whether to log how a scrape went; the answer is remembered. A lasting failure is logged once, and
 * a target that comes and goes at most once every SCRAPE_TOLD_NS. now_ns: monotonic. */
bool scrape_is_news(struct scrape_target *t, bool bad, int64_t now_ns);
/* With the pool's lock held, after scrape_is_news(). True if the same was logged lately for another
 * profile of the same server, which may be down. */
bool scrape_is_told_of_another(const struct scrape_target *t);

/* ---- pool.c ---- */

struct scrape {
	scrape_check_fn *check; /* reload_lock's; NULL: none */
	const char *path;
	struct ingest_inlet *inlet;
	scrape_forward_fn *forward; /* in place of the inlet; NULL */
	void *forward_ctx;
	scrape_told_fn *told;
	struct scrape_metrics metrics;
	struct lock lock; /* guards all below */
	struct scrape_config *config;
	struct os_stamp stamp;
	VEC(struct scrape_target *) targets; /* NULL only within sync_targets() */
	bool changed;                        /* a discovery found other targets */
	char problem[ERR_TEXT_MAX]; /* sync_targets()'s problem with a target, logged once */
	struct lock reload_lock;    /* one reload at a time; taken before `lock` */
	pthread_t thread;
	bool runs;
	int wake_fd;
	atomic_bool stopping;
};

/* ---- source.c ---- */

/* Reads the files of a source again if one has changed. On an error `problem` says why, and the
 * last targets stay. */
void scrape_source_look(struct scrape *x, struct scrape_source *s);
void scrape_sources_start(struct scrape *x, struct scrape_config *c);
void scrape_sources_stop(struct scrape_config *c); /* NULL is fine */
/* Targets that a source has found stay until the same source in the new configuration has its first
 * answer. */
void scrape_sources_hand_on(struct scrape_config *from, struct scrape_config *to);
const char *scrape_source_key(const struct scrape_source *s); /* "dns_sd_configs" */
size_t scrape_source_found(const struct scrape_source *s);    /* addresses; with the pool's lock */
/* Logs a problem unless it is `known`, which becomes this problem. */
void scrape_tell(struct scrape *x, char known[ERR_TEXT_MAX], enum status s, const struct err *e);
