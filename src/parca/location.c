/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations of both schemas: a struct with the same members in both, except that a function is a
 * struct of its own in v2 and members of the line in v1. Every member may be a dictionary, run-end
 * encoded or plain. A location in a dictionary (v2) is made once.
 */
#include "parca/columns.h"

#include <inttypes.h>

/* ---- members ---- */

/* Finds the columns again if `of` is another array (chunk or batch) than before. */
static void find_location_columns(struct location_columns *c, const struct arrow_array *of)
{
	if (c->of == of)
		return;
	*c = (struct location_columns){
		.of = of,
		.address = arrow_child(of, STR("address")),
		.frame_type = arrow_child(of, STR("frame_type")),
		.file = arrow_child(of, STR("mapping_file")),
		.build_id = arrow_child(of, STR("mapping_build_id")),
		.start = arrow_child(of, STR("mapping_start")),
		.limit = arrow_child(of, STR("mapping_limit")),
		.offset = arrow_child(of, STR("mapping_offset")),
		.lines = arrow_child(of, STR("lines")),
	};
}

static void find_line_columns(struct line_columns *c, const struct arrow_array *of)
{
	if (c->of == of)
		return;
	*c = (struct line_columns){
		.of = of,
		.line = arrow_child(of, STR("line")),
		.column = arrow_child(of, STR("column")),
		.function = arrow_child(of, STR("function")),
		.name = arrow_child(of, STR("function_name")),
		.system_name = arrow_child(of, STR("function_system_name")),
		.filename = arrow_child(of, STR("function_filename")),
		.start_line = arrow_child(of, STR("function_start_line")),
	};
}

/* ---- types of the members, checked once ---- */

struct member {
	const char *name;
	enum column_kind kind;
};

static enum status check_members(struct parca_decoder *d, const struct arrow_field *f,
	const struct member *members, size_t count)
{
	if (f->type != ARROW_STRUCT)
		return err_set(
			d->e, E_INVALID, "%.*s is not a struct", STR_ARG(str_sub(f->name, 0, 64)));
	for (uint32_t i = 0; i < f->child_count; i++) {
		const struct arrow_field *leaf = arrow_leaf(&f->children[i]);
		for (size_t j = 0; j < count; j++) {
			bool fits = leaf->type == ARROW_NULL;
			if (!str_eq(f->children[i].name, str_of(members[j].name)))
				continue;
			fits |= members[j].kind == COLUMN_TEXT && arrow_is_bytes(leaf);
			fits |= members[j].kind == COLUMN_INT && leaf->type == ARROW_INT;
			fits |= members[j].kind == COLUMN_LIST && arrow_is_list(leaf);
			fits |= members[j].kind == COLUMN_STRUCT && leaf->type == ARROW_STRUCT;
			if (!fits)
				return err_set(d->e, E_INVALID,
					"%s of a location has another type than in Parca's schema",
					members[j].name);
		}
	}
	return OK;
}

static const struct arrow_field *member_leaf(const struct arrow_field *f, const char *name)
{
	for (uint32_t i = 0; i < f->child_count; i++)
		if (str_eq(f->children[i].name, str_of(name)))
			return arrow_leaf(&f->children[i]);
	return NULL;
}

enum status parca_check_locations(struct parca_decoder *d, const struct arrow_field *locations)
{
	static const struct member location[] = { { "address", COLUMN_INT },
		{ "frame_type", COLUMN_TEXT }, { "mapping_file", COLUMN_TEXT },
		{ "mapping_build_id", COLUMN_TEXT }, { "mapping_start", COLUMN_INT },
		{ "mapping_limit", COLUMN_INT }, { "mapping_offset", COLUMN_INT },
		{ "lines", COLUMN_LIST } };
	static const struct member line[] = { { "line", COLUMN_INT }, { "column", COLUMN_INT },
		{ "function", COLUMN_STRUCT }, { "function_name", COLUMN_TEXT },
		{ "function_system_name", COLUMN_TEXT }, { "function_filename", COLUMN_TEXT },
		{ "function_start_line", COLUMN_INT } };
	static const struct member function[] = { { "name", COLUMN_TEXT },
		{ "system_name", COLUMN_TEXT }, { "filename", COLUMN_TEXT },
		{ "start_line", COLUMN_INT } };
	const struct arrow_field *f = arrow_leaf(locations);
	enum status s = check_members(d, f, location, ARRAY_COUNT(location));
	if (s == OK && !member_leaf(f, "address"))
		s = err_set(d->e, E_INVALID, "locations have no address");
	const struct arrow_field *lines = s == OK ? member_leaf(f, "lines") : NULL;
	if (!lines || lines->type == ARROW_NULL)
		return s;
	f = arrow_leaf(&lines->children[0]);
	s = check_members(d, f, line, ARRAY_COUNT(line));
	const struct arrow_field *fn = s == OK ? member_leaf(f, "function") : NULL;
	if (!fn || fn->type == ARROW_NULL)
		return s;
	return check_members(d, fn, function, ARRAY_COUNT(function));
}

