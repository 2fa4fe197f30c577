/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening reads the ends of the file only: header, trailer, table of contents, META. Tables come in
 * groups; each is loaded when it is pinned, and stays until it is no longer pinned and part_trim()
 * frees it. A group is loaded with the part's lock held, so that two threads do not load it twice.
 */
#include "store/part/part_open.h"

#include "base/clock.h"
#include "base/reader.h"
#include "codec/codec.h"
#include "store/part/part_table.h"

#include <stdlib.h>

#define HEADER_BYTES 32
#define TRAILER_BYTES 32
#define ENTRY_BYTES 24
#define META_BYTES_MAX ((size_t)16 << 20)

static enum status check_header(struct part *p, struct err *e)
{
	uint8_t h[HEADER_BYTES];
	if (p->bytes < HEADER_BYTES + TRAILER_BYTES)
		return err_set(e, E_CORRUPT, "%s: %llu bytes are no part", p->path,
			(unsigned long long)p->bytes);
	enum status s = object_read(p->object, 0, h, sizeof(h), e);
	if (s != OK)
		return s;
	struct reader r = reader_over(h, sizeof(h));
	reader_skip(&r, 8);
	uint16_t major = reader_u16(&r);
	reader_skip(&r, 6);
	p->meta.id = reader_u64(&r);
	reader_skip(&r, 4);
	if (memcmp(h, "FIRNPART", 8) != 0 || reader_u32(&r) != codec_crc32c(0, h, HEADER_BYTES - 4))
		return err_set(e, E_CORRUPT, "%s: the header at +0 is damaged", p->path);
	if (major != 1)
		return err_set(e, E_UNSUPPORTED,
			"%s: part version %u was written by a newer firn; this one reads version 1",
			p->path, major);
	return OK;
}

static enum status parse_toc(struct part *p, struct str toc, struct err *e)
{
	struct reader r = reader_over(toc.p, toc.len);
	uint32_t n = reader_u32(&r);
	if (n > PART_SECTIONS_MAX || toc.len != 4 + (size_t)n * ENTRY_BYTES)
		return err_set(e, E_CORRUPT, "%s: a table of contents of %u entries", p->path, n);
	for (uint32_t i = 0; i < n; i++) {
		struct part_section_entry x = { .kind = reader_u16(&r) };
		x.flags = reader_u16(&r);
		x.crc = reader_u32(&r);
		x.offset = reader_u64(&r);
		x.length = reader_u64(&r);
		if (x.offset > p->bytes || x.length > p->bytes - x.offset)
			return err_set(e, E_CORRUPT, "%s: section %u lies beyond the file", p->path,
				x.kind);
		for (size_t k = 0; k < p->section_count; k++)
			if (p->sections[k].kind == x.kind)
				return err_set(e, E_CORRUPT,
					"%s: the table of contents names section %u twice", p->path,
					x.kind);
		bool known = (x.kind >= PART_META && x.kind <= PART_BATCHES) ||
			     (x.kind >= PART_SERIES_SET_COUNTS && x.kind <= PART_PROFILES) ||
			     x.kind == PART_SAMPLES;
		if (!known && (x.flags & PART_FLAG_MUST_KNOW))
			return err_set(e, E_UNSUPPORTED,
				"%s: section %u was written by a newer firn, and must be known",
				p->path, x.kind);
		p->sections[p->section_count++] = x;
	}
	return OK;
}

