/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts are shared out to the query's threads. Each thread has an ascending list of the texts found
 * so far, and walks it in parallel with a part's list, which ascends as well. Parts mostly have the
 * same texts, so that each costs one comparison, and only new texts are inserted. If a part's texts
 * have numbers in the view's dictionary (from an earlier query), a known text is not even compared.
 */
#include "store/read/index_kinds.h"

#include "base/lock.h"
#include "os/os.h"

#include <stdlib.h>

#define RUN_MAX ((size_t)64)

struct asking {
	struct kinds_query *k;
	uint8_t *done;
	uint8_t *seen; /* by number in the dictionary; relaxed atomics; NULL: there is none */
	uint32_t seen_count;
	struct kinds_texts found[OS_POOL_THREADS_MAX + 1];
	atomic_size_t next;
	atomic_bool stop;
	struct lock lock;
	enum status status; /* with the lock held: the first failure */
	struct err err;
};

/* ---- ascending texts ---- */

void kinds_texts_deinit(struct kinds_texts *t, struct budget *b)
{
	budget_give(b, t->cap * sizeof(*t->v));
	free(t->v);
	*t = (struct kinds_texts){ 0 };
}

/* How many texts are the same, from the first on, and follow each other in memory on both sides, as
 * in parts that were written with the same labels. */
static size_t same_run(const struct str *a, const struct str *b, size_t most)
{
	size_t n = 0, bytes = 0;
	while (n < most && a[n].len == b[n].len && a[n].p == a[0].p + bytes &&
		b[n].p == b[0].p + bytes)
		bytes += a[n++].len;
	return n > 0 && memcmp(a[0].p, b[0].p, bytes) == 0 ? n : 0;
}

/* Moves the texts that are not in `t` yet to the front of `texts`; returns how many. */
static size_t only_new(const struct kinds_texts *t, struct str *texts, size_t n)
{
	size_t kept = 0, at = 0;
	for (size_t i = 0; i < n; i++) {
		int c = -1;
		size_t most = MIN(MIN(t->len - at, n - i), RUN_MAX);
		size_t same = most ? same_run(t->v + at, texts + i, most) : 0;
		if (same) {
			at += same;
			i += same - 1;
			continue;
		}
		while (at < t->len && (c = str_cmp(t->v[at], texts[i])) < 0)
			at++;
		if (at == t->len || c > 0)
			texts[kept++] = texts[i];
	}
	return kept;
}

static enum status grow(struct kinds_texts *t, size_t need, struct budget *b, struct err *e)
{
	struct kinds_texts more = { .len = t->len, .cap = MAX(need, t->cap + t->cap / 2) };
	if (need <= t->cap)
		return OK;
	enum status s = budget_array(b, more.cap, sizeof(*more.v), &more.v, e);
	if (s != OK)
		return s;
	if (t->len)
		memcpy(more.v, t->v, t->len * sizeof(*t->v));
	kinds_texts_deinit(t, b);
	*t = more;
	return OK;
}

/* Inserts `texts`, `n` ascending new ones, from the end. */
static enum status put_in(
	struct kinds_texts *t, const struct str *texts, size_t n, struct budget *b, struct err *e)
{
	enum status s = grow(t, t->len + n, b, e);
	if (s != OK)
		return s;
	size_t i = t->len, to = t->len += n;
	while (n > 0) {
		if (i > 0 && str_cmp(t->v[i - 1], texts[n - 1]) > 0)
			t->v[--to] = t->v[--i];
		else
			t->v[--to] = texts[--n];
	}
	return OK;
}

enum status kinds_texts_add(
	struct kinds_texts *t, const struct str *texts, size_t n, struct budget *b, struct err *e)
{
	struct str *fresh;
	enum status s = budget_array(b, n, sizeof(*fresh), &fresh, e);
	if (s != OK)
		return s;
	if (n)
		memcpy(fresh, texts, n * sizeof(*texts));
	s = put_in(t, fresh, only_new(t, fresh, n), b, e);
	budget_give(b, n * sizeof(*fresh));
	free(fresh);
	return s;
}

/* ---- one part ---- */

bool kinds_wanted(const struct kinds_query *k, const struct tabs *t, const struct tab_kind *x)
{
	const struct selector *sel = k->query->selector;
	if (!str_eq(t->label_strings[x->tenant], k->view->tenant))
		return false;
	if (!sel || !sel->has_type)
		return true;
	for (int i = 0; i < TABLES_TYPE_PARTS; i++)
		if (!str_eq(t->label_strings[x->type[i]], sel->type[i]))
			return false;
	return sel->delta == (x->delta != 0);
}

/* Sample labels are in sets; if not all series are wanted, the sets must be found by series. */
static bool lists_tell_all(const struct kinds_query *k, const struct source *s)
{
	const struct tabs *t = &s->tabs;
	if (k->types || t->name_count == 0)
		return true;
	return k->name.len && tabs_name_find(t, k->name) < 0;
}

