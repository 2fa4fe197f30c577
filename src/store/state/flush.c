/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Freezing: with the gate held for writing no batch is between the log and the memtable, so every
 * record up to the last number given belongs to the frozen table, and the log goes on in a new
 * segment. The frozen table is written as a part, the part takes its place in one step with the
 * manifest that names it, and only then the log's segments are free.
 *
 * A failure leaves everything as it was; the next try writes the same table under a new number.
 */
#include "base/clock.h"
#include "base/radix.h"
#include "store/state/state.h"

#include <stdlib.h>

static enum status freeze(struct store *s, struct err *e)
{
	struct memtable *fresh;
	enum status st = memtable_new(s->memtable_bytes * MEMTABLE_LIMIT, &fresh);
	if (st != OK)
		return err_set(e, st, "no memory for a new table");
	rwlock_write(&s->gate);
	lock_take(&s->lock);
	struct memtable *old = s->active;
	bool empty = old->time_ns.len == 0;
	lock_release(&s->lock);
	if (!empty) {
		uint64_t last = log_seal(s->log);
		lock_take(&s->lock);
		old->first_sequence = s->frozen_until + 1;
		old->last_sequence = last;
		s->frozen_until = last;
		s->frozen = old;
		s->active = STEAL_PTR(fresh);
		lock_release(&s->lock);
	}
	rwlock_release(&s->gate);
	memtable_unref(fresh);
	return OK;
}

/* ---- rows in the part's order ---- */

static bool same_key(const struct row *a, const struct row *b)
{
	return a->series == b->series && a->time_ns == b->time_ns && a->node == b->node &&
	       a->set == b->set;
}

#define ROWS_AT_ONCE 1024

/* Memory for sorting the rows of one series. */
struct sorting {
	const struct memtable *t;
	const struct canon *c;
	struct radix_item *items; /* twice as many as the largest series has rows */
	struct row *rows;         /* ROWS_AT_ONCE */
};

static struct row row_at(const struct sorting *k, uint32_t i, uint32_t series)
{
	return (struct row){
		.time_ns = k->t->time_ns.v[i],
		.value = k->t->value.v[i],
		.count = 1,
		.series = series,
		.node = k->c->nodes.to[k->t->node.v[i]],
		.set = k->c->sets.to[k->t->set.v[i]],
	};
}

/* Sorts rows of one time by stack and set. */
static void sort_ties(
	const struct sorting *k, struct radix_item *v, struct radix_item *scratch, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t node = k->c->nodes.to[k->t->node.v[v[i].index]];
		v[i].key = node << 32 | k->c->sets.to[k->t->set.v[v[i].index]];
	}
	radix_sort(v, scratch, n);
}

/* The rows of one series by time, stack and set; equal rows become one. */
static enum status write_series(struct part_writer *w, const struct sorting *k, uint32_t series,
	const uint32_t *order, size_t n, struct err *e)
{
	struct radix_item *v = k->items;
	for (size_t i = 0; i < n; i++)
		v[i] = (struct radix_item){ (uint64_t)k->t->time_ns.v[order[i]] ^ (uint64_t)1 << 63,
			order[i] };
	radix_sort(v, v + n, n);
	for (size_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && v[j].key == v[i].key;)
			j++;
		if (j - i > 1)
			sort_ties(k, v + i, v + n, j - i);
	}
	size_t count = 0;
	for (size_t i = 0; i < n; i++) {
		struct row r = row_at(k, v[i].index, series), *last = &k->rows[count - (count > 0)];
		if (count && same_key(last, &r)) {
			last->value = (int64_t)((uint64_t)last->value + (uint64_t)r.value);
			last->count += r.count;
			continue;
		}
		if (count == ROWS_AT_ONCE) {
			enum status s = part_writer_rows(w, k->rows, count, e);
			if (s != OK)
				return s;
			count = 0;
		}
		k->rows[count++] = r;
	}
	return part_writer_rows(w, k->rows, count, e);
}

/* Sorts rows, which are in the order of series, by slice; does nothing if all are of one slice. */
static enum status sort_slices(const struct memtable *t, uint32_t *order, size_t n)
{
	if (n == 0)
		return OK;
	struct part_slice s = part_slice_of(t->time_ns.v[order[0]]);
	size_t same = 0;
	while (same < n && t->time_ns.v[order[same]] >= s.first_ns &&
		t->time_ns.v[order[same]] <= s.last_ns)
		same++;
	if (same == n)
		return OK;
	CLEANUP(free_cleanup) struct radix_item *items = malloc(2 * n * sizeof(*items));
	if (!items)
		return E_NOMEM;
	for (size_t i = 0; i < n; i++) {
		int64_t first = part_slice_of(t->time_ns.v[order[i]]).first_ns;
		items[i] = (struct radix_item){ (uint64_t)first ^ (uint64_t)1 << 63, order[i] };
	}
	radix_sort(items, items + n, n);
	for (size_t i = 0; i < n; i++)
		order[i] = items[i].index;
	return OK;
}

/* The end of the rows that are of the same slice and series as the one at `from`. */
static size_t group_end(const struct memtable *t, const uint32_t *order, size_t from, size_t n)
{
	uint32_t series = t->series.v[order[from]];
	struct part_slice s = part_slice_of(t->time_ns.v[order[from]]);
	size_t i = from;
	for (; i < n && t->series.v[order[i]] == series; i++)
		if (t->time_ns.v[order[i]] < s.first_ns || t->time_ns.v[order[i]] > s.last_ns)
			break;
	return i;
}

