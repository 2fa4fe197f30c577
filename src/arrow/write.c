/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the buffers of each column are appended to the body, so that a caller makes one column at a
 * time. Types, lengths and offsets are collected, and the messages are written at the end: schema,
 * one dictionary batch for each dictionary, the record batch.
 *
 * Numbers of Schema.fbs, Message.fbs (Arrow format 1.4).
 */
#include "arrow/arrow.h"
#include "arrow/flat.h"
#include "codec/codec.h"

#define VERSION_V5 4
#define HEADER_SCHEMA 1
#define HEADER_DICTIONARY 2
#define HEADER_BATCH 3
#define TYPE_INT 2
#define TYPE_BINARY 4
#define TYPE_UTF8 5
#define TYPE_BOOL 6
#define TYPE_LIST 12
#define CODEC_LZ4_FRAME 0

/* Buffers of bodies are aligned to this, and padded with zero bytes. */
#define BODY_ALIGN 8

struct arrow_write_field {
	size_t name, name_len; /* in names */
	enum arrow_write_kind kind;
	bool nullable;
	uint8_t bits;
	bool is_signed;
	uint32_t dictionary;
};

struct arrow_write_node {
	uint64_t length;
	uint64_t nulls;
};

struct arrow_write_span {
	uint64_t offset;
	uint64_t length;
};

void arrow_write_begin(
	struct arrow_writer *w, size_t rows, enum arrow_write_codec codec, size_t max_bytes)
{
	*w = (struct arrow_writer){ .rows = rows, .codec = codec, .max_bytes = max_bytes };
	buf_init(&w->names, 1 << 20);
	buf_init(&w->metadata, 1 << 16);
	buf_init(&w->dictionaries, max_bytes);
	buf_init(&w->body, max_bytes);
	buf_init(&w->scratch, max_bytes);
	if (rows > ARROW_WRITE_ROWS_MAX)
		w->status = E_LIMIT;
}

void arrow_write_begin_part(struct arrow_writer *w, size_t rows, uint32_t first_dictionary,
	enum arrow_write_codec codec, size_t max_bytes)
{
	arrow_write_begin(w, rows, codec, max_bytes);
	w->first_dictionary = w->dictionary_count = first_dictionary;
}

void arrow_write_expect(struct arrow_writer *w, size_t bytes)
{
	if (!buf_reserve(&w->body, MIN(bytes, w->body.max)))
		buf_clear(&w->body);
}

static void writer_free(struct arrow_writer *w)
{
	VEC_FREE(&w->fields);
	VEC_FREE(&w->nodes);
	VEC_FREE(&w->spans);
	buf_deinit(&w->names);
	buf_deinit(&w->metadata);
	buf_deinit(&w->dictionaries);
	buf_deinit(&w->body);
	buf_deinit(&w->scratch);
}

void arrow_write_metadata(struct arrow_writer *w, struct str key, struct str value)
{
	buf_str(&w->metadata, key);
	buf_u8(&w->metadata, 0);
	buf_str(&w->metadata, value);
	buf_u8(&w->metadata, 0);
}

static void fail(struct arrow_writer *w, enum status s)
{
	if (w->status == OK)
		w->status = s;
}

/* ---- bodies ---- */

/* Writes one buffer of a body, compressed if the stream is; bytes that would grow are written as
 * they are, after -1. */
static void put_bytes(struct arrow_writer *w, struct buf *body, const void *bytes, size_t len,
	struct arrow_write_span *out)
{
	*out = (struct arrow_write_span){ body->len, 0 };
	if (len == 0)
		return;
	if (w->codec == ARROW_WRITE_LZ4) {
		buf_u64(body, len);
		size_t from = body->len;
		enum status s = codec_lz4_compress(bytes, len, body);
		if (s == OK && body->len - from >= len) {
			body->len = from;
			flat_u64(body, out->offset, UINT64_MAX);
			buf_put(body, bytes, len);
		} else if (s != OK) {
			fail(w, s);
		}
	} else {
		buf_put(body, bytes, len);
	}
	out->length = body->len - out->offset;
	buf_align(body, BODY_ALIGN);
}

