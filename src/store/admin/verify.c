/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every byte that has a checksum is read, and each piece that is damaged is named with its offset,
 * not only the first. Files with right checksums are then read as the store reads them, which finds
 * other errors.
 */
#include "base/clock.h"
#include "store/admin/look.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#define TRAILER_BYTES 32
#define PART_BYTES_MIN 64
#define SECTION_BYTES_MAX ((size_t)2 << 30)
#define MANIFEST_BYTES_MAX ((size_t)64 << 20)
#define PROFILE_BYTES_MAX ((size_t)1 << 30)
#define FINDINGS_MAX 1000 /* findings of one file that are shown; more are counted */
/* How long to wait for a part that only the manifest has: if a server is running, and if not. */
#define BUSY_NS (30 * NS_PER_SEC)
#define IDLE_NS (1 * NS_PER_SEC)
#define PAUSE_NS (100 * NS_PER_MS)

struct verifying {
	struct looking *looking; /* of parts */
	struct buf *out;
	const char *path;
	uint64_t base; /* of the part in its file */
	uint64_t findings;
	struct err first;
};

/* One damaged piece: "damaged PATH: SECTION at +OFFSET, N bytes: REASON". */
static void found(
	struct verifying *v, const char *what, uint64_t offset, uint64_t len, const char *reason)
{
	if (v->findings++ == 0)
		err_set(&v->first, E_CORRUPT, "%s: %s at +%llu: %s", v->path, what,
			(unsigned long long)offset, reason);
	if (v->findings <= FINDINGS_MAX)
		buf_printf(v->out, "damaged %s: %s at +%llu, %llu bytes: %s\n", v->path, what,
			(unsigned long long)offset, (unsigned long long)len, reason);
}

/* ---- parts ---- */

static void part_cleanup(struct part **p)
{
	part_unref(*p);
}

/* The report names the file already, so its path is cut off the text. */
static const char *without_path(const struct verifying *v, const char *text)
{
	size_t len = strlen(v->path);
	return strncmp(text, v->path, len) == 0 && strncmp(text + len, ": ", 2) == 0
		       ? text + len + 2
		       : text;
}

static void verify_sections(struct verifying *v, struct part *p)
{
	size_t n;
	const struct part_section_entry *x = part_sections(p, &n);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(buf_deinit) struct buf b;
		struct err e = { 0 };
		buf_init(&b, SECTION_BYTES_MAX);
		if (x[i].flags & PART_FLAG_PIECEWISE)
			continue;
		enum status s = part_section_read(p, (enum part_section)x[i].kind, &b, &e);
		if (s != OK)
			found(v, part_section_name(x[i].kind), v->base + x[i].offset, x[i].length,
				without_path(v, err_text(&e, s)));
	}
}

/* The columns of a block or a total. */
static void verify_block(
	struct verifying *v, struct part *p, const struct part_block *b, const char *name)
{
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf stored;
	CLEANUP(buf_deinit) struct buf room;
	buf_init(&stored, SECTION_BYTES_MAX);
	buf_init(&room, SECTION_BYTES_MAX);
	for (unsigned id = ROW_SERIES; id < ROW_COLUMNS; id++) {
		struct column_streams streams;
		const struct column *c = &b->columns[id];
		char what[96];
		enum status s = part_read_streams(p, b, id, &stored, &room, &streams, &e);
		if (s == OK)
			continue;
		(void)snprintf(
			what, sizeof(what), "SAMPLES, %s, column %s", name, part_column_name(id));
		found(v, what, v->base + c->offset, column_stored_len(c),
			without_path(v, err_text(&e, s)));
	}
}

static void verify_columns(struct verifying *v, struct part *p)
{
	size_t n;
	struct tabs t;
	struct err e = { 0 };
	char name[64];
	if (part_pin(p, PART_LOAD_BLOCKS, UINT64_MAX, &t, &e) != OK)
		return; /* BLOCKS itself is damaged, which was reported */
	const struct part_block *blocks = part_blocks(p, &n);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "block %zu", i);
		verify_block(v, p, &blocks[i], name);
	}
	const struct part_total *totals = part_totals(p, &n);
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "total %zu", i);
		verify_block(v, p, &totals[i].sums, name);
	}
	part_unpin(p, PART_LOAD_BLOCKS);
}

/* A store does not accept a part under another part's name. */
static void verify_number(struct verifying *v, uint64_t len, uint64_t id)
{
	char reason[64];
	if (!v->looking->has_id || v->looking->id == id)
		return;
	(void)snprintf(reason, sizeof(reason), "it is part %016llx by another name",
		(unsigned long long)id);
	found(v, "the part", v->base, len, reason);
}

