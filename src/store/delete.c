/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memtable becomes a part first, and the log is emptied of what parts hold (its segments are
 * removed, not used again: their old bytes would stay behind the new ones). Then each part with
 * rows that match is rewritten without them, or removed when nothing is left. Merging waits
 * meanwhile, so that no part appears that was not looked at.
 *
 * A crash leaves some parts rewritten and others not: then there was no answer, and asking again
 * does the rest.
 */
#include "store/rewrite.h"

#include <stdlib.h>

struct deleting {
	struct store *s;
	struct store_view *v;
	const struct samples_query *q;
	struct budget budget;
	struct store_deleted done;
	uint64_t stuck; /* files that could not be removed */
};

/* After that no record of the log holds rows that are in a part. */
static enum status empty_log(struct store *s, struct err *e)
{
	enum status st = log_check_kept(s->log, e);
	if (st == OK)
		st = log_forget_free(s->log, e);
	if (st == OK)
		st = store_flush_now(s, e);
	if (st != OK)
		return st;
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
	w.sources[0].rule = (struct rewrite_rule){
		.series = pick.series,
		.sets = pick.sets,
		.from_ns = d->q->from_ns,
		.last_ns = d->q->to_ns == INT64_MAX ? INT64_MAX : d->q->to_ns - 1,
	};
	s = rewrite_part(&w, false, e);
	if (s == E_CORRUPT)
		d->v->damaged = w.damaged;
	if (s != OK)
		return s;
	d->done.rows += w.sources[0].left_rows;
	d->done.samples += w.sources[0].left_samples;
	d->done.parts += w.sources[0].left_rows != 0;
	d->stuck += !w.removed;
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

static enum status delete_rows(struct deleting *d, struct str tenant, struct err *e)
{
	struct store *s = d->s;
	enum status st = store_view_open(s, tenant, &d->v, e);
	if (st != OK)
		return st;
	d->budget = (struct budget){ .limit = UINT64_MAX };
	st = delete_from_parts(d, e);
	store_view_close(d->v);
	if (d->done.parts == 0)
		return st;
	enum status synced = store_io_sync_dir(s->parts_dir, st == OK ? e : NULL);
	store_manifest_write(s);
	metric_add(&s->metrics.deleted_rows, d->done.rows);
	if (st == OK && synced == OK && d->stuck)
		return err_set(e, E_IO,
			"the rows are gone from all answers, but %llu old files could not be "
			"removed; they go at the next start",
			(unsigned long long)d->stuck);
	return st == OK ? synced : st;
}

enum status store_delete(struct store *s, struct str tenant, const struct samples_query *q,
	struct store_deleted *out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	struct deleting d = { .s = s, .q = q };
	enum status st = query_check(q, e);
	if (st != OK)
		return st;
	log_reuse(s->log, false);
	st = empty_log(s, e);
	if (st == OK) {
		pthread_mutex_lock(&s->merge_lock);
		st = delete_rows(&d, tenant, e);
		pthread_mutex_unlock(&s->merge_lock);
	}
	log_reuse(s->log, true);
	if (st == OK)
		*out = d.done;
	return st;
}
