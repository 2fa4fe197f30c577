/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Types, label names and label values come from the lists that parts have of them if the selector
 * leaves no series out (index_kinds.h), else from the tables of series and of sets of sample
 * labels; no sample is read. A part's index says which sets a series has. Without an index (a
 * memtable, an old part), the rows' series and sets are read, if the selector leaves series out.
 */
#include "store/read/index_kinds.h"
#include "store/read/queries.h"
#include "store/read/scan.h"

#include <stdlib.h>

#define TEXTS_BYTES_MAX ((size_t)256 << 20)

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Copies of the texts. */
static enum status copy_texts(const struct kinds_texts *t, struct arena *a, struct str **out,
	size_t *out_count, struct err *e)
{
	size_t n = t->len;
	struct str *v = ARENA_ARRAY(a, struct str, MAX(n, (size_t)1));
	for (size_t i = 0; v && i < n; i++) {
		v[i].len = t->v[i].len;
		v[i].p = arena_copy(a, t->v[i].p, v[i].len);
		if (!v[i].p)
			v = NULL;
	}
	if (!v)
		return err_set(e, arena_status(a), "%zu texts", n);
	*out = v;
	*out_count = n;
	return OK;
}

/* ---- types ---- */

struct type_list {
	VEC(struct samples_type) v;
};

static int by_type(const void *a, const void *b)
{
	const struct samples_type *x = a, *y = b;
	int c = str_cmp(x->name, y->name);
	c = c ? c : str_cmp(x->sample_type, y->sample_type);
	c = c ? c : str_cmp(x->sample_unit, y->sample_unit);
	c = c ? c : str_cmp(x->period_type, y->period_type);
	c = c ? c : str_cmp(x->period_unit, y->period_unit);
	return c ? c : (int)x->delta - (int)y->delta;
}

static void add_times(struct samples_type *t, const struct tab_series *s)
{
	t->first_ns = MIN(t->first_ns, tab_series_first_ns(s));
	t->last_ns = MAX(t->last_ns, tab_series_last_ns(s));
}

/* *`at`: the type's place in the list. */
static enum status add_type(struct type_list *list, const struct tabs *t, const uint32_t *type,
	bool delta, int64_t first_ns, int64_t last_ns, size_t *at)
{
	struct samples_type x = {
		.name = t->label_strings[type[0]],
		.sample_type = t->label_strings[type[1]],
		.sample_unit = t->label_strings[type[2]],
		.period_type = t->label_strings[type[3]],
		.period_unit = t->label_strings[type[4]],
		.delta = delta,
		.first_ns = first_ns,
		.last_ns = last_ns,
	};
	for (size_t i = 0; i < list->v.len; i++) {
		struct samples_type *y = &list->v.v[i];
		if (by_type(y, &x) != 0)
			continue;
		y->first_ns = MIN(y->first_ns, first_ns);
		y->last_ns = MAX(y->last_ns, last_ns);
		*at = i;
		return OK;
	}
	*at = list->v.len;
	return VEC_PUSH(&list->v, x) ? OK : E_NOMEM;
}

static enum status copy_types(struct type_list *list, struct arena *a, struct samples_type **out,
	size_t *out_count, struct err *e)
{
	size_t n = list->v.len;
	if (n)
		qsort(list->v.v, n, sizeof(*list->v.v), by_type);
	struct samples_type *v = ARENA_ARRAY(a, struct samples_type, MAX(n, (size_t)1));
	for (size_t i = 0; v && i < n; i++) {
		v[i] = list->v.v[i];
		struct str *texts[] = { &v[i].name, &v[i].sample_type, &v[i].sample_unit,
			&v[i].period_type, &v[i].period_unit };
		for (size_t k = 0; v && k < ARRAY_COUNT(texts); k++) {
			texts[k]->p = arena_copy(a, texts[k]->p, texts[k]->len);
			if (!texts[k]->p)
				v = NULL;
		}
	}
	if (!v)
		return err_set(e, arena_status(a), "%zu profile types", n);
	*out = v;
	*out_count = n;
	return OK;
}

/* Series of one type mostly follow each other. */
static enum status source_types(struct type_list *list, const struct tabs *t, const struct pick *p)
{
	const struct tab_series *last = NULL;
	size_t at = 0;
	for (uint32_t k = 0; k < p->series_count; k++) {
		const struct tab_series *x = &t->series[k];
		if (!p->series[k])
			continue;
		if (last && last->delta == x->delta &&
			memcmp(last->type, x->type, sizeof(x->type)) == 0) {
			add_times(&list->v.v[at], x);
			continue;
		}
		enum status s = add_type(list, t, x->type, x->delta != 0, tab_series_first_ns(x),
			tab_series_last_ns(x), &at);
		if (s != OK)
			return s;
		last = x;
	}
	return OK;
}

