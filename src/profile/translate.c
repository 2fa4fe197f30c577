/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An element is translated after those it refers to: texts first, then functions and mappings, then
 * locations. Its new number is remembered if there is memory for it, so that it is looked up only
 * once.
 */
#include "profile/translate.h"

struct translate_from translate_from_profile(const struct profile *p)
{
	return (struct translate_from){ .strings = &p->strings,
		.functions = p->functions.v,
		.mappings = p->mappings.v,
		.locations = p->locations.v,
		.lines = p->lines.v,
		.string_count = p->strings.len,
		.function_count = (uint32_t)p->functions.len,
		.mapping_count = (uint32_t)p->mappings.len,
		.location_count = (uint32_t)p->locations.len };
}

static enum status add_string(void *to, struct str s, uint32_t *out)
{
	return profile_add_string(to, s, out);
}

static enum status add_function(void *to, const struct profile_function *f, uint32_t *out)
{
	return profile_add_function(to, f, out);
}

static enum status add_mapping(void *to, const struct profile_mapping *m, uint32_t *out)
{
	return profile_add_mapping(to, m, out);
}

static enum status add_location(void *to, const struct profile_location *l,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out)
{
	return profile_add_location(to, l, lines, line_count, out);
}

const struct translate_ops translate_to_profile = { add_string, add_function, add_mapping,
	add_location };

size_t translate_words(const struct translate_from *from, bool keep_strings)
{
	return (size_t)(keep_strings ? from->string_count : 0) + from->function_count +
	       from->mapping_count + from->location_count;
}

void translate_init(struct translate *t, const struct translate_from *from,
	const struct translate_ops *ops, void *to, bool keep_strings, uint32_t *memory)
{
	*t = (struct translate){ .from = *from, .ops = ops, .to = to };
	if (!memory)
		return;
	memset(memory, 0xFF, translate_words(from, keep_strings) * sizeof(*memory));
	t->locations = memory;
	t->functions = t->locations + from->location_count;
	t->mappings = t->functions + from->function_count;
	t->strings = keep_strings ? t->mappings + from->mapping_count : NULL;
}

static bool is_known(const uint32_t *numbers, uint32_t id, uint32_t *out)
{
	if (!numbers || numbers[id] == TRANSLATE_UNSET)
		return false;
	*out = numbers[id];
	return true;
}

static enum status keep(uint32_t *numbers, uint32_t id, uint32_t added, uint32_t *out)
{
	if (numbers)
		numbers[id] = added;
	*out = added;
	return OK;
}

enum status translate_new_string(struct translate *t, uint32_t id, uint32_t *out)
{
	uint32_t added;
	struct str s = t->from.strings ? strtab_get(t->from.strings, id) : t->from.texts[id];
	enum status st = t->ops->add_string(t->to, s, &added);
	return st == OK ? keep(t->strings, id, added, out) : st;
}

enum status translate_function(struct translate *t, uint32_t id, uint32_t *out)
{
	if (is_known(t->functions, id, out))
		return OK;
	struct profile_function f = t->from.functions[id];
	uint32_t added;
	enum status s = translate_string(t, f.name, &f.name);
	if (s == OK)
		s = translate_string(t, f.system_name, &f.system_name);
	if (s == OK)
		s = translate_string(t, f.filename, &f.filename);
	if (s == OK)
		s = t->ops->add_function(t->to, &f, &added);
	return s == OK ? keep(t->functions, id, added, out) : s;
}

enum status translate_mapping(struct translate *t, uint32_t id, uint32_t *out)
{
	if (is_known(t->mappings, id, out))
		return OK;
	struct profile_mapping m = t->from.mappings[id];
	uint32_t added;
	enum status s = translate_string(t, m.filename, &m.filename);
	if (s == OK)
		s = translate_string(t, m.build_id, &m.build_id);
	if (s == OK)
		s = t->ops->add_mapping(t->to, &m, &added);
	return s == OK ? keep(t->mappings, id, added, out) : s;
}

enum status translate_location(struct translate *t, uint32_t id, uint32_t *out)
{
	if (is_known(t->locations, id, out))
		return OK;
	struct profile_location l = t->from.locations[id];
	struct profile_line lines[PROFILE_LINES_MAX];
	uint32_t added;
	assert(l.line_count <= PROFILE_LINES_MAX);
	enum status s = translate_mapping(t, l.mapping, &l.mapping);
	for (uint32_t i = 0; i < l.line_count && s == OK; i++) {
		lines[i] = t->from.lines[l.line_first + i];
		s = translate_function(t, lines[i].function, &lines[i].function);
	}
	if (s == OK)
		s = t->ops->add_location(t->to, &l, lines, l.line_count, &added);
	return s == OK ? keep(t->locations, id, added, out) : s;
}
