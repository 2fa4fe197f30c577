/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of parts: names, numbers, quarantine.
 *
 * A file whose fate a failure left open (renamed, but the directory's sync failed; not removed) is
 * "doubtful": the next part that is written says that it replaces it, so that at the next start it
 * cannot stand beside a part with the same samples.
 */
#include "base/clock.h"
#include "store/state/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define DOUBTFUL_MAX (PART_REPLACES_MAX / 2) /* a part replaces its sources as well */
#define DOUBTS_AHEAD 16

uint64_t store_next_part(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	uint64_t id = s->next_part++;
	pthread_mutex_unlock(&s->lock);
	return id;
}

/* On a sound disk each removal is made durable at once. So entries remain only if the disk fails,
 * and not one for each try on a full disk. */
static bool settle(struct store *s, const uint64_t *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (place_remove(s->place, ids[i], NULL) != OK)
			return false;
	return place_sync(s->place, NULL) == OK;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static void forget_doubts(struct store *s, uint64_t *gone, size_t n)
{
	size_t kept = 0;
	qsort(gone, n, sizeof(*gone), by_number);
	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < s->doubtful.len; i++)
		if (!bsearch(&s->doubtful.v[i], gone, n, sizeof(*gone), by_number))
			s->doubtful.v[kept++] = s->doubtful.v[i];
	s->doubtful.len = kept;
	pthread_mutex_unlock(&s->lock);
}

/* Too many to carry along: the disk may take changes again. */
static void settle_all(struct store *s)
{
	pthread_mutex_lock(&s->lock);
	size_t n = s->doubtful.len;
	CLEANUP(free_cleanup) uint64_t *ids = malloc(MAX(n, (size_t)1) * sizeof(*ids));
	if (ids && n)
		memcpy(ids, s->doubtful.v, n * sizeof(*ids));
	pthread_mutex_unlock(&s->lock);
	if (ids && n && settle(s, ids, n))
		forget_doubts(s, ids, n);
}

static enum status add_doubtful(struct store *s, struct part_meta *m, struct err *e)
{
	size_t n = s->doubtful.len;
	if (n >= DOUBTFUL_MAX)
		return err_set(e, E_UNAVAILABLE,
			"whether %zu files that failures left behind are gone is not known: no "
			"part is written until the disk removes files again",
			n);
	/* Also room for what the part that is written now, and others beside it, may add. */
	if (!VEC_RESERVE(&s->doubtful, n + DOUBTS_AHEAD) ||
		!VEC_RESERVE(&m->replaces, m->replaces.len + n))
		return err_set(e, E_NOMEM, "a part's META");
	for (size_t i = 0; i < n; i++)
		m->replaces.v[m->replaces.len++] = s->doubtful.v[i];
	return OK;
}

enum status store_add_doubtful(struct store *s, struct part_meta *m, struct err *e)
{
	pthread_mutex_lock(&s->lock);
	bool full = s->doubtful.len >= DOUBTFUL_MAX;
	pthread_mutex_unlock(&s->lock);
	if (full)
		settle_all(s);
	pthread_mutex_lock(&s->lock);
	enum status st = add_doubtful(s, m, e);
	pthread_mutex_unlock(&s->lock);
	return st;
}

void store_doubt(struct store *s, uint64_t id)
{
	if (settle(s, &id, 1))
		return;
	pthread_mutex_lock(&s->lock);
	(void)!VEC_PUSH(&s->doubtful, id);
	pthread_mutex_unlock(&s->lock);
}

static bool is_in(const uint64_t *v, size_t n, uint64_t id)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == id)
			return true;
	return false;
}

/* Doubts are settled once their files are gone, durably. Only parts that `written` has replaced
 * are looked at; the disk works without the lock. */
void store_trust(struct store *s, const struct part_meta *written)
{
	VEC(uint64_t) gone = { 0 };
	for (size_t i = 0; i < written->replaces.len; i++) {
		uint64_t id = written->replaces.v[i];
		pthread_mutex_lock(&s->lock);
		bool doubted = is_in(s->doubtful.v, s->doubtful.len, id);
		pthread_mutex_unlock(&s->lock);
		if (doubted && place_remove(s->place, id, NULL) == OK)
			(void)!VEC_PUSH(&gone, id); /* else it stays doubtful */
	}
	if (gone.len && place_sync(s->place, NULL) == OK)
		forget_doubts(s, gone.v, gone.len);
	VEC_FREE(&gone);
}

/* Room for more: those of more than an hour ago go, and beyond the most that a manifest takes the
 * oldest. With `lock` held. */
static void forget_removed(struct store *s, size_t more)
{
	int64_t oldest = clock_realtime_ns() - DEDUPE_AGE_NS;
	size_t kept = 0, drop;
	for (size_t i = 0; i < s->removed.len; i++)
		if (s->removed.v[i].arrived_ns > oldest)
			s->removed.v[kept++] = s->removed.v[i];
	drop = kept + more > MANIFEST_REMOVED_MAX ? kept + more - MANIFEST_REMOVED_MAX : 0;
	if (drop)
		memmove(s->removed.v, s->removed.v + drop, (kept - drop) * sizeof(*s->removed.v));
	s->removed.len = kept - drop;
}