static enum status add_kinds(
	struct type_list *list, const struct kinds_query *k, const struct tabs *t)
{
	enum status s = OK;
	size_t ignored;
	for (uint32_t i = 0; i < t->kind_count && s == OK; i++) {
		const struct tab_kind *x = &t->kinds[i];
		if (kinds_wanted(k, t, x))
			s = add_type(
				list, t, x->type, x->delta != 0, x->first_ns, x->last_ns, &ignored);
	}
	return s;
}

static enum status types(struct store_view *v, int64_t from_ns, int64_t to_ns, struct arena *a,
	struct samples_type **out, size_t *out_count, struct err *e)
{
	struct samples_query q = { .from_ns = from_ns, .to_ns = to_ns };
	struct budget b = query_budget(v, &q);
	struct type_list list = { 0 };
	struct kinds_query k = { .view = v, .query = &q, .types = true, .budget = &b };
	struct kinds_texts none = { 0 };
	CLEANUP(free_cleanup) uint8_t *done = NULL;
	struct pick *picks = view_picks_new(v);
	enum status s = picks ? OK : err_set(e, E_NOMEM, "types");
	if (s == OK)
		s = budget_array(&b, v->source_count, 1, &done, e);
	if (s == OK)
		s = kinds_ask(&k, done, &none, e);
	if (s == OK)
		s = view_pick(v, &q, done, &b, picks, e);
	for (size_t i = 0; s == OK && i < v->source_count; i++) {
		struct source *x = &v->sources[i];
		if (!done[i] && picks[i].wanted)
			s = source_load(v, x, PART_LOAD_LABELS, &b, e);
		if (!done[i] && s == OK)
			s = source_types(&list, &x->tabs, &picks[i]);
		else if (x->part && x->pinned & PART_LOAD_KINDS)
			s = add_kinds(&list, &k, &x->tabs);
	}
	kinds_texts_deinit(&none, &b);
	if (s == OK)
		s = copy_types(&list, a, out, out_count, e);
	VEC_FREE(&list.v);
	view_picks_free(v, picks);
	view_release(v);
	return s;
}

enum status store_types(struct store_view *v, int64_t from_ns, int64_t to_ns, struct arena *a,
	struct samples_type **out, size_t *out_count, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	enum status s;
	do
		s = types(v, from_ns, to_ns, a, out, out_count, e);
	while (view_heal(v, s, e));
	return s;
}

/* ---- labels ---- */

static enum status mark_sets(void *ctx, const struct scan_rows *r, struct err *e)
{
	(void)e;
	uint8_t *sets = ctx;
	for (size_t j = 0; j < r->n; j++)
		sets[r->set[r->sel ? r->sel[j] : j]] = 1;
	return OK;
}

static bool tenant_set(const struct store_view *v, const struct tabs *t, size_t set)
{
	return set != 0 && str_eq(t->sample_strings[t->sets[set * (1 + t->name_count)]], v->tenant);
}

/* Marks the sets of the wanted series in `out`, by set. For a part they are those of its whole
 * time. */
static enum status find_sets(struct store_view *v, struct source *s, const struct pick *p,
	const struct samples_query *q, struct budget *b, uint8_t *out, struct err *e)
{
	struct tabs *t = &s->tabs;
	bool all = p->wanted == p->series_count;
	if (!all && t->set_first) {
		for (uint32_t i = 0; i < p->series_count; i++)
			for (uint32_t k = t->set_first[i]; p->series[i] && k < t->set_first[i + 1];
				k++)
				out[t->series_sets[k]] = 1;
	} else if (!all) {
		struct samples_query any_time = *q;
		any_time.from_ns = INT64_MIN;
		any_time.to_ns = INT64_MAX;
		struct pick rows = *p;
		rows.sets = NULL;
		struct scan scan = { v, s, &rows, s->part ? &any_time : q,
			1u << ROW_SET | 1u << ROW_SERIES };
		enum status st = scan_run(&scan, mark_sets, out, b, e);
		if (st != OK)
			return st;
	}
	for (uint32_t i = 0; i < t->set_count; i++)
		out[i] = (all || out[i]) && tenant_set(v, t, i) && (!p->sets || p->sets[i]);
	return OK;
}

static enum status mark_series(void *ctx, const struct scan_rows *r, struct err *e)
{
	(void)e;
	uint8_t *series = ctx;
	for (size_t j = 0; j < r->n; j++)
		series[r->series[r->sel ? r->sel[j] : j]] = 1;
	return OK;
}

