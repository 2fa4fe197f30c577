/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record batch lists the lengths of its arrays and its buffers in the depth-first order of the
 * fields; each array takes from both lists as many as its type has. Buffers are used in place, or
 * decompressed into the stream's arena, whose limit stops decompression bombs.
 *
 * Everything on which accessors rely later is checked here, for values that are not null: offsets,
 * sizes, views, run ends, indices. Values that are null may hold anything.
 */
#include "arrow/internal.h"

#include "codec/codec.h"

#include <inttypes.h>

struct list {
	size_t first;
	uint32_t count;
	uint32_t next;
};

struct binder {
	struct arrow_stream *s;
	struct reader *r; /* the metadata */
	struct str body;
	struct list nodes;
	struct list buffers;
	struct list variadic;
	int codec;
	struct err *e;
};

static enum status no_memory(struct binder *b)
{
	enum status st = arena_status(&b->s->arena);
	return err_set(b->e, st,
		st == E_LIMIT ? "more than the %zu bytes that a stream may take" : "out of memory",
		b->s->arena.limit);
}

/* ---- lists of the metadata ---- */

static enum status next_pair(struct binder *b, struct list *l, const char *what, int64_t out[2])
{
	if (l->next == l->count)
		return err_set(b->e, E_INVALID, "the batch has only %u %s", l->count, what);
	reader_seek(b->r, l->first + (size_t)l->next++ * ARROW_PAIR_BYTES);
	out[0] = reader_i64(b->r);
	out[1] = reader_i64(b->r);
	return OK;
}

static enum status next_node(struct binder *b, struct arrow_array *a, int64_t *out_nulls)
{
	int64_t node[2];
	enum status st = next_pair(b, &b->nodes, "arrays", node);
	if (st != OK)
		return st;
	if (node[0] < 0)
		return err_set(b->e, E_INVALID, "length %" PRId64, node[0]);
	if ((uint64_t)node[0] > ARROW_LENGTH_MAX)
		return err_set(b->e, E_LIMIT, "%" PRId64 " elements; %" PRIu64 " are taken",
			node[0], ARROW_LENGTH_MAX);
	a->length = (uint64_t)node[0];
	*out_nulls = node[1];
	return OK;
}

/* ---- buffers ---- */

static enum status decompress(struct binder *b, struct str in, struct str *out)
{
	struct reader r = reader_over(in.p, in.len);
	int64_t size = reader_i64(&r);
	if (r.failed)
		return err_set(b->e, E_INVALID, "a compressed buffer of %zu bytes", in.len);
	struct str packed = reader_str(&r, reader_left(&r));
	if (size == -1) {
		*out = packed;
		return OK;
	}
	if (size < 0)
		return err_set(b->e, E_INVALID, "a buffer of %" PRId64 " bytes", size);
	uint8_t *p = arena_alloc(&b->s->arena, (size_t)size + 1, 8);
	if (!p)
		return no_memory(b);
	enum status st =
		size == 0 ? OK
		: b->codec == CODEC_ZSTD
			? codec_zstd_decompress_exact(packed.p, packed.len, p, (size_t)size, b->e)
			: codec_lz4_decompress_exact(packed.p, packed.len, p, (size_t)size, b->e);
	if (st != OK)
		return st == E_CORRUPT ? err_prefix(b->e, E_INVALID, "a compressed buffer") : st;
	*out = str_make(p, (size_t)size);
	return OK;
}

static enum status next_buffer(struct binder *b, struct str *out)
{
	int64_t place[2];
	enum status st = next_pair(b, &b->buffers, "buffers", place);
	if (st != OK)
		return st;
	uint64_t offset = (uint64_t)place[0], len = (uint64_t)place[1];
	if (place[0] < 0 || place[1] < 0 || offset > b->body.len || len > b->body.len - offset)
		return err_set(b->e, E_INVALID,
			"buffer %u at %" PRId64 " + %" PRId64 " is outside of the body (%zu bytes)",
			b->buffers.next - 1, place[0], place[1], b->body.len);
	struct str bytes = str_make(b->body.p + offset, len);
	if (b->codec == CODEC_NONE || len == 0) {
		*out = bytes;
		return OK;
	}
	return decompress(b, bytes, out);
}

/* The next buffer must have room for `count` elements of `bytes` each. */
static enum status next_elements(
	struct binder *b, uint64_t count, uint64_t bytes, const char *what, const uint8_t **out)
{
	struct str s;
	enum status st = next_buffer(b, &s);
	if (st != OK)
		return st;
	/* count is below 2^26 + 1 and bytes below 2^31 */
	if (s.len < count * bytes)
		return err_set(b->e, E_INVALID, "%s have %zu bytes, %" PRIu64 " are needed", what,
			s.len, count * bytes);
	*out = (const uint8_t *)s.p;
	return OK;
}

