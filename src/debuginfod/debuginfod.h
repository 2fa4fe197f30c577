/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debuginfod: debug information from servers of debuginfod's protocol (elfutils), by build id, into
 * a directory of the form that debuggers know: DIR/.build-id/ab/cdef….debug. And source files, by
 * build id and path, beside them.
 *
 * Layer 4 (may use base, os, objfile, fetch). One thread asks the servers, one build id at a time
 * and in the order in which they are named. No server is trusted: its file is kept only if it is a
 * whole ELF file with this build id and with names in it; else the next server is asked.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/str.h"

#define DEBUGINFOD_SERVERS_MAX 16
#define DEBUGINFOD_URL_MAX 1024
#define DEBUGINFOD_WAITING_MAX 1024 /* build ids; more are asked for when they are wanted again */
#define DEBUGINFOD_MISSES_MAX 16384 /* build ids without a file that are remembered */
#define DEBUGINFOD_FILE_BYTES_MAX ((uint64_t)2 << 30)
#define DEBUGINFOD_SOURCE_BYTES_MAX ((uint64_t)16 << 20)
#define DEBUGINFOD_SOURCE_PATH_MAX 1024
#define DEBUGINFOD_SOURCES_MAX 16 /* that wait to be fetched; others are refused */
#define DEBUGINFOD_WAITERS_MAX 2  /* threads that wait for one; others get what is there */
/* How long servers are not asked again for a file: if all servers said that they do not have it,
 * and if one could not be asked. */
#define DEBUGINFOD_MISS_NS ((int64_t)3600 * 1000000000)
#define DEBUGINFOD_FAILED_NS ((int64_t)60 * 1000000000)
/* A server that fails is not asked for a while, twice as long each time. */
#define DEBUGINFOD_BACKOFF_MIN_NS ((int64_t)10 * 1000000000)
#define DEBUGINFOD_BACKOFF_MAX_NS ((int64_t)600 * 1000000000)

#define DEBUGINFOD_METRICS(X)                                                                  \
	X(found, COUNTER, "firn_debuginfod_fetches_total{result=\"found\"}",                   \
		"Files asked for at other debuginfod servers.")                                \
	X(missing, COUNTER, "firn_debuginfod_fetches_total{result=\"missing\"}",               \
		"Files asked for at other debuginfod servers.")                                \
	X(failed, COUNTER, "firn_debuginfod_fetches_total{result=\"failed\"}",                 \
		"Files asked for at other debuginfod servers.")                                \
	X(unusable, COUNTER, "firn_debuginfod_unusable_files_total",                           \
		"Files that came and were of another build id, not whole, or without names.")  \
	X(dropped, COUNTER, "firn_debuginfod_dropped_total",                                   \
		"Build ids that were not asked for because too many wait.")                    \
	X(fetched, COUNTER, "firn_debuginfod_fetched_bytes_total", "Bytes that came.")         \
	X(evicted, COUNTER, "firn_debuginfod_evicted_total", "Files that gave way to others.") \
	X(waiting, GAUGE, "firn_debuginfod_waiting", "Build ids that wait to be asked for.")   \
	X(bytes, GAUGE, "firn_debuginfod_cache_bytes", "Bytes of the files that are kept.")
struct debuginfod_metrics {
	DEBUGINFOD_METRICS(METRIC_FIELD)
};

struct debuginfod_config {
	/* NULL at the end; each "https://host[/path]", "host", or several with blanks between, as
	 * DEBUGINFOD_URLS has them. */
	const char *const *servers;
	const char *dir;    /* is made */
	uint64_t bytes_max; /* of the directory; beyond it the oldest files are removed */
	int64_t timeout_ns; /* of one request */
	/* Called by the thread when a file for `build_id` has come. Its own build id is `wanted`:
	 * the same, or that of a file which the other refers to. */
	void (*found)(void *ctx, const char *build_id, const char *wanted);
	void *ctx;
};

struct debuginfod;
/* E_INVALID: no such server, with a sentence. */
NODISCARD enum status debuginfod_open(
	const struct debuginfod_config *c, struct debuginfod **out, struct err *e);
/* From then on it asks no server and makes no callback. NULL is fine. */
void debuginfod_stop(struct debuginfod *d);
void debuginfod_close(struct debuginfod *d); /* NULL is fine */
/* Asks for debug information with the build id `wanted`, on behalf of `build_id`; does not wait.
 * Other texts than hexadecimal digits are ignored. Any thread. */
void debuginfod_want(struct debuginfod *d, const char *build_id, const char *wanted);
/* The text of a source file of a build, appended to `out`. A file that is not in the
 * cache is asked for, before debug information; the call waits for it until `until_ns` of the
 * monotonic clock. E_NOTFOUND: no server has it, or it is no text, or the path is not absolute, too
 * long, or leads out of the root by ".."; E_UNAVAILABLE: it has not come yet; E_LIMIT: it does not
 * fit `out`. Any thread. */
NODISCARD enum status debuginfod_source(struct debuginfod *d, struct str build_id, struct str path,
	int64_t until_ns, struct buf *out, struct err *e);
void debuginfod_write_metrics(struct debuginfod *d, struct buf *out);
