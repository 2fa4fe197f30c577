/* SPDX-License-Identifier: Apache-2.0 */
#include "store/view.h"

#include <stdlib.h>

#define UNSET UINT32_MAX

enum status remap_init(struct remap *r, const struct tabs *from, struct profile *to,
	struct budget *b, struct err *e)
{
	*r = (struct remap){ .from = from, .to = to };
	enum status s = budget_array(b, from->location_count, sizeof(uint32_t), &r->locations, e);
	if (s == OK)
		s = budget_array(b, from->function_count, sizeof(uint32_t), &r->functions, e);
	if (s == OK)
		s = budget_array(b, from->mapping_count, sizeof(uint32_t), &r->mappings, e);
	if (s != OK) {
		remap_deinit(r);
		return s;
	}
	memset(r->locations, 0xFF, from->location_count * sizeof(uint32_t));
	memset(r->functions, 0xFF, from->function_count * sizeof(uint32_t));
	memset(r->mappings, 0xFF, from->mapping_count * sizeof(uint32_t));
	return OK;
}

void remap_deinit(struct remap *r)
{
	free(r->locations);
	free(r->functions);
	free(r->mappings);
	*r = (struct remap){ 0 };
}

static enum status text(const struct remap *r, uint32_t id, uint32_t *out)
{
	return profile_add_string(r->to, r->from->symbol_strings[id], out);
}

static enum status remap_function(struct remap *r, uint32_t id, uint32_t *out)
{
	if (r->functions[id] == UNSET) {
		struct profile_function f = r->from->functions[id];
		enum status s = text(r, f.name, &f.name);
		if (s == OK)
			s = text(r, f.system_name, &f.system_name);
		if (s == OK)
			s = text(r, f.filename, &f.filename);
		if (s == OK)
			s = profile_add_function(r->to, &f, &r->functions[id]);
		if (s != OK)
			return s;
	}
	*out = r->functions[id];
	return OK;
}

static enum status remap_mapping(struct remap *r, uint32_t id, uint32_t *out)
{
	if (r->mappings[id] == UNSET) {
		struct profile_mapping m = r->from->mappings[id];
		enum status s = text(r, m.filename, &m.filename);
		if (s == OK)
			s = text(r, m.build_id, &m.build_id);
		if (s == OK)
			s = profile_add_mapping(r->to, &m, &r->mappings[id]);
		if (s != OK)
			return s;
	}
	*out = r->mappings[id];
	return OK;
}

enum status remap_location(struct remap *r, uint32_t location, uint32_t *out)
{
	if (location >= r->from->location_count)
		return E_CORRUPT;
	if (r->locations[location] == UNSET) {
		struct profile_location l = r->from->locations[location];
		struct profile_line lines[PROFILE_LINES_MAX];
		assert(l.line_count <= PROFILE_LINES_MAX);
		enum status s = remap_mapping(r, l.mapping, &l.mapping);
		for (uint32_t i = 0; i < l.line_count && s == OK; i++) {
			lines[i] = r->from->lines[l.line_first + i];
			s = remap_function(r, lines[i].function, &lines[i].function);
		}
		if (s == OK)
			s = profile_add_location(
				r->to, &l, lines, l.line_count, &r->locations[location]);
		if (s != OK)
			return s;
	}
	*out = r->locations[location];
	return OK;
}