static void put_buffer(struct arrow_writer *w, const void *bytes, size_t len)
{
	struct arrow_write_span span;
	put_bytes(w, &w->body, bytes, len, &span);
	if (!VEC_PUSH(&w->spans, span))
		fail(w, E_NOMEM);
}

static void put_scratch(struct arrow_writer *w)
{
	fail(w, buf_status(&w->scratch));
	put_buffer(w, w->scratch.data, w->scratch.failed ? 0 : w->scratch.len);
}

static uint8_t *begin_scratch(struct arrow_writer *w, size_t len)
{
	buf_clear(&w->scratch);
	return len ? buf_extend(&w->scratch, len) : NULL;
}

/* Packs eight flags into a byte: each byte that is not 0 becomes 1, and the product collects them
 * in its highest byte. */
static uint8_t bits_of(const uint8_t *flags)
{
	const uint64_t low = 0x7F7F7F7F7F7F7F7F;
	uint64_t x;
	memcpy(&x, flags, sizeof(x));
	x = ((((x & low) + low) | x) & ~low) >> 7;
	return (uint8_t)(x * 0x0102040810204080 >> 56);
}

static void put_bits(struct arrow_writer *w, const uint8_t *flags, size_t count)
{
	uint8_t *bits = begin_scratch(w, (count + 7) / 8);
	if (bits)
		memset(bits, 0, (count + 7) / 8);
	size_t whole = count / 8 * 8;
	for (size_t i = 0; bits && i < whole; i += 8)
		bits[i / 8] = bits_of(flags + i);
	for (size_t i = whole; bits && i < count; i++)
		bits[i / 8] |= (uint8_t)((flags[i] != 0) << i % 8);
	put_scratch(w);
}

/* Little endian; a loop for each width, so that the compiler knows it. */
#define NARROW(type, from)                                     \
	for (size_t i = 0; i < count; i++) {                   \
		type x_ = (type)(from);                        \
		memcpy(out + i * sizeof(x_), &x_, sizeof(x_)); \
	}
#define NARROW_TO(bits, from)                  \
	do {                                   \
		if ((bits) == 8)               \
			NARROW(uint8_t, from)  \
		else if ((bits) == 16)         \
			NARROW(uint16_t, from) \
		else if ((bits) == 32)         \
			NARROW(uint32_t, from) \
		else                           \
			NARROW(uint64_t, from) \
	} while (0)

static void put_ints(struct arrow_writer *w, const int64_t *v, size_t count, uint8_t bits)
{
	if (bits == 64) {
		put_buffer(w, v, count * 8);
		return;
	}
	uint8_t *out = begin_scratch(w, count * bits / 8);
	if (out)
		NARROW_TO(bits, v[i]);
	put_scratch(w);
}

/* Nulls become 0. */
static void put_words(
	struct arrow_writer *w, const uint32_t *v, const uint8_t *valid, size_t count, uint8_t bits)
{
	if (bits == 32 && !valid) {
		put_buffer(w, v, count * 4);
		return;
	}
	uint8_t *out = begin_scratch(w, count * bits / 8);
	if (out && valid)
		NARROW_TO(bits, v[i] & -(uint32_t)(valid[i] != 0));
	else if (out)
		NARROW_TO(bits, v[i]);
	put_scratch(w);
}

/* Writes offsets of 32 bits; false: the texts are too long for these. */
static bool text_offsets(struct buf *b, const struct str *texts, const uint8_t *valid, size_t count)
{
	uint64_t at = 0;
	buf_u32(b, 0);
	for (size_t i = 0; i < count; i++) {
		at += !valid || valid[i] ? texts[i].len : 0;
		if (at > INT32_MAX)
			return false;
		buf_u32(b, (uint32_t)at);
	}
	return true;
}

static void text_bytes(struct buf *b, const struct str *texts, const uint8_t *valid, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!valid || valid[i])
			buf_str(b, texts[i]);
}

/* ---- columns ---- */

/* Parca's rule: strictly below the largest number of the type. */
static uint8_t unsigned_bits(uint64_t largest)
{
	return largest < UINT8_MAX ? 8 : largest < UINT16_MAX ? 16 : largest < UINT32_MAX ? 32 : 64;
}

