/* SPDX-License-Identifier: Apache-2.0 */
/*
 * os: files, directories, threads and queues, signals, children: Linux, with our errors.
 *
 * Layer 1 (may use base).
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <limits.h>
#include <pthread.h>
#include <sys/types.h>

/* ---- files ---- */

/* The whole file, or /proc file, appended to `out` (whose max is the limit). */
NODISCARD enum status os_read_file(const char *path, struct buf *out, struct err *e);
NODISCARD enum status os_read_fd(int fd, const char *name, struct buf *out, struct err *e);
/* A path that came from elsewhere, to read: `dir` as in openat(). What is no regular file is not
 * opened at all, since opening a device may do something; nothing waits. E_INVALID: no regular
 * file. */
NODISCARD enum status os_open_regular(int dir, const char *path, int *out_fd, struct err *e);
/* Every user of this host may read it where it lies: by its own mode and those of the folders above
 * it. No: also for what has no path here, as a file that was removed, or that a container has. */
bool os_readable_by_all(int fd);
/* Exactly `len` bytes at `offset`; E_CORRUPT when the file is shorter. */
NODISCARD enum status os_pread_full(
	int fd, void *out, size_t len, uint64_t offset, const char *name, struct err *e);
NODISCARD enum status os_write_full(
	int fd, const void *bytes, size_t len, const char *name, struct err *e);
NODISCARD enum status os_pwrite_full(
	int fd, const void *bytes, size_t len, uint64_t offset, const char *name, struct err *e);
/* Durable and all or nothing: temporary file, fsync, rename over `path`, fsync of the folder. */
NODISCARD enum status os_replace_file(
	const char *path, const void *bytes, size_t len, unsigned mode, struct err *e);
/* The same for a file of several parts, one behind the other. */
NODISCARD enum status os_replace_file_parts(
	const char *path, const struct str *parts, size_t count, unsigned mode, struct err *e);
NODISCARD enum status os_fsync_dir(const char *dir, struct err *e);
/* mkdir -p, mode 0750 for folders that it makes, which are durable then. */
NODISCARD enum status os_make_dirs(const char *path, struct err *e);

/* Names in a directory without "." and "..", sorted; texts in the arena. */
struct arena;
NODISCARD enum status os_list_dir(const char *path, struct arena *a, struct str **out_names,
	size_t *out_count, struct err *e);

/* ---- files that another process opens for us ----
 *
 * A process that gave its privileges up may have another one, a broker, that opens files for it. It
 * is asked when the kernel refuses (EACCES, EPERM) what os_open_read(), os_read_link(),
 * os_read_file() or os_open_regular() wants. */

/* A descriptor, or -1 with errno. */
typedef int os_broker_open_fn(const char *path);
/* As readlink(2). */
typedef ssize_t os_broker_link_fn(const char *path, char *out, size_t size);
/* To be called before there are other threads. NULL: none. */
void os_set_broker(os_broker_open_fn *open_fn, os_broker_link_fn *link_fn);
/* open(path, O_RDONLY | O_CLOEXEC): -1 with errno. */
int os_open_read(const char *path);
/* For files that any user can open, but that tell more to the privileged: only the broker opens
 * them. ENOSYS: there is no broker. */
int os_open_by_broker(const char *path);
ssize_t os_read_link(const char *path, char *out, size_t size);

/* ---- files that the user named: they may lie on a file system that hangs ---- */

struct os_stamp { /* another, when a file was changed or replaced */
	uint64_t device, inode, bytes;
	int64_t modified_s, modified_ns;
};
struct stat;
struct os_stamp os_stamp_of(const struct stat *st);
bool os_stamp_is_same(const struct os_stamp *a, const struct os_stamp *b);
/* As os_read_own(). E_UNSUPPORTED: it is not for this one. */
typedef enum status os_own_read_fn(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e);
/* To be called before there are other threads. NULL: none. */
void os_set_own_reader(os_own_read_fn *fn);
/* The whole file, appended to `out`, or with NULL nothing of it, and its stamp (which may be NULL),
 * by the reader that was set, or else as os_read_file(). E_TIMEOUT: it hangs. */
