/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening and closing, appending, and the two threads: one writes memtables as parts, one merges
 * parts and drops old ones. Both sleep until there is something to do.
 *
 * A batch: validated, encoded and packed by its caller, made durable by the log's group commit,
 * then added to the memtable. Between log and memtable the caller holds the gate for reading, so
 * that a table is never frozen between the two (flush.c).
 */
#include "store/store.h"

#include "base/clock.h"
#include "codec/codec.h"
#include "store/merge/merge.h"
#include "store/read/read.h"
#include "store/retain/retain.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#define ADMIT_LOOK_NS (50 * NS_PER_MS)
#define FLUSH_RETRY_NS (5 * NS_PER_SEC)
#define UPKEEP_INTERVAL_NS (60 * NS_PER_SEC)
#define MEMORY_BYTES_MIN ((uint64_t)16 << 20)
/* How the log is packed. It is read after a crash only, so the level costs less than half of the
 * time of level 1, for a quarter more bytes. Batches that are mostly stacks and samples are not
 * packed at all: that would save a sixth of the bytes and take longer than everything else about
 * them. */
#define LOG_ZSTD_LEVEL (-10)
#define LOG_PACK_SHARE 2 /* one byte in so many is of texts and symbols, at least */

void store_config_default(struct store_config *c)
{
	*c = (struct store_config){
		.path = "data",
		.memory_bytes = (uint64_t)256 << 20,
		.retention_ns = 0,
		.retention_bytes = 0,
		.flush_interval_ns = 120 * NS_PER_SEC,
		.wait_ns = 10 * NS_PER_SEC,
		.resolution_ns = 10 * NS_PER_SEC,
		.log_segment_bytes = LOG_SEGMENT_BYTES,
	};
}

/* ---- threads ---- */

static void wait_until(pthread_cond_t *c, struct lock *m, int64_t deadline_ns)
{
	if (deadline_ns == INT64_MAX) {
		lock_wait(c, m);
		return;
	}
	struct timespec t = { deadline_ns / NS_PER_SEC, deadline_ns % NS_PER_SEC };
	(void)lock_wait_until(c, m, &t);
}

/* When the memtable must be flushed; INT64_MAX: it is empty. A frozen table is being written by a
 * thread, or could not be written. With the lock held. */
static int64_t flush_due_ns(struct store *s)
{
	if (s->flush_status != OK)
		return clock_monotonic_ns() + FLUSH_RETRY_NS;
	int64_t born = atomic_load(&s->active->born_ns);
	return born ? born + s->config.flush_interval_ns : INT64_MAX;
}

static void *flusher_main(void *ctx)
{
	struct store *s = ctx;
	enum status told = OK;
	lock_take(&s->lock);
	int64_t due = flush_due_ns(s);
	while (!s->stopping) {
		if (!s->flush_wanted && clock_monotonic_ns() < due) {
			wait_until(&s->flush_wake, &s->lock, due);
			int64_t anew = flush_due_ns(s);
			due = s->flush_status == OK ? anew : MIN(due, anew);
			continue;
		}
		s->flush_wanted = false;
		lock_release(&s->lock);
		struct err e = { 0 };
		enum status st = store_flush_now(s, &e);
		if (st != told && st != OK)
			store_say(s,
				"the samples in memory could not be written as a part: %s; "
				"they are safe in the log, and it is tried again",
				err_text(&e, st));
		told = st;
		lock_take(&s->lock);
		due = flush_due_ns(s);
	}
	lock_release(&s->lock);
	return NULL;
}

static bool merge_some(struct store *s)
{
	struct err e = { 0 };
	bool merged;
	enum status st = store_merge_step(s, clock_realtime_ns(), &merged, &e);
	if (st != OK)
		store_say(s, "parts could not be merged: %s", err_text(&e, st));
	return st == OK && merged;
}

