/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Retention. Each series belongs to one group: its first rule, or the rest. All rows of a group in
 * a part are deleted together: once the newest of them has passed the group's age, or newer parts
 * have as many bytes of the group as its size allows (its share of a part's bytes is by rows). A
 * part of which every group goes is removed, any other is rewritten without them. A sample may stay
 * a day longer than configured, since a part spans up to a day. If late samples made a part longer,
 * older rows are cut off group by group, at most once a day.
 *
 * The total size counts everything in the directory; only parts can go, the oldest first.
 */
#include "store/retain/retain.h"
#include "base/clock.h"
#include "store/merge/merge.h"
#include "store/retain/rules.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS_MAX (STORE_RULES_MAX + 1)
#define OTHER_FILES_MAX 1000000
#define PART_SPAN_NS (24 * 3600 * NS_PER_SEC) /* of samples that came in time */
#define QUARANTINE_BYTES_MIN ((uint64_t)64 << 20)
#define QUARANTINE_BYTES_MAX ((uint64_t)1 << 30)
#define EXPORT_AGE_S 3600
#define QUARANTINE_NAMES_BYTES ((size_t)16 << 20)

/* The rows of each group in a part; remembered as long as the part exists. */
struct part_groups {
	uint64_t id;
	uint64_t rows[GROUPS_MAX];
	int64_t first_ns[GROUPS_MAX];
	int64_t last_ns[GROUPS_MAX];
};

struct candidate {
	struct part *part;
	const struct part_groups *groups;
	uint64_t present, gone; /* bit sets of groups */
	uint64_t old;           /* groups with samples that are a day too old */
	bool aged;              /* some groups are deleted by age */
};

struct retaining {
	struct store *s;
	int64_t now_ns;
	struct candidate *v; /* newest first */
	size_t count;
	int64_t limit_ns[GROUPS_MAX]; /* older samples of the group have expired */
};

static void retaining_deinit(struct retaining *r)
{
	for (size_t i = 0; i < r->count; i++)
		part_unref(r->v[i].part);
	free(r->v);
}

static bool stopping(void *ctx)
{
	struct store *s = ctx;
	lock_take(&s->lock);
	bool stop = s->stopping;
	lock_release(&s->lock);
	return stop;
}

static int newest_first(const void *a, const void *b)
{
	const struct part_meta *x = part_meta(((const struct candidate *)a)->part);
	const struct part_meta *y = part_meta(((const struct candidate *)b)->part);
	if (x->last_ns != y->last_ns)
		return x->last_ns > y->last_ns ? -1 : 1;
	return x->id > y->id ? -1 : x->id < y->id;
}

static enum status take_parts(struct retaining *r)
{
	struct store *s = r->s;
	lock_take(&s->lock);
	r->v = calloc(MAX(s->parts.len, (size_t)1), sizeof(*r->v));
	for (size_t i = 0; r->v && i < s->parts.len; i++)
		r->v[r->count++].part = part_ref(s->parts.v[i]);
	lock_release(&s->lock);
	if (r->count)
		qsort(r->v, r->count, sizeof(*r->v), newest_first);
	return r->v ? OK : E_NOMEM;
}

/* ---- groups ---- */

static enum status count_groups(
	struct store *s, struct part *p, struct part_groups *out, struct err *e)
{
	struct tabs t;
	enum status st = part_pin(p, PART_LOAD_LABELS, UINT64_MAX, &t, e);
	if (st != OK)
		return st;
	*out = (struct part_groups){ .id = part_meta(p)->id };
	for (uint32_t i = 0; i < t.series_count; i++) {
		size_t g = rules_find(s->config.rules, s->config.rule_count, &t, i);
		if (t.series[i].rows == 0)
			continue;
		bool none = out->rows[g] == 0;
		if (none || t.series[i].last_ns > out->last_ns[g])
			out->last_ns[g] = t.series[i].last_ns;
		if (none || t.series[i].first_ns < out->first_ns[g])
			out->first_ns[g] = t.series[i].first_ns;
		out->rows[g] += t.series[i].rows;
	}
	part_unpin(p, PART_LOAD_LABELS);
	return OK;
}

static const struct part_groups *find_known(const struct part_groups *v, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (v[i].id == id)
			return &v[i];
	return NULL;
}

/* Without rules all rows are one group; META has its rows and times. */
static void group_of_all(const struct part *p, struct part_groups *out)
{
	const struct part_meta *m = part_meta(p);
	*out = (struct part_groups){ .id = m->id,
		.rows = { m->rows },
		.first_ns = { m->first_ns },
		.last_ns = { m->last_ns } };
}

/* The groups of each candidate, in memory that the store keeps for the next time. A part that
 * cannot be read is set aside, and is no candidate. */
static enum status learn_groups(struct retaining *r)
{
	struct store *s = r->s;
	struct part_groups *fresh = calloc(MAX(r->count, (size_t)1), sizeof(*fresh));
	size_t kept = 0;
	if (!fresh)
		return E_NOMEM;
	for (size_t i = 0; i < r->count; i++) {
		struct err e = { 0 };
		struct part *p = r->v[i].part;
		const struct part_groups *known =
			find_known(s->groups, s->group_count, part_meta(p)->id);
		enum status st = OK;
		if (known)
			fresh[kept] = *known;
		else if (s->config.rule_count == 0)
			group_of_all(p, &fresh[kept]);
		else
			st = count_groups(s, p, &fresh[kept], &e);
		if (st == E_CORRUPT)
			store_quarantine(s, p, err_text(&e, st));
		if (st != OK) {
			part_unref(p);
			continue;
		}
		r->v[kept].part = p;
		r->v[kept].groups = &fresh[kept];
		kept++;
	}
	r->count = kept;
	free(s->groups);
	s->groups = fresh;
	s->group_count = kept;
	for (size_t i = 0; i < kept; i++)
		for (size_t g = 0; g <= s->config.rule_count; g++)
			r->v[i].present |= (uint64_t)(fresh[i].rows[g] != 0) << g;
	return OK;
}

/* ---- what is deleted ---- */

static uint64_t share(const struct candidate *c, uint64_t groups)
{
	const struct part_meta *m = part_meta(c->part);
	uint64_t rows = 0;
	for (size_t g = 0; g < GROUPS_MAX; g++)
		if (groups & (uint64_t)1 << g)
			rows += c->groups->rows[g];
	if (m->rows == 0 || rows >= m->rows)
		return part_file_bytes(c->part);
	return (uint64_t)((double)part_file_bytes(c->part) * (double)rows / (double)m->rows);
}

static void by_age_and_size(struct retaining *r, size_t g, int64_t time_ns, uint64_t bytes)
{
	uint64_t bit = (uint64_t)1 << g, sum = 0;
	time_ns = r->now_ns == AGE_UNKNOWN ? 0 : time_ns;
	r->limit_ns[g] = r->now_ns - time_ns;
	for (size_t i = 0; i < r->count; i++) {
		struct candidate *c = &r->v[i];
		if (!(c->present & bit))
			continue;
		sum += share(c, bit);
		bool aged = time_ns && c->groups->last_ns[g] < r->limit_ns[g];
		c->aged |= aged;
		if (aged || (bytes && sum > bytes))
			c->gone |= bit;
		else if (time_ns && c->groups->first_ns[g] < r->limit_ns[g] - PART_SPAN_NS)
			c->old |= bit;
	}
}

static void by_total_size(struct retaining *r, uint64_t other_bytes)
{
	uint64_t limit = r->s->config.retention_bytes;
	uint64_t sum = MIN(other_bytes, limit / 2);
	for (size_t i = 0; limit && i < r->count; i++) {
		struct candidate *c = &r->v[i];
		sum += share(c, c->present & ~c->gone);
		if (sum > limit)
			c->gone = c->present;
	}
}

/* Bytes of all files but parts: log, quarantine, symbols, whatever else lies in the directory. */
static uint64_t other_bytes(struct store *s)
{
	char *const roots[] = { s->path, NULL };
	uint64_t bytes = 0, files = 0;
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *x; fts && (x = fts_read(fts)) && files < OTHER_FILES_MAX; files++) {
		if (x->fts_info == FTS_D && strcmp(x->fts_path, s->parts_dir) == 0)
			(void)fts_set(fts, x, FTS_SKIP);
		else if (x->fts_info == FTS_F)
			bytes += (uint64_t)x->fts_statp->st_blocks * 512;
	}
	if (fts)
		(void)fts_close(fts);
	return bytes;
}

