/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock: mutexes and read-write locks that know their place in the one order of all locks.
 *
 * A thread takes locks in the order of LOCK_ORDER, outermost first, and never two of one place;
 * with one of LOCK_LEAVES in hand it takes no other. docs/concurrency.md says what each protects,
 * and tools/check holds its list and this one together. Builds that are no release ones check it at
 * each lock, also where no deadlock comes of it this time: a program that breaks the order ends
 * with a sentence that names both locks. Mutexes of type pthread_mutex_t are not looked at.
 *
 * The calls are those of <pthread.h>: pthread_mutex_lock() and the others below take either type.
 *
 * Layer 0. Thread safe. Owned by the caller: lock_init(), then pthread_mutex_destroy().
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

#define LOCK_ORDER(X)                     \
	X(RELOAD, "reload_lock")          \
	X(SCRAPE, "scrape")               \
	X(RETAIN, "retain_lock")          \
	X(MERGE, "merge_lock")            \
	X(FLUSH, "flush_lock")            \
	X(GATE, "gate")                   \
	X(MANIFEST, "manifest_lock")      \
	X(STORE, "lock")                  \
	X(QUERY_MEMORY, "query_memory")   \
	X(MEMORY_SHARE, "memory_share")   \
	X(STORE_LOG, "log")               \
	X(PART, "part")                   \
	X(DICTIONARY, "dictionary")       \
	X(MEMTABLE, "memtable")           \
	X(STREAM, "stream")               \
	X(SYMBOL_TABLES, "symbol tables") \
	X(AUTH_LOOK, "look_lock")         \
	X(AUTH_PASSWORD, "password_lock") \
	X(AUTH, "auth")                   \
	X(FILES_WORK, "work")             \
	X(UPLOADER, "uploader")           \
	X(FILES, "files")                 \
	X(TABLES, "tables")               \
	X(JITNAMES, "jitnames")           \
	X(BROKER, "broker")               \
	X(CONTAINERS, "containers")
#define LOCK_LEAVES(X)                      \
	X(AGENT_LIST, "agent_list")         \
	X(BUILDQUEUE, "buildqueue")         \
	X(DEBUGINFOD, "debuginfod")         \
	X(DEDUPE, "dedupe")                 \
	X(NET_DONE, "done_lock")            \
	X(EXECUTABLES, "executables")       \
	X(FIGURES, "figures_lock")          \
	X(HANDOVER, "handover")             \
	X(AUTH_ISSUER, "issuer")            \
	X(LANE, "lane")                     \
	X(NOTES, "notes_lock")              \
	X(OAUTH2, "oauth2")                 \
	X(ONE_QUERY, "one query")           \
	X(OOM, "oom")                       \
	X(PARCA_STACKS, "parca_stacks")     \
	X(PINNED, "pinned")                 \
	X(POOL, "pool")                     \
	X(PROBLEMS, "problems")             \
	X(PROCREAD, "procread")             \
	X(QUEUE, "queue")                   \
	X(SCRAPER, "scraper")               \
	X(SERIES_GUARD, "series_guard")     \
	X(SLABS, "slabs")                   \
	X(AUTH_SOURCES, "sources")          \
	X(NET_STREAMS, "streams_lock")      \
	X(SYMBOLIZE_DISK, "symbolize_disk") \
	X(TRACE, "trace")                   \
	X(UPLOADS, "uploads")               \
	X(WATCH, "watch")

/* 0 is no place: a lock that nobody has begun. */
enum lock_place {
	LOCK_NO_PLACE,
#define LOCK_PLACE(name, text) LOCK_##name,
	LOCK_ORDER(LOCK_PLACE) LOCK_FIRST_LEAF, /* itself none */
	LOCK_LEAVES(LOCK_PLACE)
#undef LOCK_PLACE
};

struct lock {
	pthread_mutex_t mutex;
	enum lock_place place;
};
struct rwlock {
	pthread_rwlock_t lock;
	enum lock_place place;
};
#define LOCK_INIT(at)                                             \
	{                                                         \
		.mutex = PTHREAD_MUTEX_INITIALIZER, .place = (at) \
	}

void lock_init(struct lock *l, enum lock_place place);
void rwlock_init(struct rwlock *l, enum lock_place place, bool prefer_writers);

int lock_take(struct lock *l);
int lock_try(struct lock *l);
int lock_release(struct lock *l);
int lock_wait(pthread_cond_t *changed, struct lock *l);
int lock_wait_until(pthread_cond_t *changed, struct lock *l, const struct timespec *deadline);
int lock_destroy(struct lock *l);
int rwlock_read(struct rwlock *l);
int rwlock_write(struct rwlock *l);
int rwlock_release(struct rwlock *l);
int rwlock_destroy(struct rwlock *l);

#define LOCK_CALL(l, call, of_place, ...) \
	_Generic((l), struct lock * : of_place, pthread_mutex_t * : call)(__VA_ARGS__)
#define RWLOCK_CALL(l, call, of_place) \
	_Generic((l), struct rwlock * : of_place, pthread_rwlock_t * : call)(l)
#define pthread_mutex_lock(l) LOCK_CALL(l, pthread_mutex_lock, lock_take, l)
#define pthread_mutex_trylock(l) LOCK_CALL(l, pthread_mutex_trylock, lock_try, l)
#define pthread_mutex_unlock(l) LOCK_CALL(l, pthread_mutex_unlock, lock_release, l)
#define pthread_mutex_destroy(l) LOCK_CALL(l, pthread_mutex_destroy, lock_destroy, l)
#define pthread_cond_wait(c, l) LOCK_CALL(l, pthread_cond_wait, lock_wait, c, l)
#define pthread_cond_timedwait(c, l, t) \
	LOCK_CALL(l, pthread_cond_timedwait, lock_wait_until, c, l, t)
#define pthread_rwlock_rdlock(l) RWLOCK_CALL(l, pthread_rwlock_rdlock, rwlock_read)
#define pthread_rwlock_wrlock(l) RWLOCK_CALL(l, pthread_rwlock_wrlock, rwlock_write)
#define pthread_rwlock_unlock(l) RWLOCK_CALL(l, pthread_rwlock_unlock, rwlock_release)
#define pthread_rwlock_destroy(l) RWLOCK_CALL(l, pthread_rwlock_destroy, rwlock_destroy)