static bool thin_some(struct store *s, int64_t now_ns)
{
	struct err e = { 0 };
	bool thinned;
	enum status st = store_thin_step(s, now_ns, &thinned, &e);
	if (st != OK)
		store_say(s, "an old part stays as exact as it is for now: %s", err_text(&e, st));
	return st == OK && thinned;
}

/* Does its tasks by turns: at full ingest there is always something to merge. */
static void upkeep(struct store *s)
{
	bool more = true;
	while (more) {
		more = merge_some(s);
		int64_t now = store_age_now(s);
		store_retain(s, now);
		more |= thin_some(s, now);
		lock_take(&s->lock);
		more &= !s->stopping;
		lock_release(&s->lock);
	}
	if (atomic_load(&s->manifest_stale))
		store_manifest_write(s);
	store_trim_caches(s);
	(void)malloc_trim(
		0); /* gives the memory of flushing, merging and queries back to the system */
}

/* ---- the process as a whole ---- */

static void *merger_main(void *ctx)
{
	struct store *s = ctx;
	store_warm(s);
	lock_take(&s->lock);
	while (!s->stopping) {
		lock_release(&s->lock);
		upkeep(s);
		lock_take(&s->lock);
		if (!s->stopping)
			wait_until(&s->merge_wake, &s->lock,
				clock_monotonic_ns() + UPKEEP_INTERVAL_NS);
	}
	lock_release(&s->lock);
	return NULL;
}

/* ---- opening ---- */

static enum status take_lock(struct store *s, struct err *e)
{
	char path[STORE_PATH_MAX], text[32] = "";
	enum status st = store_path(path, e, "%s/LOCK", s->path);
	if (st == OK)
		st = store_io_open(path, O_RDWR | O_CREAT, 0640, &s->lock_fd, e);
	if (st != OK)
		return st;
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK)
			return err_os(e, "lock %s", path);
		ssize_t n = pread(s->lock_fd, text, sizeof(text) - 1, 0);
		text[n > 0 ? n : 0] = 0;
		return err_set(e, E_EXISTS, "%s is in use by another firn, process %.20s", s->path,
			n > 0 ? text : "unknown");
	}
	/* The owner's pid is useful, but a full disk is no reason not to start. */
	int n = snprintf(text, sizeof(text), "%ld", (long)getpid());
	if (store_io_truncate(s->lock_fd, 0, path, NULL) == OK)
		(void)!store_io_pwrite(s->lock_fd, text, (size_t)n, 0, path, NULL);
	return OK;
}

static enum status make_layout(struct store *s, struct err *e)
{
	enum status st = store_path(s->parts_dir, e, "%s/parts", s->path);
	if (st == OK)
		st = store_path(s->log_dir, e, "%s/log", s->path);
	if (st == OK)
		st = store_path(s->quarantine_dir, e, "%s/quarantine", s->path);
	if (st == OK)
		st = store_io_make_dirs(s->path, e);
	if (st == OK)
		st = take_lock(s, e);
	if (st == OK)
		st = store_io_make_dirs(s->parts_dir, e);
	if (st == OK)
		st = place_open_directory(s->parts_dir, &s->place, e);
	if (st == OK)
		st = store_io_make_dirs(s->log_dir, e);
	if (st == OK)
		st = store_io_make_dirs(s->quarantine_dir, e);
	return st == OK ? store_io_sync_dir(s->path, e) : st;
}