/* ---- quarantine ---- */

struct set_aside {
	struct str name;
	uint64_t bytes;
	int64_t time_s;
};

static int newest_file_first(const void *a, const void *b)
{
	const struct set_aside *x = a, *y = b;
	return x->time_s > y->time_s ? -1 : x->time_s < y->time_s;
}

/* Limits the quarantine to a tenth of the total size, from 64 MiB to 1 GiB: the files set aside
 * longest ago are deleted first. */
static void trim_quarantine(struct store *s)
{
	char path[STORE_PATH_MAX];
	struct str *names;
	size_t n;
	uint64_t limit = s->config.retention_bytes, sum = 0;
	limit = limit ? MIN(MAX(limit / 10, QUARANTINE_BYTES_MIN), QUARANTINE_BYTES_MAX)
		      : QUARANTINE_BYTES_MAX;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, QUARANTINE_NAMES_BYTES);
	if (os_list_dir(s->quarantine_dir, &a, &names, &n, NULL) != OK)
		return;
	CLEANUP(free_cleanup) struct set_aside *v = calloc(MAX(n, (size_t)1), sizeof(*v));
	for (size_t i = 0; v && i < n; i++) {
		struct stat st;
		v[i].name = names[i];
		if (store_path(path, NULL, "%s/%.*s", s->quarantine_dir, STR_ARG(names[i])) == OK &&
			lstat(path, &st) == 0) {
			v[i].bytes = (uint64_t)st.st_size;
			v[i].time_s = st.st_mtim.tv_sec;
		}
	}
	if (v && n)
		qsort(v, n, sizeof(*v), newest_file_first);
	for (size_t i = 0; v && i < n; i++) {
		sum += v[i].bytes;
		if (sum <= limit || str_ends(v[i].name, STR(".reason")))
			continue;
		if (store_path(path, NULL, "%s/%.*s", s->quarantine_dir, STR_ARG(v[i].name)) ==
				OK &&
			store_io_unlink(path, NULL) == OK)
			store_say(s, "%s was set aside long ago, and makes room", path);
	}
}

