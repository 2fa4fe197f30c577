/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes over the rows of all sources: the first marks what the taken rows use, the second
 * writes them in the numbers of the new tables. As numbers of a part ascend in canonical order, and
 * those of any subset of its elements ascend likewise, rows come out of one source as they went in;
 * only what a change of times or labels can bring out of order is gathered and sorted: the rows of
 * one stack of one series, or of one series, in a slice of time.
 *
 * Taking the place of the old part is as in merge.c: the new part is durable and says that it
 * replaces the old one before that goes.
 */
#include "store/merge/rewrite.h"

#include "base/clock.h"
#include "store/merge/merge_cursor.h"

#include <stdlib.h>

#define CANCEL_CHECK_BLOCKS 8
#define MEMTABLE_STEP 65536u

enum status rewrite_init(struct rewrite *w, struct store *s, size_t source_count, struct err *e)
{
	*w = (struct rewrite){ .s = s, .memory_bytes = REWRITE_BYTES(s) };
	w->sources = calloc(MAX(source_count, (size_t)1), sizeof(*w->sources));
	if (!w->sources)
		return err_set(e, E_NOMEM, "%zu sources", source_count);
	w->count = source_count;
	for (size_t i = 0; i < source_count; i++)
		part_rows_init(&w->sources[i].block);
	return OK;
}

void rewrite_deinit(struct rewrite *w)
{
	for (size_t i = 0; i < w->count; i++) {
		struct rewrite_source *src = &w->sources[i];
		free(src->used_series);
		free(src->used_nodes);
		free(src->used_sets);
		free(src->series);
		free(src->nodes);
		free(src->sets);
		free(src->order);
		part_rows_deinit(&src->block);
	}
	free(w->sources);
	canon_deinit(&w->canon);
	if (w->has_tables)
		tables_deinit(&w->tables);
	take_rounding_deinit(&w->rounding);
	part_meta_deinit(&w->meta);
	VEC_FREE(&w->rows);
}

/* ---- rows as they lie ---- */

static bool taken(const struct rewrite_rule *r, uint32_t series, uint32_t set, int64_t time_ns)
{
	bool match = r->series && r->series[series] && (!r->sets || r->sets[set]) &&
		     time_ns >= r->from_ns && time_ns <= r->last_ns;
	return match == r->take_matching;
}

static bool canceled(const struct rewrite *w)
{
	return w->cancel && w->cancel(w->cancel_ctx);
}

/* The next block of a part in `block`; false at the end. */
static enum status next_block(
	struct rewrite *w, struct rewrite_source *src, bool *more, struct err *e)
{
	struct part *p = src->from->part;
	*more = src->next_block < src->block_count;
	if (!*more)
		return OK;
	if (src->next_block % CANCEL_CHECK_BLOCKS == 0 && canceled(w))
		return err_set(e, E_CANCELED, "the caller went away");
	enum status s = part_read_block(
		p, &src->from->tabs, &src->blocks[src->next_block++], ~0u, &src->block, e);
	src->at = 0;
	src->end = src->block.count;
	if (s == E_CORRUPT)
		w->damaged = p;
	return s;
}

static void memtable_row(const struct source *from, size_t i, struct row *out)
{
	const struct memtable *m = from->mem.table;
	*out = (struct row){
		.time_ns = m->time_ns.v[i],
		.value = m->value.v[i],
		.count = 1,
		.series = m->series.v[i],
		.node = m->node.v[i],
		.set = m->set.v[i],
	};
}

static void part_row(const struct part_rows *b, size_t i, struct row *out)
{
	*out = (struct row){
		.time_ns = b->time_ns[i],
		.value = b->value[i],
		.count = b->n[i],
		.series = b->series[i],
		.node = b->node[i],
		.set = b->set[i],
	};
}

/* ---- the first pass ---- */

static void look_at(struct rewrite_source *src, const struct row *r)
{
	if (!taken(&src->rule, r->series, r->set, r->time_ns)) {
		src->left_rows++;
		src->left_samples += (uint64_t)r->count;
		return;
	}
	src->rows++;
	src->samples += (uint64_t)r->count;
	src->used_series[r->series] = 1;
	src->used_nodes[r->node] = 1;
	src->used_sets[r->set] = 1;
}

