/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock: mutexes and read-write locks that know their place in the one order of all locks.
 *
 * A thread takes locks in the order of LOCK_ORDER, outermost first, and never two of one place;
 * while it has one of LOCK_LEAVES it takes no other. docs/concurrency.md says what each protects,
 * and tools/check compares its list with this one. All builds but release ones check the order at
 * each lock, also if there is no deadlock this time: a program that breaks it ends with a sentence
 * that names both locks.
 *
 * Layer 0. Thread safe. Owned by the caller: lock_init(), then lock_destroy().
 */
#pragma once

#include "base/status.h"

#include <pthread.h>
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

/* 0 is no place: a lock that was not initialized. */
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

void lock_take(struct lock *l);
NODISCARD bool lock_try(struct lock *l); /* whether it is taken */
void lock_release(struct lock *l);
void lock_wait(pthread_cond_t *changed, struct lock *l);
/* 0, or ETIMEDOUT; `deadline` is by the condition's clock. */
int lock_wait_until(pthread_cond_t *changed, struct lock *l, const struct timespec *deadline);
void lock_destroy(struct lock *l);
void rwlock_read(struct rwlock *l);
void rwlock_write(struct rwlock *l);
void rwlock_release(struct rwlock *l);
void rwlock_destroy(struct rwlock *l);