static void store_free(struct store *s)
{
	log_close(s->log);
	dictionary_unref(s->dictionary);
	memtable_unref(s->active);
	memtable_unref(s->frozen);
	for (size_t i = 0; i < s->parts.len; i++)
		part_unref(s->parts.v[i]);
	VEC_FREE(&s->parts);
	place_close(s->place);
	VEC_FREE(&s->garbage);
	VEC_FREE(&s->unread);
	VEC_FREE(&s->newer);
	VEC_FREE(&s->removed);
	VEC_FREE(&s->left_alone);
	VEC_FREE(&s->thin_seen);
	free(s->groups);
	dedupe_deinit(&s->dedupe);
	rwlock_destroy(&s->gate);
	lock_destroy(&s->flush_lock);
	lock_destroy(&s->merge_lock);
	lock_destroy(&s->retain_lock);
	lock_destroy(&s->manifest_lock);
	lock_destroy(&s->lock);
	pthread_cond_destroy(&s->flush_wake);
	pthread_cond_destroy(&s->merge_wake);
	pthread_cond_destroy(&s->relieved);
	memory_share_deinit(&s->queries_memory);
	memory_share_deinit(&s->ingest_memory);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->resident_fd >= 0)
		close(s->resident_fd);
	free(s->path);
	free(s);
}

static void init_locks(struct store *s)
{
	rwlock_init(&s->gate, LOCK_GATE, true);
	lock_init(&s->flush_lock, LOCK_FLUSH);
	lock_init(&s->merge_lock, LOCK_MERGE);
	lock_init(&s->retain_lock, LOCK_RETAIN);
	lock_init(&s->manifest_lock, LOCK_MANIFEST);
	lock_init(&s->lock, LOCK_STORE);
	pthread_condattr_t ca;
	pthread_condattr_init(&ca);
	pthread_condattr_setclock(&ca, CLOCK_MONOTONIC);
	pthread_cond_init(&s->flush_wake, &ca);
	pthread_cond_init(&s->merge_wake, &ca);
	pthread_cond_init(&s->relieved, &ca);
	pthread_condattr_destroy(&ca);
}

static enum status start_threads(struct store *s, struct err *e)
{
	enum status st = OK;
	if (dictionary_new(s->config.memory_bytes / DICTIONARY_SHARE, &s->dictionary) != OK)
		st = err_set(e, E_NOMEM, "a dictionary of labels");
	if (st == OK)
		st = os_thread_start(&s->flusher, "store-flush", flusher_main, s, e);
	s->flusher_runs = st == OK;
	if (st == OK)
		st = os_thread_start(&s->merger, "store-merge", merger_main, s, e);
	s->merger_runs = st == OK;
	return st;
}

static void stop_threads(struct store *s)
{
	lock_take(&s->lock);
	s->stopping = true;
	pthread_cond_broadcast(&s->flush_wake);
	pthread_cond_broadcast(&s->merge_wake);
	pthread_cond_broadcast(&s->relieved);
	lock_release(&s->lock);
	if (s->flusher_runs)
		pthread_join(s->flusher, NULL);
	if (s->merger_runs)
		pthread_join(s->merger, NULL);
	s->flusher_runs = s->merger_runs = false;
}

enum status store_open(const struct store_config *c, store_notice_fn *notice, void *ctx,
	struct store **out, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	struct store *s = calloc(1, sizeof(*s));
	if (!s)
		return err_set(e, E_NOMEM, "%s", c->path);
	s->config = *c;
	s->config.memory_bytes = MAX(c->memory_bytes, MEMORY_BYTES_MIN);
	s->config.flush_interval_ns = MAX(c->flush_interval_ns, NS_PER_SEC);
	s->memtable_bytes = s->config.memory_bytes / 8;
	s->notice = notice;
	s->notice_ctx = ctx;
	s->lock_fd = -1;
	s->resident_fd = os_self_rss_open();
	init_locks(s);
	memory_share_init(&s->queries_memory, s->config.memory_bytes / 16 * QUERIES_SIXTEENTHS);
	memory_share_init(&s->ingest_memory, s->config.memory_bytes / 16);
	dedupe_init(&s->dedupe, s->config.memory_bytes / 32);
	s->path = strdup(c->path);
	s->config.path = s->path;
	enum status st = s->path ? OK : err_set(e, E_NOMEM, "%s", c->path);
	if (st == OK)
		st = memtable_new(s->memtable_bytes * MEMTABLE_LIMIT, &s->active);
	if (st == OK)
		st = make_layout(s, e);
	if (st == OK)
		st = store_recover(s, e);
	if (st == OK)
		st = start_threads(s, e);
	if (st != OK) {
		stop_threads(s);
		store_free(s);
		return e->status == st ? st
				       : err_set(e, st, "open %s: %s", c->path, status_text(st));
	}
	*out = s;
	return OK;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	stop_threads(s);
	struct err e = { 0 };
	enum status st = store_flush_now(s, &e);
	if (st != OK)
		store_say(s, "the samples in memory stay in the log: %s", err_text(&e, st));
	store_free(s);
}

