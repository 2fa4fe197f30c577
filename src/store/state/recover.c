/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts are those that the manifest names, and the memtable is the records of the log that no
 * part covers (docs/formats/manifest.md section 1). A file of this store that the manifest does not
 * name was left by a crash, and is removed; a file that is newer than the manifest is set aside.
 * Without a manifest that can be read the set is computed: all valid parts that no other part
 * replaces.
 */
#include "base/clock.h"
#include "store/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>

#define NAMES_BYTES_MAX ((size_t)256 << 20)
#define REPLAY_PROFILE_BYTES ((size_t)1 << 30)
#define PIECE_BYTES 4096
#define LARGE_TABLE_BYTES ((size_t)1 << 30) /* of address space, for one batch */

struct recovery {
	struct store *s;
	struct manifest manifest;
	bool has_manifest;
	VEC(struct part *) found;
	VEC(uint64_t) named;               /* by a manifest that is the set; sorted */
	VEC(uint64_t) replaced;            /* sorted; without such a manifest */
	VEC(uint64_t) seen;                /* ids of all part files, readable or not */
	size_t cleared;                    /* files in no list */
	size_t newer;                      /* files that are newer than the manifest */
	VEC(struct sequence_range) covers; /* sorted by first */
	uint64_t last_sequence;
	bool unflushed; /* a table waits for a disk that takes it */
	bool copied;    /* the segment that is read is in quarantine */
	bool copy_failed;
};