static enum status read_toc(struct part *p, struct err *e)
{
	uint8_t t[TRAILER_BYTES];
	enum status s = object_read(p->object, p->bytes - TRAILER_BYTES, t, sizeof(t), e);
	if (s != OK)
		return s;
	struct reader r = reader_over(t, sizeof(t));
	uint64_t at = reader_u64(&r);
	uint32_t len = reader_u32(&r), crc = reader_u32(&r);
	uint64_t file = reader_u64(&r);
	if (memcmp(t + 24, "FIRNPEND", 8) != 0 || file != p->bytes)
		return err_set(e, E_CORRUPT, "%s: no end of a part at +%llu: cut short?", p->path,
			(unsigned long long)p->bytes - TRAILER_BYTES);
	if (at > p->bytes || len > p->bytes - at || len > 4 + PART_SECTIONS_MAX * ENTRY_BYTES)
		return err_set(e, E_CORRUPT, "%s: the table of contents lies at +%llu", p->path,
			(unsigned long long)at);
	uint8_t toc[4 + PART_SECTIONS_MAX * ENTRY_BYTES];
	s = object_read(p->object, at, toc, len, e);
	if (s != OK)
		return s;
	if (codec_crc32c(0, toc, len) != crc)
		return err_set(e, E_CORRUPT, "%s: checksum of the table of contents at +%llu",
			p->path, (unsigned long long)at);
	return parse_toc(p, str_make(toc, len), e);
}

/* ---- META ---- */

static enum status parse_covers(struct reader r, struct part_meta *m)
{
	while (!reader_done(&r) && m->covers.len < PART_RANGES_MAX) {
		struct sequence_range x = { .first = reader_varint(&r) };
		uint64_t more = reader_varint(&r);
		if (r.failed || __builtin_add_overflow(x.first, more, &x.last))
			return E_CORRUPT;
		if (!VEC_PUSH(&m->covers, x))
			return E_NOMEM;
	}
	return !r.failed && reader_done(&r) ? OK : E_CORRUPT;
}

static enum status parse_replaces(struct reader r, struct part_meta *m)
{
	while (!reader_done(&r) && m->replaces.len < PART_REPLACES_MAX) {
		uint64_t id = reader_varint(&r);
		if (r.failed)
			return E_CORRUPT;
		if (!VEC_PUSH(&m->replaces, id))
			return E_NOMEM;
	}
	return !r.failed && reader_done(&r) ? OK : E_CORRUPT;
}

static enum status parse_imports(struct reader r, struct part_meta *m)
{
	while (!reader_done(&r) && m->imports.len < PART_IMPORTS_MAX) {
		struct hash128 id = { .lo = reader_u64(&r) };
		id.hi = reader_u64(&r);
		if (r.failed)
			return E_CORRUPT;
		if (!VEC_PUSH(&m->imports, id))
			return E_NOMEM;
	}
	return !r.failed && reader_done(&r) ? OK : E_CORRUPT;
}

static enum status parse_field(uint64_t tag, struct reader r, struct part_meta *m)
{
	switch (tag) {
	case 1:
		m->store_id.lo = reader_u64(&r);
		m->store_id.hi = reader_u64(&r);
		break;
	case 2:
		m->level = (uint32_t)MIN(reader_varint(&r), (uint64_t)UINT32_MAX);
		break;
	case 3:
		m->order =
			reader_varint(&r) == PART_ORDER_STACK ? PART_ORDER_STACK : PART_ORDER_TIME;
		break;
	case 4:
		m->resolution_ns = (int64_t)reader_varint(&r);
		break;
	case 5:
		m->rows = reader_varint(&r);
		break;
	case 6:
		m->samples = reader_varint(&r);
		break;
	case 7:
		m->first_ns = reader_zigzag(&r);
		break;
	case 8:
		m->last_ns = reader_zigzag(&r);
		break;
	case 9:
		m->written_ns = reader_zigzag(&r);
		break;
	case 10:
		return parse_covers(r, m);
	case 11:
		return parse_replaces(r, m);
	case 13:
		return parse_imports(r, m);
	default:
		break;
	}
	return r.failed ? E_CORRUPT : OK;
}

static enum status read_meta(struct part *p, struct err *e)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, META_BYTES_MAX);
	enum status s = part_section_read(p, PART_META, &b, e);
	if (s != OK)
		return s;
	struct reader r = reader_over(b.data, b.len);
	while (!reader_done(&r)) {
		uint64_t tag = reader_varint(&r);
		struct reader field = reader_sub(&r, reader_varint(&r));
		s = r.failed ? E_CORRUPT : parse_field(tag, field, &p->meta);
		if (s != OK)
			return err_set(e, s, "%s: META field %llu at +%zu", p->path,
				(unsigned long long)tag, reader_offset(&r));
	}
	if (r.failed)
		return err_set(e, E_CORRUPT, "%s: META ends early", p->path);
	return OK;
}

