/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages: 0xFFFFFFFF, length of the metadata, metadata (a flatbuffer), body. Streams from before
 * Arrow 0.15 have no 0xFFFFFFFF. A length of 0, or the end of the bytes, ends the stream.
 */
#include "arrow/internal.h"

#include <inttypes.h>

struct message {
	struct reader metadata;
	struct fb_table header;
	uint8_t kind; /* HEADER_… ; 0: the end */
	struct str body;
};

static enum status read_message(struct arrow_stream *s, struct message *out, struct err *e)
{
	*out = (struct message){ 0 };
	size_t at = reader_offset(&s->in);
	if (reader_done(&s->in))
		return OK;
	uint32_t len = reader_u32(&s->in);
	if (len == ARROW_CONTINUATION)
		len = reader_u32(&s->in);
	if (!s->in.failed && len == 0)
		return OK;
	if (s->in.failed || len > reader_left(&s->in))
		return err_set(e, E_INVALID, "message at byte %zu: cut short", at);
	if (len > ARROW_METADATA_MAX)
		return err_set(e, E_LIMIT,
			"message at byte %zu: metadata of %u bytes; %zu are taken", at, len,
			ARROW_METADATA_MAX);
	out->metadata = reader_sub(&s->in, len);
	struct fb_table message = fb_root(&out->metadata);
	int16_t version = fb_i16(&message, MESSAGE_VERSION, 0);
	out->kind = fb_u8(&message, MESSAGE_HEADER_TYPE, 0);
	out->header = fb_sub(&message, MESSAGE_HEADER);
	int64_t body = fb_i64(&message, MESSAGE_BODY_LENGTH, 0);
	if (out->metadata.failed || !out->header.r || body < 0)
		return err_set(e, E_INVALID, "message at byte %zu: its metadata is malformed", at);
	if (version != METADATA_V5 && version != METADATA_V4)
		return err_set(e, E_UNSUPPORTED, "message at byte %zu: metadata version %d", at,
			version + 1);
	s->is_v4 = version == METADATA_V4;
	out->body = reader_str(&s->in, (size_t)body);
	if (s->in.failed)
		return err_set(e, E_INVALID,
			"message at byte %zu: a body of %" PRId64 " bytes is cut short", at, body);
	return OK;
}

enum status arrow_stream_open(
	struct arrow_stream *s, struct str bytes, size_t limit_bytes, struct err *e)
{
	*s = (struct arrow_stream){ .in = reader_over(bytes.p, bytes.len) };
	arena_init(&s->arena, limit_bytes);
	struct message m;
	enum status st = read_message(s, &m, e);
	if (st == OK && m.kind != HEADER_SCHEMA)
		st = err_set(e, E_INVALID, "an Arrow stream begins with a schema");
	if (st == OK)
		st = arrow_schema_read(s, &m.header, e);
	if (st != OK)
		arrow_stream_close(s);
	return st;
}

void arrow_stream_close(struct arrow_stream *s)
{
	arena_deinit(&s->arena);
	*s = (struct arrow_stream){ 0 };
}

struct str arrow_stream_metadata(const struct arrow_stream *s, struct str key)
{
	for (uint32_t i = 0; i < s->metadata_count; i++)
		if (str_eq(s->metadata[2 * i], key))
			return s->metadata[2 * i + 1];
	return STR("");
}

/* ---- dictionaries ---- */

static enum status no_memory(struct arrow_stream *s, struct err *e)
{
	enum status st = arena_status(&s->arena);
	return err_set(e, st, "%s", status_text(st));
}

/* The dictionary that the next chunk goes to. */
static struct arrow_dictionary *dictionary_for(
	struct arrow_stream *s, struct arrow_dictionary_slot *slot, bool delta)
{
	if (delta && slot->now)
		return slot->now;
	struct arrow_dictionary *d = ARENA_NEW(&s->arena, struct arrow_dictionary);
	if (d)
		d->serial = s->serial_count;
	return d;
}

static bool reserve_chunk(struct arrow_stream *s, struct arrow_dictionary *d)
{
	if (d->chunk_count < d->chunk_cap)
		return true;
	uint32_t cap = d->chunk_cap ? 2 * d->chunk_cap : 1;
	struct arrow_chunk *chunks = ARENA_ARRAY(&s->arena, struct arrow_chunk, cap);
	if (!chunks)
		return false;
	if (d->chunk_count)
		memcpy(chunks, d->chunks, d->chunk_count * sizeof(*chunks));
	d->chunks = chunks;
	d->chunk_cap = cap;
	return true;
}

static enum status read_dictionary(struct arrow_stream *s, struct message *m, struct err *e)
{
	int64_t id = fb_i64(&m->header, DICTIONARY_ID, 0);
	bool delta = fb_u8(&m->header, DICTIONARY_DELTA, 0) != 0;
	struct fb_table record = fb_sub(&m->header, DICTIONARY_DATA);
	struct arrow_dictionary_slot *slot = s->dictionaries;
	while (slot < s->dictionaries + s->dictionary_count && slot->id != id)
		slot++;
	if (slot == s->dictionaries + s->dictionary_count)
		return err_set(e, E_INVALID, "no field has dictionary %" PRId64, id);
	struct arrow_array values;
	enum status st = arrow_array_read(s, &record, m->body, slot->values, true, &values, e);
	if (st != OK)
		return err_prefix(e, st, "dictionary %" PRId64, id);
	struct arrow_dictionary *d = dictionary_for(s, slot, delta);
	if (!d || !reserve_chunk(s, d))
		return no_memory(s, e);
	if (values.length > ARROW_LENGTH_MAX - d->length)
		return err_set(e, E_LIMIT, "dictionary %" PRId64 ": more than %" PRIu64 " values",
			id, ARROW_LENGTH_MAX);
	d->chunks[d->chunk_count++] = (struct arrow_chunk){ d->length, values };
	d->length += values.length;
	if (d != slot->now)
		s->serial_count++;
	slot->now = d;
	return OK;
}

/* ---- batches ---- */

enum status arrow_stream_next(
	struct arrow_stream *s, struct arrow_array *out, bool *out_more, struct err *e)
{
	for (;;) {
		struct message m;
		enum status st = read_message(s, &m, e);
		if (st != OK)
			return st;
		if (m.kind == 0) {
			*out_more = false;
			return OK;
		}
		if (s->batch_count++ == ARROW_BATCHES_MAX)
			return err_set(e, E_LIMIT, "more than %d batches", ARROW_BATCHES_MAX);
		if (m.kind == HEADER_DICTIONARY) {
			st = read_dictionary(s, &m, e);
			if (st != OK)
				return st;
			continue;
		}
		if (m.kind != HEADER_RECORD)
			return err_set(e, E_INVALID, "message of kind %u in a stream", m.kind);
		struct arrow_array batch;
		st = arrow_array_read(s, &m.header, m.body, &s->root, false, &batch, e);
		if (st != OK)
			return st;
		s->row_count += batch.length;
		if (s->row_count > ARROW_ROWS_MAX)
			return err_set(e, E_LIMIT, "more than %" PRIu64 " rows", ARROW_ROWS_MAX);
		*out = batch;
		*out_more = true;
		return OK;
	}
}