static void recovery_deinit(struct recovery *r)
{
	manifest_deinit(&r->manifest);
	for (size_t i = 0; i < r->found.len; i++)
		part_unref(r->found.v[i]);
	VEC_FREE(&r->found);
	VEC_FREE(&r->named);
	VEC_FREE(&r->replaced);
	VEC_FREE(&r->seen);
	VEC_FREE(&r->covers);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

static bool contains(const uint64_t *v, size_t n, uint64_t id)
{
	return n && bsearch(&id, v, n, sizeof(*v), by_number);
}

static enum status read_manifest(struct recovery *r, struct err *e)
{
	enum status s = store_manifest_read(r->s, &r->manifest, e);
	if (s == E_CORRUPT || s == E_INVALID) { /* a pipe, even */
		store_say(r->s, "%s; it is written anew", err_text(e, s));
		return OK;
	}
	if (s == OK)
		r->has_manifest = true;
	for (size_t i = 0; s == OK && r->manifest.is_set && i < r->manifest.parts.len; i++)
		if (!VEC_PUSH(&r->named, r->manifest.parts.v[i].id))
			s = err_set(e, E_NOMEM, "the list of parts");
	if (r->named.len)
		qsort(r->named.v, r->named.len, sizeof(*r->named.v), by_number);
	return s == E_NOTFOUND ? OK : s;
}

/* ---- parts ---- */

/* 16 hexadecimal digits and the suffix. */
static bool file_id(struct str name, const char *suffix, uint64_t *id)
{
	struct str end = str_of(suffix);
	return name.len == 16 + end.len && str_ends(name, end) &&
	       str_parse_u64(str_sub(name, 0, 16), 16, id);
}

static enum status open_part(struct recovery *r, uint64_t id, struct part **out, struct err *e)
{
	struct part *p;
	enum status s = part_open_at(r->s->place, id, &p, e);
	if (s == OK && part_meta(p)->id != id) {
		s = err_set(e, E_CORRUPT, "%s: holds part %016llx", part_path(p),
			(unsigned long long)part_meta(p)->id);
		part_unref(p);
	}
	if (s == OK)
		*out = p;
	return s;
}

/* Keeps it in the manifest, or the next start would remove it as a crash's leftover. */
static enum status leave(struct recovery *r, uint64_t id, struct err *e)
{
	struct manifest_part entry = { .id = id };
	for (size_t i = 0; i < r->manifest.parts.len; i++)
		if (r->manifest.parts.v[i].id == id)
			entry = r->manifest.parts.v[i];
	return VEC_PUSH(&r->s->unread, entry) ? OK : err_set(e, E_NOMEM, "the list of parts");
}

static enum status quarantine(struct recovery *r, uint64_t id, struct err *e)
{
	char reason[ERR_TEXT_MAX];
	(void)snprintf(reason, sizeof(reason), "%s", err_text(e, E_CORRUPT));
	enum status s = store_quarantine_part(r->s, id, reason, e);
	store_say(r->s, "%s; the part is %s%s", reason,
		s == OK ? "in quarantine" : "left where it is, and not read: ",
		s == OK ? "" : err_text(e, s));
	return s == OK ? OK : leave(r, id, e);
}

static enum status found_part(struct recovery *r, uint64_t id, struct err *e)
{
	struct part *p;
	if (!VEC_PUSH(&r->seen, id) || !VEC_RESERVE(&r->found, r->found.len + 1))
		return err_set(e, E_NOMEM, "the list of parts");
	enum status s = open_part(r, id, &p, e);
	if (s == OK)
		r->found.v[r->found.len++] = p;
	if (s == E_CORRUPT)
		return quarantine(r, id, e);
	if (s == E_INVALID)
		store_say(r->s, "%s; it is left alone", err_text(e, s));
	if (s == E_UNSUPPORTED) {
		store_say(r->s, "%s; it is left alone, its samples are not seen", err_text(e, s));
		if (!VEC_PUSH(&r->s->newer, id))
			return err_set(e, E_NOMEM, "the list of parts");
	}
	return s == E_INVALID || s == E_UNSUPPORTED ? leave(r, id, e) : s;
}

/* A part of this store that is newer than the manifest. Mostly a crash came before the manifest
 * that was to name it, but an older manifest may have been put back, and then its samples are
 * nowhere else: it is kept. Where it cannot be moved it stays until the next start. */
static void keep_newer(struct recovery *r, uint64_t id)
{
	struct err e = { 0 };
	enum status st = store_take_out(r->s, id,
		"the part is newer than the MANIFEST: a crash left it, and its samples are in "
		"others, or an older MANIFEST was put back",
		&e);
	if (st == OK)
		r->newer++;
	else
		store_say(r->s, "part %016llx is newer than the manifest and is not read: %s",
			(unsigned long long)id, err_text(&e, st));
}

/* A file that the manifest does not name. A part of this store that is older than the manifest had
 * left the set, or never was in it: it is removed. Files of other programs stay. */
static enum status found_unnamed(struct recovery *r, uint64_t id, struct err *e)
{
	struct part *p;
	enum status s = open_part(r, id, &p, e);
	if (s == E_NOMEM || s == E_IO)
		return s;
	if (s == E_UNSUPPORTED && !VEC_PUSH(&r->s->newer, id))
		return err_set(e, E_NOMEM, "the list of parts");
	if (s != OK) {
		store_say(r->s, "%s; the manifest does not name it, and it is left alone",
			err_text(e, s));
		return OK;
	}
	bool ours = hash128_eq(part_meta(p)->store_id, r->manifest.store_id);
	if (!ours)
		store_say(r->s,
			"%s: the manifest does not name it, and it is left alone; firn store "
			"import "
			"takes the samples of another store",
			part_path(p));
	part_unref(p);
	if (ours && id >= r->manifest.next_part) {
		keep_newer(r, id);
	} else if (ours) {
		r->cleared++;
		store_discard(r->s, id);
	}
	return OK;
}

static enum status found_id(void *ctx, uint64_t id, bool whole, struct err *e)
{
	struct recovery *r = ctx;
	r->s->next_part = MAX(r->s->next_part, id + 1);
	if (!whole)
		return OK;
	if (r->manifest.is_set && !contains(r->named.v, r->named.len, id))
		return found_unnamed(r, id, e);
	return found_part(r, id, e);
}

static enum status find_parts(struct recovery *r, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, NAMES_BYTES_MAX);
	struct str *names;
	size_t n;
	enum status s = os_list_dir(r->s->quarantine_dir, &a, &names, &n, e);
	for (size_t i = 0; s == OK && i < n; i++) {
		uint64_t id;
		if (file_id(names[i], ".part", &id))
			r->s->next_part = MAX(r->s->next_part, id + 1);
	}
	s = s == OK ? place_list(r->s->place, found_id, r, e) : s;
	if (s == OK && r->newer)
		store_say(r->s,
			"%zu parts are newer than the manifest, and are in quarantine: a crash "
			"left them, or an older MANIFEST was put back",
			r->newer);
	if (s == OK && r->cleared)
		store_say(r->s,
			"%zu part files that the manifest does not name were removed: a crash left "
			"them, and their samples are in others",
			r->cleared);
	return s;
}

static enum status choose_identity(struct recovery *r, struct err *e)
{
	struct store *s = r->s;
	if (r->has_manifest)
		s->id = r->manifest.store_id;
	else if (r->found.len)
		s->id = part_meta(r->found.v[0])->store_id;
	else if (getrandom(&s->id, sizeof(s->id), 0) != sizeof(s->id))
		return err_os(e, "getrandom");
	return OK;
}

