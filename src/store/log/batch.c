/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoding interns again, so equal elements become one: `ids` translates the indices of each table
 * of the payload into those of the profile.
 */
#include "store/log/batch.h"

#include "base/reader.h"

#include <endian.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define VARINT32_BYTES_MAX 5
#define VARINT64_BYTES_MAX 10
#define WORD_BYTES sizeof(uint64_t)
#define FRAMES_AT_ONCE 64

/* ---- encoding ---- */

/* Most elements of a batch are written in place, into room for the longest possible element and one
 * more word, without unpredictable branches.
 */
#define WORD_BITS 56 /* bits of a number whose groups of seven fit one word */

static uint8_t *put_long(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

/* Puts seven bits into each byte, then marks all bytes but the last; it always writes eight bytes,
 * even if fewer count. */
static inline uint8_t *put_varint(uint8_t *p, uint64_t v)
{
	if (v >> WORD_BITS)
		return put_long(p, v);
	unsigned more = (63u - (unsigned)__builtin_clzll(v | 1)) / 7;
	v = (v & 0x000000000fffffff) | (v & 0x00fffffff0000000) << 4;
	v = (v & 0x00003fff00003fff) | (v & 0x0fffc0000fffc000) << 2;
	v = (v & 0x007f007f007f007f) | (v & 0x3f803f803f803f80) << 1;
	v |= 0x8080808080808080 & (((uint64_t)1 << 8 * more) - 1);
	v = htole64(v);
	memcpy(p, &v, sizeof(v));
	return p + more + 1;
}

/* The same for indices, most of which take one or two bytes. */
static inline uint8_t *put_index(uint8_t *p, uint32_t v)
{
	if (v >= 1u << 14)
		return put_varint(p, v);
	unsigned two = v >= 0x80;
	p[0] = (uint8_t)(v | two << 7);
	p[1] = (uint8_t)(v >> 7);
	return p + 1 + two;
}

static uint64_t zigzag(int64_t v)
{
	return (uint64_t)v << 1 ^ (uint64_t)(v >> 63);
}

/* Eight indices of two bytes each; false: some take another number. */
static inline bool put_eight_frames(uint8_t *p, const uint32_t *v)
{
#ifdef __SSE2__
	__m128i w = _mm_packs_epi32(
		_mm_loadu_si128((const __m128i_u *)v), _mm_loadu_si128((const __m128i_u *)(v + 4)));
	if (_mm_movemask_epi8(_mm_cmpgt_epi16(w, _mm_set1_epi16(0x7f))) != 0xffff)
		return false;
	__m128i high = _mm_and_si128(_mm_add_epi16(w, w), _mm_set1_epi16(0x7f00));
	w = _mm_or_si128(_mm_and_si128(w, _mm_set1_epi16(0x7f)), _mm_set1_epi16(0x80));
	_mm_storeu_si128((__m128i_u *)p, _mm_or_si128(w, high));
	return true;
#else
	(void)p;
	(void)v;
	return false;
#endif
}

/* Indices of one or two bytes, four at a time in parts of 16 bits: the two bytes of each, and a
 * mark if both are needed. If all four need two bytes, one write is enough. */
static uint8_t *put_short_frames(uint8_t *p, const uint32_t *v, uint32_t count)
{
	const uint64_t each = 0x0001000100010001;
	uint32_t i = 0;
	for (; i + 4 <= count; i += 4) {
		for (; i + 8 <= count && put_eight_frames(p, v + i); i += 8)
			p += 16;
		if (i + 4 > count)
			break;
		uint64_t w = v[i] | (uint64_t)v[i + 1] << 16 | (uint64_t)v[i + 2] << 32 |
			     (uint64_t)v[i + 3] << 48;
		uint64_t marks = (w + 0x3f80 * each) >> 7 & 0x80 * each;
		w = (w & 0x7f * each) | (w << 1 & 0x7f00 * each) | marks;
		if (marks == 0x80 * each) {
			w = htole64(w);
			memcpy(p, &w, sizeof(w));
			p += sizeof(w);
			continue;
		}
		for (int k = 0; k < 4; k++, w >>= 16) {
			p[0] = (uint8_t)w;
			p[1] = (uint8_t)(w >> 8);
			p += 1 + (w >> 7 & 1);
		}
	}
	for (; i < count; i++)
		p = put_index(p, v[i]);
	return p;
}

static uint8_t *put_frames(uint8_t *p, const uint32_t *v, uint32_t count)
{
	uint32_t all = 0;
	for (uint32_t i = 0; i < count; i++)
		all |= v[i];
	if (all < 1u << 14)
		return put_short_frames(p, v, count);
	for (uint32_t i = 0; i < count; i++)
		p = put_index(p, v[i]);
	return p;
}

/* Reserves room for `varints` numbers of 64 bits and `more` bytes. NULL: the buffer has failed. */
static inline uint8_t *room(struct buf *out, size_t varints, size_t more)
{
	size_t need = varints * VARINT64_BYTES_MAX + more + WORD_BYTES;
	bool is_there = !out->failed && out->cap - out->len >= need && out->max - out->len >= need;
	return is_there ? out->data + out->len : buf_reserve(out, need);
}

static inline void written(struct buf *out, const uint8_t *end)
{
	out->len = (size_t)(end - out->data);
}

static void encode_frames(struct buf *out, const uint32_t *v, uint32_t count)
{
	uint8_t *p = room(out, 0, ((size_t)count + 1) * VARINT32_BYTES_MAX);
	if (!p)
		return;
	p = put_varint(p, count);
	for (uint32_t i = 0; i < count; i += FRAMES_AT_ONCE)
		p = put_frames(p, v + i, MIN(count - i, (uint32_t)FRAMES_AT_ONCE));
	written(out, p);
}

static void encode_strings(struct buf *out, const struct profile *p)
{
	buf_varint(out, p->strings.len - 1);
	for (uint32_t i = 1; i < p->strings.len; i++) {
		struct str s = p->strings.v[i];
		uint8_t *at = room(out, 1, s.len);
		if (!at)
			return;
		at = put_index(at, (uint32_t)s.len);
		memcpy(at, s.p, s.len);
		written(out, at + s.len);
	}
}

static void encode_symbols(struct buf *out, const struct profile *p)
{
	encode_strings(out, p);
	buf_varint(out, p->functions.len - 1);
	for (size_t i = 1; i < p->functions.len; i++) {
		const struct profile_function *f = &p->functions.v[i];
		uint8_t *at = room(out, 4, 0);
		if (!at)
			return;
		at = put_index(at, f->name);
		at = put_index(at, f->system_name);
		at = put_index(at, f->filename);
		written(out, put_index(at, f->start_line));
	}
	buf_varint(out, p->mappings.len - 1);
	for (size_t i = 1; i < p->mappings.len; i++) {
		const struct profile_mapping *m = &p->mappings.v[i];
		buf_varint(out, m->start);
		buf_varint(out, m->limit);
		buf_varint(out, m->offset);
		buf_varint(out, m->filename);
		buf_varint(out, m->build_id);
	}
}

static void encode_stacks(struct buf *out, const struct profile *p)
{
	buf_varint(out, p->locations.len - 1);
	for (size_t i = 1; i < p->locations.len; i++) {
		const struct profile_location *l = &p->locations.v[i];
		uint8_t *at = room(out, 4 + 3 * (size_t)l->line_count, 0);
		if (!at)
			return;
		at = put_varint(at, l->address);
		at = put_index(at, l->mapping);
		at = put_index(at, l->kind);
		at = put_index(at, l->line_count);
		for (uint32_t j = 0; j < l->line_count; j++) {
			const struct profile_line *line = &p->lines.v[l->line_first + j];
			at = put_index(at, line->function);
			at = put_index(at, line->line);
			at = put_index(at, line->column);
		}
		written(out, at);
	}
	buf_varint(out, p->stacks.len - 1);
	for (size_t i = 1; i < p->stacks.len; i++) {
		const struct profile_stack *s = &p->stacks.v[i];
		encode_frames(out, p->stack_locations.v + s->first, s->count);
	}
}

static void encode_labels(struct buf *out, const struct profile *p)
{
	buf_varint(out, p->label_sets.len - 1);
	for (size_t i = 1; i < p->label_sets.len; i++) {
		const struct profile_labels *set = &p->label_sets.v[i];
		buf_varint(out, set->count);
		for (uint32_t j = 0; j < set->count; j++) {
			buf_varint(out, p->labels.v[set->first + j].name);
			buf_varint(out, p->labels.v[set->first + j].value);
		}
	}
	buf_varint(out, p->links.len - 1);
	for (size_t i = 1; i < p->links.len; i++) {
		buf_put(out, p->links.v[i].trace_id, 16);
		buf_put(out, p->links.v[i].span_id, 8);
	}
	buf_varint(out, p->types.len - 1);
	for (size_t i = 1; i < p->types.len; i++) {
		const struct profile_type *t = &p->types.v[i];
		buf_varint(out, t->name);
		buf_varint(out, t->sample_type);
		buf_varint(out, t->sample_unit);
		buf_varint(out, t->period_type);
		buf_varint(out, t->period_unit);
		buf_varint(out, t->delta);
	}
	buf_varint(out, p->heads.len - 1);
	for (size_t i = 1; i < p->heads.len; i++) {
		const struct profile_head *h = &p->heads.v[i];
		buf_varint(out, h->type);
		buf_zigzag(out, h->period);
		buf_zigzag(out, h->time_ns);
		buf_zigzag(out, h->duration_ns);
	}
}

/* An estimate of the bytes, so that the buffer need not grow often. */
static size_t estimate(struct str tenant, const struct profile *p)
{
	return tenant.len + p->strings.arena.used + 2 * (size_t)p->strings.len +
	       8 * p->functions.len + 16 * p->mappings.len + 10 * p->locations.len +
	       6 * p->lines.len + 2 * p->stacks.len + 2 * p->stack_locations.len +
	       4 * p->labels.len + 2 * p->label_sets.len + 24 * p->links.len + 16 * p->samples.len +
	       256;
}

size_t batch_encode(struct buf *out, struct str tenant, const struct profile *p)
{
	if (!buf_reserve(out, MIN(estimate(tenant, p), out->max - out->len)))
		return 0;
	buf_varint(out, tenant.len);
	buf_str(out, tenant);
	encode_symbols(out, p);
	size_t symbols = out->len;
	encode_stacks(out, p);
	encode_labels(out, p);
	buf_varint(out, p->samples.len);
	uint64_t before = 0;
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *s = &p->samples.v[i];
		uint8_t *at = room(out, 7, 0);
		if (!at)
			return symbols;
		at = put_varint(at, zigzag(s->value));
		at = put_varint(at, zigzag((int64_t)((uint64_t)s->time_ns - before)));
		before = (uint64_t)s->time_ns;
		at = put_index(at, s->head);
		at = put_index(at, s->stack);
		at = put_index(at, s->resource);
		at = put_index(at, s->own);
		written(out, put_index(at, s->link));
	}
	return symbols;
}

