/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest encoding is found by trial: each encoding that can hold the column is encoded and
 * packed stream by stream, and the smallest result is kept. For a large column the plain encodings
 * are tried on some rows only. zstd runs at its fastest level, except for parts that stay for long:
 * a higher level takes several times as long, and makes times and sets a sixth smaller.
 */
#include "store/part/column.h"

#include "base/hash.h"
#include "base/radix.h"
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

#define RAW_BYTES_MAX ((size_t)4 << 30)
#define PACK_BYTES_MIN 32 /* shorter streams are stored as they are */
#define SAMPLE_ROWS 8192
#define SAMPLE_STRETCHES 4
#define DICT_SLOTS_MIN 256
#define DICT_SLOTS_MAX (4 * COLUMN_DICT_MAX)

void column_writer_init(struct column_writer *w)
{
	*w = (struct column_writer){ .level = COLUMN_LEVEL };
	buf_init(&w->raw, RAW_BYTES_MAX);
	buf_init(&w->packed, RAW_BYTES_MAX);
	buf_init(&w->best, RAW_BYTES_MAX);
}

void column_writer_deinit(struct column_writer *w)
{
	buf_deinit(&w->raw);
	buf_deinit(&w->packed);
	buf_deinit(&w->best);
	free(w->codes);
	free(w->distinct);
	free(w->slots);
}

static unsigned width_of(uint64_t max)
{
	unsigned w = 1;
	while (w < 8 && max >> (8 * w))
		w++;
	return w;
}

static uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

/* Packs one stream from raw[from..], or copies it if packing does not make it smaller. */
static enum status pack_stream(struct column_writer *w, struct column *c, struct str raw)
{
	unsigned k = c->stream_count++;
	assert(k < COLUMN_STREAMS_MAX);
	c->raw_len[k] = raw.len;
	size_t before = w->packed.len;
	if (raw.len >= PACK_BYTES_MIN) {
		enum status s = codec_zstd_compress(raw.p, raw.len, w->level, &w->packed);
		if (s != OK)
			return s;
		if (w->packed.len - before >= raw.len - raw.len / 16)
			w->packed.len = before;
	}
	if (w->packed.len == before)
		buf_str(&w->packed, raw);
	c->stored_len[k] = w->packed.len - before;
	return buf_status(&w->packed);
}

static enum status pack_planes(
	struct column_writer *w, struct column *c, const uint64_t *u, size_t n, unsigned width)
{
	c->width = (uint8_t)width;
	for (unsigned k = 0; k < width; k++) {
		buf_clear(&w->raw);
		uint8_t *p = buf_extend(&w->raw, n);
		if (!p)
			return buf_status(&w->raw);
		for (size_t i = 0; i < n; i++)
			p[i] = (uint8_t)(u[i] >> (8 * k));
		enum status s = pack_stream(w, c, buf_view(&w->raw));
		if (s != OK)
			return s;
	}
	return OK;
}

struct shape {
	int64_t min, max;
	uint64_t unit; /* of differences from min */
	size_t runs;
};

/* The values to encode, and the encodings that are allowed. */
struct work {
	const int64_t *v;
	size_t n;
	struct shape shape;
	enum column_hint hint;
	uint64_t period_ns;
	uint64_t *a; /* of each row the units above min */
	uint64_t *u; /* room for n */
};

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t t = a % b;
		a = b;
		b = t;
	}
	return a;
}

/* Division of multiples of one number, without dividing: by the inverse of its odd part modulo 2^64
 * (Hacker's Delight, 10-16 and 10-17). */
struct exact {
	unsigned shift;
	uint64_t inverse;
	uint64_t most; /* quotient */
};

static struct exact exact_of(uint64_t by)
{
	struct exact x = { (unsigned)__builtin_ctzll(by), 0, UINT64_MAX / by };
	uint64_t odd = by >> x.shift;
	x.inverse = odd; /* right in three bits; each step doubles that */
	for (int i = 0; i < 5; i++)
		x.inverse *= 2 - odd * x.inverse;
	return x;
}

