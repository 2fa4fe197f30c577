/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group commit: callers queue up; one of them, the leader, takes the whole queue, writes it with
 * one pwrite and one fdatasync, and wakes the others. A caller that wakes up unserved leads the
 * next group. The leader owns the current segment; log_seal() and log_release() become the leader
 * too.
 *
 * After a failed write or sync a segment is sealed: its state on the disk is not known, so nothing
 * is written behind it. The callers of that group get the error. A later append tries a new
 * segment, so that it succeeds once a full disk has room. The same happens if the file has lost its
 * name.
 *
 * With each sync, space that was allocated but never written costs a commit of the file system's
 * journal, which is as much work as the sync itself. So a new segment gets zeros ahead of its
 * records now and then, and segments are reused.
 */
#include "store/log/log.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/vec.h"
#include "codec/codec.h"
#include "store/log/batch.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOG_FILES_MAX 65536
/* How many zeros are written ahead of the records at a time, once a segment is filling up. */
#define AHEAD_BYTES ((uint64_t)1 << 20)
#define AHEAD_FROM_BYTES ((uint64_t)1 << 20)
#define AHEAD_STEP_BYTES ((size_t)256 << 10)
#define AHEAD_RECORD_BYTES ((size_t)64 << 10)

struct waiter {
	struct waiter *next;
	const struct log_record *record;
	uint64_t sequence;
	bool done;
	enum status status;
	struct err err;
};

struct segment {
	uint64_t id;
	uint64_t last_sequence;
	uint64_t written; /* bytes of the file that were ever written, as far as is known */
	char *path;
};

struct log {
	char *dir;
	int dir_fd;
	struct hash128 store_id;
	struct lock lock;
	pthread_cond_t wake;
	struct waiter *first;
	struct waiter **last;
	bool led;          /* a thread owns the current segment */
	unsigned no_reuse; /* how many callers have forbidden reuse */
	uint64_t next_sequence;
	uint64_t next_segment;
	uint64_t segment_bytes;
	struct log_stats stats;
	VEC(struct segment) sealed; /* oldest first */
	VEC(struct segment) free_files;
	size_t found;
	/* the current segment; fd is -1 when there is none */
	int fd;
	struct segment current;
	uint64_t salt;
	uint64_t at;
	uint64_t size;
	struct buf out;
};

/* ---- names ---- */

static void segments_free(struct segment *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].path);
	free(v);
}

static enum status found_file(struct log *l, struct str name, struct err *e)
{
	uint64_t id;
	bool is_log = str_ends(name, STR(".log")), is_free = str_ends(name, STR(".free"));
	struct str digits = str_sub(name, 0, 16);
	if (!(is_log || is_free) || digits.len != 16 || !str_parse_u64(digits, 16, &id))
		return OK;
	char path[STORE_PATH_MAX];
	enum status s = store_path(path, e, "%s/%.*s", l->dir, STR_ARG(name));
	if (s != OK)
		return s;
	struct stat st;
	if (stat(path, &st) < 0)
		return err_os(e, "stat %s", path);
	l->next_segment = MAX(l->next_segment, id + 1);
	if (!S_ISREG(st.st_mode)) /* a pipe: opening it would wait */
		return OK;
	if (is_free && l->free_files.len >= LOG_FREE_MAX)
		return store_io_unlink(path, e);
	struct segment seg = { id, UINT64_MAX, 0, strdup(path) };
	bool ok = seg.path && (is_log ? VEC_PUSH(&l->sealed, seg) : VEC_PUSH(&l->free_files, seg));
	if (!ok) {
		free(seg.path);
		return err_set(e, E_NOMEM, "the list of log segments");
	}
	return OK;
}

static enum status find_files(struct log *l, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, LOG_FILES_MAX * 64);
	struct str *names;
	size_t n;
	enum status s = os_list_dir(l->dir, &a, &names, &n, e);
	for (size_t i = 0; i < n && s == OK; i++)
		s = found_file(l, names[i], e);
	l->found = l->sealed.len;
	return s;
}

