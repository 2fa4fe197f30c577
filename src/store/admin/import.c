/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes are read in memory, as an untrusted part: every checksum and every index is checked
 * first. Its rows are then written into a new part of the store, which has the import's identity.
 * The import is done when that part is durable.
 */
#include "store/merge/merge.h"
#include "store/state/state.h"

#include <stdlib.h>

/* ---- bytes in memory as an object ---- */

struct memory_object {
	struct object object;
	struct str bytes;
};

static enum status memory_read(
	struct object *o, uint64_t offset, void *out, size_t len, struct err *e)
{
	const struct memory_object *m = (const struct memory_object *)o;
	(void)e;
	memcpy(out, m->bytes.p + offset, len); /* object_read() has checked the range */
	return OK;
}

static void memory_close(struct object *o)
{
	free(o);
}

static enum status open_bytes(struct str bytes, struct part **out, struct err *e)
{
	static const struct object_ops ops = { memory_read, memory_close };
	struct memory_object *m = calloc(1, sizeof(*m));
	if (!m)
		return err_set(e, E_NOMEM, "an import");
	m->object = (struct object){ .ops = &ops, .name = "import", .bytes = bytes.len };
	m->bytes = bytes;
	return part_open_object(&m->object, out, e);
}

struct importing {
	struct store *s;
	struct source *src;
	const struct store_import_wish *wish;
};

/* ---- the identity ---- */

