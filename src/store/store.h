/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store: profiles over time in one directory: a write-ahead log, a memtable and immutable part
 * files (docs/formats/log.md, part.md, manifest.md).
 *
 * Layer 3 (may use base, os, codec, profile, samples, selector). Thread safety: every function may
 * be called from any thread; a store_view is one thread's.
 */
#pragma once

#include "base/metrics.h"
#include "profile/profile.h"
#include "samples/samples.h"
#include "samples/sink.h"
#include "selector/selector.h"

#define STORE_TENANT_MAX SAMPLES_TENANT_MAX

struct store;

/* A rule for samples of some tenants and types, which are kept for another time than the others, or
 * within a size of their own. The first rule that fits applies. */
#define STORE_RULES_MAX 32
struct store_retention_rule {
	bool has_tenant, has_type; /* false: any */
	struct str tenant;         /* '*' stands for any characters in both */
	struct str type; /* of "name:sample_type:sample_unit:period_type:period_unit[:delta]" */
	int64_t time_ns; /* 0: for ever */
	uint64_t bytes;  /* of part files; 0: no limit */
};
/* `tenant="a",type="memory:*"=7d/10GB`: one condition or both, a duration, a size, or both. The
 * rule points into the text. */
NODISCARD enum status store_retention_parse(
	struct str text, struct store_retention_rule *out, struct err *e);

/* The longest retention of all rules; 0: for ever. `all_ns`: the retention of samples that no rule
 * names. */
int64_t store_retention_longest(
	int64_t all_ns, const struct store_retention_rule *rules, size_t count);

/* What becomes of samples older than `age_ns`: times are rounded down to multiples of the
 * resolution, and some sample labels are dropped. Sums by series and stack stay exact. */
#define STORE_THIN_NAMES_MAX 32
struct store_thin_rule {
	int64_t age_ns;
	int64_t resolution_ns; /* 0: as they are */
	struct str names[STORE_THIN_NAMES_MAX];
	size_t name_count;
	bool all_names;
};
/* `7d=5m`, `7d=5m/thread_id+cpu`, `30d=0s/` and a star for all of them. Points into the text. */
NODISCARD enum status store_thin_parse(struct str text, struct store_thin_rule *out, struct err *e);

struct os_pool;
struct store_config {
	const char *path;
	uint64_t memory_bytes; /* budget of memtable, caches and queries together */
	/* What the whole process may have resident; 0: no limit. */
	uint64_t resident_bytes;
	int64_t retention_ns;     /* 0: for ever */
	uint64_t retention_bytes; /* of the directory; 0: no limit */
	/* These outlive the store; at most STORE_RULES_MAX of each. */
	const struct store_retention_rule *rules;
	size_t rule_count;
	const struct store_thin_rule *thin;
	size_t thin_count;
	int64_t flush_interval_ns;  /* a memtable older than this becomes a part */
	int64_t wait_ns;            /* how long a batch waits for memory, twice at the most */
	int64_t resolution_ns;      /* sample times are rounded down to this in merged parts */
	uint64_t log_segment_bytes; /* a segment of the log is preallocated with this */
	struct os_pool *pool; /* helps queries; outlives the store; NULL: they are one thread's */
};
void store_config_default(struct store_config *c);

/* Opens or makes the directory, takes its lock, recovers. Files that have to be set aside and files
 * that cannot be written, now or later, are reported through `notice` (may be NULL), in one
 * sentence each. Any thread may call it, also several at once, until store_close() has returned.
 * E_EXISTS: another process has it. */
typedef void store_notice_fn(void *ctx, const char *sentence);
NODISCARD enum status store_open(const struct store_config *c, store_notice_fn *notice, void *ctx,
	struct store **out, struct err *e);
/* Flushes and closes. */
void store_close(struct store *s);

/* A batch on its way in takes memory: its message, what is decoded of it, what is encoded for the
 * log. The receiver asks for that before decoding (*entry is NULL at first; more may be asked for
 * later), and gives it back when store_append() has returned, or anything has failed. Waits its
 * turn for up to ten seconds. A batch larger than the quota is let in alone. E_UNAVAILABLE: other
 * batches still hold the memory; the batch may be sent again. */
struct store_entry;
NODISCARD enum status store_admit(
	struct store *s, uint64_t bytes, struct store_entry **entry, struct err *e);
/* Gives back all but `bytes` while the store waits for the sender. The next store_admit() asks for
 * the memory again. */
void store_admit_keep(struct store *s, struct store_entry *entry, uint64_t bytes);
void store_admit_end(struct store *s, struct store_entry *entry); /* NULL is fine */

