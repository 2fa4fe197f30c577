/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A matcher on a sample label decides about sets, any other about series. Regular expressions are
 * matched once for each distinct value: `verdicts` remembers by string, or, for all parts together,
 * by its number in the view's dictionary. Loading and picking are shared out to the query's
 * threads.
 */
#include "store/read/pick.h"

#include "base/lock.h"
#include "os/os.h"

#include <stdlib.h>

enum verdict { UNKNOWN, YES, NO };

void pick_deinit(struct pick *p)
{
	free(p->series);
	free(p->sets);
	free(p->type_memory);
	*p = (struct pick){ 0 };
}

struct pick *view_picks_new(const struct store_view *v)
{
	return calloc(MAX(v->source_count, (size_t)1), sizeof(struct pick));
}

void view_picks_free(const struct store_view *v, struct pick *picks)
{
	for (size_t i = 0; picks && i < v->source_count; i++)
		pick_deinit(&picks[i]);
	free(picks);
}

static bool type_matches(
	const struct selector *sel, const struct tabs *t, const struct tab_series *s)
{
	if (!sel->has_type)
		return true;
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		if (!str_eq(t->label_strings[s->type[k]], sel->type[k]))
			return false;
	return sel->delta == (s->delta != 0);
}

/* Picks series by tenant, type and time. */
static void pick_plain(const struct store_view *v, const struct source *s,
	const struct samples_query *q, struct pick *p)
{
	const struct tabs *t = &s->tabs;
	for (uint32_t i = 0; i < t->series_count; i++) {
		const struct tab_series *x = &t->series[i];
		p->series[i] = tab_series_rows(x) != 0 && tab_series_first_ns(x) < q->to_ns &&
			       tab_series_last_ns(x) >= q->from_ns &&
			       str_eq(t->label_strings[x->tenant], v->tenant) &&
			       (!q->selector || type_matches(q->selector, t, x));
	}
}

static bool judge(const struct selector_matcher *m, uint8_t *verdicts, uint32_t id, struct str text)
{
	if (verdicts[id] == UNKNOWN)
		verdicts[id] = selector_matches(m, text) ? YES : NO;
	return verdicts[id] == YES;
}

static enum status pick_by_series(const struct source *s, const struct selector_matcher *m,
	struct budget *b, struct pick *p, struct err *e)
{
	const struct tabs *t = &s->tabs;
	CLEANUP(free_cleanup) uint8_t *verdicts = NULL;
	enum status st = budget_array(b, t->label_string_count, 1, &verdicts, e);
	if (st != OK)
		return st;
	for (uint32_t i = 0; i < t->series_count; i++) {
		if (!p->series[i])
			continue;
		const struct tab_series *x = &t->series[i];
		uint32_t id = 0;
		for (uint32_t k = 0; k < x->label_count && !id; k++) {
			const struct profile_label *l = &t->labels[x->label_first + k];
			if (str_eq(t->label_strings[l->name], m->name))
				id = l->value;
		}
		p->series[i] = judge(m, verdicts, id, t->label_strings[id]);
	}
	budget_give(b, t->label_string_count);
	return OK;
}

static enum status pick_by_set(const struct source *s, const struct selector_matcher *m, int at,
	struct budget *b, struct pick *p, struct err *e)
{
	const struct tabs *t = &s->tabs;
	CLEANUP(free_cleanup) uint8_t *verdicts = NULL;
	enum status st = budget_array(b, t->sample_string_count, 1, &verdicts, e);
	if (st == OK && !p->sets) {
		st = budget_array(b, t->set_count, 1, &p->sets, e);
		if (st == OK)
			memset(p->sets, 1, t->set_count);
	}
	if (st != OK)
		return st;
	size_t width = 1 + t->name_count;
	for (uint32_t i = 0; i < t->set_count; i++) {
		uint32_t id = t->sets[i * width + 1 + (size_t)at];
		p->sets[i] = p->sets[i] && judge(m, verdicts, id, t->sample_strings[id]);
	}
	budget_give(b, t->sample_string_count);
	return OK;
}