static inline uint64_t quotient(uint64_t v, const struct exact *x)
{
	return (v >> x->shift) * x->inverse;
}

static inline bool is_multiple(uint64_t v, const struct exact *x)
{
	uint64_t q = v * x->inverse;
	return (q >> x->shift | (x->shift ? q << (64 - x->shift) : 0)) <= x->most;
}

static struct shape shape_of(const int64_t *v, size_t n)
{
	struct shape s = { .min = v[0], .max = v[0], .runs = 1 };
	for (size_t i = 1; i < n; i++) {
		s.min = MIN(s.min, v[i]);
		s.max = MAX(s.max, v[i]);
		s.runs += v[i] != v[i - 1];
	}
	struct exact x = { 0 };
	for (size_t i = 0; i < n && s.unit != 1; i++) {
		uint64_t d = (uint64_t)v[i] - (uint64_t)s.min;
		if (d == 0 || (s.unit && is_multiple(d, &x)))
			continue;
		s.unit = gcd(d, s.unit);
		x = exact_of(s.unit);
	}
	s.unit = MAX(s.unit, (uint64_t)1);
	return s;
}

static void count_units(struct work *k)
{
	uint64_t min = (uint64_t)k->shape.min;
	struct exact x = exact_of(k->shape.unit);
	for (size_t i = 0; i < k->n; i++)
		k->a[i] = quotient((uint64_t)k->v[i] - min, &x);
}

static uint64_t greatest(const uint64_t *v, size_t n)
{
	uint64_t all = 0;
	for (size_t i = 0; i < n; i++)
		all |= v[i]; /* the highest bit is the greatest value's */
	return all;
}

static enum status try_planes(struct column_writer *w, struct column *c, const struct work *k)
{
	return pack_planes(w, c, k->a, k->n, width_of(greatest(k->a, k->n)));
}

static enum status try_delta(struct column_writer *w, struct column *c, const struct work *k)
{
	uint64_t before = 0;
	for (size_t i = 0; i < k->n; i++) {
		k->u[i] = zigzag((int64_t)(k->a[i] - before));
		before = k->a[i];
	}
	return pack_planes(w, c, k->u, k->n, width_of(greatest(k->u, k->n)));
}

static enum status try_runs(struct column_writer *w, struct column *c, const struct work *k)
{
	struct buf *raw = &w->raw;
	for (int lengths = 0; lengths < 2; lengths++) {
		uint64_t before = 0;
		buf_clear(raw);
		for (size_t i = 0, j; i < k->n; i = j) {
			for (j = i + 1; j < k->n && k->a[j] == k->a[i];)
				j++;
			if (lengths)
				buf_varint(raw, j - i - 1);
			else
				buf_zigzag(raw, (int64_t)(k->a[i] - before));
			before = k->a[i];
		}
		enum status s = buf_status(raw);
		if (s == OK)
			s = pack_stream(w, c, buf_view(raw));
		if (s != OK)
			return s;
	}
	return OK;
}

/* ---- dictionaries ---- */

/* Values below DICT_SLOTS_MAX are indices of slots themselves, others find theirs by hash, where at
 * most a quarter is used. */
static size_t slots_for(size_t n, uint64_t most)
{
	if (most < DICT_SLOTS_MAX)
		return (size_t)most + 1;
	size_t slots = DICT_SLOTS_MIN;
	while (slots < 4 * n && slots < DICT_SLOTS_MAX)
		slots *= 2;
	return slots;
}

