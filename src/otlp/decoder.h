/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decoder: what the two halves of the decoder share: the dictionary's elements as indices of the
 * profile's tables.
 *
 * Private to otlp/.
 */
#pragma once

#include "base/arena.h"
#include "otlp/names.h"
#include "otlp/otlp.h"
#include "pb/pb.h"

/* Which of the schema's versions a message is written in: they share names and differ in numbers.
 * Versions before 1.7 have no dictionary. */
enum otlp_schema {
	SCHEMA_1_7, /* ranges of location_indices, several sample types, element 0 is one of many */
	SCHEMA_1_8, /* comments before profile_id */
	SCHEMA_1_9, /* values before attribute_indices */
	SCHEMA_1_10, /* and 1.11 */
};

/* The meaning of a field of Profile or Sample, by its number; 0: the field is not used. */
enum field_role {
	ROLE_NONE,
	ROLE_SAMPLE_TYPE,
	ROLE_SAMPLES,
	ROLE_LOCATIONS,
	ROLE_TIME,
	ROLE_DURATION,
	ROLE_PERIOD_TYPE,
	ROLE_PERIOD,
	ROLE_ATTRIBUTES,
	ROLE_STACK,
	ROLE_START,
	ROLE_LENGTH,
	ROLE_LINK,
	ROLE_VALUES,
	ROLE_TIMESTAMPS
};
enum field_role otlp_profile_role(enum otlp_schema s, uint32_t number);
enum field_role otlp_sample_role(enum otlp_schema s, uint32_t number);
/* Tells the versions apart by the wire types of fields that have another meaning in each; a message
 * that shows none of them is of the newest. */
enum otlp_schema otlp_schema_of(struct str message);

/* Sample types of one profile (one from 1.8 on). */
#define SAMPLE_TYPES_MAX 16

/* In place of an index: the element is there but cannot be used. */
#define BAD UINT32_MAX

/* An element of attribute_table: its meaning in each place where it may be used. */
struct attribute {
	uint32_t name;  /* label's name; BAD */
	uint32_t value; /* "" for values that have no text */
	uint32_t build_id;
	uint8_t frame_kind; /* enum frame_kind */
	bool is_build_id;
	bool is_gnu; /* wins over the content id */
	bool is_frame_kind;
};

/* ids[i] is element i's index in the profile; element 0 is 0 from 1.8 on. */
struct id_table {
	uint32_t *ids;
	size_t count;
};

/* Where a table's elements lie in the dictionary: from the first to the end of the last. */
struct table_run {
	const uint8_t *first;
	const uint8_t *end;
	size_t count;
};

struct decoder {
	struct str message;
	struct profile *out;
	struct otlp_rejects *rejects;
	struct err *e;
	enum otlp_schema schema;
	struct arena arena; /* the tables below */
	struct table_run runs[DICT_FIELDS];
	struct id_table strings, mappings, functions, locations, stacks, links;
	struct attribute *attributes;
	size_t attribute_count;
	/* Names the first element that cannot be used, for the rejection of a profile that needs
	 * it. */
	char defect[120];
	/* Set by reject(): its status does not end the decoding; all others do. */
	bool rejected;
	enum otlp_reject why; /* and the sentence: */
	char rejection[160];
	size_t resource_index, scope_index; /* of what is being read */
	struct buf text;                    /* scratch of otlp_any_value() */
	VEC(uint32_t) stack;                /* scratch */
	uint64_t frames;                    /* 1.7: looked at so far: OTLP_FRAMES_MAX */
	VEC(uint32_t) places;               /* 1.7: location_indices of one profile, as ids */
	VEC(int64_t) values;                /* of one sample */
	VEC(uint64_t) times;                /* of one sample */
	VEC(struct profile_label) labels;   /* resource, scope, profile: grows and is cut back */
	uint32_t resource;                  /* the label set of `labels` */
	bool has_resource;
	/* Own label sets by the raw bytes of attribute_indices: neighbours repeat. */
	struct own_slot {
		struct str bytes;
		uint32_t set;
	} own_cache[256];
};

/* E_INVALID: `r` failed while reading `what`[index]. */
enum status otlp_torn(struct decoder *d, const struct reader *r, const char *what, size_t index);

/* An index into an id_table: 0 for 0, BAD when there is no such element or it is bad. */
static inline uint32_t id_at(const struct id_table *t, uint64_t index)
{
	if (index < t->count)
		return t->ids[index];
	return index == 0 ? 0 : BAD;
}

/* An AnyValue as text: *out is a string's index, 0 when it is not text (arrays, maps, bytes), BAD
 * when its string_value_strindex is. E_INVALID: malformed. */
NODISCARD enum status otlp_any_value(struct decoder *d, struct str bytes, uint32_t *out);

/* Decodes the dictionary into the profile's tables, and fills the id tables above. */
NODISCARD enum status otlp_decode_dictionary(struct decoder *d, struct str bytes);