/* Removes files of exports that a dying process left. */
static void trim_exports(struct store *s, int64_t now_ns)
{
	char dir[STORE_PATH_MAX], path[STORE_PATH_MAX];
	struct str *names;
	size_t n;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, QUARANTINE_NAMES_BYTES);
	if (store_path(dir, NULL, "%s/export", s->path) != OK || access(dir, F_OK) < 0 ||
		os_list_dir(dir, &a, &names, &n, NULL) != OK)
		return;
	for (size_t i = 0; i < n; i++) {
		struct stat st;
		if (store_path(path, NULL, "%s/%.*s", dir, STR_ARG(names[i])) == OK &&
			lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
			st.st_mtim.tv_sec < now_ns / NS_PER_SEC - EXPORT_AGE_S)
			(void)!store_io_unlink(path, NULL);
	}
}

/* ---- doing it ---- */

/* There is no memory to rewrite the part: it is removed when all of it has expired. */
static enum status leave(struct store *s, const struct candidate *c, const struct err *e)
{
	rewrite_remember(s, part_meta(c->part)->id, REWRITE_RETAINED);
	store_say(s, "what expired in %s stays until all of it has: %.200s", part_path(c->part),
		err_text(e, E_LIMIT));
	return OK;
}

/* Rewrites a part without the rows of some groups up to a time. */
static enum status rewrite_without(
	struct retaining *r, struct candidate *c, uint64_t groups, int64_t last_ns, struct err *e)
{
	struct store *s = r->s;
	struct source src = { .part = c->part, .pinned = PART_LOAD_ALL };
	CLEANUP(free_cleanup) uint8_t *series = NULL;
	CLEANUP(rewrite_deinit) struct rewrite w = { 0 };
	enum status st = rewrite_init(&w, s, 1, e);
	if (st == OK)
		st = part_pin(c->part, PART_LOAD_ALL, REWRITE_BYTES(s), &src.tabs, e);
	if (st == E_LIMIT)
		return leave(s, c, e);
	if (st != OK)
		return st;
	series = calloc(MAX(src.tabs.series_count, 1u), 1);
	for (uint32_t i = 0; series && i < src.tabs.series_count; i++) {
		size_t g = rules_find(s->config.rules, s->config.rule_count, &src.tabs, i);
		series[i] = (groups >> g) & 1;
	}
	w.cancel = stopping;
	w.cancel_ctx = s;
	w.sources[0].from = &src;
	w.sources[0].rule =
		(struct merge_filter){ .series = series, .from_ns = INT64_MIN, .last_ns = last_ns };
	st = series ? rewrite_part(&w, false, e) : err_set(e, E_NOMEM, "retention");
	if (st == OK)
		metric_add(&s->metrics.expired_rows, w.sources[0].left_rows);
	if (st == OK && (c->aged || c->old))
		store_say(s, "of %s %llu rows have expired", part_path(c->part),
			(unsigned long long)w.sources[0].left_rows);
	part_unpin(c->part, PART_LOAD_ALL);
	return st == E_LIMIT ? leave(s, c, e) : st;
}

