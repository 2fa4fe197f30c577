/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples with the same stack and labels become one row of values, a column for each sample type.
 * Locations, functions and strings get their ids in order of first use. Readers take the first
 * mapping for the main program, so it is the program whose stacks have the largest values; then
 * come other programs, shared libraries, the kernel and other pseudo files ("[…]").
 *
 * The two label sets of a sample are united (`resource` wins); sets that are equal when united are
 * one, so that the rows are distinct.
 *
 * In a stream samples are rows already, and all texts of the profile are written, with the
 * profile's own numbers.
 */
#include "pb/pb.h"
#include "pprof/pprof.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* The most sample types of one file. */
#define COLUMNS_MAX 64

struct order {
	uint32_t *index; /* by the profile's index: id; 0: not used so far */
	VEC(uint32_t) list;
};

struct row {
	uint32_t stack;
	uint32_t labels; /* sets[] */
};

struct united {
	uint32_t first; /* labels[first .. + count) */
	uint32_t count;
};

struct set_pair {
	uint32_t resource, own;
	uint32_t set; /* sets[] */
};

enum mapping_rank { RANK_MAIN, RANK_PROGRAM, RANK_LIBRARY, RANK_PSEUDO, RANK_COUNT };

/* A mapping's flags about its locations, and its place among mappings. */
struct mapping_flags {
	bool functions, filenames, lines, inlined;
	uint8_t rank;    /* enum mapping_rank */
	uint64_t weight; /* sum of the values of stacks whose outermost program this mapping is */
};

struct encoder {
	const struct profile *p;
	struct buf *out;
	bool no_memory;
	bool own_strings; /* in a stream: strings are the profile's */
	struct strtab strings;
	uint32_t *string_index;
	struct order mappings, locations, functions;
	struct mapping_flags *flags;   /* by the profile's mapping */
	bool has_programs;             /* a mapping is of RANK_PROGRAM */
	uint32_t *head_column;         /* by head: column; UINT32_MAX: not used */
	uint32_t columns[COLUMNS_MAX]; /* by column: a type */
	uint32_t column_count;
	VEC(struct row) rows;
	VEC(int64_t) values; /* column_count for each row */
	struct map row_index;
	VEC(struct profile_label) labels;
	VEC(struct united) sets;
	struct map set_index;
	VEC(struct set_pair) pairs;
	struct map pair_index;
	VEC(uint32_t) comments; /* in the order of the file */
	uint32_t last_comments; /* string id of the comments taken last */
};

/* ---- indices ---- */

static uint32_t text_index(struct encoder *c, struct str s)
{
	uint32_t id = 0;
	if (strtab_intern(&c->strings, s, &id) != OK)
		c->no_memory = true;
	return id;
}

/* Adds a text that may be missing in the profile. In a stream it follows the profile's texts. */
static uint32_t new_text(struct encoder *c, struct str s)
{
	uint32_t id = text_index(c, s);
	return id && c->own_strings ? c->p->strings.len + id - 1 : id;
}

static uint32_t string_index(struct encoder *c, uint32_t id)
{
	if (c->own_strings)
		return id;
	if (id && !c->string_index[id])
		c->string_index[id] = text_index(c, profile_str(c->p, id));
	return c->string_index[id];
}

static bool order_init(struct order *o, size_t count)
{
	o->index = calloc(count, sizeof(*o->index));
	return o->index != NULL;
}

static void order_deinit(struct order *o)
{
	free(o->index);
	VEC_FREE(&o->list);
}

/* True when the element is new. */
static bool order_take(struct encoder *c, struct order *o, uint32_t id)
{
	if (id == 0 || o->index[id])
		return false;
	if (!VEC_PUSH(&o->list, id)) {
		c->no_memory = true;
		return false;
	}
	o->index[id] = (uint32_t)o->list.len;
	return true;
}