enum status source_pick(struct store_view *v, struct source *s, const struct samples_query *q,
	struct budget *b, struct pick *out, struct err *e)
{
	out->wanted = 0;
	if (s->first_ns >= q->to_ns || s->last_ns < q->from_ns)
		return OK;
	enum status st = source_load(v, s, PART_LOAD_LABELS, b, e);
	if (st == OK)
		st = budget_array(b, s->tabs.series_count, 1, &out->series, e);
	if (st != OK)
		return st;
	out->series_count = s->tabs.series_count;
	pick_plain(v, s, q, out);
	for (uint32_t i = 0; q->selector && i < q->selector->matcher_count && st == OK; i++) {
		const struct selector_matcher *m = &q->selector->matchers[i];
		int at = tabs_name_find(&s->tabs, m->name);
		if (at >= 0)
			st = source_load(v, s, PART_LOAD_SETS, b, e);
		if (st == OK && at >= 0)
			st = pick_by_set(s, m, at, b, out, e);
		else if (st == OK)
			st = pick_by_series(s, m, b, out, e);
	}
	for (uint32_t i = 0; i < out->series_count; i++)
		out->wanted += out->series[i];
	return st;
}

/* ---- all sources ---- */

struct picking {
	struct store_view *v;
	const struct samples_query *q;
	struct budget *budget;
	struct pick *picks;
	const uint8_t *skip;
	bool loading; /* true: threads load; false: they pick */
	atomic_size_t next;
	atomic_bool stop;
	struct lock lock;
	enum status status; /* with the lock held: the first failure */
	struct err err;
	/* in the dictionary */
	uint32_t tenant;
	uint32_t type[TABLES_TYPE_PARTS];
	uint32_t names[SELECTOR_MATCHERS_MAX];
	uint8_t *verdicts[SELECTOR_MATCHERS_MAX];
	uint32_t id_count;
};

static bool type_by_ids(const struct picking *p, const uint32_t *ids, const struct tab_series *x)
{
	if (ids[x->tenant] != p->tenant)
		return false;
	if (!p->q->selector || !p->q->selector->has_type)
		return true;
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		if (ids[x->type[k]] != p->type[k])
			return false;
	return p->q->selector->delta == (x->delta != 0);
}

static bool same_kind(const struct tab_series *a, const struct tab_series *b)
{
	return a->tenant == b->tenant && memcmp(a->type, b->type, sizeof(a->type)) == 0 &&
	       a->delta == b->delta;
}

static void match_by_ids(
	struct picking *p, const struct source *s, uint32_t matcher, struct pick *out)
{
	const struct tabs *t = &s->tabs;
	const uint32_t *ids = s->ids->v;
	const struct selector_matcher *m = &p->q->selector->matchers[matcher];
	uint8_t *verdicts = p->verdicts[matcher];
	for (uint32_t i = 0; i < t->series_count; i++) {
		if (!out->series[i])
			continue;
		const struct tab_series *x = &t->series[i];
		const struct profile_label *l = &t->labels[x->label_first];
		uint32_t value = 0;
		for (uint32_t k = 0; k < x->label_count && !value; k++)
			if (ids[l[k].name] == p->names[matcher])
				value = l[k].value;
		uint8_t *verdict = &verdicts[ids[value]];
		uint8_t known = __atomic_load_n(verdict, __ATOMIC_RELAXED);
		if (known == UNKNOWN) {
			known = selector_matches(m, t->label_strings[value]) ? YES : NO;
			__atomic_store_n(verdict, known, __ATOMIC_RELAXED);
		}
		out->series[i] = known == YES;
	}
}

static enum status pick_by_ids(struct picking *p, struct source *s, struct pick *out, struct err *e)
{
	const struct samples_query *q = p->q;
	uint32_t n = s->tabs.series_count;
	enum status st = budget_array(p->budget, n, 1, &out->series, e);
	if (st != OK)
		return st;
	out->series_count = n;
	const struct tab_series *x = s->tabs.series;
	bool kind = false;
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || !same_kind(&x[i], &x[i - 1]))
			kind = type_by_ids(p, s->ids->v, &x[i]);
		out->series[i] = kind && x[i].rows != 0 && x[i].first_ns < q->to_ns &&
				 x[i].last_ns >= q->from_ns;
	}
	for (uint32_t k = 0; q->selector && k < q->selector->matcher_count && st == OK; k++) {
		int at = tabs_name_find(&s->tabs, q->selector->matchers[k].name);
		if (at < 0) {
			match_by_ids(p, s, k, out);
			continue;
		}
		st = source_load(p->v, s, PART_LOAD_SETS, p->budget, e);
		if (st == OK)
			st = pick_by_set(s, &q->selector->matchers[k], at, p->budget, out, e);
	}
	for (uint32_t i = 0; i < n; i++)
		out->wanted += out->series[i];
	return st;
}

