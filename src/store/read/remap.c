/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A translation into a profile that first guesses where a location is: sources are in the same
 * order, so it mostly follows the previous one.
 */
#include "store/read/remap.h"

#include <stdlib.h>

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

static enum status add_string(void *to, struct str text, uint32_t *out)
{
	return profile_add_string(((struct remap *)to)->to, text, out);
}

static enum status add_function(void *to, const struct profile_function *f, uint32_t *out)
{
	return profile_add_function(((struct remap *)to)->to, f, out);
}

static enum status add_mapping(void *to, const struct profile_mapping *m, uint32_t *out)
{
	return profile_add_mapping(((struct remap *)to)->to, m, out);
}

static enum status add_location(void *to, const struct profile_location *l,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out)
{
	struct remap *r = to;
	if (r->first && !is_null(l))
		return profile_append_location(r->to, l, lines, line_count, out);
	if (same_location(r->to, r->last + 1, l, lines)) {
		*out = ++r->last;
		return OK;
	}
	enum status s = profile_add_location(r->to, l, lines, line_count, out);
	if (s == OK)
		r->last = *out;
	return s;
}

enum status remap_init(struct remap *r, const struct tabs *from, struct profile *to,
	struct budget *b, struct err *e)
{
	static const struct translate_ops ops = { add_string, add_function, add_mapping,
		add_location };
	const struct translate_from symbols = tabs_symbols(from);
	*r = (struct remap){ .to = to, .first = to->locations.len == 1 };
	enum status s = budget_array(
		b, translate_words(&symbols, false), sizeof(*r->memory), &r->memory, e);
	if (s == OK)
		translate_init(&r->symbols, &symbols, &ops, r, false, r->memory);
	return s;
}

uint64_t remap_bytes(const struct tabs *from)
{
	const struct translate_from symbols = tabs_symbols(from);
	return translate_words(&symbols, false) * sizeof(uint32_t);
}

void remap_deinit(struct remap *r)
{
	free(r->memory);
	*r = (struct remap){ 0 };
}

enum status remap_location(struct remap *r, uint32_t location, uint32_t *out)
{
	return location < r->symbols.from.location_count
		       ? translate_location(&r->symbols, location, out)
		       : E_CORRUPT;
}