/* ---- life ---- */

enum status part_open(const char *path, struct part **out, struct err *e)
{
	struct object *o;
	enum status s = object_open_file(path, &o, e);
	return s == OK ? part_open_object(o, out, e) : s;
}

enum status part_open_at(struct place *place, uint64_t id, struct part **out, struct err *e)
{
	struct object *o;
	enum status s = place_open(place, id, &o, e);
	return s == OK ? part_open_object(o, out, e) : s;
}

enum status part_open_object(struct object *o, struct part **out, struct err *e)
{
	struct part *p = calloc(1, sizeof(*p));
	if (!p) {
		enum status none = err_set(e, E_NOMEM, "%s", o->name);
		object_close(o);
		return none;
	}
	atomic_init(&p->refs, 1);
	lock_init(&p->lock, LOCK_PART);
	p->meta.order = PART_ORDER_TIME;
	p->object = o;
	p->path = o->name;
	p->bytes = o->bytes;
	enum status s = check_header(p, e);
	if (s == OK)
		s = read_toc(p, e);
	if (s == OK)
		s = read_meta(p, e);
	if (s != OK) {
		part_unref(p);
		return s;
	}
	*out = p;
	return OK;
}

struct part *part_ref(struct part *p)
{
	atomic_fetch_add(&p->refs, 1);
	return p;
}

static void forget_group(struct part *p, unsigned i)
{
	struct group *g = &p->groups[i];
	for (unsigned k = 0; k < g->count; k++)
		free(g->memory[k]);
	*g = (struct group){ 0 };
	if (1u << i == PART_LOAD_TEXTS) {
		label_ids_unref(p->ids);
		p->ids = NULL;
	}
}

void part_unref(struct part *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	for (unsigned i = 0; i < PART_GROUPS; i++) {
		assert(p->pins[i] == 0);
		forget_group(p, i);
	}
	part_meta_deinit(&p->meta);
	object_close(p->object);
	lock_destroy(&p->lock);
	free(p);
}

const struct part_meta *part_meta(const struct part *p)
{
	return &p->meta;
}

const char *part_path(const struct part *p)
{
	return p->path;
}

uint64_t part_file_bytes(const struct part *p)
{
	return p->bytes;
}

const struct part_section_entry *part_sections(const struct part *p, size_t *count)
{
	*count = p->section_count;
	return p->sections;
}

const struct part_block *part_blocks(const struct part *p, size_t *count)
{
	*count = p->block_count;
	return p->blocks;
}

const struct part_total *part_totals(const struct part *p, size_t *count)
{
	*count = p->total_count;
	return p->totals;
}

/* An upper estimate of the missing groups' memory: their bytes on disk times a generous factor. */
static uint64_t missing_bytes(const struct part *p, unsigned groups)
{
	static const uint16_t group_of[] = { [PART_LABEL_STRINGS] = 1,
		[PART_SERIES] = 32,
		[PART_SERIES_LABELS] = 32,
		[PART_SAMPLE_NAMES] = 1,
		[PART_SAMPLE_STRINGS] = 2,
		[PART_SAMPLE_SETS] = 2,
		[PART_SYMBOL_STRINGS] = 8,
		[PART_FUNCTIONS] = 8,
		[PART_MAPPINGS] = 8,
		[PART_LOCATIONS] = 8,
		[PART_LINES] = 8,
		[PART_TRIE] = 4,
		[PART_BLOCKS] = 16,
		[PART_SERIES_SET_COUNTS] = 64,
		[PART_SERIES_SETS] = 64,
		[PART_LOCATION_COUNTS] = 64,
		[PART_LOCATION_SERIES] = 64,
		[PART_KINDS] = 128,
		[PART_KIND_NAMES] = 128,
		[PART_KIND_VALUES] = 128,
		[PART_PROFILES] = 256,
		[PART_TOTALS] = 16 };
	uint64_t n = 0;
	for (size_t i = 0; i < p->section_count; i++) {
		unsigned kind = p->sections[i].kind;
		if (kind >= ARRAY_COUNT(group_of) || !(group_of[kind] & groups))
			continue;
		if (!p->groups[__builtin_ctz(group_of[kind])].loaded)
			n += p->sections[i].length;
	}
	return n;
}