static void take_location(struct encoder *c, uint32_t id)
{
	if (!order_take(c, &c->locations, id))
		return;
	const struct profile_location *l = &c->p->locations.v[id];
	struct mapping_flags *flags = &c->flags[l->mapping];
	order_take(c, &c->mappings, l->mapping);
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *line = &c->p->lines.v[l->line_first + i];
		if (line->function == 0)
			continue;
		order_take(c, &c->functions, line->function);
		flags->functions = true;
		flags->filenames |= c->p->functions.v[line->function].filename != 0;
		flags->lines |= line->line != 0;
		flags->inlined |= l->line_count > 1;
	}
}

static void take_stack(struct encoder *c, uint32_t stack)
{
	const struct profile_stack *s = &c->p->stacks.v[stack];
	for (uint32_t i = 0; i < s->count; i++)
		take_location(c, c->p->stack_locations.v[s->first + i]);
}

/* "libc.so.6", "/usr/lib/x.so", "ld-linux-x86-64.so.2" */
static bool is_library(struct str file)
{
	size_t slash = str_rindex(file, '/');
	for (size_t i = slash < file.len ? slash : 0; i + 3 <= file.len; i++)
		if (str_starts(str_sub(file, i, file.len), STR(".so")) &&
			(i + 3 == file.len || file.p[i + 3] == '.' || file.p[i + 3] == ' '))
			return true;
	return false;
}

static uint8_t rank_of(struct str file)
{
	if (file.len == 0 || file.p[0] == '[')
		return RANK_PSEUDO;
	return is_library(file) ? RANK_LIBRARY : RANK_PROGRAM;
}

/* Leaf first. */
static void weigh(struct encoder *c, const uint32_t *locations, uint32_t count, int64_t value)
{
	while (c->has_programs && count-- > 0) {
		struct mapping_flags *m = &c->flags[c->p->locations.v[locations[count]].mapping];
		if (m->rank != RANK_PROGRAM)
			continue;
		m->weight += value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
		return;
	}
}

/* Orders mappings by rank; the order within a rank is kept. */
static void order_mappings(struct encoder *c)
{
	uint32_t id = 0, main = 0;
	for (size_t i = 0; i < c->mappings.list.len; i++) {
		uint32_t m = c->mappings.list.v[i];
		if (c->flags[m].rank == RANK_PROGRAM && c->flags[m].weight > c->flags[main].weight)
			main = m;
	}
	if (main)
		c->flags[main].rank = RANK_MAIN;
	for (int rank = 0; rank < RANK_COUNT; rank++)
		for (size_t i = 0; i < c->mappings.list.len; i++)
			if (c->flags[c->mappings.list.v[i]].rank == rank)
				c->mappings.index[c->mappings.list.v[i]] = ++id;
}

/* ---- columns ---- */

static bool same_text(const struct profile *p, uint32_t a, uint32_t b)
{
	return a == b || str_eq(profile_str(p, a), profile_str(p, b));
}

static enum status take_column(struct encoder *c, uint32_t head, struct err *e)
{
	const struct profile *p = c->p;
	uint32_t id = p->heads.v[head].type;
	const struct profile_type *t = &p->types.v[id];
	if (c->head_column[head] != UINT32_MAX)
		return OK;
	for (uint32_t i = 0; i < c->column_count; i++) {
		const struct profile_type *known = &p->types.v[c->columns[i]];
		if (!same_text(p, known->period_type, t->period_type) ||
			!same_text(p, known->period_unit, t->period_unit))
			return err_set(e, E_INVALID,
				"profiles of different period types (%.*s and %.*s)",
				STR_ARG(profile_str(p, known->period_type)),
				STR_ARG(profile_str(p, t->period_type)));
		if (same_text(p, known->sample_type, t->sample_type) &&
			same_text(p, known->sample_unit, t->sample_unit)) {
			c->head_column[head] = i;
			return OK;
		}
	}
	if (c->column_count == COLUMNS_MAX)
		return err_set(e, E_LIMIT, "more than %d sample types", COLUMNS_MAX);
	c->columns[c->column_count] = id;
	c->head_column[head] = c->column_count++;
	return OK;
}

