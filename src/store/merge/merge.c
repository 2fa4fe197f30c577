/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of all sources are interned into one, and canonically numbered. Then one k-way merge
 * writes the rows of all sources into the new part, equal ones summed. The new part replaces its
 * sources in one step; then their files are deleted.
 *
 * The tables, and the rows that have to be sorted, must fit into a budget of memory. If they do
 * not, the merge is tried with fewer sources, at last with one source that is not sorted yet: once
 * it is sorted, it can be read in order and takes little memory. A source that does not fit even
 * alone is left as it is.
 */
#include "store/merge/merge.h"
#include "store/merge/merge_choose.h"
#include "store/merge/merge_cursor.h"
#include "store/merge/merge_pace.h"
#include "store/merge/merge_rows.h"
#include "store/merge/take.h"

#include "base/clock.h"

#include <stdlib.h>

#define LEFT_ALONE_MAX 4096
/* What a row of a block takes in memory (struct part_rows). */
#define BLOCK_ROW_BYTES 36
/* Coarser times are equal for many rows, and are best sorted after the stack; finer times come
 * first, so that they ascend. */
#define FINE_NS NS_PER_SEC
/* A part of this level will hardly be merged again, so it is packed harder. */
#define KEPT_LEVEL_MIN 2

struct merging {
	struct store *s;
	struct merge_cursor cursors[MERGE_SOURCES_MAX];
	size_t count;
	struct merge_pace pace;
	struct tables tables;
	bool has_tables;
	struct tabs tabs;
	struct canon canon;
	struct take_rounding rounding;
	struct part_meta meta;
	VEC(struct batch_seen) batches;
	struct part *damaged;
	struct part *unfit; /* its tables are in another order */
	uint64_t budget;
	size_t fits;       /* E_LIMIT: how many of the sources would fit the budget; 0: not known */
	bool has_unsorted; /* among several sources */
};

static void merging_deinit(struct merging *m)
{
	for (size_t i = 0; i < m->count; i++)
		merge_cursor_deinit(&m->cursors[i]);
	canon_deinit(&m->canon);
	if (m->has_tables)
		tables_deinit(&m->tables);
	take_rounding_deinit(&m->rounding);
	part_meta_deinit(&m->meta);
	VEC_FREE(&m->batches);
}

static bool is_left_alone(const struct store *s, uint64_t id)
{
	for (size_t i = 0; i < s->left_alone.len; i++)
		if (s->left_alone.v[i] == id)
			return true;
	return false;
}

/* With merge_lock held: remembers that this part is not tried again until the next start. */
static void leave_alone(struct store *s, const struct part *p)
{
	if (s->left_alone.len < LEFT_ALONE_MAX)
		(void)!VEC_PUSH(&s->left_alone, part_meta(p)->id);
	metric_add(&s->metrics.parts_left_alone, 1);
}

/* Chooses at most `most` sources. If it is one, that one is not sorted yet. */
static enum status choose(struct merging *m, int64_t now_ns, size_t most)
{
	struct store *s = m->s;
	size_t chosen[MERGE_SOURCES_MAX];
	lock_take(&s->lock);
	CLEANUP(free_cleanup)
	struct merge_candidate *v = calloc(MAX(s->parts.len, (size_t)1), sizeof(*v));
	for (size_t i = 0; v && i < s->parts.len; i++) {
		const struct part_meta *meta = part_meta(s->parts.v[i]);
		v[i] = (struct merge_candidate){ s->parts.v[i], part_file_bytes(s->parts.v[i]),
			meta->level, meta->last_ns };
		if (is_left_alone(s, meta->id))
			v[i].bytes = UINT64_MAX;
	}
	size_t n = v ? merge_choose(v, s->parts.len, now_ns, chosen) : 0;
	for (size_t i = 0; i < n; i++)
		m->has_unsorted |= v[chosen[i]].level == 0;
	for (size_t i = 0; i < n && m->count < most; i++) {
		if (most == 1 && m->has_unsorted && v[chosen[i]].level != 0)
			continue;
		struct merge_cursor *c = &m->cursors[m->count++];
		c->part = part_ref(v[chosen[i]].part);
		part_rows_init(&c->rows);
	}
	lock_release(&s->lock);
	return v ? OK : E_NOMEM;
}