static void remember(struct store *s, const struct batch_seen *v, size_t n)
{
	int64_t oldest = clock_realtime_ns() - DEDUPE_AGE_NS;
	size_t more = MIN(n, (size_t)MANIFEST_REMOVED_MAX);
	pthread_mutex_lock(&s->lock);
	if (VEC_RESERVE(&s->removed, s->removed.len + more)) {
		forget_removed(s, more);
		for (size_t i = n - more; i < n; i++)
			if (v[i].arrived_ns > oldest)
				s->removed.v[s->removed.len++] = v[i];
	}
	pthread_mutex_unlock(&s->lock);
}

void store_remember_batches(struct store *s, struct part *p)
{
	struct batch_seen *v = NULL;
	struct err e = { 0 };
	size_t n = 0;
	if (clock_realtime_ns() - part_meta(p)->written_ns > DEDUPE_AGE_NS)
		return;
	enum status st = part_read_batches(p, &v, &n, &e);
	if (st != OK)
		store_say(s, "%s; what is sent again of a removed part may be stored",
			err_text(&e, st));
	remember(s, v, n);
	free(v);
}

size_t store_find_part(const struct store *s, const struct part *p)
{
	size_t i = 0;
	while (i < s->parts.len && s->parts.v[i] != p)
		i++;
	return i;
}

void store_count_parts(struct store *s)
{
	uint64_t bytes = 0, rows = 0;
	for (size_t i = 0; i < s->parts.len; i++) {
		bytes += part_file_bytes(s->parts.v[i]);
		rows += part_meta(s->parts.v[i])->rows;
	}
	metric_set(&s->metrics.parts, s->parts.len);
	metric_set(&s->metrics.part_bytes, bytes);
	metric_set(&s->metrics.part_samples, rows);
}

/* ---- quarantine ---- */

static enum status copy_file(const char *from, const char *to, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, LOG_SEGMENT_BYTES_MAX * 2);
	CLEANUP(fd_cleanup) int fd = -1;
	enum status st = os_read_file(from, &b, e);
	if (st == OK)
		st = store_io_open(to, O_CREAT | O_WRONLY | O_TRUNC, 0640, &fd, e);
	if (st == OK)
		st = store_io_pwrite(fd, b.data, b.len, 0, to, e);
	return st == OK ? store_io_sync(fd, to, e) : st;
}

static void write_reason(struct store *s, const char *path, const char *reason)
{
	char name[STORE_PATH_MAX];
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 4096);
	buf_printf(&b, "%s\n", reason);
	if (store_path(name, NULL, "%s.reason", path) == OK)
		(void)!store_io_replace(s->quarantine_dir, name, buf_view(&b), NULL);
}

static enum status set_aside(struct store *s, enum status st, const char *to, const char *reason)
{
	if (st != OK)
		return st;
	metric_add(&s->metrics.quarantined, 1);
	write_reason(s, to, reason);
	return OK;
}

enum status store_quarantine_part(struct store *s, uint64_t id, const char *reason, struct err *e)
{
	char to[STORE_PATH_MAX];
	enum status st =
		store_path(to, e, "%s/%016llx.part", s->quarantine_dir, (unsigned long long)id);
	if (st == OK)
		st = place_take_out(s->place, id, to, e);
	return set_aside(s, st, to, reason);
}

enum status store_quarantine_copy(
	struct store *s, const char *path, const char *reason, struct err *e)
{
	char to[STORE_PATH_MAX];
	struct str name = str_of(path);
	name = str_sub(name, str_rindex(name, '/') + 1, name.len);
	enum status st = store_path(to, e, "%s/%.*s", s->quarantine_dir, STR_ARG(name));
	if (st == OK)
		st = copy_file(path, to, e);
	return set_aside(s, st, to, reason);
}

static bool forget_part(struct store *s, struct part *p)
{
	pthread_mutex_lock(&s->lock);
	size_t at = store_find_part(s, p);
	bool found = at < s->parts.len;
	if (found)
		s->parts.v[at] = s->parts.v[--s->parts.len];
	if (found)
		store_count_parts(s);
	pthread_mutex_unlock(&s->lock);
	return found;
}

void store_quarantine(struct store *s, struct part *p, const char *reason)
{
	struct err e = { 0 };
	if (!forget_part(s, p))
		return; /* merged, expired or set aside by somebody else meanwhile */
	enum status st = store_quarantine_part(s, part_meta(p)->id, reason, &e);
	store_say(s, "%.300s; the part is in quarantine%s%s", reason,
		st == OK ? "" : ", but: ", st == OK ? "" : err_text(&e, st));
	part_unref(p);
	store_manifest_write(s);
}