static bool is_new(struct asking *a, const struct label_ids *ids, uint32_t text)
{
	uint32_t id = ids && a->seen ? ids->v[text] : UINT32_MAX;
	if (text == 0)
		return false;
	if (id >= a->seen_count)
		return true;
	if (__atomic_load_n(&a->seen[id], __ATOMIC_RELAXED))
		return false;
	__atomic_store_n(&a->seen[id], 1, __ATOMIC_RELAXED);
	return true;
}

/* Adds the names of one kind, or its values of the name. */
static enum status add_kind(struct asking *a, const struct source *s, const struct tab_kind *x,
	const struct label_ids *ids, struct kinds_texts *to, struct err *e)
{
	const struct tabs *t = &s->tabs;
	const struct tab_kind_name *names = t->kind_names + x->name_first, *name = NULL;
	struct budget *b = a->k->budget;
	bool values = a->k->name.len != 0;
	for (uint32_t i = 0; i < x->name_count && values && !name; i++)
		if (str_eq(t->label_strings[names[i].name], a->k->name))
			name = &names[i];
	if (values && !name)
		return OK;
	size_t n = values ? name->value_count : x->name_count, fresh = 0;
	struct str *texts;
	enum status st = budget_array(b, n, sizeof(*texts), &texts, e);
	if (st != OK)
		return st;
	for (size_t i = 0; i < n; i++) {
		uint32_t text = values ? t->kind_values[name->value_first + i] : names[i].name;
		if (is_new(a, ids, text))
			texts[fresh++] = t->label_strings[text];
	}
	st = put_in(to, texts, only_new(to, texts, fresh), b, e);
	budget_give(b, n * sizeof(*texts));
	free(texts);
	return st;
}

static enum status ask_source(struct asking *a, size_t i, struct kinds_texts *to, struct err *e)
{
	struct store_view *v = a->k->view;
	const struct samples_query *q = a->k->query;
	struct source *s = &v->sources[i];
	if (s->first_ns >= q->to_ns || s->last_ns < q->from_ns) {
		a->done[i] = 1;
		return OK;
	}
	if (!s->part || s->first_ns < q->from_ns || s->last_ns >= q->to_ns)
		return OK;
	enum status st = source_load(v, s, PART_LOAD_TEXTS | PART_LOAD_KINDS, a->k->budget, e);
	if (st != OK || !lists_tell_all(a->k, s))
		return st;
	a->done[i] = 1;
	if (a->k->types)
		return OK;
	struct label_ids *ids = v->dictionary ? part_known_ids(s->part, v->dictionary) : NULL;
	for (uint32_t k = 0; k < s->tabs.kind_count && st == OK; k++)
		if (kinds_wanted(a->k, &s->tabs, &s->tabs.kinds[k]))
			st = add_kind(a, s, &s->tabs.kinds[k], ids, to, e);
	label_ids_unref(ids);
	return st;
}

/* ---- all ---- */

static void work(void *ctx, unsigned worker)
{
	struct asking *a = ctx;
	struct err e = { 0 };
	enum status s = OK;
	while (s == OK && !atomic_load(&a->stop)) {
		size_t i = atomic_fetch_add(&a->next, 1);
		if (i >= a->k->view->source_count)
			return;
		if (worker == 0)
			s = samples_stopped(a->k->query, &e);
		if (s == OK)
			s = ask_source(a, i, &a->found[worker], &e);
	}
	if (s == OK)
		return;
	lock_take(&a->lock);
	if (a->status == OK) {
		a->status = s;
		a->err = e;
	}
	lock_release(&a->lock);
	atomic_store(&a->stop, true);
}

static enum status gather(struct asking *a, struct kinds_texts *out, struct err *e)
{
	struct store_view *v = a->k->view;
	enum status s = OK;
	if (v->dictionary && !a->k->types) {
		uint32_t n = dictionary_count(v->dictionary);
		s = budget_array(a->k->budget, n, 1, &a->seen, e);
		a->seen_count = s == OK ? n : 0;
	}
	if (s != OK)
		return s;
	os_pool_run(v->store->config.pool,
		(unsigned)MIN(v->source_count, (size_t)OS_POOL_THREADS_MAX), work, a);
	if (a->status != OK) {
		*e = a->err;
		return a->status;
	}
	for (size_t i = 0; i < ARRAY_COUNT(a->found) && s == OK; i++)
		s = kinds_texts_add(out, a->found[i].v, a->found[i].len, a->k->budget, e);
	return s;
}

enum status kinds_ask(struct kinds_query *k, uint8_t *done, struct kinds_texts *out, struct err *e)
{
	struct asking a = { .k = k, .done = done };
	lock_init(&a.lock, LOCK_ONE_QUERY);
	enum status s = gather(&a, out, e);
	lock_destroy(&a.lock);
	for (size_t i = 0; i < ARRAY_COUNT(a.found); i++)
		kinds_texts_deinit(&a.found[i], k->budget);
	budget_give(k->budget, a.seen_count);
	free(a.seen);
	return s;
}
