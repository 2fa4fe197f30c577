/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pieces come from DWARF, unit by unit; symbols are kept apart. Settling sorts the pieces, cuts
 * overlaps, fills the holes with symbols, and joins equal neighbours. The result is written as
 * docs/formats/symtab.md says: section by section, in one pass over memory, the header last.
 */
#include "debuginfo/symtab/builder.h"

#include "base/hash.h"
#include "os/os.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

/* A hole wider than this begins a new region. */
#define HOLE_BYTES_MAX ((uint64_t)1 << 20)
/* Ranges that a bucket should have on average. */
#define BUCKET_RANGES 4

enum status debuginfo_builder_init(struct debuginfo_builder *b, uint64_t memory_bytes)
{
	*b = (struct debuginfo_builder){ 0 };
	enum status s = strtab_init(&b->strings, MIN(memory_bytes, (uint64_t)UINT32_MAX / 2));
	if (s != OK)
		return s;
	if (!VEC_PUSH(&b->functions, (struct symtab_function){ 0 }) ||
		!VEC_PUSH(&b->nodes, (struct symtab_node){ 0 }))
		return E_NOMEM;
	return OK;
}

void debuginfo_builder_deinit(struct debuginfo_builder *b)
{
	strtab_deinit(&b->strings);
	VEC_FREE(&b->functions);
	map_deinit(&b->function_index);
	VEC_FREE(&b->nodes);
	map_deinit(&b->node_index);
	VEC_FREE(&b->pieces);
	VEC_FREE(&b->segments);
	VEC_FREE(&b->code);
	VEC_FREE(&b->symbols);
}

enum status debuginfo_builder_text(struct debuginfo_builder *b, const char *cstr, uint32_t *out)
{
	size_t len = cstr ? strnlen(cstr, DEBUGINFO_TEXT_MAX) : 0;
	return strtab_intern(&b->strings, str_make(cstr, len), out);
}

bool debuginfo_is_version(struct str s)
{
	for (size_t i = 0; i < s.len; i++)
		if (strchr("(:#<", s.p[i]))
			return false;
	return !str_eq(s, STR("@plt"));
}

enum status debuginfo_builder_name(struct debuginfo_builder *b, struct str name, uint32_t *out)
{
	const char *at = name.len ? memchr(name.p, '@', name.len) : NULL;
	size_t len = at ? (size_t)(at - name.p) : 0;
	if (len && debuginfo_is_version(str_sub(name, len, name.len)))
		name.len = len;
	name.len = MIN(name.len, (size_t)DEBUGINFO_TEXT_MAX);
	return strtab_intern(&b->strings, name, out);
}

static bool function_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct debuginfo_builder *b = ctx;
	return memcmp(&b->functions.v[value], key, sizeof(struct symtab_function)) == 0;
}

static bool node_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct debuginfo_builder *b = ctx;
	return memcmp(&b->nodes.v[value], key, sizeof(struct symtab_node)) == 0;
}

enum status debuginfo_builder_function(
	struct debuginfo_builder *b, struct symtab_function f, uint32_t *out)
{
	uint64_t h = hash64(&f, sizeof(f));
	uint32_t id = map_find(&b->function_index, h, function_equal, b, &f);
	if (id == MAP_NONE) {
		id = (uint32_t)b->functions.len;
		if (id == MAP_NONE - 1)
			return E_LIMIT;
		if (!VEC_PUSH(&b->functions, f) || !map_insert(&b->function_index, h, id))
			return E_NOMEM;
	}
	*out = id;
	return OK;
}

enum status debuginfo_builder_node(struct debuginfo_builder *b, struct symtab_node n, uint32_t *out)
{
	assert(n.parent < b->nodes.len);
	uint64_t h = hash64(&n, sizeof(n));
	uint32_t id = map_find(&b->node_index, h, node_equal, b, &n);
	if (id == MAP_NONE) {
		id = (uint32_t)b->nodes.len;
		if (id == MAP_NONE - 1)
			return E_LIMIT;
		if (!VEC_PUSH(&b->nodes, n) || !map_insert(&b->node_index, h, id))
			return E_NOMEM;
	}
	*out = id;
	return OK;
}

enum status debuginfo_builder_add(struct debuginfo_builder *b, struct debuginfo_piece p)
{
	assert(p.start < p.end);
	struct debuginfo_piece *last = b->pieces.len ? &b->pieces.v[b->pieces.len - 1] : NULL;
	if (last && last->end == p.start && last->node == p.node && last->line == p.line) {
		last->end = p.end;
		return OK;
	}
	return VEC_PUSH(&b->pieces, p) ? OK : E_NOMEM;
}