static enum status look_at_part(struct rewrite *w, struct rewrite_source *src, struct err *e)
{
	src->blocks = part_blocks(src->from->part, &src->block_count);
	src->next_block = 0;
	for (;;) {
		bool more;
		struct row r;
		enum status s = next_block(w, src, &more, e);
		if (s != OK || !more)
			return s;
		for (size_t i = 0; i < src->end; i++) {
			part_row(&src->block, i, &r);
			look_at(src, &r);
		}
	}
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
		for (size_t i = 0; !src->from->part && i < src->from->mem.row_count; i++) {
			struct row r;
			memtable_row(src->from, i, &r);
			look_at(src, &r);
		}
		if (s != OK)
			return s;
	}
	return OK;
}

/* ---- the second pass ---- */

/* The row's slice becomes the source's. */
static void translate(const struct rewrite *w, struct rewrite_source *src, struct row *r)
{
	if (r->time_ns < src->slice.first_ns || r->time_ns > src->slice.last_ns)
		src->slice = part_slice_of(r->time_ns);
	r->series = src->series[r->series];
	r->node = src->nodes[r->node];
	r->set = src->sets[r->set];
	if (w->resolution_ns && w->rounding.delta[r->series] && !w->rounding.keep_time[r->set])
		r->time_ns = part_round_time(r->time_ns, w->resolution_ns, src->slice);
}

static enum status order_slices(struct rewrite_source *src, size_t n)
{
	const struct memtable *m = src->from->mem.table;
	CLEANUP(free_cleanup)
	struct radix_item *items = malloc(MAX(n, (size_t)1) * 2 * sizeof(*items));
	if (!items)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		int64_t t = m->time_ns.v[src->order[i]];
		t = part_slice_of(t).first_ns;
		items[i] = (struct radix_item){ (uint64_t)t ^ (uint64_t)1 << 63, src->order[i] };
	}
	radix_sort(items, items + n, n);
	for (size_t i = 0; i < n; i++)
		src->order[i] = items[i].index;
	return OK;
}

/* A memtable's taken rows by slice and new series: a counting sort by series, then one by slice. */
static enum status order_memtable(const struct rewrite *w, struct rewrite_source *src)
{
	size_t n = src->from->mem.row_count, taken_rows = 0;
	CLEANUP(free_cleanup)
	size_t *begin = calloc((size_t)w->tabs.series_count + 2, sizeof(*begin));
	src->order = malloc(MAX((size_t)src->rows, (size_t)1) * sizeof(*src->order));
	if (!begin || !src->order)
		return E_NOMEM;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < n; i++) {
			struct row r;
			memtable_row(src->from, i, &r);
			if (!taken(&src->rule, r.series, r.set, r.time_ns))
				continue;
			if (pass == 0)
				begin[src->series[r.series] + 1]++;
			else
				src->order[begin[src->series[r.series]]++] = (uint32_t)i;
			taken_rows += pass == 0;
		}
		for (uint32_t i = 0; pass == 0 && i < w->tabs.series_count; i++)
			begin[i + 1] += begin[i];
	}
	assert(taken_rows == src->rows);
	return order_slices(src, taken_rows);
}

/* The next taken row in `head`. */
static enum status advance(struct rewrite *w, struct rewrite_source *src, struct err *e)
{
	src->has_head = false;
	if (!src->from->part) {
		if (src->at < src->rows) {
			memtable_row(src->from, src->order[src->at++], &src->head);
			translate(w, src, &src->head);
			src->has_head = true;
		}
		return OK;
	}
	for (;;) {
		bool more = true;
		enum status s = OK;
		if (src->at == src->end)
			s = next_block(w, src, &more, e);
		if (s != OK || !more)
			return s;
		while (src->at < src->end) {
			part_row(&src->block, src->at++, &src->head);
			if (!taken(&src->rule, src->head.series, src->head.set, src->head.time_ns))
				continue;
			translate(w, src, &src->head);
			src->has_head = true;
			return OK;
		}
	}
}