static uint8_t signed_bits(int64_t least, int64_t largest)
{
	return largest < INT8_MAX && least > INT8_MIN     ? 8
	       : largest < INT16_MAX && least > INT16_MIN ? 16
	       : largest < INT32_MAX && least > INT32_MIN ? 32
							  : 64;
}

static uint8_t least_bits_words(const uint32_t *v, const uint8_t *valid, size_t count)
{
	uint32_t largest = 0;
	for (size_t i = 0; valid && i < count; i++)
		largest = MAX(largest, v[i] & -(uint32_t)(valid[i] != 0));
	for (size_t i = 0; !valid && i < count; i++)
		largest = MAX(largest, v[i]);
	return unsigned_bits(largest);
}

static uint8_t least_bits(const struct arrow_write_column *c, size_t count)
{
	const uint8_t *valid = c->kind == ARROW_WRITE_INT ? c->valid : NULL;
	uint64_t largest_u = 0;
	int64_t least = 0, largest = 0;
	if (c->words) {
		assert(!c->is_signed);
		return least_bits_words(c->words, valid, count);
	}
	for (size_t i = 0; i < count; i++) {
		if (valid && !valid[i])
			continue;
		largest_u = MAX(largest_u, (uint64_t)c->ints[i]);
		least = MIN(least, c->ints[i]);
		largest = MAX(largest, c->ints[i]);
	}
	return c->is_signed ? signed_bits(least, largest) : unsigned_bits(largest_u);
}

static bool is_dictionary(enum arrow_write_kind kind)
{
	return kind == ARROW_WRITE_DICT_BINARY || kind == ARROW_WRITE_DICT_UTF8;
}

static void put_message(
	struct arrow_writer *w, struct buf *out, struct buf *flat, struct buf *body);
static void write_dictionary(
	struct arrow_writer *w, uint32_t id, const struct arrow_write_column *c);

static void put_texts(struct arrow_writer *w, const struct arrow_write_column *c)
{
	buf_clear(&w->scratch);
	if (!text_offsets(&w->scratch, c->texts, c->valid, w->rows))
		fail(w, E_LIMIT);
	put_scratch(w);
	buf_clear(&w->scratch);
	text_bytes(&w->scratch, c->texts, c->valid, w->rows);
	put_scratch(w);
}

static void put_numbers(
	struct arrow_writer *w, const struct arrow_write_column *c, uint8_t bits, size_t count)
{
	if (c->words)
		put_words(w, c->words, NULL, count, bits);
	else
		put_ints(w, c->ints, count, bits);
}

static void put_list(
	struct arrow_writer *w, const struct arrow_write_column *c, uint8_t bits, size_t elements)
{
	put_buffer(w, c->offsets, (w->rows + 1) * sizeof(*c->offsets));
	struct arrow_write_node child = { elements, 0 };
	if (!VEC_PUSH(&w->nodes, child))
		fail(w, E_NOMEM);
	put_buffer(w, NULL, 0);
	put_numbers(w, c, bits, elements);
}

static void put_values(struct arrow_writer *w, const struct arrow_write_column *c,
	const struct arrow_write_field *f, size_t elements)
{
	switch (c->kind) {
	case ARROW_WRITE_BOOL:
		put_bits(w, c->bools, w->rows);
		return;
	case ARROW_WRITE_INT:
		put_numbers(w, c, f->bits, w->rows);
		return;
	case ARROW_WRITE_BINARY:
	case ARROW_WRITE_UTF8:
		put_texts(w, c);
		return;
	case ARROW_WRITE_DICT_BINARY:
	case ARROW_WRITE_DICT_UTF8:
		put_words(w, c->indices, c->valid, w->rows, f->bits);
		write_dictionary(w, f->dictionary, c);
		return;
	case ARROW_WRITE_LIST:
		put_list(w, c, f->bits, elements);
		return;
	}
	UNREACHABLE();
}