/* Takes the sample types of the samples, or of all heads if there are no samples. */
static enum status take_columns(struct encoder *c, struct err *e)
{
	enum status s = OK;
	for (size_t i = 0; s == OK && i < c->p->samples.len; i++)
		s = take_column(c, c->p->samples.v[i].head, e);
	for (uint32_t i = 1; s == OK && c->p->samples.len == 0 && i < c->p->heads.len; i++)
		s = take_column(c, i, e);
	return s;
}

/* ---- rows ---- */

static bool set_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct encoder *c = ctx;
	const struct united *a = &c->sets.v[value], *b = key;
	return a->count == b->count &&
	       (a->count == 0 || memcmp(c->labels.v + a->first, c->labels.v + b->first,
					 a->count * sizeof(*c->labels.v)) == 0);
}

/* Merges both sets, which are sorted by name, at the end of c->labels. */
static bool unite(struct encoder *c, uint32_t resource, uint32_t own, struct united *out)
{
	const struct profile *p = c->p;
	size_t na = p->label_sets.v[resource].count, nb = p->label_sets.v[own].count;
	const struct profile_label *a = na ? &p->labels.v[p->label_sets.v[resource].first] : NULL;
	const struct profile_label *b = nb ? &p->labels.v[p->label_sets.v[own].first] : NULL;
	*out = (struct united){ .first = (uint32_t)c->labels.len };
	while (na || nb) {
		int order = !na ? 1 : !nb ? -1 : 0;
		if (order == 0)
			order = str_cmp(profile_str(p, a->name), profile_str(p, b->name));
		if (!VEC_PUSH(&c->labels, order <= 0 ? *a : *b))
			return false;
		out->count++;
		if (order <= 0) {
			a++;
			na--;
		}
		if (order >= 0) {
			b++;
			nb--;
		}
	}
	return true;
}

static bool intern_set(struct encoder *c, uint32_t resource, uint32_t own, uint32_t *out)
{
	struct united set;
	if (!unite(c, resource, own, &set))
		return false;
	const struct profile_label *first = set.count ? &c->labels.v[set.first] : NULL;
	uint64_t h = hash64(first, set.count * sizeof(*first));
	*out = map_find(&c->set_index, h, set_equal, c, &set);
	if (*out != MAP_NONE) {
		c->labels.len = set.first;
		return true;
	}
	*out = (uint32_t)c->sets.len;
	return VEC_PUSH(&c->sets, set) && map_insert(&c->set_index, h, *out);
}

static bool pair_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct encoder *c = ctx;
	const struct set_pair *a = &c->pairs.v[value], *b = key;
	return a->resource == b->resource && a->own == b->own;
}

static bool labels_of(struct encoder *c, const struct profile_sample *s, uint32_t *out)
{
	struct set_pair pair = { s->resource, s->own, 0 };
	uint64_t h = hash_u64((uint64_t)s->resource << 32 | s->own);
	uint32_t i = map_find(&c->pair_index, h, pair_equal, c, &pair);
	if (i == MAP_NONE) {
		i = (uint32_t)c->pairs.len;
		if (!intern_set(c, s->resource, s->own, &pair.set) || !VEC_PUSH(&c->pairs, pair) ||
			!map_insert(&c->pair_index, h, i))
			return false;
	}
	*out = c->pairs.v[i].set;
	return true;
}

static bool row_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct encoder *c = ctx;
	const struct row *a = &c->rows.v[value], *b = key;
	return a->stack == b->stack && a->labels == b->labels;
}

static int64_t add_clamped(int64_t a, int64_t b)
{
	int64_t sum;
	if (__builtin_add_overflow(a, b, &sum))
		return a < 0 ? INT64_MIN : INT64_MAX;
	return sum;
}

