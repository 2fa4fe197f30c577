/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uploader: sends the names of executables to a server on another host: asks it for each build id
 * that samples had, and sends what it lacks (upload/upload.h, docs/agent.md). Private to agent/.
 *
 * Its threads are made when there is something to do, and end when there is nothing; they are nice
 * to others, and together take at most UPLOADER_CPU_PERCENT of a CPU and UPLOADER_BYTES_PER_SECOND
 * in the mean: the time that a file may take is waited for before it is sent, and then it goes as
 * fast as the server takes it, since servers end calls that last (Parca's after 5 seconds). Of a
 * file UPLOAD_CHUNK_BYTES are in memory.
 *
 * Thread safety: all functions from any thread, but for uploader_free().
 */
#pragma once

#include "agent/send/send.h"
#include "agent/status/status.h"
#include "agent/uploader/upload_queue.h"
#include "agent/uploader/upload_source.h"

#define UPLOADER_THREADS_MAX 64
#define UPLOADER_CPU_PERCENT 3
#define UPLOADER_BYTES_PER_SECOND ((uint64_t)16 << 20)
/* This much of a file is sent at once, the rest at that pace. */
#define UPLOADER_BURST_BYTES_MAX ((uint64_t)512 << 20)
/* An upload is ended when no byte was sent for UPLOADER_PATIENCE_NS, or after UPLOADER_BYTES_NS in
 * all. */
#define UPLOADER_PATIENCE_NS (60 * NS_PER_SEC)
#define UPLOADER_STOP_NS NS_PER_SEC
#define UPLOADER_BYTES_NS (3600 * NS_PER_SEC)

struct uploader_config {
	struct remote_config remote;
	struct upload_source_config source;
	uint32_t parallel_max; /* files at a time */
	uint32_t queue_max;    /* files that wait */
	uint64_t bytes_per_second;
	int64_t call_ns; /* of each call but the one with the bytes */
	int64_t patience_ns;
	int64_t backoff_min_ns, backoff_max_ns; /* while the server is away */
	int64_t unsupported_ns;                 /* while it takes no debug files */
	int64_t idle_ns;                        /* a thread without work ends */
	struct upload_queue_times times;
	upload_key_fn *find_key;
	void *ctx;
	struct problems *problems; /* may be NULL */
};
void uploader_config_default(struct uploader_config *c);

#define UPLOADER_FAILED "firn_agent_debuginfo_failed_total"
#define UPLOADER_FAILED_HELP "Times that names were not sent, by reason."
#define UPLOADER_METRICS(X)                                                                       \
	X(asked, COUNTER, "firn_agent_debuginfo_asked_total",                                     \
		"Times that the server was asked whether it wants a file.")                       \
	X(there, COUNTER, "firn_agent_debuginfo_not_wanted_total",                                \
		"Of these, answers that it has it, or gets it elsewhere.")                        \
	X(sent, COUNTER, "firn_agent_debuginfo_uploaded_total", "Files that it took.")            \
	X(bytes, COUNTER, "firn_agent_debuginfo_uploaded_bytes_total",                            \
		"Bytes sent, also of files that did not become whole.")                           \
	X(nothing, COUNTER, "firn_agent_debuginfo_without_names_total",                           \
		"Files not sent, since nothing in them gives names.")                             \
	X(in_progress, COUNTER, "firn_agent_debuginfo_in_progress_total",                         \
		"Answers that another agent sends it.")                                           \
	X(away, COUNTER, UPLOADER_FAILED "{reason=\"server\"}", UPLOADER_FAILED_HELP)             \
	X(denied, COUNTER, UPLOADER_FAILED "{reason=\"denied\"}", UPLOADER_FAILED_HELP)           \
	X(unsupported, COUNTER, UPLOADER_FAILED "{reason=\"unsupported\"}", UPLOADER_FAILED_HELP) \
	X(refused, COUNTER, UPLOADER_FAILED "{reason=\"refused\"}", UPLOADER_FAILED_HELP)         \
	X(broken, COUNTER, UPLOADER_FAILED "{reason=\"broken\"}", UPLOADER_FAILED_HELP)           \
	X(no_file, COUNTER, UPLOADER_FAILED "{reason=\"file\"}", UPLOADER_FAILED_HELP)            \
	X(changed, COUNTER, UPLOADER_FAILED "{reason=\"changed\"}", UPLOADER_FAILED_HELP)         \
	X(threads, GAUGE, "firn_agent_debuginfo_threads", "Threads that ask and send.")
struct uploader_metrics {
	UPLOADER_METRICS(METRIC_FIELD)
};

struct uploader;

/* E_INVALID: no address, or no header. The server need not be there. */
NODISCARD enum status uploader_new(
	const struct uploader_config *c, struct uploader **out, struct err *e);
/* Ends its threads; the other functions do nothing from now on. One that waits for a name server is
 * left to itself after UPLOADER_STOP_NS, and the uploader with it. NULL is fine for all. */
void uploader_stop(struct uploader *u);
void uploader_free(struct uploader *u);
/* To be called now and then, also while there are no samples. */
void uploader_tick(struct uploader *u);
/* Of the form of files_seen_fn, ctx being the uploader. */
void uploader_seen(void *ctx, const char *build_id, const char *path, int fd);
/* A sample of process `pid` had it. Never blocks for long. */
void uploader_met(
	struct uploader *u, uint32_t file_id, const char *build_id, const char *path, int pid);
/* There is a new connection: another server may be behind it, with an empty store. */
void uploader_reconnected(struct uploader *u);
const struct uploader_metrics *uploader_metrics(const struct uploader *u);
/* How many files wait; *why ("" or why none is sent now), as long as `size`. */
uint64_t uploader_waiting(struct uploader *u, char *why, size_t size);
void uploader_write_metrics(struct uploader *u, struct buf *out);