/* ---- types ---- */

static bool same_texts(const struct str *a, const struct str *b)
{
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		if (!str_eq(a[k], b[k]))
			return false;
	return true;
}

static void texts_of(const struct tabs *t, const struct tab_series *s, struct str *out)
{
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		out[k] = t->label_strings[s->type[k]];
}

/* Series that follow each other mostly have one type. */
static struct pick_type type_of(const struct tabs *t, const struct pick *p)
{
	struct pick_type x = { 0 };
	const struct tab_series *last = NULL;
	for (uint32_t i = 0; i < p->series_count && !x.several; i++) {
		const struct tab_series *s = &t->series[i];
		struct str text[TABLES_TYPE_PARTS];
		if (!p->series[i])
			continue;
		if (!x.found) {
			x.found = true;
			x.delta = s->delta != 0;
			x.period = s->period;
			texts_of(t, s, x.text);
		} else if (!same_kind(s, last)) {
			texts_of(t, s, text);
			x.several = !same_texts(text, x.text) || x.delta != (s->delta != 0);
			x.other[0] = text[0];
			x.other[1] = text[1];
		}
		x.differ |= s->period != x.period;
		x.any |= s->period > 0;
		last = s;
	}
	return x;
}

static struct str move_text(struct str s, char **to)
{
	char *at = *to;
	memcpy(at, s.p, s.len);
	*to += s.len;
	return str_make(at, s.len);
}

/* Copies the parts of a source's labels that are needed later, before they are dropped. */
static enum status keep_type(const struct source *s, struct pick *p, struct err *e)
{
	struct pick_type x = type_of(&s->tabs, p);
	size_t bytes = 1;
	p->apart = true;
	if (!x.found)
		return OK;
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		bytes += x.text[k].len;
	for (int k = 0; k < 2 && x.several; k++)
		bytes += x.other[k].len;
	char *to = p->type_memory = malloc(bytes);
	if (!to)
		return err_set(e, E_NOMEM, "a profile type");
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		x.text[k] = move_text(x.text[k], &to);
	for (int k = 0; k < 2 && x.several; k++)
		x.other[k] = move_text(x.other[k], &to);
	p->type = x;
	return OK;
}

/* ---- one source ---- */

/* Labels that will not stay loaded are used now. */
static enum status load_one(struct picking *p, size_t i, struct err *e)
{
	struct source *s = &p->v->sources[i];
	bool keep = true;
	enum status st = source_load_labels(p->v, s, p->budget, &keep, e);
	if (st != OK || keep)
		return st;
	st = source_pick(p->v, s, p->q, p->budget, &p->picks[i], e);
	if (st == OK)
		st = keep_type(s, &p->picks[i], e);
	if (st == OK)
		source_rest(p->v, s);
	return st;
}

static enum status pick_one(struct picking *p, size_t i, struct err *e)
{
	struct source *s = &p->v->sources[i];
	if (s->first_ns >= p->q->to_ns || s->last_ns < p->q->from_ns || (p->skip && p->skip[i]))
		return OK;
	if (p->loading)
		return load_one(p, i, e);
	if (p->picks[i].apart)
		return OK;
	if (s->ids)
		return pick_by_ids(p, s, &p->picks[i], e);
	return source_pick(p->v, s, p->q, p->budget, &p->picks[i], e);
}