void arrow_write_column(struct arrow_writer *w, const struct arrow_write_column *c)
{
	size_t elements = c->kind == ARROW_WRITE_LIST ? c->offsets[w->rows] : w->rows;
	struct arrow_write_field f = { .name = w->names.len,
		.name_len = c->name.len,
		.kind = c->kind,
		.nullable = c->nullable,
		.bits = c->bits,
		.is_signed = c->is_signed };
	struct arrow_write_node node = { w->rows, 0 };
	if (w->status != OK)
		return;
	if (w->fields.len == ARROW_WRITE_COLUMNS_MAX) {
		fail(w, E_LIMIT);
		return;
	}
	buf_str(&w->names, c->name);
	if (is_dictionary(c->kind)) {
		f.dictionary = w->dictionary_count++;
		if (f.bits == 0)
			f.bits = unsigned_bits(c->text_count);
	} else if (f.bits == 0 && (c->kind == ARROW_WRITE_INT || c->kind == ARROW_WRITE_LIST)) {
		f.bits = least_bits(c, elements);
	}
	for (size_t i = 0; c->valid && i < w->rows; i++)
		node.nulls += c->valid[i] == 0;
	if (!VEC_PUSH(&w->fields, f) || !VEC_PUSH(&w->nodes, node)) {
		fail(w, E_NOMEM);
		return;
	}
	if (node.nulls)
		put_bits(w, c->valid, w->rows);
	else
		put_buffer(w, NULL, 0);
	put_values(w, c, &f, elements);
}

static bool append_fields(struct arrow_writer *w, const struct arrow_writer *part)
{
	for (size_t i = 0; i < part->fields.len; i++) {
		struct arrow_write_field f = part->fields.v[i];
		f.name += w->names.len;
		if (!VEC_PUSH(&w->fields, f))
			return false;
	}
	for (size_t i = 0; i < part->nodes.len; i++)
		if (!VEC_PUSH(&w->nodes, part->nodes.v[i]))
			return false;
	for (size_t i = 0; i < part->spans.len; i++) {
		struct arrow_write_span span = part->spans.v[i];
		span.offset += w->body.len;
		if (!VEC_PUSH(&w->spans, span))
			return false;
	}
	return true;
}

void arrow_write_append(struct arrow_writer *w, struct arrow_writer *part)
{
	assert(part->rows == w->rows && part->codec == w->codec);
	fail(w, part->status);
	fail(w, buf_status(&part->names));
	fail(w, buf_status(&part->dictionaries));
	fail(w, buf_status(&part->body));
	if (w->fields.len + part->fields.len > ARROW_WRITE_COLUMNS_MAX)
		fail(w, E_LIMIT);
	if (w->status == OK && !append_fields(w, part))
		fail(w, E_NOMEM);
	if (w->status == OK) {
		/* After a failure the columns of `w` are fewer. */
		assert(part->fields.len == 0 || part->first_dictionary == w->dictionary_count);
		w->dictionary_count = MAX(w->dictionary_count, part->dictionary_count);
		buf_str(&w->names, buf_view(&part->names));
		buf_str(&w->dictionaries, buf_view(&part->dictionaries));
		buf_str(&w->body, buf_view(&part->body));
	}
	writer_free(part);
}

/* ---- messages ---- */

/* The metadata is padded so that the body begins at a multiple of eight. */
static void put_message(struct arrow_writer *w, struct buf *out, struct buf *flat, struct buf *body)
{
	buf_align(flat, 8);
	fail(w, buf_status(flat));
	buf_u32(out, UINT32_MAX); /* continuation */
	buf_u32(out, (uint32_t)flat->len);
	buf_str(out, buf_view(flat));
	if (body)
		buf_join(out, body);
	fail(w, buf_status(out));
}

/* Message { version, header_type, header, bodyLength }; place of the header's reference. */
static size_t begin_message(struct buf *flat, size_t base, uint8_t header, uint64_t body_len)
{
	const struct flat_field fields[] = { { 0, 2, VERSION_V5 }, { 1, 1, header }, { 2, 4, 0 },
		{ 3, 8, body_len } };
	size_t at[ARRAY_COUNT(fields)];
	flat_link(flat, base, flat_table(flat, base, fields, ARRAY_COUNT(fields), at));
	return at[2];
}