enum status log_open(const char *dir, struct hash128 store_id, uint64_t next_segment,
	uint64_t segment_bytes, struct log **out, struct err *e)
{
	struct log *l = calloc(1, sizeof(*l));
	if (!l)
		return err_set(e, E_NOMEM, "%s", dir);
	l->dir = strdup(dir);
	l->dir_fd = -1;
	l->store_id = store_id;
	l->next_segment = MAX(next_segment, (uint64_t)1);
	l->segment_bytes = MAX(segment_bytes, LOG_SEGMENT_BYTES_MIN);
	l->next_sequence = 1;
	l->last = &l->first;
	l->fd = -1;
	lock_init(&l->lock, LOCK_STORE_LOG);
	pthread_cond_init(&l->wake, NULL);
	buf_init(&l->out, LOG_SEGMENT_BYTES_MAX);
	enum status s = l->dir ? OK : err_set(e, E_NOMEM, "%s", dir);
	if (s == OK)
		s = store_io_open(dir, O_RDONLY | O_DIRECTORY, 0, &l->dir_fd, e);
	if (s == OK)
		s = find_files(l, e);
	if (s != OK) {
		log_close(l);
		return s;
	}
	*out = l;
	return OK;
}

void log_close(struct log *l)
{
	if (!l)
		return;
	assert(!l->first && !l->led);
	if (l->fd >= 0)
		close(l->fd);
	if (l->dir_fd >= 0)
		close(l->dir_fd);
	free(l->current.path);
	segments_free(l->sealed.v, l->sealed.len);
	segments_free(l->free_files.v, l->free_files.len);
	buf_deinit(&l->out);
	lock_destroy(&l->lock);
	pthread_cond_destroy(&l->wake);
	free(l->dir);
	free(l);
}

void log_skip_to(struct log *l, uint64_t next_sequence)
{
	lock_take(&l->lock);
	l->next_sequence = MAX(l->next_sequence, next_sequence);
	lock_release(&l->lock);
}

uint64_t log_next_sequence(struct log *l)
{
	lock_take(&l->lock);
	uint64_t n = l->next_sequence;
	lock_release(&l->lock);
	return n;
}

uint64_t log_next_segment(struct log *l)
{
	lock_take(&l->lock);
	uint64_t n = l->next_segment;
	lock_release(&l->lock);
	return n;
}

struct log_stats log_stats_get(struct log *l)
{
	lock_take(&l->lock);
	struct log_stats s = l->stats;
	lock_release(&l->lock);
	return s;
}

size_t log_found_count(const struct log *l)
{
	return l->found;
}

const char *log_found_path(const struct log *l, size_t i)
{
	assert(i < l->found);
	return l->sealed.v[i].path;
}

void log_found_set(struct log *l, size_t i, uint64_t last_sequence)
{
	assert(i < l->found);
	l->sealed.v[i].last_sequence = last_sequence;
}

/* ---- segments: the leader only ---- */

static void encode_header(struct log *l, uint8_t out[LOG_HEADER_BYTES], uint64_t id, uint64_t size)
{
	memset(out, 0, LOG_HEADER_BYTES);
	memcpy(out, "FIRNWLOG", 8);
	out[8] = 1;
	memcpy(out + 16, &id, 8);
	memcpy(out + 24, &l->salt, 8);
	memcpy(out + 32, &l->store_id, 16);
	memcpy(out + 48, &size, 8);
	uint32_t crc = codec_crc32c(0, out, LOG_HEADER_BYTES - 4);
	memcpy(out + LOG_HEADER_BYTES - 4, &crc, 4);
}

/* Makes a file `tmp` with a header and room, then gives it its name: a crash leaves no incomplete
 * segment. */
