/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A chunk is a header and a sequence of events, among them its metadata (type 0) and checkpoints
 * (type 1) with constants. Chunks are independent: ids and keys of another chunk mean something
 * else. Integers of the header are big endian, all others packed.
 */
#include "jfr/internal.h"

#define HEADER_BYTES 68
#define FEATURE_PACKED 0x1
#define TYPE_METADATA 0
#define TYPE_CHECKPOINT 1
/* The most constants of one pool for which room is reserved at once. */
#define POOL_EXPECTED_MAX 65536u
/* Limit on the bytes of converted texts, as a multiple of the chunk's. */
#define TEXTS_FACTOR 4

static uint64_t big(struct reader *r, size_t bytes)
{
	uint64_t v = 0;
	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | reader_u8(r);
	return v;
}

bool jfr_is(struct str bytes)
{
	return bytes.len >= 4 && memcmp(bytes.p, "FLR\0", 4) == 0;
}

static enum status read_header(struct jfr_chunk *c, struct str bytes, size_t *out_bytes)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	if (bytes.len < HEADER_BYTES || !jfr_is(bytes))
		return err_set(c->e, E_INVALID, "not a chunk: it does not begin with \"FLR\"");
	reader_skip(&r, 4);
	uint64_t major = big(&r, 2), minor = big(&r, 2), size = big(&r, 8);
	big(&r, 8); /* the last checkpoint; all of them are found in order */
	uint64_t metadata = big(&r, 8), start = big(&r, 8), duration = big(&r, 8);
	big(&r, 8); /* ticks at the start */
	c->ticks_per_second = big(&r, 8);
	uint64_t features = big(&r, 4);
	if (major < 1 || major > 2)
		return err_set(c->e, E_UNSUPPORTED, "version %u.%u; 1 and 2 are read",
			(unsigned)major, (unsigned)minor);
	if (!(features & FEATURE_PACKED))
		return err_set(c->e, E_UNSUPPORTED, "integers that are not compressed");
	if (size == 0)
		return err_set(c->e, E_INVALID, "the recording was not finished");
	if (size > UINT32_MAX)
		return err_set(c->e, E_LIMIT, "a chunk of %llu bytes", (unsigned long long)size);
	if (size < HEADER_BYTES || size > bytes.len)
		return err_set(c->e, E_INVALID, "a chunk of %llu bytes, of which %zu are there",
			(unsigned long long)size, bytes.len);
	if (metadata < HEADER_BYTES || metadata >= size || c->ticks_per_second == 0 ||
		start > INT64_MAX / 2 || duration > INT64_MAX / 2)
		return err_set(c->e, E_INVALID, "the header's offsets or times mean nothing");
	c->bytes = str_sub(bytes, 0, (size_t)size);
	c->metadata_offset = (size_t)metadata;
	c->start_ns = (int64_t)start;
	c->duration_ns = (int64_t)duration;
	*out_bytes = (size_t)size;
	return OK;
}

/* ---- constants ---- */

static enum status add_constant(
	struct jfr_chunk *c, uint32_t class, uint64_t key, size_t offset, size_t bytes)
{
	struct jfr_constant k = { .class = class,
		.key = key,
		.offset = (uint32_t)offset,
		.bytes = (uint32_t)MIN(bytes, (size_t)UINT32_MAX) };
	struct jfr_constant *old = jfr_constant_find(c, class, key);
	if (old) {
		*old = k;
		return OK;
	}
	if (c->constants.len == JFR_CONSTANTS_MAX)
		return err_set(c->e, E_LIMIT, "more than %u constants", JFR_CONSTANTS_MAX);
	if (!map_insert(&c->constant_index, hash_u64(key ^ (uint64_t) class << 48),
		    (uint32_t)c->constants.len) ||
		!VEC_PUSH(&c->constants, k))
		return err_set(c->e, E_NOMEM, "constants");
	return OK;
}

/* The number of all constants if the next pool has as many as it states; each takes at least two
 * bytes. */
static uint32_t expected(const struct jfr_chunk *c, const struct reader *r, uint64_t count)
{
	uint64_t more = MIN(count, (uint64_t)reader_left(r) / 2);
	return (uint32_t)(c->constants.len + MIN(more, (uint64_t)POOL_EXPECTED_MAX));
}