static void drop(struct retaining *r, struct candidate *c)
{
	struct store *s = r->s;
	struct err e = { 0 };
	if (rewrite_install(s, c->part, NULL, &e) != OK)
		return; /* another thread removed the part meanwhile, or this is tried again later
			 */
	if (c->aged)
		store_say(s, "%s has expired, with %llu rows, the newest of %s", part_path(c->part),
			(unsigned long long)part_meta(c->part)->rows,
			time_text(part_meta(c->part)->last_ns).text);
	metric_add(&s->metrics.expired, 1);
	metric_add(&s->metrics.expired_rows, part_meta(c->part)->rows);
}

/* Removes from the log what parts have: while it has records of a part, the part may not be
 * deleted, since the next start would bring its samples back. False: that failed. */
static bool log_is_behind(struct store *s)
{
	struct err e = { 0 };
	if (log_release(s->log, store_written_until(s), &e) == OK)
		return true;
	store_say(s, "nothing is dropped while the log cannot be: %s", e.text);
	return false;
}

/* Deletes rows of a part that is kept. */
static enum status shorten(struct retaining *r, struct candidate *c, struct err *e)
{
	struct store *s = r->s;
	if (clock_monotonic_ns() < s->rewrite_retry_ns ||
		rewrite_was_seen(s, part_meta(c->part)->id, REWRITE_RETAINED))
		return OK;
	if (c->gone)
		return rewrite_without(r, c, c->gone, INT64_MAX, e);
	unsigned g = (unsigned)__builtin_ctzll(c->old);
	return rewrite_without(r, c, (uint64_t)1 << g, r->limit_ns[g] - 1, e);
}

static void carry_out(struct retaining *r)
{
	struct store *s = r->s;
	bool any = false;
	for (size_t i = r->count; i-- > 0 && !stopping(s);) {
		struct candidate *c = &r->v[i];
		struct err e = { 0 };
		enum status st = OK;
		if (!c->gone && !c->old)
			continue;
		if (!any && !log_is_behind(s))
			return;
		any = true;
		if (c->gone == c->present)
			drop(r, c);
		else
			st = shorten(r, c, &e);
		if (st == E_CORRUPT)
			store_quarantine(s, c->part, err_text(&e, st));
		else if (st != OK && st != E_CANCELED && st != E_UNAVAILABLE) {
			s->rewrite_retry_ns = clock_monotonic_ns() + MERGE_RETRY_NS;
			store_say(s, "what expired in %s stays for now: %.200s", part_path(c->part),
				err_text(&e, st));
		}
	}
}

static void retain(struct store *s, int64_t now_ns)
{
	const struct store_config *c = &s->config;
	CLEANUP(retaining_deinit) struct retaining r = { .s = s, .now_ns = now_ns };
	trim_quarantine(s);
	trim_exports(s, now_ns);
	uint64_t other = other_bytes(s);
	metric_set(&s->metrics.other_bytes, other);
	if (!c->retention_ns && !c->retention_bytes && !c->rule_count)
		return;
	lock_take(&s->merge_lock); /* merging removes no part while this is done */
	if (take_parts(&r) == OK && learn_groups(&r) == OK) {
		for (size_t g = 0; g < c->rule_count; g++)
			by_age_and_size(&r, g, c->rules[g].time_ns, c->rules[g].bytes);
		by_age_and_size(&r, c->rule_count, c->retention_ns, 0);
		by_total_size(&r, other);
		carry_out(&r);
	}
	lock_release(&s->merge_lock);
}

void store_retain(struct store *s, int64_t now_ns)
{
	lock_take(&s->retain_lock);
	retain(s, now_ns);
	lock_release(&s->retain_lock);
}