static int by_kind(const void *a, const void *b)
{
	const struct part_section_entry *x = a, *y = b;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

static bool is_whole(const struct store_import_wish *wish)
{
	return wish->from_ns == INT64_MIN && wish->to_ns == INT64_MAX;
}

static void stream_cleanup(struct hash_stream **s)
{
	hash_stream_free(*s);
}

/* A hash of the part's sections, and of the limits of time if only some of it is imported. */
static enum status identify(const struct part *p, struct str bytes,
	const struct store_import_wish *wish, struct hash128 *out, struct err *e)
{
	size_t n;
	const struct part_section_entry *found = part_sections(p, &n);
	struct part_section_entry v[PART_SECTIONS_MAX];
	CLEANUP(stream_cleanup) struct hash_stream *h = hash_stream_new();
	if (!h)
		return err_set(e, E_NOMEM, "the identity of an import");
	memcpy(v, found, n * sizeof(*v));
	qsort(v, n, sizeof(*v), by_kind);
	for (size_t i = 0; i < n; i++) {
		if (v[i].kind == PART_META || v[i].kind == PART_BATCHES)
			continue;
		uint8_t head[10];
		memcpy(head, &v[i].kind, 2);
		memcpy(head + 2, &v[i].length, 8);
		hash_stream_add(h, head, sizeof(head));
		struct str section = str_sub(bytes, v[i].offset, v[i].length);
		hash_stream_add(h, section.p, section.len);
	}
	if (!is_whole(wish)) {
		int64_t limits[] = { wish->from_ns, wish->to_ns };
		hash_stream_add(h, limits, sizeof(limits));
	}
	*out = hash_stream_end(h);
	return OK;
}

static bool is_known(struct store *s, struct hash128 id)
{
	bool known = false;
	lock_take(&s->lock);
	for (size_t i = 0; i < s->parts.len && !known; i++) {
		const struct part_meta *m = part_meta(s->parts.v[i]);
		for (size_t k = 0; k < m->imports.len && !known; k++)
			known = hash128_eq(m->imports.v[k], id);
	}
	lock_release(&s->lock);
	return known;
}

/* ---- the resolution ---- */

/* The sets with a trace or span, whose rows are not rounded. */
static uint8_t *traced_sets(const struct tabs *t)
{
	uint8_t *traced = calloc(MAX(t->set_count, 1u), 1);
	size_t width = 1 + t->name_count;
	for (uint32_t k = 0; traced && k < t->name_count; k++) {
		if (!str_eq(t->names[k], STR("trace_id")) && !str_eq(t->names[k], STR("span_id")))
			continue;
		for (uint32_t i = 0; i < t->set_count; i++)
			traced[i] |= t->sets[i * width + 1 + k] != 0;
	}
	return traced;
}

/* META's resolution if all rows have it, else 0: merging relies on it, and would write rows out of
 * order. */
static enum status find_resolution(const struct source *src, int64_t *out, struct err *e)
{
	const struct tabs *t = &src->tabs;
	int64_t unit = part_meta(src->part)->resolution_ns;
	size_t n;
	const struct part_block *blocks = part_blocks(src->part, &n);
	CLEANUP(free_cleanup) uint8_t *traced = traced_sets(t);
	CLEANUP(part_rows_deinit) struct part_rows r;
	part_rows_init(&r);
	if (!traced)
		return err_set(e, E_NOMEM, "an import");
	for (size_t i = 0; unit > 0 && i < n; i++) {
		enum status s = part_read_block(src->part, t, &blocks[i],
			1u << ROW_SERIES | 1u << ROW_TIME | 1u << ROW_SET, &r, e);
		if (s != OK)
			return s;
		for (size_t j = 0; j < r.count; j++)
			if (t->series[r.series[j]].delta && !traced[r.set[j]] &&
				part_round_time(r.time_ns[j], unit, part_slice_of(r.time_ns[j])) !=
					r.time_ns[j]) {
				*out = 0;
				return OK;
			}
	}
	*out = MAX(unit, (int64_t)0);
	return OK;
}

/* ---- writing ---- */

static enum status write_part(struct rewrite *w, struct err *e)
{
	struct store *s = w->s;
	struct part *fresh = NULL;
	uint64_t id = store_next_part(s);
	enum status st = rewrite_write(w, s->place, id, e);
	if (st == OK)
		st = part_open_at(s->place, id, &fresh, e);
	if (st == OK)
		st = store_change_parts(s, &(struct parts_change){ .fresh = fresh }, e);
	if (st != OK) {
		part_unref(fresh);
		store_discard(s, id);
	}
	return st;
}

/* Sets the new part's META, before its rows are read. */
static enum status set_meta(struct rewrite *w, struct source *src, struct hash128 id, struct err *e)
{
	const struct part_meta *from = part_meta(src->part);
	w->meta.store_id = w->s->id;
	w->meta.level = from->level;
	w->meta.order = from->order;
	enum status st = find_resolution(src, &w->meta.resolution_ns, e);
	if (st != OK)
		return st;
	if (!VEC_PUSH(&w->meta.imports, id))
		return err_set(e, E_NOMEM, "a part's META");
	return store_check_decided(w->s, e);
}

static enum status take_rows(
	const struct importing *x, struct hash128 id, struct store_imported *out, struct err *e)
{
	struct store *s = x->s;
	CLEANUP(rewrite_deinit) struct rewrite w = { 0 };
	CLEANUP(free_cleanup) uint8_t *all = malloc(MAX(x->src->tabs.series_count, 1u));
	enum status st = rewrite_init(&w, s, 1, e);
	if (st != OK)
		return st;
	if (!all)
		return err_set(e, E_NOMEM, "an import");
	memset(all, 1, MAX(x->src->tabs.series_count, 1u));
	struct rewrite_source *rs = &w.sources[0];
	rs->from = x->src;
	rs->rule = (struct merge_filter){ .series = all,
		.from_ns = x->wish->from_ns,
		.last_ns = x->wish->to_ns == INT64_MAX ? INT64_MAX : x->wish->to_ns - 1,
		.take_matching = true };
	st = set_meta(&w, x->src, id, e);
	if (st == OK)
		st = rewrite_look(&w, e);
	if (st == OK && rs->rows)
		st = write_part(&w, e);
	if (st != OK)
		return st;
	out->rows = rs->rows;
	out->samples = rs->samples;
	metric_add(&s->metrics.imported_rows, out->rows);
	return OK;
}

static enum status import_part(struct store *s, struct part *p, struct hash128 id,
	const struct store_import_wish *wish, struct store_imported *out, struct err *e)
{
	struct source src = { .part = p, .pinned = PART_LOAD_ALL };
	struct importing x = { s, &src, wish };
	lock_take(&s->merge_lock); /* so that no merge hides an identity, and uses no memory
				      meanwhile */
	enum status st = part_pin(p, PART_LOAD_ALL, REWRITE_BYTES(s), &src.tabs, e);
	if (st == OK) {
		st = part_verify_import(p, REWRITE_BYTES(s), e);
		if (st == OK)
			out->known = is_known(s, id);
		part_trim(p, PART_LOAD_INDEX, INT64_MAX);
		if (st == OK && !out->known)
			st = take_rows(&x, id, out, e);
		part_unpin(p, PART_LOAD_ALL);
	}
	lock_release(&s->merge_lock);
	return st;
}

enum status store_import(struct store *s, struct str bytes, const struct store_import_wish *wish,
	struct store_imported *out, struct err *e)
{
	struct part *p;
	struct hash128 id;
	struct store_imported done = { 0 };
	struct err local = { 0 };
	static const struct store_import_wish all = { false, INT64_MIN, INT64_MAX };
	e = e ? e : &local;
	wish = wish ? wish : &all;
	if (wish->from_ns >= wish->to_ns)
		return err_set(e, E_INVALID, "an import of no time: from is not before to");
	enum status st = open_bytes(bytes, &p, e);
	if (st != OK)
		return st;
	if (hash128_eq(part_meta(p)->store_id, s->id) && !wish->again)
		st = err_set(e, E_EXISTS,
			"these samples were exported from this very store; they would be counted "
			"twice");
	if (st == OK)
		st = identify(p, bytes, wish, &id, e);
	if (st == OK)
		st = import_part(s, p, id, wish, &done, e);
	part_unref(p);
	if (st == OK)
		*out = done;
	return st;
}
