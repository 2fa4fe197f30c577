/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buildqueue: a queue of opened executables whose unwind tables are to be built, fair among their
 * owners. Private to agent/ (files.c).
 *
 * Each owner (a user, on one file system) has a share of a CPU of its own. When its files have cost
 * more, its next file waits until the share has made up for it. Files of other owners go on: they
 * wait for one table at most, and for a rest behind it of BUILDQUEUE_REST_MAX_NS at most. Owners
 * take turns in order of arrival; of one owner's files the most wanted comes first.
 *
 * Thread safety: all functions may be called from any thread.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"

/* Files that may wait at the same time: of all owners, and of one. */
#define BUILDQUEUE_MAX 512
#define BUILDQUEUE_OWNER_MAX 256
/* Owners whose debts are known; beyond them the smallest debt is forgotten. */
#define BUILDQUEUE_OWNERS_MAX 128
/* An owner may be ahead of its share by so much CPU time, and so may all owners together. That is
 * enough for a thousand ordinary programs that start at once, a browser and two compilers. */
#define BUILDQUEUE_BURST_NS (10 * NS_PER_SEC)
/* Where all together are over their share: the longest rest between two tables. */
#define BUILDQUEUE_REST_MAX_NS (1 * NS_PER_SEC)

struct buildqueue;

struct build_ticket {
	uint64_t owner;
	uint64_t bytes;  /* of what the table is made of */
	uint32_t id;     /* for buildqueue_want() */
	uint32_t wanted; /* how often samples met it so far */
};

/* cpu_percent of one CPU; 0: no limit. */
NODISCARD enum status buildqueue_new(uint32_t cpu_percent, struct buildqueue **out);
void buildqueue_free(struct buildqueue *q); /* NULL is fine; what waits is lost */
/* False: closed, or too many of this owner wait, or of all until `deadline_ns`; the item is still
 * the caller's. */
NODISCARD bool buildqueue_push(
	struct buildqueue *q, void *item, const struct build_ticket *ticket, int64_t deadline_ns);
/* One more sample met the item of this id, if it waits here. */
void buildqueue_want(struct buildqueue *q, uint32_t id);
/* Waits for an item of the owner whose turn it is. NULL: closed and empty. */
void *buildqueue_pop(struct buildqueue *q, struct build_ticket *out);
/* The first item of at most bytes_max whose owner has no debt, also while another one is built;
 * NULL: none. */
void *buildqueue_try_pop_small(struct buildqueue *q, uint64_t bytes_max, struct build_ticket *out);
/* The CPU time that a table of this owner has cost. */
void buildqueue_charge(struct buildqueue *q, uint64_t owner, int64_t cpu_ns);
/* keep false: shares are off. Items are popped in order of arrival, and no owner waits for its
 * debt. */
void buildqueue_keep_shares(struct buildqueue *q, bool keep);
/* Items that wait can still be popped, at once. */
void buildqueue_close(struct buildqueue *q);
size_t buildqueue_len(struct buildqueue *q);

/* buildqueue_pop() and buildqueue_charge() at a given time, for tests. take_at never waits; NULL:
 * no item can be taken before *out_wait_ns. */
void *buildqueue_take_at(
	struct buildqueue *q, int64_t now_ns, struct build_ticket *out, int64_t *out_wait_ns);
void buildqueue_charge_at(struct buildqueue *q, uint64_t owner, int64_t cpu_ns, int64_t now_ns);