/* Recall the batches that were removed with whole parts, from the manifest. */
static enum status recall_removed(struct recovery *r, struct err *e)
{
	struct store *s = r->s;
	size_t n = r->manifest.removed.len;
	if (!VEC_RESERVE(&s->removed, n))
		return err_set(e, E_NOMEM, "the batches of removed parts");
	for (size_t i = 0; i < n; i++) {
		const struct batch_seen *b = &r->manifest.removed.v[i];
		s->removed.v[s->removed.len++] = *b;
		dedupe_add(&s->dedupe, b->id, b->arrived_ns);
	}
	return OK;
}

static int by_first(const void *a, const void *b)
{
	const struct sequence_range *x = a, *y = b;
	return x->first < y->first ? -1 : x->first > y->first;
}

static enum status gather_replaced(struct recovery *r)
{
	for (size_t i = 0; i < r->found.len; i++) {
		const struct part_meta *m = part_meta(r->found.v[i]);
		if (!hash128_eq(m->store_id, r->s->id))
			continue;
		for (size_t k = 0; k < m->replaces.len; k++)
			if (m->replaces.v[k] != m->id && !VEC_PUSH(&r->replaced, m->replaces.v[k]))
				return E_NOMEM;
	}
	if (r->replaced.len)
		qsort(r->replaced.v, r->replaced.len, sizeof(*r->replaced.v), by_number);
	return OK;
}

static enum status adopt(struct recovery *r, struct part *p, struct err *e)
{
	struct store *s = r->s;
	const struct part_meta *m = part_meta(p);
	bool ours = hash128_eq(m->store_id, s->id);
	if (contains(r->replaced.v, r->replaced.len, m->id) && ours) {
		store_discard(s, m->id);
		part_unref(p);
		return OK;
	}
	if (!VEC_PUSH(&s->parts, p)) {
		part_unref(p);
		return err_set(e, E_NOMEM, "the list of parts");
	}
	for (size_t k = 0; ours && k < m->covers.len; k++) {
		if (!VEC_PUSH(&r->covers, m->covers.v[k]))
			return err_set(e, E_NOMEM, "the ranges of the log");
		r->last_sequence = MAX(r->last_sequence, m->covers.v[k].last);
	}
	struct batch_seen *batches = NULL;
	size_t n = 0;
	if (clock_realtime_ns() - m->written_ns < DEDUPE_AGE_NS &&
		part_read_batches(p, &batches, &n, e) != OK)
		store_say(s, "%s; retried batches may be stored twice", err_text(e, E_CORRUPT));
	for (size_t i = 0; i < n; i++)
		dedupe_add(&s->dedupe, batches[i].id, batches[i].arrived_ns);
	free(batches);
	return OK;
}

/* Makes each found part live, or removes it. */
static enum status adopt_parts(struct recovery *r, struct err *e)
{
	if (!r->manifest.is_set && gather_replaced(r) != OK)
		return err_set(e, E_NOMEM, "the list of parts");
	while (r->found.len) {
		struct part *p = r->found.v[--r->found.len];
		enum status s = adopt(r, p, e);
		if (s != OK)
			return s;
	}
	if (r->covers.len)
		qsort(r->covers.v, r->covers.len, sizeof(*r->covers.v), by_first);
	if (r->seen.len)
		qsort(r->seen.v, r->seen.len, sizeof(*r->seen.v), by_number);
	for (size_t i = 0; i < r->manifest.parts.len; i++) {
		uint64_t id = r->manifest.parts.v[i].id;
		if (!contains(r->seen.v, r->seen.len, id) &&
			!contains(r->replaced.v, r->replaced.len, id))
			store_say(r->s, "part %016llx of %llu rows is gone from the disk",
				(unsigned long long)id,
				(unsigned long long)r->manifest.parts.v[i].rows);
	}
	return OK;
}

/* ---- the log ---- */

static bool covered(const struct recovery *r, uint64_t sequence)
{
	for (size_t i = 0; i < r->covers.len && r->covers.v[i].first <= sequence; i++)
		if (sequence <= r->covers.v[i].last)
			return true;
	return false;
}

static void profile_cleanup(struct profile *p)
{
	profile_deinit(p);
}

static enum status replay_batch(
	struct recovery *r, const struct log_record *rec, struct buf *scratch, struct err *e)
{
	struct store *s = r->s;
	enum dedupe_answer answer = dedupe_begin(&s->dedupe, rec->batch_id, rec->arrived_ns);
	if (answer == DEDUPE_KNOWN)
		return OK;
	CLEANUP(profile_cleanup) struct profile p = { 0 };
	struct str payload, tenant;
	enum status st = profile_init(&p, REPLAY_PROFILE_BYTES);
	if (st == OK)
		st = log_payload(rec, scratch, &payload, e);
	if (st == OK)
		st = batch_decode(payload, &p, &tenant, e);
	if (st == OK)
		st = memtable_add(s->active, tenant, &p,
			(struct batch_seen){ rec->batch_id, rec->arrived_ns }, e);
	dedupe_end(&s->dedupe, rec->batch_id, rec->arrived_ns, st == OK);
	return st;
}

