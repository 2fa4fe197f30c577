/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds which series had some locations in their stacks. The caller chooses among the locations
 * that the wanted series had in any source, once they have names, and sees no others. A part's
 * index says which series have a location; without an index the nodes of the rows are read. Times
 * are those of the series in the source.
 */

#include "store/read/gauge.h"
#include "store/read/queries.h"
#include "store/read/remap.h"
#include "store/read/scan.h"
#include <stdlib.h>

/* No wanted series has it. */
#define UNSEEN UINT32_MAX

struct found {
	uint32_t series; /* common number */
	size_t source;
	uint32_t of; /* series of the source */
	int64_t first_ns, last_ns;
};

struct searching {
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct pick *picks;
	struct common_series common;
	struct profile tables;
	uint32_t **locations; /* by source: locations of `tables`, or UNSEEN */
	uint8_t *chosen;      /* by location of `tables` */
	VEC(struct found) found;
};

static void searching_deinit(struct searching *s)
{
	view_picks_free(s->v, s->picks);
	common_series_deinit(&s->common);
	profile_deinit(&s->tables);
	for (size_t i = 0; s->locations && i < s->v->source_count; i++)
		free(s->locations[i]);
	free(s->locations);
	free(s->chosen);
	VEC_FREE(&s->found);
	view_release(s->v);
}

static enum status mark_nodes(void *ctx, const struct scan_rows *r, struct err *e)
{
	(void)e;
	uint8_t *nodes = ctx;
	for (size_t j = 0; j < r->n; j++)
		nodes[r->node[r->sel ? r->sel[j] : j]] = 1;
	return OK;
}

/* Marks the locations of all wanted rows in `here`, by location. */
static enum status scan_locations(struct searching *s, size_t i, uint8_t *here, struct err *e)
{
	struct source *src = &s->v->sources[i];
	CLEANUP(free_cleanup) uint8_t *nodes = NULL;
	enum status st = source_load(s->v, src, PART_LOAD_STACKS, &s->budget, e);
	const struct tabs *t = &src->tabs;
	if (st == OK)
		st = budget_array(&s->budget, t->node_count, 1, &nodes, e);
	struct scan scan = { s->v, src, &s->picks[i], s->q, 1u << ROW_NODE };
	if (st == OK)
		st = scan_run(&scan, mark_nodes, nodes, &s->budget, e);
	for (uint32_t n = st == OK ? t->node_count : 0; n-- > 1;) {
		if (!nodes[n])
			continue;
		nodes[t->parent[n]] = 1;
		if (t->node_location[n] < t->location_count)
			here[t->node_location[n]] = 1;
	}
	if (st == OK)
		budget_give(&s->budget, t->node_count);
	return st;
}

/* Sets of sample labels are of rows, not of series: the index does not know them. */
static enum status load_index(struct searching *s, size_t i, bool *out_has, struct err *e)
{
	struct source *src = &s->v->sources[i];
	*out_has = false;
	if (!src->part || s->picks[i].sets)
		return OK;
	enum status st = source_load(
		s->v, src, PART_LOAD_SETS | PART_LOAD_SYMBOLS | PART_LOAD_INDEX, &s->budget, e);
	*out_has = st == OK && src->tabs.location_first;
	return st;
}

static enum status wanted_locations(struct searching *s, size_t i, uint8_t *here, struct err *e)
{
	bool index;
	enum status st = load_index(s, i, &index, e);
	if (st != OK)
		return st;
	if (!index)
		return scan_locations(s, i, here, e);
	const struct tabs *t = &s->v->sources[i].tabs;
	const uint8_t *wanted = s->picks[i].series;
	for (uint32_t l = 0; l < t->location_count; l++)
		for (uint32_t k = t->location_first[l]; k < t->location_first[l + 1] && !here[l];
			k++)
			here[l] = wanted[t->location_series[k]];
	return OK;
}

static enum status add_locations(struct searching *s, size_t i, struct err *e)
{
	struct source *src = &s->v->sources[i];
	CLEANUP(remap_deinit) struct remap r = { 0 };
	CLEANUP(free_cleanup) uint8_t *here = NULL;
	if (!s->picks[i].wanted)
		return OK;
	enum status st = source_load(s->v, src, PART_LOAD_SYMBOLS, &s->budget, e);
	if (st == OK)
		st = budget_array(&s->budget, src->tabs.location_count, 1, &here, e);
	if (st == OK)
		st = wanted_locations(s, i, here, e);
	if (st == OK)
		st = remap_init(&r, &src->tabs, &s->tables, &s->budget, e);
	for (uint32_t k = 0; st == OK && k < src->tabs.location_count; k++) {
		uint32_t ignored;
		if (!here[k])
			continue;
		st = remap_location(&r, k, &ignored);
		if (st == E_CORRUPT)
			err_set(e, st, "location %u, which is not there", k);
		else
			budget_fail(&s->budget, st, e);
	}
	if (st == OK) {
		s->locations[i] = STEAL_PTR(r.memory);
		budget_give(&s->budget, src->tabs.location_count);
	}
	return st;
}