/* If the selector names a sample label: keeps only series that have a wanted set. */
static enum status leave_by_sets(struct store_view *v, struct source *s, struct pick *p,
	const struct samples_query *q, struct budget *b, struct err *e)
{
	struct tabs *t = &s->tabs;
	CLEANUP(free_cleanup) uint8_t *series = NULL;
	enum status st = OK;
	if (s->part)
		st = source_load(v, s, PART_LOAD_SETS | PART_LOAD_SYMBOLS | PART_LOAD_INDEX, b, e);
	if (st == OK)
		st = budget_array(b, p->series_count, 1, &series, e);
	if (st != OK)
		return st;
	if (s->part && t->set_first) {
		for (uint32_t i = 0; i < p->series_count; i++)
			for (uint32_t k = t->set_first[i]; k < t->set_first[i + 1] && !series[i];
				k++)
				series[i] = p->sets[t->series_sets[k]];
	} else {
		struct scan scan = { v, s, p, q, 1u << ROW_SET | 1u << ROW_SERIES };
		st = scan_run(&scan, mark_series, series, b, e);
	}
	p->wanted = 0;
	for (uint32_t i = 0; i < p->series_count && st == OK; i++) {
		p->series[i] &= series[i];
		p->wanted += p->series[i];
	}
	budget_give(b, p->series_count);
	return st;
}

/* The query, and what was found so far. */
struct asking {
	const struct samples_query *q;
	struct str name;  /* "": names */
	uint32_t name_id; /* in the dictionary */
	uint8_t *seen;    /* by number in it */
	struct budget budget;
	struct strtab found;
	struct kinds_texts listed;
};

/* Names, or values of a name, of the series of one source: `seen` by text of the source, where it
 * has no numbers. */
static enum status add_series_texts(
	struct asking *a, const struct source *s, const struct pick *p, uint8_t *seen)
{
	const struct tabs *t = &s->tabs;
	const uint32_t *ids = s->ids ? s->ids->v : NULL;
	for (uint32_t i = 0; i < p->series_count; i++) {
		const struct tab_series *x = &t->series[i];
		for (uint32_t k = 0; p->series[i] && k < x->label_count; k++) {
			const struct profile_label *l = &t->labels[x->label_first + k];
			uint32_t text = a->name.len ? l->value : l->name, ignored;
			uint8_t *known = ids ? &a->seen[ids[text]] : &seen[text];
			if (*known || (a->name.len &&
					      (ids ? ids[l->name] != a->name_id
						   : !str_eq(t->label_strings[l->name], a->name))))
				continue;
			*known = 1;
			enum status s2 = strtab_intern(&a->found, t->label_strings[text], &ignored);
			if (s2 != OK)
				return s2;
		}
	}
	return OK;
}

static enum status add_set_names(const struct source *s, const uint8_t *sets, struct strtab *out)
{
	const struct tabs *t = &s->tabs;
	size_t width = 1 + t->name_count;
	bool found[TABLES_NAMES_MAX] = { 0 };
	for (size_t i = 0; i < t->set_count; i++) {
		if (!sets[i])
			continue;
		for (size_t k = 1; k < width; k++)
			found[k - 1] |= t->sets[i * width + k] != 0;
	}
	uint32_t ignored;
	for (size_t k = 0; k < t->name_count; k++) {
		enum status st = found[k] ? strtab_intern(out, t->names[k], &ignored) : OK;
		if (st != OK)
			return st;
	}
	return OK;
}

static enum status add_set_values(
	const struct source *s, const uint8_t *sets, size_t at, uint8_t *seen, struct strtab *out)
{
	const struct tabs *t = &s->tabs;
	size_t width = 1 + t->name_count;
	for (size_t i = 0; i < t->set_count; i++) {
		uint32_t id = t->sets[i * width + 1 + at], ignored;
		if (seen[id] || !sets[i])
			continue;
		seen[id] = 1;
		enum status st = strtab_intern(out, t->sample_strings[id], &ignored);
		if (st != OK)
			return st;
	}
	return OK;
}