/* A counting sort by series, one by slice; then one series of a slice at a time. */
static enum status write_rows(struct part_writer *w, const struct memtable_snapshot *m,
	const struct canon *c, struct err *e)
{
	size_t n = m->row_count;
	uint32_t series_count = m->tabs.series_count;
	CLEANUP(free_cleanup) size_t *begin = calloc(series_count + 1, sizeof(*begin));
	CLEANUP(free_cleanup) uint32_t *order = malloc(MAX(n, (size_t)1) * sizeof(*order));
	if (!begin || !order)
		return err_set(e, E_NOMEM, "sorting %zu rows", n);
	const struct memtable *t = m->table;
	for (size_t i = 0; i < n; i++)
		begin[c->series.to[t->series.v[i]] + 1]++;
	for (uint32_t i = 0; i < series_count; i++)
		begin[i + 1] += begin[i];
	for (size_t i = 0; i < n; i++)
		order[begin[c->series.to[t->series.v[i]]]++] = (uint32_t)i;
	if (sort_slices(t, order, n) != OK)
		return err_set(e, E_NOMEM, "sorting %zu rows", n);
	size_t most = 0;
	for (size_t from = 0, to; from < n; from = to) {
		to = group_end(t, order, from, n);
		most = MAX(most, to - from);
	}
	CLEANUP(free_cleanup)
	struct radix_item *items = malloc(MAX(most, (size_t)1) * 2 * sizeof(*items));
	CLEANUP(free_cleanup) struct row *rows = malloc(ROWS_AT_ONCE * sizeof(*rows));
	if (!items || !rows)
		return err_set(e, E_NOMEM, "sorting %zu rows", most);
	struct sorting k = { t, c, items, rows };
	for (size_t from = 0, to; from < n; from = to) {
		to = group_end(t, order, from, n);
		uint32_t series = c->series.to[t->series.v[order[from]]];
		enum status s = write_series(w, &k, series, order + from, to - from, e);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status write_part(struct store *s, struct memtable *m, uint64_t id, struct err *e)
{
	struct memtable_snapshot snap;
	memtable_snapshot(m, &snap);
	CLEANUP(canon_deinit) struct canon c = { 0 };
	CLEANUP(part_meta_deinit) struct part_meta meta = { 0 };
	CLEANUP(part_writer_cleanup) struct part_writer *w = NULL;
	enum status st = canon_init(&c, &snap.tabs);
	if (st != OK)
		st = err_set(e, st, "no memory for the order of a part");
	meta.store_id = s->id;
	meta.order = PART_ORDER_TIME;
	struct sequence_range covers = { m->first_sequence, m->last_sequence };
	if (st == OK && !VEC_PUSH(&meta.covers, covers))
		st = err_set(e, E_NOMEM, "a part's META");
	if (st == OK)
		st = part_writer_open(s->place, id, &snap.tabs, &c, &w, e);
	if (st == OK)
		part_writer_young(w);
	if (st == OK)
		st = write_rows(w, &snap, &c, e);
	if (st == OK)
		st = part_writer_finish(w, &snap.tabs, &c, &meta, m->batches.v, m->batches.len, e);
	memtable_unref(snap.table);
	return st;
}

/* A frozen table may wait long for a disk with room: until it is a part, the log is all that its
 * samples have. */
uint64_t store_written_until(struct store *s)
{
	lock_take(&s->lock);
	uint64_t until = s->frozen ? s->frozen->first_sequence - 1 : s->frozen_until;
	lock_release(&s->lock);
	return until;
}

static enum status flush_frozen(struct store *s, struct memtable *m, struct err *e)
{
	struct part *p = NULL;
	enum status st = store_check_home(s, e);
	if (st == OK)
		st = store_check_decided(s, e);
	if (st != OK)
		return st;
	uint64_t id = store_next_part(s), last = m->last_sequence;
	st = write_part(s, m, id, e);
	if (st == OK)
		st = part_open_at(s->place, id, &p, e);
	if (st == OK)
		st = store_change_parts(
			s, &(struct parts_change){ .fresh = p, .frozen_is_in = true }, e);
	if (st != OK) {
		part_unref(p);
		store_discard(s, id);
		return st;
	}
	memtable_unref(m);
	metric_add(&s->metrics.flushes, 1);
	struct err release = { 0 };
	if (log_release(s->log, last, &release) != OK)
		store_say(s, "a log segment stays longer than needed: %s", release.text);
	return OK;
}

enum status store_flush_now(struct store *s, struct err *e)
{
	enum status st = OK;
	struct err err = { 0 };
	lock_take(&s->flush_lock);
	for (int round = 0; round < 2 && st == OK; round++) {
		lock_take(&s->lock);
		struct memtable *m = s->frozen;
		lock_release(&s->lock);
		if (m)
			st = flush_frozen(s, m, &err);
		if (st == OK && round == 0)
			st = freeze(s, &err);
	}
	(void)store_relieve(s);
	lock_take(&s->lock);
	s->flush_status = st;
	s->flush_err = err;
	pthread_cond_broadcast(&s->relieved);
	pthread_cond_signal(&s->merge_wake);
	if (st != OK)
		pthread_cond_signal(&s->flush_wake); /* tries again */
	lock_release(&s->lock);
	lock_release(&s->flush_lock);
	if (st != OK && e)
		*e = err;
	return st;
}
