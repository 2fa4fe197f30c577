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
/* Opens a path that came from elsewhere for reading; `dir` as in openat(). Only a regular file is
 * opened, since opening a device may have an effect; it never waits. E_INVALID: no regular file. */
NODISCARD enum status os_open_regular(int dir, const char *path, int *out_fd, struct err *e);
/* Whether every user of this host may read the file where it lies: by its own mode and those of the
 * folders above it. False also if it has no path here: a file that was removed, or one in a
 * container. */
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
/* mkdir -p. Folders that it makes have mode 0750, and are durable when it returns. */
NODISCARD enum status os_make_dirs(const char *path, struct err *e);

/* Names in a directory without "." and "..", sorted; texts in the arena. */
struct arena;
NODISCARD enum status os_list_dir(const char *path, struct arena *a, struct str **out_names,
	size_t *out_count, struct err *e);

/* ---- files that another process opens for us ----
 *
 * A process that gave its privileges up may have another process, a broker, that opens files for
 * it. os_open_read(), os_read_link(), os_read_file() and os_open_regular() ask the broker if the
 * kernel refuses (EACCES, EPERM). */

/* A descriptor, or -1 with errno. */
typedef int os_broker_open_fn(const char *path);
/* As readlink(2). */
typedef ssize_t os_broker_link_fn(const char *path, char *out, size_t size);
/* To be called before there are other threads. NULL: none. */
void os_set_broker(os_broker_open_fn *open_fn, os_broker_link_fn *link_fn);
/* open(path, O_RDONLY | O_CLOEXEC): -1 with errno. */
int os_open_read(const char *path);
/* For files that any user can open, but that show more to the privileged: only the broker opens
 * them. ENOSYS: there is no broker. */
int os_open_by_broker(const char *path);
ssize_t os_read_link(const char *path, char *out, size_t size);

/* ---- files that the user named: they may lie on a file system that hangs ---- */

struct os_stamp { /* differs once a file was changed or replaced */
	uint64_t device, inode, bytes;
	int64_t modified_s, modified_ns;
};
struct stat;
struct os_stamp os_stamp_of(const struct stat *st);
bool os_stamp_is_same(const struct os_stamp *a, const struct os_stamp *b);
/* As os_read_own(). E_UNSUPPORTED: this reader is not for this file. */
typedef enum status os_own_read_fn(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e);
/* To be called before there are other threads. NULL: none. */
void os_set_own_reader(os_own_read_fn *fn);
/* Appends the whole file to `out` (NULL: does not read it), and gives its stamp (may be NULL). It
 * uses the reader that was set, or else os_read_file(). E_TIMEOUT: the file system hangs. */
NODISCARD enum status os_read_own(
	const char *path, struct buf *out, struct os_stamp *out_stamp, struct err *e);

/* ---- privileges ---- */

/* The effective set, a bit for each capability. */
uint64_t os_capabilities(void);
/* Leaves this thread, and threads that it starts, these capabilities at most. Programs that it
 * executes get none: the inheritable and ambient sets become empty, and the bounding set where that
 * is allowed.
 */
NODISCARD enum status os_set_capabilities(uint64_t effective, uint64_t permitted, struct err *e);
/* From now on no program that this process starts gains privileges, and no other process of its
 * user may read its memory. */
NODISCARD enum status os_harden(struct err *e);

/* ---- the service manager ----
 *
 * The protocol of sd_notify(3), if NOTIFY_SOCKET names a socket; else these do nothing. Called by
 * one thread. */

/* To be called once, before there are other threads; removes the variables from the environment. */
void os_notify_open(void);
/* For a forked child: the service manager does not accept its messages. */
void os_notify_close(void);
/* "READY=1", "STOPPING=1", "STATUS=…": lines. */
void os_notify(const char *lines);
/* Tells the manager's watchdog that all is well, twice in each of its periods. Returns when to call
 * it again (monotonic); INT64_MAX: there is no watchdog. */
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

/* A few threads that jobs of many callers share. There are no more threads if there are more jobs:
 * a job runs on its caller's thread, and on idle threads of the pool. */
#define OS_POOL_THREADS_MAX 31
struct os_pool;
/* 0 threads are fine, and so is NULL below: then callers do all work themselves. */
NODISCARD enum status os_pool_new(
	unsigned threads, const char *name, struct os_pool **out, struct err *e);
/* No thread may be in os_pool_run() any more; NULL is fine. */
void os_pool_free(struct os_pool *p);
/* Calls of fn that os_pool_run() makes at most at a time. */
unsigned os_pool_width(const struct os_pool *p);
/* Calls fn(ctx, 0) on the caller's thread, and at most fn(ctx, 1) to fn(ctx, n - 1) on other
 * threads at the same time. Returns when all calls that were begun have returned. A call that found
 * no idle thread before fn(ctx, 0) returned is never begun: fn takes its work from a common list.
 */
typedef void os_pool_fn(void *ctx, unsigned worker);
void os_pool_run(struct os_pool *p, unsigned n, os_pool_fn *fn, void *ctx);

/* ---- processes ---- */

/* Bytes of resident memory of this process, 0 if it cannot be read. */
uint64_t os_self_rss_bytes(void);
/* The same for frequent use: the file is opened once (-1: not possible) and read each time. */
int os_self_rss_open(void);
uint64_t os_self_rss_read(int fd);
/* Bytes of memory of the host; 0: unknown. */
uint64_t os_host_memory_bytes(void);
/* Sets up malloc() for a process with many threads that each take much memory now and then. Of what
 * a query or a message takes and frees, a part in proportion to memory_bytes stays for the next
 * one, until malloc_trim(). */
void os_malloc_for_server(uint64_t memory_bytes);
/* The least memory limit of the cgroups (v1 and v2) that this process is in; UINT64_MAX: there is
 * none. `root`: the folder with /proc and /sys; "" for the host's own. */
uint64_t os_cgroup_memory_bytes(const char *root);
/* Whether this program was started by naming the loader, so that /proc/self/exe is the loader. Then
 * gives the path of the program, and its folder, which has the libraries (tools/make_bundle).
 */
bool os_self_loaded(char out_path[PATH_MAX], char out_folder[PATH_MAX]);
/* User and system time of this process in ns. */
int64_t os_self_cpu_ns(void);
