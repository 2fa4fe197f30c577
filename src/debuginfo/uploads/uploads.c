/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records on disk are the state; memory has only sums, and the uploads that are arriving. So a
 * process that is killed at any point leaves either the old state or the new one
 * (docs/formats/debuginfo.md):
 *
 * 	begin:   record {upload, uploading}
 * 	arrive:  BASE.UPLOAD.part grows; whole: synced, renamed to BASE.UPLOAD
 * 	finish:  looked at; record {uploaded, ready = upload}; the file before it goes
 *
 * One lock protects records and complete files; bytes are received without it.
 */
#include "debuginfo/uploads/internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "objfile/objfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NO_RECORD "no debuginfo metadata found for build id"
/* Disk space is reserved for as many bytes again as have come, within these limits. */
#define AHEAD_MIN ((uint64_t)64 << 10)
#define AHEAD_MAX ((uint64_t)16 << 20)

void debuginfo_uploads_config_default(struct debuginfo_uploads_config *c)
{
	*c = (struct debuginfo_uploads_config){
		.dir = "",
		.bytes_max = (uint64_t)4 << 30,
		.upload_bytes_max = 1000000000,
		.stale_ns = 17 * 60 * NS_PER_SEC,
	};
}

/* ---- records ---- */

enum status debuginfo_record_read(struct debuginfo_uploads *u, const struct debuginfo_key *key,
	struct debuginfo_record *out, struct err *e)
{
	struct debuginfo_place place;
	char path[DEBUGINFO_PATH_BYTES];
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, DEBUGINFO_RECORD_BYTES_MAX);
	enum status s = debuginfo_place_of(u, key, &place, e);
	if (s != OK)
		return s;
	debuginfo_record_begin(key, out);
	debuginfo_path(&place, "record", false, path);
	s = os_read_file(path, &bytes, e);
	if (s == E_NOTFOUND)
		return OK;
	if (s != OK)
		return s;
	struct debuginfo_record r;
	s = debuginfo_record_decode(buf_view(&bytes), &r, e);
	if (s != OK || strcmp(r.build_id, out->build_id) || strcmp(r.tenant, out->tenant) ||
		r.type != out->type) {
		metric_add(&u->metrics.damaged, 1);
		return debuginfo_room_set_aside(u, &place, e);
	}
	*out = r;
	return OK;
}

enum status debuginfo_uploads_find(struct debuginfo_uploads *u, const struct debuginfo_key *key,
	struct debuginfo_record *out, struct err *e)
{
	lock_take(&u->lock);
	enum status s = debuginfo_record_read(u, key, out, e);
	lock_release(&u->lock);
	return s;
}

/* ---- open and close ---- */

static void uploads_cleanup(struct debuginfo_uploads **u)
{
	debuginfo_uploads_close(*u);
}

enum status debuginfo_uploads_open(
	const struct debuginfo_uploads_config *c, struct debuginfo_uploads **out, struct err *e)
{
	CLEANUP(uploads_cleanup) struct debuginfo_uploads *u = calloc(1, sizeof(*u));
	if (!u)
		return err_set(e, E_NOMEM, "uploads");
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	lock_init(&u->lock, LOCK_UPLOADS);
	pthread_cond_init(&u->left, &attr);
	pthread_condattr_destroy(&attr);
	u->config = *c;
	u->config.dir = strdup(c->dir);
	if (!u->config.dir)
		return err_set(e, E_NOMEM, "uploads");
	enum status s = os_make_dirs(u->config.dir, e);
	lock_take(&u->lock);
	if (s == OK)
		s = debuginfo_room_begin(u, e);
	lock_release(&u->lock);
	if (s == OK)
		*out = STEAL_PTR(u);
	return s;
}

void debuginfo_uploads_close(struct debuginfo_uploads *u)
{
	if (!u)
		return;
	assert(!u->arriving);
	lock_destroy(&u->lock);
	pthread_cond_destroy(&u->left);
	free((char *)(uintptr_t)u->config.dir);
	free(u);
}