/* All samples of `p` under `tenant`, durable when this returns OK (group commit with concurrent
 * callers). `batch_id` makes a retry harmless: the same id within the last hour is acknowledged and
 * not stored again. Labels named in PROFILE_SAMPLE_LABELS are kept beside the sample, all others
 * make the series. E_INVALID: see profile_validate(). E_LIMIT: this batch will never fit: it is
 * larger than memory or log take. E_UNAVAILABLE: memory or disk are full, slow or failing: the
 * batch is sound, and may be sent again. */
NODISCARD enum status store_append(struct store *s, struct str tenant, const struct profile *p,
	struct hash128 batch_id, struct err *e);

/* The store as a samples_sink (samples/sink.h), valid as long as the store is open. health() fails
 * while the memtable is full and cannot be written. */
struct samples_sink *store_sink(struct store *s);

/* ---- reading: one consistent snapshot of memtable and parts (samples/samples.h) ---- */

/* The store as a database for reports; valid as long as the store is open. */
struct samples_db *store_samples(struct store *s);

/* One query of a report: its views are opened in `base`, and their memory is counted together. They
 * wait for memory that other queries hold, until `until_ns` (monotonic) or until `cancel` says that
 * the client has gone. Views of store_samples() do not wait. */
struct memory_holder;
struct store_query {
	struct samples_db base; /* the first member */
	struct store *store;
	struct memory_holder *holder;
	samples_cancel_fn *cancel; /* may be NULL */
	void *cancel_ctx;
	int64_t until_ns;
	int64_t pressed_ns; /* when the process was first seen near its limit; 0: never */
	bool again;
};
NODISCARD enum status store_query_init(struct store_query *q, struct store *s, int64_t until_ns,
	samples_cancel_fn *cancel, void *ctx, struct err *e);
void store_query_deinit(struct store_query *q);
/* To be called after a failure, with all views closed. True: the query gave its memory to an older
 * one, and there is memory again: make the report anew. */
bool store_query_again(struct store_query *q);

/* A view for the functions of the store itself (store_export()). */
struct store_view;
NODISCARD enum status store_view_open(
	struct store *s, struct str tenant, struct store_view **out, struct err *e);
void store_view_close(struct store_view *v);

/* Visits the locations without lines of all samples of every tenant, for which names may be found.
 * A location comes once for each part or memtable that has it. E_LIMIT: the symbols of a part take
 * more memory than a query may have. E_UNSUPPORTED: a part of a newer firn lies there. */
NODISCARD enum status store_locations(
	struct store *s, const struct profile_locations *to, void *ctx, struct err *e);

/* ---- upkeep ---- */

/* Memtable to a part now (tests, shutdown). */
NODISCARD enum status store_flush(struct store *s, struct err *e);

/* All samples that the query picks are gone from every answer, from parts, memory and log, and from
 * the disk (files set aside in quarantine/ and what views hold open excepted), durably, when this
 * is OK. Samples that arrive meanwhile may stay. Merging waits for it. On failure some may be
 * gone: asking again does the rest. E_UNSUPPORTED: a part of a newer firn is there, and nothing is
 * deleted. `q`: selector (NULL: all types and series), range, cancel. */
struct store_deleted {
	uint64_t rows;
	uint64_t samples;
	uint64_t parts;   /* rewritten or removed */
	uint64_t damaged; /* set aside on the way: their samples answer no query any more */
};
NODISCARD enum status store_delete(struct store *s, struct str tenant,
	const struct samples_query *q, struct store_deleted *out, struct err *e);

/* The samples that `q` picks from the view, as one part (docs/formats/export.md), appended to
 * `out`; nothing is appended when there are none. E_LIMIT: more than `out` takes, or than fits into
 * memory while it is sorted: ask for a shorter range. E_NOSPACE. */
NODISCARD enum status store_export(
	struct store_view *v, const struct samples_query *q, struct buf *out, struct err *e);

/* One part of an export, into the store, under its tenants' names, durably. An import that the
 * store holds already changes nothing (`known`). E_CORRUPT, E_UNSUPPORTED: the bytes are not (or no
 * longer) a part that this firn reads. E_EXISTS, unless `again`: the samples were exported from
 * this very store. E_NOSPACE. */
struct store_import_wish {
	bool again;
	int64_t from_ns; /* only what lies between: from inclusive, to exclusive */
	int64_t to_ns;
};
struct store_imported {
	uint64_t rows;
	uint64_t samples;
	bool known;
};
/* `wish` NULL: all of it, but nothing again. */
NODISCARD enum status store_import(struct store *s, struct str part,
	const struct store_import_wish *wish, struct store_imported *out, struct err *e);
