/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: each thread keeps the places of the locks that it holds. They ascend, because each was
 * compared with the last one when it was taken; they also ascend after a lock was released before
 * an inner one. While a thread waits for a condition its places are kept, since it takes no lock
 * then.
 */
#include "base/lock.h"

#include <stdio.h>
#include <stdlib.h>

#ifndef LOCK_CHECK
#define LOCK_CHECK 0
#endif
#define HELD_MAX 16

static _Thread_local enum lock_place held[HELD_MAX];
static _Thread_local unsigned held_count;

static const char *name_of(enum lock_place place)
{
	static const char *const names[] = {
#define LOCK_PLACE(name, text) [LOCK_##name] = text,
		LOCK_ORDER(LOCK_PLACE) LOCK_LEAVES(LOCK_PLACE)
#undef LOCK_PLACE
	};
	return place < sizeof(names) / sizeof(*names) && names[place] ? names[place] : "no place";
}

static _Noreturn void refuse(enum lock_place place, const char *what, enum lock_place other)
{
#define LOCK_PLACE(name, text) " " text
	fprintf(stderr,
		"lock: %s %s (%s); the order:" LOCK_ORDER(
			LOCK_PLACE) "; with these in hand "
				    "nothing is taken:" LOCK_LEAVES(LOCK_PLACE) "\n",
		name_of(place), what, name_of(other));
#undef LOCK_PLACE
	abort();
}

static void check(enum lock_place place)
{
	enum lock_place last = held_count ? held[held_count - 1] : LOCK_NO_PLACE;
	if (LOCK_CHECK && place == LOCK_NO_PLACE)
		refuse(place, "is taken before lock_init()", last);
	if (LOCK_CHECK && (last > LOCK_FIRST_LEAF || place <= last || held_count == HELD_MAX))
		refuse(place, "is taken with another in hand", last);
}

static void note_taken(enum lock_place place)
{
	if (LOCK_CHECK)
		held[held_count++] = place;
}

static void note_released(enum lock_place place)
{
	unsigned i = held_count;
	if (!LOCK_CHECK)
		return;
	while (i > 0 && held[i - 1] != place)
		i--;
	if (i == 0)
		refuse(place, "is released by a thread that does not hold it", LOCK_NO_PLACE);
	for (held_count--; i <= held_count; i++)
		held[i - 1] = held[i];
}

void lock_init(struct lock *l, enum lock_place place)
{
	pthread_mutex_init(&l->mutex, NULL);
	l->place = place;
}

void lock_take(struct lock *l)
{
	check(l->place);
	pthread_mutex_lock(&l->mutex);
	note_taken(l->place);
}

/* A lock that is tried cannot cause a deadlock, but locks that are taken after it can. */
bool lock_try(struct lock *l)
{
	check(l->place);
	if (pthread_mutex_trylock(&l->mutex) != 0)
		return false;
	note_taken(l->place);
	return true;
}

void lock_release(struct lock *l)
{
	note_released(l->place);
	pthread_mutex_unlock(&l->mutex);
}

void lock_wait(pthread_cond_t *changed, struct lock *l)
{
	pthread_cond_wait(changed, &l->mutex);
}

int lock_wait_until(pthread_cond_t *changed, struct lock *l, const struct timespec *deadline)
{
	return pthread_cond_timedwait(changed, &l->mutex, deadline);
}

void lock_destroy(struct lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

void rwlock_init(struct rwlock *l, enum lock_place place, bool prefer_writers)
{
	pthread_rwlockattr_t attr;
	pthread_rwlockattr_init(&attr);
	if (prefer_writers)
		pthread_rwlockattr_setkind_np(&attr, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&l->lock, &attr);
	pthread_rwlockattr_destroy(&attr);
	l->place = place;
}

void rwlock_read(struct rwlock *l)
{
	check(l->place);
	pthread_rwlock_rdlock(&l->lock);
	note_taken(l->place);
}

void rwlock_write(struct rwlock *l)
{
	check(l->place);
	pthread_rwlock_wrlock(&l->lock);
	note_taken(l->place);
}

void rwlock_release(struct rwlock *l)
{
	note_released(l->place);
	pthread_rwlock_unlock(&l->lock);
}

void rwlock_destroy(struct rwlock *l)
{
	pthread_rwlock_destroy(&l->lock);
}