enum status debuginfo_builder_symbol(
	struct debuginfo_builder *b, size_t index, uint32_t *out_function)
{
	struct debuginfo_symbol *sym = &b->symbols.v[index];
	if (sym->function == 0) {
		struct symtab_function f = { 0 };
		char place[24];
		snprintf(place, sizeof(place), "+0x%llx", (unsigned long long)sym->origin);
		enum status s =
			debuginfo_builder_name(b, str_of(sym->name ? sym->name : place), &f.name);
		if (s == OK)
			s = debuginfo_builder_function(b, f, &sym->function);
		if (s != OK)
			return s;
	}
	*out_function = sym->function;
	return OK;
}

int debuginfo_span_cmp(const void *pa, const void *pb)
{
	const struct debuginfo_span *a = pa, *b = pb;
	return a->start < b->start ? -1 : a->start > b->start;
}

size_t debuginfo_symbols_at(const struct debuginfo_builder *b, uint64_t vaddr)
{
	size_t lo = 0, hi = b->symbols.len; /* the first one with end > vaddr */
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (b->symbols.v[mid].end <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

const struct debuginfo_span *debuginfo_span_find(
	const struct debuginfo_span *v, size_t count, uint64_t vaddr)
{
	size_t lo = 0, hi = count;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (v[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && vaddr < v[lo - 1].end ? &v[lo - 1] : NULL;
}

const struct debuginfo_span *debuginfo_builder_code(
	const struct debuginfo_builder *b, uint64_t vaddr)
{
	return debuginfo_span_find(b->code.v, b->code.len, vaddr);
}

static int piece_cmp(const void *pa, const void *pb)
{
	const struct debuginfo_piece *a = pa, *b = pb;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end < b->end ? -1 : a->end > b->end;
}

/* Appends pieces for the symbols between `from` and `to`, a hole between pieces. */
static enum status fill_hole(struct debuginfo_builder *b, uint64_t from, uint64_t to)
{
	for (size_t i = debuginfo_symbols_at(b, from);
		i < b->symbols.len && b->symbols.v[i].start < to; i++) {
		uint64_t start = MAX(from, b->symbols.v[i].start);
		uint64_t end = MIN(to, b->symbols.v[i].end);
		struct symtab_node n = { 0 };
		enum status s = debuginfo_builder_symbol(b, i, &n.function);
		uint32_t node;
		if (s == OK)
			s = debuginfo_builder_node(b, n, &node);
		if (s == OK)
			s = debuginfo_builder_add(
				b, (struct debuginfo_piece){ start, end, node, 0 });
		if (s != OK)
			return s;
	}
	return OK;
}

enum status debuginfo_builder_settle(struct debuginfo_builder *b)
{
	if (b->pieces.len)
		qsort(b->pieces.v, b->pieces.len, sizeof(*b->pieces.v), piece_cmp);
	/* Takes the sorted pieces out and adds them again, with the holes between them filled. */
	__typeof__(b->pieces) in = b->pieces;
	memset(&b->pieces, 0, sizeof(b->pieces));
	uint64_t at = 0;
	enum status s = OK;
	for (size_t i = 0; s == OK && i < in.len; i++) {
		struct debuginfo_piece p = in.v[i];
		p.start = MAX(p.start, at);
		if (p.start >= p.end)
			continue;
		if (p.start > at)
			s = fill_hole(b, at, p.start);
		if (s == OK)
			s = debuginfo_builder_add(b, p);
		at = p.end;
	}
	if (s == OK)
		s = fill_hole(b, at, UINT64_MAX);
	VEC_FREE(&in);
	return s;
}

/* ---- writing ---- */

struct layout {
	VEC(struct symtab_region) regions;
	VEC(uint32_t) buckets;
	VEC(uint32_t) starts;
	VEC(struct symtab_place) places;
	VEC(uint32_t) string_offsets;
};

static void layout_deinit(struct layout *l)
{
	VEC_FREE(&l->regions);
	VEC_FREE(&l->buckets);
	VEC_FREE(&l->starts);
	VEC_FREE(&l->places);
	VEC_FREE(&l->string_offsets);
}

/* Completes the last region: its end, its shift, its buckets. */
static bool end_region(struct layout *l, uint64_t end)
{
	struct symtab_region *r = &l->regions.v[l->regions.len - 1];
	r->end = end;
	r->range_count = (uint32_t)(l->starts.len - r->first_range);
	r->first_bucket = (uint32_t)l->buckets.len;
	uint64_t span = r->end - r->base;
	r->shift = SYMTAB_SHIFT_MIN;
	while (r->shift < SYMTAB_SHIFT_MAX && (span >> r->shift) * BUCKET_RANGES > r->range_count)
		r->shift++;
	uint64_t count = symtab_bucket_count(span, r->shift);
	if (count > UINT32_MAX || !VEC_RESERVE(&l->buckets, l->buckets.len + count))
		return false;
	uint32_t at = r->first_range, limit = r->first_range + r->range_count;
	for (uint64_t i = 0; i < count; i++) {
		while (at < limit && (l->starts.v[at] >> r->shift) < i)
			at++;
		l->buckets.v[l->buckets.len++] = at;
	}
	return true;
}

static bool add_range(struct layout *l, uint64_t start, struct symtab_place place)
{
	const struct symtab_region *r = &l->regions.v[l->regions.len - 1];
	return VEC_PUSH(&l->starts, (uint32_t)(start - r->base)) && VEC_PUSH(&l->places, place);
}

static bool begin_region(struct layout *l, uint64_t base)
{
	return VEC_PUSH(&l->regions,
		(struct symtab_region){ .base = base, .first_range = (uint32_t)l->starts.len });
}

static enum status lay_ranges(const struct debuginfo_builder *b, struct layout *l)
{
	uint64_t at = 0; /* end of the last piece */
	for (size_t i = 0; i < b->pieces.len; i++) {
		struct debuginfo_piece p = b->pieces.v[i];
		if (l->starts.len > UINT32_MAX / 2)
			return E_LIMIT;
		bool fresh =
			l->regions.len == 0 || p.start - at > HOLE_BYTES_MAX ||
			p.end - l->regions.v[l->regions.len - 1].base > SYMTAB_REGION_BYTES_MAX;
		if (fresh && l->regions.len && !end_region(l, at))
			return E_NOMEM;
		if (fresh && !begin_region(l, p.start))
			return E_NOMEM;
		/* No real file has a range of code larger than a region. */
		p.end = p.start + MIN(p.end - p.start, SYMTAB_REGION_BYTES_MAX);
		if (!fresh && p.start > at && !add_range(l, at, (struct symtab_place){ 0, 0 }))
			return E_NOMEM;
		if (!add_range(l, p.start, (struct symtab_place){ p.node, p.line }))
			return E_NOMEM;
		at = p.end;
	}
	if (l->regions.len && !end_region(l, at))
		return E_NOMEM;
	return OK;
}

static enum status lay_strings(const struct debuginfo_builder *b, struct layout *l)
{
	uint64_t at = 0;
	if (!VEC_RESERVE(&l->string_offsets, (size_t)b->strings.len + 1))
		return E_NOMEM;
	for (uint32_t i = 0; i < b->strings.len; i++) {
		l->string_offsets.v[l->string_offsets.len++] = (uint32_t)at;
		at += b->strings.v[i].len + 1;
	}
	if (at > UINT32_MAX)
		return E_LIMIT;
	l->string_offsets.v[l->string_offsets.len++] = (uint32_t)at;
	return OK;
}

/* Buffered output at one position, with the running checksum. */
struct output {
	int fd;
	XXH3_state_t *hash;
	uint64_t at;
	uint64_t max;
	size_t fill;
	uint8_t buf[1 << 16];
};

static enum status output_flush(struct output *o, struct err *e)
{
	size_t fill = o->fill;
	o->fill = 0;
	XXH3_64bits_update(o->hash, o->buf, fill);
	return os_pwrite_full(o->fd, o->buf, fill, o->at - fill, "symbol table", e);
}

static enum status output_put(struct output *o, const void *bytes, size_t len, struct err *e)
{
	if (len > o->max - o->at)
		return err_set(
			e, E_LIMIT, "the table passes %llu bytes", (unsigned long long)o->max);
	const uint8_t *p = bytes;
	while (len) {
		size_t n = MIN(len, sizeof(o->buf) - o->fill);
		memcpy(o->buf + o->fill, p, n);
		o->fill += n;
		o->at += n;
		p += n;
		len -= n;
		if (o->fill == sizeof(o->buf)) {
			enum status s = output_flush(o, e);
			if (s != OK)
				return s;
		}
	}
	return OK;
}

static enum status output_section(struct output *o, const void *bytes, uint64_t len, struct err *e)
{
	static const uint8_t zeros[8];
	enum status s = len ? output_put(o, bytes, len, e) : OK;
	return s == OK ? output_put(o, zeros, -len & 7, e) : s;
}

static uint64_t place_section(
	struct symtab_header *h, enum symtab_section id, uint64_t at, uint64_t count, size_t size)
{
	h->sections[id] = (struct symtab_extent){ at, count };
	return (at + count * size + 7) & ~(uint64_t)7;
}

static void fill_header(
	const struct debuginfo_builder *b, const struct layout *l, struct symtab_header *h)
{
	*h = (struct symtab_header){
		.magic = SYMTAB_MAGIC,
		.version = SYMTAB_VERSION,
		.flags = b->flags,
		.build_id_len = b->build_id_len,
	};
	memcpy(h->build_id, b->build_id, b->build_id_len);
	const uint64_t counts[] = {
		[SYMTAB_SEGMENTS] = b->segments.len,
		[SYMTAB_REGIONS] = l->regions.len,
		[SYMTAB_BUCKETS] = l->buckets.len,
		[SYMTAB_STARTS] = l->starts.len,
		[SYMTAB_PLACES] = l->places.len,
		[SYMTAB_NODES] = b->nodes.len,
		[SYMTAB_FUNCTIONS] = b->functions.len,
		[SYMTAB_STRING_OFFSETS] = l->string_offsets.len,
		[SYMTAB_STRINGS] = l->string_offsets.v[l->string_offsets.len - 1],
	};
	uint64_t at = sizeof(*h);
#define PLACE(name, type, text) \
	at = place_section(h, SYMTAB_##name, at, counts[SYMTAB_##name], sizeof(type));
	SYMTAB_SECTIONS(PLACE)
#undef PLACE
	h->file_bytes = at;
}

static enum status write_sections(
	const struct debuginfo_builder *b, const struct layout *l, struct output *o, struct err *e)
{
	const struct {
		const void *p;
		uint64_t len;
	} parts[] = {
		{ b->segments.v, b->segments.len * sizeof(*b->segments.v) },
		{ l->regions.v, l->regions.len * sizeof(*l->regions.v) },
		{ l->buckets.v, l->buckets.len * sizeof(*l->buckets.v) },
		{ l->starts.v, l->starts.len * sizeof(*l->starts.v) },
		{ l->places.v, l->places.len * sizeof(*l->places.v) },
		{ b->nodes.v, b->nodes.len * sizeof(*b->nodes.v) },
		{ b->functions.v, b->functions.len * sizeof(*b->functions.v) },
		{ l->string_offsets.v, l->string_offsets.len * sizeof(*l->string_offsets.v) },
	};
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		enum status s = output_section(o, parts[i].p, parts[i].len, e);
		if (s != OK)
			return s;
	}
	for (uint32_t i = 0; i < b->strings.len; i++) {
		enum status s = output_put(o, b->strings.v[i].p, b->strings.v[i].len + 1, e);
		if (s != OK)
			return s;
	}
	return output_section(o, NULL, 0, e);
}

static enum status write_table(
	const struct debuginfo_builder *b, const struct layout *l, struct output *o, struct err *e)
{
	struct symtab_header h;
	fill_header(b, l, &h);
	XXH3_64bits_reset(o->hash);
	XXH3_64bits_update(o->hash, (const uint8_t *)&h + SYMTAB_CHECKSUM_FROM,
		sizeof(h) - SYMTAB_CHECKSUM_FROM);
	o->at = sizeof(h);
	enum status s = write_sections(b, l, o, e);
	static const uint8_t zeros[8];
	if (s == OK)
		s = output_put(o, zeros, -o->at & 7, e);
	if (s == OK)
		s = output_flush(o, e);
	if (s != OK)
		return s;
	assert(o->at == h.file_bytes);
	h.checksum = XXH3_64bits_digest(o->hash);
	return os_pwrite_full(o->fd, &h, sizeof(h), 0, "symbol table", e);
}

static void hash_cleanup(XXH3_state_t **p)
{
	XXH3_freeState(*p);
}

enum status debuginfo_builder_write(
	struct debuginfo_builder *b, int fd, uint64_t max_bytes, struct err *e)
{
	CLEANUP(layout_deinit) struct layout l = { 0 };
	enum status s = lay_ranges(b, &l);
	if (s == OK)
		s = lay_strings(b, &l);
	if (s != OK)
		return err_set(e, s, "layout of the symbol table");
	VEC_FREE(&b->pieces);
	CLEANUP(hash_cleanup) XXH3_state_t *hash = XXH3_createState();
	CLEANUP(free_cleanup) struct output *o = calloc(1, sizeof(*o));
	if (!hash || !o)
		return err_set(e, E_NOMEM, "symbol table");
	o->fd = fd;
	o->hash = hash;
	o->max = max_bytes;
	if (max_bytes < sizeof(struct symtab_header))
		return err_set(
			e, E_LIMIT, "the table passes %llu bytes", (unsigned long long)max_bytes);
	return write_table(b, &l, o, e);
}
