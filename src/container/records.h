/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records: the labels known of containers and pods, with limits of their number and of their text.
 * Private to container/. Not thread safe: container.c has a lock.
 *
 * A record is found by its key: a container's id ("NAMESPACE/ID" where only containerd can know
 * it), or "pod/UID". It is
 *
 *	WANTED   asked for as soon as the thread comes to it
 *	KNOWN    has labels; asked again when they are as old as ttl_ns and samples still ask
 *	NOBODY   no engine knows it; asked again after 250 ms, 500 ms, … 60 s while samples ask
 */
#pragma once

#include "base/clock.h"
#include "base/map.h"
#include "base/vec.h"
#include "container/labels.h"
#include "container/peer.h"

/* A container that was not looked up for this long is not asked for again. */
#define CONTAINER_UNUSED_NS (120 * NS_PER_SEC)

enum container_record_state { CONTAINER_WANTED, CONTAINER_KNOWN, CONTAINER_NOBODY };

struct container_text_pair {
	uint32_t name, value; /* in texts */
};

struct container_record {
	uint32_t key; /* in texts */
	enum container_record_state state;
	struct container_query query;
	int64_t due_ns; /* when to ask */
	int64_t retry_ns;
	int64_t used_ns;    /* when a sample asked last; 0: never */
	int64_t touched_ns; /* when it was last looked up, or an engine last listed it */
	bool listed;        /* Kubernetes reported it: engines know less */
	uint64_t version;
	struct container_text_pair *labels;
	uint32_t label_count;
};

struct container_records {
	int64_t ttl_ns;
	struct containers_metrics *metrics;
	_Atomic uint64_t generation; /* changes when any record does; read without the lock */
	VEC(struct container_record) all;
	struct map index;
	struct strtab texts;
	bool scarce;          /* room for texts: long values are left out */
	size_t carried_bytes; /* bytes of them that were kept the last time */
	uint64_t forgotten;   /* times that everything was forgotten, for room: it must be reported
				 again */
};

/* E_NOMEM. */
NODISCARD enum status container_records_init(
	struct container_records *c, int64_t ttl_ns, struct containers_metrics *metrics);
void container_records_deinit(struct container_records *c);
/* To be called before records and texts are added; existing ones may move. */
void container_records_make_room(struct container_records *c);
/* Records move when one is made. NULL: there is none. */
struct container_record *container_record_find(struct container_records *c, struct str key);
/* Makes a record; if there are CONTAINERS_MAX it replaces the one not touched for longest. NULL: no
 * memory. */
struct container_record *container_record_new(struct container_records *c, struct str key);
/* Sets its labels, and makes it KNOWN. False: no memory; the record is unchanged. */
bool container_record_fill(
	struct container_records *c, struct container_record *r, const struct container_labels *l);
/* To be called if no engine knew it this time. */
void container_record_nobody(struct container_records *c, struct container_record *r);
/* Asks again soon, since it will have changed: `retry_ns` is the previous wait. */
void container_record_look_again_soon(struct container_record *r, int64_t retry_ns);
/* Copies its labels to `l`. */
void container_record_put(const struct container_records *c, struct container_labels *l,
	const struct container_record *r);
/* The record to ask for now, or NULL; *out_wake_ns: when the next one is due. */
const struct container_record *container_records_next_due(
	const struct container_records *c, int64_t *out_wake_ns);
/* How many records no engine knows. */
uint64_t container_records_unknown(const struct container_records *c);
