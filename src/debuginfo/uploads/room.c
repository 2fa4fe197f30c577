/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tasks that need all uploads walk over the folders: at start, when room is needed, when there are
 * too many build ids. They are rare, so nothing is kept in memory for them.
 */
#include "debuginfo/uploads/internal.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/vec.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAMES_BYTES_MAX ((size_t)64 << 20)
#define FOLDER_BYTES_MAX ((size_t)4 << 20)
#define SWEEP_EVERY_NS (60 * NS_PER_SEC)
/* The folder's name is not that of any build id. */
#define ASIDE ".quarantine"
#define ASIDE_NAMES_MAX 1000 /* of one file */

/* A folder with its records, and the names in it. */
struct folder {
	struct str id; /* as written */
	char path[PATH_MAX];
	struct str *names;
	size_t name_count;
	/* by name: what it is; and the valid records. */
	enum record_reads { RECORD_NONE, RECORD_GOOD, RECORD_BAD, RECORD_NOT_READ } * reads;
	struct debuginfo_record *records;
	size_t record_count;
};

typedef enum status visit_fn(
	struct debuginfo_uploads *u, const struct folder *f, void *ctx, struct err *e);

/* A record is valid only under its own path. A file that could not be read may still be good. */
static enum record_reads read_record(struct debuginfo_uploads *u, const struct folder *f,
	struct str name, struct debuginfo_record *out)
{
	char path[DEBUGINFO_PATH_BYTES], right[DEBUGINFO_PATH_BYTES];
	struct debuginfo_place place;
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, DEBUGINFO_RECORD_BYTES_MAX);
	snprintf(path, sizeof(path), "%s/%.*s", f->path, STR_ARG(name));
	enum status s = os_read_file(path, &bytes, NULL);
	if (s != OK)
		return s == E_LIMIT ? RECORD_BAD : RECORD_NOT_READ;
	if (debuginfo_record_decode(buf_view(&bytes), out, NULL) != OK)
		return RECORD_BAD;
	struct debuginfo_key key = debuginfo_key_of(out);
	if (debuginfo_place_of(u, &key, &place, NULL) != OK)
		return RECORD_BAD;
	debuginfo_path(&place, "record", false, right);
	return strcmp(path, right) == 0 ? RECORD_GOOD : RECORD_BAD;
}

static enum status open_folder(
	struct debuginfo_uploads *u, struct folder *f, struct arena *a, struct err *e)
{
	enum status s = os_list_dir(f->path, a, &f->names, &f->name_count, e);
	if (s != OK)
		return s;
	f->records = ARENA_ARRAY(a, struct debuginfo_record, MAX(f->name_count, (size_t)1));
	f->reads = ARENA_ARRAY(a, enum record_reads, MAX(f->name_count, (size_t)1));
	if (!f->records || !f->reads)
		return err_set(e, arena_status(a), "%s", f->path);
	for (size_t i = 0; i < f->name_count; i++) {
		if (!str_ends(f->names[i], STR(".record")))
			continue;
		f->reads[i] = read_record(u, f, f->names[i], &f->records[f->record_count]);
		f->record_count += f->reads[i] == RECORD_GOOD;
	}
	return OK;
}

static enum status walk(struct debuginfo_uploads *u, visit_fn *visit, void *ctx, struct err *e)
{
	CLEANUP(arena_deinit) struct arena all;
	struct str *ids;
	size_t count;
	arena_init(&all, NAMES_BYTES_MAX);
	enum status s = os_list_dir(u->config.dir, &all, &ids, &count, e);
	for (size_t i = 0; s == OK && i < count; i++) {
		CLEANUP(arena_deinit) struct arena a;
		struct folder f = { .id = ids[i] };
		arena_init(&a, FOLDER_BYTES_MAX);
		if (str_eq(ids[i], STR(ASIDE)))
			continue;
		snprintf(f.path, sizeof(f.path), "%s/%.*s", u->config.dir, STR_ARG(ids[i]));
		/* An entry that is not a folder, or cannot be read, is skipped. */
		if (open_folder(u, &f, &a, NULL) == OK)
			s = visit(u, &f, ctx, e);
	}
	return s;
}

