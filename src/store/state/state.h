/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/state/state: what an open store is made of, and the steps that change it.
 *
 * Layer 3, private to store/. docs/concurrency.md has the order of the locks, and what each
 * protects.
 */
#pragma once

#include "store/log/log.h"
#include "store/memory/memory.h"
#include "store/part/part.h"
#include "store/state/age_clock.h"
#include "store/state/dedupe.h"

/* The dictionary of labels takes at most this fraction of the memory budget: 1/16. */
#define DICTIONARY_SHARE 16
/* Rewriting and merging never run at the same time (merge_lock), so they have one quota: 1/4. */
#define REWRITE_MEMORY_SHARE 4
#define REWRITE_BYTES(s) ((s)->config.memory_bytes / REWRITE_MEMORY_SHARE)
/* All queries together may take so many sixteenths of the memory. */
#define QUERIES_SIXTEENTHS 4
/* A memtable takes at most this many times memtable_bytes. Only a batch that is alone in it makes
 * it that large. */
#define MEMTABLE_LIMIT 2
#define MERGE_RETRY_NS (600LL * 1000000000LL)

struct part_groups; /* retain.c */
struct thin_seen {
	uint64_t id;
	uint64_t rules;
};

/* What the manifest says of a part. */
struct manifest_part {
	uint64_t id;
	uint64_t bytes;
	uint64_t rows;
	uint64_t samples;
	int64_t first_ns;
	int64_t last_ns;
	int64_t resolution_ns;
	uint32_t level;
};

struct store {
	struct samples_db samples; /* the first member */
	struct samples_sink sink;
	struct store_config config;
	char *path;
	char parts_dir[STORE_PATH_MAX]; /* for people; parts are reached by: */
	struct place *place;
	char log_dir[STORE_PATH_MAX];
	char quarantine_dir[STORE_PATH_MAX];
	int lock_fd;
	int resident_fd; /* os_self_rss_open() */
	struct hash128 id;
	store_notice_fn *notice;
	void *notice_ctx;
	struct store_metrics metrics;
	struct dictionary *dictionary; /* of labels; with `lock` held; NULL: none */
	struct log *log;
	struct dedupe dedupe;
	struct memory_share queries_memory;
	struct memory_share ingest_memory;
	atomic_int_fast64_t looked_ns;  /* monotonic: when the process was measured */
	atomic_int_fast64_t trimmed_ns; /* and free memory given back */
	atomic_bool pressed;            /* as found then */
	uint64_t memtable_bytes;        /* a memtable that is larger becomes a part */

	struct lock manifest_lock;  /* held while it is written, and the set changes */
	bool manifest_unknown;      /* the last try may have replaced it; with manifest_lock */
	atomic_bool manifest_stale; /* it could not be written */

	struct rwlock gate; /* read: an append between log and memtable; write: freezing */
	struct lock flush_lock;
	struct lock merge_lock;
	int64_t merge_retry_ns;   /* monotonic, after a failure; with merge_lock held */
	VEC(uint64_t) left_alone; /* parts that are not merged; with merge_lock held */
	struct lock retain_lock;  /* guards what follows, of retain.c and thin.c */
	int64_t rewrite_retry_ns; /* monotonic, after a failure */
	struct part_groups *groups;
	size_t group_count;
	VEC(struct thin_seen)
	thin_seen;

	struct lock lock; /* guards what follows */
	pthread_cond_t flush_wake;
	pthread_cond_t merge_wake;
	pthread_cond_t relieved; /* a memtable was written */
	unsigned views;          /* that are open */
	struct age_clock age;
	struct memtable *active;
	struct memtable *frozen; /* being written, or waiting for a disk with room */
	uint64_t frozen_until;   /* records up to here are in parts or in `frozen` */
	VEC(struct part *) parts;
	VEC(struct batch_seen) removed;   /* batches that went with whole parts, oldest first */
	VEC(uint64_t) newer;              /* parts of a newer firn, left alone; set at the start */
	VEC(struct manifest_part) unread; /* named by the manifest, left alone */
	VEC(uint64_t) garbage;            /* removed once no manifest on the disk names them */
	bool undecided;                   /* parts.c */
	uint64_t next_part;
	uint64_t reserved_bytes; /* of the active table, by appends under way */
	unsigned waiting;        /* appends that wait for room */
	bool flush_wanted;
	atomic_bool stopping;     /* set with `lock` held */
	enum status flush_status; /* of the last try */
	struct err flush_err;
	pthread_t flusher;
	pthread_t merger;
	bool flusher_runs;
	bool merger_runs;
};

void store_say(struct store *s, const char *fmt, ...) PRINTF(2, 3);