/* ---- decoding ---- */

struct ids {
	VEC(uint32_t) strings;
	VEC(uint32_t) functions;
	VEC(uint32_t) mappings;
	VEC(uint32_t) locations;
	VEC(uint32_t) stacks;
	VEC(uint32_t) sets;
	VEC(uint32_t) links;
	VEC(uint32_t) types;
	VEC(uint32_t) heads;
};

static void ids_deinit(struct ids *ids)
{
	VEC_FREE(&ids->strings);
	VEC_FREE(&ids->functions);
	VEC_FREE(&ids->mappings);
	VEC_FREE(&ids->locations);
	VEC_FREE(&ids->stacks);
	VEC_FREE(&ids->sets);
	VEC_FREE(&ids->links);
	VEC_FREE(&ids->types);
	VEC_FREE(&ids->heads);
}

/* Reads a table's count, and checks it: each element takes at least `least` bytes. */
static uint64_t count_of(struct reader *r, size_t least)
{
	uint64_t n = reader_varint(r);
	if (n > reader_left(r) / least)
		r->failed = true;
	return r->failed ? 0 : n;
}

/* An index of the payload as one of the profile; 0 and failed when out of range. */
#define MAPPED(r, vec)                           \
	({                                       \
		uint64_t at_ = reader_varint(r); \
		if (at_ >= (vec)->len)           \
			(r)->failed = true;      \
		(r)->failed ? 0 : (vec)->v[at_]; \
	})