void debuginfo_uploads_write_metrics(struct debuginfo_uploads *u, struct buf *out)
{
	static const struct metric_def defs[] = { DEBUGINFO_METRICS(METRIC_DEF) };
	lock_take(&u->lock);
	metric_set(&u->metrics.bytes, u->bytes);
	metric_set(&u->metrics.ids, u->ids);
	metric_set(&u->metrics.arriving, u->arriving_count);
	lock_release(&u->lock);
	metrics_write(out, defs, (const metric_value *)&u->metrics, ARRAY_COUNT(defs));
}

/* ---- begin ---- */

/* RFC 9562, version 4. */
static enum status make_upload_id(char out[DEBUGINFO_UPLOAD_ID_LEN + 1], struct err *e)
{
	uint8_t b[16];
	if (getrandom(b, sizeof(b), 0) != sizeof(b))
		return err_os(e, "random bytes");
	b[6] = (b[6] & 0x0F) | 0x40;
	b[8] = (b[8] & 0x3F) | 0x80;
	snprintf(out, DEBUGINFO_UPLOAD_ID_LEN + 1,
		"%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
		b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
		b[15]);
	return OK;
}

static struct debuginfo_upload *find_arriving(struct debuginfo_uploads *u, const char *upload)
{
	struct debuginfo_upload *up = u->arriving;
	while (up && strcmp(up->record.upload, upload) != 0)
		up = up->next;
	return up;
}

/* Deletes the file of an upload that will not be finished. */
static void drop_unfinished(struct debuginfo_uploads *u, const struct debuginfo_record *r)
{
	struct debuginfo_place place;
	struct debuginfo_key key = debuginfo_key_of(r);
	char path[DEBUGINFO_PATH_BYTES];
	struct stat st;
	if (!r->upload[0] || strcmp(r->upload, r->ready) == 0 || find_arriving(u, r->upload) ||
		debuginfo_place_of(u, &key, &place, NULL) != OK)
		return;
	debuginfo_path(&place, r->upload, false, path);
	if (stat(path, &st) == 0 && unlink(path) == 0)
		u->bytes -= MIN(u->bytes, (uint64_t)st.st_size);
}

static enum status make_folder(
	struct debuginfo_uploads *u, const struct debuginfo_key *key, struct err *e)
{
	struct debuginfo_place place;
	enum status s = debuginfo_place_of(u, key, &place, e);
	if (s != OK || access(place.dir, F_OK) == 0)
		return s;
	s = debuginfo_room_for_id(u, e);
	if (s == OK)
		s = os_make_dirs(place.dir, e);
	if (s == OK)
		u->ids++;
	return s;
}

static enum status begin(struct debuginfo_uploads *u, const struct debuginfo_key *key,
	struct debuginfo_record *r, struct str hash, uint64_t size_bytes, struct err *e)
{
	struct debuginfo_record old = *r;
	if (size_bytes > u->config.bytes_max)
		return err_set(e, E_LIMIT, "size: %llu bytes; all uploads together may have %llu",
			(unsigned long long)size_bytes, (unsigned long long)u->config.bytes_max);
	enum status s = make_folder(u, key, e);
	if (s == OK)
		s = make_upload_id(r->upload, e);
	if (s != OK)
		return s;
	debuginfo_copy_text(r->hash, sizeof(r->hash), hash);
	r->size_bytes = size_bytes;
	r->state = DEBUGINFO_UPLOADING;
	r->started_ns = clock_realtime_ns();
	r->finished_ns = 0;
	r->invalid = false;
	s = debuginfo_record_write(u, r, e);
	if (s == OK)
		drop_unfinished(u, &old);
	return s;
}

enum status debuginfo_uploads_begin(struct debuginfo_uploads *u, const struct debuginfo_key *key,
	struct str hash, uint64_t size_bytes, debuginfo_may_begin_fn *may, void *ctx,
	struct debuginfo_record *out, struct err *e)
{
	struct debuginfo_record r;
	if (hash.len > DEBUGINFO_HASH_MAX || str_index(hash, 0) < hash.len)
		return err_set(e, E_INVALID, "hash: more than %d bytes, or a NUL among them",
			DEBUGINFO_HASH_MAX);
	lock_take(&u->lock);
	enum status s = debuginfo_record_read(u, key, &r, e);
	if (s == OK)
		s = may(ctx, &r, e);
	if (s == OK)
		s = begin(u, key, &r, hash, size_bytes, e);
	lock_release(&u->lock);
	if (s == OK)
		*out = r;
	return s;
}