static bool is_chosen(const struct searching *s, size_t source, uint32_t location)
{
	uint32_t l = s->locations[source][location];
	return l != UNSEEN && s->chosen[l];
}

/* ---- series of a source ---- */

struct marking {
	const uint8_t *nodes; /* those with a chosen location on their way to the root */
	uint8_t *series;
};

static enum status mark_rows(void *ctx, const struct scan_rows *r, struct err *e)
{
	(void)e;
	struct marking *m = ctx;
	for (size_t j = 0; j < r->n; j++) {
		size_t i = r->sel ? r->sel[j] : j;
		m->series[r->series[i]] |= m->nodes[r->node[i]];
	}
	return OK;
}

static enum status scan_nodes(struct searching *s, size_t i, uint8_t *series, struct err *e)
{
	struct source *src = &s->v->sources[i];
	CLEANUP(free_cleanup) uint8_t *nodes = NULL;
	enum status st = source_load(s->v, src, PART_LOAD_STACKS, &s->budget, e);
	const struct tabs *t = &src->tabs;
	if (st == OK)
		st = budget_array(&s->budget, t->node_count, 1, &nodes, e);
	for (uint32_t n = 1; st == OK && n < t->node_count; n++) {
		uint32_t location = t->node_location[n];
		nodes[n] = nodes[t->parent[n]] ||
			   (location < t->location_count && is_chosen(s, i, location));
	}
	struct marking m = { nodes, series };
	struct scan scan = { s->v, src, &s->picks[i], s->q, 1u << ROW_NODE | 1u << ROW_SERIES };
	if (st == OK)
		st = scan_run(&scan, mark_rows, &m, &s->budget, e);
	if (st == OK)
		budget_give(&s->budget, t->node_count);
	return st;
}

static enum status find_series(struct searching *s, size_t i, struct err *e)
{
	struct source *src = &s->v->sources[i];
	const struct pick *p = &s->picks[i];
	CLEANUP(free_cleanup) uint8_t *series = NULL;
	bool index;
	enum status st = budget_array(&s->budget, p->series_count, 1, &series, e);
	if (st == OK)
		st = load_index(s, i, &index, e);
	if (st != OK)
		return st;
	const struct tabs *t = &src->tabs;
	if (index) {
		for (uint32_t l = 0; l < t->location_count; l++)
			for (uint32_t k = t->location_first[l];
				is_chosen(s, i, l) && k < t->location_first[l + 1]; k++)
				series[t->location_series[k]] = 1;
	} else {
		st = scan_nodes(s, i, series, e);
	}
	for (uint32_t k = 0; st == OK && k < p->series_count; k++) {
		if (!series[k] || !p->series[k])
			continue;
		const struct tab_series *x = &t->series[k];
		struct found f = { s->common.ids[i][k], i, k,
			MAX(tab_series_first_ns(x), s->q->from_ns),
			MIN(tab_series_last_ns(x), s->q->to_ns - 1) };
		if (!VEC_PUSH(&s->found, f))
			st = err_set(e, E_NOMEM, "series of a function");
	}
	budget_give(&s->budget, p->series_count);
	return st;
}

/* ---- the answer ---- */

static int by_series_time(const void *a, const void *b)
{
	const struct found *x = a, *y = b;
	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return x->first_ns < y->first_ns ? -1 : x->first_ns > y->first_ns;
}

static bool copy(struct arena *a, struct str s, struct str *out)
{
	char *p = arena_copy(a, s.p, s.len);
	*out = str_make(p, s.len);
	return p != NULL;
}

