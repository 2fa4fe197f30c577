/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values are summed by (node, group, period) in each source, then the stacks of nodes with a sum
 * are made once, and the sums are added to the profile's samples by (stack, group, period). Each
 * period is a head of the profile. If times or steps are kept apart, they are part of these keys.
 */
#include "store/read/durations.h"
#include "store/read/gauge.h"
#include "store/read/groups.h"
#include "store/read/queries.h"
#include "store/read/remap.h"
#include "store/read/scan.h"

#include <math.h>
#include <stdlib.h>

struct cell {
	uint32_t node; /* in the result: stack */
	uint32_t group;
	uint32_t head;   /* heads[] */
	int64_t time_ns; /* begin of the step; 0 if times are joined */
	int64_t value;
	double average;
};

#define HEADS_MAX 4096

struct cells {
	VEC(struct cell) v;
	struct map index;
	uint64_t charged;
};

struct collecting {
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct pick *picks;
	struct groups groups;
	struct gauge gauge;
	bool is_gauge;
	size_t source_at;      /* this and the next two fields are of the current source */
	const double *weights; /* NULL: no gauge, or steps are kept apart */
	struct cells source;   /* by node */
	struct cells result;   /* by stack */
	struct profile out;
	VEC(int64_t) heads;    /* periods */
	uint32_t *series_head; /* index in heads[], by series of the current source */
	int64_t first_ns, last_ns;
};

static void cells_deinit(struct cells *c)
{
	VEC_FREE(&c->v);
	map_deinit(&c->index);
}

static void collecting_deinit(struct collecting *c)
{
	view_picks_free(c->v, c->picks);
	groups_deinit(&c->groups);
	gauge_deinit(&c->gauge);
	cells_deinit(&c->source);
	cells_deinit(&c->result);
	profile_deinit(&c->out);
	VEC_FREE(&c->heads);
	free(c->series_head);
	view_release(c->v);
}

static bool cell_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct cells *c = ctx;
	const struct cell *a = &c->v.v[value], *b = key;
	return a->node == b->node && a->group == b->group && a->head == b->head &&
	       a->time_ns == b->time_ns;
}

/* `key`: without value and average. */
static enum status cells_find(
	struct cells *c, const struct cell *key, struct budget *b, struct cell **out, struct err *e)
{
	uint64_t h = hash_u64(((uint64_t)key->node << 32 | key->group) ^
			      hash_u64((uint64_t)key->time_ns + key->head));
	uint32_t at = map_find(&c->index, h, cell_equal, c, key);
	if (at == MAP_NONE) {
		at = (uint32_t)c->v.len;
		if (!VEC_PUSH(&c->v, *key) || !map_insert(&c->index, h, at))
			return budget_fail(b, E_NOMEM, e);
		uint64_t bytes = c->v.cap * (sizeof(*key) + 16), before = c->charged;
		c->charged = MAX(bytes, before);
		enum status s = budget_take(b, c->charged - before, e);
		if (s != OK)
			return s;
	}
	*out = &c->v.v[at];
	return OK;
}

/* The time by which a row is kept apart from others of its stack. */
static int64_t time_of(const struct samples_query *q, int64_t time_ns)
{
	int64_t begin;
	if (q->step_ns == 0)
		return q->each_time ? time_ns : 0;
	if (__builtin_mul_overflow(durations_step(time_ns, q->step_ns), q->step_ns, &begin))
		begin = INT64_MIN;
	return begin;
}

static double weight_of(struct collecting *c, uint32_t series, int64_t time_ns)
{
	return c->weights ? c->weights[series]
			  : gauge_step_weight(&c->gauge, c->source_at, series, time_ns);
}