/* ---- arrive ---- */

static enum status may_arrive(struct debuginfo_uploads *u, const struct debuginfo_record *r,
	struct str upload_id, struct err *e)
{
	if (r->state == DEBUGINFO_NOT_SEEN || !r->upload[0])
		return err_set(e, E_NOTFOUND, NO_RECORD);
	if (!str_eq(upload_id, str_of(r->upload)))
		return err_set(e, E_INVALID, "upload id mismatch");
	if (r->state == DEBUGINFO_UPLOADED || r->state == DEBUGINFO_PURGED)
		return err_set(e, E_PRECONDITION, "the upload is finished");
	if (find_arriving(u, r->upload))
		return err_set(e, E_PRECONDITION, "the upload arrives already");
	return OK;
}

/* With the lock held: waits until fewer uploads than the limit are arriving. */
static enum status wait_for_place(struct debuginfo_uploads *u, int64_t deadline_ns, struct err *e)
{
	struct timespec at = { deadline_ns / NS_PER_SEC, deadline_ns % NS_PER_SEC };
	int rc = u->waiting_count < DEBUGINFO_WAITING_MAX ? 0 : ETIMEDOUT;
	u->waiting_count++;
	while (u->arriving_count >= DEBUGINFO_ARRIVING_MAX && rc != ETIMEDOUT)
		rc = lock_wait_until(&u->left, &u->lock, &at);
	u->waiting_count--;
	return u->arriving_count < DEBUGINFO_ARRIVING_MAX
		       ? OK
		       : err_set(e, E_UNAVAILABLE, "%d uploads arrive already, try again",
				 DEBUGINFO_ARRIVING_MAX);
}

static enum status start_arriving(struct debuginfo_uploads *u, struct debuginfo_upload *up,
	const struct debuginfo_key *key, struct str upload_id, struct err *e)
{
	struct debuginfo_place place;
	char path[DEBUGINFO_PATH_BYTES];
	enum status s = debuginfo_record_read(u, key, &up->record, e);
	if (s == OK)
		s = may_arrive(u, &up->record, upload_id, e);
	if (s == OK)
		s = debuginfo_place_of(u, key, &place, e);
	if (s != OK)
		return s;
	drop_unfinished(u, &up->record); /* the upload is sent again */
	if (up->record.state == DEBUGINFO_BROKEN) {
		up->record.state = DEBUGINFO_UPLOADING;
		s = debuginfo_record_write(u, &up->record, e);
	}
	if (s != OK)
		return s;
	debuginfo_path(&place, up->record.upload, true, path);
	up->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	if (up->fd < 0)
		return err_os(e, "create %s", path);
	up->u = u;
	up->next = u->arriving;
	u->arriving = up;
	u->arriving_count++;
	return OK;
}

/* With the lock held: after a failure the sender may begin again at once, and not only when the
 * upload is stale. */
static void may_try_again(
	struct debuginfo_uploads *u, const struct debuginfo_key *key, struct str upload_id)
{
	struct debuginfo_record r;
	if (debuginfo_record_read(u, key, &r, NULL) != OK || r.state != DEBUGINFO_UPLOADING ||
		may_arrive(u, &r, upload_id, NULL) != OK)
		return;
	r.state = DEBUGINFO_BROKEN;
	(void)!debuginfo_record_write(u, &r, NULL);
}

enum status debuginfo_upload_open(struct debuginfo_uploads *u, const struct debuginfo_key *key,
	struct str upload_id, int64_t deadline_ns, struct debuginfo_upload **out, struct err *e)
{
	struct debuginfo_record known;
	struct debuginfo_upload *up = calloc(1, sizeof(*up));
	if (!up)
		return err_set(e, E_NOMEM, "an upload");
	up->fd = -1;
	lock_take(&u->lock);
	/* Checked also before waiting, so that a wrong upload is refused at once. */
	enum status s = debuginfo_record_read(u, key, &known, e);
	if (s == OK)
		s = may_arrive(u, &known, upload_id, e);
	if (s == OK) {
		s = wait_for_place(u, deadline_ns, e);
		if (s != OK)
			may_try_again(u, key, upload_id);
	}
	if (s == OK)
		s = start_arriving(u, up, key, upload_id, e);
	lock_release(&u->lock);
	if (s == OK)
		*out = up;
	else
		free(up);
	return s;
}

