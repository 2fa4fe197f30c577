/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/view: what queries read from: the memtables and parts of one instant, and how rows are
 * picked from them.
 *
 * Layer 3, private to store/. A view is one query's: of its threads, each works on sources of its
 * own, or only reads.
 */
#pragma once

#include "store/part/block_keep.h"
#include "store/state/state.h"

struct store_view;

/* Memory of one query; taken and given by any of its threads. What a view's budget takes is held in
 * the store's share for queries (memory.h), in steps, until view_release(). */
struct budget {
	struct store_view *view; /* NULL: none of the share is held */
	uint64_t limit;
	uint64_t used; /* atomic */
};
NODISCARD enum status budget_take(struct budget *b, uint64_t bytes, struct err *e);
void budget_give(struct budget *b, uint64_t bytes);
uint64_t budget_left(const struct budget *b);
/* Threads that a query may use: one where the memory is scarce. */
unsigned view_width(struct store_view *v);
/* For who asks: E_LIMIT and E_NOMEM of something within the budget say no more than that. */
enum status budget_fail(const struct budget *b, enum status s, struct err *e);
/* calloc within the budget. */
NODISCARD enum status budget_array(
	struct budget *b, size_t count, size_t size, void *out_ptr, struct err *e);

/* One memtable or part. */
struct source {
	struct part *part; /* NULL: a memtable */
	struct memtable_snapshot mem;
	unsigned pinned; /* groups */
	struct tabs tabs;
	struct label_ids *ids; /* in the view's dictionary; NULL: compare texts */
	uint64_t kept;         /* bytes of its labels that the view keeps, counted in v->cached */
	bool dropped;          /* its labels were, and come with what is loaded next */
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
	struct part *damaged;         /* what the last operation stumbled over; atomic */
	struct store_query *query;    /* whose memory is counted together, and who waits; or */
	struct store_query own_query; /* this view alone, which does not wait */
	struct memory_holder own_holder;
	uint64_t held;   /* of the share for queries; with hold_lock held */
	uint64_t kept;   /* of it, by answers that were given, until the view is closed */
	uint64_t cached; /* bytes of tables that this view left loaded; atomic */
	pthread_mutex_t hold_lock;
};

/* Load groups of a source and pin them until the operation's end (view_release). */
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

/* ---- picking ---- */

/* The types of the series that a pick wants. */
struct pick_type {
	bool found;
	bool several; /* `other` begins with what another one has */
	bool differ;  /* periods */
	bool any;     /* one has a period */
	bool delta;
	int64_t period;
	struct str text[TABLES_TYPE_PARTS];
	struct str other[2];
};

/* Which series and sets of a source a query wants. */
struct pick {
	uint8_t *series; /* one byte each; NULL: not picked yet */
	uint32_t series_count;
	uint32_t wanted; /* series */
	uint8_t *sets;   /* NULL: all */
	/* Where the source's labels did not stay. */
	bool apart;
	struct pick_type type;
	char *type_memory; /* its texts */
};
void pick_deinit(struct pick *p);
/* Tenant, type, labels and time. Loads labels, and sets where a matcher asks for them. */
NODISCARD enum status source_pick(struct store_view *v, struct source *s,
	const struct samples_query *q, struct budget *b, struct pick *out, struct err *e);

/* The one type of what all picks want: found false when nothing is wanted. E_INVALID when there
 * are several. */
struct found_type {
	bool found;
	bool delta;
	struct str text[TABLES_TYPE_PARTS]; /* in a source's strings */
	int64_t period;                     /* 0: differs */
	bool by_period; /* values are to be multiplied by that of their series; `period` is 1 */
};
/* Of a series without a period each value counts as it is. */
static inline int64_t period_factor(const struct tab_series *s)
{
	return s->period > 0 ? s->period : 1;
}
NODISCARD enum status picks_type(struct store_view *v, const struct pick *picks, bool times_period,
	struct found_type *out, struct err *e);
