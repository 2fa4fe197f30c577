/* SPDX-License-Identifier: Apache-2.0 */
/*
 * samples: the queries that reports make to a database of samples. The store in a directory answers
 * them (store/store.h, store_samples()); a distributed database may do so too: reports (query/)
 * know this header only.
 *
 * Layer 2 (may use base, profile, selector). Thread safety: a samples_db is used by any thread at
 * any time, a samples_view by one.
 *
 * What an implementation must guarantee:
 *
 * - A view is one instant: each sample that was acknowledged before it was opened is counted
 *   exactly once by each query of it, whatever is written, merged or dropped meanwhile; no sample
 *   of another tenant ever is.
 * - Samples are picked by type and labels as selector.h says, and by from_ns <= time < to_ns. Times
 *   may have been rounded down to a documented resolution when they were stored.
 * - Values are signed 64-bit numbers, sums are taken modulo 2^64. Values of a type with `delta` are
 *   summed. Values of a type without it (gauges) are summed over series and averaged over time:
 *   each series counts by the mean of its points in time, and by its share of the time in which any
 *   series was there (docs/api.md). A sample that stands for several (its weight) counts as often.
 * - A selector without a type is enough for types and labels. For sums all samples that it picks
 *   must have one type, else E_INVALID names two of them. If it picks nothing, the answer is empty,
 *   and that is no error.
 * - Answers do not depend on where samples lie (memory, young or merged parts, other machines), and
 *   texts are sorted by bytes.
 * - `cancel` is called at least every few milliseconds of work, by one thread at a time; if it
 *   returns true the query ends with E_CANCELED. Past `deadline_ns` it ends with E_TIMEOUT, past
 *   the memory limit with E_LIMIT. A failure leaves out parameters unchanged.
 * - Damaged data is reported and left out, or the query fails with E_CORRUPT. An answer is never
 *   wrong silently.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "selector/selector.h"

#define SAMPLES_TREE_NODES_MAX (64u << 20)

/* True: the caller does not want the answer any more. */
typedef bool samples_cancel_fn(void *ctx);

struct samples_query {
	const struct selector *selector;
	int64_t from_ns; /* samples with from <= time < to */
	int64_t to_ns;
	samples_cancel_fn *cancel; /* may be NULL */
	void *cancel_ctx;
	int64_t deadline_ns;   /* monotonic; 0: none */
	uint64_t memory_bytes; /* limit of this query; 0: the implementation's own */
	/* If the periods of samples differ, each value is multiplied by its period, and the period
	 * of the answer is 1. */
	bool times_period;
	bool each_time; /* collect: samples of different times are not merged, and keep their times
			 */
	/* collect: samples of different steps (which begin at multiples of it) are not merged;
	 * their time is the begin of the step. A gauge is averaged over its step. 0: no steps. */
	int64_t step_ns;
	bool durations; /* the answer says how long the profiles took: covered_ns */
};

/* Whether to go on: OK, E_CANCELED or E_TIMEOUT. */
NODISCARD static inline enum status samples_stopped(const struct samples_query *q, struct err *e)
{
	if (q->cancel && q->cancel(q->cancel_ctx))
		return err_set(e, E_CANCELED, "the caller went away");
	if (q->deadline_ns && clock_monotonic_ns() > q->deadline_ns)
		return err_set(e, E_TIMEOUT,
			"the query took longer than it may: narrow the time range or the selector");
	return OK;
}

struct samples_type {
	struct str name, sample_type, sample_unit, period_type, period_unit;
	bool delta;
	int64_t first_ns, last_ns;
};

/* Sums of values by stack: a tree of locations from the root down. */
struct samples_node {
	uint32_t parent;   /* always a smaller index; node 0 is the root, its own parent */
	uint32_t location; /* tables.locations; 0 for the root */
	int64_t self;      /* sum of the values of the stacks that end here */
};
struct samples_tree {
	struct profile tables; /* strings, functions, mappings, lines, locations in use */
	VEC(struct samples_node) nodes;
	int64_t total; /* sum of all self values */
	uint64_t sample_count;
	int64_t period;            /* of the samples; 0 when they differ or have none */
	int64_t first_ns, last_ns; /* of the samples found; 0 when none */
	/* If asked for: the time in which at least one of the profiles was being taken; 0: not
	 * known for all samples. */
	int64_t covered_ns;
	struct profile_type type; /* in tables; the query must name one */
};
static inline void samples_tree_deinit(struct samples_tree *t)
{
	profile_deinit(&t->tables);
	VEC_FREE(&t->nodes);
}