/* Reserves disk space for the bytes that have come and these. Announced bytes that do not come take
 * none. */
static enum status reserve(struct debuginfo_upload *up, uint64_t bytes, struct err *e)
{
	if (bytes <= up->reserved)
		return OK;
	uint64_t ahead = MIN(MAX(bytes, AHEAD_MIN), AHEAD_MAX);
	uint64_t more = MIN(bytes + ahead, up->record.size_bytes) - up->reserved;
	lock_take(&up->u->lock);
	enum status s = debuginfo_room_make(up->u, more, e);
	if (s == OK) {
		up->u->bytes += more;
		up->reserved += more;
	}
	lock_release(&up->u->lock);
	return s;
}

/* Only a few uploads may arrive at a time, so a very slow sender is stopped. */
enum status debuginfo_upload_write(struct debuginfo_upload *up, struct str bytes, struct err *e)
{
	int64_t took_ns = clock_realtime_ns() - up->record.started_ns;
	if (took_ns > up->u->config.stale_ns)
		return err_set(e, E_TIMEOUT,
			"the upload was begun %lld s ago, %lld s are the limit",
			(long long)(took_ns / NS_PER_SEC),
			(long long)(up->u->config.stale_ns / NS_PER_SEC));
	if (bytes.len > up->record.size_bytes - up->bytes)
		return err_set(e, E_INVALID, "more than the %llu bytes that were announced",
			(unsigned long long)up->record.size_bytes);
	enum status s = reserve(up, up->bytes + bytes.len, e);
	if (s == OK)
		s = os_write_full(up->fd, bytes.p, bytes.len, "the upload", e);
	if (s != OK)
		return s;
	up->bytes += bytes.len;
	metric_add(&up->u->metrics.upload_bytes, bytes.len);
	return OK;
}

static enum status make_whole(struct debuginfo_upload *up, struct err *e)
{
	struct debuginfo_record now;
	struct debuginfo_place place;
	struct debuginfo_key key = debuginfo_key_of(&up->record);
	char part[DEBUGINFO_PATH_BYTES], whole[DEBUGINFO_PATH_BYTES];
	enum status s = debuginfo_record_read(up->u, &key, &now, e);
	if (s == OK)
		s = debuginfo_place_of(up->u, &key, &place, e);
	if (s != OK)
		return s;
	if (strcmp(now.upload, up->record.upload) != 0)
		return err_set(e, E_PRECONDITION, "another upload was begun meanwhile");
	debuginfo_path(&place, up->record.upload, true, part);
	debuginfo_path(&place, up->record.upload, false, whole);
	if (rename(part, whole) != 0)
		return err_os(e, "rename %s", part);
	return os_fsync_dir(place.dir, e);
}

enum status debuginfo_upload_end(struct debuginfo_upload *up, uint64_t *out_bytes, struct err *e)
{
	if (up->bytes != up->record.size_bytes)
		return err_set(e, E_INVALID, "%llu bytes came, %llu were announced",
			(unsigned long long)up->bytes, (unsigned long long)up->record.size_bytes);
	if (fsync(up->fd) != 0)
		return err_os(e, "fsync the upload");
	lock_take(&up->u->lock);
	enum status s = make_whole(up, e);
	up->whole = s == OK;
	lock_release(&up->u->lock);
	if (s == OK)
		*out_bytes = up->bytes;
	return s;
}

/* With the lock held: deletes the received bytes, and lets the sender try again. */
static void give_up(struct debuginfo_upload *up)
{
	struct debuginfo_record now;
	struct debuginfo_place place;
	struct debuginfo_key key = debuginfo_key_of(&up->record);
	char path[DEBUGINFO_PATH_BYTES];
	metric_add(&up->u->metrics.broken, 1);
	up->u->bytes -= MIN(up->u->bytes, up->reserved);
	if (debuginfo_place_of(up->u, &key, &place, NULL) == OK) {
		debuginfo_path(&place, up->record.upload, true, path);
		unlink(path);
	}
	if (debuginfo_record_read(up->u, &key, &now, NULL) != OK ||
		strcmp(now.upload, up->record.upload) != 0)
		return;
	now.state = DEBUGINFO_BROKEN;
	/* If that fails too, the upload becomes stale later. */
	(void)!debuginfo_record_write(up->u, &now, NULL);
}

