/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view holds a reference on each part and a snapshot of each memtable that there was when it was
 * opened: nothing that it sees changes. An operation loads the tables that it needs of a source and
 * pins them until view_release(); labels stay pinned while there is room, since each operation
 * begins with them.
 *
 * A part that turns out to be damaged is noted (view_damaged()), and when the operation has failed
 * it is quarantined and left out of the view, so that the operation may begin anew (view_heal()).
 */
#include "store/read/view.h"

#include "store/read/caches.h"

#include "base/clock.h"

#include <stdlib.h>

struct budget query_budget(struct store_view *v, const struct samples_query *q)
{
	uint64_t limit = q->memory_bytes ? q->memory_bytes : v->store->config.memory_bytes / 4;
	return (struct budget){ .memory = &v->memory, .limit = limit };
}

enum status query_check(const struct samples_query *q, struct err *e)
{
	if (q->from_ns >= q->to_ns)
		return err_set(e, E_INVALID,
			"the time range is empty: it begins at %lld ns and "
			"ends at %lld ns",
			(long long)q->from_ns, (long long)q->to_ns);
	return samples_stopped(q, e); /* once at least, whichever thread then does the work */
}

/* ---- life ---- */

static void add_memtable(struct store_view *v, struct memtable *m)
{
	struct memtable_snapshot snap;
	memtable_snapshot(m, &snap);
	if (snap.row_count == 0) {
		memtable_unref(snap.table);
		return;
	}
	v->sources[v->source_count++] = (struct source){
		.mem = snap,
		.tabs = snap.tabs,
		.pinned = PART_LOAD_ALL,
		.first_ns = snap.first_ns,
		.last_ns = snap.last_ns,
	};
}

enum status store_view_open(
	struct store *s, struct str tenant, struct store_view **out, struct err *e)
{
	if (tenant.len > STORE_TENANT_MAX)
		return err_set(e, E_INVALID, "a tenant's name of %zu bytes; %d are allowed",
			tenant.len, STORE_TENANT_MAX);
	struct store_view *v = calloc(1, sizeof(*v));
	if (!v)
		return err_set(e, E_NOMEM, "a view");
	v->store = s;
	query_memory_init(&v->memory, s);
	memcpy(v->tenant_text, tenant.p ? tenant.p : "", tenant.len);
	v->tenant = str_make(v->tenant_text, tenant.len);
	lock_take(&s->lock);
	v->sources = calloc(s->parts.len + 2, sizeof(*v->sources));
	v->dictionary = s->dictionary ? dictionary_ref(s->dictionary) : NULL;
	if (v->sources) {
		for (size_t i = 0; i < s->parts.len; i++) {
			const struct part_meta *m = part_meta(s->parts.v[i]);
			v->sources[v->source_count++] = (struct source){
				.part = part_ref(s->parts.v[i]),
				.first_ns = m->first_ns,
				.last_ns = m->last_ns,
			};
		}
		if (s->frozen)
			add_memtable(v, s->frozen);
		add_memtable(v, s->active);
		s->views++;
	}
	lock_release(&s->lock);
	if (!v->sources) {
		dictionary_unref(v->dictionary);
		free(v);
		return err_set(e, E_NOMEM, "a view");
	}
	*out = v;
	return OK;
}

static void unpin(struct source *s)
{
	label_ids_unref(s->ids);
	s->ids = NULL;
	s->dropped = false;
	if (s->part && s->pinned) {
		part_unpin(s->part, s->pinned);
		s->pinned = 0;
		s->tabs = (struct tabs){ 0 };
	}
}

void view_release(struct store_view *v)
{
	query_memory_release(&v->memory);
	for (size_t i = 0; i < v->source_count; i++)
		unpin(&v->sources[i]);
}

/* Tables that parts keep loaded are a cache: an eighth of the budget, and only while they are used.
 * Labels, which every page needs, stay as long as there is room. */
void store_view_close(struct store_view *v)
{
	if (!v)
		return;
	view_release(v);
	query_memory_deinit(&v->memory);
	store_trim_caches(v->store);
	for (size_t i = 0; i < v->source_count; i++) {
		part_unref(v->sources[i].part);
		memtable_unref(v->sources[i].mem.table);
	}
	struct store *s = v->store;
	lock_take(&s->lock);
	s->views--;
	lock_release(&s->lock);
	free(v->sources);
	dictionary_unref(v->dictionary);
	free(v);
	(void)store_relieve(s);
}