/* Splits off the last of the parts that an export consists of; *rest: the bytes before it.
 * E_CORRUPT: the bytes do not end with the end of a part. */
NODISCARD enum status store_export_split(
	struct str bytes, struct str *rest, struct str *part, struct err *e);

#define STORE_METRICS(X)                                                                           \
	X(samples, COUNTER, "firn_store_samples_total", "Samples stored.")                         \
	X(batches, COUNTER, "firn_store_batches_total", "Batches stored.")                         \
	X(duplicates, COUNTER, "firn_store_duplicate_batches_total",                               \
		"Batches that were stored before.")                                                \
	X(rejected, COUNTER, "firn_store_rejected_batches_total", "Batches refused.")              \
	X(refused_memory, COUNTER, "firn_store_refused_batches_total{reason=\"memory\"}",          \
		"Of these, sound ones that there was no memory or no disk for.")                   \
	X(refused_disk, COUNTER, "firn_store_refused_batches_total{reason=\"disk\"}",              \
		"Of these, sound ones that there was no memory or no disk for.")                   \
	X(log_bytes, COUNTER, "firn_store_log_bytes_total", "Bytes written to the log.")           \
	X(log_syncs, COUNTER, "firn_store_log_syncs_total", "Syncs of the log.")                   \
	X(parts, GAUGE, "firn_store_parts", "Part files.")                                         \
	X(part_bytes, GAUGE, "firn_store_part_bytes", "Bytes of all part files.")                  \
	X(part_samples, GAUGE, "firn_store_part_rows", "Rows of all part files.")                  \
	X(memtable_bytes, GAUGE, "firn_store_memtable_bytes", "Bytes of the memtable.")            \
	X(memtable_rows, GAUGE, "firn_store_memtable_rows", "Rows of the memtable.")               \
	X(ingest_bytes, GAUGE, "firn_store_ingest_bytes",                                          \
		"Memory held by batches on their way in.")                                         \
	X(query_bytes, GAUGE, "firn_store_query_bytes", "Memory held by queries.")                 \
	X(query_restarts, COUNTER, "firn_store_query_restarts_total",                              \
		"Times that a query gave its memory to an older one, and began anew.")             \
	X(pressed, COUNTER, "firn_store_memory_pressed_total",                                     \
		"Times that the process was near its limit of memory.")                            \
	X(flushes, COUNTER, "firn_store_flushes_total", "Memtables written as parts.")             \
	X(merges, COUNTER, "firn_store_merges_total", "Merges of parts.")                          \
	X(parts_left_alone, COUNTER, "firn_store_unmerged_parts_total",                            \
		"Parts left as they are: merging takes more memory than there is, or an order "    \
		"that theirs is not.")                                                             \
	X(expired, COUNTER, "firn_store_parts_expired_total", "Parts dropped by retention.")       \
	X(expired_rows, COUNTER, "firn_store_expired_rows_total", "Rows dropped by age.")          \
	X(age_wait, GAUGE, "firn_store_age_wait_seconds",                                          \
		"Until samples go by age again: the clock has to be steady before.")               \
	X(thinned, COUNTER, "firn_store_thinned_parts_total", "Parts made coarser.")               \
	X(unthinned, COUNTER, "firn_store_unthinned_parts_total",                                  \
		"Parts left as exact as they are: thinning them takes more memory than there is.") \
	X(other_bytes, GAUGE, "firn_store_other_bytes", "Bytes of all files but parts.")           \
	X(deleted_rows, COUNTER, "firn_store_deleted_rows_total", "Rows deleted.")                 \
	X(imported_rows, COUNTER, "firn_store_imported_rows_total", "Rows imported.")              \
	X(quarantined, COUNTER, "firn_store_quarantined_total", "Damaged files set aside.")        \
	X(log_torn, COUNTER, "firn_store_log_torn_total", "Torn ends of logs cut at start.")
struct store_metrics {
	STORE_METRICS(METRIC_FIELD)
};
void store_write_metrics(struct store *s, struct buf *out);
/* Bytes of all part files. */
uint64_t store_part_bytes(struct store *s);

/* `firn store verify` and `inspect`: reads part or log files; findings as text lines. */
NODISCARD enum status store_verify(const char *path, struct buf *out, struct err *e);
NODISCARD enum status store_inspect(const char *path, struct buf *out, struct err *e);
