/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/state/dedupe: which batches arrived within the last hour.
 *
 * Layer 3, private to store/. Thread safe.
 */
#pragma once

#include "base/lock.h"
#include "os/os.h"
#include "store/part/part.h"

#define DEDUPE_AGE_NS (3600LL * 1000000000LL)
#define DEDUPE_MAX (1u << 20) /* batches; the oldest are forgotten beyond that */
#define DEDUPE_MIN (1u << 14)
#define DEDUPE_ENTRY_BYTES 64 /* of memory, with the index, at most */

struct dedupe {
	struct lock lock;
	struct batch_seen *v; /* a ring: [first .. first + count) modulo cap */
	size_t cap;
	size_t max; /* of cap: a power of two */
	size_t first;
	size_t count;
	struct map index; /* of positions in v */
};

enum dedupe_answer { DEDUPE_NEW, DEDUPE_KNOWN, DEDUPE_PENDING, DEDUPE_NO_MEMORY };

/* `bytes`: the memory that it may take. It has room for DEDUPE_MIN batches at least, and DEDUPE_MAX
 * at most. */
void dedupe_init(struct dedupe *d, uint64_t bytes);
void dedupe_deinit(struct dedupe *d);
/* NEW: the caller stores the batch and then says how it went. The null id is always new. */
enum dedupe_answer dedupe_begin(struct dedupe *d, struct hash128 id, int64_t now_ns);
void dedupe_end(struct dedupe *d, struct hash128 id, int64_t arrived_ns, bool stored);
/* A batch that is known to be stored. */
void dedupe_add(struct dedupe *d, struct hash128 id, int64_t arrived_ns);