static enum status make_segment(
	struct log *l, const char *tmp, const char *path, uint64_t id, uint64_t size, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = -1;
	enum status s = store_io_open(tmp, O_RDWR | O_CREAT, 0640, &fd, e);
	struct stat st;
	if (s == OK && fstat(fd, &st) < 0)
		s = err_os(e, "stat %s", tmp);
	if (s == OK && (uint64_t)st.st_size < size)
		s = store_io_allocate(fd, size, tmp, e);
	if (s == OK && getrandom(&l->salt, sizeof(l->salt), 0) != sizeof(l->salt))
		s = err_os(e, "getrandom");
	uint8_t header[LOG_HEADER_BYTES];
	if (s == OK)
		l->size = MAX(size, (uint64_t)st.st_size);
	encode_header(l, header, id, l->size);
	if (s == OK)
		s = store_io_pwrite(fd, header, sizeof(header), 0, tmp, e);
	if (s == OK)
		s = store_io_sync(fd, tmp, e);
	if (s == OK)
		s = store_io_rename(tmp, path, e);
	if (s == OK)
		s = store_io_sync_dir(l->dir, e);
	if (s != OK)
		return s;
	l->fd = STEAL_FD(fd);
	l->at = LOG_HEADER_BYTES;
	return OK;
}

/* Takes the lock for the lists. A directory that was removed, or replaced by another program, gets
 * no segment of ours. */
static enum status open_segment(struct log *l, uint64_t need, struct err *e)
{
	if (!store_io_same(l->dir, l->dir_fd))
		return err_set(e, E_NOTFOUND, "%s was removed or replaced while in use", l->dir);
	lock_take(&l->lock);
	uint64_t id = l->next_segment++;
	struct segment used = { 0 };
	if (l->free_files.len)
		used = l->free_files.v[--l->free_files.len];
	bool room = VEC_RESERVE(&l->sealed, l->sealed.len + 1);
	lock_release(&l->lock);
	char tmp[STORE_PATH_MAX] = "", path[STORE_PATH_MAX];
	enum status s = room ? OK : err_set(e, E_NOMEM, "the list of log segments");
	if (s == OK)
		s = store_path(path, e, "%s/%016llx.log", l->dir, (unsigned long long)id);
	if (s == OK && used.path)
		s = store_path(tmp, e, "%s", used.path);
	else if (s == OK)
		s = store_path(tmp, e, "%s/%016llx.free", l->dir, (unsigned long long)id);
	free(used.path);
	char *kept = s == OK ? strdup(path) : NULL;
	if (s == OK && !kept)
		s = err_set(e, E_NOMEM, "%s", path);
	if (s == OK)
		s = make_segment(l, tmp, path, id, MAX(l->segment_bytes, need), e);
	if (s != OK) {
		free(kept);
		(void)!store_io_unlink(tmp, NULL);
		return s;
	}
	l->current = (struct segment){ id, 0, used.written, kept };
	return OK;
}

/* With the lock held. */
static void seal_segment(struct log *l)
{
	if (l->fd < 0)
		return;
	close(l->fd);
	l->fd = -1;
	l->current.last_sequence = l->next_sequence - 1;
	assert(l->sealed.len < l->sealed.cap);
	l->sealed.v[l->sealed.len++] = l->current;
	l->current = (struct segment){ 0 };
}

/* ---- appending ---- */

static void encode_record(struct log *l, const struct waiter *w)
{
	const struct log_record *r = w->record;
	struct buf *out = &l->out;
	size_t begin = out->len;
	buf_put(out, "FREC", 4);
	buf_u32(out, 0);
	buf_u64(out, l->salt);
	buf_u64(out, w->sequence);
	buf_u64(out, (uint64_t)r->arrived_ns);
	buf_u64(out, r->batch_id.lo);
	buf_u64(out, r->batch_id.hi);
	buf_u32(out, (uint32_t)r->payload.len);
	buf_u32(out, r->raw_len);
	buf_u8(out, r->kind);
	buf_u8(out, r->coding);
	buf_zero(out, 6);
	buf_str(out, r->payload);
	if (!out->failed) {
		uint32_t crc = codec_crc32c(0, out->data + begin + 8, out->len - begin - 8);
		memcpy(out->data + begin + 4, &crc, 4);
	}
	while (out->len % 8 && !out->failed)
		buf_u8(out, 0);
}