/* A full dictionary is replaced by an empty one; views that have it open keep it. */
static void replace_dictionary(struct store *s, const struct dictionary *full)
{
	struct dictionary *fresh = NULL;
	lock_take(&s->lock);
	if (s->dictionary == full &&
		dictionary_new(s->config.memory_bytes / DICTIONARY_SHARE, &fresh) == OK) {
		struct dictionary *old = s->dictionary;
		s->dictionary = fresh;
		dictionary_unref(old);
	}
	lock_release(&s->lock);
}

/* Whether this many more bytes may stay loaded until the view's end. */
static bool keeps(struct store_view *v, uint64_t bytes)
{
	if (atomic_fetch_add(&v->cached, bytes) + bytes <=
		v->store->config.memory_bytes / CACHE_SHARE)
		return true;
	atomic_fetch_sub(&v->cached, bytes);
	return false;
}

static void drop(struct source *s, unsigned groups)
{
	part_forget(s->part, groups);
	s->pinned &= ~groups;
	if (!(groups & PART_LOAD_LABELS))
		return;
	label_ids_unref(s->ids);
	s->ids = NULL;
	s->dropped = true;
}

enum status source_load_labels(struct store_view *v, struct source *s, const struct budget *b,
	bool *out_keep, struct err *e)
{
	*out_keep = true;
	enum status st = source_load(v, s, PART_LOAD_LABELS, b, e);
	if (st != OK || !s->part)
		return st;
	if (!s->kept) {
		uint64_t bytes = part_group_bytes(s->part, PART_LOAD_LABELS);
		s->kept = keeps(v, bytes) ? MAX(bytes, (uint64_t)1) : 0;
	}
	*out_keep = s->kept != 0;
	if (s->ids || !v->dictionary || !s->kept)
		return OK;
	st = part_label_ids(s->part, v->dictionary, &s->ids);
	if (st == E_LIMIT) {
		replace_dictionary(v->store, v->dictionary);
		return OK;
	}
	return st == OK ? OK : err_set(e, st, "labels");
}

enum status source_load(struct store_view *v, struct source *s, unsigned groups,
	const struct budget *b, struct err *e)
{
	struct tabs tabs;
	groups |= s->dropped ? PART_LOAD_LABELS : 0;
	if ((s->pinned & groups) == groups)
		return OK;
	groups &= ~s->pinned;
	enum status st = part_pin(s->part, groups, budget_left(b), &tabs, e);
	if (st == E_CORRUPT)
		view_damaged(v, s->part);
	if (st != OK)
		return budget_fail(b, st, e);
	s->pinned |= groups;
	s->tabs = tabs;
	return OK;
}

void source_rest(struct store_view *v, struct source *s)
{
	(void)v;
	if (!s->part || s->kept)
		return;
	drop(s, s->pinned);
	s->tabs = (struct tabs){ 0 };
}

void source_done(struct store_view *v, struct source *s)
{
	unsigned stay = s->kept ? PART_KEEP : PART_KEEP & ~(unsigned)PART_LOAD_LABELS;
	if (!s->part || !(s->pinned & ~stay))
		return;
	uint64_t bytes = part_forget(s->part, 0);
	if (!keeps(v, bytes - MIN(bytes, s->kept)))
		drop(s, s->pinned & ~stay);
}

void view_damaged(struct store_view *v, struct part *p)
{
	atomic_store(&v->damaged, p);
}

bool view_heal(struct store_view *v, enum status s, const struct err *e)
{
	struct part *p = atomic_exchange(&v->damaged, NULL);
	if (s != E_CORRUPT || !p)
		return false;
	view_release(v);
	v->cached = 0;
	for (size_t i = 0; i < v->source_count; i++) {
		if (v->sources[i].part != p)
			continue;
		store_quarantine(v->store, p, err_text(e, s));
		part_unref(p);
		v->sources[i] = v->sources[--v->source_count];
		return true;
	}
	return false;
}

struct str source_label(const struct source *s, uint32_t series, uint32_t set, struct str name)
{
	int at = tabs_name_find(&s->tabs, name);
	if (at >= 0 && s->tabs.sets) {
		size_t width = 1 + s->tabs.name_count;
		uint32_t value = s->tabs.sets[set * width + 1 + (size_t)at];
		if (value)
			return s->tabs.sample_strings[value];
	}
	return tabs_series_label(&s->tabs, series, name);
}
