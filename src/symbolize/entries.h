/* SPDX-License-Identifier: Apache-2.0 */
/* entries: what tables.c, entry.c and held.c share. */
#pragma once

#include "base/lock.h"
#include "symbolize/disk.h"
#include "symbolize/find.h"

#include <sys/stat.h>

/* Builds waiting; each may hold a descriptor. */
#define SYMBOLIZE_QUEUE_MAX 512
#define SYMBOLIZE_WORKERS_MAX 16

enum symbolize_state { ENTRY_IDLE, ENTRY_QUEUED, ENTRY_BUILDING };

struct symbolize_ref {
	struct debuginfo_table *table;
	uint64_t bytes;
	uint32_t refs;  /* users, and one of the entry */
	bool has_dwarf; /* all of it, or none to be had */
	bool is_trimmed;
	char carried[SYMBOLIZE_ID_MAX + 1]; /* build id in the file, which may not be the entry's */
};

struct symbolize_entry {
	char id[SYMBOLIZE_ID_MAX + 1];
	enum symbolize_state state;
	bool wanted;                /* a query asked for it */
	bool again;                 /* an offer came while it was being built */
	bool look;                  /* even where there is a table */
	bool replace;               /* even where it has DWARF */
	bool is_done;               /* a job of it ended, and nothing was offered since */
	bool is_left;               /* its table was trimmed, and no sample came since */
	bool is_found;              /* the file that waits lies where its path says */
	bool whole;                 /* even where there is a trimmed table */
	uint32_t wants;             /* messages with samples */
	int64_t wanted_ns;          /* monotonic: when such a message came last; 0: never */
	int64_t asked_ns;           /* monotonic: when a query used it last */
	char *home;                 /* path that its file had last on this host, or NULL */
	struct symbolize_ref *open; /* may be NULL */
	int64_t opened_ns;          /* monotonic */
	int64_t not_before_ns;      /* monotonic: do not look for files earlier */
	int64_t whole_after_ns;     /* the same, where there is a trimmed table */
	uint64_t last_used;
	int64_t told_ns; /* monotonic: when the file of the open table was said to be in use */
	char *path;      /* may be NULL */
	int fd;          /* offered, or -1 */
	int kept_fd; /* of the file that its table was made of, which is not at its path; or -1 */
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
	uint32_t held;       /* descriptors of idle entries */
	int64_t look_at_ns;  /* monotonic: when those are looked at again */
	int64_t trim_at_ns;  /* monotonic: when tables are looked at, whether they are to be trimmed
			      */
	int64_t sweep_at_ns; /* the same, whether trimmed ones are needed */
	struct symbolizer_samples samples;
	uint64_t uses;       /* a clock for last_used */
	uint64_t ended;      /* builds */
	uint64_t open_bytes; /* of the tables that entries hold open */
	pthread_t workers[SYMBOLIZE_WORKERS_MAX];
	uint32_t worker_count;
};

/* Profiles have build ids as they were sent; tables go by lower-case hex. */
struct str symbolize_table_id(struct str build_id, char room[SYMBOLIZE_ID_MAX]);

/* ---- entry.c; the lock is held ---- */

void symbolize_unref(struct symbolize_ref *r); /* NULL is fine */
/* Its number in `entries`; MAP_NONE: there is none. */
uint32_t symbolize_entry_find(const struct symbolize_tables *t, struct str id);
/* The one of this build id, made where there is none, and the one used last; NULL: no memory, or
 * every other one is needed. */
struct symbolize_entry *symbolize_entry_make(struct symbolize_tables *t, struct str id);
/* Closes the files that it waits to be made of. */
void symbolize_entry_forget(struct symbolize_tables *t, struct symbolize_entry *en);

/* False: too many wait. */
bool symbolize_entry_queue(struct symbolize_tables *t, struct symbolize_entry *en);
/* What came while it was being built is done next. */
void symbolize_entry_again(struct symbolize_tables *t, struct symbolize_entry *en);
void symbolize_entry_close(struct symbolize_tables *t, struct symbolize_entry *en);

/* ---- held.c; the lock is held, but not while files are looked at ---- */

/* Makes tables of files that had samples and cannot be opened again. */
void symbolize_held_look(struct symbolize_tables *t);
/* The file is the one at its path, so that it can be had again. */
bool symbolize_held_lies_at(const char *path, const struct stat *of);

/* ---- trim.c; the same ---- */

/* Where whole tables take more disk than they may. */
void symbolize_trim(struct symbolize_tables *t);