static enum status dict_memory(struct column_writer *w, size_t n, size_t slots)
{
	if (n > w->dict_rows) {
		free(w->codes);
		free(w->distinct);
		w->codes = malloc(n * sizeof(*w->codes));
		w->distinct = malloc(MIN(n, (size_t)COLUMN_DICT_MAX) * sizeof(*w->distinct));
		w->dict_rows = w->codes && w->distinct ? n : 0;
	}
	if (slots > w->dict_slots) {
		free(w->slots);
		w->slots = malloc(slots * sizeof(*w->slots));
		w->dict_slots = w->slots ? slots : 0;
	}
	return n <= w->dict_rows && slots <= w->dict_slots ? OK : E_NOMEM;
}

/* The same for values that are indices themselves. */
static size_t make_codes_direct(struct column_writer *w, const uint64_t *v, size_t n)
{
	uint32_t count = 0;
	for (size_t i = 0; i < n; i++) {
		uint32_t *code = &w->slots[v[i]];
		if (*code == UINT32_MAX) {
			if (count == COLUMN_DICT_MAX)
				return 0;
			w->distinct[count] = v[i];
			*code = count++;
		}
		w->codes[i] = *code;
	}
	return count;
}

/* Codes in order of appearance; 0: too many distinct values. */
static size_t make_codes(
	struct column_writer *w, const uint64_t *v, size_t n, uint64_t most, size_t slots)
{
	size_t count = 0;
	memset(w->slots, 0xFF, slots * sizeof(*w->slots));
	if (most < DICT_SLOTS_MAX)
		return make_codes_direct(w, v, n);
	for (size_t i = 0; i < n; i++) {
		uint64_t at = hash_u64(v[i]) & (slots - 1);
		while (w->slots[at] != UINT32_MAX && w->distinct[w->slots[at]] != v[i])
			at = (at + 1) & (slots - 1);
		if (w->slots[at] == UINT32_MAX) {
			if (count == COLUMN_DICT_MAX)
				return 0;
			w->slots[at] = (uint32_t)count;
			w->distinct[count++] = v[i];
		}
		w->codes[i] = w->slots[at];
	}
	return count;
}

/* Orders entries by their frequency (as a power of two), so that the high plane is nearly empty;
 * equally frequent ones ascend, so that the dictionary has small differences. */
static void order_entries(const struct column_writer *w, size_t n, struct radix_item *entries,
	size_t count, uint32_t *uses)
{
	for (size_t i = 0; i < n; i++)
		uses[w->codes[i]]++;
	for (uint32_t i = 0; i < count; i++)
		entries[i] = (struct radix_item){ w->distinct[i], i };
	radix_sort(entries, entries + count, count);
	for (size_t i = 0; i < count; i++)
		entries[i].key = (uint64_t)__builtin_clz(uses[entries[i].index]);
	radix_sort(entries, entries + count, count);
}

static enum status try_dict(
	struct column_writer *w, struct column *c, const struct work *k, bool *applies)
{
	size_t n = k->n;
	uint64_t most = greatest(k->a, n);
	size_t slots = slots_for(n, most);
	enum status s = dict_memory(w, n, slots);
	size_t count = s == OK ? make_codes(w, k->a, n, most, slots) : 0;
	*applies = count != 0 && count < n;
	if (s != OK || !*applies)
		return s;
	CLEANUP(free_cleanup) struct radix_item *entries = malloc(2 * count * sizeof(*entries));
	CLEANUP(free_cleanup) uint32_t *uses = calloc(count, sizeof(*uses));
	if (!entries || !uses)
		return E_NOMEM;
	order_entries(w, n, entries, count, uses);
	uint32_t *code_of = uses; /* no longer counts */
	buf_clear(&w->raw);
	uint64_t before = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t id = entries[i].index;
		code_of[id] = (uint32_t)i;
		buf_zigzag(&w->raw, (int64_t)(w->distinct[id] - before));
		before = w->distinct[id];
	}
	s = buf_status(&w->raw);
	if (s == OK)
		s = pack_stream(w, c, buf_view(&w->raw));
	for (size_t i = 0; i < n; i++)
		k->u[i] = code_of[w->codes[i]];
	return s == OK ? pack_planes(w, c, k->u, n, count > 256 ? 2 : 1) : s;
}

