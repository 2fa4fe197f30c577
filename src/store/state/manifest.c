/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs/formats/manifest.md, section 2. The file is written whole and takes the old one's place.
 */
#include "base/clock.h"
#include "base/reader.h"
#include "codec/codec.h"
#include "store/state/state.h"

#include <fcntl.h>
#include <stdlib.h>

#define ENTRY_BYTES 64
#define HEADER_BYTES 64
#define MANIFEST_BYTES_MAX ((size_t)64 << 20)
#define SECTION_REMOVED 1
#define REMOVED_BYTES 24
#define SECTION_TRUSTED 2
#define TRUSTED_BYTES 8
#define MINOR_SET 1 /* from this minor version on it names the parts that are */

void manifest_deinit(struct manifest *m)
{
	VEC_FREE(&m->parts);
	VEC_FREE(&m->removed);
}

static enum status parse_parts(
	struct reader *r, uint32_t count, uint32_t entry_bytes, struct manifest *out, struct err *e)
{
	for (uint32_t i = 0; i < count; i++) {
		struct reader x = reader_sub(r, entry_bytes);
		struct manifest_part p = { .id = reader_u64(&x) };
		p.bytes = reader_u64(&x);
		p.rows = reader_u64(&x);
		p.samples = reader_u64(&x);
		p.first_ns = reader_i64(&x);
		p.last_ns = reader_i64(&x);
		p.resolution_ns = reader_i64(&x);
		p.level = reader_u32(&x);
		if (x.failed)
			return err_set(e, E_CORRUPT, "MANIFEST: entry %u of %u", i, count);
		if (!VEC_PUSH(&out->parts, p))
			return err_set(e, E_NOMEM, "MANIFEST");
	}
	return OK;
}

static enum status parse_removed(struct reader x, struct manifest *out, struct err *e)
{
	while (!reader_done(&x)) {
		struct batch_seen b = { .id.lo = reader_u64(&x) };
		b.id.hi = reader_u64(&x);
		b.arrived_ns = reader_i64(&x);
		if (x.failed || out->removed.len == MANIFEST_REMOVED_MAX)
			return err_set(
				e, E_CORRUPT, "MANIFEST: removed batch %zu", out->removed.len);
		if (!VEC_PUSH(&out->removed, b))
			return err_set(e, E_NOMEM, "MANIFEST");
	}
	return OK;
}

static enum status parse_trusted(struct reader x, struct manifest *out, struct err *e)
{
	int64_t t = reader_i64(&x);
	if (x.failed || !reader_done(&x))
		return err_set(e, E_CORRUPT, "MANIFEST: the time of the clock");
	out->trusted_ns = t;
	return OK;
}

static enum status parse_sections(struct reader *r, struct manifest *out, struct err *e)
{
	while (!reader_done(r)) {
		size_t at = reader_offset(r);
		uint32_t kind = reader_u32(r);
		struct reader x = reader_sub(r, reader_u32(r));
		if (r->failed)
			return err_set(e, E_CORRUPT, "MANIFEST: a section at +%zu", at);
		enum status s = OK;
		if (kind == SECTION_REMOVED)
			s = parse_removed(x, out, e);
		else if (kind == SECTION_TRUSTED)
			s = parse_trusted(x, out, e);
		if (s != OK)
			return s;
	}
	return OK;
}

enum status manifest_parse(struct str bytes, struct manifest *out, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	if (bytes.len < HEADER_BYTES + 4 || memcmp(bytes.p, "FIRNMANI", 8) != 0)
		return err_set(e, E_CORRUPT, "MANIFEST: no header at +0");
	reader_skip(&r, 8);
	uint16_t major = reader_u16(&r), minor = reader_u16(&r);
	uint32_t length = reader_u32(&r), crc;
	memcpy(&crc, bytes.p + bytes.len - 4, 4);
	if (length != bytes.len || crc != codec_crc32c(0, bytes.p, bytes.len - 4))
		return err_set(e, E_CORRUPT, "MANIFEST: checksum or length");
	if (major != 1)
		return err_set(e, E_UNSUPPORTED,
			"MANIFEST: version %u was written by a newer firn; "
			"this one reads version 1",
			major);
	struct manifest m = { .is_set = minor >= MINOR_SET };
	m.store_id.lo = reader_u64(&r);
	m.store_id.hi = reader_u64(&r);
	m.next_part = reader_u64(&r);
	m.next_segment = reader_u64(&r);
	m.next_sequence = reader_u64(&r);
	uint32_t count = reader_u32(&r), entry_bytes = reader_u32(&r);
	if (entry_bytes < ENTRY_BYTES || count > (bytes.len - HEADER_BYTES - 4) / entry_bytes)
		return err_set(
			e, E_CORRUPT, "MANIFEST: %u entries of %u bytes", count, entry_bytes);
	enum status s = parse_parts(&r, count, entry_bytes, &m, e);
	struct reader sections = reader_sub(&r, reader_left(&r) - 4);
	if (s == OK)
		s = parse_sections(&sections, &m, e);
	if (s != OK) {
		manifest_deinit(&m);
		return s;
	}
	*out = m;
	return OK;
}