/* With the lock held. Another upload was begun after this one was whole, and its record says that
 * bytes are still arriving. It will never be finished. */
static void drop_superseded(const struct debuginfo_upload *up)
{
	struct debuginfo_record now;
	struct debuginfo_key key = debuginfo_key_of(&up->record);
	if (debuginfo_record_read(up->u, &key, &now, NULL) == OK &&
		strcmp(now.upload, up->record.upload) != 0)
		drop_unfinished(up->u, &up->record);
}

void debuginfo_upload_close(struct debuginfo_upload *up)
{
	struct debuginfo_uploads *u = up->u;
	lock_take(&u->lock);
	struct debuginfo_upload **link = &u->arriving;
	while (*link != up)
		link = &(*link)->next;
	*link = up->next;
	u->arriving_count--;
	if (up->whole)
		drop_superseded(up);
	else
		give_up(up);
	pthread_cond_signal(&u->left);
	lock_release(&u->lock);
	close(up->fd);
	free(up);
}

/* ---- finish ---- */

/* Whether the file is of the record's type: an ELF file (64-bit) without another build id for code,
 * a compressed archive for sources. Source maps are not checked. */
static bool is_what_it_says(int fd, const struct debuginfo_record *r)
{
	uint8_t magic[4] = { 0 };
	if (r->type == DEBUGINFO_SOURCE_MAP)
		return true;
	if (r->type == DEBUGINFO_SOURCES)
		return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
		       ((magic[0] == 0x1f && magic[1] == 0x8b && magic[2] == 8) ||
			       memcmp(magic, "\x28\xb5\x2f\xfd", 4) == 0);
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	struct objfile *obj = NULL;
	if (copy < 0)
		return true; /* readers of the file will report it */
	if (objfile_open_fd(copy, "", &obj, NULL) != OK) {
		close(copy);
		return false;
	}
	const char *id = objfile_build_id(obj);
	/* Ids of other kinds (Go's, hashes) are not stored in the file in this form. */
	bool same = !id[0] || strlen(id) != strlen(r->build_id) || strcmp(id, r->build_id) == 0;
	objfile_close(obj);
	return same;
}

static enum status may_finish(struct debuginfo_uploads *u, const struct debuginfo_record *r,
	struct str upload_id, struct err *e)
{
	if (r->state == DEBUGINFO_NOT_SEEN)
		return err_set(e, E_NOTFOUND, NO_RECORD);
	if (!str_eq(upload_id, str_of(r->upload)))
		return err_set(e, E_INVALID, "upload id mismatch");
	if (r->state == DEBUGINFO_BROKEN || find_arriving(u, r->upload))
		return err_set(e, E_PRECONDITION, "the file of this upload is not whole");
	return OK;
}

static void remove_file(struct debuginfo_uploads *u, const struct debuginfo_place *place,
	const char *upload, uint64_t bytes)
{
	char path[DEBUGINFO_PATH_BYTES];
	debuginfo_path(place, upload, false, path);
	if (unlink(path) == 0)
		u->bytes -= MIN(u->bytes, bytes);
}

static enum status finish(struct debuginfo_uploads *u, struct debuginfo_record *r, struct err *e)
{
	struct debuginfo_place place;
	struct debuginfo_key key = debuginfo_key_of(r);
	char path[DEBUGINFO_PATH_BYTES];
	enum status s = debuginfo_place_of(u, &key, &place, e);
	if (s != OK)
		return s;
	debuginfo_path(&place, r->upload, false, path);
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0)
		return err_set(e, E_PRECONDITION, "no file came for this upload");
	struct debuginfo_record old = *r;
	r->invalid = !is_what_it_says(fd, r);
	r->state = DEBUGINFO_UPLOADED;
	r->finished_ns = clock_realtime_ns();
	if (!r->invalid) {
		debuginfo_copy_text(r->ready, sizeof(r->ready), str_of(r->upload));
		r->ready_bytes = (uint64_t)st.st_size;
	}
	s = debuginfo_record_write(u, r, e);
	if (s != OK)
		return s;
	metric_add(&u->metrics.uploads, 1);
	if (r->invalid) {
		metric_add(&u->metrics.invalid, 1);
		remove_file(u, &place, r->upload, (uint64_t)st.st_size);
	} else if (old.ready[0] && strcmp(old.ready, r->ready) != 0) {
		remove_file(u, &place, old.ready, old.ready_bytes);
	}
	return OK;
}