static void file_path(const struct folder *f, const struct debuginfo_record *r, const char *upload,
	char out[DEBUGINFO_PATH_BYTES])
{
	struct debuginfo_place place;
	CLEANUP(buf_deinit) struct buf base;
	buf_init(&base, DEBUGINFO_NAME_MAX);
	buf_cstr(&base, debuginfo_type_name(r->type));
	buf_cstr(&base, r->tenant[0] ? "@" : "");
	debuginfo_put_name(&base, str_of(r->tenant));
	snprintf(place.dir, sizeof(place.dir), "%s", f->path);
	snprintf(place.base, sizeof(place.base), "%.*s", STR_ARG(buf_view(&base)));
	debuginfo_path(&place, upload, false, out);
}

/* ---- what cannot be read ---- */

/* Moves DIR/ID/NAME to DIR/.quarantine/ID/NAME; files that are there already are kept. */
static enum status move_aside(struct debuginfo_uploads *u, const char *folder, struct str name,
	uint64_t *io_bytes, struct err *e)
{
	char from[DEBUGINFO_PATH_BYTES], dir[DEBUGINFO_PATH_BYTES], to[2 * DEBUGINFO_PATH_BYTES];
	const char *id = strrchr(folder, '/') + 1;
	struct stat st;
	snprintf(from, sizeof(from), "%s/%.*s", folder, STR_ARG(name));
	snprintf(dir, sizeof(dir), "%s/" ASIDE "/%s", u->config.dir, id);
	enum status s = os_make_dirs(dir, e);
	if (s != OK)
		return s;
	if (stat(from, &st) != 0)
		return err_os(e, "%s", from);
	int n = 0;
	do {
		if (n == ASIDE_NAMES_MAX)
			return err_set(e, E_LIMIT, "%s: %d of this name already", dir, n);
		snprintf(to, sizeof(to), "%s/%.*s%s%.0d", dir, STR_ARG(name), n ? "." : "", n);
		n++;
	} while (access(to, F_OK) == 0);
	if (rename(from, to) != 0)
		return err_os(e, "rename %s", from);
	*io_bytes += str_ends(name, STR(".record")) ? 0 : (uint64_t)st.st_size;
	return os_fsync_dir(dir, e);
}

/* Whether NAME is `base`, a dot and the rest of a record's or a complete file's name. */
static bool is_of(struct str name, struct str base)
{
	if (!str_starts(name, base) || name.len <= base.len || name.p[base.len] != '.')
		return false;
	name = str_sub(name, base.len + 1, name.len);
	return str_eq(name, STR("record")) || debuginfo_is_upload_id(name);
}

enum status debuginfo_room_set_aside(
	struct debuginfo_uploads *u, const struct debuginfo_place *place, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct str *names;
	size_t count;
	uint64_t bytes = 0;
	arena_init(&a, FOLDER_BYTES_MAX);
	enum status s = os_list_dir(place->dir, &a, &names, &count, e);
	for (size_t i = 0; s == OK && i < count; i++)
		if (is_of(names[i], str_of(place->base)))
			s = move_aside(u, place->dir, names[i], &bytes, e);
	u->bytes -= MIN(u->bytes, bytes);
	return s;
}

/* How the record of this file was read. */
static enum record_reads record_of(const struct folder *f, struct str name)
{
	for (size_t i = 0; i < f->name_count; i++) {
		struct str record = f->names[i];
		if (f->reads[i] != RECORD_NONE &&
			is_of(name, str_sub(record, 0, record.len - strlen(".record"))))
			return f->reads[i];
	}
	return RECORD_NONE;
}

/* ---- start ---- */

