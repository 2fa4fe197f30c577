/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile/translate: copies texts, functions, mappings and locations from one set of tables into
 * another: each at most once, and only the ones that are asked for, with the elements they refer
 * to. The tables on either side may be a profile's or others of the same elements (the store's).
 *
 * Layer 1 (may use base). Not thread safe. If the target fails to take an element, the error is
 * returned, and the translation is unchanged.
 */
#pragma once

#include "profile/profile.h"

/* Where symbols come from: element 0 of each table is its null element. Indices are in range. */
struct translate_from {
	const struct strtab *strings; /* NULL: */
	const struct str *texts;
	const struct profile_function *functions;
	const struct profile_mapping *mappings;
	const struct profile_location *locations;
	const struct profile_line *lines;
	uint32_t string_count, function_count, mapping_count, location_count;
};
struct translate_from translate_from_profile(const struct profile *p);

/* The target: it takes an element, and returns its number there. */
struct translate_ops {
	enum status (*add_string)(void *to, struct str s, uint32_t *out);
	enum status (*add_function)(void *to, const struct profile_function *f, uint32_t *out);
	enum status (*add_mapping)(void *to, const struct profile_mapping *m, uint32_t *out);
	enum status (*add_location)(void *to, const struct profile_location *l,
		const struct profile_line *lines, uint32_t line_count, uint32_t *out);
};
extern const struct translate_ops translate_to_profile; /* `to` is a struct profile */

#define TRANSLATE_UNSET UINT32_MAX

struct translate {
	struct translate_from from;
	const struct translate_ops *ops;
	void *to;
	/* New numbers by old ones; TRANSLATE_UNSET: not asked for yet. NULL: not kept. */
	uint32_t *strings, *functions, *mappings, *locations;
};

/* How many numbers the memory of a translation has. */
size_t translate_words(const struct translate_from *from, bool keep_strings);
/* `memory`: room for translate_words() numbers, which must outlive the translation; the numbers of
 * locations come first. NULL: no numbers are kept, and each element is added as often as it is
 * referred to, which is good for a few elements of large tables. */
void translate_init(struct translate *t, const struct translate_from *from,
	const struct translate_ops *ops, void *to, bool keep_strings, uint32_t *memory);

NODISCARD enum status translate_new_string(struct translate *t, uint32_t id, uint32_t *out);
NODISCARD enum status translate_function(struct translate *t, uint32_t id, uint32_t *out);
NODISCARD enum status translate_mapping(struct translate *t, uint32_t id, uint32_t *out);
NODISCARD enum status translate_location(struct translate *t, uint32_t id, uint32_t *out);

NODISCARD static inline enum status translate_string(
	struct translate *t, uint32_t id, uint32_t *out)
{
	if (!t->strings || t->strings[id] == TRANSLATE_UNSET)
		return translate_new_string(t, id, out);
	*out = t->strings[id];
	return OK;
}