/* One table: `body` reads an element, sets `id` and `s`. Element 0 is the null element. */
#define TABLE(r, vec, least, body)                                     \
	do {                                                           \
		if (!VEC_PUSH((vec), 0))                               \
			return E_NOMEM;                                \
		for (uint64_t n_ = count_of((r), (least)); n_; n_--) { \
			uint32_t id = 0;                               \
			enum status s = OK;                            \
			body;                                          \
			if ((r)->failed)                               \
				return E_CORRUPT;                      \
			if (s != OK)                                   \
				return s;                              \
			if (!VEC_PUSH((vec), id))                      \
				return E_NOMEM;                        \
		}                                                      \
		if ((r)->failed)                                       \
			return E_CORRUPT;                              \
	} while (0)

static uint32_t u32_of(struct reader *r)
{
	uint64_t v = reader_varint(r);
	if (v > UINT32_MAX)
		r->failed = true;
	return (uint32_t)v;
}

static enum status decode_string(struct reader *r, struct profile *p, uint32_t *id)
{
	struct str s = reader_str(r, reader_varint(r));
	return r->failed ? E_CORRUPT : profile_add_string(p, s, id);
}

static enum status decode_function(
	struct reader *r, struct profile *p, const struct ids *ids, uint32_t *id)
{
	struct profile_function f = { 0 };
	f.name = MAPPED(r, &ids->strings);
	f.system_name = MAPPED(r, &ids->strings);
	f.filename = MAPPED(r, &ids->strings);
	f.start_line = u32_of(r);
	return r->failed ? E_CORRUPT : profile_add_function(p, &f, id);
}

