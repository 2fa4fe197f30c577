/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First the memtable becomes a part, and log segments whose records are in parts are removed (not
 * reused: their old bytes would stay behind the new ones). Then each part with matching rows is
 * rewritten without them, or removed if no row is left. Merging waits meanwhile, so that no new
 * part is missed.
 *
 * A full disk is a common reason to delete, so steps that need no room come first. Parts without
 * remaining rows are removed, smaller parts are rewritten before larger ones, and a part that did
 * not fit is tried again as long as something was freed; then the memtable, if that did not fit.
 *
 * After a crash some parts are rewritten and others are not. The client got no answer then, and a
 * second request does the rest.
 */
#include "store/merge/merge.h"

#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct deleting {
	struct store *s;
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct store_deleted done;
	uint64_t stuck; /* files that could not be removed */
	/* Parts for which the disk had no room in this round, and the smallest of them. */
	uint64_t unfit;
	struct part *smallest;
};

/* Removes log segments until no record has rows that are in a part. *out_full: the disk had no room
 * for the rows in memory, and *e says so. */
static enum status empty_log(struct store *s, bool *out_full, struct err *e)
{
	struct err flush = { 0 };
	enum status st = log_check_kept(s->log, e);
	if (st == OK)
		st = log_forget_free(s->log, e);
	enum status flushed = st == OK ? store_flush_now(s, &flush) : OK;
	*out_full = flushed == E_NOSPACE;
	if (flushed != OK && e)
		*e = flush;
	if (st == OK && flushed != OK && flushed != E_NOSPACE)
		return flushed;
	if (st == OK)
		st = log_release(s->log, store_written_until(s), e);
	return st == OK ? store_io_sync_dir(s->log_dir, e) : st;
}

static enum status delete_from(struct deleting *d, struct source *src, struct err *e)
{
	CLEANUP(pick_deinit) struct pick pick = { 0 };
	CLEANUP(rewrite_deinit) struct rewrite w = { 0 };
	enum status s = source_pick(d->v, src, d->q, &d->budget, &pick, e);
	if (s == OK && pick.wanted)
		s = source_load(d->v, src, PART_LOAD_ALL, &d->budget, e);
	if (s != OK || !pick.wanted)
		return s;
	s = rewrite_init(&w, d->s, 1, e);
	if (s != OK)
		return s;
	w.cancel = d->q->cancel;
	w.cancel_ctx = d->q->cancel_ctx;
	w.sources[0].from = src;
	w.sources[0].rule = (struct merge_filter){
		.series = pick.series,
		.sets = pick.sets,
		.from_ns = d->q->from_ns,
		.last_ns = d->q->to_ns == INT64_MAX ? INT64_MAX : d->q->to_ns - 1,
	};
	s = rewrite_part(&w, false, e);
	if (s == E_CORRUPT)
		d->v->damaged = w.damaged;
	if (s == E_NOSPACE) {
		if (d->unfit++ == 0)
			d->smallest = src->part;
		return OK;
	}
	if (s != OK)
		return s;
	d->done.rows += w.sources[0].left_rows;
	d->done.samples += w.sources[0].left_samples;
	d->done.parts += w.sources[0].left_rows != 0;
	d->stuck += store_is_garbage(d->s, part_meta(src->part)->id);
	return OK;
}

/* A damaged part is set aside: it answers no query any more. */
static enum status delete_from_parts(struct deleting *d, struct err *e)
{
	for (size_t i = 0; i < d->v->source_count;) {
		struct source *src = &d->v->sources[i];
		uint64_t used = d->budget.used;
		enum status s = src->part ? delete_from(d, src, e) : OK;
		d->budget.used = used;
		if (s == OK) {
			source_done(d->v, src);
			i++;
		} else if (view_heal(d->v, s, e)) {
			d->done.damaged++; /* another source is at `i` now */
		} else {
			return s;
		}
	}
	return OK;
}