static bool add_to_row(struct encoder *c, const struct profile_sample *s)
{
	struct row row = { .stack = s->stack };
	if (!labels_of(c, s, &row.labels))
		return false;
	uint64_t h = hash_u64((uint64_t)row.stack << 32 | row.labels);
	uint32_t i = map_find(&c->row_index, h, row_equal, c, &row);
	if (i == MAP_NONE) {
		i = (uint32_t)c->rows.len;
		if (!VEC_PUSH(&c->rows, row) || !map_insert(&c->row_index, h, i))
			return false;
		for (uint32_t j = 0; j < c->column_count; j++)
			if (!VEC_PUSH(&c->values, 0))
				return false;
		take_stack(c, s->stack);
	}
	int64_t *v = &c->values.v[(size_t)i * c->column_count + c->head_column[s->head]];
	*v = add_clamped(*v, s->value);
	const struct profile_stack *stack = &c->p->stacks.v[s->stack];
	if (stack->count > 0)
		weigh(c, c->p->stack_locations.v + stack->first, stack->count, s->value);
	return true;
}

/* ---- writing ---- */

static void put_value_type(struct encoder *c, uint32_t field, uint32_t type, uint32_t unit)
{
	size_t begun = pb_begin(c->out, field);
	pb_put_u64(c->out, 1, string_index(c, type));
	pb_put_u64(c->out, 2, string_index(c, unit));
	pb_end(c->out, begun);
}

struct row_parts {
	const uint32_t *locations; /* locations of the profile, leaf first */
	uint32_t location_count;
	const int64_t *values;
	const struct profile_label *labels;
	uint32_t label_count;
};

static void put_number(struct encoder *c, uint64_t key, int64_t number, uint64_t unit)
{
	size_t label = pb_begin(c->out, 3);
	pb_put_u64(c->out, 1, key);
	pb_put_i64(c->out, 3, number);
	pb_put_u64(c->out, 4, unit);
	pb_end(c->out, label);
}

/* Parses a number in the form in which a decoder writes it: "007" is a text. */
static bool parse_number(struct str text, int64_t *out)
{
	uint64_t magnitude;
	char again[24];
	bool negative = str_starts(text, STR("-"));
	if (!str_parse_u64(str_sub(text, negative, text.len), 10, &magnitude) ||
		magnitude > (uint64_t)INT64_MAX + negative)
		return false;
	*out = (int64_t)(negative ? 0 - magnitude : magnitude);
	(void)snprintf(again, sizeof(again), "%" PRId64, *out);
	return str_eq(text, str_of(again));
}

/* Writes "name=5,other=7:unit" as labels. Parts of another form did not come from a decoder and are
 * dropped. */
static void put_numbers(struct encoder *c, struct str packed)
{
	struct str one;
	while (str_split(&packed, ',', &one)) {
		size_t equals = str_index(one, '=');
		struct str name = str_sub(one, 0, equals), rest = str_sub(one, equals + 1, one.len);
		size_t colon = str_index(rest, ':');
		struct str unit = str_sub(rest, colon + 1, rest.len);
		int64_t number;
		if (name.len && parse_number(str_sub(rest, 0, colon), &number))
			put_number(c, new_text(c, name), number, unit.len ? new_text(c, unit) : 0);
	}
}

/* Collects the comments of all samples. */
static void take_comments(struct encoder *c, uint32_t packed)
{
	struct str all = profile_str(c->p, packed), one;
	if (c->last_comments == packed)
		return;
	c->last_comments = packed;
	while (str_split(&all, PROFILE_COMMENTS_END, &one)) {
		uint32_t id = new_text(c, one);
		size_t i = 0;
		while (i < c->comments.len && c->comments.v[i] != id)
			i++;
		bool room = id && i == c->comments.len && i < PROFILE_COMMENTS_MAX;
		if (room && !VEC_PUSH(&c->comments, id))
			c->no_memory = true;
	}
}

static void put_label(struct encoder *c, const struct profile_label *l)
{
	struct str name = profile_str(c->p, l->name), value = profile_str(c->p, l->value);
	int64_t number;
	if (str_eq(name, STR(PROFILE_LABEL_COMMENTS))) {
		take_comments(c, l->value);
		return;
	}
	if (str_eq(name, STR(PROFILE_LABEL_NUMBERS))) {
		put_numbers(c, value);
		return;
	}
	if (str_eq(name, STR(PROFILE_LABEL_BYTES)) && parse_number(value, &number)) {
		put_number(c, string_index(c, l->name), number, 0);
		return;
	}
	size_t label = pb_begin(c->out, 3);
	pb_put_u64(c->out, 1, string_index(c, l->name));
	pb_put_u64(c->out, 2, string_index(c, l->value));
	pb_end(c->out, label);
}

