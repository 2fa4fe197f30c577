/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scrape: fetches pprof profiles from programs that serve them (/debug/pprof/…), as the
 * scrape_configs of a configuration file say: the form and the meaning are Parca's, which are
 * Prometheus'. Targets are found by static, file and HTTP discovery.
 *
 * Layer 6 (may use base, os, conf, fetch, codec, relabel, pprof, ingest). Thread
 * safe. Each target has a thread of its own, so that one that hangs delays no other.
 */
#pragma once

#include "base/metrics.h"
#include "ingest/ingest.h"

#define SCRAPE_JOBS_MAX 256
#define SCRAPE_PROFILES_MAX 64  /* of a job */
#define SCRAPE_TARGETS_MAX 1000 /* a thread each; further ones are not scraped, and counted */
#define SCRAPE_DROPPED_MAX 1000 /* that are remembered, for people to see */
#define SCRAPE_ANSWER_MAX ((size_t)64 << 20)
#define SCRAPE_LOOK_NS ((int64_t)1000000000) /* how often files are looked at */

#define SCRAPE_METRICS(X)                                                                   \
	X(targets, GAUGE, "firn_scrape_targets", "Targets that are scraped.")               \
	X(over, GAUGE, "firn_scrape_targets_over_limit",                                    \
		"Targets that are not scraped because there are too many.")                 \
	X(scrapes, COUNTER, "firn_scrapes_total", "Scrapes.")                               \
	X(failed, COUNTER, "firn_scrapes_failed_total", "Scrapes that brought no profile.") \
	X(discovery_failed, COUNTER, "firn_scrape_discovery_failures_total",                \
		"Times that targets could not be found out; the last ones stay.")           \
	X(reloads, COUNTER, "firn_config_reloads_total",                                    \
		"Times that the configuration file was read again.")                        \
	X(reload_ok, GAUGE, "firn_config_last_reload_successful",                           \
		"1: the last reading of the configuration file went well.")                 \
	X(reload_time, GAUGE, "firn_config_last_reload_success_timestamp_seconds",          \
		"When it last went well.")
struct scrape_metrics {
	SCRAPE_METRICS(METRIC_FIELD)
};

extern const struct ingest_protocol scrape_protocol;

struct scrape_label {
	const char *name, *value;
};
struct scrape;
/* SCRAPE_CONFIG: the result of reading a changed file. SCRAPE_TARGETS: why targets could not be
 * found, or an address is invalid, if the reason has changed. SCRAPE_FAILS: a target gives no
 * profile, and gave one before or is new; SCRAPE_WORKS: it gives profiles again. These two come
 * once for all profiles of a server, and for one target at most every SCRAPE_TOLD_NS; `e` names it.
 * Called by several threads. */
enum scrape_news { SCRAPE_CONFIG, SCRAPE_TARGETS, SCRAPE_FAILS, SCRAPE_WORKS };
#define SCRAPE_TOLD_NS ((int64_t)60 * 1000000000)
typedef void scrape_told_fn(enum scrape_news of, enum status s, const struct err *e);
/* Reads the file and begins. Samples go to `inlet`, which outlives it. `told` may be NULL.
 * E_INVALID: what is wrong with the file, and where. */
NODISCARD enum status scrape_start(const char *path, struct ingest_inlet *inlet,
	scrape_told_fn *told, struct scrape **out, struct err *e);
/* The same, but each valid profile goes to `forward` as it was fetched (with keep_sample_type: only
 * the kept types). It is called by several threads; a status but OK is the scrape's error. It must
 * end with E_CANCELED once `wake_fd` can be read: a reload that ends the target waits for it. */
typedef enum status scrape_forward_fn(void *ctx, const struct scrape_label *labels, size_t count,
	const char *name, struct str pprof, int wake_fd, struct err *e);
NODISCARD enum status scrape_start_forwarding(const char *path, scrape_forward_fn *forward,
	void *ctx, scrape_told_fn *told, struct scrape **out, struct err *e);
/* Reads the file again, as it also does by itself when it has changed. A wrong file changes
 * nothing. Targets that stay as they were go on undisturbed. */
NODISCARD enum status scrape_reload(struct scrape *x, struct err *e);
/* From then on `check` checks the rest of a changed file, too. */
typedef enum status scrape_check_fn(const char *path, struct err *e);
void scrape_check_by(struct scrape *x, scrape_check_fn *check);
void scrape_stop(struct scrape *x); /* NULL is fine */
void scrape_write_metrics(struct scrape *x, struct buf *out);
/* Checks scrape_configs without starting anything; `list` may be NULL. */
struct conf_node;
NODISCARD enum status scrape_check(const struct conf_node *list, struct err *e);

/* ---- what is scraped ---- */

enum scrape_health { SCRAPE_UNKNOWN, SCRAPE_GOOD, SCRAPE_BAD }; /* numbers as in Parca's API */
struct scrape_view {
	const char *job;
	const struct scrape_label *discovered, *labels; /* sorted; labels: after relabelling */
	size_t discovered_count, label_count;
	const char *url;
	const char *error;        /* "" */
	int64_t last_ns, next_ns; /* since 1970; 0: none yet */
	int64_t took_ns;
	enum scrape_health health;
	bool dropped; /* by relabelling: it is not scraped */
};
/* Calls fn for each target, by job; they are locked meanwhile. */
typedef void scrape_view_fn(void *ctx, const struct scrape_view *v);
void scrape_each(struct scrape *x, scrape_view_fn *fn, void *ctx);

struct scrape_discovery {
	const char *job, *key; /* key: "dns_sd_configs" */
	const char *error;     /* of the last try; "": it went well, or there was none yet */
	size_t found;          /* addresses that it found */
};
/* Calls fn for each discovery, by job; they are locked meanwhile. */
typedef void scrape_discovery_fn(void *ctx, const struct scrape_discovery *d);
void scrape_each_discovery(struct scrape *x, scrape_discovery_fn *fn, void *ctx);