static int smaller_first(const void *a, const void *b)
{
	const struct part *x = ((const struct source *)a)->part;
	const struct part *y = ((const struct source *)b)->part;
	uint64_t of_x = x ? part_file_bytes(x) : 0, of_y = y ? part_file_bytes(y) : 0;
	return of_x < of_y ? -1 : of_x > of_y;
}

static enum status no_room(const struct deleting *d, struct err *e)
{
	struct statvfs disk = { 0 };
	(void)statvfs(d->s->path, &disk);
	return err_set(e, E_NOSPACE,
		"the disk is full: up to %llu bytes are needed to write %s without these rows, "
		"%llu are free; some rows may be gone, ask again when there is room",
		(unsigned long long)part_file_bytes(d->smallest), part_path(d->smallest),
		(unsigned long long)disk.f_bavail * disk.f_frsize);
}

/* One round over all parts. */
static enum status delete_round(struct deleting *d, struct str tenant, struct err *e)
{
	enum status st = store_view_open(d->s, tenant, &d->v, e);
	if (st != OK)
		return st;
	d->unfit = 0;
	d->budget = (struct budget){ .limit = REWRITE_BYTES(d->s) };
	if (d->v->source_count)
		qsort(d->v->sources, d->v->source_count, sizeof(*d->v->sources), smaller_first);
	st = delete_from_parts(d, e);
	if (st == OK && d->unfit)
		st = no_room(d, e);
	store_view_close(d->v);
	return st;
}

static enum status delete_rows(struct deleting *d, struct str tenant, struct err *e)
{
	struct store *s = d->s;
	uint64_t before, unfit = UINT64_MAX;
	enum status st;
	do {
		before = unfit;
		st = delete_round(d, tenant, e);
		unfit = d->unfit;
	} while (st == E_UNAVAILABLE && unfit && unfit < before);
	if (d->done.parts == 0)
		return st;
	enum status synced = place_sync(s->place, st == OK ? e : NULL);
	metric_add(&s->metrics.deleted_rows, d->done.rows);
	if (st == OK && synced == OK && d->stuck)
		return err_set(e, E_IO,
			"the rows are gone from all answers, but %llu old files could not be "
			"removed; they go at the next start",
			(unsigned long long)d->stuck);
	return st == OK ? synced : st;
}

/* Refuses if there is a part that only a newer firn can read: its samples would come back with that
 * firn. */
static enum status check_newer(struct store *s, struct err *e)
{
	for (size_t i = 0; i < s->newer.len; i++) {
		struct object *o;
		if (place_open(s->place, s->newer.v[i], &o, NULL) != OK)
			continue; /* moved away meanwhile */
		enum status st = err_set(e, E_UNSUPPORTED,
			"nothing is deleted: %s is of a newer firn, and may hold such samples; ask "
			"that firn, or move the file away first",
			o->name);
		object_close(o);
		return st;
	}
	return OK;
}

enum status store_delete(struct store *s, struct str tenant, const struct samples_query *q,
	struct store_deleted *out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	struct deleting d = { .s = s, .q = q };
	enum status st = query_check(q, e);
	if (st == OK)
		st = check_newer(s, e);
	if (st != OK)
		return st;
	bool full = true;
	log_reuse(s->log, false);
	for (int round = 0; round < 2 && full && st == OK; round++) {
		struct err why = { 0 };
		st = empty_log(s, &full, &why);
		if (st == OK && (!full || round == 0)) {
			lock_take(&s->merge_lock);
			st = delete_rows(&d, tenant, &why);
			lock_release(&s->merge_lock);
		} else if (st == OK) {
			st = err_prefix(&why, E_UNAVAILABLE,
				"what is in memory has no room on the disk to be rewritten");
		}
		if (st != OK)
			*e = why;
	}
	log_reuse(s->log, true);
	if (st == OK)
		*out = d.done;
	return st;
}