/* RecordBatch { length, nodes, buffers, compression } */
static size_t put_batch(struct arrow_writer *w, struct buf *flat, size_t base, size_t rows,
	const struct arrow_write_node *nodes, size_t node_count,
	const struct arrow_write_span *spans, size_t span_count)
{
	const struct flat_field fields[] = { { 0, 8, rows }, { 1, 4, 0 }, { 2, 4, 0 },
		{ 3, 4, 0 } };
	size_t at[ARRAY_COUNT(fields)], first;
	bool packed = w->codec == ARROW_WRITE_LZ4;
	size_t batch = flat_table(flat, base, fields, packed ? 4 : 3, at);
	flat_link(flat, at[1], flat_vector(flat, base, node_count, 16, 8, &first));
	for (size_t i = 0; i < node_count; i++) {
		flat_u64(flat, first + 16 * i, nodes[i].length);
		flat_u64(flat, first + 16 * i + 8, nodes[i].nulls);
	}
	flat_link(flat, at[2], flat_vector(flat, base, span_count, 16, 8, &first));
	for (size_t i = 0; i < span_count; i++) {
		flat_u64(flat, first + 16 * i, spans[i].offset);
		flat_u64(flat, first + 16 * i + 8, spans[i].length);
	}
	if (packed) {
		const struct flat_field codec[] = { { 0, 1, CODEC_LZ4_FRAME }, { 1, 1, 0 } };
		flat_link(flat, at[3], flat_table(flat, base, codec, 2, NULL));
	}
	return batch;
}

/* DictionaryBatch { id, data } of one column without nulls. */
static void write_dictionary(
	struct arrow_writer *w, uint32_t id, const struct arrow_write_column *c)
{
	CLEANUP(buf_deinit) struct buf flat, body;
	struct arrow_write_span spans[3] = { { 0 } };
	const struct arrow_write_node node = { c->text_count, 0 };
	buf_init(&flat, 1 << 20);
	buf_init(&body, w->max_bytes);
	buf_clear(&w->scratch);
	if (!text_offsets(&w->scratch, c->texts, NULL, c->text_count))
		fail(w, E_LIMIT);
	put_bytes(w, &body, w->scratch.data, w->scratch.failed ? 0 : w->scratch.len, &spans[1]);
	fail(w, buf_status(&w->scratch));
	buf_clear(&w->scratch);
	text_bytes(&w->scratch, c->texts, NULL, c->text_count);
	put_bytes(w, &body, w->scratch.data, w->scratch.failed ? 0 : w->scratch.len, &spans[2]);
	fail(w, buf_status(&w->scratch));
	fail(w, buf_status(&body));
	size_t base = flat_begin(&flat);
	size_t header = begin_message(&flat, base, HEADER_DICTIONARY, body.len);
	const struct flat_field fields[] = { { 0, 8, id }, { 1, 4, 0 } };
	size_t at[2];
	flat_link(&flat, header, flat_table(&flat, base, fields, 2, at));
	flat_link(&flat, at[1],
		put_batch(w, &flat, base, c->text_count, &node, 1, spans, ARRAY_COUNT(spans)));
	put_message(w, &w->dictionaries, &flat, &body);
}

/* ---- the schema ---- */

static size_t put_int_type(struct buf *flat, size_t base, uint8_t bits, bool is_signed)
{
	const struct flat_field fields[] = { { 0, 4, bits }, { 1, 1, is_signed } };
	return flat_table(flat, base, fields, 2, NULL);
}

static uint8_t type_number(enum arrow_write_kind kind)
{
	switch (kind) {
	case ARROW_WRITE_BOOL:
		return TYPE_BOOL;
	case ARROW_WRITE_INT:
		return TYPE_INT;
	case ARROW_WRITE_BINARY:
	case ARROW_WRITE_DICT_BINARY:
		return TYPE_BINARY;
	case ARROW_WRITE_UTF8:
	case ARROW_WRITE_DICT_UTF8:
		return TYPE_UTF8;
	case ARROW_WRITE_LIST:
		return TYPE_LIST;
	}
	UNREACHABLE();
}

static size_t put_type(struct buf *flat, size_t base, const struct arrow_write_field *f)
{
	return f->kind == ARROW_WRITE_INT ? put_int_type(flat, base, f->bits, f->is_signed)
					  : flat_table(flat, base, NULL, 0, NULL);
}

