/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the rows of all sources: the first marks the elements that the taken rows use,
 * the second is a merge of these rows, in the numbers of the new tables. As numbers of a part
 * ascend in canonical order, and those of any subset of its elements ascend likewise, the rows of a
 * part mostly come out as they lie; where times or labels change they are sorted, a series in a
 * slice at a time.
 *
 * Taking the place of the old part is as in merge.c: in one step, when the new part is durable.
 */
#include "store/merge/rewrite.h"

#include "base/clock.h"
#include "store/merge/merge_rows.h"

#include <stdlib.h>

#define CANCEL_CHECK_BLOCKS 8

enum status rewrite_init(struct rewrite *w, struct store *s, size_t source_count, struct err *e)
{
	*w = (struct rewrite){ .s = s, .memory_bytes = REWRITE_BYTES(s) };
	w->sources = calloc(MAX(source_count, (size_t)1), sizeof(*w->sources));
	if (!w->sources)
		return err_set(e, E_NOMEM, "%zu sources", source_count);
	w->count = source_count;
	for (size_t i = 0; i < source_count; i++)
		part_rows_init(&w->sources[i].cursor.rows);
	return OK;
}

void rewrite_deinit(struct rewrite *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct rewrite_source *src = &w->sources[i];
		free(src->used_series);
		free(src->used_nodes);
		free(src->used_sets);
		merge_cursor_deinit(&src->cursor);
	}
	free(w->sources);
	canon_deinit(&w->canon);
	if (w->has_tables)
		tables_deinit(&w->tables);
	take_rounding_deinit(&w->rounding);
	part_meta_deinit(&w->meta);
}

/* ---- the first pass ---- */

static enum status go_on(void *ctx, uint64_t bytes, struct err *e)
{
	const struct rewrite *w = ctx;
	(void)bytes;
	return w->cancel && w->cancel(w->cancel_ctx)
		       ? err_set(e, E_CANCELED, "the caller went away")
		       : OK;
}

static void look_at(struct rewrite_source *src, uint32_t series, uint32_t node, uint32_t set,
	int64_t time_ns, int64_t count)
{
	if (!merge_filter_takes(&src->rule, series, set, time_ns)) {
		src->left_rows++;
		src->left_samples += (uint64_t)count;
		return;
	}
	src->rows++;
	src->samples += (uint64_t)count;
	src->used_series[series] = 1;
	src->used_nodes[node] = 1;
	src->used_sets[set] = 1;
}

static enum status look_at_part(struct rewrite *w, struct rewrite_source *src, struct err *e)
{
	struct part *p = src->from->part;
	struct part_rows *r = &src->cursor.rows;
	size_t n;
	const struct part_block *blocks = part_blocks(p, &n);
	enum status s = OK;
	for (size_t i = 0; i < n && s == OK; i++) {
		if (i % CANCEL_CHECK_BLOCKS == 0)
			s = go_on(w, 0, e);
		if (s == OK)
			s = part_read_block(p, &src->from->tabs, &blocks[i], ~0u, r, e);
		for (size_t k = 0; s == OK && k < r->count; k++)
			look_at(src, r->series[k], r->node[k], r->set[k], r->time_ns[k], r->n[k]);
	}
	r->count = 0;
	if (s == E_CORRUPT)
		w->damaged = p;
	return s;
}

static void look_at_memtable(struct rewrite_source *src)
{
	const struct memtable *m = src->from->mem.table;
	for (size_t i = 0; i < src->from->mem.row_count; i++)
		look_at(src, m->series.v[i], m->node.v[i], m->set.v[i], m->time_ns.v[i], 1);
}

enum status rewrite_look(struct rewrite *w, struct err *e)
{
	for (size_t k = 0; k < w->count; k++) {
		struct rewrite_source *src = &w->sources[k];
		const struct tabs *t = &src->from->tabs;
		src->used_series = calloc(MAX(t->series_count, 1u), 1);
		src->used_nodes = calloc(MAX(t->node_count, 1u), 1);
		src->used_sets = calloc(MAX(t->set_count, 1u), 1);
		if (!src->used_series || !src->used_nodes || !src->used_sets)
			return err_set(e, E_NOMEM, "rewriting");
		enum status s = OK;
		if (src->from->part)
			s = look_at_part(w, src, e);
		else
			look_at_memtable(src);
		if (s != OK)
			return s;
	}
	return OK;
}

