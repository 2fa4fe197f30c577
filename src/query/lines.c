/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: everything that texts decide is decided here, once for each frame of each location: the key
 * that makes frames one node, whether the filters of frames keep it, which conditions of the
 * filters of stacks it meets. After this a stack is judged by or-ing bits.
 */
#include "query/report.h"

struct maker {
	const struct query_stacks *s;
	const struct query_report_request *r;
	struct query_lines *out;
	struct map keys;
	struct err *e;
};

struct query_line_texts query_line_texts(
	const struct query_stacks *s, uint32_t location, uint32_t line)
{
	const struct profile *p = &s->tables;
	const struct profile_location *l = &p->locations.v[location];
	const struct profile_mapping *m = &p->mappings.v[l->mapping];
	struct query_line_texts t = { .mapping = profile_str(p, m->filename),
		.build_id = profile_str(p, m->build_id),
		.address = l->address,
		.has_mapping = l->mapping != 0 };
	if (line == QUERY_LINE_NONE)
		return t;
	const struct profile_line *at = &p->lines.v[line];
	const struct profile_function *f = &p->functions.v[at->function];
	t.system_name = profile_str(p, f->system_name);
	t.function = f->name ? profile_str(p, f->name) : t.system_name;
	t.file = profile_str(p, f->filename);
	t.line = at->line;
	t.start_line = f->start_line;
	t.has_function = t.function.len > 0;
	return t;
}

/* ---- filters ---- */

/* Whether the frame has the field at all, and what the condition says of it. */
static bool condition_holds(
	const struct filter_condition *c, const struct query_line_texts *t, bool *out_has)
{
	char name[QUERY_ADDRESS_NAME_MAX];
	*out_has = t->has_function;
	switch (c->field) {
	case FILTER_FUNCTION:
		return filter_text_holds(c, t->function);
	case FILTER_SYSTEM_NAME:
		return filter_text_holds(c, t->system_name);
	case FILTER_FILE:
		return filter_text_holds(c, t->file);
	case FILTER_BINARY:
		*out_has = t->has_mapping;
		return filter_text_holds(c, str_base_name(t->mapping));
	case FILTER_ADDRESS:
		*out_has = true;
		return filter_number_holds(c, t->address);
	case FILTER_LINE:
		return filter_number_holds(c, t->line);
	case FILTER_SHOWN:
		*out_has = true;
		if (t->has_function)
			return filter_text_holds(c, t->function);
		return filter_text_holds(
			c, query_address_name(str_base_name(t->mapping), t->address, name));
	}
	UNREACHABLE();
}

/* A frame that has not the field is kept, as in Parca; without a binary it has one of the name "".
 */
static bool frame_is_kept(const struct frame_filter *f, const struct query_line_texts *t)
{
	bool some = false;
	for (uint32_t i = 0; i < f->condition_count; i++) {
		bool has, holds = condition_holds(&f->conditions[i], t, &has);
		holds |= !has && f->conditions[i].field != FILTER_BINARY;
		if (!holds && !f->any)
			return false;
		some |= holds;
	}
	return some || !f->any;
}

static void judge(const struct maker *m, struct query_line *line)
{
	struct query_line_texts t = query_line_texts(m->s, line->location, line->line);
	uint32_t bit = 0;
	line->kept = true;
	for (uint32_t i = 0; i < m->r->filter_count; i++) {
		const struct frame_filter *f = &m->r->filters[i];
		if (!f->of_stack) {
			line->kept = line->kept && frame_is_kept(f, &t);
			continue;
		}
		for (uint32_t k = 0; k < f->condition_count; k++, bit++) {
			bool has, holds = condition_holds(&f->conditions[k], &t, &has);
			if (has && holds != filter_op_is_negative(f->conditions[k].op))
				line->seen |= (uint64_t)1 << bit;
		}
	}
	const struct filter_condition cut = {
		.field = FILTER_FUNCTION, .op = FILTER_CONTAINS, .text = m->r->sandwich
	};
	line->sandwich = cut.text.len > 0 && t.has_function && filter_text_holds(&cut, t.function);
}

/* The conditions of stacks, numbered in the order of the filters. */
static enum status number_conditions(struct maker *m)
{
	uint32_t bit = 0;
	for (uint32_t i = 0; i < m->r->filter_count; i++) {
		const struct frame_filter *f = &m->r->filters[i];
		m->out->some_frame |= f->some_frame;
		for (uint32_t k = 0; f->of_stack && k < f->condition_count; k++, bit++) {
			if (bit >= FILTER_CONDITIONS_MAX)
				return err_set(m->e, E_INVALID, "filter: more than %d conditions",
					FILTER_CONDITIONS_MAX);
			if (filter_op_is_negative(f->conditions[k].op))
				m->out->must_not |= (uint64_t)1 << bit;
			else
				m->out->must |= (uint64_t)1 << bit;
		}
	}
	return OK;
}