/* Field { name, nullable, type_type, type, dictionary, children } */
static size_t put_field(
	struct buf *flat, size_t base, struct str name, const struct arrow_write_field *f)
{
	const struct flat_field fields[] = { { 0, 4, 0 }, { 1, 1, f->nullable },
		{ 2, 1, type_number(f->kind) }, { 3, 4, 0 }, { 5, 4, 0 }, { 4, 4, 0 } };
	size_t at[ARRAY_COUNT(fields)], first;
	bool is_list = f->kind == ARROW_WRITE_LIST;
	size_t field = flat_table(flat, base, fields, is_dictionary(f->kind) ? 6 : 5, at);
	flat_link(flat, at[0], flat_string(flat, base, name));
	flat_link(flat, at[3], put_type(flat, base, f));
	flat_link(flat, at[4], flat_vector(flat, base, is_list, 4, 4, &first));
	if (is_list) {
		struct arrow_write_field item = { .kind = ARROW_WRITE_INT,
			.bits = f->bits,
			.is_signed = f->is_signed,
			.nullable = true };
		flat_link(flat, first, put_field(flat, base, STR("item"), &item));
	}
	if (is_dictionary(f->kind)) {
		const struct flat_field encoding[] = { { 0, 8, f->dictionary }, { 1, 4, 0 } };
		size_t places[2];
		flat_link(flat, at[5], flat_table(flat, base, encoding, 2, places));
		flat_link(flat, places[1], put_int_type(flat, base, f->bits, f->is_signed));
	}
	return field;
}

static void put_metadata(struct arrow_writer *w, struct buf *flat, size_t base, size_t place)
{
	size_t count = 0, first;
	for (size_t i = 0; i < w->metadata.len; i++)
		count += w->metadata.data[i] == 0;
	flat_link(flat, place, flat_vector(flat, base, count / 2, 4, 4, &first));
	const char *text = (const char *)w->metadata.data;
	for (size_t i = 0; i < count / 2; i++) {
		const struct flat_field fields[] = { { 0, 4, 0 }, { 1, 4, 0 } };
		size_t at[2];
		flat_link(flat, first + 4 * i, flat_table(flat, base, fields, 2, at));
		for (size_t k = 0; k < 2; k++) {
			flat_link(flat, at[k], flat_string(flat, base, str_of(text)));
			text += strlen(text) + 1;
		}
	}
}

/* Schema { fields, custom_metadata } */
static void put_schema(struct arrow_writer *w, struct buf *flat, struct buf *out)
{
	size_t base = flat_begin(flat), first;
	size_t header = begin_message(flat, base, HEADER_SCHEMA, 0);
	const struct flat_field fields[] = { { 1, 4, 0 }, { 2, 4, 0 } };
	size_t at[2];
	bool named = w->metadata.len > 0;
	flat_link(flat, header, flat_table(flat, base, fields, named ? 2 : 1, at));
	flat_link(flat, at[0], flat_vector(flat, base, w->fields.len, 4, 4, &first));
	for (size_t i = 0; i < w->fields.len; i++) {
		const struct arrow_write_field *f = &w->fields.v[i];
		struct str name = str_sub(buf_view(&w->names), f->name, f->name_len);
		flat_link(flat, first + 4 * i, put_field(flat, base, name, f));
	}
	if (named)
		put_metadata(w, flat, base, at[1]);
	put_message(w, out, flat, NULL);
}

enum status arrow_write_end(struct arrow_writer *w, bool with_end, struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf flat;
	buf_init(&flat, 4 << 20);
	fail(w, buf_status(&w->names));
	fail(w, buf_status(&w->metadata));
	fail(w, buf_status(&w->dictionaries));
	fail(w, buf_status(&w->body));
	if (w->status == OK) {
		put_schema(w, &flat, out);
		buf_str(out, buf_view(&w->dictionaries));
		buf_clear(&flat);
		size_t base = flat_begin(&flat);
		size_t header = begin_message(&flat, base, HEADER_BATCH, w->body.len);
		flat_link(&flat, header,
			put_batch(w, &flat, base, w->rows, w->nodes.v, w->nodes.len, w->spans.v,
				w->spans.len));
		put_message(w, out, &flat, &w->body);
		if (with_end) {
			buf_u32(out, UINT32_MAX);
			buf_u32(out, 0);
		}
		fail(w, buf_status(out));
	}
	enum status s = w->status;
	size_t rows = w->rows;
	writer_free(w);
	return s == OK ? OK : err_set(e, s, "an Arrow stream of %zu rows", rows);
}