static void put_row(struct encoder *c, const struct row_parts *r)
{
	uint32_t ids[PROFILE_STACK_MAX], count = 0;
	assert(r->location_count <= PROFILE_STACK_MAX);
	for (uint32_t j = 0; j < r->location_count; j++) {
		uint32_t id = c->locations.index[r->locations[j]];
		if (id)
			ids[count++] = id;
	}
	size_t begun = pb_begin(c->out, 2);
	pb_put_packed_u32(c->out, 1, ids, count);
	size_t packed = pb_begin(c->out, 2);
	for (uint32_t j = 0; j < c->column_count; j++)
		buf_varint(c->out, (uint64_t)r->values[j]);
	pb_end(c->out, packed);
	for (uint32_t j = 0; j < r->label_count; j++)
		put_label(c, &r->labels[j]);
	pb_end(c->out, begun);
}

static void put_sample(struct encoder *c, size_t i)
{
	const struct row *row = &c->rows.v[i];
	const struct profile_stack *stack = &c->p->stacks.v[row->stack];
	const struct united *set = &c->sets.v[row->labels];
	put_row(c,
		&(struct row_parts){
			.locations = stack->count ? c->p->stack_locations.v + stack->first : NULL,
			.location_count = stack->count,
			.values = c->values.v + i * c->column_count,
			.labels = set->count ? c->labels.v + set->first : NULL,
			.label_count = set->count,
		});
}

static void put_mapping(struct encoder *c, uint32_t id)
{
	const struct profile_mapping *m = &c->p->mappings.v[id];
	const struct mapping_flags *flags = &c->flags[id];
	size_t begun = pb_begin(c->out, 3);
	pb_put_u64(c->out, 1, c->mappings.index[id]);
	pb_put_u64(c->out, 2, m->start);
	pb_put_u64(c->out, 3, m->limit);
	pb_put_u64(c->out, 4, m->offset);
	pb_put_u64(c->out, 5, string_index(c, m->filename));
	pb_put_u64(c->out, 6, string_index(c, m->build_id));
	pb_put_bool(c->out, 7, flags->functions);
	pb_put_bool(c->out, 8, flags->filenames);
	pb_put_bool(c->out, 9, flags->lines);
	pb_put_bool(c->out, 10, flags->inlined);
	pb_end(c->out, begun);
}

static void put_location(struct encoder *c, uint32_t id)
{
	const struct profile_location *l = &c->p->locations.v[id];
	size_t begun = pb_begin(c->out, 4);
	pb_put_u64(c->out, 1, c->locations.index[id]);
	pb_put_u64(c->out, 2, c->mappings.index[l->mapping]);
	pb_put_u64(c->out, 3, l->address);
	for (uint32_t i = 0; i < l->line_count; i++) {
		const struct profile_line *line = &c->p->lines.v[l->line_first + i];
		if (line->function == 0)
			continue;
		size_t put = pb_begin(c->out, 4);
		pb_put_u64(c->out, 1, c->functions.index[line->function]);
		pb_put_u64(c->out, 2, line->line);
		pb_put_u64(c->out, 3, line->column);
		pb_end(c->out, put);
	}
	pb_end(c->out, begun);
}

/* If name and system name are equal, `go tool pprof` takes the name for a mangled one of C++ and
 * removes text in angle brackets: Python's <module> would become <unknown>, and all functions of
 * Lua one. Without a system name it leaves the name unchanged. */
static uint32_t system_name_of(const struct profile *p, const struct profile_function *f)
{
	struct str name = profile_str(p, f->name);
	bool stripped = str_starts(name, STR("<")) || str_starts(name, STR("function <"));
	return stripped && f->name == f->system_name ? 0 : f->system_name;
}