static enum status next_validity(struct binder *b, struct arrow_array *a, int64_t nulls)
{
	struct str s;
	enum status st = next_buffer(b, &s);
	if (st != OK || nulls == 0)
		return st;
	if (s.len < (a->length + 7) / 8) {
		if (s.len == 0 && nulls < 0)
			return OK;
		return err_set(b->e, E_INVALID,
			"the validity bits have %zu bytes for %" PRIu64 " elements", s.len,
			a->length);
	}
	a->validity = a->length ? (const uint8_t *)s.p : NULL;
	return OK;
}

/* ---- checks ---- */

/* Offsets ascend and end within `limit`. */
static enum status check_offsets(
	struct binder *b, const struct arrow_array *a, unsigned width, uint64_t limit)
{
	int64_t before = 0;
	for (uint64_t i = 0; a->length && i <= a->length; i++) {
		int64_t at = arrow_load_signed(a->data, i, width);
		if (at < before || (uint64_t)at > limit)
			return err_set(b->e, E_INVALID,
				"offset %" PRIu64 " is %" PRId64 "; %" PRId64 " to %" PRIu64
				" are possible",
				i, at, before, limit);
		before = at;
	}
	return OK;
}

static enum status check_list_view(struct binder *b, const struct arrow_array *a, unsigned width)
{
	uint64_t limit = a->children[0].length;
	const uint8_t *sizes = (const uint8_t *)a->more.p;
	for (uint64_t i = 0; i < a->length; i++) {
		int64_t at = arrow_load_signed(a->data, i, width);
		int64_t size = arrow_load_signed(sizes, i, width);
		if (arrow_is_null(a, i) || size == 0)
			continue;
		if (at < 0 || size < 0 || (uint64_t)at > limit ||
			(uint64_t)size > limit - (uint64_t)at)
			return err_set(b->e, E_INVALID,
				"list %" PRIu64 " at %" PRId64 " + %" PRId64
				" is outside of its %" PRIu64 " elements",
				i, at, size, limit);
	}
	return OK;
}

static enum status check_views(struct binder *b, const struct arrow_array *a, size_t buffer_count)
{
	for (uint64_t i = 0; i < a->length; i++) {
		struct reader r = reader_over(a->data + i * ARROW_VIEW_BYTES, ARROW_VIEW_BYTES);
		int32_t len = reader_i32(&r);
		if (arrow_is_null(a, i) || (len >= 0 && len <= ARROW_VIEW_INLINE_MAX))
			continue;
		reader_skip(&r, 4);
		int32_t buffer = reader_i32(&r), at = reader_i32(&r);
		if (len < 0 || buffer < 0 || (size_t)buffer >= buffer_count || at < 0 ||
			(size_t)at > a->buffers[buffer].len ||
			(size_t)len > a->buffers[buffer].len - (size_t)at)
			return err_set(b->e, E_INVALID,
				"view %" PRIu64 ": %d bytes at %d of buffer %d do not exist", i,
				len, at, buffer);
	}
	return OK;
}

static enum status check_runs(struct binder *b, const struct arrow_array *a)
{
	const struct arrow_array *ends = &a->children[0], *values = &a->children[1];
	unsigned width = ends->field->bits / 8u;
	int64_t before = 0;
	if (ends->validity)
		return err_set(b->e, E_INVALID, "run ends may not be null");
	for (uint64_t i = 0; i < ends->length; i++) {
		int64_t end = arrow_load_signed(ends->data, i, width);
		if (end <= before)
			return err_set(b->e, E_INVALID,
				"run end %" PRIu64 " is %" PRId64 " after %" PRId64, i, end,
				before);
		before = end;
	}
	if ((uint64_t)before < a->length)
		return err_set(b->e, E_INVALID, "runs end at %" PRId64 " of %" PRIu64 " rows",
			before, a->length);
	if (values->length < ends->length)
		return err_set(b->e, E_INVALID, "%" PRIu64 " runs have %" PRIu64 " values",
			ends->length, values->length);
	return OK;
}

static enum status check_indices(struct binder *b, const struct arrow_array *a)
{
	uint64_t limit = a->dictionary ? a->dictionary->length : 0;
	unsigned width = a->field->index_bits / 8u;
	for (uint64_t i = 0; i < a->length; i++) {
		uint64_t index = a->field->index_signed
					 ? (uint64_t)arrow_load_signed(a->data, i, width)
					 : arrow_load(a->data, i, width);
		if (index >= limit && !arrow_is_null(a, i))
			return err_set(b->e, E_INVALID,
				"element %" PRIu64 ": index %" PRId64
				" is outside of the dictionary's %" PRIu64 " values",
				i, (int64_t)index, limit);
	}
	return OK;
}

