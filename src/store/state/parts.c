/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The set of parts: names, numbers, quarantine. The set changes in one step: the manifest that
 * names the new set is made durable, then the list in memory changes. A file that left the set is
 * "garbage": it is removed once a manifest that does not name it is durable.
 *
 * If it is not known which of two manifests would be there after a crash (renamed, but the
 * directory's sync failed), the set is "undecided": no file that either may name is removed, and no
 * part is written, until a manifest is durable again.
 */
#include "base/clock.h"
#include "store/state/state.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define GARBAGE_MAX 65536 /* the others go at the next start */

uint64_t store_next_part(struct store *s)
{
	lock_take(&s->lock);
	uint64_t id = s->next_part++;
	lock_release(&s->lock);
	return id;
}

/* ---- garbage ---- */

static void add_garbage(struct store *s, uint64_t id)
{
	lock_take(&s->lock);
	if (s->garbage.len < GARBAGE_MAX)
		(void)!VEC_PUSH(&s->garbage, id);
	lock_release(&s->lock);
}

bool store_is_garbage(struct store *s, uint64_t id)
{
	bool found = false;
	lock_take(&s->lock);
	for (size_t i = 0; i < s->garbage.len; i++)
		found |= s->garbage.v[i] == id;
	lock_release(&s->lock);
	return found;
}

void store_collect_garbage(struct store *s)
{
	VEC(uint64_t) ids = { 0 };
	lock_take(&s->lock);
	if (!s->undecided && VEC_RESERVE(&ids, s->garbage.len)) {
		for (size_t i = 0; i < s->garbage.len; i++)
			ids.v[ids.len++] = s->garbage.v[i];
		s->garbage.len = 0;
	}
	lock_release(&s->lock);
	for (size_t i = 0; i < ids.len; i++)
		if (place_remove(s->place, ids.v[i], NULL) != OK)
			add_garbage(s, ids.v[i]);
	VEC_FREE(&ids);
}

void store_discard(struct store *s, uint64_t id)
{
	lock_take(&s->lock);
	bool undecided = s->undecided;
	lock_release(&s->lock);
	if (undecided || place_remove(s->place, id, NULL) != OK)
		add_garbage(s, id);
}

/* ---- the set ---- */

enum status store_check_decided(struct store *s, struct err *e)
{
	lock_take(&s->lock);
	bool undecided = s->undecided;
	lock_release(&s->lock);
	if (undecided)
		store_manifest_write(s);
	lock_take(&s->lock);
	undecided = s->undecided;
	lock_release(&s->lock);
	return undecided ? err_set(e, E_UNAVAILABLE,
				   "no part is written until the disk takes a manifest again")
			 : OK;
}

static bool is_among(struct part *const *v, size_t n, const struct part *p)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == p)
			return true;
	return false;
}

/* Puts the set after the change into *out; the references are the caller's. */
static enum status next_set(struct store *s, const struct parts_change *c, struct part ***out,
	size_t *count, struct err *e)
{
	enum status st = OK;
	size_t n = 0, found = 0;
	lock_take(&s->lock);
	struct part **v = calloc(s->parts.len + 1, sizeof(*v));
	if (!v || !VEC_RESERVE(&s->parts, s->parts.len + 1))
		st = err_set(e, E_NOMEM, "the list of parts");
	for (size_t i = 0; st == OK && i < s->parts.len; i++) {
		bool leaves = is_among(c->old, c->old_count, s->parts.v[i]);
		found += leaves;
		if (!leaves)
			v[n++] = s->parts.v[i];
	}
	lock_release(&s->lock);
	if (st == OK && found < c->old_count)
		st = err_set(e, E_NOTFOUND, "a part left the store meanwhile");
	if (st == OK && c->fresh)
		v[n++] = c->fresh;
	*out = v;
	*count = n;
	return st;
}

static void change_list(struct store *s, const struct parts_change *c, struct part **v, size_t n)
{
	lock_take(&s->lock);
	memcpy(s->parts.v, v, n * sizeof(*v));
	s->parts.len = n;
	if (c->frozen_is_in)
		s->frozen = NULL;
	store_count_parts(s);
	lock_release(&s->lock);
}

