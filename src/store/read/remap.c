/* SPDX-License-Identifier: Apache-2.0 */

#include "store/read/remap.h"
#include <stdlib.h>

#define UNSET UINT32_MAX

enum status remap_init(struct remap *r, const struct tabs *from, struct profile *to,
	struct budget *b, struct err *e)
{
	*r = (struct remap){ .from = from, .to = to, .first = to->locations.len == 1 };
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

uint64_t remap_bytes(const struct tabs *from)
{
	return ((uint64_t)from->location_count + from->function_count + from->mapping_count) *
	       sizeof(uint32_t);
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

static bool same_location(const struct profile *p, uint32_t id, const struct profile_location *l,
	const struct profile_line *lines)
{
	if (id >= p->locations.len)
		return false;
	const struct profile_location *x = &p->locations.v[id];
	return x->address == l->address && x->mapping == l->mapping && x->kind == l->kind &&
	       x->line_count == l->line_count &&
	       (l->line_count == 0 || memcmp(p->lines.v + x->line_first, lines,
					      l->line_count * sizeof(*lines)) == 0);
}

static bool is_null(const struct profile_location *l)
{
	return l->mapping == 0 && l->address == 0 && l->kind == 0 && l->line_count == 0;
}

/* The one after the one before is the first guess: sources are in the same order. */
static enum status add_location(struct remap *r, const struct profile_location *l,
	const struct profile_line *lines, uint32_t *out)
{
	if (r->first && !is_null(l))
		return profile_append_location(r->to, l, lines, l->line_count, out);
	if (same_location(r->to, r->last + 1, l, lines)) {
		*out = ++r->last;
		return OK;
	}
	enum status s = profile_add_location(r->to, l, lines, l->line_count, out);
	if (s == OK)
		r->last = *out;
	return s;
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
			s = add_location(r, &l, lines, &r->locations[location]);
		if (s != OK)
			return s;
	}
	*out = r->locations[location];
	return OK;
}
