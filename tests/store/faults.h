/* SPDX-License-Identifier: Apache-2.0 */
/*
 * faults: every call of the heap and of the operating system that a store makes, counted, and made
 * to fail, or to be the last one of the process, on demand.
 *
 * The program is linked with --wrap for each name in FAULT_CALLS (tests/store/meson.build), so that
 * what is tested is the store as it is. Calls count when they are made by the store's own threads,
 * and by the test's thread between faults_begin() and faults_end(). powercut.h listens to the same
 * calls.
 */
#pragma once

#include "tests/test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

enum fault_class {
	FAULT_MEMORY = 1, /* the heap, address space, threads */
	FAULT_READ = 2,
	FAULT_WRITE = 4, /* what changes the disk, or promises that it did */
	FAULT_UNLINK = 8,
};

struct faults {
	unsigned classes;
	int at;      /* the call that is struck, from 1 */
	bool sticky; /* and all after it */
	bool kill;   /* the process ends there, and a write is half done */
	int error;   /* errno of reads and writes */
	atomic_int count;
	atomic_bool off;
	const char *_Atomic struck;
};

static struct faults *_Atomic faults_now;
static __thread bool faults_outside; /* a call of the test's own */

/* Listens to what changed the disk; NULL: nobody. */
struct fault_listener {
	void (*opened)(int fd, const char *path, int flags, bool existed);
	void (*wrote)(int fd, const void *bytes, size_t len, uint64_t offset);
	void (*sized)(int fd, uint64_t len, bool at_least);
	void (*synced)(int fd);
	void (*renamed)(const char *from, const char *to);
	void (*unlinked)(const char *path);
	void (*made_dir)(const char *path);
};
static const struct fault_listener *fault_listener;
static pthread_mutex_t fault_listening = PTHREAD_MUTEX_INITIALIZER;

static inline void faults_begin(void)
{
	faults_outside = false;
}

static inline void faults_end(void)
{
	faults_outside = true;
}

static inline void faults_arm(struct faults *f)
{
	faults_outside = true;
	atomic_store(&faults_now, f);
}

static bool fault_strikes(unsigned class, const char *name)
{
	struct faults *f = atomic_load(&faults_now);
	if (!f || faults_outside || !(f->classes & class) || atomic_load(&f->off))
		return false;
	int n = atomic_fetch_add(&f->count, 1) + 1;
	if (n != f->at && !(f->sticky && n > f->at))
		return false;
	atomic_store(&f->struck, name);
	if (f->kill)
		_exit(9);
	errno = class == FAULT_MEMORY ? ENOMEM : f->error;
	return true;
}

/* A listener sees one change at a time, in the order in which they happen. */
static void listen_begin(void)
{
	if (fault_listener)
		pthread_mutex_lock(&fault_listening);
}

static void listen_end(void)
{
	if (fault_listener)
		pthread_mutex_unlock(&fault_listening);
}

#define TELL(event, ...)                                    \
	do {                                                \
		int saved_ = errno;                         \
		if (fault_listener)                         \
			fault_listener->event(__VA_ARGS__); \
		errno = saved_;                             \
	} while (0)

/* name, class, what it returns, parameters, arguments, what it returns when it fails */
#define FAULT_CALLS(X)                                                                        \
	X(malloc, FAULT_MEMORY, void *, (size_t size), (size), NULL)                          \
	X(calloc, FAULT_MEMORY, void *, (size_t n, size_t size), (n, size), NULL)             \
	X(realloc, FAULT_MEMORY, void *, (void *p, size_t size), (p, size), NULL)             \
	X(strdup, FAULT_MEMORY, char *, (const char *text), (text), NULL)                     \
	X(mmap64, FAULT_MEMORY, void *,                                                       \
		(void *at, size_t len, int prot, int flags, int fd, off_t offset),            \
		(at, len, prot, flags, fd, offset), MAP_FAILED)                               \
	X(mprotect, FAULT_MEMORY, int, (void *at, size_t len, int prot), (at, len, prot), -1) \
	X(ZSTD_createCCtx, FAULT_MEMORY, ZSTD_CCtx *, (void), (), NULL)                       \
	X(ZSTD_createDCtx, FAULT_MEMORY, ZSTD_DCtx *, (void), (), NULL)                       \
	X(pthread_create, FAULT_MEMORY, int,                                                  \
		(pthread_t * out, const pthread_attr_t *a, void *(*fn)(void *), void *ctx),   \
		(out, a, fn, ctx), ENOMEM)                                                    \
	X(pread64, FAULT_READ, ssize_t, (int fd, void *out, size_t len, off_t at),            \
		(fd, out, len, at), -1)                                                       \
	X(read, FAULT_READ, ssize_t, (int fd, void *out, size_t len), (fd, out, len), -1)     \
	X(fstat64, FAULT_READ, int, (int fd, struct stat *out), (fd, out), -1)                \
	X(stat64, FAULT_READ, int, (const char *path, struct stat *out), (path, out), -1)     \
	X(opendir, FAULT_READ, DIR *, (const char *path), (path), NULL)                       \
	X(flock, FAULT_READ, int, (int fd, int operation), (fd, operation), -1)               \
	X(getrandom, FAULT_READ, ssize_t, (void *out, size_t len, unsigned flags),            \
		(out, len, flags), -1)

