/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values are summed by (node, group) in each source; a group is labels and a period. Nodes with a
 * value then become nodes of the answer's tree, and their cells are renumbered. All cells lie in
 * one array; those of the current source come after those of earlier sources.
 */
#include "store/read/cells.h"
#include "store/read/durations.h"
#include "store/read/gauge.h"
#include "store/read/groups.h"
#include "store/read/queries.h"
#include "store/read/scan.h"
#include "store/read/tree.h"

#include <math.h>
#include <stdlib.h>

/* Of one answer; a group's number has the period's in its low bits. */
#define PERIOD_BITS 12
#define PERIODS_MAX (1u << PERIOD_BITS)
#define GROUPS_MAX (1u << (32 - PERIOD_BITS))
#define GROUP_BYTES 48 /* memory of a group in a list, in the list's index, and in the answer */

struct summing {
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct pick *picks;
	struct groups groups;
	struct gauge gauge;
	struct found_type type;
	bool is_gauge;
	struct tree tree;
	struct cells cells;
	int64_t periods[PERIODS_MAX];
	uint32_t period_count;
	struct samples_cells out;
	uint64_t samples;
	int64_t first_ns, last_ns;
	/* of the source at hand */
	const double *weights;
	uint16_t *period_of; /* by series */
};

static void summing_deinit(struct summing *s)
{
	view_picks_free(s->v, s->picks);
	groups_deinit(&s->groups);
	gauge_deinit(&s->gauge);
	tree_deinit(&s->tree);
	cells_deinit(&s->cells);
	samples_cells_deinit(&s->out);
	free(s->period_of);
	view_release(s->v);
}

static int64_t weighted(int64_t value, double weight)
{
	double x = (double)value * weight;
	memcpy(&value, &x, sizeof(value));
	return value;
}

static enum status add_rows(void *ctx, const struct scan_rows *r, struct err *e)
{
	struct summing *s = ctx;
	for (size_t j = 0; j < r->n; j++) {
		size_t i = r->sel ? r->sel[j] : j;
		uint32_t series = r->series[i], group;
		enum status st = groups_find(
			&s->groups, series, s->groups.by_set ? r->set[i] : 0, &group, e);
		if (st == OK && group >= GROUPS_MAX)
			st = err_set(e, E_LIMIT, "more than %u combinations of labels", GROUPS_MAX);
		if (st == OK)
			st = cells_add(&s->cells, r->node[i],
				group << PERIOD_BITS | s->period_of[series],
				s->weights ? weighted(r->value[i], s->weights[series])
					   : r->value[i],
				e);
		if (st != OK)
			return st;
		s->samples += r->count ? (uint64_t)r->count[i] : 1;
		s->first_ns = MIN(s->first_ns, r->time_ns[i]);
		s->last_ns = MAX(s->last_ns, r->time_ns[i]);
	}
	return OK;
}

static enum status find_periods(
	struct summing *s, const struct source *src, const struct pick *pick, struct err *e)
{
	uint32_t n = src->tabs.series_count;
	free(s->period_of);
	s->period_of = calloc(MAX(n, 1u), sizeof(*s->period_of));
	if (!s->period_of)
		return err_set(e, E_NOMEM, "%u series", n);
	for (uint32_t i = 0; i < pick->series_count; i++) {
		uint32_t k = 0;
		if (!pick->series[i])
			continue;
		while (k < s->period_count && s->periods[k] != src->tabs.series[i].period)
			k++;
		if (k == PERIODS_MAX)
			return err_set(e, E_LIMIT, "samples of more than %u periods", PERIODS_MAX);
		if (k == s->period_count)
			s->periods[s->period_count++] = src->tabs.series[i].period;
		s->period_of[i] = (uint16_t)k;
	}
	return OK;
}