static enum status decode_mapping(
	struct reader *r, struct profile *p, const struct ids *ids, uint32_t *id)
{
	struct profile_mapping m = { 0 };
	m.start = reader_varint(r);
	m.limit = reader_varint(r);
	m.offset = reader_varint(r);
	m.filename = MAPPED(r, &ids->strings);
	m.build_id = MAPPED(r, &ids->strings);
	return r->failed ? E_CORRUPT : profile_add_mapping(p, &m, id);
}

static enum status decode_location(
	struct reader *r, struct profile *p, const struct ids *ids, uint32_t *id)
{
	struct profile_line lines[PROFILE_LINES_MAX];
	struct profile_location l = { .address = reader_varint(r) };
	l.mapping = MAPPED(r, &ids->mappings);
	uint64_t kind = reader_varint(r), n = reader_varint(r);
	if (r->failed || kind >= FRAME_KIND_COUNT || n > PROFILE_LINES_MAX)
		return E_CORRUPT;
	l.kind = (uint8_t)kind;
	for (uint64_t i = 0; i < n; i++) {
		lines[i].function = MAPPED(r, &ids->functions);
		lines[i].line = u32_of(r);
		lines[i].column = u32_of(r);
	}
	return r->failed ? E_CORRUPT : profile_add_location(p, &l, lines, (uint32_t)n, id);
}

static enum status decode_stack(
	struct reader *r, struct profile *p, const struct ids *ids, uint32_t *id)
{
	uint32_t locations[PROFILE_STACK_MAX];
	uint64_t n = reader_varint(r);
	if (r->failed || n > PROFILE_STACK_MAX)
		return E_CORRUPT;
	for (uint64_t i = 0; i < n; i++)
		locations[i] = MAPPED(r, &ids->locations);
	return r->failed ? E_CORRUPT : profile_add_stack(p, locations, (uint32_t)n, id);
}

static enum status decode_labels(
	struct reader *r, struct profile *p, const struct ids *ids, uint32_t *id)
{
	struct profile_label labels[PROFILE_LABELS_MAX];
	uint64_t n = reader_varint(r);
	if (r->failed || n > PROFILE_LABELS_MAX)
		return E_CORRUPT;
	for (uint64_t i = 0; i < n; i++) {
		labels[i].name = MAPPED(r, &ids->strings);
		labels[i].value = MAPPED(r, &ids->strings);
	}
	return r->failed ? E_CORRUPT : profile_add_labels(p, labels, (uint32_t)n, id);
}

