/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pb: protobuf's wire format, read from a bounded reader and written into a buf; and messages
 * described by tables, from which come JSON both ways, URL parameters and descriptors.
 *
 * Layer 1 (may use base). Decoders need no tables: a message is a loop over pb_next() with a switch
 * on the field number. Unknown fields are skipped by the caller's `default:` (pb_next() has
 * consumed them whole). Groups (wire types 3 and 4) are refused. Source:
 * protobuf.dev/programming-guides/encoding, …/json.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/reader.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb_field {
	uint32_t number;
	enum pb_wire wire;
	uint64_t u64;     /* varint, fixed64 and fixed32 */
	struct str bytes; /* PB_BYTES, in place */
};

#define PB_FIELD_MAX 536870911u /* 2^29 - 1 */

/* pb_next() as an inline function, for the loops that read most bytes of a message. */
static inline bool pb_next_inline(struct reader *r, struct pb_field *out)
{
	if (reader_done(r))
		return false;
	uint64_t tag = reader_varint(r);
	uint64_t number = tag >> 3;
	if (number == 0 || number > PB_FIELD_MAX) {
		r->failed = true;
		return false;
	}
	*out = (struct pb_field){ .number = (uint32_t)number, .wire = (enum pb_wire)(tag & 7) };
	switch (tag & 7) {
	case PB_VARINT:
		out->u64 = reader_varint(r);
		break;
	case PB_FIXED64:
		out->u64 = reader_u64(r);
		break;
	case PB_FIXED32:
		out->u64 = reader_u32(r);
		break;
	case PB_BYTES:
		out->bytes = reader_str(r, reader_varint(r));
		break;
	default:
		r->failed = true;
	}
	return !r->failed;
}

/* The next field; false at the end and on malformed bytes (then r->failed). */
bool pb_next(struct reader *r, struct pb_field *out);

static inline struct reader pb_message(const struct pb_field *f)
{
	return reader_over(f->bytes.p, f->bytes.len);
}

/* A repeated scalar arrives packed or not. Start `r` with pb_packed(); while pb_packed_next()
 * gives values, the field goes on. `wire` is the scalar's own wire type. */
struct pb_packed {
	struct reader r;
	struct pb_field single;
	enum pb_wire wire;
	bool packed;
	bool done;
	bool failed; /* wrong wire type or torn element */
};
struct pb_packed pb_packed(const struct pb_field *f, enum pb_wire wire);
bool pb_packed_next(struct pb_packed *p, uint64_t *out);

/* Writers leave out zero values and empty bytes, as proto3 does; the _always forms do not. */
void pb_put_u64(struct buf *b, uint32_t field, uint64_t v);
void pb_put_i64(struct buf *b, uint32_t field, int64_t v); /* int64: negative takes ten bytes */
void pb_put_bool(struct buf *b, uint32_t field, bool v);
void pb_put_fixed64(struct buf *b, uint32_t field, uint64_t v);
void pb_put_double(struct buf *b, uint32_t field, double v);
void pb_put_str(struct buf *b, uint32_t field, struct str s);
void pb_put_u64_always(struct buf *b, uint32_t field, uint64_t v);
void pb_put_str_always(struct buf *b, uint32_t field, struct str s);
void pb_put_packed_u64(struct buf *b, uint32_t field, const uint64_t *v, size_t count);
void pb_put_packed_u32(struct buf *b, uint32_t field, const uint32_t *v, size_t count);

/* A message inside a message: begin, write its fields, end. Nested as deep as needed. pb_end()
 * inserts the length: if it needs more than one byte, the message's bytes move. */
size_t pb_begin(struct buf *b, uint32_t field);
void pb_end(struct buf *b, size_t begun);

/* ---- messages described by tables ----
 *
 * static const struct pb_member label_members[] = {
 *	PB_FIELD("name", 1, STRING), PB_FIELD("value", 2, STRING) };
 * static const struct pb_desc label = PB_DESC("parca.profilestore.v1alpha1.Label", label_members);
 *
 * Names are those of the .proto file (snake_case); JSON's camelCase is made from them.
 */

/* google.protobuf.FieldDescriptorProto.Type */
enum pb_kind {
	PB_KIND_DOUBLE = 1,
	PB_KIND_FLOAT = 2,
	PB_KIND_INT64 = 3,
	PB_KIND_UINT64 = 4,
	PB_KIND_INT32 = 5,
	PB_KIND_FIXED64 = 6,
	PB_KIND_FIXED32 = 7,
	PB_KIND_BOOL = 8,
	PB_KIND_STRING = 9,
	PB_KIND_MESSAGE = 11,
	PB_KIND_BYTES = 12,
	PB_KIND_UINT32 = 13,
	PB_KIND_ENUM = 14,
	PB_KIND_SFIXED32 = 15,
	PB_KIND_SFIXED64 = 16,
	PB_KIND_SINT32 = 17,
	PB_KIND_SINT64 = 18,
};

#define PB_REPEATED 0x01
#define PB_MAP 0x02      /* of `message`, an entry: members key = 1 and value = 2 */
#define PB_OPTIONAL 0x04 /* a field that is absent differs from zero */
#define PB_HEX 0x08      /* bytes that JSON writes in hexadecimal (OTLP's ids) */

#define PB_MEMBERS_MAX 64 /* of a message */

struct pb_desc;

struct pb_enum_value {
	const char *name;
	int32_t number;
};
struct pb_enum {
	const char *name; /* "parca.query.v1alpha1.QueryRequest.Mode" */
	const struct pb_enum_value *values;
	size_t count;
};