static bool is_named(const struct debuginfo_uploads *u, const struct folder *f, struct str name)
{
	char path[DEBUGINFO_PATH_BYTES];
	int64_t now = clock_realtime_ns();
	for (size_t i = 0; i < f->record_count; i++) {
		const struct debuginfo_record *r = &f->records[i];
		file_path(f, r, "record", path);
		if (str_eq(name, str_of(strrchr(path, '/') + 1)))
			return true;
		file_path(f, r, r->ready, path);
		if (r->ready[0] && str_eq(name, str_of(strrchr(path, '/') + 1)))
			return true;
		file_path(f, r, r->upload, path);
		if (r->state == DEBUGINFO_UPLOADING && !debuginfo_upload_is_stale(u, r, now) &&
			str_eq(name, str_of(strrchr(path, '/') + 1)))
			return true;
	}
	return false;
}

/* Updates a record whose file is gone or has another length. */
static enum status check_ready(struct debuginfo_uploads *u, const struct folder *f,
	const struct debuginfo_record *known, struct err *e)
{
	char path[DEBUGINFO_PATH_BYTES];
	struct debuginfo_record r = *known;
	struct stat st;
	if (!r.ready[0])
		return OK;
	file_path(f, &r, r.ready, path);
	int rc = stat(path, &st);
	if (rc == 0 && (uint64_t)st.st_size == r.ready_bytes)
		return OK;
	if (rc == 0) {
		uint64_t bytes = 0;
		enum status s = move_aside(u, f->path, str_of(strrchr(path, '/') + 1), &bytes, e);
		if (s != OK)
			return s;
	}
	metric_add(&u->metrics.damaged, 1);
	if (r.state == DEBUGINFO_UPLOADED)
		r.state = DEBUGINFO_PURGED;
	r.ready[0] = 0;
	return debuginfo_record_write(u, &r, e);
}

static enum status tidy(
	struct debuginfo_uploads *u, const struct folder *f, void *ctx, struct err *e)
{
	(void)ctx;
	char path[DEBUGINFO_PATH_BYTES];
	struct stat st;
	enum status s = OK;
	for (size_t i = 0; i < f->record_count && s == OK; i++)
		s = check_ready(u, f, &f->records[i], e);
	for (size_t i = 0; i < f->name_count && s == OK; i++) {
		bool record = f->reads[i] != RECORD_NONE;
		enum record_reads reads = record_of(f, f->names[i]);
		uint64_t bytes = 0;
		snprintf(path, sizeof(path), "%s/%.*s", f->path, STR_ARG(f->names[i]));
		if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
			continue;
		if (is_named(u, f, f->names[i]) || reads == RECORD_NOT_READ) {
			u->bytes += record ? 0 : (uint64_t)st.st_size;
		} else if (reads == RECORD_BAD) {
			metric_add(&u->metrics.damaged, record);
			s = move_aside(u, f->path, f->names[i], &bytes, e);
		} else {
			unlink(path);
		}
	}
	u->ids += rmdir(f->path) != 0; /* an empty folder is removed */
	return s;
}

enum status debuginfo_room_begin(struct debuginfo_uploads *u, struct err *e)
{
	u->bytes = 0;
	u->ids = 0;
	return walk(u, tidy, NULL, e);
}

/* ---- bytes ---- */

struct candidate {
	struct debuginfo_record record;
	struct timespec used;
	uint64_t bytes;
};

struct candidates {
	VEC(struct candidate *) v;
};

static void candidates_deinit(struct candidates *c)
{
	for (size_t i = 0; i < c->v.len; i++)
		free(c->v.v[i]);
	VEC_FREE(&c->v);
}

static enum status gather(
	struct debuginfo_uploads *u, const struct folder *f, void *ctx, struct err *e)
{
	struct candidates *all = ctx;
	(void)u;
	for (size_t i = 0; i < f->record_count; i++) {
		struct stat st;
		char path[DEBUGINFO_PATH_BYTES];
		const struct debuginfo_record *r = &f->records[i];
		if (!r->ready[0])
			continue;
		struct candidate *c = calloc(1, sizeof(*c));
		if (!c || !VEC_PUSH(&all->v, c)) {
			free(c);
			return err_set(e, E_NOMEM, "uploads");
		}
		c->record = *r;
		file_path(f, r, r->ready, path);
		if (stat(path, &st) == 0) {
			c->used = st.st_mtim;
			c->bytes = (uint64_t)st.st_size;
		}
	}
	return OK;
}

