/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/view: what queries read from: the memtables and parts of one instant.
 *
 * Layer 3, private to store/. A view belongs to one query. If the query has several threads, each
 * works on sources of its own, or only reads.
 */
#pragma once

#include "samples/samples.h"
#include "store/read/budget.h"

/* One memtable or part. */
struct source {
	struct part *part; /* NULL: a memtable */
	struct memtable_snapshot mem;
	unsigned pinned; /* groups */
	struct tabs tabs;
	struct label_ids *ids; /* in the view's dictionary; NULL: compare texts */
	uint64_t kept;         /* bytes of its labels that the view keeps, counted in v->cached */
	bool dropped; /* its labels were unpinned, and are loaded again by the next source_load() */
	int64_t first_ns;
	int64_t last_ns;
};

struct store_view {
	struct samples_view base; /* the first member */
	struct store *store;
	struct str tenant;
	char tenant_text[STORE_TENANT_MAX];
	struct dictionary *dictionary; /* may be NULL */
	struct source *sources;
	size_t source_count;
	struct part *_Atomic damaged; /* the damaged part that made the last operation fail */
	struct query_memory memory;
	atomic_uint_least64_t cached; /* bytes of tables that this view left loaded */
};

/* Loads groups of a source and pins them until the operation ends (view_release()). */
NODISCARD enum status source_load(struct store_view *v, struct source *s, unsigned groups,
	const struct budget *b, struct err *e);
void view_release(struct store_view *v);
/* Labels, and their numbers in the view's dictionary if that has room. *out_keep: they stay pinned;
 * else, since all that is kept fits an eighth of the store's memory, they have no numbers, and are
 * for source_rest() as soon as they were looked at. */
NODISCARD enum status source_load_labels(struct store_view *v, struct source *s,
	const struct budget *b, bool *out_keep, struct err *e);
/* Nothing more is asked of this source now: what it has loaded goes, unless its labels are kept.
 * Labels come back with the next source_load(). */
void source_rest(struct store_view *v, struct source *s);
/* The operation needs no more of this source than its labels: keep the rest, and labels that are
 * not kept anyway, only as long as all that is kept fits an eighth of the store's memory. */
void source_done(struct store_view *v, struct source *s);
/* After an operation failed with E_CORRUPT: true when a damaged part was set aside and left out of
 * the view, so that the operation may begin anew. */
void view_damaged(struct store_view *v, struct part *p);
bool view_heal(struct store_view *v, enum status s, const struct err *e);

/* Sums wrap around, as the samples' own arithmetic does. */
static inline int64_t wrap_add(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t wrap_mul(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

/* The value of a label of a row: the set's, else the series'. */
struct str source_label(const struct source *s, uint32_t series, uint32_t set, struct str name);
NODISCARD enum status query_check(const struct samples_query *q, struct err *e);
struct budget query_budget(struct store_view *v, const struct samples_query *q);