static enum status verify_one(struct verifying *v, uint64_t len, uint64_t *rows, struct err *e)
{
	CLEANUP(part_cleanup) struct part *p = NULL;
	struct object *o;
	uint64_t before = v->findings;
	enum status s = look_open_slice(v->path, v->base, len, &o, e);
	if (s == OK)
		s = part_open_object(o, &p, e);
	if (s == E_CORRUPT)
		found(v, "the part", v->base, len, without_path(v, err_text(e, s)));
	if (s != OK)
		return s == E_CORRUPT ? OK : s;
	verify_sections(v, p);
	verify_columns(v, p);
	if (v->findings == before) {
		s = part_verify(p, e);
		if (s == E_CORRUPT)
			found(v, "the part", v->base, len, without_path(v, err_text(e, s)));
	}
	*rows += part_meta(p)->rows;
	verify_number(v, len, part_meta(p)->id);
	/* The parts that it replaces may be removed before the manifest leaves them out. */
	const struct part_meta *m = part_meta(p);
	for (size_t i = 0; i < m->replaces.len; i++)
		(void)!VEC_PUSH(&v->looking->parts, m->replaces.v[i]);
	return s == E_CORRUPT ? OK : s;
}

/* Verifies parts that follow each other in a file, from the last one on; if the last is broken, the
 * file counts as one part. */
static enum status verify_parts(
	struct verifying *v, struct object *file, uint64_t *rows, uint64_t *parts, struct err *e)
{
	uint64_t end = file->bytes;
	while (end) {
		uint8_t trailer[TRAILER_BYTES];
		uint64_t length = end;
		enum status s = OK;
		if (end >= PART_BYTES_MIN)
			s = object_read(file, end - TRAILER_BYTES, trailer, sizeof(trailer), e);
		if (s == OK && end >= PART_BYTES_MIN && memcmp(trailer + 24, "FIRNPEND", 8) == 0)
			memcpy(&length, trailer + 16, 8);
		if (length < PART_BYTES_MIN || length > end)
			length = end;
		end -= length;
		v->base = end;
		if (s == OK)
			s = verify_one(v, length, rows, e);
		if (s != OK)
			return s;
		++*parts;
	}
	return OK;
}

static void verify_part_file(struct looking *l, const char *path)
{
	struct verifying v = { .looking = l, .out = l->out, .path = path };
	uint64_t rows = 0, parts = 0;
	struct object *file;
	struct err e = { 0 };
	enum status s = object_open_file(path, &file, &e);
	uint64_t bytes = s == OK ? file->bytes : 0;
	if (s == OK && bytes == 0)
		found(&v, "the part", 0, 0, "the file is empty");
	if (s == OK) {
		s = verify_parts(&v, file, &rows, &parts, &e);
		object_close(file);
	}
	if (s == OK && v.findings) {
		s = E_CORRUPT;
		e = v.first;
	} else if (s != OK) {
		buf_printf(l->out, "%s %s: %s\n", s == E_UNSUPPORTED ? "newer" : "unreadable", path,
			err_text(&e, s));
	} else {
		buf_printf(l->out, "ok %s: %llu rows, %llu bytes\n", path, (unsigned long long)rows,
			(unsigned long long)bytes);
	}
	look_done(l, s, &e);
}

/* ---- logs ---- */

static void profile_cleanup(struct profile *p)
{
	profile_deinit(p);
}

static enum status read_batch(const struct log_record *rec, struct buf *scratch, struct err *e)
{
	CLEANUP(profile_cleanup) struct profile p = { 0 };
	struct str payload, tenant;
	enum status s = log_payload(rec, scratch, &payload, e);
	if (s == OK && rec->kind != LOG_KIND_BATCH)
		return OK;
	if (s == OK)
		s = profile_init(&p, PROFILE_BYTES_MAX);
	return s == OK ? batch_decode(payload, &p, &tenant, e) : s;
}

static uint64_t verify_records(struct verifying *v, struct log_cursor *c)
{
	CLEANUP(buf_deinit) struct buf scratch;
	struct log_record rec;
	uint64_t records = 0;
	buf_init(&scratch, LOG_SEGMENT_BYTES_MAX);
	for (enum log_event ev = LOG_EVENT_RECORD; ev != LOG_EVENT_END;) {
		struct err e = { 0 };
		char what[64];
		ev = log_cursor_next(c, &rec);
		if (ev == LOG_EVENT_TORN)
			buf_printf(v->out,
				"note %s: a write at +%zu did not end; it was never acknowledged\n",
				v->path, c->offset);
		if (ev == LOG_EVENT_DAMAGE)
			found(v, "records", c->offset, c->length, "no valid record");
		if (ev != LOG_EVENT_RECORD)
			continue;
		records++;
		enum status s = read_batch(&rec, &scratch, &e);
		(void)snprintf(what, sizeof(what), "record %llu", (unsigned long long)rec.sequence);
		if (s != OK)
			found(v, what, c->offset, c->length, err_text(&e, s));
	}
	return records;
}