/* ---- times ---- */

static enum status try_ticks(
	struct column_writer *w, struct column *c, const struct work *k, bool *applies)
{
	const struct shape *sh = &k->shape;
	size_t n = k->n;
	uint64_t *u = k->u;
	CLEANUP(free_cleanup) struct radix_item *scratch = malloc(2 * n * sizeof(*scratch));
	CLEANUP(free_cleanup) uint64_t *rests = malloc(n * sizeof(*rests));
	if (!scratch || !rests)
		return E_NOMEM;
	buf_clear(&w->raw);
	*applies = column_ticks(
		k->v, n, sh->min, sh->max, sh->unit, k->period_ns, scratch, u, rests, &w->raw);
	enum status s = buf_status(&w->raw);
	unsigned late = width_of(greatest(rests, n)), slots = width_of(greatest(u, n));
	*applies &= 1 + late + slots <= COLUMN_STREAMS_MAX;
	if (s != OK || !*applies)
		return s;
	s = pack_stream(w, c, buf_view(&w->raw));
	if (s == OK)
		s = pack_planes(w, c, rests, n, late);
	if (s == OK)
		s = pack_planes(w, c, u, n, slots);
	return s;
}

/* ---- the choice ---- */

struct choice {
	struct column_writer *w;
	struct column blank;
	struct column best;
	bool any;
};

static enum status try_encoding(
	struct choice *ch, enum column_encoding encoding, const struct work *k)
{
	struct column_writer *w = ch->w;
	struct column c = ch->blank;
	c.encoding = (uint8_t)encoding;
	buf_clear(&w->packed);
	bool applies = true;
	enum status s = OK;
	if (encoding == COLUMN_PLANES)
		s = try_planes(w, &c, k);
	else if (encoding == COLUMN_DELTA)
		s = try_delta(w, &c, k);
	else if (encoding == COLUMN_RUNS)
		s = try_runs(w, &c, k);
	else if (encoding == COLUMN_TICKS)
		s = try_ticks(w, &c, k, &applies);
	else
		s = try_dict(w, &c, k, &applies);
	if (s != OK || !applies ||
		(ch->any && column_stored_len(&c) >= column_stored_len(&ch->best)))
		return s;
	struct buf t = w->best;
	w->best = w->packed;
	w->packed = t;
	ch->best = c;
	ch->any = true;
	return OK;
}

/* The best of the encodings that go row by row. */
static enum status try_plain(struct choice *ch, const struct work *k)
{
	enum status s = OK;
	if (k->shape.runs > k->n / 32) {
		s = try_encoding(ch, COLUMN_PLANES, k);
		if (s == OK)
			s = try_encoding(ch, COLUMN_DELTA, k);
	}
	if (s == OK && k->shape.runs <= k->n / 2 + 1)
		s = try_encoding(ch, COLUMN_RUNS, k);
	return s;
}

/* If there are many rows, tries the encodings on some stretches first, and then uses the best one
 * for all rows. *estimate: the bytes of all rows. */
static enum status sample_plain(
	struct choice *ch, const struct work *k, enum column_encoding *encoding, uint64_t *estimate)
{
	uint64_t some[SAMPLE_ROWS];
	struct work part = *k;
	part.n = SAMPLE_ROWS;
	part.a = some;
	for (size_t i = 0; i < SAMPLE_STRETCHES; i++) {
		size_t rows = SAMPLE_ROWS / SAMPLE_STRETCHES;
		size_t from = (k->n - rows) / (SAMPLE_STRETCHES - 1) * i;
		memcpy(some + i * rows, k->a + from, rows * sizeof(*some));
	}
	part.shape.runs = (size_t)((double)k->shape.runs * SAMPLE_ROWS / (double)k->n);
	enum status s = try_plain(ch, &part);
	*encoding = (enum column_encoding)ch->best.encoding;
	*estimate = column_stored_len(&ch->best) * k->n / SAMPLE_ROWS;
	ch->any = false;
	return s;
}