static void put_function(struct encoder *c, uint32_t id)
{
	const struct profile_function *f = &c->p->functions.v[id];
	size_t begun = pb_begin(c->out, 5);
	pb_put_u64(c->out, 1, c->functions.index[id]);
	pb_put_u64(c->out, 2, string_index(c, f->name));
	pb_put_u64(c->out, 3, string_index(c, system_name_of(c->p, f)));
	pb_put_u64(c->out, 4, string_index(c, f->filename));
	pb_put_u64(c->out, 5, f->start_line);
	pb_end(c->out, begun);
}

static void put_period(struct encoder *c, int64_t period)
{
	if (c->column_count) {
		const struct profile_type *t = &c->p->types.v[c->columns[0]];
		put_value_type(c, 11, t->period_type, t->period_unit);
	}
	pb_put_i64(c->out, 12, period);
}

/* Writes the time from the earliest begin to the latest end of the used heads, and their largest
 * period. */
static void put_times(struct encoder *c)
{
	int64_t begin = 0, end = 0, duration = 0, period = 0;
	bool any = false;
	for (size_t i = 1; i < c->p->heads.len; i++) {
		const struct profile_head *h = &c->p->heads.v[i];
		if (c->head_column[i] == UINT32_MAX)
			continue;
		if (h->time_ns && (begin == 0 || h->time_ns < begin))
			begin = h->time_ns;
		end = MAX(end, add_clamped(h->time_ns, h->duration_ns));
		duration = MAX(duration, h->duration_ns);
		period = any ? MAX(period, h->period) : h->period;
		any = true;
	}
	pb_put_i64(c->out, 9, begin);
	if (begin && __builtin_sub_overflow(end, begin, &duration)) /* begin is far before 1970 */
		duration = INT64_MAX;
	pb_put_i64(c->out, 10, duration);
	put_period(c, period);
}

static void put_types(struct encoder *c)
{
	for (uint32_t i = 0; i < c->column_count; i++) {
		const struct profile_type *t = &c->p->types.v[c->columns[i]];
		put_value_type(c, 1, t->sample_type, t->sample_unit);
	}
}

/* Writes the tables to which samples refer, except strings. */
static void put_tables(struct encoder *c)
{
	for (int rank = 0; rank < RANK_COUNT; rank++)
		for (size_t i = 0; i < c->mappings.list.len; i++)
			if (c->flags[c->mappings.list.v[i]].rank == rank)
				put_mapping(c, c->mappings.list.v[i]);
	for (size_t i = 0; i < c->locations.list.len; i++)
		put_location(c, c->locations.list.v[i]);
	for (size_t i = 0; i < c->functions.list.len; i++)
		put_function(c, c->functions.list.v[i]);
	for (size_t i = 0; i < c->comments.len; i++)
		pb_put_u64(c->out, 13, c->comments.v[i]);
}

static void put_profile(struct encoder *c)
{
	put_types(c);
	for (size_t i = 0; i < c->rows.len; i++)
		put_sample(c, i);
	put_tables(c);
	put_times(c);
	for (uint32_t i = 0; i < c->strings.len; i++) /* last: all the others add to them */
		pb_put_str_always(c->out, 6, strtab_get(&c->strings, i));
}

static void encoder_deinit(struct encoder *c)
{
	strtab_deinit(&c->strings);
	free(c->string_index);
	order_deinit(&c->mappings);
	order_deinit(&c->locations);
	order_deinit(&c->functions);
	free(c->flags);
	free(c->head_column);
	VEC_FREE(&c->rows);
	VEC_FREE(&c->values);
	map_deinit(&c->row_index);
	VEC_FREE(&c->labels);
	VEC_FREE(&c->sets);
	map_deinit(&c->set_index);
	VEC_FREE(&c->pairs);
	VEC_FREE(&c->comments);
	map_deinit(&c->pair_index);
}