/* ---- appending ---- */

/* With the lock held. An empty table takes any batch that is within the budget. */
static bool has_room(struct store *s, uint64_t need)
{
	uint64_t used = atomic_load(&s->active->bytes) + s->reserved_bytes;
	bool empty = atomic_load(&s->active->born_ns) == 0;
	return used + need <= s->memtable_bytes || (empty && s->reserved_bytes == 0);
}

/* Reserves `need` bytes of the memtable, if need be after a short wait. */
static enum status reserve_room(struct store *s, uint64_t need, struct err *e)
{
	uint64_t most = s->memtable_bytes * MEMTABLE_LIMIT;
	if (need > most)
		return err_set(e, E_LIMIT,
			"a batch that takes %llu bytes; the memory budget allows %llu: send "
			"smaller ones, or raise --storage-memory",
			(unsigned long long)need, (unsigned long long)most);
	int64_t deadline = clock_monotonic_ns() + s->config.wait_ns;
	enum status st = OK;
	lock_take(&s->lock);
	while (!has_room(s, need)) {
		if (s->flush_status != OK) {
			st = err_set(e, E_UNAVAILABLE,
				"the memory budget is full, and it cannot be written: %.150s",
				err_text(&s->flush_err, s->flush_status));
			break;
		}
		if (s->stopping || clock_monotonic_ns() >= deadline) {
			st = err_set(e, E_UNAVAILABLE,
				"the memory budget is full and is being written; try again");
			break;
		}
		s->flush_wanted = true;
		pthread_cond_signal(&s->flush_wake);
		s->waiting++;
		wait_until(&s->relieved, &s->lock, deadline);
		s->waiting--;
	}
	if (st == OK)
		s->reserved_bytes += need;
	else
		metric_add(&s->metrics.refused_memory, 1);
	lock_release(&s->lock);
	return st;
}

/* The reserved bytes are in the table now, or not needed. */
static void release_room(struct store *s, uint64_t need)
{
	lock_take(&s->lock);
	s->reserved_bytes -= need;
	if (s->waiting)
		pthread_cond_broadcast(&s->relieved);
	lock_release(&s->lock);
}

/* The batch is sound, but heap or disk failed: the sender may try again. */
static enum status try_again(struct store *s, enum status st, struct err *e)
{
	metric_add(st == E_NOMEM ? &s->metrics.refused_memory : &s->metrics.refused_disk, 1);
	if (e && e->status == st)
		e->status = E_UNAVAILABLE;
	else
		(void)err_set(e, E_UNAVAILABLE, "%s", status_text(st));
	return E_UNAVAILABLE;
}

static enum status encode(struct str tenant, const struct profile *p, struct buf *raw,
	struct buf *packed, struct log_record *rec, struct err *e)
{
	size_t symbols = batch_encode(raw, tenant, p);
	bool pack = symbols >= raw->len / LOG_PACK_SHARE;
	enum status st = buf_status(raw);
	if (st == OK && pack)
		st = codec_zstd_compress(raw->data, raw->len, LOG_ZSTD_LEVEL, packed);
	if (st != OK)
		return err_set(e, st,
			st == E_NOMEM ? "no memory to encode a batch of %zu samples"
				      : "a batch of %zu samples is too large",
			p->samples.len);
	bool smaller = pack && packed->len < raw->len;
	rec->raw_len = (uint32_t)raw->len;
	rec->kind = LOG_KIND_BATCH;
	rec->coding = smaller ? LOG_CODING_ZSTD : LOG_CODING_NONE;
	rec->payload = smaller ? buf_view(packed) : buf_view(raw);
	return OK;
}