static enum status add_rows(void *ctx, const struct scan_rows *r, struct err *e)
{
	struct collecting *c = ctx;
	for (size_t j = 0; j < r->n; j++) {
		size_t i = r->sel ? r->sel[j] : j;
		uint32_t group;
		struct cell *cell;
		enum status s = groups_find(
			&c->groups, r->series[i], c->groups.by_set ? r->set[i] : 0, &group, e);
		if (s == OK)
			s = cells_find(&c->source,
				&(struct cell){ .node = r->node[i],
					.group = group,
					.head = c->series_head[r->series[i]],
					.time_ns = time_of(c->q, r->time_ns[i]) },
				&c->budget, &cell, e);
		if (s != OK)
			return s;
		if (c->is_gauge)
			cell->average +=
				(double)r->value[i] * weight_of(c, r->series[i], r->time_ns[i]);
		else
			cell->value = wrap_add(cell->value, r->value[i]);
		c->first_ns = MIN(c->first_ns, r->time_ns[i]);
		c->last_ns = MAX(c->last_ns, r->time_ns[i]);
	}
	return OK;
}

static enum status make_stack(
	struct collecting *c, const struct tabs *t, struct remap *r, uint32_t node, uint32_t *out)
{
	uint32_t locations[PROFILE_STACK_MAX];
	uint32_t n = 0;
	for (; node && n < PROFILE_STACK_MAX; node = t->parent[node]) {
		enum status s = remap_location(r, t->node_location[node], &locations[n++]);
		if (s != OK)
			return s;
	}
	return profile_add_stack(&c->out, locations, n, out);
}

/* Adds the source's cells, by stack, to the result. */
static enum status fold_source(struct collecting *c, struct source *src, struct err *e)
{
	CLEANUP(remap_deinit) struct remap r = { 0 };
	enum status s = remap_init(&r, &src->tabs, &c->out, &c->budget, e);
	if (s != OK)
		return s;
	for (size_t i = 0; s == OK && i < c->source.v.len; i++) {
		const struct cell *from = &c->source.v.v[i];
		uint32_t stack;
		struct cell *to;
		if (from->value == 0 && from->average == 0)
			continue;
		s = make_stack(c, &src->tabs, &r, from->node, &stack);
		if (s == E_CORRUPT) {
			view_damaged(c->v, src->part);
			return err_set(e, s, "the stack of trie node %u", from->node);
		}
		if (s != OK)
			return budget_fail(&c->budget, s, e);
		s = cells_find(&c->result,
			&(struct cell){ .node = stack,
				.group = from->group,
				.head = from->head,
				.time_ns = from->time_ns },
			&c->budget, &to, e);
		if (s != OK)
			break;
		to->value = wrap_add(to->value, from->value);
		to->average += from->average;
	}
	budget_give(&c->budget, remap_bytes(&src->tabs));
	VEC_CLEAR(&c->source.v);
	map_clear(&c->source.index);
	return s;
}

/* Finds the heads of the wanted series; the periods of others do not count. */
static enum status find_heads(
	struct collecting *c, const struct source *src, const struct pick *pick, struct err *e)
{
	uint32_t n = src->tabs.series_count;
	free(c->series_head);
	c->series_head = calloc(MAX(n, 1u), sizeof(*c->series_head));
	if (!c->series_head)
		return err_set(e, E_NOMEM, "%u series", n);
	for (uint32_t i = 0; i < n; i++) {
		size_t h = 0;
		if (!pick->series[i])
			continue;
		while (h < c->heads.len && c->heads.v[h] != src->tabs.series[i].period)
			h++;
		if (h >= HEADS_MAX)
			return err_set(e, E_LIMIT, "samples of more than %d periods", HEADS_MAX);
		if (h == c->heads.len && !VEC_PUSH(&c->heads, src->tabs.series[i].period))
			return err_set(e, E_NOMEM, "periods");
		c->series_head[i] = (uint32_t)h;
	}
	return OK;
}

static enum status collect_source(struct collecting *c, size_t i, struct err *e)
{
	struct source *src = &c->v->sources[i];
	if (c->picks[i].wanted == 0)
		return OK;
	enum status s = source_load(c->v, src, PART_LOAD_STACKS | PART_LOAD_SYMBOLS, &c->budget, e);
	if (s == OK)
		s = groups_source(&c->groups, c->v, src, e);
	if (s == OK)
		s = find_heads(c, src, &c->picks[i], e);
	if (s != OK)
		return s;
	c->source_at = i;
	c->weights = c->is_gauge && c->gauge.weights ? c->gauge.weights[i] : NULL;
	struct scan scan = { c->v, src, &c->picks[i], c->q,
		1u << ROW_NODE | 1u << ROW_VALUE | 1u << ROW_TIME | groups_columns(&c->groups) };
	s = scan_run(&scan, add_rows, c, &c->budget, e);
	if (s == OK)
		s = fold_source(c, src, e);
	source_done(c->v, src);
	return s;
}

