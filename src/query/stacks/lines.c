/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: everything that depends on texts is decided here, once for each frame of each location: its
 * key (frames of equal key are one node), whether the frame filters keep it, and which conditions
 * of the stack filters it meets. After this a stack is judged by or-ing bits.
 */
#include "query/stacks/lines.h"
#include "query/plan/plan.h"

#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>

/* Locations between two checks whether the client still wants the answer: each may be matched
 * against 64 regular expressions. */
#define JUDGED_AT_ONCE 16

struct maker {
	struct profile *p;
	const struct query_report_request *r;
	struct query_lines *out;
	struct map keys;
	uint32_t *binaries; /* base name of each mapping; only with QUERY_BY_SHOWN */
	bool judges;        /* there are filters, or a sandwich */
	struct err *e;
};

struct query_line_texts query_line_texts(const struct profile *p, const struct query_line *of)
{
	const struct profile_location *l = &p->locations.v[of->location];
	const struct profile_mapping *m = &p->mappings.v[l->mapping];
	struct query_line_texts t = { .mapping = profile_str(p, m->filename),
		.build_id = profile_str(p, m->build_id),
		.address = l->address,
		.has_mapping = l->mapping != 0 };
	if (of->line == QUERY_LINE_NONE)
		return t;
	const struct profile_line *at = &p->lines.v[of->line];
	const struct profile_function *f = &p->functions.v[at->function];
	t.system_name = profile_str(p, f->system_name);
	t.function = f->name ? profile_str(p, f->name) : t.system_name;
	t.file = profile_str(p, f->filename);
	t.line = at->line;
	t.start_line = f->start_line;
	t.has_function = t.function.len > 0;
	return t;
}

uint8_t query_lines_differ(
	const struct profile *p, const struct query_line *a, const struct query_line *b)
{
	const struct profile_location *l = &p->locations.v[a->location];
	const struct profile_location *m = &p->locations.v[b->location];
	const struct profile_mapping *lm = &p->mappings.v[l->mapping];
	const struct profile_mapping *mm = &p->mappings.v[m->mapping];
	static const struct profile_line no_line;
	const struct profile_line *x = a->line != QUERY_LINE_NONE ? &p->lines.v[a->line] : &no_line;
	const struct profile_line *y = b->line != QUERY_LINE_NONE ? &p->lines.v[b->line] : &no_line;
	const struct profile_function *f = &p->functions.v[x->function];
	const struct profile_function *g = &p->functions.v[y->function];
	bool both = (l->mapping != 0) == (m->mapping != 0);
	unsigned differ = (both && lm->filename == mm->filename ? 0 : QUERY_MIXED_MAPPING) |
			  (both && lm->build_id == mm->build_id ? 0 : QUERY_MIXED_BUILD_ID) |
			  (l->address == m->address ? 0 : QUERY_MIXED_ADDRESS) |
			  (x->line == y->line ? 0 : QUERY_MIXED_LINE) |
			  (f->start_line == g->start_line ? 0 : QUERY_MIXED_START_LINE) |
			  (f->system_name == g->system_name ? 0 : QUERY_MIXED_SYSTEM_NAME) |
			  (f->filename == g->filename ? 0 : QUERY_MIXED_FILE) |
			  (a->inlined == b->inlined ? 0 : QUERY_MIXED_INLINED);
	return (uint8_t)differ;
}

struct str query_address_name(
	struct str binary, uint64_t address, char text[QUERY_ADDRESS_NAME_MAX])
{
	int len = snprintf(text, QUERY_ADDRESS_NAME_MAX, "%.*s%s0x%" PRIx64,
		(int)MIN(binary.len, 256u), binary.p, binary.len ? "+" : "", address);
	return str_make(text, (size_t)len);
}

struct str query_line_name(const struct query_line_texts *t, char text[QUERY_ADDRESS_NAME_MAX])
{
	return t->has_function ? t->function
			       : query_address_name(str_base_name(t->mapping), t->address, text);
}