/* ---- keys ---- */

static bool key_equal(const void *ctx, uint32_t value, const void *key)
{
	return memcmp(&((const struct query_lines *)ctx)->keys[value], key,
		       sizeof(struct query_key)) == 0;
}

static struct query_key key_of(const struct maker *m, const struct query_line *line)
{
	const struct profile *p = &m->s->tables;
	const struct profile_location *l = &p->locations.v[line->location];
	unsigned by = m->r->by;
	struct query_key k = { 0 };
	if (line->line == QUERY_LINE_NONE) {
		k.mapping = l->mapping;
		k.address = l->address;
		return k;
	}
	const struct profile_line *at = &p->lines.v[line->line];
	const struct profile_function *f = &p->functions.v[at->function];
	if (by & QUERY_BY_SOURCE) {
		k.file = f->filename;
		k.line = at->line;
		k.mapping = by & QUERY_BY_MAPPING ? p->mappings.v[l->mapping].build_id : 0;
		return k;
	}
	k.name = f->name ? f->name : f->system_name;
	/* Of a mapping its file counts: the same file is mapped in many processes. */
	if (by & QUERY_BY_MAPPING)
		k.mapping = p->mappings.v[l->mapping].filename;
	if (by & QUERY_BY_FILE)
		k.file = f->filename;
	if (by & QUERY_BY_ADDRESS)
		k.address = l->address;
	return k;
}

static enum status find_key(struct maker *m, struct query_line *line)
{
	struct query_key key = key_of(m, line);
	uint64_t hash = hash64(&key, sizeof(key));
	line->key = map_find(&m->keys, hash, key_equal, m->out, &key);
	if (line->key != MAP_NONE)
		return OK;
	line->key = m->out->key_count;
	m->out->keys[m->out->key_count++] = key;
	return map_insert(&m->keys, hash, line->key)
		       ? OK
		       : err_set(m->e, E_NOMEM, "%u functions", m->out->key_count);
}

/* ---- lines ---- */

static bool is_unnamed(const struct maker *m, uint32_t location)
{
	const struct profile *p = &m->s->tables;
	const struct profile_location *l = &p->locations.v[location];
	return l->line_count == 0 || m->s->unnamed[location];
}

static enum status add_location(struct maker *m, uint32_t location, uint32_t *at)
{
	const struct profile_location *l = &m->s->tables.locations.v[location];
	bool unnamed = is_unnamed(m, location);
	uint32_t count = unnamed ? 1 : l->line_count;
	m->out->first[location] = *at;
	for (uint32_t i = 0; i < count; i++) {
		struct query_line *line = &m->out->v[(*at)++];
		uint32_t number = l->line_first + count - 1 - i;
		*line = (struct query_line){ .location = location,
			.line = unnamed ? QUERY_LINE_NONE : number,
			.inlined = i > 0 };
		/* A function without any name is none. */
		if (!unnamed && !query_line_texts(m->s, location, number).has_function)
			line->line = QUERY_LINE_NONE;
		judge(m, line);
		enum status s = find_key(m, line);
		if (s != OK)
			return s;
	}
	return OK;
}

enum status query_lines_make(const struct query_stacks *s, const struct query_report_request *r,
	struct arena *a, struct query_lines *out, struct err *e)
{
	const struct profile *p = &s->tables;
	struct query_lines made = { 0 };
	struct maker m = { .s = s, .r = r, .out = &made, .e = e };
	size_t locations = p->locations.len, lines = 0;
	for (size_t i = 0; i < locations; i++)
		lines += MAX(p->locations.v[i].line_count, 1u);
	made.v = ARENA_ARRAY(a, struct query_line, lines);
	made.first = ARENA_ARRAY(a, uint32_t, locations + 1);
	made.keys = ARENA_ARRAY(a, struct query_key, lines);
	if (lines >= QUERY_LINE_NONE || !made.v || !made.first || !made.keys)
		return err_set(e, arena_status(a), "%zu frames in %zu locations", lines, locations);
	uint32_t at = 0;
	enum status st = number_conditions(&m);
	for (uint32_t i = 0; st == OK && i < locations; i++)
		st = add_location(&m, i, &at);
	made.first[locations] = at;
	map_deinit(&m.keys);
	if (st == OK)
		*out = made;
	return st;
}