/* ---- values ---- */

static uint64_t number_at(const struct arrow_array *a, uint64_t index)
{
	if (!a)
		return 0;
	struct arrow_value v = arrow_at(a, index);
	return v.array ? (uint64_t)arrow_int(&v) : 0;
}

static uint32_t line_number_at(const struct arrow_array *a, uint64_t index)
{
	uint64_t n = number_at(a, index);
	return n > UINT32_MAX ? 0 : (uint32_t)n;
}

static enum status text_at(struct parca_decoder *d, enum memo_kind kind,
	const struct arrow_array *a, uint64_t index, uint32_t *out)
{
	*out = 0;
	if (!a)
		return OK;
	struct arrow_value v = arrow_at(a, index);
	return parca_text(d, kind, &v, out);
}

/* Adds a function. One with only a system name gets it as its name too. */
static enum status add_function(struct parca_decoder *d, struct profile_function *fn, uint32_t *out)
{
	if (!fn->name)
		fn->name = fn->system_name;
	enum status s = profile_add_function(d->out, fn, out);
	return s == OK ? OK : err_set(d->e, s, "functions: %s", status_text(s));
}

/* v2: the function of the struct that `v` points to. */
static enum status function_at(struct parca_decoder *d, const struct arrow_value *v, uint32_t *out)
{
	uint32_t *memo = parca_memo(d, MEMO_FUNCTION, v);
	if (memo && *memo) {
		*out = *memo - 1;
		return OK;
	}
	struct profile_function fn = { 0 };
	enum status s =
		text_at(d, MEMO_STRING, arrow_child(v->array, STR("name")), v->index, &fn.name);
	if (s == OK)
		s = text_at(d, MEMO_STRING, arrow_child(v->array, STR("system_name")), v->index,
			&fn.system_name);
	if (s == OK)
		s = text_at(d, MEMO_STRING, arrow_child(v->array, STR("filename")), v->index,
			&fn.filename);
	fn.start_line = line_number_at(arrow_child(v->array, STR("start_line")), v->index);
	if (s == OK)
		s = add_function(d, &fn, out);
	if (s == OK && memo)
		*memo = *out + 1;
	return s;
}

static enum status line_at(struct parca_decoder *d, const struct arrow_array *lines, uint64_t index,
	struct profile_line *out)
{
	struct arrow_value v = arrow_at(lines, index);
	*out = (struct profile_line){ 0 };
	if (!v.array)
		return OK;
	struct line_columns *c = &d->line;
	find_line_columns(c, v.array);
	out->line = line_number_at(c->line, v.index);
	out->column = line_number_at(c->column, v.index);
	if (c->function) {
		struct arrow_value fn = arrow_at(c->function, v.index);
		return fn.array ? function_at(d, &fn, &out->function) : OK;
	}
	struct profile_function fn = { 0 };
	enum status s = text_at(d, MEMO_STRING, c->name, v.index, &fn.name);
	if (s == OK)
		s = text_at(d, MEMO_STRING, c->system_name, v.index, &fn.system_name);
	if (s == OK)
		s = text_at(d, MEMO_STRING, c->filename, v.index, &fn.filename);
	fn.start_line = line_number_at(c->start_line, v.index);
	return s == OK ? add_function(d, &fn, &out->function) : s;
}

/* ---- locations ---- */