/* ---- arrays ---- */

static enum status bind(
	struct binder *b, const struct arrow_field *f, bool values, struct arrow_array *a);

static enum status bind_children(struct binder *b, struct arrow_array *a)
{
	const struct arrow_field *f = a->field;
	struct arrow_array *children =
		ARENA_ARRAY(&b->s->arena, struct arrow_array, f->child_count);
	if (!children && f->child_count)
		return no_memory(b);
	a->children = children;
	a->child_count = f->child_count;
	for (uint32_t i = 0; i < f->child_count; i++) {
		enum status st = bind(b, &f->children[i], false, &children[i]);
		if (st != OK)
			return err_prefix(
				b->e, st, "%.*s", STR_ARG(str_sub(f->children[i].name, 0, 64)));
	}
	return OK;
}

static enum status bind_binary(struct binder *b, struct arrow_array *a)
{
	unsigned width = a->field->is_large ? 8 : 4;
	enum status st =
		next_elements(b, a->length ? a->length + 1 : 0, width, "offsets", &a->data);
	if (st == OK)
		st = next_buffer(b, &a->more);
	return st == OK ? check_offsets(b, a, width, a->more.len) : st;
}

static enum status bind_views(struct binder *b, struct arrow_array *a)
{
	enum status st = next_elements(b, a->length, ARROW_VIEW_BYTES, "views", &a->data);
	if (st != OK)
		return st;
	if (b->variadic.next == b->variadic.count)
		return err_set(b->e, E_INVALID, "no count of the buffers of its views");
	reader_seek(b->r, b->variadic.first + (size_t)8 * b->variadic.next++);
	int64_t count = reader_i64(b->r);
	if (count < 0 || count > b->buffers.count - b->buffers.next)
		return err_set(b->e, E_INVALID, "%" PRId64 " buffers of views", count);
	struct str *buffers = ARENA_ARRAY(&b->s->arena, struct str, (size_t)count);
	if (!buffers && count)
		return no_memory(b);
	a->buffers = buffers;
	for (int64_t i = 0; st == OK && i < count; i++)
		st = next_buffer(b, &buffers[i]);
	return st == OK ? check_views(b, a, (size_t)count) : st;
}

static enum status bind_list(struct binder *b, struct arrow_array *a)
{
	unsigned width = a->field->is_large ? 8 : 4;
	enum status st =
		next_elements(b, a->length ? a->length + 1 : 0, width, "offsets", &a->data);
	if (st == OK)
		st = bind_children(b, a);
	return st == OK ? check_offsets(b, a, width, a->children[0].length) : st;
}

static enum status bind_list_view(struct binder *b, struct arrow_array *a)
{
	unsigned width = a->field->is_large ? 8 : 4;
	const uint8_t *sizes = NULL;
	enum status st = next_elements(b, a->length, width, "offsets", &a->data);
	if (st == OK)
		st = next_elements(b, a->length, width, "sizes", &sizes);
	a->more = str_make(sizes, a->length * width);
	if (st == OK)
		st = bind_children(b, a);
	return st == OK ? check_list_view(b, a, width) : st;
}

/* Every child has at least `need` elements. */
static enum status bind_aligned(struct binder *b, struct arrow_array *a, uint64_t need)
{
	enum status st = bind_children(b, a);
	for (uint32_t i = 0; st == OK && i < a->child_count; i++)
		if (a->children[i].length < need)
			return err_set(b->e, E_INVALID,
				"%.*s: %" PRIu64 " elements, %" PRIu64 " are needed",
				STR_ARG(str_sub(a->field->children[i].name, 0, 64)),
				a->children[i].length, need);
	return st;
}

static enum status bind_union(struct binder *b, struct arrow_array *a)
{
	const uint8_t *skipped;
	enum status st = next_elements(b, a->length, 1, "type ids", &skipped);
	if (st == OK && a->field->is_dense)
		st = next_elements(b, a->length, 4, "offsets", &skipped);
	return st == OK ? bind_children(b, a) : st;
}

static enum status bind_dictionary(struct binder *b, struct arrow_array *a)
{
	a->dictionary = b->s->dictionaries[a->field->dictionary].now;
	enum status st =
		next_elements(b, a->length, a->field->index_bits / 8u, "indices", &a->data);
	return st == OK ? check_indices(b, a) : st;
}