/* E_UNAVAILABLE: the lock file in the directory is not the one that this store has locked, because
 * the directory was removed or made anew. Then nothing may be written there. */
NODISCARD enum status store_check_home(struct store *s, struct err *e);

/* ---- parts ---- */

/* A number for a new part. */
uint64_t store_next_part(struct store *s);
/* One change of the set. */
struct parts_change {
	struct part *const *old; /* these leave it, */
	size_t old_count;
	struct part *fresh; /* and this one comes in; NULL: none */
	bool frozen_is_in;  /* `fresh` holds the frozen table, which goes */
};
/* Makes the whole change or none of it, durably: the manifest first, then the list. The set takes
 * the reference of `fresh`, and gives back those of `old`, whose files are removed. E_NOTFOUND: one
 * of `old` is not in the set. Another error: the manifest was not written; the caller discards
 * `fresh`. When `fresh` is NULL, the files of `old` are removed even so, unless the set is
 * undecided (parts.c): a manifest that names a missing part does no harm. */
NODISCARD enum status store_change_parts(
	struct store *s, const struct parts_change *c, struct err *e);
/* E_UNAVAILABLE: it is not known what the manifest on the disk names, and it cannot be written now.
 * To be asked before a part is written. */
NODISCARD enum status store_check_decided(struct store *s, struct err *e);
/* The file of a part that is not in the set is removed, now or later. */
void store_discard(struct store *s, uint64_t id);
/* True: the part has left the set, and its file is not removed yet. */
bool store_is_garbage(struct store *s, uint64_t id);
/* After a manifest was written. */
void store_collect_garbage(struct store *s);
/* Moves the part's file to quarantine/, writes the reason into a file beside it, and takes the part
 * out of the set. */
void store_quarantine(struct store *s, struct part *p, const char *reason);
NODISCARD enum status store_quarantine_part(
	struct store *s, uint64_t id, const char *reason, struct err *e);
/* The same of a part that is not damaged: it is not counted. */
NODISCARD enum status store_take_out(
	struct store *s, uint64_t id, const char *reason, struct err *e);
/* A copy of a file of the log; the file stays where it is. */
NODISCARD enum status store_quarantine_copy(
	struct store *s, const char *path, const char *reason, struct err *e);
/* With `lock` held. Its place in the set, or the end. */
size_t store_find_part(const struct store *s, const struct part *p);
/* With `lock` held. */
void store_count_parts(struct store *s);
/* To be called before a part is removed with nothing in its place. Its batches are remembered, also
 * in the next manifest, so that one that is sent again within the hour is not stored again. */
void store_remember_batches(struct store *s, struct part *p);

/* ---- steps ---- */

NODISCARD enum status store_recover(struct store *s, struct err *e);
/* The memtable as a part. OK when there was nothing to do. */
NODISCARD enum status store_flush_now(struct store *s, struct err *e);
/* Records up to this number are in parts: none of them needs the log any more. */
uint64_t store_written_until(struct store *s);
/* The time by which samples grow old, by the clocks of the machine. Notices tell when they
 * disagree. AGE_UNKNOWN: not known yet. */
int64_t store_age_now(struct store *s);
/* Looks at the resident memory of the process, at most every few milliseconds. Near the limit it
 * gives free memory back to the system. True: the process is near the limit even after that. */
bool store_relieve(struct store *s);
/* What merging or rewriting may take now: its share, less when the process is near its limit. */
uint64_t store_upkeep_bytes(struct store *s);

/* ---- manifest ---- */

struct manifest {
	struct hash128 store_id;
	bool is_set; /* it names all parts; false for a manifest older than minor version 1 */
	uint64_t next_part;
	uint64_t next_segment;
	uint64_t next_sequence;
	VEC(struct manifest_part) parts;
	VEC(struct batch_seen) removed;
	int64_t trusted_ns; /* age_clock.h; 0: none */
};
#define MANIFEST_REMOVED_MAX 65536
void manifest_deinit(struct manifest *m);
NODISCARD enum status manifest_parse(struct str bytes, struct manifest *out, struct err *e);
void manifest_encode(const struct manifest *m, struct buf *out);
/* E_NOTFOUND when there is none. */
NODISCARD enum status store_manifest_read(struct store *s, struct manifest *out, struct err *e);
struct manifest_part store_manifest_entry(const struct part *p);
/* With manifest_lock held: durable when OK. Else manifest_unknown tells what a crash may leave. */
NODISCARD enum status store_manifest_put(
	struct store *s, struct part *const *parts, size_t n, struct err *e);
/* Writes the current state. Only the first failure is reported, by a notice; the merging thread
 * tries again. */
void store_manifest_write(struct store *s);