NODISCARD enum status os_read_own(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e);

/* ---- privileges ---- */

/* The effective set, a bit for each capability. */
uint64_t os_capabilities(void);
/* Leaves this thread, and threads that it starts, at most these. Programs that it executes get
 * none: the inheritable and ambient sets become empty, and the bounding set where that is allowed.
 */
NODISCARD enum status os_set_capabilities(uint64_t effective, uint64_t permitted, struct err *e);
/* Nothing that this process starts gains privileges, and no other of its user may look into it. */
NODISCARD enum status os_harden(struct err *e);

/* ---- the service manager ----
 *
 * What sd_notify(3) says, where NOTIFY_SOCKET names a socket; else nothing happens. Called by one
 * thread. */

/* Once, before there are other threads; takes the variables out of the environment. */
void os_notify_open(void);
/* For a forked child, whose messages the service manager does not take. */
void os_notify_close(void);
/* "READY=1", "STOPPING=1", "STATUS=…": lines. */
void os_notify(const char *lines);
/* Tells the manager's watchdog twice in each of its periods that all is well. Returns when it is to
 * be called again (monotonic); INT64_MAX: there is no watchdog. */
int64_t os_notify_alive(void);

/* ---- threads ---- */

/* Start a thread with all signals blocked and a name of at most 15 bytes. */
NODISCARD enum status os_thread_start(
	pthread_t *out, const char *name, void *(*fn)(void *), void *ctx, struct err *e);

/* Bounded queue of pointers between threads. */
struct os_queue;
NODISCARD enum status os_queue_new(size_t capacity, struct os_queue **out);
void os_queue_free(struct os_queue *q);
/* False when full or closed. */
NODISCARD bool os_queue_try_push(struct os_queue *q, void *item);
/* Waits; NULL at the deadline (monotonic ns), or when closed and empty. INT64_MAX: no deadline. */
void *os_queue_pop(struct os_queue *q, int64_t deadline_ns);
void os_queue_close(struct os_queue *q);

/* CPUs that this process may run on, at least 1. */
unsigned os_cpus(void);

/* A few threads that jobs of many callers share. Their number does not grow with that of the jobs:
 * a job runs on its caller's thread, and on threads of the pool that are idle. */
#define OS_POOL_THREADS_MAX 31
struct os_pool;
/* No threads at all is fine, as is NULL below: then callers do all work themselves. */
NODISCARD enum status os_pool_new(
	unsigned threads, const char *name, struct os_pool **out, struct err *e);
/* No thread is in os_pool_run() any more; NULL is fine. */
void os_pool_free(struct os_pool *p);
/* Calls of fn that os_pool_run() makes at most at a time. */
unsigned os_pool_width(const struct os_pool *p);
/* fn(ctx, 0), which is the caller's own, and at most fn(ctx, 1) to fn(ctx, n - 1) on other threads
 * at the same time; returns when all calls that were begun have returned. A call that found no idle
 * thread before fn(ctx, 0) returned is never begun: fn takes its work from a common list. */
typedef void os_pool_fn(void *ctx, unsigned worker);
void os_pool_run(struct os_pool *p, unsigned n, os_pool_fn *fn, void *ctx);

/* ---- processes ---- */

/* Bytes of resident memory of this process, 0 if it cannot be read. */
uint64_t os_self_rss_bytes(void);
/* Of the host; 0: unknown. */
uint64_t os_host_memory_bytes(void);
/* The least limit of the cgroups (v1 and v2) that this process is in; UINT64_MAX: there is none.
 * `root`: before /proc and /sys; "" for the host's own. */
uint64_t os_cgroup_memory_bytes(const char *root);
/* Whether the loader was started and told to run this program, so that /proc/self/exe is the
 * loader: then where the program is, and its folder, which has the libraries (tools/make_bundle).
 */
bool os_self_loaded(char out_path[PATH_MAX], char out_folder[PATH_MAX]);
/* User and system time of this process in ns. */
int64_t os_self_cpu_ns(void);