static enum status choose(struct choice *ch, const struct work *k)
{
	bool distinct = k->shape.runs > k->n / 8;
	enum column_encoding plain;
	uint64_t estimate = 0;
	enum status s;
	if (k->n < 4 * SAMPLE_ROWS)
		s = try_plain(ch, k);
	else
		s = sample_plain(ch, k, &plain, &estimate);
	if (s == OK && (k->hint & COLUMN_TRY_DICT) && distinct)
		s = try_encoding(ch, COLUMN_DICT, k);
	if (s == OK && k->period_ns && distinct)
		s = try_encoding(ch, COLUMN_TICKS, k);
	if (s == OK && k->n >= 4 * SAMPLE_ROWS &&
		(!ch->any || column_stored_len(&ch->best) > estimate - estimate / 16))
		s = try_encoding(ch, plain, k);
	return s;
}

static void finish(struct buf *out, struct str bytes, struct column *c)
{
	c->offset = out->len;
	c->crc = codec_crc32c(0, bytes.p, bytes.len);
	buf_str(out, bytes);
}

static enum status encode(
	struct column_writer *w, uint8_t id, struct work *k, struct buf *out, struct column *c)
{
	struct choice ch = { .w = w };
	k->shape = k->n ? shape_of(k->v, k->n) : (struct shape){ 0 };
	const struct shape *sh = &k->shape;
	ch.blank = (struct column){ .id = id, .base = sh->min, .unit = MAX(sh->unit, (uint64_t)1) };
	if (sh->min == sh->max) {
		ch.blank.encoding = COLUMN_CONST;
		finish(out, str_make(NULL, 0), &ch.blank);
		*c = ch.blank;
		return buf_status(out);
	}
	CLEANUP(free_cleanup) uint64_t *numbers = malloc(2 * k->n * sizeof(*numbers));
	if (!numbers)
		return E_NOMEM;
	k->a = numbers;
	k->u = numbers + k->n;
	count_units(k);
	enum status s = choose(&ch, k);
	if (s != OK)
		return s;
	finish(out, buf_view(&w->best), &ch.best);
	*c = ch.best;
	return buf_status(out);
}

enum status column_encode(struct column_writer *w, uint8_t id, const int64_t *v, size_t n,
	enum column_hint hint, struct buf *out, struct column *c)
{
	struct work k = { .v = v, .n = n, .hint = hint };
	return encode(w, id, &k, out, c);
}

enum status column_encode_times(struct column_writer *w, uint8_t id, const int64_t *v, size_t n,
	uint64_t period_ns, struct buf *out, struct column *c)
{
	struct work k = { .v = v, .n = n, .hint = COLUMN_PLAIN, .period_ns = period_ns };
	return encode(w, id, &k, out, c);
}

enum status column_encode_bytes(
	struct column_writer *w, uint8_t id, struct str bytes, struct buf *out, struct column *c)
{
	struct column col = { .id = id, .encoding = COLUMN_BYTES, .unit = 1 };
	buf_clear(&w->packed);
	enum status s = pack_stream(w, &col, bytes);
	if (s != OK)
		return s;
	finish(out, buf_view(&w->packed), &col);
	*c = col;
	return buf_status(out);
}

void column_write_header(struct buf *out, const struct column *c)
{
	buf_u8(out, c->id);
	buf_u8(out, c->encoding);
	buf_u8(out, c->width);
	buf_u8(out, c->stream_count);
	buf_zigzag(out, c->base);
	buf_varint(out, c->unit);
	buf_varint(out, c->offset);
	for (unsigned i = 0; i < c->stream_count; i++) {
		buf_varint(out, c->raw_len[i]);
		buf_varint(out, c->stored_len[i]);
	}
	buf_u32(out, c->crc);
}