/* ---- the second pass ---- */

static enum status order_slices(const struct memtable *m, uint32_t *order, size_t n)
{
	CLEANUP(free_cleanup)
	struct radix_item *items = malloc(MAX(n, (size_t)1) * 2 * sizeof(*items));
	if (!items)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		int64_t t = part_slice_of(m->time_ns.v[order[i]]).first_ns;
		items[i] = (struct radix_item){ (uint64_t)t ^ (uint64_t)1 << 63, order[i] };
	}
	radix_sort(items, items + n, n);
	for (size_t i = 0; i < n; i++)
		order[i] = items[i].index;
	return OK;
}

/* A memtable's taken rows by slice and new series: a counting sort by series, then one by slice. */
static enum status order_memtable(const struct rewrite *w, struct rewrite_source *src)
{
	const struct memtable *m = src->from->mem.table;
	struct merge_cursor *c = &src->cursor;
	CLEANUP(free_cleanup)
	size_t *begin = calloc((size_t)w->tabs.series_count + 2, sizeof(*begin));
	c->list = malloc(MAX((size_t)src->rows, (size_t)1) * sizeof(*c->list));
	if (!begin || !c->list)
		return E_NOMEM;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < src->from->mem.row_count; i++) {
			uint32_t series = m->series.v[i];
			if (!merge_filter_takes(&src->rule, series, m->set.v[i], m->time_ns.v[i]))
				continue;
			if (pass == 0)
				begin[c->series[series] + 1]++;
			else
				c->list[begin[c->series[series]]++] = (uint32_t)i;
			c->list_count += pass == 0;
		}
		for (uint32_t i = 0; pass == 0 && i < w->tabs.series_count; i++)
			begin[i + 1] += begin[i];
	}
	assert(c->list_count == src->rows);
	return order_slices(m, c->list, c->list_count);
}

static bool ascends(const uint32_t *v, const uint8_t *used, uint32_t n)
{
	bool any = false;
	uint32_t last = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (!used[i])
			continue;
		if (any && v[i] <= last)
			return false;
		any = true;
		last = v[i];
	}
	return true;
}

/* Whether rows of a part come out in the order in which they lie. */
static bool keeps_order(const struct rewrite *w, const struct rewrite_source *src)
{
	const struct tabs *t = &src->from->tabs;
	const struct merge_cursor *c = &src->cursor;
	return src->from->part && w->resolution_ns == 0 &&
	       ascends(c->nodes, src->used_nodes, t->node_count) &&
	       ascends(c->sets, src->used_sets, t->set_count);
}

static enum status begin_source(struct rewrite *w, struct rewrite_source *src, struct err *e)
{
	struct merge_cursor *c = &src->cursor;
	struct part *p = src->from->part;
	enum status s = OK;
	c->tabs = src->from->tabs;
	c->delta = w->rounding.delta;
	c->keep_time = w->rounding.keep_time;
	c->resolution_ns = w->resolution_ns;
	c->order = w->meta.order;
	if (p) {
		c->part = part_ref(p);
		c->blocks = part_blocks(p, &c->block_count);
		c->filter = &src->rule;
		c->sorted = part_meta(p)->order == w->meta.order && keeps_order(w, src);
		if (!ascends(c->series, src->used_series, c->tabs.series_count))
			return err_set(e, E_UNSUPPORTED,
				"%s: its series are not in canonical order", part_path(p));
		s = merge_cursor_limit(c, w->memory_bytes, e);
	} else {
		c->mem = src->from->mem.table;
		if (order_memtable(w, src) != OK)
			s = err_set(e, E_NOMEM, "sorting %llu rows", (unsigned long long)src->rows);
	}
	merge_cursor_begin(c);
	return s;
}

static enum status write_rows(struct rewrite *w, struct part_writer *out, struct err *e)
{
	CLEANUP(free_cleanup)
	struct merge_cursor **cursors = calloc(w->count, sizeof(struct merge_cursor *));
	struct merge_rows rows = {
		.cursors = cursors, .count = w->count, .go_on = go_on, .ctx = w
	};
	if (!cursors)
		return err_set(e, E_NOMEM, "%zu sources", w->count);
	for (size_t i = 0; i < w->count; i++) {
		cursors[i] = &w->sources[i].cursor;
		enum status s = begin_source(w, &w->sources[i], e);
		if (s != OK)
			return s;
	}
	enum status s = merge_rows_write(&rows, out, e);
	if (s == E_CORRUPT)
		w->damaged = rows.failed;
	return s;
}