static uint64_t group_bytes(const struct waiter *w)
{
	uint64_t n = 0;
	for (; w; w = w->next)
		n += (LOG_RECORD_HEADER_BYTES + w->record->payload.len + 7) & ~(uint64_t)7;
	return n;
}

/* Checks that the file still has its name: durable bytes in a file without one are gone at the next
 * start. */
static enum status check_named(const struct log *l, struct err *e)
{
	struct stat st;
	if (fstat(l->fd, &st) < 0)
		return err_os(e, "stat %s", l->current.path);
	if (st.st_nlink == 0)
		return err_set(e, E_NOTFOUND, "%s was removed while in use", l->current.path);
	return OK;
}

/* Writes zeros ahead of the records. No record depends on them: an error here comes again with a
 * record, or does not matter. Long records need few syncs, so it is not worth it to write all bytes
 * twice for them. */
static void write_ahead(struct log *l, uint64_t end, size_t len)
{
	l->current.written = MAX(l->current.written, end);
	if (l->current.written > end || end < AHEAD_FROM_BYTES || len > AHEAD_RECORD_BYTES)
		return;
	CLEANUP(free_cleanup) uint8_t *zeros = calloc(1, AHEAD_STEP_BYTES);
	uint64_t until = MIN(l->size, end + AHEAD_BYTES);
	while (zeros && l->current.written < until) {
		size_t n = (size_t)MIN(until - l->current.written, (uint64_t)AHEAD_STEP_BYTES);
		if (store_io_pwrite(l->fd, zeros, n, l->current.written, l->current.path, NULL) !=
			OK)
			return;
		l->current.written += n;
	}
}

static enum status write_group(struct log *l, const struct waiter *group, struct err *e)
{
	uint64_t need = group_bytes(group);
	enum status s = OK;
	if (l->fd >= 0 && l->at + need > l->size) {
		lock_take(&l->lock);
		seal_segment(l);
		lock_release(&l->lock);
	}
	if (l->fd < 0)
		s = open_segment(l, LOG_HEADER_BYTES + need, e);
	if (s != OK)
		return s;
	buf_clear(&l->out);
	for (const struct waiter *w = group; w; w = w->next)
		encode_record(l, w);
	s = buf_status(&l->out);
	if (s != OK)
		return err_set(e, s, "no memory for %llu bytes of log", (unsigned long long)need);
	s = store_io_pwrite(l->fd, l->out.data, l->out.len, l->at, l->current.path, e);
	if (s == OK)
		write_ahead(l, l->at + l->out.len, l->out.len);
	if (s == OK)
		s = store_io_sync(l->fd, l->current.path, e);
	if (s == OK)
		s = check_named(l, e);
	if (s == OK)
		l->at += l->out.len;
	if (l->out.cap > LOG_GROUP_BYTES_MAX) {
		buf_deinit(&l->out);
		buf_init(&l->out, LOG_SEGMENT_BYTES_MAX);
	}
	return s;
}

/* Takes the front of the queue, at most LOG_GROUP_BYTES_MAX bytes unless it is one record. */
static struct waiter *take_group(struct log *l)
{
	struct waiter *group = l->first, *w = group;
	size_t bytes = w->record->payload.len;
	while (w->next && bytes + w->next->record->payload.len <= LOG_GROUP_BYTES_MAX) {
		w = w->next;
		bytes += w->record->payload.len;
	}
	l->first = w->next;
	if (!l->first)
		l->last = &l->first;
	w->next = NULL;
	return group;
}

/* With the lock held; it is released while the disk works. */
static void lead(struct log *l)
{
	l->led = true;
	struct waiter *group = take_group(l);
	lock_release(&l->lock);
	struct err err = { 0 };
	enum status s = write_group(l, group, &err);
	lock_take(&l->lock);
	if (s == OK) {
		l->stats.bytes += group_bytes(group);
		l->stats.syncs++;
	} else {
		seal_segment(l);
	}
	while (group) {
		struct waiter *next = group->next;
		group->status = s;
		group->err = err;
		group->done = true;
		group = next;
	}
	l->led = false;
	pthread_cond_broadcast(&l->wake);
}