static enum status lines_of(struct parca_decoder *d, const struct arrow_array *column,
	uint64_t index, struct profile_line lines[PROFILE_LINES_MAX], uint32_t *out_count)
{
	*out_count = 0;
	if (!column)
		return OK;
	struct arrow_value v = arrow_at(column, index);
	if (!v.array)
		return OK;
	uint64_t first, count;
	arrow_list(&v, &first, &count);
	if (count > PROFILE_LINES_MAX)
		return err_set(d->e, E_LIMIT, "a location of %" PRIu64 " lines; %d are taken",
			count, PROFILE_LINES_MAX);
	for (uint64_t i = first; i < first + count; i++) {
		struct profile_line *line = &lines[*out_count];
		enum status s = line_at(d, &v.array->children[0], i, line);
		if (s != OK)
			return s;
		/* A line whose function has no text is dropped. */
		*out_count += line->function != 0;
	}
	return OK;
}

static enum status mapping_of(
	struct parca_decoder *d, const struct location_columns *c, uint64_t index, uint32_t *out)
{
	struct profile_mapping m = {
		.start = number_at(c->start, index),
		.limit = number_at(c->limit, index),
		.offset = number_at(c->offset, index),
	};
	enum status s = text_at(d, MEMO_STRING, c->file, index, &m.filename);
	if (s == OK)
		s = text_at(d, MEMO_BUILD_ID, c->build_id, index, &m.build_id);
	if (s != OK)
		return s;
	s = profile_add_mapping(d->out, &m, out);
	return s == OK ? OK : err_set(d->e, s, "mappings: %s", status_text(s));
}

static enum status make_location(
	struct parca_decoder *d, const struct arrow_value *v, uint32_t *out)
{
	struct profile_line lines[PROFILE_LINES_MAX];
	uint32_t line_count, kind;
	struct location_columns *c = &d->location;
	find_location_columns(c, v->array);
	struct profile_location loc = { .address = number_at(c->address, v->index) };
	enum status s = mapping_of(d, c, v->index, &loc.mapping);
	if (s == OK)
		s = text_at(d, MEMO_FRAME_KIND, c->frame_type, v->index, &kind);
	if (s == OK)
		s = lines_of(d, c->lines, v->index, lines, &line_count);
	if (s != OK)
		return s;
	loc.kind = (uint8_t)kind;
	s = profile_add_location(d->out, &loc, lines, line_count, out);
	return s == OK ? OK : err_set(d->e, s, "locations: %s", status_text(s));
}

static enum status location_at(
	struct parca_decoder *d, const struct arrow_array *locations, uint64_t index, uint32_t *out)
{
	struct arrow_value v = arrow_at(locations, index);
	*out = 0;
	if (!v.array)
		return OK;
	uint32_t *memo = parca_memo(d, MEMO_LOCATION, &v);
	if (memo && *memo) {
		*out = *memo - 1;
		return OK;
	}
	enum status s = make_location(d, &v, out);
	if (s == OK && memo)
		*memo = *out + 1;
	return s;
}

enum status parca_stack(struct parca_decoder *d, const struct arrow_array *locations,
	uint64_t first, uint64_t count, uint32_t *out)
{
	/* One frame more than the limit, so that profile_add_stack() truncates and marks the
	 * stack. */
	uint64_t taken = MIN(count, (uint64_t)PROFILE_STACK_MAX + 1);
	d->frames += taken;
	if (d->frames > PARCA_FRAMES_MAX)
		return err_set(d->e, E_LIMIT, "stacks of more than %" PRIu64 " frames together",
			PARCA_FRAMES_MAX);
	VEC_CLEAR(&d->stack);
	if (!VEC_RESERVE(&d->stack, taken))
		return err_set(d->e, E_NOMEM, "stacks");
	for (uint64_t i = first; i < first + taken; i++) {
		uint32_t id;
		enum status s = location_at(d, locations, i, &id);
		if (s != OK)
			return s;
		if (id) /* 0: null, or without any information */
			d->stack.v[d->stack.len++] = id;
	}
	enum status s = profile_add_stack(d->out, d->stack.v, (uint32_t)d->stack.len, out);
	return s == OK ? OK : err_set(d->e, s, "stacks: %s", status_text(s));
}