/* ---- filters ---- */

/* Whether the condition holds for the frame; *out_has: the frame has the field at all. */
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
		return filter_text_holds(c, query_line_name(t, name));
	}
	UNREACHABLE();
}

/* A frame without the field is kept, as in Parca; a frame without a binary has the binary "". */
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
	uint32_t bit = 0;
	line->kept = true;
	if (!m->judges)
		return;
	struct query_line_texts t = query_line_texts(m->p, line);
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

/* Code without a binary, such as an interpreter's, gets the name of its source file in its place,
 * so that equally named functions of two files stay apart. Of "__init__.py" the folder is part of
 * the name ("requests/__init__.py"), as many files have this name. */
static enum status name_by_source(struct maker *m, uint32_t filename, uint32_t *out)
{
	struct str path = profile_str(m->p, filename), name = str_base_name(path);
	if (str_eq(name, STR("__init__.py")) && path.len > name.len) {
		struct str folder = str_sub(path, 0, path.len - name.len - 1);
		size_t from = folder.len - str_base_name(folder).len;
		name = str_sub(path, from, path.len);
	}
	return profile_add_string(m->p, name, out);
}

/* The key of a frame as it is shown: frames with the same name, binary and kind are one. */
static enum status shown_key(struct maker *m, const struct query_line *line, struct query_key *k,
	struct query_origin *origin)
{
	static const struct profile_line no_line;
	const struct profile_location *l = &m->p->locations.v[line->location];
	const struct profile_line *at =
		line->line != QUERY_LINE_NONE ? &m->p->lines.v[line->line] : &no_line;
	const struct profile_function *f = &m->p->functions.v[at->function];
	bool machine_code = l->kind == FRAME_NATIVE || l->kind == FRAME_KERNEL;
	enum status s = OK;
	*origin = (struct query_origin){ f->filename, f->start_line ? f->start_line : at->line };
	k->name = f->name ? f->name : f->system_name;
	k->mapping = m->binaries[l->mapping];
	k->file = l->kind;
	if (!k->name) {
		char text[QUERY_ADDRESS_NAME_MAX];
		struct str binary = profile_str(m->p, k->mapping);
		s = profile_add_string(
			m->p, query_address_name(binary, l->address, text), &k->name);
	}
	if (s == OK && !k->mapping && origin->file && !machine_code)
		s = name_by_source(m, origin->file, &k->mapping);
	if (m->r->by & QUERY_BY_NAME)
		k->mapping = k->file = 0;
	return s;
}

static void join_origins(struct query_origin *to, const struct query_origin *from)
{
	if (to->file == 0)
		to->file = from->file;
	if (to->line == 0 || (from->line != 0 && from->line < to->line))
		to->line = from->line;
}

static struct query_key key_of(const struct maker *m, const struct query_line *line)
{
	const struct profile *p = m->p;
	const struct profile_location *l = &p->locations.v[line->location];
	unsigned by = m->r->by;
	struct query_key k = { 0 };
	if (by & QUERY_BY_LOCATION) {
		k.mapping = p->mappings.v[l->mapping].build_id;
		k.address = l->address;
		return k;
	}
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
	/* The mapping's file is the key: the same file is mapped in many processes. */
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
	struct query_key key = { 0 };
	struct query_origin origin;
	bool shown = m->r->by & QUERY_BY_SHOWN;
	enum status s = OK;
	if (shown)
		s = shown_key(m, line, &key, &origin);
	else
		key = key_of(m, line);
	if (s != OK)
		return err_set(m->e, s, "%u functions", m->out->key_count);
	uint64_t hash = hash64(&key, sizeof(key));
	line->key = map_find(&m->keys, hash, key_equal, m->out, &key);
	if (line->key == MAP_NONE) {
		line->key = m->out->key_count;
		m->out->keys[m->out->key_count++] = key;
		if (shown)
			m->out->origins[line->key] = origin;
		if (!map_insert(&m->keys, hash, line->key))
			return err_set(m->e, E_NOMEM, "%u functions", m->out->key_count);
	} else if (shown) {
		join_origins(&m->out->origins[line->key], &origin);
	}
	return OK;
}

