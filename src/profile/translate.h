/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile/translate: symbols of one set of tables put into another: texts, functions, mappings and
 * locations, each at most once, and only those that are asked for and what they refer to. The
 * tables on either side may be a profile's or others of the same elements (the store's).
 *
 * Layer 1 (may use base). Not thread safe. A failure of what takes the elements is passed on, and
 * leaves the translation as it was.
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

/* Numbers that the memory for a translation holds. */
size_t translate_words(const struct translate_from *from, bool keep_strings);
/* `memory`: translate_words() of them, the caller's, for as long; those of the locations are first.
 * NULL: nothing is kept, and each element is added as often as it is referred to. This serves a few
 * elements of large tables. */
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