/* Sums of values by stack, by the values of some labels and by period. */
struct samples_group {
	uint32_t labels; /* tables.label_sets */
	int64_t period;  /* 0: not known */
};
struct samples_cell {
	uint32_t node;
	uint32_t group;
	int64_t value; /* not 0 */
};
struct samples_cells {
	struct samples_tree tree;         /* without own values and total */
	VEC(struct samples_group) groups; /* groups with the same labels follow each other */
	VEC(struct samples_cell) v;       /* ascending by node, then by group, each once */
};
static inline void samples_cells_deinit(struct samples_cells *c)
{
	samples_tree_deinit(&c->tree);
	VEC_FREE(&c->groups);
	VEC_FREE(&c->v);
}

/* Sums of values by time step and by the values of some labels. */
struct samples_point {
	int64_t time_ns; /* begin of the step: a multiple of step_ns */
	int64_t value;
	uint64_t count;     /* samples */
	bool one_time;      /* they all have the same time */
	int64_t covered_ns; /* as in samples_tree, of the profiles that began in the step */
};
struct samples_series {
	struct str *values;           /* of the `by` labels, "" when absent */
	struct samples_point *points; /* ascending, empty steps left out */
	size_t point_count;
};

/* A series that had one of the chosen locations in a stack, and when. */
struct samples_span {
	int64_t first_ns, last_ns; /* both included */
};
struct samples_hit {
	struct samples_type type; /* with the first and the last of these times */
	struct str *names, *values;
	uint32_t label_count;
	/* Ascending, apart from each other. The implementation chooses how fine they are; no sample
	 * with the location lies outside of them. */
	struct samples_span *spans;
	size_t span_count;
};
/* Sets chosen[l] for locations of `tables`; may add names to them, but no locations. */
typedef enum status samples_choose_fn(
	void *ctx, struct profile *tables, uint8_t *chosen, struct err *e);

struct samples_db;
struct samples_view;

struct samples_ops {
	enum status (*view_open)(
		struct samples_db *db, struct str tenant, struct samples_view **out, struct err *e);
	void (*view_close)(struct samples_view *v);

	/* From an index, without reading samples; sorted, texts in `a`. Names and values include
	 * those of samples' own labels (pid, cpu, …) of the series that the selector picks. */
	enum status (*types)(struct samples_view *v, int64_t from_ns, int64_t to_ns,
		struct arena *a, struct samples_type **out, size_t *out_count, struct err *e);
	enum status (*label_names)(struct samples_view *v, const struct samples_query *q,
		struct arena *a, struct str **out, size_t *out_count, struct err *e);
	enum status (*label_values)(struct samples_view *v, const struct samples_query *q,
		struct str name, struct arena *a, struct str **out, size_t *out_count,
		struct err *e);

	enum status (*sum_stacks)(struct samples_view *v, const struct samples_query *q,
		struct samples_tree *out, struct err *e);
	/* Values are not multiplied by periods, whatever `times_period` says. */
	enum status (*sum_cells)(struct samples_view *v, const struct samples_query *q,
		const struct str *keep_labels, size_t keep_count, struct samples_cells *out,
		struct err *e);
	/* *out_type is the type of the samples found; *out_period as in samples_tree. */
	enum status (*sum_series)(struct samples_view *v, const struct samples_query *q,
		const struct str *by, size_t by_count, int64_t step_ns, struct arena *a,
		struct samples_series **out, size_t *out_count, struct samples_type *out_type,
		int64_t *out_period, struct err *e);
	/* All samples as one profile, with a head for each period that they have; those with equal
	 * period, stack and labels among `keep_labels` are merged. */
	enum status (*collect)(struct samples_view *v, const struct samples_query *q,
		const struct str *keep_labels, size_t keep_count, struct profile *out,
		struct err *e);

	/* Which series had a chosen location, and when: from an index if there is one. `choose` is
	 * called once, with all locations that the picked series may have (or twice, when something
	 * is found damaged). */
	enum status (*where)(struct samples_view *v, const struct samples_query *q,
		samples_choose_fn *choose, void *ctx, struct arena *a, struct samples_hit **out,
		size_t *out_count, struct err *e);

	/* Counts the memory that a report takes while it is made from the answer: `bytes` in all,
	 * until the view is closed. NULL: it is not counted. E_LIMIT: more than a query may take;
	 * E_UNAVAILABLE: others use it. */
	enum status (*hold)(struct samples_view *v, uint64_t bytes, struct err *e);
};

/* An implementation's own structures begin with these. */
struct samples_db {
	const struct samples_ops *ops;
};
struct samples_view {
	const struct samples_ops *ops;
};