struct pb_member {
	const char *name; /* "report_type" */
	uint32_t number;
	enum pb_kind kind;
	uint8_t flags;
	uint8_t oneof; /* 0: in no oneof; n: in the message's n-th */
	const struct pb_desc *message;
	const struct pb_enum *values;
};

enum pb_form { PB_PLAIN, PB_TIMESTAMP, PB_DURATION };

struct pb_desc {
	const char *name; /* "parca.query.v1alpha1.QueryRequest"; nested in another by its name */
	const struct pb_member *members;
	size_t count;
	const char *oneofs[4]; /* names of the first, second, … */
	enum pb_form form;
};

struct pb_method {
	const char *name; /* "QueryRange" */
	const struct pb_desc *input;
	const struct pb_desc *output;
	bool client_streams;
	bool server_streams;
};
struct pb_service {
	const char *name; /* "parca.query.v1alpha1.QueryService" */
	const struct pb_method *methods;
	size_t count;
};

/* One .proto file: what reflection serves. */
struct pb_file {
	const char *name;    /* "parca/query/v1alpha1/query.proto" */
	const char *package; /* "parca.query.v1alpha1" */
	const struct pb_file *const *imports;
	size_t import_count;
	const struct pb_desc *const *messages; /* without entries of maps */
	size_t message_count;
	const struct pb_enum *const *enums;
	size_t enum_count;
	const struct pb_service *const *services;
	size_t service_count;
};

/* clang-format off */
#define PB_FIELD(field, num, KIND) { .name = field, .number = num, .kind = PB_KIND_##KIND }
#define PB_LIST(field, num, KIND) \
	{ .name = field, .number = num, .kind = PB_KIND_##KIND, .flags = PB_REPEATED }
#define PB_MAYBE(field, num, KIND) \
	{ .name = field, .number = num, .kind = PB_KIND_##KIND, .flags = PB_OPTIONAL }
#define PB_ONE(field, num, KIND, of) \
	{ .name = field, .number = num, .kind = PB_KIND_##KIND, .oneof = of }
#define PB_MSG(field, num, desc) \
	{ .name = field, .number = num, .kind = PB_KIND_MESSAGE, .message = &(desc) }
#define PB_MSGS(field, num, desc) \
	{ .name = field, .number = num, .kind = PB_KIND_MESSAGE, .flags = PB_REPEATED, .message = &(desc) }
#define PB_MSG_MAYBE(field, num, desc) \
	{ .name = field, .number = num, .kind = PB_KIND_MESSAGE, .flags = PB_OPTIONAL, .message = &(desc) }
#define PB_MSG_ONE(field, num, desc, of) \
	{ .name = field, .number = num, .kind = PB_KIND_MESSAGE, .oneof = of, .message = &(desc) }
#define PB_MAP_OF(field, num, entry) \
	{ .name = field, .number = num, .kind = PB_KIND_MESSAGE, .flags = PB_REPEATED | PB_MAP, .message = &(entry) }
#define PB_CHOICE(field, num, enumeration) \
	{ .name = field, .number = num, .kind = PB_KIND_ENUM, .values = &(enumeration) }
#define PB_DESC(full, list) { .name = full, .members = list, .count = ARRAY_COUNT(list) }
#define PB_ENUM(full, list) { .name = full, .values = list, .count = ARRAY_COUNT(list) }
/* clang-format on */

extern const struct pb_desc pb_timestamp; /* google.protobuf.Timestamp */
extern const struct pb_desc pb_duration;
extern const struct pb_file pb_file_timestamp;
extern const struct pb_file pb_file_duration;

/* NULL: absent. */
const struct pb_member *pb_desc_find(const struct pb_desc *d, uint32_t number);
/* By the .proto name or its camelCase form. */
const struct pb_member *pb_desc_find_name(const struct pb_desc *d, struct str name);
const struct pb_method *pb_service_find(const struct pb_service *s, const char *method);

#define PB_JSON_DEPTH_MAX 64 /* decoding: messages in messages */
/* Encoding: Parca's old flame graph holds a message for each frame of a stack. */
#define PB_JSON_WRITE_DEPTH_MAX 2560
#define PB_IGNORE_UNKNOWN 0x1 /* decoding: skip fields that the table does not have */
#define PB_EMIT_ZERO 0x2      /* encoding: write fields that are zero or empty too */
#define PB_ENUM_NUMBERS 0x4   /* encoding: enums as numbers */

/* Converts canonical JSON (names in either case, int64 as string or number, times as RFC 3339,
 * bytes as base64 of either alphabet) into the message's bytes. E_INVALID: the sentence names the
 * field. */
NODISCARD enum status pb_json_decode(
	const struct pb_desc *d, struct str json, unsigned flags, struct buf *out, struct err *e);
/* A message's bytes as JSON on one line. Malformed bytes: E_INVALID; too deep: E_LIMIT. */
NODISCARD enum status pb_json_encode(
	const struct pb_desc *d, struct str bytes, unsigned flags, struct buf *out, struct err *e);

/* Parameters of a URL: the key is a path of names ("merge.query"), repeated for lists. */
struct pb_param {
	struct str key;
	struct str value;
};
NODISCARD enum status pb_params_decode(const struct pb_desc *d, const struct pb_param *params,
	size_t count, unsigned flags, struct buf *out, struct err *e);

/* google.protobuf.FileDescriptorProto of a file. */
void pb_file_encode(const struct pb_file *f, struct buf *out);