enum status log_append(
	struct log *l, struct log_record *record, uint64_t *out_sequence, struct err *e)
{
	if (record->payload.len > BATCH_BYTES_MAX)
		return err_set(e, E_LIMIT, "a batch of %zu bytes; the log takes %zu",
			record->payload.len, BATCH_BYTES_MAX);
	struct waiter w = { .record = record };
	lock_take(&l->lock);
	w.sequence = l->next_sequence++;
	*l->last = &w;
	l->last = &w.next;
	while (!w.done) {
		if (!l->led)
			lead(l);
		else
			lock_wait(&l->wake, &l->lock);
	}
	lock_release(&l->lock);
	if (w.status != OK) {
		if (e)
			*e = w.err;
		return w.status;
	}
	record->sequence = w.sequence;
	*out_sequence = w.sequence;
	return OK;
}

uint64_t log_seal(struct log *l)
{
	lock_take(&l->lock);
	while (l->led)
		lock_wait(&l->wake, &l->lock);
	seal_segment(l);
	uint64_t last = l->next_sequence - 1;
	lock_release(&l->lock);
	return last;
}

static enum status retire(struct log *l, struct segment *seg, bool keep, struct err *e)
{
	if (!keep)
		return store_io_unlink(seg->path, e);
	char path[STORE_PATH_MAX];
	enum status s = store_path(path, e, "%s/%016llx.free", l->dir, (unsigned long long)seg->id);
	char *renamed = s == OK ? strdup(path) : NULL;
	if (s == OK && !renamed)
		s = err_set(e, E_NOMEM, "%s", path);
	if (s == OK)
		s = store_io_rename(seg->path, renamed, e);
	if (s == E_NOTFOUND) {
		free(renamed);
		free(seg->path);
		seg->path = NULL; /* the file is gone already */
		return OK;
	}
	if (s != OK) {
		free(renamed);
		return s;
	}
	free(seg->path);
	seg->path = renamed;
	return OK;
}

/* Few files, and rarely: done with the lock held. */
enum status log_release(struct log *l, uint64_t sequence, struct err *e)
{
	enum status s = OK;
	lock_take(&l->lock);
	size_t kept = 0;
	for (size_t i = 0; i < l->sealed.len; i++) {
		struct segment *seg = &l->sealed.v[i];
		bool keep_file = !l->no_reuse && l->free_files.len < LOG_FREE_MAX &&
				 VEC_RESERVE(&l->free_files, l->free_files.len + 1);
		if (s != OK || seg->last_sequence > sequence ||
			(s = retire(l, seg, keep_file, e)) != OK) {
			l->sealed.v[kept++] = *seg;
			continue;
		}
		if (keep_file && seg->path)
			l->free_files.v[l->free_files.len++] = *seg;
		else
			free(seg->path);
	}
	l->sealed.len = kept;
	lock_release(&l->lock);
	return s;
}

enum status log_check_kept(struct log *l, struct err *e)
{
	enum status s = OK;
	lock_take(&l->lock);
	for (size_t i = 0; i < l->sealed.len && s == OK; i++)
		if (l->sealed.v[i].last_sequence == UINT64_MAX)
			s = err_set(e, E_UNAVAILABLE,
				"the damaged segment %.200s is kept, as no copy of it could be "
				"made: make room, and start firn anew",
				l->sealed.v[i].path);
	lock_release(&l->lock);
	return s;
}

void log_reuse(struct log *l, bool on)
{
	lock_take(&l->lock);
	l->no_reuse += on ? -1u : 1u;
	lock_release(&l->lock);
}

enum status log_forget_free(struct log *l, struct err *e)
{
	enum status s = OK;
	lock_take(&l->lock);
	while (s == OK && l->free_files.len) {
		s = store_io_unlink(l->free_files.v[l->free_files.len - 1].path, e);
		if (s == OK)
			free(l->free_files.v[--l->free_files.len].path);
	}
	lock_release(&l->lock);
	return s;
}
