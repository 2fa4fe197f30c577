/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup of tables by name, and the two messages that all APIs use. */
#include "pb/internal.h"

static const struct pb_member seconds_nanos[] = {
	PB_FIELD("seconds", 1, INT64),
	PB_FIELD("nanos", 2, INT32),
};
const struct pb_desc pb_timestamp = { .name = "google.protobuf.Timestamp",
	.members = seconds_nanos,
	.count = ARRAY_COUNT(seconds_nanos),
	.form = PB_TIMESTAMP };
const struct pb_desc pb_duration = { .name = "google.protobuf.Duration",
	.members = seconds_nanos,
	.count = ARRAY_COUNT(seconds_nanos),
	.form = PB_DURATION };

static const struct pb_desc *const timestamp_messages[] = { &pb_timestamp };
static const struct pb_desc *const duration_messages[] = { &pb_duration };
const struct pb_file pb_file_timestamp = { .name = "google/protobuf/timestamp.proto",
	.package = "google.protobuf",
	.messages = timestamp_messages,
	.message_count = 1 };
const struct pb_file pb_file_duration = { .name = "google/protobuf/duration.proto",
	.package = "google.protobuf",
	.messages = duration_messages,
	.message_count = 1 };

void pb_put_camel(struct buf *out, const char *name)
{
	bool upper = false;
	for (; *name; name++) {
		if (*name == '_') {
			upper = true;
			continue;
		}
		bool small = *name >= 'a' && *name <= 'z';
		buf_u8(out, (uint8_t)(upper && small ? *name - 32 : *name));
		upper = false;
	}
}

static bool camel_fits(const char *name, struct str given)
{
	bool upper = false;
	size_t n = 0;
	for (; *name; name++) {
		if (*name == '_') {
			upper = true;
			continue;
		}
		bool small = *name >= 'a' && *name <= 'z';
		char want = (char)(upper && small ? *name - 32 : *name);
		upper = false;
		if (n == given.len || given.p[n++] != want)
			return false;
	}
	return n == given.len;
}

bool pb_name_fits(const char *name, struct str given)
{
	return str_eq(str_of(name), given) || camel_fits(name, given);
}

const struct pb_member *pb_desc_find(const struct pb_desc *d, uint32_t number)
{
	for (size_t i = 0; i < d->count; i++)
		if (d->members[i].number == number)
			return &d->members[i];
	return NULL;
}

const struct pb_member *pb_desc_find_name(const struct pb_desc *d, struct str name)
{
	for (size_t i = 0; i < d->count; i++)
		if (pb_name_fits(d->members[i].name, name))
			return &d->members[i];
	return NULL;
}

const struct pb_method *pb_service_find(const struct pb_service *s, const char *method)
{
	for (size_t i = 0; i < s->count; i++)
		if (strcmp(s->methods[i].name, method) == 0)
			return &s->methods[i];
	return NULL;
}

bool pb_is_numeric(enum pb_kind kind)
{
	return kind != PB_KIND_STRING && kind != PB_KIND_BYTES && kind != PB_KIND_MESSAGE;
}

enum pb_wire pb_kind_wire(enum pb_kind kind)
{
	switch (kind) {
	case PB_KIND_DOUBLE:
	case PB_KIND_FIXED64:
	case PB_KIND_SFIXED64:
		return PB_FIXED64;
	case PB_KIND_FLOAT:
	case PB_KIND_FIXED32:
	case PB_KIND_SFIXED32:
		return PB_FIXED32;
	case PB_KIND_STRING:
	case PB_KIND_BYTES:
	case PB_KIND_MESSAGE:
		return PB_BYTES;
	default:
		return PB_VARINT;
	}
}
