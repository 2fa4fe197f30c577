/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload_queue: the executables whose names the server should have: the state of each, and when it
 * is its turn. Private to agent/ (uploader.c). No thread and no lock of its own: the caller holds
 * one.
 *
 * A file is known by its build id. It is asked for once samples had it, not because it is mapped.
 */
#pragma once

#include "base/clock.h"
#include "base/map.h"
#include "base/metrics.h"
#include "base/vec.h"
#include "debuginfo/debuginfo.h"

/* Build ids; beyond that the least recently sampled are removed. */
#define UPLOAD_QUEUE_FILES_MAX 4096
/* Descriptors of files that were just met, so that the file of a program that ends soon can be
 * sent. Their number and time are limited, since an open descriptor keeps its file system from
 * being unmounted. A file without a name can be had in no other way, and is kept for longer. */
#define UPLOAD_QUEUE_FRESH_MAX 64
#define UPLOAD_QUEUE_FRESH_NS (3 * NS_PER_SEC)
#define UPLOAD_QUEUE_NAMELESS_NS (60 * NS_PER_SEC)
#define UPLOAD_QUEUE_PATH_MAX 256
#define UPLOAD_QUEUE_DROPPED_MAX (2 * UPLOAD_QUEUE_FRESH_MAX)
#define UPLOAD_QUEUE_SHIFT_MAX 8u /* of what is doubled each time */
/* After so many broken uploads in a row, a file is not tried again before samples have it after
 * again_ns. */
#define UPLOAD_QUEUE_BROKEN_MAX 5u

enum upload_state {
	UPLOAD_UNMET,   /* mapped, and in no sample yet */
	UPLOAD_WAITING, /* for a thread that asks */
	UPLOAD_BUSY,
	UPLOAD_THERE,   /* the server has it: asked again when samples have it after due_ns */
	UPLOAD_NOTHING, /* nothing in it gives names */
	UPLOAD_LATER,   /* tried again at due_ns */
	UPLOAD_GONE,    /* it cannot be read: tried when samples have it after due_ns */
};

struct upload_entry {
	char build_id[DEBUGINFO_ID_MAX + 2];
	char path[UPLOAD_QUEUE_PATH_MAX]; /* as the process sees it */
	uint32_t file_id;                 /* as files.h */
	int pid;                          /* that had it in a sample last */
	int fd;                           /* -1: none */
	int64_t fd_until_ns;
	enum upload_state state;
	uint64_t turn; /* WAITING: lower ones go first */
	int64_t due_ns;
	int64_t met_ns;
	uint32_t attempts;
	bool is_begun; /* the server may believe that an upload of this agent is still under way */
	bool is_refused; /* once, when it was to begin */
};

#define UPLOAD_QUEUE_METRICS(X)                                                                  \
	X(known, GAUGE, "firn_agent_debuginfo_files",                                            \
		"Executables that were met, as far as sending their names goes.")                \
	X(waiting, GAUGE, "firn_agent_debuginfo_waiting", "Of these, to be asked for or sent.")  \
	X(dropped, COUNTER, "firn_agent_debuginfo_dropped_total",                                \
		"Times that too many waited (--debuginfo-upload-queue-size), or were known, so " \
		"that a file was left until it is met again.")
struct upload_queue_metrics {
	UPLOAD_QUEUE_METRICS(METRIC_FIELD)
};

struct upload_queue_times {
	int64_t again_ns;       /* what the server has is asked for again */
	int64_t in_progress_ns; /* another agent uploads it */
	int64_t retry_ns;       /* doubled each time */
	int64_t refused_ns;     /* likewise: the server does not take this file */
	int64_t gone_ns;        /* likewise */
};
void upload_queue_times_default(struct upload_queue_times *t);

struct upload_queue {
	uint32_t queue_max; /* that may wait */
	struct upload_queue_times times;
	VEC(struct upload_entry) entries;
	struct map by_id;
	uint32_t waiting, fresh;
	int dropped[UPLOAD_QUEUE_DROPPED_MAX]; /* descriptors to be closed */
	uint32_t dropped_count;
	uint64_t turns;
	uint32_t probe; /* an entry that is THERE, to be asked for at once; MAP_NONE: none */
	struct upload_queue_metrics metrics;
};

NODISCARD enum status upload_queue_init(
	struct upload_queue *b, uint32_t queue_max, const struct upload_queue_times *times);
void upload_queue_deinit(struct upload_queue *b);

/* It was opened; `fd` is duplicated. */
void upload_queue_seen(
	struct upload_queue *b, const char *build_id, const char *path, int fd, int64_t now_ns);
/* A sample had it. True: it waits from now on. */
bool upload_queue_met(struct upload_queue *b, uint32_t file_id, const char *build_id,
	const char *path, int pid, int64_t now_ns);
/* Drops descriptors whose time is over. */
void upload_queue_tick(struct upload_queue *b, int64_t now_ns);
/* Descriptors that the caller is to close while no thread waits for it: closing the last one of a
 * large deleted file takes time. */
uint32_t upload_queue_dropped(struct upload_queue *b, int out[UPLOAD_QUEUE_DROPPED_MAX]);
/* When there is a file to take. INT64_MAX: not before samples have another file. */
int64_t upload_queue_next_ns(const struct upload_queue *b);

/* The file whose turn it is; it is BUSY until upload_queue_finish(). */
struct upload_job {
	uint32_t entry;
	char build_id[DEBUGINFO_ID_MAX + 2];
	char path[UPLOAD_QUEUE_PATH_MAX];
	uint32_t file_id;
	int pid;
	int fd; /* the taker's; -1: none */
	bool is_begun;
	bool is_refused;
	bool is_probe;     /* the server had it: does it still? */
	uint32_t attempts; /* in vain, so far */
};
bool upload_queue_take(struct upload_queue *b, int64_t now_ns, struct upload_job *out);

enum upload_outcome {
	UPLOAD_SENT,
	UPLOAD_NOT_WANTED,  /* the server has it, or knows where to get it */
	UPLOAD_IN_PROGRESS, /* another agent sends it */
	UPLOAD_NO_NAMES,
	UPLOAD_NO_FILE, /* gone, or it cannot be read */
	UPLOAD_CHANGED, /* while it was sent */
	UPLOAD_REFUSED, /* the server does not take this file */
	UPLOAD_BROKEN,  /* the way to the server, in the middle */
	UPLOAD_AWAY,    /* the server did not answer; the file is not to blame */
};
/* The queue takes job->is_begun, is_refused and fd as they are now. */
void upload_queue_finish(
	struct upload_queue *b, struct upload_job *job, enum upload_outcome o, int64_t now_ns);

/* The server may be another one by now: soon it is asked for a file that it had. */
void upload_queue_probe(struct upload_queue *b);
/* To be called when the server is another one. All files that the old one had wait again. */
void upload_queue_doubt(struct upload_queue *b);
/* How many files are to be asked for or sent, now or later. */
uint32_t upload_queue_waiting(const struct upload_queue *b);
void upload_queue_write_metrics(const struct upload_queue *b, struct buf *out);