static void work(void *ctx, unsigned worker)
{
	struct picking *p = ctx;
	struct err e = { 0 };
	enum status s = OK;
	while (s == OK && !atomic_load(&p->stop)) {
		size_t i = atomic_fetch_add(&p->next, 1);
		if (i >= p->v->source_count)
			return;
		if (worker == 0)
			s = samples_stopped(p->q, &e);
		if (s == OK)
			s = pick_one(p, i, &e);
	}
	if (s == OK)
		return;
	lock_take(&p->lock);
	if (p->status == OK) {
		p->status = s;
		p->err = e;
	}
	lock_release(&p->lock);
	atomic_store(&p->stop, true);
}

static enum status each_source(struct picking *p, bool loading, struct err *e)
{
	p->loading = loading;
	atomic_store(&p->next, 0);
	os_pool_run(p->v->store->config.pool,
		(unsigned)MIN(p->v->source_count, (size_t)OS_POOL_THREADS_MAX), work, p);
	if (p->status != OK)
		*e = p->err;
	return p->status;
}

/* After all sources are loaded: their numbers are below id_count. */
static enum status find_ids(struct picking *p, struct err *e)
{
	struct dictionary *d = p->v->dictionary;
	const struct selector *sel = p->q->selector;
	enum status s = OK;
	if (!d)
		return OK;
	p->id_count = dictionary_count(d);
	p->tenant = dictionary_find(d, p->v->tenant);
	for (int k = 0; sel && sel->has_type && k < TABLES_TYPE_PARTS; k++)
		p->type[k] = dictionary_find(d, sel->type[k]);
	for (uint32_t i = 0; sel && i < sel->matcher_count && s == OK; i++) {
		p->names[i] = dictionary_find(d, sel->matchers[i].name);
		s = budget_array(p->budget, p->id_count, 1, &p->verdicts[i], e);
	}
	return s;
}

enum status view_pick(struct store_view *v, const struct samples_query *q, const uint8_t *skip,
	struct budget *b, struct pick *picks, struct err *e)
{
	struct picking p = { .v = v, .q = q, .skip = skip, .budget = b, .picks = picks };
	lock_init(&p.lock, LOCK_ONE_QUERY);
	enum status s = each_source(&p, true, e);
	if (s == OK)
		s = find_ids(&p, e);
	if (s == OK)
		s = each_source(&p, false, e);
	for (uint32_t i = 0; i < SELECTOR_MATCHERS_MAX; i++) {
		if (p.verdicts[i])
			budget_give(b, p.id_count);
		free(p.verdicts[i]);
	}
	lock_destroy(&p.lock);
	return s;
}

enum status picks_type(struct store_view *v, const struct pick *picks, bool times_period,
	struct found_type *out, struct err *e)
{
	bool differ = false, any = false;
	*out = (struct found_type){ 0 };
	for (size_t i = 0; i < v->source_count; i++) {
		struct pick_type x =
			picks[i].apart ? picks[i].type : type_of(&v->sources[i].tabs, &picks[i]);
		if (!x.found)
			continue;
		if (!out->found) {
			*out = (struct found_type){ true, x.delta, .period = x.period };
			memcpy(out->text, x.text, sizeof(out->text));
		}
		bool other = !same_texts(x.text, out->text) || x.delta != out->delta;
		const struct str *text = other ? x.text : x.other;
		if (other || x.several)
			return err_set(e, E_INVALID,
				"the selector names no profile type, and "
				"several match: %.*s:%.*s and %.*s:%.*s",
				STR_ARG(out->text[0]), STR_ARG(out->text[1]), STR_ARG(text[0]),
				STR_ARG(text[1]));
		differ |= x.differ || out->period != x.period;
		any |= x.any;
	}
	out->by_period = differ && any && times_period && out->delta;
	if (differ)
		out->period = out->by_period;
	return OK;
}

enum status found_type_put(const struct found_type *f, struct samples_tree *out)
{
	uint32_t *parts[] = { &out->type.name, &out->type.sample_type, &out->type.sample_unit,
		&out->type.period_type, &out->type.period_unit };
	enum status s = OK;
	if (!f->found)
		return OK;
	for (size_t k = 0; k < ARRAY_COUNT(parts) && s == OK; k++)
		s = profile_add_string(&out->tables, f->text[k], parts[k]);
	out->type.delta = f->delta;
	out->period = f->period;
	return s;
}