enum status part_pin(
	struct part *p, unsigned groups, uint64_t limit_bytes, struct tabs *out, struct err *e)
{
	lock_take(&p->lock);
	enum status s = OK;
	p->load_limit = limit_bytes;
	if (missing_bytes(p, groups) > limit_bytes)
		s = err_set(e, E_LIMIT,
			"the query needs more than its %llu bytes of memory for the tables of %s",
			(unsigned long long)limit_bytes, p->path);
	for (unsigned i = 0; i < PART_GROUPS && s == OK; i++) {
		if (!(groups & 1u << i) || p->groups[i].loaded)
			continue;
		s = part_load_group(p, i, e);
		if (s != OK) {
			forget_group(p, i);
			continue;
		}
		p->groups[i].loaded = true;
		p->load_limit -= MIN(p->load_limit, p->groups[i].bytes);
	}
	if (s == OK) {
		for (unsigned i = 0; i < PART_GROUPS; i++)
			p->pins[i] += groups >> i & 1;
		p->used_ns = clock_monotonic_ns();
		*out = p->tabs;
	}
	lock_release(&p->lock);
	return s;
}

enum status part_label_ids(struct part *p, struct dictionary *d, struct label_ids **out)
{
	enum status s = OK;
	lock_take(&p->lock);
	assert(p->pins[0] && p->groups[0].loaded);
	if (!p->ids || p->ids->dictionary != d) {
		struct label_ids *ids;
		s = label_ids_new(d, p->tabs.label_strings, p->tabs.label_string_count, &ids);
		if (s == OK) {
			label_ids_unref(p->ids);
			p->ids = ids;
		}
	}
	if (s == OK)
		*out = label_ids_ref(p->ids);
	lock_release(&p->lock);
	return s;
}

struct label_ids *part_known_ids(struct part *p, const struct dictionary *d)
{
	struct label_ids *ids = NULL;
	lock_take(&p->lock);
	assert(p->pins[0] && p->groups[0].loaded);
	if (p->ids && p->ids->dictionary == d)
		ids = label_ids_ref(p->ids);
	lock_release(&p->lock);
	return ids;
}

static void unpin(struct part *p, unsigned groups)
{
	for (unsigned i = 0; i < PART_GROUPS; i++)
		if (groups >> i & 1) {
			assert(p->pins[i] > 0);
			p->pins[i]--;
		}
}

void part_unpin(struct part *p, unsigned groups)
{
	lock_take(&p->lock);
	unpin(p, groups);
	lock_release(&p->lock);
}

uint64_t part_group_bytes(struct part *p, unsigned groups)
{
	uint64_t bytes = 0;
	lock_take(&p->lock);
	for (unsigned i = 0; i < PART_GROUPS; i++)
		bytes += groups >> i & 1 ? p->groups[i].bytes : 0;
	lock_release(&p->lock);
	return bytes;
}

uint64_t part_trim(struct part *p, unsigned groups, int64_t before_ns)
{
	uint64_t left = 0;
	if (!lock_try(&p->lock))
		return 0;
	for (unsigned i = 0; i < PART_GROUPS; i++) {
		if (p->pins[i] == 0 && p->used_ns < before_ns && groups & 1u << i)
			forget_group(p, i);
		left += p->groups[i].bytes;
	}
	lock_release(&p->lock);
	return left;
}

uint64_t part_forget(struct part *p, unsigned groups)
{
	uint64_t left = 0;
	lock_take(&p->lock);
	unpin(p, groups);
	for (unsigned i = 0; i < PART_GROUPS; i++) {
		if (p->pins[i] == 0 && groups >> i & 1)
			forget_group(p, i);
		left += p->groups[i].bytes;
	}
	lock_release(&p->lock);
	return left;
}
