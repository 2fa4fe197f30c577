/* SPDX-License-Identifier: Apache-2.0 */
/* entries: what tables.c, entry.c and held.c share. */
#pragma once

#include "base/lock.h"
#include "symbolize/disk.h"
#include "symbolize/find.h"

#include <sys/stat.h>

/* Builds that wait; each may have an open descriptor. */
#define SYMBOLIZE_QUEUE_MAX 512
#define SYMBOLIZE_WORKERS_MAX 16

enum symbolize_state { ENTRY_IDLE, ENTRY_QUEUED, ENTRY_BUILDING };

struct symbolize_ref {
	struct debuginfo_table *table;
	uint64_t bytes;
	uint32_t refs;  /* its users', and one of the entry */
	bool has_dwarf; /* it has all DWARF, or there is none to be had */
	bool is_trimmed;
	char carried[SYMBOLIZE_ID_MAX + 1]; /* build id in the file, which may not be the entry's */
};

struct symbolize_entry {
	char id[SYMBOLIZE_ID_MAX + 1];
	enum symbolize_state state;
	bool wanted;                /* a query asked for it */
	bool again;                 /* an offer came while it was being built */
	bool look;                  /* look for files even if there is a table */
	bool replace;               /* replace the table even if it has DWARF */
	bool is_done;               /* a build of it ended, and nothing was offered since */
	bool is_left;               /* its table was trimmed, and no sample came since */
	bool is_found;              /* the offered file lies where its path says */
	bool whole;                 /* build it even if there is a trimmed table */
	uint32_t wants;             /* how many messages had samples of it */
	int64_t wanted_ns;          /* monotonic: when such a message came last; 0: never */
	int64_t asked_ns;           /* monotonic: when a query used it last */
	char *home;                 /* path that its file had last on this host, or NULL */
	struct symbolize_ref *open; /* may be NULL */
	int64_t opened_ns;          /* monotonic */
	int64_t not_before_ns;      /* monotonic: do not look for files earlier */
	int64_t whole_after_ns;     /* the same, if there is a trimmed table */
	uint64_t last_used;
	int64_t told_ns; /* monotonic: when the open table's file was last marked as used */
	char *path;      /* may be NULL */
	int fd;          /* offered, or -1 */
	int kept_fd; /* the file that its table was made of, if that is not at its path; else -1 */
};

struct symbolize_tables {
	struct symbolizer_config config; /* texts are copies */
	struct symbolize_disk disk;
	struct symbolize_metrics *metrics;
	struct lock lock;
	pthread_cond_t work; /* the queue grew, or stop */
	pthread_cond_t done; /* a build ended */
	atomic_bool stop;
	VEC(struct symbolize_entry *) entries;
	struct map index; /* of entries, by id */
	struct symbolize_entry *queue[SYMBOLIZE_QUEUE_MAX];
	uint32_t queue_first, queue_len;
	uint32_t held;       /* open descriptors of idle entries */
	int64_t look_at_ns;  /* monotonic: when those are checked again */
	int64_t trim_at_ns;  /* monotonic: when it is next checked which tables to trim
			      */
	int64_t sweep_at_ns; /* the same for trimmed tables that no sample needs */
	struct symbolizer_samples samples;
	uint64_t uses;       /* a clock for last_used */
	uint64_t ended;      /* builds */
	uint64_t open_bytes; /* of the tables that entries keep open */
	pthread_t workers[SYMBOLIZE_WORKERS_MAX];
	uint32_t worker_count;
};

/* The id of a build id's table: in lower-case hex, while profiles have build ids as they were sent.
 */
struct str symbolize_table_id(struct str build_id, char room[SYMBOLIZE_ID_MAX]);

/* ---- entry.c; the lock is held ---- */

void symbolize_unref(struct symbolize_ref *r); /* NULL is fine */
/* Its number in `entries`; MAP_NONE: there is none. */
uint32_t symbolize_entry_find(const struct symbolize_tables *t, struct str id);
/* The entry of this build id; it is made if there is none, and becomes the one used last. NULL: no
 * memory, or there are too many entries and all are needed. */
struct symbolize_entry *symbolize_entry_make(struct symbolize_tables *t, struct str id);
/* Closes the files from which its table was to be built. */
void symbolize_entry_forget(struct symbolize_tables *t, struct symbolize_entry *en);

/* False: too many wait. */
bool symbolize_entry_queue(struct symbolize_tables *t, struct symbolize_entry *en);
/* Queues what was asked for while it was being built. */
void symbolize_entry_again(struct symbolize_tables *t, struct symbolize_entry *en);
void symbolize_entry_close(struct symbolize_tables *t, struct symbolize_entry *en);

/* ---- held.c; the lock is held, but not while files are read ---- */

/* Makes tables of files that had samples and cannot be opened again. */
void symbolize_held_look(struct symbolize_tables *t);
/* Whether the file at `path` is this one, so that it can be opened again. */
bool symbolize_held_lies_at(const char *path, const struct stat *of);

/* ---- trim.c; the same ---- */

/* Trims tables if whole tables take more disk than they may. */
void symbolize_trim(struct symbolize_tables *t);