static enum status read_checkpoint(struct jfr_chunk *c, struct reader *r)
{
	enum status s = OK;
	for (int i = 0; i < 3; i++) /* start, duration, offset of the checkpoint before */
		jfr_varint(r);
	reader_u8(r); /* flush */
	uint64_t pools = jfr_varint(r);
	for (uint64_t i = 0; s == OK && i < pools; i++) {
		uint32_t class = jfr_class_find(c, jfr_varint(r));
		uint64_t count = jfr_varint(r);
		if (r->failed || class == MAP_NONE)
			return jfr_torn(c, r, "constants");
		if (!map_reserve(&c->constant_index, expected(c, r, count)))
			return err_set(c->e, E_NOMEM, "constants");
		for (uint64_t k = 0; s == OK && k < count; k++) {
			uint64_t key = jfr_varint(r);
			size_t offset = (size_t)((const char *)r->at - c->bytes.p);
			s = jfr_skip(c, r, class);
			size_t end = (size_t)((const char *)r->at - c->bytes.p);
			if (s == OK)
				s = add_constant(c, class, key, offset, end - offset);
		}
	}
	return s == OK && r->failed ? jfr_torn(c, r, "constants") : s;
}

/* ---- events ---- */

/* Reads an event's size and type. */
static inline bool read_event(const struct jfr_chunk *c, size_t begin, struct jfr_event *out)
{
	const uint8_t *p = (const uint8_t *)c->bytes.p;
	struct reader r = { p, p + begin, p + c->bytes.len, begin > c->bytes.len };
	uint64_t size = jfr_varint(&r);
	bool whole = !r.failed && size <= c->bytes.len - begin && p + begin + size >= r.at;
	out->r = r;
	if (!whole || size == 0)
		return false;
	out->r.begin = r.at;
	out->r.end = p + begin + size;
	out->type = jfr_varint(&out->r);
	return !out->r.failed;
}

enum status jfr_event_read(struct jfr_chunk *c, size_t *io_offset, struct jfr_event *out)
{
	if (!read_event(c, *io_offset, out))
		return jfr_torn(c, &out->r, "an event");
	*io_offset = (size_t)((const char *)out->r.end - c->bytes.p);
	return OK;
}

/* Reads the constants. An event may refer to a constant that comes after it, so here wanted events
 * are only noted. */
static enum status read_events(struct jfr_chunk *c, bool (*wanted)(struct jfr_class *))
{
	struct jfr_event event;
	enum status s = OK;
	for (size_t at = HEADER_BYTES, begin = at; s == OK && at < c->bytes.len; begin = at) {
		s = jfr_event_read(c, &at, &event);
		if (s != OK || event.type == TYPE_METADATA)
			continue;
		if (event.type == TYPE_CHECKPOINT) {
			s = read_checkpoint(c, &event.r);
			continue;
		}
		uint32_t class = jfr_class_find(c, event.type);
		if (class == MAP_NONE || !wanted || !wanted(&c->classes.v[class]))
			continue;
		if (c->events.len == JFR_EVENTS_MAX)
			return err_set(c->e, E_LIMIT, "more than %u events", JFR_EVENTS_MAX);
		if (!VEC_PUSH(&c->events, (uint32_t)begin))
			s = err_set(c->e, E_NOMEM, "events");
	}
	return s;
}

enum status jfr_chunk_open(struct jfr_chunk *c, struct str bytes,
	bool (*wanted)(struct jfr_class *), size_t *out_bytes, struct err *e)
{
	*c = (struct jfr_chunk){ .e = e };
	enum status s = read_header(c, bytes, out_bytes);
	arena_init(&c->arena, TEXTS_FACTOR * c->bytes.len + 4096);
	c->reread_bytes = JFR_REREAD_FACTOR * c->bytes.len;
	if (s == OK)
		s = jfr_metadata_read(c);
	return s == OK ? read_events(c, wanted) : s;
}

void jfr_chunk_deinit(struct jfr_chunk *c)
{
	arena_deinit(&c->arena);
	VEC_FREE(&c->classes);
	VEC_FREE(&c->fields);
	VEC_FREE(&c->constants);
	VEC_FREE(&c->class_of);
	VEC_FREE(&c->events);
	map_deinit(&c->class_index);
	map_deinit(&c->constant_index);
}
