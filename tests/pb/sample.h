/* SPDX-License-Identifier: Apache-2.0 */
/* A message with every kind of field, for the tests and fuzz targets of JSON and parameters. */
#pragma once

#include "pb/pb.h"

static const struct pb_enum_value sample_colour_values[] = {
	{ "COLOUR_NONE", 0 },
	{ "COLOUR_RED", 1 },
	{ "COLOUR_ODD", -7 },
};
static const struct pb_enum sample_colour = PB_ENUM("t.Sample.Colour", sample_colour_values);

static const struct pb_member sample_counts_members[] = { PB_FIELD("key", 1, STRING),
	PB_FIELD("value", 2, INT64) };
static const struct pb_desc sample_counts = PB_DESC("t.Sample.CountsEntry", sample_counts_members);
static const struct pb_desc sample_desc;
static const struct pb_member sample_names_members[] = { PB_FIELD("key", 1, UINT64),
	PB_MSG("value", 2, sample_desc) };
static const struct pb_desc sample_names = PB_DESC("t.Sample.NamesEntry", sample_names_members);

/* clang-format off */
static const struct pb_member sample_members[] = {
	PB_FIELD("a_double", 1, DOUBLE),   PB_FIELD("a_float", 2, FLOAT),
	PB_FIELD("an_int64", 3, INT64),    PB_FIELD("a_uint64", 4, UINT64),
	PB_FIELD("an_int32", 5, INT32),    PB_FIELD("a_fixed64", 6, FIXED64),
	PB_FIELD("a_fixed32", 7, FIXED32), PB_FIELD("a_bool", 8, BOOL),
	PB_FIELD("a_string", 9, STRING),   PB_FIELD("some_bytes", 10, BYTES),
	PB_FIELD("a_uint32", 11, UINT32),  PB_FIELD("an_sfixed32", 12, SFIXED32),
	PB_FIELD("an_sfixed64", 13, SFIXED64), PB_FIELD("an_sint32", 14, SINT32),
	PB_FIELD("an_sint64", 15, SINT64), PB_CHOICE("colour", 16, sample_colour),
	PB_MSG("inner", 17, sample_desc),  PB_LIST("ints", 18, INT32),
	PB_LIST("texts", 19, STRING),      PB_MSGS("inners", 20, sample_desc),
	PB_MAYBE("maybe", 21, INT32),      PB_ONE("one_text", 22, STRING, 1),
	PB_ONE("one_number", 23, INT32, 1), PB_MSG_ONE("one_inner", 24, sample_desc, 1),
	PB_MAP_OF("counts", 25, sample_counts), PB_MAP_OF("names", 26, sample_names),
	PB_MSG("at", 27, pb_timestamp),    PB_MSG("took", 28, pb_duration),
	{ .name = "trace_id", .number = 29, .kind = PB_KIND_BYTES, .flags = PB_HEX },
	PB_LIST("doubles", 30, DOUBLE),    PB_LIST("bools", 31, BOOL),
};
static const struct pb_desc sample_desc = { .name = "t.Sample", .members = sample_members,
	.count = ARRAY_COUNT(sample_members), .oneofs = { "one" } };
/* clang-format on */