/* ---- tables ---- */

static enum status pin_sources(struct merging *m, struct err *e)
{
	for (size_t i = 0; i < m->count; i++) {
		struct merge_cursor *c = &m->cursors[i];
		enum status s = part_pin(
			c->part, PART_LOAD_LABELS | PART_LOAD_SETS, m->budget, &c->tabs, e);
		if (s != OK) {
			m->damaged = c->part;
			return s;
		}
		c->pinned = PART_LOAD_LABELS | PART_LOAD_SETS;
	}
	return OK;
}

/* Checks that the merge with `more` bytes is within the budget. */
static enum status check_budget(const struct merging *m, uint64_t more, struct err *e)
{
	uint64_t bytes = tables_bytes(&m->tables) + more;
	if (bytes <= m->budget)
		return OK;
	return err_set(e, E_LIMIT, "merging %zu parts takes %llu MiB of memory; %llu are allowed",
		m->count, (unsigned long long)(bytes >> 20), (unsigned long long)(m->budget >> 20));
}

/* Bytes of the arrays that map a source's numbers of series, nodes and sets to the merged part's.
 */
static uint64_t source_bytes(const struct merge_cursor *c)
{
	return ((uint64_t)c->tabs.series_count + c->tabs.node_count + c->tabs.set_count) *
	       sizeof(uint32_t);
}

/* Memory for reading the rows of a source: a block, and if they are not sorted a whole series. */
static uint64_t row_bytes(const struct merge_cursor *c)
{
	uint64_t block = 0;
	for (size_t i = 0; i < c->block_count; i++)
		block = MAX(block, (uint64_t)c->blocks[i].rows);
	return block * BLOCK_ROW_BYTES + merge_cursor_series_rows(c) * MERGE_SORT_ROW_BYTES;
}

static enum status check_rows(struct merging *m, struct err *e)
{
	uint64_t bytes = (uint64_t)m->tabs.node_count * PART_TOTAL_NODE_BYTES;
	for (size_t i = 0; i < m->count; i++) {
		const struct merge_cursor *c = &m->cursors[i];
		bytes += row_bytes(c) + source_bytes(c);
	}
	/* One source alone cannot be made smaller, and is no larger than a memtable was; but one
	 * that was imported may have any number of rows in a series. */
	return m->count == 1 ? merge_cursor_limit(&m->cursors[0], m->budget, e)
			     : check_budget(m, bytes, e);
}

/* Checks, with the tables of the first `n` sources but without their stacks, whether to go on. */
static enum status check_sources(struct merging *m, size_t n, struct err *e)
{
	uint64_t bytes = 0, nodes = 0;
	for (size_t i = 0; i < n; i++) {
		const struct merge_cursor *c = &m->cursors[i];
		const struct part_meta *meta = part_meta(c->part);
		bool sorted = meta->order == m->meta.order;
		bytes += source_bytes(c) + c->tabs.node_count * sizeof(*c->depths);
		bytes += sorted ? 0 : row_bytes(c);
		nodes = MAX(nodes, (uint64_t)c->tabs.node_count);
	}
	/* At least as many nodes as the largest source has; one source alone is not limited. */
	bytes += nodes * (2 * sizeof(uint32_t) + CANON_ITEM_BYTES + PART_TOTAL_NODE_BYTES);
	enum status s = check_budget(m, n > 1 ? bytes : 0, e);
	if (s == E_LIMIT)
		m->fits = n - 1;
	return s;
}