/* A damaged segment is copied once, whatever is wrong with it. Where that fails (a full disk), the
 * segment itself is kept until the next start. */
static void keep_copy(
	struct recovery *r, const char *path, const char *reason, const char *consequence)
{
	struct err e = { 0 };
	if (!r->copied && !r->copy_failed) {
		enum status st = store_quarantine_copy(r->s, path, reason, &e);
		r->copied = st == OK;
		r->copy_failed = st != OK;
		if (st != OK)
			store_say(r->s, "%s could not be copied to quarantine: %s", path,
				err_text(&e, st));
	}
	store_say(r->s, "%s; %s, %s", reason, consequence,
		r->copied ? "a copy is in quarantine" : "the file is kept");
}

/* A part that is written before the replay has ended covers what was replayed and nothing beyond:
 * what follows is in the log only. (A number below `frozen_until` is of a part that was lost.) */
static void now_in_memory(struct store *s, uint64_t sequence)
{
	log_skip_to(s->log, sequence + 1);
	s->frozen_until = MIN(s->frozen_until, sequence - 1);
}

/* The active table is full. When the disk does not take it (it may be full: retention and others
 * make room once the store is open), it waits, and a second table takes the rest: no more than two
 * tables were in memory when the log was written. */
static enum status flush_in_replay(struct recovery *r, struct err *e)
{
	struct store *s = r->s;
	struct memtable *before = s->active;
	enum status st = store_flush_now(s, e);
	if (st == OK || s->active == before)
		return st;
	if (!r->unflushed)
		store_say(s,
			"the samples of the log could not be written as a part (%s); they stay "
			"in memory, and it is tried again",
			err_text(e, st));
	r->unflushed = true;
	return OK;
}

/* A batch for an empty table that is too small for it: the budget was larger once. */
static enum status replay_large(
	struct recovery *r, const struct log_record *rec, struct buf *scratch, struct err *e)
{
	struct store *s = r->s;
	struct memtable *large;
	enum status st = memtable_new(LARGE_TABLE_BYTES, &large);
	if (st != OK)
		return err_set(e, st, "no memory for record %llu of the log",
			(unsigned long long)rec->sequence);
	memtable_unref(s->active);
	s->active = large;
	return replay_batch(r, rec, scratch, e);
}

static enum status replay_record(struct recovery *r, const char *path, const struct log_record *rec,
	size_t offset, struct buf *scratch, struct err *e)
{
	struct store *s = r->s;
	r->last_sequence = MAX(r->last_sequence, rec->sequence);
	if (rec->kind != LOG_KIND_BATCH || covered(r, rec->sequence))
		return OK;
	enum status st = replay_batch(r, rec, scratch, e);
	if (st == E_LIMIT && s->active->time_ns.len > 0) {
		st = flush_in_replay(r, e); /* the table is full: write it, and try again */
		if (st == OK)
			st = replay_batch(r, rec, scratch, e);
	}
	if (st == E_LIMIT)
		st = replay_large(r, rec, scratch, e);
	if (st == E_CORRUPT || st == E_UNSUPPORTED) {
		char reason[ERR_TEXT_MAX];
		(void)snprintf(reason, sizeof(reason), "%s at +%zu: %.150s", path, offset,
			err_text(e, st));
		keep_copy(r, path, reason, "the batch is lost");
		return OK;
	}
	if (st != OK)
		return st;
	now_in_memory(s, rec->sequence);
	return atomic_load(&s->active->bytes) > s->memtable_bytes ? flush_in_replay(r, e) : OK;
}

static void report_damage(struct recovery *r, const char *path, size_t offset, size_t length)
{
	char reason[ERR_TEXT_MAX];
	(void)snprintf(
		reason, sizeof(reason), "%.150s: %zu damaged bytes at +%zu", path, length, offset);
	keep_copy(r, path, reason, "what was there is lost");
}