/* Binds the buffers after the validity bits. */
static enum status bind_values(struct binder *b, struct arrow_array *a)
{
	const struct arrow_field *f = a->field;
	enum status st;
	switch (f->type) {
	case ARROW_BOOL:
		return next_elements(b, (a->length + 7) / 8, 1, "bits", &a->data);
	case ARROW_INT:
	case ARROW_FLOAT:
		return next_elements(b, a->length, f->bits / 8u, "values", &a->data);
	case ARROW_FIXED:
		return next_elements(b, a->length, f->width, "values", &a->data);
	case ARROW_BINARY:
		return bind_binary(b, a);
	case ARROW_VIEW:
		return bind_views(b, a);
	case ARROW_LIST:
		return bind_list(b, a);
	case ARROW_LIST_VIEW:
		return bind_list_view(b, a);
	case ARROW_FIXED_LIST:
		return bind_aligned(b, a, a->length * f->width);
	case ARROW_STRUCT:
		return bind_aligned(b, a, a->length);
	case ARROW_UNION:
		return bind_union(b, a);
	case ARROW_RUNS:
		st = bind_children(b, a);
		return st == OK ? check_runs(b, a) : st;
	case ARROW_NULL:
	default:
		return OK;
	}
}

static bool has_validity(const struct binder *b, const struct arrow_field *f)
{
	return f->type != ARROW_NULL && f->type != ARROW_RUNS &&
	       (f->type != ARROW_UNION || b->s->is_v4);
}

/* `values`: binds the values of a dictionary, and not its indices. */
static enum status bind(
	struct binder *b, const struct arrow_field *f, bool values, struct arrow_array *a)
{
	bool indices = f->has_dictionary && !values;
	int64_t nulls = 0;
	*a = (struct arrow_array){ .field = f };
	enum status st = next_node(b, a, &nulls);
	if (st == OK && (indices || has_validity(b, f)))
		st = next_validity(b, a, nulls);
	if (st != OK)
		return st;
	return indices ? bind_dictionary(b, a) : bind_values(b, a);
}

static void read_list(const struct fb_table *record, unsigned id, size_t bytes, struct list *out)
{
	out->first = fb_vector(record, id, bytes, &out->count);
}

static enum status read_compression(const struct fb_table *record, int *out, struct err *e)
{
	struct fb_table t = fb_sub(record, RECORD_COMPRESSION);
	*out = CODEC_NONE;
	if (!t.r)
		return OK;
	*out = fb_i8(&t, COMPRESSION_CODEC, CODEC_LZ4_FRAME);
	if (*out != CODEC_LZ4_FRAME && *out != CODEC_ZSTD)
		return err_set(e, E_UNSUPPORTED, "body compression %d", *out);
	if (fb_i8(&t, COMPRESSION_METHOD, 0) != 0)
		return err_set(e, E_UNSUPPORTED, "body compression other than by buffer");
	return OK;
}

enum status arrow_array_read(struct arrow_stream *s, const struct fb_table *record, struct str body,
	const struct arrow_field *field, bool values, struct arrow_array *out, struct err *e)
{
	struct err none;
	struct binder b = { .s = s, .r = record->r, .body = body, .e = e ? e : &none };
	if (!record->r)
		return err_set(e, E_INVALID, "a dictionary batch without data");
	int64_t rows = fb_i64(record, RECORD_LENGTH, 0);
	read_list(record, RECORD_NODES, ARROW_PAIR_BYTES, &b.nodes);
	read_list(record, RECORD_BUFFERS, ARROW_PAIR_BYTES, &b.buffers);
	read_list(record, RECORD_VARIADIC, 8, &b.variadic);
	enum status st = read_compression(record, &b.codec, b.e);
	if (st != OK)
		return st;
	if (record->r->failed)
		return err_set(
			b.e, E_INVALID, "batch %u: its metadata is malformed", s->batch_count);
	if (values) {
		st = bind(&b, field, true, out);
	} else {
		*out = (struct arrow_array){ .field = field };
		if (rows < 0 || (uint64_t)rows > ARROW_LENGTH_MAX)
			return err_set(b.e, rows < 0 ? E_INVALID : E_LIMIT,
				"a batch of %" PRId64 " rows; %" PRIu64 " are taken", rows,
				ARROW_LENGTH_MAX);
		out->length = (uint64_t)rows;
		st = bind_aligned(&b, out, out->length);
	}
	if (st == OK && record->r->failed)
		st = err_set(b.e, E_INVALID, "its metadata is malformed");
	return st == OK ? OK : err_prefix(b.e, st, "batch %u", s->batch_count);
}
