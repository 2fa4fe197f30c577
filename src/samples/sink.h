/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples/sink: takes samples: the writing side of samples.h. The store in a directory is one
 * (store/store.h, store_sink()); another database may be one too. Protocols do not call a sink:
 * they use ingest/ingest.h, which applies limits and then calls the sink.
 *
 * Layer 2 (may use base, profile, selector). Thread safety: every function is called by any thread
 * at any time.
 *
 * What an implementation must guarantee:
 *
 * - put() returns OK when all samples of the profile are durable and every view that is opened from
 *   then on finds them. On failure it stored none of them, or the sender may send the batch again
 *   and each sample still counts once.
 * - A batch whose id was stored within the last hour is acknowledged and not stored again.
 * - The samples of one tenant are never found under another.
 * - A sink that is short of memory or disk answers E_UNAVAILABLE, and E_LIMIT when a batch can
 *   never be stored. It waits a bounded time (seconds) for memory, not for ever.
 */
#pragma once

#include "base/hash.h"
#include "profile/profile.h"

#define SAMPLES_TENANT_MAX 64 /* bytes of a tenant's name; "" is the default tenant */

struct samples_sink;
struct samples_entry; /* the memory of one message on its way in; the implementation's */

struct samples_sink_ops {
	/* Gets memory for a message of that many bytes: for its bytes, its decoded form and for
	 * storing it. Called before decoding, so that senders are slowed down first. *entry is NULL
	 * at first; a later call gets more. E_UNAVAILABLE: others use the memory; the message may
	 * be sent again. */
	enum status (*admit)(struct samples_sink *s, uint64_t message_bytes,
		struct samples_entry **entry, struct err *e);
	/* Gives back all but `bytes`, while the caller waits for the sender. The next admit() gets
	 * it again. */
	void (*keep)(struct samples_sink *s, struct samples_entry *entry, uint64_t bytes);
	/* Gives it all back. NULL is fine. */
	void (*admit_end)(struct samples_sink *s, struct samples_entry *entry);

	/* All samples of a profile under `tenant`. E_INVALID: see profile_validate(). */
	enum status (*put)(struct samples_sink *s, struct str tenant, const struct profile *p,
		struct hash128 batch_id, struct err *e);

	/* OK, or why put() would fail now with any profile (E_UNAVAILABLE). Cheap: it is called for
	 * each message before its bytes are read. */
	enum status (*health)(struct samples_sink *s, struct err *e);
};

/* An implementation's own structure has this as a member. */
struct samples_sink {
	const struct samples_sink_ops *ops;
};