static enum status start(struct rewrite *w, struct err *e)
{
	for (size_t i = 0; i < w->count; i++) {
		struct rewrite_source *src = &w->sources[i];
		src->at = src->end = src->next_block = 0;
		src->slice = (struct part_slice){ INT64_MAX, INT64_MIN };
		enum status s = OK;
		if (!src->from->part && order_memtable(w, src) != OK)
			s = err_set(e, E_NOMEM, "sorting %llu rows", (unsigned long long)src->rows);
		if (s == OK)
			s = advance(w, src, e);
		if (s != OK)
			return s;
	}
	return OK;
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

/* How much has to be gathered. */
static enum status choose_group(struct rewrite *w, struct err *e)
{
	w->group = REWRITE_SERIES;
	for (size_t i = 0; i < w->count; i++) {
		const struct rewrite_source *src = &w->sources[i];
		if (src->from->part &&
			!ascends(src->series, src->used_series, src->from->tabs.series_count))
			return err_set(e, E_UNSUPPORTED,
				"%s: its series are not in canonical order",
				part_path(src->from->part));
	}
	const struct rewrite_source *one = &w->sources[0];
	if (w->count != 1 || !one->from->part)
		return OK;
	const struct tabs *t = &one->from->tabs;
	const struct part_meta *from = part_meta(one->from->part);
	bool by_stack = from->order == PART_ORDER_STACK;
	bool same = w->resolution_ns == 0 && w->drop_count == 0;
	if (!ascends(one->nodes, one->used_nodes, t->node_count))
		return OK;
	if (same && ascends(one->sets, one->used_sets, t->set_count)) {
		w->group = REWRITE_ROW;
		w->meta.order = from->order;
	} else if (by_stack) {
		w->group = REWRITE_STACK;
	}
	return OK;
}

static int by_key(const void *a, const void *b)
{
	return merge_row_compare(a, b);
}

/* What was gathered, sorted, equal rows summed. */
static void compact(struct rewrite *w)
{
	struct row *v = w->rows.v;
	size_t kept = 0, n = w->rows.len;
	if (w->group == REWRITE_ROW || n < 2)
		return;
	qsort(v, n, sizeof(*v), by_key);
	for (size_t i = 0; i < n; kept++) {
		struct row sum = v[i++];
		for (; i < n && merge_row_compare(&sum, &v[i]) == 0; i++) {
			sum.value = wrap_add(sum.value, v[i].value);
			sum.count = wrap_add(sum.count, v[i].count);
		}
		v[kept] = sum;
	}
	w->rows.len = kept;
}

static enum status write_gathered(struct rewrite *w, struct part_writer *out, struct err *e)
{
	compact(w);
	for (size_t i = 0; i < w->rows.len; i++) {
		enum status s = part_writer_row(out, &w->rows.v[i], e);
		if (s != OK)
			return s;
	}
	VEC_CLEAR(&w->rows);
	return OK;
}

/* What comes out without being sorted has to go in sorted: another writer may have made the part.
 */
static bool in_order(const struct rewrite *w, const struct row *a, int64_t a_slice,
	const struct row *b, int64_t b_slice)
{
	if (a_slice != b_slice)
		return a_slice < b_slice;
	if (a->series != b->series || w->group == REWRITE_SERIES)
		return a->series <= b->series;
	if (w->group == REWRITE_STACK)
		return a->node <= b->node;
	if (w->meta.order == PART_ORDER_STACK)
		return merge_row_compare(a, b) < 0;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	return a->node != b->node ? a->node < b->node : a->set < b->set;
}

/* Makes room for one more row. A full table is summed up; if more than half of it is left, it is
 * too large. */
static enum status make_room(struct rewrite *w, struct err *e)
{
	size_t most = w->memory_bytes / sizeof(*w->rows.v);
	if (w->rows.len < most)
		return OK;
	compact(w);
	if (w->rows.len <= most / 2)
		return OK;
	return err_set(e, E_LIMIT,
		"%zu rows of one series do not fit the memory for sorting: narrow the time range",
		w->rows.len);
}

/* All rows of the group that begins with `first`, from one source. */
static enum status gather(struct rewrite *w, struct rewrite_source *src, const struct row *first,
	int64_t slice_ns, struct err *e)
{
	while (src->has_head && src->slice.first_ns == slice_ns &&
		src->head.series == first->series &&
		(w->group == REWRITE_SERIES || src->head.node == first->node)) {
		enum status s = make_room(w, e);
		if (s != OK)
			return s;
		if (!VEC_PUSH(&w->rows, src->head))
			return err_set(e, E_NOMEM, "sorting %zu rows", w->rows.len);
		struct row last = src->head;
		s = advance(w, src, e);
		if (s != OK)
			return s;
		if (src->from->part && src->has_head &&
			!in_order(w, &last, slice_ns, &src->head, src->slice.first_ns))
			return err_set(e, E_UNSUPPORTED,
				"%s: its rows are not in the order of META",
				part_path(src->from->part));
		if (w->group == REWRITE_ROW)
			break;
	}
	return OK;
}

static bool before(const struct rewrite_source *a, const struct rewrite_source *b)
{
	return a->slice.first_ns != b->slice.first_ns ? a->slice.first_ns < b->slice.first_ns
						      : a->head.series < b->head.series;
}

static enum status write_rows(struct rewrite *w, struct part_writer *out, struct err *e)
{
	enum status s = start(w, e);
	while (s == OK) {
		const struct rewrite_source *least = NULL;
		for (size_t i = 0; i < w->count; i++) {
			const struct rewrite_source *src = &w->sources[i];
			if (src->has_head && (!least || before(src, least)))
				least = src;
		}
		if (!least)
			return OK;
		struct row first = least->head;
		int64_t slice_ns = least->slice.first_ns;
		for (size_t i = 0; i < w->count && s == OK; i++)
			s = gather(w, &w->sources[i], &first, slice_ns, e);
		if (s == OK)
			s = write_gathered(w, out, e);
	}
	return s;
}

enum status rewrite_write(struct rewrite *w, struct place *place, uint64_t id, struct err *e)
{
	CLEANUP(part_writer_cleanup) struct part_writer *out = NULL;
	enum status s = rewrite_make_tables(w, e);
	if (s == OK)
		s = choose_group(w, e);
	if (s != OK)
		return s;
	if (w->group != REWRITE_ROW)
		w->meta.order = PART_ORDER_STACK;
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
	return st == OK ? store_add_doubtful(s, to, e) : err_set(e, st, "a part's META");
}

enum status rewrite_install(
	struct store *s, struct part *old, struct part *fresh, bool *out_removed, struct err *e)
{
	if (!fresh)
		store_remember_batches(s, old);
	pthread_mutex_lock(&s->lock);
	size_t at = store_find_part(s, old);
	bool found = at < s->parts.len;
	if (found && fresh)
		s->parts.v[at] = fresh;
	else if (found)
		s->parts.v[at] = s->parts.v[--s->parts.len];
	if (found)
		store_count_parts(s);
	pthread_mutex_unlock(&s->lock);
	if (!found)
		return err_set(e, E_UNAVAILABLE, "%s left the store meanwhile", part_path(old));
	if (fresh)
		store_trust(s, part_meta(fresh));
	else
		store_manifest_write(s); /* or the next start would miss it */
	*out_removed = place_remove(s->place, part_meta(old)->id, NULL) == OK;
	if (!*out_removed)
		store_doubt(s, part_meta(old)->id);
	part_unref(old); /* the set's reference */
	return OK;
}

static enum status write_and_install(struct rewrite *w, struct part *old, struct err *e)
{
	struct store *s = w->s;
	struct part *fresh = NULL;
	uint64_t id = store_next_part(s);
	enum status st = rewrite_write(w, s->place, id, e);
	if (st == OK) {
		st = part_open_at(s->place, id, &fresh, e);
		if (st == E_CORRUPT) /* of the fresh one: the old one is sound, and stays */
			st = err_prefix(e, E_IO, "what was just written");
	}
	if (st == OK)
		st = rewrite_install(s, old, fresh, &w->removed, e);
	if (st != OK) {
		part_unref(fresh);
		store_doubt(s, id);
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
	w->removed = true;
	enum status s = rewrite_look(w, e);
	if (s != OK || (src->left_rows == 0 && !always))
		return s;
	if (src->rows == 0)
		return rewrite_install(w->s, old, NULL, &w->removed, e);
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