static enum status source_texts(
	struct asking *a, struct store_view *v, struct source *s, struct pick *p, struct err *e)
{
	enum status loaded = p->wanted ? source_load(v, s, PART_LOAD_LABELS, &a->budget, e) : OK;
	if (loaded != OK)
		return loaded;
	if (p->wanted && p->sets) {
		enum status left = leave_by_sets(v, s, p, a->q, &a->budget, e);
		if (left != OK)
			return left;
	}
	if (p->wanted == 0)
		return OK;
	bool names = a->name.len == 0;
	int at = names ? -1 : tabs_name_find(&s->tabs, a->name);
	bool sets_too = s->tabs.name_count && (names || at >= 0);
	bool index = s->part && p->wanted != p->series_count;
	struct budget *b = &a->budget;
	enum status st = OK;
	if (sets_too)
		st = source_load(v, s,
			PART_LOAD_SETS | (index ? PART_LOAD_SYMBOLS | PART_LOAD_INDEX : 0), b, e);
	if (st != OK)
		return st;
	uint64_t n = MAX(s->tabs.label_string_count, sets_too ? s->tabs.sample_string_count : 0u);
	uint64_t set_count = sets_too ? s->tabs.set_count : 0;
	CLEANUP(free_cleanup) uint8_t *seen = NULL;
	CLEANUP(free_cleanup) uint8_t *sets = NULL;
	st = budget_array(b, n, 1, &seen, e);
	if (st == OK)
		st = budget_array(b, set_count, 1, &sets, e);
	if (st == OK && set_count)
		st = find_sets(v, s, p, a->q, b, sets, e);
	if (st != OK)
		return st;
	st = add_series_texts(a, s, p, seen);
	memset(seen, 0, n);
	if (st == OK && at >= 0)
		st = add_set_values(s, sets, (size_t)at, seen, &a->found);
	if (st == OK && names && sets_too)
		st = add_set_names(s, sets, &a->found);
	budget_give(b, n + set_count);
	source_done(v, s);
	return st == OK ? OK : err_set(e, st, "too many label texts");
}

static void asking_cleanup(struct asking *a)
{
	strtab_deinit(&a->found);
	kinds_texts_deinit(&a->listed, &a->budget);
	free(a->seen);
}

/* Adds the texts that were found one by one to the sorted lists. */
static enum status add_found(struct asking *a, struct err *e)
{
	size_t n = a->found.len - 1;
	if (n == 0)
		return OK;
	struct str *v;
	enum status s = budget_array(&a->budget, n, sizeof(*v), &v, e);
	if (s != OK)
		return s;
	memcpy(v, a->found.v + 1, n * sizeof(*v));
	qsort(v, n, sizeof(*v), by_text);
	s = kinds_texts_add(&a->listed, v, n, &a->budget, e);
	budget_give(&a->budget, n * sizeof(*v));
	free(v);
	return s;
}

static enum status texts(struct store_view *v, const struct samples_query *q, struct str name,
	struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	CLEANUP(asking_cleanup)
	struct asking x = { .q = q, .name = name, .budget = query_budget(v, q) };
	enum status s = strtab_init(&x.found, TEXTS_BYTES_MAX);
	struct pick *picks = view_picks_new(v);
	CLEANUP(free_cleanup) uint8_t *done = NULL;
	if (s == OK && !picks)
		s = err_set(e, E_NOMEM, "labels");
	if (s == OK)
		s = budget_array(&x.budget, v->source_count, 1, &done, e);
	if (s == OK && (!q->selector || q->selector->matcher_count == 0)) {
		struct kinds_query k = { .view = v, .query = q, .name = name, .budget = &x.budget };
		s = kinds_ask(&k, done, &x.listed, e);
	}
	if (s == OK)
		s = view_pick(v, q, done, &x.budget, picks, e);
	if (s == OK && v->dictionary) {
		x.name_id = dictionary_find(v->dictionary, name);
		s = budget_array(&x.budget, dictionary_count(v->dictionary), 1, &x.seen, e);
	}
	for (size_t i = 0; s == OK && i < v->source_count; i++) {
		s = source_texts(&x, v, &v->sources[i], &picks[i], e);
		if (s == OK)
			s = samples_stopped(q, e);
	}
	if (s == OK)
		s = add_found(&x, e);
	if (s == OK)
		s = copy_texts(&x.listed, a, out, out_count, e);
	view_picks_free(v, picks);
	view_release(v);
	return s;
}

static enum status texts_healed(struct store_view *v, const struct samples_query *q,
	struct str name, struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	enum status s = query_check(q, e);
	if (s != OK)
		return s;
	do
		s = texts(v, q, name, a, out, out_count, e);
	while (view_heal(v, s, e));
	return s;
}

enum status store_label_names(struct store_view *v, const struct samples_query *q, struct arena *a,
	struct str **out, size_t *out_count, struct err *e)
{
	return texts_healed(v, q, STR(""), a, out, out_count, e);
}

enum status store_label_values(struct store_view *v, const struct samples_query *q, struct str name,
	struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	if (name.len == 0)
		return err_set(e, E_INVALID, "a label's name is missing");
	return texts_healed(v, q, name, a, out, out_count, e);
}