void manifest_encode(const struct manifest *m, struct buf *out)
{
	size_t removed = m->removed.len ? 8 + m->removed.len * REMOVED_BYTES : 0;
	size_t trusted = m->trusted_ns ? 8 + TRUSTED_BYTES : 0;
	buf_put(out, "FIRNMANI", 8);
	buf_u16(out, 1);
	buf_u16(out, m->is_set ? MINOR_SET : 0);
	buf_u32(out, (uint32_t)(HEADER_BYTES + m->parts.len * ENTRY_BYTES + removed + trusted + 4));
	buf_u64(out, m->store_id.lo);
	buf_u64(out, m->store_id.hi);
	buf_u64(out, m->next_part);
	buf_u64(out, m->next_segment);
	buf_u64(out, m->next_sequence);
	buf_u32(out, (uint32_t)m->parts.len);
	buf_u32(out, ENTRY_BYTES);
	for (size_t i = 0; i < m->parts.len; i++) {
		const struct manifest_part *p = &m->parts.v[i];
		buf_u64(out, p->id);
		buf_u64(out, p->bytes);
		buf_u64(out, p->rows);
		buf_u64(out, p->samples);
		buf_u64(out, (uint64_t)p->first_ns);
		buf_u64(out, (uint64_t)p->last_ns);
		buf_u64(out, (uint64_t)p->resolution_ns);
		buf_u32(out, p->level);
		buf_u32(out, 0);
	}
	if (removed) {
		buf_u32(out, SECTION_REMOVED);
		buf_u32(out, (uint32_t)(removed - 8));
	}
	for (size_t i = 0; i < m->removed.len; i++) {
		buf_u64(out, m->removed.v[i].id.lo);
		buf_u64(out, m->removed.v[i].id.hi);
		buf_u64(out, (uint64_t)m->removed.v[i].arrived_ns);
	}
	if (trusted) {
		buf_u32(out, SECTION_TRUSTED);
		buf_u32(out, TRUSTED_BYTES);
		buf_u64(out, (uint64_t)m->trusted_ns);
	}
	buf_u32(out, out->failed ? 0 : codec_crc32c(0, out->data, out->len));
}

enum status store_manifest_read(struct store *s, struct manifest *out, struct err *e)
{
	char path[STORE_PATH_MAX];
	enum status st = store_path(path, e, "%s/MANIFEST", s->path);
	if (st != OK)
		return st;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, MANIFEST_BYTES_MAX);
	CLEANUP(fd_cleanup) int fd = -1;
	st = os_open_regular(AT_FDCWD, path, &fd, e);
	if (st == OK)
		st = os_read_fd(fd, path, &b, e);
	return st == OK ? manifest_parse(buf_view(&b), out, e) : st;
}

struct manifest_part store_manifest_entry(const struct part *p)
{
	const struct part_meta *meta = part_meta(p);
	return (struct manifest_part){
		.id = meta->id,
		.bytes = part_file_bytes(p),
		.rows = meta->rows,
		.samples = meta->samples,
		.first_ns = meta->first_ns,
		.last_ns = meta->last_ns,
		.resolution_ns = meta->resolution_ns,
		.level = meta->level,
	};
}

static int by_id(const void *a, const void *b)
{
	const struct manifest_part *x = a, *y = b;
	return x->id < y->id ? -1 : x->id > y->id;
}

static enum status gather(struct store *s, struct part *const *parts, size_t n, struct manifest *m)
{
	enum status st = OK;
	for (size_t i = 0; i < n && st == OK; i++)
		st = VEC_PUSH(&m->parts, store_manifest_entry(parts[i])) ? OK : E_NOMEM;
	lock_take(&s->lock);
	m->next_part = s->next_part;
	m->trusted_ns = s->age.trusted_ns;
	for (size_t i = 0; i < s->unread.len && st == OK; i++)
		st = VEC_PUSH(&m->parts, s->unread.v[i]) ? OK : E_NOMEM;
	int64_t oldest = clock_realtime_ns() - DEDUPE_AGE_NS;
	for (size_t i = 0; i < s->removed.len && st == OK; i++)
		if (s->removed.v[i].arrived_ns > oldest && !VEC_PUSH(&m->removed, s->removed.v[i]))
			st = E_NOMEM;
	lock_release(&s->lock);
	if (m->parts.len)
		qsort(m->parts.v, m->parts.len, sizeof(*m->parts.v), by_id);
	return st;
}

static enum status put(struct store *s, struct part *const *parts, size_t n, struct err *e)
{
	char path[STORE_PATH_MAX];
	CLEANUP(manifest_deinit) struct manifest m = { .store_id = s->id, .is_set = true };
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, MANIFEST_BYTES_MAX);
	enum status st = store_path(path, e, "%s/MANIFEST", s->path);
	if (st == OK)
		st = store_check_home(s, e);
	if (st == OK && gather(s, parts, n, &m) != OK)
		st = err_set(e, E_NOMEM, "the manifest");
	if (st != OK)
		return st;
	m.next_segment = log_next_segment(s->log);
	m.next_sequence = log_next_sequence(s->log);
	manifest_encode(&m, &b);
	if (buf_status(&b) != OK)
		return err_set(e, buf_status(&b), "the manifest of %zu parts", m.parts.len);
	return store_io_replace(s->path, path, buf_view(&b), &s->manifest_unknown, e);
}

enum status store_manifest_put(struct store *s, struct part *const *parts, size_t n, struct err *e)
{
	struct err local = { 0 };
	e = e ? e : &local;
	s->manifest_unknown = false;
	enum status st = put(s, parts, n, e);
	if (st == OK) {
		lock_take(&s->lock);
		s->undecided = false;
		lock_release(&s->lock);
	}
	bool told = atomic_exchange(&s->manifest_stale, st != OK);
	if (st != OK && !told)
		store_say(s,
			"the manifest was not written (%s); no part is written without it, and it "
			"is tried again each minute",
			err_text(e, st));
	return st;
}