/* As the answer's; nothing where none was found. */
NODISCARD enum status found_type_put(const struct found_type *f, struct samples_tree *out);

/* ---- scanning ---- */

/* Rows of a source that the pick wants, some at a time. `sel`: their positions in the columns;
 * NULL: all from 0 to n. */
struct scan_rows {
	size_t n;
	const uint32_t *sel;
	const uint32_t *series;
	const uint32_t *node;
	const uint32_t *set;
	const int64_t *time_ns;
	const int64_t *value;
	const int64_t *count; /* NULL: 1 each */
};
typedef enum status scan_fn(void *ctx, const struct scan_rows *rows, struct err *e);

/* Buffers of one thread that scans. */
struct scanner {
	struct part_rows rows;
	uint32_t *sel;
	size_t sel_cap;
};
void scanner_init(struct scanner *s);
void scanner_deinit(struct scanner *s);

struct scan {
	struct store_view *view;
	struct source *source;
	const struct pick *pick;
	const struct samples_query *query;
	unsigned columns; /* mask of 1u << ROW_…: what fn reads */
};
/* Loads what the scan reads of its source, which comes in pieces, numbered from 0. */
NODISCARD enum status scan_prepare(
	const struct scan *s, const struct budget *b, size_t *out_pieces, struct err *e);
/* Whether there is something in a piece; and whether all of it is wanted. */
enum scan_wants { SCAN_NONE, SCAN_SOME, SCAN_ALL };
enum scan_wants scan_wants(const struct scan *s, size_t piece);
/* Of a part's piece: which rows are wanted. */
struct part_filter scan_filter(const struct scan *s, size_t piece);
/* The rows of one piece that are wanted; fn is not called when there are none. */
NODISCARD enum status scan_piece(const struct scan *s, size_t piece, struct scanner *scanner,
	scan_fn *fn, void *ctx, struct err *e);
/* All pieces. */
NODISCARD enum status scan_run(
	const struct scan *s, scan_fn *fn, void *ctx, struct budget *b, struct err *e);

/* ---- gauges ---- */

/* A gauge's sum is averaged over time: `weight[i][series]` is the share of the time that the series
 * covers, by the number of its distinct points, for source i. */
struct gauge {
	double **weights;
	size_t source_count;
};
NODISCARD enum status gauge_init(struct gauge *g, struct store_view *v, const struct pick *picks,
	const struct samples_query *q, struct budget *b, struct err *e);
void gauge_deinit(struct gauge *g);

/* Series of all sources under common numbers: equal type and labels, equal number. */
struct common_series {
	struct strtab keys;
	uint32_t **ids; /* [source][series] */
	size_t source_count;
};
NODISCARD enum status common_series_init(struct common_series *c, struct store_view *v,
	const struct pick *picks, struct budget *b, struct err *e);
void common_series_deinit(struct common_series *c);

/* ---- symbols ---- */

/* Locations of a source as locations of a profile, each once. */
struct remap {
	const struct tabs *from;
	struct profile *to;
	uint32_t *locations;
	uint32_t *functions;
	uint32_t *mappings;
	uint32_t last; /* location of `to` */
	bool first;    /* `to` had none before: those of a source are distinct */
};
NODISCARD enum status remap_init(struct remap *r, const struct tabs *from, struct profile *to,
	struct budget *b, struct err *e);
void remap_deinit(struct remap *r);
/* What remap_init() takes from the budget. */
uint64_t remap_bytes(const struct tabs *from);
NODISCARD enum status remap_location(struct remap *r, uint32_t location, uint32_t *out);

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
/* One pick for each source. */
struct pick *view_picks_new(const struct store_view *v);
void view_picks_free(const struct store_view *v, struct pick *picks);
/* `skip` by source: not 0 for those that need not be picked from; NULL: all are. */
NODISCARD enum status view_pick(struct store_view *v, const struct samples_query *q,
	const uint8_t *skip, struct budget *b, struct pick *picks, struct err *e);