static enum status write_batch(struct store *s, struct str tenant, const struct profile *p,
	struct log_record *rec, struct err *e)
{
	CLEANUP(buf_deinit) struct buf raw, packed;
	buf_init(&raw, BATCH_BYTES_MAX);
	buf_init(&packed, BATCH_BYTES_MAX);
	enum status st = encode(tenant, p, &raw, &packed, rec, e);
	if (st != OK)
		return st == E_NOMEM ? try_again(s, st, e) : st;
	uint64_t sequence;
	bool first = false;
	rwlock_read(&s->gate);
	st = log_append(s->log, rec, &sequence, e);
	bool lost = st == E_NOTFOUND;
	if (st == OK) {
		struct memtable *m = s->active; /* changes only with the gate held for writing */
		first = atomic_load(&m->born_ns) == 0;
		st = memtable_add(
			m, tenant, p, (struct batch_seen){ rec->batch_id, rec->arrived_ns }, e);
	}
	rwlock_release(&s->gate);
	if (lost)
		store_say(s, "%s; what is in memory is written as a part", err_text(e, st));
	/* E_LIMIT: of a table; encode() took care of the record's. */
	if ((st == OK && first) || lost || st == E_NOSPACE || st == E_LIMIT) {
		lock_take(&s->lock);
		s->flush_wanted |= st != OK;
		pthread_cond_signal(&s->flush_wake);
		lock_release(&s->lock);
	}
	return st == OK ? OK : try_again(s, st, e);
}

static enum status append(struct store *s, struct str tenant, const struct profile *p,
	struct hash128 batch_id, struct err *e)
{
	if (tenant.len > STORE_TENANT_MAX)
		return err_set(e, E_INVALID, "a tenant's name of %zu bytes; %d are allowed",
			tenant.len, STORE_TENANT_MAX);
	enum status st = profile_validate(p, e);
	if (st != OK || p->samples.len == 0)
		return st;
	struct log_record rec = { .arrived_ns = clock_realtime_ns(), .batch_id = batch_id };
	switch (dedupe_begin(&s->dedupe, batch_id, rec.arrived_ns)) {
	case DEDUPE_KNOWN:
		metric_add(&s->metrics.duplicates, 1);
		return OK;
	case DEDUPE_PENDING:
		return err_set(e, E_UNAVAILABLE, "the same batch is being stored; try again");
	case DEDUPE_NO_MEMORY:
		return try_again(s, err_set(e, E_NOMEM, "no memory to remember a batch"), e);
	case DEDUPE_NEW:
		break;
	}
	uint64_t need = memtable_estimate_bytes(p);
	st = reserve_room(s, need, e);
	if (st == OK) {
		st = write_batch(s, tenant, p, &rec, e);
		release_room(s, need);
	}
	dedupe_end(&s->dedupe, batch_id, rec.arrived_ns, st == OK);
	if (st != OK)
		return st;
	metric_add(&s->metrics.samples, p->samples.len);
	metric_add(&s->metrics.batches, 1);
	return OK;
}

/* ---- before appending ---- */

struct store_entry {
	struct memory_holder holder;
	uint64_t lent; /* bytes given back, until the next request for more */
};

/* True: near the limit. Then a memtable that is not small becomes a part early. */
static bool look_at_pressure(struct store *s)
{
	bool pressed = store_relieve(s);
	if (!pressed)
		return false;
	lock_take(&s->lock);
	s->flush_wanted |= atomic_load(&s->active->bytes) > s->memtable_bytes / 4;
	pthread_cond_signal(&s->flush_wake);
	lock_release(&s->lock);
	return true;
}