enum status rewrite_write(struct rewrite *w, struct place *place, uint64_t id, struct err *e)
{
	CLEANUP(part_writer_cleanup) struct part_writer *out = NULL;
	enum status s = rewrite_make_tables(w, e);
	if (s != OK)
		return s;
	bool alone = w->count == 1 && keeps_order(w, &w->sources[0]);
	w->meta.order = alone ? part_meta(w->sources[0].from->part)->order : PART_ORDER_STACK;
	s = part_writer_open(place, id, &w->tabs, &w->canon, &out, e);
	if (s == OK && w->meta.level)
		s = part_writer_total(out, w->tabs.node_count, e);
	if (s == OK)
		s = write_rows(w, out, e);
	if (s == OK)
		s = part_writer_finish(
			out, &w->tabs, &w->canon, &w->meta, w->batches, w->batch_count, e);
	return s;
}

/* ---- taking the place of a part ---- */

enum status rewrite_meta_from(
	struct part_meta *to, struct store *s, const struct part_meta *from, struct err *e)
{
	bool ours = hash128_eq(from->store_id, s->id), ok = true;
	to->store_id = s->id;
	to->level = from->level;
	to->order = from->order;
	to->resolution_ns = from->resolution_ns;
	for (size_t k = 0; ours && ok && k < from->covers.len; k++)
		ok = VEC_PUSH(&to->covers, from->covers.v[k]);
	ok = ok && VEC_PUSH(&to->replaces, from->id);
	enum status st = ok ? part_meta_inherit(to, from) : E_NOMEM;
	return st == OK ? store_check_decided(s, e) : err_set(e, st, "a part's META");
}

enum status rewrite_install(struct store *s, struct part *old, struct part *fresh, struct err *e)
{
	struct parts_change c = { .old = &old, .old_count = 1, .fresh = fresh };
	if (!fresh)
		store_remember_batches(s, old);
	enum status st = store_change_parts(s, &c, e);
	return st == E_NOTFOUND ? err_prefix(e, E_UNAVAILABLE, "%s", part_path(old)) : st;
}

static enum status write_and_install(struct rewrite *w, struct part *old, struct err *e)
{
	struct store *s = w->s;
	struct part *fresh = NULL;
	uint64_t id = store_next_part(s);
	enum status st = rewrite_write(w, s->place, id, e);
	if (st == OK) {
		st = part_open_at(s->place, id, &fresh, e);
		if (st == E_CORRUPT) /* the new part is damaged: the old one is sound, and stays */
			st = err_prefix(e, E_IO, "what was just written");
	}
	if (st == OK)
		st = rewrite_install(s, old, fresh, e);
	if (st != OK) {
		part_unref(fresh);
		store_discard(s, id);
	}
	return st;
}

/* A batch that arrived more than an hour ago is not sent again. */
static size_t forget_old(struct batch_seen *v, size_t n)
{
	int64_t oldest = clock_realtime_ns() - DEDUPE_AGE_NS;
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (v[i].arrived_ns > oldest)
			v[kept++] = v[i];
	return kept;
}

enum status rewrite_part(struct rewrite *w, bool always, struct err *e)
{
	struct rewrite_source *src = &w->sources[0];
	struct part *old = src->from->part;
	struct batch_seen *batches = NULL;
	enum status s = rewrite_look(w, e);
	if (s != OK || (src->left_rows == 0 && !always))
		return s;
	if (src->rows == 0)
		return rewrite_install(w->s, old, NULL, e);
	s = part_read_batches(old, &batches, &w->batch_count, e);
	if (s == OK)
		w->batch_count = forget_old(batches, w->batch_count);
	w->batches = batches;
	if (s == E_CORRUPT)
		w->damaged = old;
	if (s == OK)
		s = rewrite_meta_from(&w->meta, w->s, part_meta(old), e);
	if (s == OK && w->resolution_ns)
		w->meta.resolution_ns = w->resolution_ns;
	if (s == OK)
		s = write_and_install(w, old, e);
	free(batches);
	w->batches = NULL;
	return s;
}