/* Adds the cells of a source; its nodes become nodes of the tree. */
static enum status fold(struct summing *s, const struct source *src, struct err *e)
{
	CLEANUP(free_cleanup) uint8_t *used = NULL;
	CLEANUP(free_cleanup) uint32_t *to = NULL;
	const struct tabs *t = &src->tabs;
	struct cells *c = &s->cells;
	cells_settle(c);
	enum status st = budget_array(&s->budget, t->node_count, sizeof(*used), &used, e);
	if (st == OK)
		st = budget_array(&s->budget, t->node_count, sizeof(*to), &to, e);
	if (st != OK)
		return st;
	size_t n = c->begin;
	for (size_t i = c->begin; i < c->len; i++) {
		if (c->v[i].value == 0)
			continue;
		used[c->v[i].node] = 1;
		c->v[n++] = c->v[i];
	}
	c->len = n;
	st = tree_add_used(&s->tree, t, used, to, e);
	if (st == E_CORRUPT && src->part)
		view_damaged(s->v, src->part);
	if (st != OK)
		return st;
	for (size_t i = c->begin; i < c->len; i++)
		c->v[i].node = to[c->v[i].node];
	cells_set_aside(c);
	budget_give(&s->budget, (uint64_t)t->node_count * (sizeof(*used) + sizeof(*to)));
	return OK;
}

static enum status sum_source(struct summing *s, size_t i, struct err *e)
{
	struct source *src = &s->v->sources[i];
	if (s->picks[i].wanted == 0)
		return OK;
	enum status st =
		source_load(s->v, src, PART_LOAD_STACKS | PART_LOAD_SYMBOLS, &s->budget, e);
	if (st == OK)
		st = groups_source(&s->groups, s->v, src, e);
	if (st == OK)
		st = find_periods(s, src, &s->picks[i], e);
	if (st != OK)
		return st;
	s->weights = s->is_gauge ? s->gauge.weights[i] : NULL;
	struct scan scan = { s->v, src, &s->picks[i], s->q,
		1u << ROW_NODE | 1u << ROW_VALUE | 1u << ROW_TIME | 1u << ROW_COUNT |
			groups_columns(&s->groups) };
	st = scan_run(&scan, add_rows, s, &s->budget, e);
	if (st == OK)
		st = fold(s, src, e);
	source_done(s->v, src);
	return st;
}

/* ---- the answer ---- */

/* The groups of the cells, each once. */
struct group_list {
	VEC(uint32_t) ids;
	struct map index;
};

static void group_list_deinit(struct group_list *l)
{
	VEC_FREE(&l->ids);
	map_deinit(&l->index);
}

static bool id_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct group_list *l = ctx;
	return l->ids.v[value] == *(const uint32_t *)key;
}

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static enum status list_groups(struct summing *s, struct group_list *l, struct err *e)
{
	for (size_t i = 0; i < s->cells.len; i++) {
		uint32_t id = s->cells.v[i].group;
		uint64_t h = hash_u64(id);
		if (map_find(&l->index, h, id_equal, l, &id) != MAP_NONE)
			continue;
		enum status st = budget_take(&s->budget, GROUP_BYTES, e);
		if (st != OK)
			return st;
		if (!VEC_PUSH(&l->ids, id) || !map_insert(&l->index, h, (uint32_t)l->ids.len - 1))
			return err_set(e, E_NOMEM, "%zu groups", l->ids.len);
	}
	if (l->ids.len)
		qsort(l->ids.v, l->ids.len, sizeof(*l->ids.v), compare_ids);
	return OK;
}

static uint32_t number_of(const struct group_list *l, uint32_t id)
{
	size_t lo = 0, hi = l->ids.len - 1;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (l->ids.v[mid] < id)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (uint32_t)lo;
}