enum status debuginfo_uploads_finish(struct debuginfo_uploads *u, const struct debuginfo_key *key,
	struct str upload_id, struct debuginfo_record *out, struct err *e)
{
	struct debuginfo_record r;
	lock_take(&u->lock);
	enum status s = debuginfo_record_read(u, key, &r, e);
	if (s == OK)
		s = may_finish(u, &r, upload_id, e);
	if (s == OK && r.state == DEBUGINFO_UPLOADING)
		s = finish(u, &r, e);
	lock_release(&u->lock);
	if (s == OK)
		*out = r;
	return s;
}

/* ---- use ---- */

static enum status open_ready(struct debuginfo_uploads *u, const struct debuginfo_record *r,
	int *out_fd, uint64_t *out_bytes, struct err *e)
{
	struct debuginfo_place place;
	struct debuginfo_key key = debuginfo_key_of(r);
	char path[DEBUGINFO_PATH_BYTES];
	enum status s = debuginfo_place_of(u, &key, &place, e);
	if (s != OK)
		return s;
	if (!r->ready[0])
		return err_set(e, E_NOTFOUND, "no %s of build id %s was uploaded",
			debuginfo_type_name(r->type), r->build_id);
	debuginfo_path(&place, r->ready, false, path);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "open %s", path);
	(void)utimensat(AT_FDCWD, path, NULL, 0); /* used now */
	*out_fd = fd;
	*out_bytes = r->ready_bytes;
	return OK;
}

enum status debuginfo_uploads_file(struct debuginfo_uploads *u, const struct debuginfo_key *key,
	int *out_fd, uint64_t *out_bytes, struct err *e)
{
	struct debuginfo_record r;
	lock_take(&u->lock);
	enum status s = debuginfo_record_read(u, key, &r, e);
	if (s == OK)
		s = open_ready(u, &r, out_fd, out_bytes, e);
	lock_release(&u->lock);
	return s;
}

/* The tenant in a record's name, if the record is of this type. */
static bool tenant_of(struct str name, enum debuginfo_type type, char out[DEBUGINFO_TENANT_MAX + 1])
{
	struct str begin = str_of(debuginfo_type_name(type)), end = STR(".record");
	if (!str_starts(name, begin) || !str_ends(name, end) || name.len < begin.len + end.len)
		return false;
	name = str_sub(name, begin.len, name.len - begin.len - end.len);
	if (name.len && name.p[0] != '@')
		return false;
	return debuginfo_take_name(str_sub(name, 1, name.len), out, DEBUGINFO_TENANT_MAX);
}

enum status debuginfo_uploads_any(struct debuginfo_uploads *u, struct str build_id,
	enum debuginfo_type type, int *out_fd, struct err *e)
{
	struct debuginfo_place place;
	struct debuginfo_key key = { build_id, STR(""), type };
	CLEANUP(arena_deinit) struct arena a;
	struct str *names;
	size_t count;
	uint64_t bytes;
	arena_init(&a, (size_t)4 << 20);
	enum status s = debuginfo_place_of(u, &key, &place, e);
	if (s == OK)
		s = os_list_dir(place.dir, &a, &names, &count, e);
	if (s != OK)
		return s;
	for (size_t i = 0; i < count; i++) {
		char tenant[DEBUGINFO_TENANT_MAX + 1];
		if (!tenant_of(names[i], type, tenant))
			continue;
		key.tenant = str_of(tenant);
		if (debuginfo_uploads_file(u, &key, out_fd, &bytes, NULL) == OK)
			return OK;
	}
	return err_set(e, E_NOTFOUND, "nothing of build id %.*s was uploaded", STR_ARG(build_id));
}