/* Mostly its turn comes soon, and waiting costs less than sending it all again. */
enum status store_admit(struct store *s, uint64_t bytes, struct store_entry **entry, struct err *e)
{
	if (!*entry)
		*entry = calloc(1, sizeof(**entry));
	if (!*entry)
		return err_set(e, E_NOMEM, "a batch");
	struct memory_holder *h = &(*entry)->holder;
	bytes += (*entry)->lent;
	(*entry)->lent = 0;
	int64_t deadline = clock_monotonic_ns() + s->config.wait_ns, until = 0;
	enum memory_got got;
	do {
		bool pressed = look_at_pressure(s);
		got = memory_take(&s->ingest_memory, h, bytes, pressed, until);
		until = MIN(clock_monotonic_ns() + ADMIT_LOOK_NS, deadline);
	} while (got == MEMORY_WAIT && clock_monotonic_ns() < deadline &&
		 !atomic_load(&s->stopping));
	if (got == MEMORY_GOT)
		return OK;
	memory_leave(&s->ingest_memory, h);
	metric_add(&s->metrics.refused_memory, 1);
	return err_set(e, E_UNAVAILABLE,
		"batches on their way in hold their %llu MiB of memory, %llu more do not fit: try "
		"again",
		(unsigned long long)(s->ingest_memory.limit >> 20),
		(unsigned long long)(bytes >> 20));
}

void store_admit_keep(struct store *s, struct store_entry *entry, uint64_t bytes)
{
	uint64_t given = entry->holder.held - MIN(bytes, entry->holder.held);
	memory_give(&s->ingest_memory, &entry->holder, given);
	entry->lent += given;
}

void store_admit_end(struct store *s, struct store_entry *entry)
{
	if (entry)
		memory_give(&s->ingest_memory, &entry->holder, entry->holder.held);
	free(entry);
}

enum status store_append(struct store *s, struct str tenant, const struct profile *p,
	struct hash128 batch_id, struct err *e)
{
	struct err local = { 0 };
	enum status st = append(s, tenant, p, batch_id, e ? e : &local);
	if (st != OK)
		metric_add(&s->metrics.rejected, 1);
	return st;
}

enum status store_flush(struct store *s, struct err *e)
{
	return store_flush_now(s, e);
}

uint64_t store_part_bytes(struct store *s)
{
	uint64_t bytes = 0;
	lock_take(&s->lock);
	for (size_t i = 0; i < s->parts.len; i++)
		bytes += part_file_bytes(s->parts.v[i]);
	lock_release(&s->lock);
	return bytes;
}

void store_write_metrics(struct store *s, struct buf *out)
{
	static const struct metric_def defs[] = { STORE_METRICS(METRIC_DEF) };
	struct log_stats log = log_stats_get(s->log);
	metric_set(&s->metrics.log_bytes, log.bytes);
	metric_set(&s->metrics.log_syncs, log.syncs);
	lock_take(&s->lock);
	uint64_t bytes = 0, rows = 0;
	struct memtable *tables[] = { s->active, s->frozen };
	for (size_t i = 0; i < ARRAY_COUNT(tables); i++) {
		if (!tables[i])
			continue;
		struct memtable_snapshot snap;
		memtable_snapshot(tables[i], &snap);
		bytes += atomic_load(&tables[i]->bytes);
		rows += snap.row_count;
		memtable_unref(snap.table);
	}
	store_count_parts(s);
	lock_release(&s->lock);
	metric_set(&s->metrics.memtable_bytes, bytes);
	metric_set(&s->metrics.memtable_rows, rows);
	metric_set(&s->metrics.ingest_bytes, memory_used(&s->ingest_memory));
	metric_set(&s->metrics.query_bytes, memory_used(&s->queries_memory));
	metrics_write(out, defs, (const metric_value *)&s->metrics, ARRAY_COUNT(defs));
}