/* Puts zeros in place of bytes that the disk cannot read: they are damage, as wrong bytes are. */
static enum status read_pieces(const char *path, struct buf *out, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = -1;
	struct stat st;
	enum status s = store_io_open(path, O_RDONLY, 0, &fd, e);
	if (s == OK && fstat(fd, &st) < 0)
		s = err_os(e, "stat %s", path);
	if (s != OK)
		return s;
	uint64_t size = MIN((uint64_t)st.st_size, (uint64_t)LOG_SEGMENT_BYTES_MAX * 2);
	buf_clear(out);
	for (uint64_t at = 0; at < size && s == OK; at += PIECE_BYTES) {
		static const uint8_t zeros[PIECE_BYTES];
		uint8_t piece[PIECE_BYTES];
		size_t len = (size_t)MIN(size - at, (uint64_t)PIECE_BYTES);
		s = os_pread_full(fd, piece, len, at, path, e);
		bool lost = s == E_IO && errno == EIO;
		s = lost ? OK : s;
		if (s == OK)
			buf_put(out, lost ? zeros : piece, len);
	}
	return s == OK ? buf_status(out) : s;
}

static enum status read_segment(const char *path, struct buf *out, struct err *e)
{
	enum status s = os_read_file(path, out, e);
	return s == E_IO && errno == EIO ? read_pieces(path, out, e) : s;
}

static enum status replay_segment(struct recovery *r, size_t i, struct err *e)
{
	struct store *s = r->s;
	const char *path = log_found_path(s->log, i);
	CLEANUP(buf_deinit) struct buf file, scratch;
	buf_init(&file, LOG_SEGMENT_BYTES_MAX * 2);
	buf_init(&scratch, BATCH_BYTES_MAX);
	enum status st = read_segment(path, &file, e);
	if (st != OK)
		return st;
	struct log_cursor c;
	st = log_cursor_open(buf_view(&file), path, &c, e);
	r->copied = r->copy_failed = false;
	if (st == E_CORRUPT) {
		log_cursor_salvage(buf_view(&file), &c);
		report_damage(r, path, 0, MIN(file.len, (size_t)LOG_HEADER_BYTES));
		st = OK;
	}
	if (st == OK && file.len < c.size)
		report_damage(r, path, file.len, c.size - file.len);
	struct log_record rec;
	enum log_event event = LOG_EVENT_RECORD;
	while (st == OK && event != LOG_EVENT_END) {
		event = log_cursor_next(&c, &rec);
		if (event == LOG_EVENT_RECORD)
			st = replay_record(r, path, &rec, c.offset, &scratch, e);
		else if (event == LOG_EVENT_DAMAGE)
			report_damage(r, path, c.offset, c.length);
		if (event == LOG_EVENT_TORN) {
			metric_add(&s->metrics.log_torn, 1);
			store_say(s,
				"%s: the last write, at +%zu, is not whole and is cut: it did not "
				"end, and was never acknowledged, or it was damaged later",
				path, c.offset);
		}
	}
	if (st == OK && !r->copy_failed)
		log_found_set(s->log, i, r->last_sequence);
	return st;
}

static enum status replay_log(struct recovery *r, struct err *e)
{
	struct store *s = r->s;
	enum status st = log_open(s->log_dir, s->id, r->manifest.next_segment,
		s->config.log_segment_bytes, &s->log, e);
	if (st != OK)
		return st;
	s->frozen_until = r->covers.len ? r->last_sequence : 0;
	for (size_t i = 0; i < log_found_count(s->log) && st == OK; i++)
		st = replay_segment(r, i, e);
	log_skip_to(s->log, MAX(r->manifest.next_sequence, r->last_sequence + 1));
	return st;
}

/* If the clock was never trusted, the newest sample serves as the last known time. */
static void recall_time(struct recovery *r)
{
	struct store *s = r->s;
	int64_t known = r->manifest.trusted_ns;
	for (size_t i = 0; i < s->parts.len && r->manifest.trusted_ns == 0; i++)
		known = MAX(known, part_meta(s->parts.v[i])->last_ns);
	age_clock_init(&s->age, known, clock_boottime_ns());
}

enum status store_recover(struct store *s, struct err *e)
{
	CLEANUP(recovery_deinit) struct recovery r = { .s = s };
	enum status st = read_manifest(&r, e);
	s->next_part = MAX(r.manifest.next_part, (uint64_t)1);
	if (st == OK)
		st = find_parts(&r, e);
	if (st == OK)
		st = choose_identity(&r, e);
	if (st == OK)
		st = adopt_parts(&r, e);
	if (st == OK)
		st = recall_removed(&r, e);
	if (st == OK)
		recall_time(&r);
	if (st == OK)
		st = replay_log(&r, e);
	if (st != OK)
		return st;
	lock_take(&s->lock);
	store_count_parts(s);
	lock_release(&s->lock);
	store_manifest_write(s); /* from now on it is the set */
	return OK;
}