static enum status merge_tables(struct merging *m, struct err *e)
{
	const unsigned kept = PART_LOAD_LABELS | PART_LOAD_BLOCKS;
	struct take_names names = { 0 };
	enum status s = pin_sources(m, e);
	for (size_t i = 0; i < m->count && s == OK; i++)
		s = take_names_add(&names, &m->cursors[i].tabs, NULL, 0);
	if (s == OK)
		s = tables_init(&m->tables, m->budget, names.v, names.count);
	m->has_tables = s == OK;
	for (size_t i = 0; i < m->count && s == OK; i++) {
		struct merge_cursor *c = &m->cursors[i];
		unsigned more = PART_LOAD_ALL & ~c->pinned;
		s = part_pin(c->part, more, m->budget, &c->tabs, e);
		if (s == OK) {
			c->pinned |= more;
			c->blocks = part_blocks(c->part, &c->block_count);
			s = merge_tables_add(&m->tables, &c->tabs, c, e);
			if (s == OK)
				s = check_sources(m, i + 1, e);
			part_forget(c->part, c->pinned & ~kept);
			c->pinned &= kept;
		}
		if (s == E_CORRUPT)
			m->damaged = c->part;
	}
	if (s != OK)
		return s;
	tables_view(&m->tables, &m->tabs);
	s = canon_init(&m->canon, &m->tabs);
	return s == OK ? OK : err_set(e, s, "no memory for the order of a part");
}

static enum status merge_stacks(struct merging *m, struct err *e)
{
	size_t unfit;
	enum status s = merge_tries(&m->tables, &m->canon, m->cursors, m->count, &unfit);
	if (s == E_UNSUPPORTED) {
		m->unfit = m->cursors[unfit].part;
		return err_set(
			e, s, "%s: its stacks are not in canonical order", part_path(m->unfit));
	}
	for (size_t i = 0; i < m->count; i++) {
		free(m->cursors[i].depths);
		m->cursors[i].depths = NULL;
	}
	tables_view(&m->tables, &m->tabs);
	return s == OK ? check_budget(m, 0, e) : err_set(e, s, "merging the stacks of parts");
}

static bool ascends(const uint32_t *v, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (v[i] <= v[i - 1])
			return false;
	return true;
}

static void renumber(uint32_t *v, uint32_t n, const struct renumbering *r)
{
	for (uint32_t i = 0; i < n; i++)
		v[i] = r->to[v[i]];
}

static enum status prepare_rows(struct merging *m, struct err *e)
{
	if (take_rounding_init(&m->rounding, &m->tabs, &m->canon) != OK)
		return err_set(e, E_NOMEM, "merging");
	for (size_t i = 0; i < m->count; i++) {
		struct merge_cursor *c = &m->cursors[i];
		const struct part_meta *meta = part_meta(c->part);
		renumber(c->series, c->tabs.series_count, &m->canon.series);
		renumber(c->sets, c->tabs.set_count, &m->canon.sets);
		c->delta = m->rounding.delta;
		c->keep_time = m->rounding.keep_time;
		c->resolution_ns = m->meta.resolution_ns;
		c->order = m->meta.order;
		merge_cursor_begin(c);
		c->sorted = meta->order == c->order && meta->resolution_ns == c->resolution_ns &&
			    ascends(c->sets, c->tabs.set_count);
		if (!ascends(c->series, c->tabs.series_count)) {
			m->unfit = c->part;
			return err_set(e, E_UNSUPPORTED,
				"%s: its series are not in canonical order", part_path(c->part));
		}
	}
	return OK;
}

/* The resolution of all sources if they were thinned to the same one; else the configured one. */
static int64_t merged_resolution(const struct merging *m)
{
	int64_t common = part_meta(m->cursors[0].part)->resolution_ns;
	for (size_t i = 1; i < m->count; i++)
		if (part_meta(m->cursors[i].part)->resolution_ns != common)
			common = 0;
	return MAX(common, m->s->config.resolution_ns);
}

/* ---- rows ---- */

static enum status go_on(void *ctx, uint64_t bytes, struct err *e)
{
	struct merging *m = ctx;
	return merge_pace_wait(&m->pace, m->s, bytes)
		       ? OK
		       : err_set(e, E_CANCELED, "the store is closing");
}