static enum status decode_link(struct reader *r, struct profile *p, uint32_t *id)
{
	struct profile_link l = { 0 };
	const void *trace = reader_bytes(r, 16), *span = reader_bytes(r, 8);
	if (!trace || !span)
		return E_CORRUPT;
	memcpy(l.trace_id, trace, 16);
	memcpy(l.span_id, span, 8);
	return profile_add_link(p, &l, id);
}

static enum status decode_type(
	struct reader *r, struct profile *p, const struct ids *ids, uint32_t *id)
{
	struct profile_type t = { 0 };
	t.name = MAPPED(r, &ids->strings);
	t.sample_type = MAPPED(r, &ids->strings);
	t.sample_unit = MAPPED(r, &ids->strings);
	t.period_type = MAPPED(r, &ids->strings);
	t.period_unit = MAPPED(r, &ids->strings);
	t.delta = reader_varint(r) != 0;
	return r->failed ? E_CORRUPT : profile_add_type(p, &t, id);
}

static enum status decode_head(
	struct reader *r, struct profile *p, const struct ids *ids, uint32_t *id)
{
	struct profile_head h = { .type = MAPPED(r, &ids->types) };
	h.period = reader_zigzag(r);
	h.time_ns = reader_zigzag(r);
	h.duration_ns = reader_zigzag(r);
	return r->failed ? E_CORRUPT : profile_add_head(p, &h, id);
}

static enum status decode_samples(struct reader *r, struct profile *p, const struct ids *ids)
{
	uint64_t before = 0;
	for (uint64_t n = count_of(r, 7); n; n--) {
		struct profile_sample sample = { .value = reader_zigzag(r) };
		before += (uint64_t)reader_zigzag(r);
		sample.time_ns = (int64_t)before;
		sample.head = MAPPED(r, &ids->heads);
		sample.stack = MAPPED(r, &ids->stacks);
		sample.resource = MAPPED(r, &ids->sets);
		sample.own = MAPPED(r, &ids->sets);
		sample.link = MAPPED(r, &ids->links);
		if (r->failed)
			return E_CORRUPT;
		enum status s = profile_add_sample(p, &sample);
		if (s != OK)
			return s;
	}
	return r->failed ? E_CORRUPT : OK;
}

static enum status decode_tables(struct reader *r, struct profile *p, struct ids *ids)
{
	TABLE(r, &ids->strings, 1, s = decode_string(r, p, &id));
	TABLE(r, &ids->functions, 4, s = decode_function(r, p, ids, &id));
	TABLE(r, &ids->mappings, 5, s = decode_mapping(r, p, ids, &id));
	TABLE(r, &ids->locations, 4, s = decode_location(r, p, ids, &id));
	TABLE(r, &ids->stacks, 1, s = decode_stack(r, p, ids, &id));
	TABLE(r, &ids->sets, 1, s = decode_labels(r, p, ids, &id));
	TABLE(r, &ids->links, 24, s = decode_link(r, p, &id));
	TABLE(r, &ids->types, 6, s = decode_type(r, p, ids, &id));
	TABLE(r, &ids->heads, 4, s = decode_head(r, p, ids, &id));
	return decode_samples(r, p, ids);
}

enum status batch_decode(struct str bytes, struct profile *p, struct str *tenant, struct err *e)
{
	CLEANUP(ids_deinit) struct ids ids = { 0 };
	struct reader r = reader_over(bytes.p, bytes.len);
	*tenant = reader_str(&r, reader_varint(&r));
	enum status s = r.failed ? E_CORRUPT : decode_tables(&r, p, &ids);
	if (s == E_CORRUPT)
		return err_set(e, s, "a batch is malformed at +%zu", reader_offset(&r));
	if (s != OK)
		return err_set(e, s, "reading a batch of the log");
	if (profile_validate(p, e) != OK)
		return err_prefix(e, E_CORRUPT, "a batch of the log");
	return OK;
}
