/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out the version of the schema. A field whose wire type is not that of the newest schema is
 * of an older one:
 *
 *	Profile      1.7            1.8            1.9            1.10
 *	3            indices, LEN   time, I64      time, I64      time, I64
 *	5            duration, VAR  type, LEN      type, LEN      type, LEN
 *	6            type, LEN      period, VAR    period, VAR    period, VAR
 *	7            period, VAR    comments, LEN  id, LEN        id, LEN
 *	8            comments, LEN  id, LEN        dropped, VAR   dropped, VAR
 *
 *	Sample       1.7            1.8, 1.9          1.10
 *	2            length, VAR    values, LEN       attributes, LEN
 *	3            values, LEN    attributes, LEN   link, VAR
 *	4            attributes     link, VAR         values, LEN
 *
 * A sample without fields 3 and 4 and without timestamps must have values, so these are in its
 * field 2. A sample of 1.8 or 1.9 with only values and timestamps looks like one of 1.10 with
 * attributes. Source: opentelemetry-proto v1.7.0 to v1.11.0,
 * profiles/v1development/profiles.proto.
 */
#include "otlp/decoder.h"

/* clang-format off */
static const uint8_t profile_roles[][16] = {
	[SCHEMA_1_7] = { [1] = ROLE_SAMPLE_TYPE, [2] = ROLE_SAMPLES, [3] = ROLE_LOCATIONS, [4] = ROLE_TIME,
		[5] = ROLE_DURATION, [6] = ROLE_PERIOD_TYPE, [7] = ROLE_PERIOD, [14] = ROLE_ATTRIBUTES },
	[SCHEMA_1_8] = { [1] = ROLE_SAMPLE_TYPE, [2] = ROLE_SAMPLES, [3] = ROLE_TIME, [4] = ROLE_DURATION,
		[5] = ROLE_PERIOD_TYPE, [6] = ROLE_PERIOD, [12] = ROLE_ATTRIBUTES },
	[SCHEMA_1_9] = { [1] = ROLE_SAMPLE_TYPE, [2] = ROLE_SAMPLES, [3] = ROLE_TIME, [4] = ROLE_DURATION,
		[5] = ROLE_PERIOD_TYPE, [6] = ROLE_PERIOD, [11] = ROLE_ATTRIBUTES },
	[SCHEMA_1_10] = { [1] = ROLE_SAMPLE_TYPE, [2] = ROLE_SAMPLES, [3] = ROLE_TIME, [4] = ROLE_DURATION,
		[5] = ROLE_PERIOD_TYPE, [6] = ROLE_PERIOD, [11] = ROLE_ATTRIBUTES },
};
static const uint8_t sample_roles[][8] = {
	[SCHEMA_1_7] = { [1] = ROLE_START, [2] = ROLE_LENGTH, [3] = ROLE_VALUES, [4] = ROLE_ATTRIBUTES,
		[5] = ROLE_LINK, [6] = ROLE_TIMESTAMPS },
	[SCHEMA_1_8] = { [1] = ROLE_STACK, [2] = ROLE_VALUES, [3] = ROLE_ATTRIBUTES, [4] = ROLE_LINK,
		[5] = ROLE_TIMESTAMPS },
	[SCHEMA_1_9] = { [1] = ROLE_STACK, [2] = ROLE_VALUES, [3] = ROLE_ATTRIBUTES, [4] = ROLE_LINK,
		[5] = ROLE_TIMESTAMPS },
	[SCHEMA_1_10] = { [1] = ROLE_STACK, [2] = ROLE_ATTRIBUTES, [3] = ROLE_LINK, [4] = ROLE_VALUES,
		[5] = ROLE_TIMESTAMPS },
};
/* clang-format on */

enum field_role otlp_profile_role(enum otlp_schema s, uint32_t number)
{
	return number < ARRAY_COUNT(profile_roles[0]) ? (enum field_role)profile_roles[s][number]
						      : ROLE_NONE;
}

enum field_role otlp_sample_role(enum otlp_schema s, uint32_t number)
{
	return number < ARRAY_COUNT(sample_roles[0]) ? (enum field_role)sample_roles[s][number]
						     : ROLE_NONE;
}

/* ---- what a message shows ---- */

struct signs {
	bool is_1_7;
	bool is_1_8; /* if it is older than 1.10 */
	bool is_old; /* 1.8 or 1.9 */
	bool is_newest;
};

static void look_at_sample(struct str bytes, struct signs *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool seen[8] = { 0 }, link = false;
	while (pb_next(&r, &f)) {
		if (f.number >= ARRAY_COUNT(seen))
			continue;
		seen[f.number] = true;
		out->is_old |= FIELD(f.number, f.wire) == FIELD(3, PB_BYTES);
		out->is_newest |= FIELD(f.number, f.wire) == FIELD(3, PB_VARINT);
		out->is_newest |= FIELD(f.number, f.wire) == FIELD(4, PB_BYTES);
		link |= FIELD(f.number, f.wire) == FIELD(4, PB_VARINT);
	}
	out->is_old |= link && !seen[3];
	/* Packed or not: in older schemas only values can be in this field. */
	out->is_old |= seen[2] && !seen[3] && !seen[4] && !seen[5];
}

static void look_at_profile(struct str bytes, struct signs *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (!out->is_1_7 && pb_next(&r, &f)) {
		switch (FIELD(f.number, f.wire)) {
		case FIELD(3, PB_BYTES):
		case FIELD(5, PB_VARINT):
		case FIELD(6, PB_BYTES):
			out->is_1_7 = true;
			break;
		case FIELD(8, PB_BYTES):
			out->is_1_8 = true;
			break;
		case FIELD(2, PB_BYTES):
			if (!out->is_old && !out->is_newest)
				look_at_sample(f.bytes, out);
			break;
		default:
			break;
		}
	}
}

/* Request, resource and scope have their lists in fields 1, 2 and 2. */
static void look(struct str bytes, int depth, struct signs *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	uint32_t list = depth == 2 ? 1 : 2;
	if (depth < 0) {
		look_at_profile(bytes, out);
		return;
	}
	while (!out->is_1_7 && pb_next(&r, &f))
		if (FIELD(f.number, f.wire) == FIELD(list, PB_BYTES))
			look(f.bytes, depth - 1, out);
}

enum otlp_schema otlp_schema_of(struct str message)
{
	struct signs signs = { 0 };
	look(message, 2, &signs);
	if (signs.is_1_7)
		return SCHEMA_1_7;
	if (!signs.is_old || signs.is_newest)
		return SCHEMA_1_10;
	return signs.is_1_8 ? SCHEMA_1_8 : SCHEMA_1_9;
}