static enum status merge_rows(struct merging *m, struct part_writer *w, struct err *e)
{
	struct merge_cursor *cursors[MERGE_SOURCES_MAX];
	struct merge_rows rows = {
		.cursors = cursors, .count = m->count, .go_on = go_on, .ctx = m
	};
	for (size_t i = 0; i < m->count; i++)
		cursors[i] = &m->cursors[i];
	enum status s = merge_rows_write(&rows, w, e);
	if (s == E_CORRUPT)
		m->damaged = rows.failed;
	if (s == E_UNSUPPORTED)
		m->unfit = rows.failed;
	return s;
}

/* ---- META of the new part ---- */

static int by_first(const void *a, const void *b)
{
	const struct sequence_range *x = a, *y = b;
	return x->first < y->first ? -1 : x->first > y->first;
}

static enum status merge_covers(struct merging *m)
{
	for (size_t i = 0; i < m->count; i++) {
		const struct part_meta *from = part_meta(m->cursors[i].part);
		if (!hash128_eq(from->store_id, m->s->id))
			continue;
		for (size_t k = 0; k < from->covers.len; k++)
			if (!VEC_PUSH(&m->meta.covers, from->covers.v[k]))
				return E_NOMEM;
	}
	struct sequence_range *v = m->meta.covers.v;
	size_t n = m->meta.covers.len, kept = 0;
	if (n)
		qsort(v, n, sizeof(*v), by_first);
	for (size_t i = 0; i < n; i++) {
		if (kept && v[i].first <= v[kept - 1].last + 1)
			v[kept - 1].last = MAX(v[kept - 1].last, v[i].last);
		else
			v[kept++] = v[i];
	}
	m->meta.covers.len = kept;
	return OK;
}