static int longest_ago_first(const void *a, const void *b)
{
	const struct candidate *x = *(struct candidate *const *)a,
			       *y = *(struct candidate *const *)b;
	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

/* The record is deleted first, so that no record names a missing file. */
static enum status purge(struct debuginfo_uploads *u, struct candidate *c, struct err *e)
{
	struct debuginfo_place place;
	struct debuginfo_key key = debuginfo_key_of(&c->record);
	char path[DEBUGINFO_PATH_BYTES];
	enum status s = debuginfo_place_of(u, &key, &place, e);
	if (s != OK)
		return s;
	debuginfo_path(&place, c->record.ready, false, path);
	c->record.ready[0] = 0;
	if (c->record.state == DEBUGINFO_UPLOADED)
		c->record.state = DEBUGINFO_PURGED;
	s = debuginfo_record_write(u, &c->record, e);
	if (s != OK)
		return s;
	unlink(path);
	u->bytes -= MIN(u->bytes, c->bytes);
	metric_add(&u->metrics.purged, 1);
	return OK;
}

enum status debuginfo_room_make(struct debuginfo_uploads *u, uint64_t bytes, struct err *e)
{
	CLEANUP(candidates_deinit) struct candidates all = { 0 };
	uint64_t most = u->config.bytes_max;
	if (bytes <= most && u->bytes <= most - bytes)
		return OK;
	enum status s = walk(u, gather, &all, e);
	if (s == OK && all.v.len)
		qsort(all.v.v, all.v.len, sizeof(all.v.v[0]), longest_ago_first);
	for (size_t i = 0; s == OK && i < all.v.len && u->bytes + bytes > most; i++)
		s = purge(u, all.v.v[i], e);
	if (s == OK && u->bytes + bytes > most)
		return err_set(e, E_LIMIT,
			"no room for %llu bytes: uploads under way take %llu of at most %llu",
			(unsigned long long)bytes, (unsigned long long)u->bytes,
			(unsigned long long)most);
	return s;
}

/* ---- build ids ---- */

static enum status sweep(
	struct debuginfo_uploads *u, const struct folder *f, void *ctx, struct err *e)
{
	(void)ctx;
	(void)e;
	char path[DEBUGINFO_PATH_BYTES];
	int64_t now = clock_realtime_ns();
	for (size_t i = 0; i < f->record_count; i++) {
		const struct debuginfo_record *r = &f->records[i];
		bool goes_on =
			r->state == DEBUGINFO_UPLOADING && !debuginfo_upload_is_stale(u, r, now);
		if (r->ready[0] || goes_on)
			return OK;
	}
	for (size_t i = 0; i < f->name_count; i++)
		if (f->reads[i] == RECORD_BAD || f->reads[i] == RECORD_NOT_READ)
			return OK;
	for (size_t i = 0; i < f->name_count; i++) {
		snprintf(path, sizeof(path), "%s/%.*s", f->path, STR_ARG(f->names[i]));
		struct stat st;
		if (stat(path, &st) == 0 && unlink(path) == 0 &&
			!str_ends(f->names[i], STR(".record")))
			u->bytes -= MIN(u->bytes, (uint64_t)st.st_size);
	}
	u->ids -= rmdir(f->path) == 0 && u->ids > 0;
	return OK;
}

enum status debuginfo_room_for_id(struct debuginfo_uploads *u, struct err *e)
{
	int64_t now = clock_monotonic_ns();
	if (u->ids < DEBUGINFO_IDS_MAX)
		return OK;
	if (u->swept_ns == 0 || now - u->swept_ns > SWEEP_EVERY_NS) {
		u->swept_ns = now;
		enum status s = walk(u, sweep, NULL, e);
		if (s != OK)
			return s;
	}
	return u->ids < DEBUGINFO_IDS_MAX
		       ? OK
		       : err_set(e, E_LIMIT, "uploads of %d build ids already", DEBUGINFO_IDS_MAX);
}