/* ---- the result ---- */

static enum status add_head(
	struct collecting *c, const struct found_type *f, int64_t period, uint32_t *head)
{
	struct profile_type t = { .delta = f->delta };
	uint32_t *parts[] = { &t.name, &t.sample_type, &t.sample_unit, &t.period_type,
		&t.period_unit };
	struct profile_head h = { .period = period };
	enum status s = OK;
	for (size_t k = 0; k < ARRAY_COUNT(parts) && s == OK; k++)
		s = profile_add_string(&c->out, f->text[k], parts[k]);
	if (s == OK)
		s = profile_add_type(&c->out, &t, &h.type);
	if (c->first_ns <= c->last_ns) {
		h.time_ns = c->first_ns;
		h.duration_ns = c->last_ns - c->first_ns;
	}
	return s == OK ? profile_add_head(&c->out, &h, head) : s;
}

static enum status add_samples(struct collecting *c, const struct found_type *f, struct err *e)
{
	uint32_t groups = groups_count(&c->groups);
	CLEANUP(free_cleanup) uint32_t *labels = calloc(MAX(groups, 1u), sizeof(*labels));
	uint32_t *heads = calloc(c->heads.len + 1, sizeof(*heads));
	enum status s = labels && heads ? OK : E_NOMEM;
	for (uint32_t i = 0; s == OK && i < groups; i++)
		s = groups_labels(&c->groups, i, &c->out, &labels[i]);
	for (size_t i = 0; s == OK && i < c->result.v.len; i++) {
		const struct cell *cell = &c->result.v.v[i];
		if (!heads[cell->head])
			s = add_head(c, f, c->heads.v[cell->head], &heads[cell->head]);
		struct profile_sample sample = {
			.value = c->is_gauge ? (int64_t)llround(cell->average) : cell->value,
			.time_ns = c->q->each_time || c->q->step_ns ? cell->time_ns : c->first_ns,
			.head = heads[cell->head],
			.stack = cell->node,
			.own = labels[cell->group],
		};
		if (s == OK)
			s = profile_add_sample(&c->out, &sample);
	}
	if (s == OK && c->result.v.len == 0) { /* an empty profile has its type, too */
		uint32_t ignored;
		s = add_head(c, f, f->period, &ignored);
	}
	free(heads);
	return budget_fail(&c->budget, s, e);
}

static enum status collect(struct store_view *v, const struct samples_query *q,
	const struct str *keep, size_t keep_count, struct profile *out, struct err *e)
{
	CLEANUP(collecting_deinit)
	struct collecting c = { .v = v,
		.q = q,
		.budget = query_budget(v, q),
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN };
	struct found_type type;
	enum status s = groups_init(&c.groups, keep, (uint32_t)keep_count, &c.budget, e);
	c.picks = view_picks_new(v);
	if (s == OK) {
		s = c.picks ? profile_init(&c.out, c.budget.limit) : E_NOMEM;
		budget_fail(&c.budget, s, e);
	}
	if (s == OK)
		s = view_pick(v, q, NULL, &c.budget, c.picks, e);
	if (s == OK)
		s = picks_type(v, c.picks, false, &type, e);
	if (s != OK)
		return s;
	c.is_gauge = type.found && !type.delta;
	if (c.is_gauge)
		s = gauge_init(&c.gauge, v, c.picks, q, &c.budget, e);
	for (size_t i = 0; s == OK && i < v->source_count; i++)
		s = collect_source(&c, i, e);
	if (s == OK && type.found)
		s = add_samples(&c, &type, e);
	if (s != OK)
		return s;
	*out = c.out;
	c.out = (struct profile){ 0 };
	return OK;
}

enum status store_collect(struct store_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct profile *out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	enum status s = query_check(q, e);
	if (s != OK)
		return s;
	do
		s = collect(v, q, keep_labels, keep_count, out, e);
	while (view_heal(v, s, e));
	return s;
}
