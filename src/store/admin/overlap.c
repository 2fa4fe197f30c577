/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two imports that have a sample in common have its store, its time and its series in common. A
 * part says which stores and times its imported rows are from (META tag 16), and it has their
 * series; so where nothing of this meets, no sample is stored twice. It may meet without a common
 * sample: that is refused too, and the caller may insist.
 *
 * Series are compared by a hash of their texts: numbers of one part mean nothing in another.
 */
#include "store/admin/overlap.h"

#include "store/state/state.h"

#include <stdio.h>
#include <stdlib.h>

struct part_origin overlap_origin(const struct part_meta *from, int64_t first_ns, int64_t last_ns)
{
	struct part_origin o = { from->store_id, first_ns, last_ns };
	int64_t step = MAX(from->step_ns, from->resolution_ns);
	if (step > 0 &&
		__builtin_add_overflow(part_round_down(last_ns, step), step - 1, &o.last_ns))
		o.last_ns = INT64_MAX;
	/* No time was rounded beyond its slice. */
	o.last_ns = MIN(o.last_ns, part_slice_of(last_ns, from->slice_ns).last_ns);
	return o;
}

static bool times_meet(const struct part_origin *a, const struct part_origin *b)
{
	return a->first_ns <= b->last_ns && b->first_ns <= a->last_ns;
}

static bool meets(const struct part_origin *a, const struct part_origin *b)
{
	return hash128_eq(a->store_id, b->store_id) && times_meet(a, b);
}

/* ---- series by what they are ---- */

static void add_text(struct hash_stream *h, struct str s)
{
	uint32_t len = (uint32_t)s.len;
	hash_stream_add(h, &len, sizeof(len));
	hash_stream_add(h, s.p, s.len);
}

static void stream_cleanup(struct hash_stream **s)
{
	hash_stream_free(*s);
}

static enum status series_key(const struct tabs *t, uint32_t id, struct hash128 *out)
{
	const struct tab_series *x = &t->series[id];
	CLEANUP(stream_cleanup) struct hash_stream *h = hash_stream_new();
	if (!h)
		return E_NOMEM;
	int64_t numbers[] = { x->delta, x->period, x->label_count };
	hash_stream_add(h, numbers, sizeof(numbers));
	add_text(h, t->label_strings[x->tenant]);
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		add_text(h, t->label_strings[x->type[k]]);
	for (uint32_t i = 0; i < x->label_count; i++) {
		add_text(h, t->label_strings[t->labels[x->label_first + i].name]);
		add_text(h, t->label_strings[t->labels[x->label_first + i].value]);
	}
	*out = hash_stream_end(h);
	return OK;
}

static int by_key(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct hash128));
}

struct keys {
	struct hash128 *v;
	size_t count;
};

static void keys_deinit(struct keys *k)
{
	free(k->v);
}

static enum status keys_init(struct keys *k, const struct tabs *t, const uint8_t *series)
{
	*k = (struct keys){ .v = calloc(MAX(t->series_count, 1u), sizeof(*k->v)) };
	enum status s = k->v ? OK : E_NOMEM;
	for (uint32_t i = 0; i < t->series_count && s == OK; i++)
		if (series[i])
			s = series_key(t, i, &k->v[k->count++]);
	if (s == OK)
		qsort(k->v, k->count, sizeof(*k->v), by_key);
	return s;
}

/* How many series of the part are among the keys. */
static enum status count_common(
	struct part *p, const struct keys *keys, uint64_t limit, uint32_t *out, struct err *e)
{
	struct tabs t;
	enum status s = part_pin(p, PART_LOAD_LABELS, limit, &t, e);
	if (s == E_CORRUPT) /* ours, not what is imported */
		return err_prefix(e, E_IO, "looking for what was imported before");
	if (s != OK)
		return s;
	*out = 0;
	for (uint32_t i = 0; i < t.series_count && s == OK; i++) {
		struct hash128 key;
		s = series_key(&t, i, &key);
		*out += s == OK && bsearch(&key, keys->v, keys->count, sizeof(key), by_key) != NULL;
	}
	part_unpin(p, PART_LOAD_LABELS);
	return s == OK ? OK : err_set(e, s, "comparing series");
}

/* ---- the parts ---- */

enum status overlap_check_own(
	const struct store *s, struct part_origin of, struct part_origin own, struct err *e)
{
	if (!hash128_eq(of.store_id, s->id) || !times_meet(&of, &own))
		return OK;
	return err_set(e, E_EXISTS,
		"some of these samples, from %s to %s, were exported from this very store; they "
		"would be counted twice: take what lies before or behind (from, to), or all of it "
		"(again)",
		time_text(of.first_ns).text, time_text(of.last_ns).text);
}

static enum status check_part(struct part *p, const struct keys *keys, struct part_origin from,
	uint64_t limit, struct err *e)
{
	const struct part_meta *m = part_meta(p);
	uint32_t common = 0;
	for (size_t i = 0; i < m->origins.len; i++) {
		const struct part_origin *o = &m->origins.v[i];
		if (!meets(o, &from))
			continue;
		enum status s = common ? OK : count_common(p, keys, limit, &common, e);
		if (s != OK || common == 0)
			return s;
		return err_set(e, E_EXISTS,
			"%u of these series were imported before, from %s to %s (part %llx): take "
			"what lies before or behind (from, to), or all of it (again)",
			common, time_text(o->first_ns).text, time_text(o->last_ns).text,
			(unsigned long long)m->id);
	}
	return OK;
}

static bool is_candidate(const struct part *p, const struct part_origin *from)
{
	const struct part_meta *m = part_meta(p);
	for (size_t i = 0; i < m->origins.len; i++)
		if (meets(&m->origins.v[i], from))
			return true;
	return false;
}

typedef VEC(struct part *) part_list;

static void list_deinit(part_list *l)
{
	for (size_t i = 0; i < l->len; i++)
		part_unref(l->v[i]);
	VEC_FREE(l);
}

static enum status take_candidates(struct store *s, const struct part_origin *from, part_list *out)
{
	enum status st = OK;
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->parts.len && st == OK; i++)
		if (is_candidate(s->parts.v[i], from))
			st = VEC_PUSH(out, s->parts.v[i]) ? (part_ref(s->parts.v[i]), OK) : E_NOMEM;
	pthread_mutex_unlock(&s->lock);
	return st;
}

enum status overlap_check(struct store *s, const struct tabs *t, const uint8_t *series,
	struct part_origin from, uint64_t limit_bytes, struct err *e)
{
	CLEANUP(list_deinit) part_list parts = { 0 };
	CLEANUP(keys_deinit) struct keys keys = { 0 };
	enum status st = take_candidates(s, &from, &parts);
	if (st == OK && parts.len)
		st = keys_init(&keys, t, series);
	if (st != OK)
		return err_set(e, st, "looking for what was imported before");
	for (size_t i = 0; i < parts.len && st == OK; i++)
		st = check_part(parts.v[i], &keys, from, limit_bytes, e);
	return st;
}