enum status store_change_parts(struct store *s, const struct parts_change *c, struct err *e)
{
	struct part **v = NULL;
	size_t n = 0;
	lock_take(&s->manifest_lock); /* no other thread changes the set */
	enum status st = next_set(s, c, &v, &n, e);
	enum status written = st == OK ? store_manifest_put(s, v, n, e) : st;
	lock_take(&s->lock);
	bool may_go = !c->fresh && !s->undecided;
	s->undecided |= st == OK && written != OK && c->fresh && s->manifest_unknown;
	lock_release(&s->lock);
	st = st == OK && !may_go ? written : st;
	if (st == OK)
		change_list(s, c, v, n);
	lock_release(&s->manifest_lock);
	free(v);
	for (size_t i = 0; st == OK && i < c->old_count; i++) {
		if (written == OK)
			add_garbage(s, part_meta(c->old[i])->id);
		else
			store_discard(s, part_meta(c->old[i])->id);
		part_unref(c->old[i]); /* the set's reference */
	}
	if (written == OK)
		store_collect_garbage(s);
	return st;
}

void store_manifest_write(struct store *s)
{
	struct part **v;
	size_t n = 0;
	lock_take(&s->manifest_lock); /* the set stays as it is */
	lock_take(&s->lock);
	v = calloc(MAX(s->parts.len, (size_t)1), sizeof(*v));
	for (; v && n < s->parts.len; n++)
		v[n] = s->parts.v[n];
	lock_release(&s->lock);
	enum status st = v ? store_manifest_put(s, v, n, NULL) : E_NOMEM;
	lock_release(&s->manifest_lock);
	free(v);
	if (st == OK)
		store_collect_garbage(s);
}

/* Makes room for more: removes batches of more than an hour ago, and the oldest beyond a manifest's
 * limit. With `lock` held. */
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
	lock_take(&s->lock);
	if (VEC_RESERVE(&s->removed, s->removed.len + more)) {
		forget_removed(s, more);
		for (size_t i = n - more; i < n; i++)
			if (v[i].arrived_ns > oldest)
				s->removed.v[s->removed.len++] = v[i];
	}
	lock_release(&s->lock);
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
		(void)!store_io_replace(s->quarantine_dir, name, buf_view(&b), NULL, NULL);
}

enum status store_take_out(struct store *s, uint64_t id, const char *reason, struct err *e)
{
	char to[STORE_PATH_MAX];
	enum status st =
		store_path(to, e, "%s/%016llx.part", s->quarantine_dir, (unsigned long long)id);
	if (st == OK)
		st = place_take_out(s->place, id, to, e);
	if (st == OK)
		write_reason(s, to, reason);
	return st;
}

enum status store_quarantine_part(struct store *s, uint64_t id, const char *reason, struct err *e)
{
	enum status st = store_take_out(s, id, reason, e);
	if (st == OK)
		metric_add(&s->metrics.quarantined, 1);
	return st;
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
	if (st != OK)
		return st;
	metric_add(&s->metrics.quarantined, 1);
	write_reason(s, to, reason);
	return OK;
}

static bool forget_part(struct store *s, struct part *p)
{
	lock_take(&s->lock);
	size_t at = store_find_part(s, p);
	bool found = at < s->parts.len;
	if (found)
		s->parts.v[at] = s->parts.v[--s->parts.len];
	if (found)
		store_count_parts(s);
	lock_release(&s->lock);
	return found;
}

/* The manifest names it until the file is in quarantine, or the next start would remove it as
 * garbage. */
void store_quarantine(struct store *s, struct part *p, const char *reason)
{
	struct err e = { 0 };
	struct manifest_part entry = store_manifest_entry(p);
	lock_take(&s->manifest_lock);
	bool found = forget_part(s, p);
	enum status st = found ? store_quarantine_part(s, entry.id, reason, &e) : OK;
	lock_take(&s->lock);
	if (st != OK)
		(void)!VEC_PUSH(&s->unread, entry);
	lock_release(&s->lock);
	lock_release(&s->manifest_lock);
	if (!found)
		return; /* merged, expired or set aside by another thread meanwhile */
	store_say(s, "%.300s; the part is in quarantine%s%s", reason,
		st == OK ? "" : ", but: ", st == OK ? "" : err_text(&e, st));
	part_unref(p);
	store_manifest_write(s);
}