/* Renumbers the groups that occur, in the same order. */
static enum status put_groups(struct summing *s, struct err *e)
{
	CLEANUP(group_list_deinit) struct group_list l = { 0 };
	struct samples_cells *out = &s->out;
	enum status st = list_groups(s, &l, e);
	if (st != OK)
		return st;
	for (size_t i = 0; i < l.ids.len && st == OK; i++) {
		struct samples_group g = { .period = s->periods[l.ids.v[i] % PERIODS_MAX] };
		st = groups_labels(
			&s->groups, l.ids.v[i] >> PERIOD_BITS, &out->tree.tables, &g.labels);
		if (st == OK && !VEC_PUSH(&out->groups, g))
			st = E_NOMEM;
	}
	for (size_t i = 0; i < s->cells.len; i++)
		s->cells.v[i].group = number_of(&l, s->cells.v[i].group);
	budget_give(&s->budget, l.ids.len * GROUP_BYTES);
	return st == OK ? OK : err_set(e, st, "the labels of %zu groups", out->groups.len);
}

/* Keep the cells that are not zero; averages are rounded. */
static void keep_values(struct cells *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->len; i++) {
		double x;
		memcpy(&x, &c->v[i].value, sizeof(x));
		c->v[n] = c->v[i];
		if (c->is_gauge)
			c->v[n].value = (int64_t)llround(x);
		n += c->v[n].value != 0;
	}
	c->len = n;
}

static enum status finish(struct summing *s, struct err *e)
{
	struct samples_cells *out = &s->out;
	struct samples_tree *t = &out->tree;
	cells_finish(&s->cells);
	keep_values(&s->cells);
	if (s->tree.nodes.len == 0 && !VEC_PUSH(&s->tree.nodes, (struct samples_node){ 0 }))
		return err_set(e, E_NOMEM, "a tree");
	t->tables = s->tree.tables;
	memcpy(&t->nodes, &s->tree.nodes, sizeof(t->nodes));
	s->tree.tables = (struct profile){ 0 };
	memset(&s->tree.nodes, 0, sizeof(s->tree.nodes));
	t->sample_count = s->samples;
	if (s->first_ns <= s->last_ns) {
		t->first_ns = s->first_ns;
		t->last_ns = s->last_ns;
	}
	enum status st = found_type_put(&s->type, t);
	if (st != OK)
		return err_set(e, st, "the type of a tree");
	st = put_groups(s, e);
	if (st != OK)
		return st;
	out->v.v = cells_steal(&s->cells, &out->v.len);
	out->v.cap = out->v.len;
	return OK;
}

static enum status sum_cells(struct store_view *v, const struct samples_query *q,
	const struct str *keep, size_t keep_count, struct samples_cells *out, struct err *e)
{
	CLEANUP(summing_deinit)
	struct summing s = { .v = v,
		.q = q,
		.budget = query_budget(v, q),
		.first_ns = INT64_MAX,
		.last_ns = INT64_MIN };
	enum status st = groups_init(&s.groups, keep, (uint32_t)keep_count, &s.budget, e);
	s.picks = view_picks_new(v);
	if (st == OK && !s.picks)
		st = err_set(e, E_NOMEM, "a view");
	if (st == OK)
		st = tree_init(&s.tree, false, &s.budget, e);
	if (st == OK)
		st = view_pick(v, q, NULL, &s.budget, s.picks, e);
	if (st == OK)
		st = picks_type(v, s.picks, false, &s.type, e);
	if (st != OK)
		return st;
	s.is_gauge = s.type.found && !s.type.delta;
	cells_init(&s.cells, s.is_gauge, &s.budget);
	if (s.is_gauge)
		st = gauge_init(&s.gauge, v, s.picks, q, &s.budget, e);
	for (size_t i = 0; st == OK && i < v->source_count; i++)
		st = sum_source(&s, i, e);
	if (st == OK && q->durations)
		st = durations_of_all(
			v, s.picks, q, s.samples, &s.budget, &s.out.tree.covered_ns, e);
	if (st == OK)
		st = finish(&s, e);
	if (st != OK)
		return st;
	*out = s.out;
	s.out = (struct samples_cells){ 0 };
	return OK;
}

enum status store_sum_cells(struct store_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct samples_cells *out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	enum status s = query_check(q, e);
	if (s != OK)
		return s;
	do
		s = sum_cells(v, q, keep_labels, keep_count, out, e);
	while (view_heal(v, s, e));
	return s;
}
