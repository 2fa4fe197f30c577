/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Old parts are rewritten with coarser times and without some sample labels: rows that become equal
 * are summed, so that sums by series and stack stay what they were. A part is thinned when its
 * newest sample is old enough, and META's resolution is finer than wanted or it has a label to
 * drop.
 */
#include "base/clock.h"
#include "store/merge/merge.h"
#include "store/retain/retain.h"
#include "store/retain/rules.h"

#include <stdlib.h>

#define THIN_SEEN_MAX 65536

static bool stopping(void *ctx)
{
	struct store *s = ctx;
	lock_take(&s->lock);
	bool stop = s->stopping;
	lock_release(&s->lock);
	return stop;
}

static bool to_drop(const struct thinning *t, struct str name)
{
	bool drop = t->all_names;
	for (size_t i = 0; i < t->name_count; i++)
		drop |= str_eq(t->names[i], name);
	return drop;
}

/* The part's label names to drop. The part is pinned. */
static size_t names_to_drop(const struct tabs *t, const struct thinning *how, struct str *out)
{
	size_t n = 0;
	for (uint32_t i = 0; i < t->name_count; i++)
		if (to_drop(how, t->names[i]))
			out[n++] = t->names[i];
	return n;
}

static enum status thin_part(
	struct store *s, struct part *p, const struct thinning *how, bool *out_done, struct err *e)
{
	struct source src = { .part = p, .pinned = PART_LOAD_ALL };
	struct str names[TABLES_NAMES_MAX];
	CLEANUP(rewrite_deinit) struct rewrite w = { 0 };
	enum status st = part_pin(p, PART_LOAD_LABELS, REWRITE_BYTES(s), &src.tabs, e);
	if (st != OK)
		return st;
	size_t n = names_to_drop(&src.tabs, how, names);
	bool finer = part_meta(p)->resolution_ns < how->resolution_ns;
	*out_done = n || finer;
	if (*out_done)
		st = part_pin(p, PART_LOAD_ALL, REWRITE_BYTES(s), &src.tabs, e);
	if (st == OK && *out_done) {
		st = rewrite_init(&w, s, 1, e);
		if (st == OK) {
			w.sources[0].from = &src; /* no rule: all rows */
			w.cancel = stopping;
			w.cancel_ctx = s;
			/* Also if only labels are dropped: without its trace a sample has no reason
			 * for an unrounded time. */
			w.resolution_ns = finer ? how->resolution_ns : part_meta(p)->resolution_ns;
			w.drop = names;
			w.drop_count = n;
			st = rewrite_part(&w, true, e);
		}
		part_unpin(p, PART_LOAD_ALL);
	}
	part_unpin(p, PART_LOAD_LABELS);
	return st;
}

/* Whether this part was tried with these rules before, so that a part without such labels, or one
 * that does not fit into memory, is not tried each minute. */
bool rewrite_was_seen(const struct store *s, uint64_t id, uint64_t rules)
{
	for (size_t i = 0; i < s->thin_seen.len; i++)
		if (s->thin_seen.v[i].id == id && s->thin_seen.v[i].rules == rules)
			return true;
	return false;
}

void rewrite_remember(struct store *s, uint64_t id, uint64_t rules)
{
	struct thin_seen x = { id, rules };
	if (s->thin_seen.len >= THIN_SEEN_MAX)
		VEC_CLEAR(&s->thin_seen);
	(void)!VEC_PUSH(&s->thin_seen, x); /* without memory it is looked at again */
}

static bool may_be_due(
	struct store *s, const struct part_meta *m, int64_t now_ns, struct thinning *how)
{
	int64_t age;
	if (__builtin_sub_overflow(now_ns, m->last_ns, &age))
		age = now_ns > m->last_ns ? INT64_MAX : 0;
	rules_thin(s->config.thin, s->config.thin_count, age, how);
	bool finer = m->resolution_ns < how->resolution_ns;
	return (finer || how->name_count || how->all_names) &&
	       !rewrite_was_seen(s, m->id, how->rules);
}

/* An error in one part must not keep the others from being thinned. */
static enum status settle(struct store *s, struct part *p, const struct thinning *how, bool done,
	enum status st, struct err *e)
{
	bool leave = st == E_LIMIT;
	if (st == E_CORRUPT) {
		store_quarantine(s, p, err_text(e, st));
		return OK;
	}
	if (leave) {
		metric_add(&s->metrics.unthinned, 1);
		store_say(s, "%s stays as exact as it is: %.200s", part_path(p), err_text(e, st));
	}
	if (st == OK && done)
		store_say(s, "%s is old, and was made coarser", part_path(p));
	if (leave || (st == OK && !done))
		rewrite_remember(s, part_meta(p)->id, how->rules);
	return leave ? OK : st;
}

static enum status thin_one(struct store *s, int64_t now_ns, bool *out, struct err *e)
{
	enum status st = OK;
	struct thinning how;
	*out = false;
	if (s->config.thin_count == 0 || now_ns == AGE_UNKNOWN ||
		clock_monotonic_ns() < s->rewrite_retry_ns)
		return OK;
	lock_take(&s->merge_lock);
	lock_take(&s->lock);
	size_t n = s->parts.len, count = 0;
	CLEANUP(free_cleanup) struct part **v = calloc(MAX(n, (size_t)1), sizeof(struct part *));
	for (size_t i = 0; v && i < n; i++)
		if (may_be_due(s, part_meta(s->parts.v[i]), now_ns, &how))
			v[count++] = part_ref(s->parts.v[i]);
	lock_release(&s->lock);
	for (size_t i = 0; i < count; i++) {
		bool done = false;
		if (st == OK && !*out && may_be_due(s, part_meta(v[i]), now_ns, &how)) {
			st = thin_part(s, v[i], &how, &done, e);
			*out = done && st == OK;
			st = settle(s, v[i], &how, done, st, e);
		}
		part_unref(v[i]);
	}
	lock_release(&s->merge_lock);
	if (*out)
		metric_add(&s->metrics.thinned, 1);
	if (st == E_CANCELED)
		st = OK;
	if (st != OK)
		s->rewrite_retry_ns = clock_monotonic_ns() + MERGE_RETRY_NS;
	return v ? st : err_set(e, E_NOMEM, "thinning");
}

enum status store_thin_step(struct store *s, int64_t now_ns, bool *out, struct err *e)
{
	lock_take(&s->retain_lock);
	enum status st = thin_one(s, now_ns, out, e);
	lock_release(&s->retain_lock);
	return st;
}