/* ---- lines ---- */

static bool has_name(const struct profile *p, uint32_t line)
{
	const struct profile_function *f = &p->functions.v[p->lines.v[line].function];
	return f->name || f->system_name;
}

static enum status add_location(struct maker *m, uint32_t location, uint32_t *at)
{
	/* A copy, because pointers into tables must not be kept while they may grow. */
	struct profile_location l = m->p->locations.v[location];
	/* On the page each frame has a name, if only an address; in Parca's reports only functions
	 * have one. */
	bool shown = m->r->by & QUERY_BY_SHOWN;
	bool unnamed = l.line_count == 0 || (l.unnamed && !shown);
	uint32_t count = unnamed ? 1 : l.line_count;
	m->out->first[location] = *at;
	for (uint32_t i = 0; i < count; i++) {
		struct query_line *line = &m->out->v[(*at)++];
		uint32_t number = l.line_first + count - 1 - i;
		*line = (struct query_line){ .location = location,
			.line = unnamed || (!shown && !has_name(m->p, number)) ? QUERY_LINE_NONE
									       : number,
			.inlined = i > 0 };
		judge(m, line);
		enum status s = find_key(m, line);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status find_binaries(struct maker *m, struct arena *a)
{
	if (!(m->r->by & QUERY_BY_SHOWN))
		return OK;
	m->binaries = ARENA_ARRAY(a, uint32_t, m->p->mappings.len);
	if (!m->binaries)
		return err_set(m->e, arena_status(a), "%zu mappings", m->p->mappings.len);
	for (size_t i = 0; i < m->p->mappings.len; i++) {
		struct str path = profile_str(m->p, m->p->mappings.v[i].filename);
		enum status s = profile_add_string(m->p, str_base_name(path), &m->binaries[i]);
		if (s != OK)
			return err_set(m->e, s, "name of mapping %zu", i);
	}
	return OK;
}

enum status query_lines_make(struct profile *p, const struct query_report_request *r,
	struct arena *a, struct query_lines *out, struct err *e)
{
	struct query_lines made = { 0 };
	struct maker m = { .p = p, .r = r, .out = &made, .e = e };
	size_t locations = p->locations.len, lines = 0;
	bool shown = r->by & QUERY_BY_SHOWN;
	const struct samples_query until = { .cancel = r->cancel,
		.cancel_ctx = r->cancel_ctx,
		.deadline_ns = r->deadline_ns ? r->deadline_ns
					      : clock_monotonic_ns() + QUERY_TIME_MAX_NS };
	m.judges = r->filter_count > 0 || r->sandwich.len > 0;
	for (size_t i = 0; i < locations; i++)
		lines += MAX(p->locations.v[i].line_count, 1u);
	made.v = ARENA_ARRAY(a, struct query_line, lines);
	made.first = ARENA_ARRAY(a, uint32_t, locations + 1);
	made.keys = ARENA_ARRAY(a, struct query_key, lines);
	if (shown)
		made.origins = ARENA_ARRAY(a, struct query_origin, lines);
	if (lines >= INT32_MAX || !made.v || !made.first || !made.keys || (shown && !made.origins))
		return err_set(e, arena_status(a), "%zu frames in %zu locations", lines, locations);
	uint32_t at = 0;
	enum status st = find_binaries(&m, a);
	if (st == OK)
		st = number_conditions(&m);
	for (uint32_t i = 0; st == OK && i < locations; i++) {
		if (m.judges && i % JUDGED_AT_ONCE == 0)
			st = samples_stopped(&until, e);
		if (st == OK)
			st = add_location(&m, i, &at);
	}
	made.first[locations] = at;
	map_deinit(&m.keys);
	if (st == OK)
		*out = made;
	return st;
}
