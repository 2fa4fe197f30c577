/* SPDX-License-Identifier: Apache-2.0 */
/* Resource and KeyValue are those of each OTLP message; here they come without a dictionary.
 * Attributes that cannot be labels are skipped, as a process may have any. */
#include "otlp/names.h"
#include "otlp/otlp.h"
#include "pb/pb.h"

#include <inttypes.h>
#include <stdio.h>

struct attribute_text {
	struct str key, value;
	char number[32];
};

/* An AnyValue: a text, a bool or a whole number. */
static bool read_value(struct str bytes, struct attribute_text *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		switch (FIELD(f.number, f.wire)) {
		case FIELD(1, PB_BYTES):
			out->value = str_trim(f.bytes);
			break;
		case FIELD(2, PB_VARINT):
			out->value = f.u64 ? STR("true") : STR("false");
			break;
		case FIELD(3, PB_VARINT):
			snprintf(out->number, sizeof(out->number), "%" PRId64, (int64_t)f.u64);
			out->value = str_of(out->number);
			break;
		default:
			break;
		}
	}
	return !r.failed;
}

static bool read_attribute(const struct pb_field *field, struct attribute_text *out)
{
	struct reader r = pb_message(field);
	struct pb_field f;
	bool ok = true;
	*out = (struct attribute_text){ 0 };
	while (ok && pb_next(&r, &f)) {
		if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			out->key = f.bytes;
		else if (FIELD(f.number, f.wire) == FIELD(2, PB_BYTES))
			ok = read_value(f.bytes, out);
	}
	return ok && !r.failed;
}

static bool is_label(const struct attribute_text *a)
{
	return a->key.len && a->key.len <= OTLP_CONTEXT_KEY_BYTES_MAX && a->value.len &&
	       a->value.len <= OTLP_CONTEXT_VALUE_BYTES_MAX && str_is_utf8(a->key) &&
	       str_is_utf8(a->value) && !memchr(a->key.p, 0, a->key.len) &&
	       !memchr(a->value.p, 0, a->value.len);
}

/* The attributes of a Resource. */
static enum status read_resource(
	struct str bytes, otlp_context_fn *fn, void *ctx, uint32_t *told, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct attribute_text a;
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (FIELD(f.number, f.wire) != FIELD(1, PB_BYTES))
			continue;
		if (!read_attribute(&f, &a))
			return err_set(e, E_INVALID,
				"process context: an attribute of its resource is malformed");
		if (*told == OTLP_CONTEXT_ATTRIBUTES_MAX || !is_label(&a))
			continue;
		if (fn)
			fn(ctx, a.key, a.value);
		(*told)++;
	}
	if (r.failed)
		return err_set(e, E_INVALID, "process context: its resource is malformed");
	return OK;
}

static enum status read_context(struct str message, otlp_context_fn *fn, void *ctx, struct err *e)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	uint32_t told = 0;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f))
		if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			s = read_resource(f.bytes, fn, ctx, &told, e);
	if (s == OK && r.failed)
		return err_set(
			e, E_INVALID, "process context: malformed at byte %zu", reader_offset(&r));
	return s;
}

enum status otlp_decode_process_context(
	struct str message, otlp_context_fn *fn, void *ctx, struct err *e)
{
	/* The first pass checks that the message is complete. */
	enum status s = read_context(message, NULL, NULL, e);
	return s == OK ? read_context(message, fn, ctx, e) : s;
}