static enum status merge_batches(struct merging *m, int64_t now_ns, struct err *e)
{
	for (size_t i = 0; i < m->count; i++) {
		struct batch_seen *v;
		size_t n;
		enum status s = part_read_batches(m->cursors[i].part, &v, &n, e);
		if (s != OK) {
			m->damaged = m->cursors[i].part;
			return s;
		}
		for (size_t k = 0; k < n && s == OK; k++)
			if (v[k].arrived_ns > now_ns - DEDUPE_AGE_NS &&
				!VEC_PUSH(&m->batches, v[k]))
				s = err_set(e, E_NOMEM, "merging batches");
		free(v);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status make_meta(struct merging *m, int64_t now_ns, struct err *e)
{
	m->meta.store_id = m->s->id;
	enum status s = merge_covers(m);
	for (size_t i = 0; i < m->count; i++) {
		const struct part_meta *from = part_meta(m->cursors[i].part);
		m->meta.level = MAX(m->meta.level, from->level + 1);
		if (s == OK && !VEC_PUSH(&m->meta.replaces, from->id))
			s = E_NOMEM;
		if (s == OK)
			s = part_meta_inherit(&m->meta, from);
	}
	if (s != OK)
		return err_set(e, s, "a part's META");
	s = store_check_decided(m->s, e);
	return s == OK ? merge_batches(m, now_ns, e) : s;
}

static enum status write_part(struct merging *m, uint64_t id, struct err *e)
{
	CLEANUP(part_writer_cleanup) struct part_writer *w = NULL;
	enum status s = part_writer_open(m->s->place, id, &m->tabs, &m->canon, &w, e);
	if (s == OK)
		s = part_writer_total(w, m->tabs.node_count, e);
	if (s == OK && m->meta.level >= KEPT_LEVEL_MIN)
		part_writer_keep(w);
	if (s == OK)
		s = merge_rows(m, w, e);
	if (s == OK)
		s = part_writer_finish(
			w, &m->tabs, &m->canon, &m->meta, m->batches.v, m->batches.len, e);
	return s;
}

/* ---- taking their place ---- */

static enum status install(struct merging *m, struct part *fresh, struct err *e)
{
	struct part *old[MERGE_SOURCES_MAX];
	for (size_t i = 0; i < m->count; i++)
		old[i] = m->cursors[i].part;
	struct parts_change c = { .old = old, .old_count = m->count, .fresh = fresh };
	enum status s = store_change_parts(m->s, &c, e);
	return s == E_NOTFOUND ? E_CANCELED : s; /* a source left the set: it does not count */
}

static enum status run(struct merging *m, int64_t now_ns, struct err *e)
{
	struct part *fresh = NULL;
	uint64_t id = store_next_part(m->s);
	m->meta.resolution_ns = merged_resolution(m);
	m->meta.order = m->meta.resolution_ns < FINE_NS ? PART_ORDER_TIME : PART_ORDER_STACK;
	merge_pace_begin(&m->pace);
	enum status s = store_check_home(m->s, e);
	if (s == OK)
		s = merge_tables(m, e);
	if (s == OK)
		s = merge_stacks(m, e);
	if (s == OK)
		s = prepare_rows(m, e);
	if (s == OK)
		s = check_rows(m, e);
	if (s == OK)
		s = make_meta(m, now_ns, e);
	if (s != OK)
		return s;
	s = write_part(m, id, e);
	if (s == OK)
		s = part_open_at(m->s->place, id, &fresh, e);
	if (s == OK)
		s = install(m, fresh, e);
	if (s != OK) {
		part_unref(fresh);
		store_discard(m->s, id);
		return s;
	}
	metric_add(&m->s->metrics.merges, 1);
	return OK;
}

/* With merge_lock held: one merge of at most *most sources. *out_again: memory was short; try again
 * with the new *most. */
static enum status merge_some(struct store *s, int64_t now_ns, size_t *most, bool *out_any,
	bool *out_again, struct err *e)
{
	struct merging *m = calloc(1, sizeof(*m));
	*out_again = false;
	if (!m)
		return err_set(e, E_NOMEM, "a merge");
	m->s = s;
	m->budget = store_upkeep_bytes(s);
	bool pressed = m->budget < REWRITE_BYTES(s);
	enum status st = choose(m, now_ns, *most);
	*out_any = st == OK && m->count > 0;
	if (*out_any)
		st = run(m, now_ns, e);
	if (st == E_CORRUPT && m->damaged) {
		store_quarantine(s, m->damaged, err_text(e, st));
		st = OK; /* the others may be merged next */
	}
	/* Try again with as many sources as fit, or half of them; with a single one only to sort
	 * it. */
	if (st == E_LIMIT && m->count > (m->has_unsorted ? 1 : 2)) {
		*most = m->count <= 2 ? 1 : m->fits >= 2 ? m->fits : (m->count + 1) / 2;
		*out_again = true;
	} else if (st == E_LIMIT) {
		for (size_t i = 0; i < m->count && !pressed; i++)
			leave_alone(s, m->cursors[i].part);
		*out_any &= !pressed; /* else it is tried again later */
		st = OK;
	} else if (m->unfit) {
		store_say(s, "a part is not merged with others: %s", err_text(e, st));
		leave_alone(s, m->unfit);
		st = OK;
	}
	merging_deinit(m);
	free(m);
	return st;
}

enum status store_merge_step(struct store *s, int64_t now_ns, bool *out, struct err *e)
{
	*out = false;
	size_t most = MERGE_SOURCES_MAX;
	bool any = false, again = false;
	enum status st = OK;
	lock_take(&s->merge_lock);
	if (clock_monotonic_ns() >= s->merge_retry_ns)
		do
			st = merge_some(s, now_ns, &most, &any, &again, e);
		while (again);
	if (st == E_CANCELED) {
		any = false;
		st = OK;
	}
	if (st != OK)
		s->merge_retry_ns = clock_monotonic_ns() + MERGE_RETRY_NS;
	lock_release(&s->merge_lock);
	*out = any && st == OK;
	return st;
}
