/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that wait for a worker, in the order in which they came. The tenant with the fewest
 * running requests goes first, so that one with many does not keep the others waiting.
 *
 * The lane owns a request in its list. A worker takes it out and then owns it and its reference;
 * the loop does so when the request is late or its client has gone.
 */
#include "net/lane.h"
#include "base/hash.h"
#include "net/state.h"

#define WAITING_MAX 1024

void net_lane_init(struct net_lane *l)
{
	lock_init(&l->lock, LOCK_LANE);
	pthread_cond_init(&l->changed, NULL);
	TAILQ_INIT(&l->waiting);
}

void net_lane_close(struct net_lane *l)
{
	lock_take(&l->lock);
	l->closed = true;
	pthread_cond_broadcast(&l->changed);
	lock_release(&l->lock);
}

void net_lane_deinit(struct net_lane *l)
{
	lock_destroy(&l->lock);
	pthread_cond_destroy(&l->changed);
}

/* A hash of the tenant: the one to which the guard bound the sender, else the one in the request's
 * header. Before authentication it is of the sender's address, as the header may say anything. */
static uint64_t share_of(const struct net_exchange *x)
{
	const char *name = x->server->config.share_header;
	struct str value = STR("");
	if (x->judging)
		value = str_sub(str_of(x->peer), 0, str_rindex(str_of(x->peer), ':'));
	else if (x->request.caller.has_tenant)
		value = str_of(x->request.caller.tenant);
	else if (name)
		value = str_trim(net_header_find(&x->request, name));
	return hash64(value.p, value.len);
}

/* Many requests that come at once wake one worker after the other, and not more than needed: a
 * worker that wakes up calls this too. The signal comes after the lock is free, which the worker
 * takes at once. */
static void release_and_wake(struct net_lane *l)
{
	bool wake = l->waiting_count > 0 && l->idle_count > 0 && !l->waking;
	l->waking |= wake;
	lock_release(&l->lock);
	if (wake)
		pthread_cond_signal(&l->changed);
}

bool net_lane_push(struct net_lane *l, struct net_exchange *x)
{
	x->share = share_of(x);
	lock_take(&l->lock);
	bool room = !l->closed && l->waiting_count < WAITING_MAX;
	if (room) {
		x->lane = l;
		TAILQ_INSERT_TAIL(&l->waiting, x, turn);
		l->waiting_count++;
	}
	release_and_wake(l);
	return room;
}

/* With the lock held, like the functions below. */
static uint32_t running(const struct net_lane *l, uint64_t share)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->worker_count; i++)
		n += l->workers[i].busy && l->workers[i].share == share;
	return n;
}

static struct net_exchange *next_of(struct net_lane *l)
{
	struct net_exchange *x, *best = NULL;
	uint32_t least = UINT32_MAX;
	TAILQ_FOREACH(x, &l->waiting, turn)
	{
		if (best && x->share == best->share)
			continue;
		uint32_t n = running(l, x->share);
		if (n < least) {
			least = n;
			best = x;
		}
		if (least == 0)
			break;
	}
	return best;
}

static void take_out(struct net_lane *l, struct net_exchange *x)
{
	TAILQ_REMOVE(&l->waiting, x, turn);
	l->waiting_count--;
	x->lane = NULL;
}

struct net_exchange *net_lane_pop(struct net_lane_worker *w)
{
	struct net_lane *l = w->lane;
	lock_take(&l->lock);
	w->busy = false;
	struct net_exchange *x;
	while (!(x = next_of(l)) && !l->closed) {
		l->idle_count++;
		lock_wait(&l->changed, &l->lock);
		l->idle_count--;
		l->waking = false;
	}
	if (x) {
		take_out(l, x);
		w->busy = true;
		w->share = x->share;
	}
	release_and_wake(l);
	return x;
}

bool net_lane_remove(struct net_lane *l, struct net_exchange *x)
{
	lock_take(&l->lock);
	bool there = x->lane == l;
	if (there)
		take_out(l, x);
	lock_release(&l->lock);
	return there;
}
