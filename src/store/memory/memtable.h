/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/memory/memtable: the samples that are not in a part yet: tables and columnar rows.
 *
 * Layer 3, private to store/. A writer takes `lock` twice: for reading, to look up what is there,
 * then for writing, to add the rest. A snapshot takes it for reading, for an instant, and then
 * reads without: nothing that it sees moves or changes (grow.h). Counted references.
 */
#pragma once

#include "base/hash.h"
#include "base/lock.h"
#include "os/os.h"
#include "store/memory/tables.h"

#include <stdatomic.h>

struct row {
	int64_t time_ns;
	int64_t value;
	int64_t count;
	uint32_t series;
	uint32_t node;
	uint32_t set;
};

struct batch_seen {
	struct hash128 id;
	int64_t arrived_ns;
};

struct memtable {
	atomic_uint refs;
	struct rwlock lock;
	struct tables tables;
	/* Salt of the stack keys, so that no sender can build two stacks with one key. */
	struct hash128 salt;
	uint64_t *secrets;
	GROW(int64_t) time_ns;
	GROW(int64_t) value;
	GROW(uint32_t) series;
	GROW(uint32_t) node;
	GROW(uint32_t) set;
	VEC(struct batch_seen) batches;
	int64_t first_ns;
	int64_t last_ns;
	atomic_int_least64_t born_ns; /* monotonic, of the first batch; 0: empty */
	atomic_uint_fast64_t bytes;
	uint64_t first_sequence; /* records of the log; 0: none */
	uint64_t last_sequence;
};

struct memtable_snapshot {
	struct memtable *table;
	struct tabs tabs;
	size_t row_count;
	int64_t first_ns;
	int64_t last_ns;
};

/* `limit_bytes` bounds each column and table. */
NODISCARD enum status memtable_new(size_t limit_bytes, struct memtable **out);
struct memtable *memtable_ref(struct memtable *m);
void memtable_unref(struct memtable *m);

/* All samples of a valid profile, or none (E_NOMEM, E_LIMIT). */
NODISCARD enum status memtable_add(struct memtable *m, struct str tenant, const struct profile *p,
	struct batch_seen batch, struct err *e);
void memtable_snapshot(struct memtable *m, struct memtable_snapshot *out);
/* The most memory that adding the profile takes, roughly. */
uint64_t memtable_estimate_bytes(const struct profile *p);