static bool encoder_init(struct encoder *c, const struct profile *p, struct buf *out)
{
	*c = (struct encoder){ .p = p, .out = out };
	c->string_index = calloc(p->strings.len, sizeof(*c->string_index));
	c->flags = calloc(p->mappings.len, sizeof(*c->flags));
	c->head_column = malloc(p->heads.len * sizeof(*c->head_column));
	if (!c->string_index || !c->flags || !c->head_column ||
		strtab_init(&c->strings, p->strings.arena.used + 65536) != OK ||
		!order_init(&c->mappings, p->mappings.len) ||
		!order_init(&c->locations, p->locations.len) ||
		!order_init(&c->functions, p->functions.len))
		return false;
	for (size_t i = 0; i < p->heads.len; i++)
		c->head_column[i] = UINT32_MAX;
	for (uint32_t i = 1; i < p->mappings.len; i++) {
		c->flags[i].rank = rank_of(profile_str(p, p->mappings.v[i].filename));
		c->has_programs |= c->flags[i].rank == RANK_PROGRAM;
	}
	return true;
}

enum status pprof_encode(const struct profile *p, struct buf *out, struct err *e)
{
	CLEANUP(encoder_deinit) struct encoder c;
	if (!encoder_init(&c, p, out))
		return err_set(e, E_NOMEM, "pprof: out of memory");
	enum status s = take_columns(&c, e);
	if (s != OK)
		return s;
	for (size_t i = 0; i < p->samples.len; i++)
		if (!add_to_row(&c, &p->samples.v[i]))
			return err_set(e, E_NOMEM, "pprof: out of memory");
	order_mappings(&c);
	put_profile(&c);
	s = c.no_memory ? E_NOMEM : buf_status(out);
	return s == OK ? OK : err_set(e, s, "pprof: %s", status_text(s));
}

/* ---- sample by sample ---- */

struct pprof_stream {
	struct encoder c;
};

enum status pprof_stream_new(const struct profile *p, const uint32_t *types, uint32_t type_count,
	struct pprof_stream **out)
{
	struct pprof_stream *s = calloc(1, sizeof(*s));
	assert(type_count <= COLUMNS_MAX);
	if (!s || !encoder_init(&s->c, p, NULL)) {
		pprof_stream_free(s);
		return E_NOMEM;
	}
	s->c.own_strings = true;
	for (uint32_t i = 0; i < type_count; i++)
		s->c.columns[s->c.column_count++] = types[i];
	*out = s;
	return OK;
}

void pprof_stream_free(struct pprof_stream *s)
{
	if (!s)
		return;
	encoder_deinit(&s->c);
	free(s);
}

void pprof_stream_types(struct pprof_stream *s, struct buf *out)
{
	s->c.out = out;
	put_types(&s->c);
}

void pprof_stream_sample(struct pprof_stream *s, const uint32_t *locations, uint32_t count,
	const int64_t *values, uint32_t labels, struct buf *out)
{
	struct encoder *c = &s->c;
	const struct profile_labels *set = &c->p->label_sets.v[labels];
	c->out = out;
	for (uint32_t i = count; i-- > 0;)
		take_location(c, locations[i]);
	weigh(c, locations, count, values[0]);
	put_row(c, &(struct row_parts){
			   .locations = locations,
			   .location_count = count,
			   .values = values,
			   .labels = set->count ? c->p->labels.v + set->first : NULL,
			   .label_count = set->count,
		   });
}

void pprof_stream_comment(struct pprof_stream *s, uint32_t string, struct buf *out)
{
	assert(string < s->c.p->strings.len);
	pb_put_i64(out, 13, string);
}

void pprof_stream_tables(struct pprof_stream *s, int64_t time_ns, int64_t duration_ns,
	int64_t period, struct buf *out)
{
	struct encoder *c = &s->c;
	c->out = out;
	order_mappings(c);
	put_tables(c);
	pb_put_i64(out, 9, time_ns);
	pb_put_i64(out, 10, duration_ns);
	put_period(c, period);
	for (uint32_t i = 0; i < c->p->strings.len; i++)
		pb_put_str_always(out, 6, strtab_get(&c->p->strings, i));
	for (uint32_t i = 1; i < c->strings.len; i++)
		pb_put_str_always(out, 6, strtab_get(&c->strings, i));
}

enum status pprof_stream_status(const struct pprof_stream *s)
{
	return s->c.no_memory ? E_NOMEM : OK;
}
