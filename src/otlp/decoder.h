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

/* In place of an index: the element is there but cannot be used. */
#define BAD UINT32_MAX

/* An element of attribute_table: what it says in each place where it may stand. */
struct attribute {
	uint32_t name;  /* label's name; BAD */
	uint32_t value; /* "" for values that have no text */
	uint32_t build_id;
	uint8_t frame_kind; /* enum frame_kind */
	bool is_build_id;
	bool is_gnu; /* wins over the content id */
	bool is_frame_kind;
};

/* ids[i] is element i's index in the profile; element 0 is always 0. */
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
	struct arena arena; /* the tables below */
	struct table_run runs[DICT_FIELDS];
	struct id_table strings, mappings, functions, locations, stacks, links;
	struct attribute *attributes;
	size_t attribute_count;
	/* The first element that cannot be used, for the reason of a profile that needs it. */
	char defect[120];
	/* Set by the helpers that refuse one profile, so that their status is told from one that
	 * ends the decoding. */
	bool rejected;
	struct buf text;                  /* scratch of otlp_any_value() */
	VEC(uint32_t) stack;              /* scratch */
	VEC(int64_t) values;              /* of one sample */
	VEC(uint64_t) times;              /* of one sample */
	VEC(struct profile_label) labels; /* resource, scope, profile: grows and is cut back */
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
	if (index == 0)
		return 0;
	return index < t->count ? t->ids[index] : BAD;
}

/* An AnyValue as text: *out is a string's index, 0 when it is not text (arrays, maps, bytes), BAD
 * when its string_value_strindex is. E_INVALID: malformed. */
NODISCARD enum status otlp_any_value(struct decoder *d, struct str bytes, uint32_t *out);

/* The dictionary into the profile's tables, and the id tables above. */
NODISCARD enum status otlp_decode_dictionary(struct decoder *d, struct str bytes);