static void verify_log(struct looking *l, const char *path)
{
	struct verifying v = { .out = l->out, .path = path };
	CLEANUP(buf_deinit) struct buf b;
	struct log_cursor c;
	struct err e = { 0 };
	uint64_t records = 0;
	buf_init(&b, LOG_SEGMENT_BYTES_MAX * 2);
	enum status s = os_read_file(path, &b, &e);
	if (s == OK)
		s = log_cursor_open(buf_view(&b), path, &c, &e);
	if (s == E_CORRUPT) {
		found(&v, "the header", 0, MIN(b.len, (size_t)LOG_HEADER_BYTES),
			without_path(&v, e.text));
		log_cursor_salvage(buf_view(&b), &c);
		c.size = b.len;
		s = OK;
	}
	if (s == OK && b.len < c.size)
		found(&v, "the end", b.len, c.size - b.len, "the file was cut");
	if (s == OK)
		records = verify_records(&v, &c);
	if (s != OK)
		buf_printf(l->out, "%s %s: %s\n", s == E_UNSUPPORTED ? "newer" : "unreadable", path,
			err_text(&e, s));
	else if (v.findings == 0)
		buf_printf(l->out, "ok %s: %llu records\n", path, (unsigned long long)records);
	look_done(l, s == OK && v.findings ? E_CORRUPT : s, v.findings ? &v.first : &e);
}

/* ---- the manifest ---- */

static bool all_met(const struct looking *l, const struct manifest *m)
{
	for (size_t i = 0; i < m->parts.len; i++)
		if (!look_met(l, m->parts.v[i].id))
			return false;
	return true;
}

/* Whether the process that LOCK names is running. If another process has this pid by now, that only
 * costs time. */
static bool is_in_use(const char *dir)
{
	char path[STORE_PATH_MAX];
	CLEANUP(buf_deinit) struct buf b;
	uint64_t pid = 0;
	buf_init(&b, 64);
	return store_path(path, NULL, "%s/LOCK", dir) == OK && os_read_file(path, &b, NULL) == OK &&
	       str_parse_u64(buf_view(&b), 10, &pid) && pid > 0 && pid < INT_MAX &&
	       (kill((pid_t)pid, 0) == 0 || errno == EPERM);
}

static enum status read_manifest(
	const char *path, struct buf *b, struct manifest *out, struct err *e)
{
	manifest_deinit(out);
	*out = (struct manifest){ 0 };
	buf_clear(b);
	enum status s = os_read_file(path, b, e);
	return s == OK ? manifest_parse(buf_view(b), out, e) : s;
}

/* Between the listing of parts and this a server may have written new ones, and removed some that
 * it has not crossed out yet. */
static enum status read_settled(
	struct looking *l, const char *path, struct buf *b, struct manifest *out, struct err *e)
{
	int64_t until = 0;
	for (;;) {
		enum status s = read_manifest(path, b, out, e);
		if (s != OK || !l->directory || all_met(l, out))
			return s;
		look_again(l);
		int64_t now = clock_monotonic_ns();
		until = until ? until : now + (is_in_use(l->directory) ? BUSY_NS : IDLE_NS);
		if (all_met(l, out) || now >= until)
			return OK;
		struct timespec pause = { 0, PAUSE_NS };
		(void)nanosleep(&pause, NULL);
	}
}

static void verify_manifest(struct looking *l, const char *path)
{
	struct verifying v = { .out = l->out, .path = path };
	CLEANUP(manifest_deinit) struct manifest m = { 0 };
	CLEANUP(buf_deinit) struct buf b;
	struct err e = { 0 };
	char what[64];
	buf_init(&b, MANIFEST_BYTES_MAX);
	enum status s = read_settled(l, path, &b, &m, &e);
	if (s == E_CORRUPT)
		found(&v, "the manifest", 0, b.len, e.text);
	else if (s != OK)
		buf_printf(l->out, "%s %s: %s\n", s == E_UNSUPPORTED ? "newer" : "unreadable", path,
			err_text(&e, s));
	for (size_t i = 0; s == OK && i < m.parts.len; i++) {
		(void)snprintf(
			what, sizeof(what), "part %016llx", (unsigned long long)m.parts.v[i].id);
		if (l->directory && !look_met(l, m.parts.v[i].id))
			found(&v, what, 64 + 64 * i, 64, "there is no such file");
	}
	if (s == OK && v.findings == 0)
		buf_printf(l->out, "ok %s: %zu parts\n", path, m.parts.len);
	look_done(l, v.findings ? E_CORRUPT : s, v.findings ? &v.first : &e);
}

enum status store_verify(const char *path, struct buf *out, struct err *e)
{
	CLEANUP(looking_deinit)
	struct looking l = {
		.part = verify_part_file, .log = verify_log, .manifest = verify_manifest, .out = out
	};
	look_at(&l, path);
	return look_status(&l, e);
}