#define FAULT_WRAP(name, class, type, parameters, arguments, failed)                   \
	type __real_##name parameters;                                                 \
	type __wrap_##name parameters;                                                 \
	type __wrap_##name parameters                                                  \
	{                                                                              \
		return fault_strikes(class, #name) ? failed : __real_##name arguments; \
	}
FAULT_CALLS(FAULT_WRAP)

/* ---- what changes the disk ---- */

int __real_open64(const char *path, int flags, unsigned mode);
int __wrap_open64(const char *path, int flags, unsigned mode);
int __wrap_open64(const char *path, int flags, unsigned mode)
{
	bool writes = (flags & (O_CREAT | O_TRUNC)) != 0;
	if (fault_strikes(writes ? FAULT_WRITE : FAULT_READ, "open"))
		return -1;
	listen_begin();
	bool existed = access(path, F_OK) == 0;
	int fd = __real_open64(path, flags, mode);
	if (fd >= 0)
		TELL(opened, fd, path, flags, existed);
	listen_end();
	return fd;
}

ssize_t __real_pwrite64(int fd, const void *bytes, size_t len, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t offset);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
	struct faults *f = atomic_load(&faults_now);
	if (f && f->kill && (f->classes & FAULT_WRITE) && !faults_outside &&
		atomic_load(&f->count) + 1 == f->at)
		(void)!__real_pwrite64(fd, bytes, len / 2, offset);
	if (fault_strikes(FAULT_WRITE, "pwrite"))
		return -1;
	listen_begin();
	ssize_t n = __real_pwrite64(fd, bytes, len, offset);
	if (n > 0)
		TELL(wrote, fd, bytes, (size_t)n, (uint64_t)offset);
	listen_end();
	return n;
}

/* Calls of one descriptor or path that tell when they went well. */
#define FAULT_CHANGES(X)                                                                       \
	X(fdatasync, FAULT_WRITE, (int fd), (fd), synced, (fd))                                \
	X(fsync, FAULT_WRITE, (int fd), (fd), synced, (fd))                                    \
	X(rename, FAULT_WRITE, (const char *from, const char *to), (from, to), renamed,        \
		(from, to))                                                                    \
	X(unlink, FAULT_WRITE | FAULT_UNLINK, (const char *path), (path), unlinked, (path))    \
	X(mkdir, FAULT_WRITE, (const char *path, mode_t mode), (path, mode), made_dir, (path)) \
	X(ftruncate64, FAULT_WRITE, (int fd, off_t len), (fd, len), sized,                     \
		(fd, (uint64_t)len, false))                                                    \
	X(fallocate64, FAULT_WRITE, (int fd, int mode, off_t offset, off_t len),               \
		(fd, mode, offset, len), sized, (fd, (uint64_t)(offset + len), true))

#define UNPACK(...) __VA_ARGS__
#define FAULT_WRAP_CHANGE(name, class, parameters, arguments, event, what) \
	int __real_##name parameters;                                      \
	int __wrap_##name parameters;                                      \
	int __wrap_##name parameters                                       \
	{                                                                  \
		if (fault_strikes(class, #name))                           \
			return -1;                                         \
		listen_begin();                                            \
		int rc = __real_##name arguments;                          \
		if (rc == 0)                                               \
			TELL(event, UNPACK what);                          \
		listen_end();                                              \
		return rc;                                                 \
	}
FAULT_CHANGES(FAULT_WRAP_CHANGE)