static bool describe(
	const struct tabs *t, const struct tab_series *x, struct arena *a, struct samples_hit *out)
{
	struct samples_type *type = &out->type;
	struct str *texts[] = { &type->name, &type->sample_type, &type->sample_unit,
		&type->period_type, &type->period_unit };
	bool good = true;
	for (size_t k = 0; k < ARRAY_COUNT(texts) && good; k++)
		good = copy(a, t->label_strings[x->type[k]], texts[k]);
	type->delta = x->delta != 0;
	out->names = ARENA_ARRAY(a, struct str, MAX(x->label_count, 1u));
	out->values = ARENA_ARRAY(a, struct str, MAX(x->label_count, 1u));
	good = good && out->names && out->values;
	for (uint32_t k = 0; k < x->label_count && good; k++) {
		const struct profile_label *l = &t->labels[x->label_first + k];
		good = copy(a, t->label_strings[l->name], &out->names[k]) &&
		       copy(a, t->label_strings[l->value], &out->values[k]);
	}
	out->label_count = x->label_count;
	return good;
}

/* Spans that touch or overlap become one. */
static bool make_spans(const struct found *f, size_t n, struct arena *a, struct samples_hit *out)
{
	out->spans = ARENA_ARRAY(a, struct samples_span, n);
	out->span_count = 0;
	for (size_t i = 0; i < n && out->spans; i++) {
		struct samples_span *last =
			out->span_count ? &out->spans[out->span_count - 1] : NULL;
		if (last && f[i].first_ns <= last->last_ns)
			last->last_ns = MAX(last->last_ns, f[i].last_ns);
		else
			out->spans[out->span_count++] =
				(struct samples_span){ f[i].first_ns, f[i].last_ns };
	}
	if (!out->spans)
		return false;
	out->type.first_ns = out->spans[0].first_ns;
	out->type.last_ns = out->spans[out->span_count - 1].last_ns;
	return true;
}

static enum status make_hits(struct searching *s, struct arena *a, struct samples_hit **out,
	size_t *out_count, struct err *e)
{
	struct found *f = s->found.v;
	size_t n = s->found.len, count = 0;
	if (n)
		qsort(f, n, sizeof(*f), by_series_time);
	for (size_t i = 0; i < n; i++)
		count += i == 0 || f[i].series != f[i - 1].series;
	struct samples_hit *hits = ARENA_ARRAY(a, struct samples_hit, MAX(count, (size_t)1));
	bool good = hits != NULL;
	count = 0;
	for (size_t i = 0, j; i < n && good; i = j) {
		const struct tabs *t = &s->v->sources[f[i].source].tabs;
		for (j = i + 1; j < n && f[j].series == f[i].series;)
			j++;
		good = describe(t, &t->series[f[i].of], a, &hits[count]) &&
		       make_spans(f + i, j - i, a, &hits[count]);
		count++;
	}
	if (!good)
		return err_set(e, arena_status(a), "%zu series", count);
	*out = hits;
	*out_count = count;
	return OK;
}

static enum status search(struct store_view *v, const struct samples_query *q,
	samples_choose_fn *choose, void *ctx, struct arena *a, struct samples_hit **out,
	size_t *out_count, struct err *e)
{
	CLEANUP(searching_deinit)
	struct searching s = { .v = v, .q = q, .budget = query_budget(v, q) };
	s.picks = view_picks_new(v);
	enum status st = s.picks ? profile_init(&s.tables, s.budget.limit) : E_NOMEM;
	if (st != OK)
		return budget_fail(&s.budget, st, e);
	st = view_pick(v, q, NULL, &s.budget, s.picks, e);
	if (st == OK)
		st = common_series_init(&s.common, v, s.picks, &s.budget, e);
	if (st == OK)
		st = budget_array(
			&s.budget, v->source_count, sizeof(*s.locations), &s.locations, e);
	for (size_t i = 0; st == OK && i < v->source_count; i++) {
		st = add_locations(&s, i, e);
		if (st == OK)
			st = samples_stopped(q, e);
	}
	size_t locations = s.tables.locations.len;
	if (st == OK)
		st = budget_array(&s.budget, locations, 1, &s.chosen, e);
	if (st == OK)
		st = choose(ctx, &s.tables, s.chosen, e);
	assert(st != OK || s.tables.locations.len == locations);
	for (size_t i = 0; st == OK && i < v->source_count; i++) {
		if (s.picks[i].wanted)
			st = find_series(&s, i, e);
		if (st == OK)
			st = samples_stopped(q, e);
	}
	return st == OK ? make_hits(&s, a, out, out_count, e) : st;
}

enum status store_where(struct store_view *v, const struct samples_query *q,
	samples_choose_fn *choose, void *ctx, struct arena *a, struct samples_hit **out,
	size_t *out_count, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	enum status s = query_check(q, e);
	if (s != OK)
		return s;
	do
		s = search(v, q, choose, ctx, a, out, out_count, e);
	while (view_heal(v, s, e));
	return s;
}
