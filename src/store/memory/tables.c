/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An element is added in three steps, as in profile.c: reserve room, insert the index, write the
 * element; so a failure leaves the tables as they were.
 *
 * A trie node is found by (parent, location). Its parent is always older, so indices ascend from
 * the root to the leaf, and a reader can go from children to parents in one pass.
 */
#include "store/memory/tables.h"

#include <stdlib.h>

const struct str store_sample_names[] = {
	{ "__comments__", 12 },
	{ "__numbers__", 11 },
	{ "bytes", 5 },
	{ "cpu", 3 },
	{ "pid", 3 },
	{ "span_id", 7 },
	{ "thread_id", 9 },
	{ "thread_name", 11 },
	{ "trace_id", 8 },
};
const uint32_t store_sample_name_count = ARRAY_COUNT(store_sample_names);

#define ADD_INDEXED(t, table, index, hash, ...)                                    \
	({                                                                         \
		uint32_t at_ = (uint32_t)(t)->table.len;                           \
		enum status s_ = OK;                                               \
		if (!GROW_RESERVE(&(t)->table, (t)->table.len + 1))                \
			s_ = (t)->table.len == (t)->table.max ? E_LIMIT : E_NOMEM; \
		else if (!map_insert(&(t)->index, (hash), at_))                    \
			s_ = E_NOMEM;                                              \
		else                                                               \
			(t)->table.v[(t)->table.len++] = __VA_ARGS__;              \
		s_;                                                                \
	})

static bool string_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct tables *t = ctx;
	return str_eq(t->strings.v[value], *(const struct str *)key);
}

uint32_t tables_find_string(const struct tables *t, struct str s)
{
	return map_find(&t->string_index, hash64(s.p, s.len), string_equal, t, &s);
}

enum status tables_add_string(struct tables *t, struct str s, uint32_t *out)
{
	uint64_t h = hash64(s.p, s.len);
	uint32_t id = map_find(&t->string_index, h, string_equal, t, &s);
	if (id == MAP_NONE) {
		id = (uint32_t)t->strings.len;
		char *copy = arena_copy(&t->text, s.p, s.len);
		if (!copy)
			return arena_status(&t->text);
		enum status st = ADD_INDEXED(t, strings, string_index, h, str_make(copy, s.len));
		if (st != OK)
			return st;
	}
	*out = id;
	return OK;
}

static bool function_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct profile_function *a = &((const struct tables *)ctx)->functions.v[value];
	return memcmp(a, key, sizeof(*a)) == 0;
}

enum status tables_add_function(struct tables *t, const struct profile_function *f, uint32_t *out)
{
	static_assert(sizeof(*f) == 16, "hashed and compared as bytes");
	uint64_t h = hash64(f, sizeof(*f));
	uint32_t id = map_find(&t->function_index, h, function_equal, t, f);
	if (id == MAP_NONE) {
		id = (uint32_t)t->functions.len;
		enum status s = ADD_INDEXED(t, functions, function_index, h, *f);
		if (s != OK)
			return s;
	}
	*out = id;
	return OK;
}

static bool mapping_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct profile_mapping *a = &((const struct tables *)ctx)->mappings.v[value];
	return memcmp(a, key, sizeof(*a)) == 0;
}

enum status tables_add_mapping(struct tables *t, const struct profile_mapping *m, uint32_t *out)
{
	static_assert(sizeof(*m) == 32, "hashed and compared as bytes");
	uint64_t h = hash64(m, sizeof(*m));
	uint32_t id = map_find(&t->mapping_index, h, mapping_equal, t, m);
	if (id == MAP_NONE) {
		id = (uint32_t)t->mappings.len;
		enum status s = ADD_INDEXED(t, mappings, mapping_index, h, *m);
		if (s != OK)
			return s;
	}
	*out = id;
	return OK;
}

struct location_key {
	const struct profile_location *loc;
	const struct profile_line *lines;
	uint32_t line_count;
};

static bool location_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct tables *t = ctx;
	const struct location_key *k = key;
	const struct profile_location *a = &t->locations.v[value];
	return a->address == k->loc->address && a->mapping == k->loc->mapping &&
	       a->kind == k->loc->kind && a->line_count == k->line_count &&
	       (k->line_count == 0 || memcmp(t->lines.v + a->line_first, k->lines,
					      k->line_count * sizeof(*k->lines)) == 0);
}

enum status tables_add_location(struct tables *t, const struct profile_location *l,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out)
{
	const uint64_t words[] = { l->address, l->mapping | (uint64_t)l->kind << 32,
		line_count ? hash64(lines, line_count * sizeof(*lines)) : 0 };
	uint64_t h = hash64(words, sizeof(words));
	struct location_key key = { l, lines, line_count };
	uint32_t id = map_find(&t->location_index, h, location_equal, t, &key);
	if (id == MAP_NONE) {
		id = (uint32_t)t->locations.len;
		if (!GROW_RESERVE(&t->lines, t->lines.len + line_count))
			return t->lines.len + line_count > t->lines.max ? E_LIMIT : E_NOMEM;
		struct profile_location added = {
			.address = l->address,
			.mapping = l->mapping,
			.kind = l->kind,
			.line_first = (uint32_t)t->lines.len,
			.line_count = line_count,
		};
		enum status s = ADD_INDEXED(t, locations, location_index, h, added);
		if (s != OK)
			return s;
		if (line_count)
			memcpy(t->lines.v + t->lines.len, lines, line_count * sizeof(*lines));
		t->lines.len += line_count;
	}
	*out = id;
	return OK;
}

static bool node_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct tables *t = ctx;
	const uint32_t *k = key;
	return t->parent.v[value] == k[0] && t->node_location.v[value] == k[1];
}

enum status tables_add_node(struct tables *t, uint32_t parent, uint32_t location, uint32_t *out)
{
	const uint32_t key[] = { parent, location };
	uint64_t h = hash_u64((uint64_t)parent << 32 | location);
	uint32_t id = map_find(&t->node_index, h, node_equal, t, key);
	if (id == MAP_NONE) {
		id = (uint32_t)t->parent.len;
		if (!GROW_RESERVE(&t->node_location, t->node_location.len + 1))
			return id == t->node_location.max ? E_LIMIT : E_NOMEM;
		enum status s = ADD_INDEXED(t, parent, node_index, h, parent);
		if (s != OK)
			return s;
		t->node_location.v[t->node_location.len++] = location;
	}
	*out = id;
	return OK;
}

enum status tables_append_node(struct tables *t, uint32_t parent, uint32_t location)
{
	size_t n = t->parent.len;
	if (!GROW_RESERVE(&t->parent, n + 1) || !GROW_RESERVE(&t->node_location, n + 1))
		return n == t->parent.max ? E_LIMIT : E_NOMEM;
	t->parent.v[t->parent.len++] = parent;
	t->node_location.v[t->node_location.len++] = location;
	return OK;
}

static bool stack_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct tables *t = ctx;
	return hash128_eq(t->stacks.v[value].key, *(const struct hash128 *)key);
}

uint32_t tables_find_stack(const struct tables *t, struct hash128 key)
{
	uint32_t at = map_find(&t->stack_index, key.lo, stack_equal, t, &key);
	return at == MAP_NONE ? MAP_NONE : t->stacks.v[at].node;
}

void tables_prefetch_stack(const struct tables *t, struct hash128 key)
{
	map_prefetch(&t->stack_index, key.lo);
}

void tables_prefetch_stack_entry(const struct tables *t, struct hash128 key)
{
	uint32_t at = map_peek(&t->stack_index, key.lo);
	if (at != MAP_NONE)
		__builtin_prefetch(&t->stacks.v[at]);
}

enum status tables_name_stack(struct tables *t, struct hash128 key, uint32_t node)
{
	struct stack_entry added = { key, node };
	return ADD_INDEXED(t, stacks, stack_index, key.lo, added);
}

struct series_key {
	const struct tab_series *series;
	const struct profile_label *labels;
	uint32_t label_count;
};

static bool series_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct tables *t = ctx;
	const struct series_key *k = key;
	const struct tab_series *a = &t->series.v[value];
	return a->tenant == k->series->tenant && a->delta == k->series->delta &&
	       a->period == k->series->period &&
	       memcmp(a->type, k->series->type, sizeof(a->type)) == 0 &&
	       a->label_count == k->label_count &&
	       (k->label_count == 0 || memcmp(t->labels.v + a->label_first, k->labels,
					       k->label_count * sizeof(*k->labels)) == 0);
}

enum status tables_add_series(struct tables *t, const struct tab_series *key,
	const struct profile_label *labels, uint32_t label_count, uint32_t *out)
{
	const uint64_t words[] = { key->tenant | (uint64_t)key->delta << 32, (uint64_t)key->period,
		hash64(key->type, sizeof(key->type)),
		label_count ? hash64(labels, label_count * sizeof(*labels)) : 0 };
	uint64_t h = hash64(words, sizeof(words));
	struct series_key k = { key, labels, label_count };
	uint32_t id = map_find(&t->series_index, h, series_equal, t, &k);
	if (id == MAP_NONE) {
		id = (uint32_t)t->series.len;
		if (!GROW_RESERVE(&t->labels, t->labels.len + label_count))
			return t->labels.len + label_count > t->labels.max ? E_LIMIT : E_NOMEM;
		struct tab_series added = *key;
		added.label_first = (uint32_t)t->labels.len;
		added.label_count = label_count;
		added.first_ns = INT64_MAX;
		added.last_ns = INT64_MIN;
		added.rows = 0;
		enum status s = ADD_INDEXED(t, series, series_index, h, added);
		if (s != OK)
			return s;
		if (label_count)
			memcpy(t->labels.v + t->labels.len, labels, label_count * sizeof(*labels));
		t->labels.len += label_count;
	}
	*out = id;
	return OK;
}

static bool set_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct tables *t = ctx;
	uint32_t width = 1 + t->name_count;
	return memcmp(t->sets.v + (size_t)value * width, key, width * sizeof(uint32_t)) == 0;
}

enum status tables_add_set(struct tables *t, const uint32_t *values, uint32_t *out)
{
	uint32_t width = 1 + t->name_count;
	bool any = t->set_count == 0;
	for (uint32_t i = 1; i < width; i++)
		any |= values[i] != 0;
	if (!any) {
		*out = 0;
		return OK;
	}
	uint64_t h = hash64(values, width * sizeof(*values));
	uint32_t id = map_find(&t->set_index, h, set_equal, t, values);
	if (id == MAP_NONE) {
		id = t->set_count;
		if (!GROW_RESERVE(&t->sets, t->sets.len + width))
			return t->sets.len + width > t->sets.max ? E_LIMIT : E_NOMEM;
		if (!map_insert(&t->set_index, h, id))
			return E_NOMEM;
		memcpy(t->sets.v + t->sets.len, values, width * sizeof(*values));
		t->sets.len += width;
		t->set_count++;
	}
	*out = id;
	return OK;
}

void tables_count_row(
	struct tables *t, uint32_t series, int64_t first_ns, int64_t last_ns, uint64_t rows)
{
	struct tab_series *s = &t->series.v[series];
	if (first_ns < s->first_ns)
		__atomic_store_n(&s->first_ns, first_ns, __ATOMIC_RELAXED);
	if (last_ns > s->last_ns)
		__atomic_store_n(&s->last_ns, last_ns, __ATOMIC_RELAXED);
	__atomic_store_n(&s->rows, s->rows + rows, __ATOMIC_RELAXED);
}

/* ---- profiles ---- */

enum status tables_add_profile(struct tables *t, const struct tab_profile *p)
{
	if (GROW_PUSH(&t->profiles, *p))
		return OK;
	return t->profiles.len == t->profiles.max ? E_LIMIT : E_NOMEM;
}

static int by_series_and_time(const void *a, const void *b)
{
	const struct tab_profile *x = a, *y = b;
	if (x->series != y->series)
		return x->series < y->series ? -1 : 1;
	return x->time_ns < y->time_ns ? -1 : x->time_ns > y->time_ns;
}

uint32_t tab_profiles_settle(struct tab_profile *v, uint32_t n)
{
	uint32_t kept = 0;
	if (n)
		qsort(v, n, sizeof(*v), by_series_and_time);
	for (uint32_t i = 0; i < n; i++) {
		struct tab_profile *last = &v[kept - (kept > 0)];
		if (kept == 0 || by_series_and_time(last, &v[i]) != 0) {
			v[kept++] = v[i];
			continue;
		}
		last->duration_ns = MAX(last->duration_ns, v[i].duration_ns);
		last->samples = tab_samples_add(last->samples, v[i].samples);
	}
	return kept;
}

/* ---- life ---- */

static enum status add_nulls(struct tables *t)
{
	uint32_t id, nothing[1 + TABLES_NAMES_MAX] = { 0 };
	enum status s = tables_add_string(t, STR(""), &id);
	if (s == OK)
		s = tables_add_function(t, &(struct profile_function){ 0 }, &id);
	if (s == OK)
		s = tables_add_mapping(t, &(struct profile_mapping){ 0 }, &id);
	if (s == OK)
		s = tables_add_location(t, &(struct profile_location){ 0 }, NULL, 0, &id);
	if (s == OK)
		s = tables_add_set(t, nothing, &id);
	if (s == OK)
		s = tables_add_node(t, 0, 0, &id);
	return s;
}

enum status tables_init(
	struct tables *t, size_t limit_bytes, const struct str *names, uint32_t name_count)
{
	assert(name_count <= TABLES_NAMES_MAX);
	*t = (struct tables){ .name_count = name_count };
	arena_init(&t->text, limit_bytes);
	size_t n = limit_bytes / 4;
	bool ok = GROW_INIT(&t->strings, n / 4) && GROW_INIT(&t->series, n / 16) &&
		  GROW_INIT(&t->labels, n / 2) && GROW_INIT(&t->sets, n) &&
		  GROW_INIT(&t->functions, n / 4) && GROW_INIT(&t->mappings, n / 8) &&
		  GROW_INIT(&t->locations, n / 6) && GROW_INIT(&t->lines, n / 3) &&
		  GROW_INIT(&t->parent, n) && GROW_INIT(&t->node_location, n) &&
		  GROW_INIT(&t->stacks, n / 6) && GROW_INIT(&t->profiles, n / 8);
	enum status s = ok ? OK : E_NOMEM;
	for (uint32_t i = 0; i < name_count && s == OK; i++) {
		char *copy = arena_copy(&t->text, names[i].p, names[i].len);
		if (!copy)
			s = arena_status(&t->text);
		t->names[i] = str_make(copy, names[i].len);
	}
	if (s == OK)
		s = add_nulls(t);
	if (s != OK)
		tables_deinit(t);
	return s;
}

void tables_deinit(struct tables *t)
{
	arena_deinit(&t->text);
	GROW_DEINIT(&t->strings);
	GROW_DEINIT(&t->series);
	GROW_DEINIT(&t->labels);
	GROW_DEINIT(&t->sets);
	GROW_DEINIT(&t->functions);
	GROW_DEINIT(&t->mappings);
	GROW_DEINIT(&t->locations);
	GROW_DEINIT(&t->lines);
	GROW_DEINIT(&t->parent);
	GROW_DEINIT(&t->node_location);
	GROW_DEINIT(&t->stacks);
	GROW_DEINIT(&t->profiles);
	map_deinit(&t->string_index);
	map_deinit(&t->series_index);
	map_deinit(&t->set_index);
	map_deinit(&t->function_index);
	map_deinit(&t->mapping_index);
	map_deinit(&t->location_index);
	map_deinit(&t->node_index);
	map_deinit(&t->stack_index);
}

static uint64_t index_bytes(const struct map *m)
{
	return m->slots ? ((uint64_t)m->mask + 1) * 2 * sizeof(uint32_t) : 0;
}

uint64_t tables_bytes(const struct tables *t)
{
	return t->text.used + GROW_BYTES(&t->strings) + GROW_BYTES(&t->series) +
	       GROW_BYTES(&t->labels) + GROW_BYTES(&t->sets) + GROW_BYTES(&t->functions) +
	       GROW_BYTES(&t->mappings) + GROW_BYTES(&t->locations) + GROW_BYTES(&t->lines) +
	       GROW_BYTES(&t->parent) + GROW_BYTES(&t->node_location) + GROW_BYTES(&t->stacks) +
	       GROW_BYTES(&t->profiles) + index_bytes(&t->string_index) +
	       index_bytes(&t->series_index) + index_bytes(&t->set_index) +
	       index_bytes(&t->function_index) + index_bytes(&t->mapping_index) +
	       index_bytes(&t->location_index) + index_bytes(&t->node_index) +
	       index_bytes(&t->stack_index);
}

void tables_view(const struct tables *t, struct tabs *out)
{
	*out = (struct tabs){
		.names = t->names,
		.label_strings = t->strings.v,
		.sample_strings = t->strings.v,
		.symbol_strings = t->strings.v,
		.series = t->series.v,
		.labels = t->labels.v,
		.sets = t->sets.v,
		.functions = t->functions.v,
		.mappings = t->mappings.v,
		.locations = t->locations.v,
		.profiles = t->profiles.v,
		.profile_count = (uint32_t)t->profiles.len,
		.lines = t->lines.v,
		.parent = t->parent.v,
		.node_location = t->node_location.v,
		.name_count = t->name_count,
		.label_string_count = (uint32_t)t->strings.len,
		.sample_string_count = (uint32_t)t->strings.len,
		.symbol_string_count = (uint32_t)t->strings.len,
		.series_count = (uint32_t)t->series.len,
		.label_count = (uint32_t)t->labels.len,
		.set_count = t->set_count,
		.function_count = (uint32_t)t->functions.len,
		.mapping_count = (uint32_t)t->mappings.len,
		.location_count = (uint32_t)t->locations.len,
		.line_count = (uint32_t)t->lines.len,
		.node_count = (uint32_t)t->parent.len,
	};
}

int tabs_name_find(const struct tabs *t, struct str name)
{
	for (uint32_t i = 0; i < t->name_count; i++)
		if (str_eq(t->names[i], name))
			return (int)i;
	return -1;
}

struct str tabs_series_label(const struct tabs *t, uint32_t series, struct str name)
{
	const struct tab_series *s = &t->series[series];
	for (uint32_t i = 0; i < s->label_count; i++) {
		const struct profile_label *l = &t->labels[s->label_first + i];
		if (str_eq(t->label_strings[l->name], name))
			return t->label_strings[l->value];
	}
	return STR("");
}

/* ---- translation ---- */

struct translate_from tabs_symbols(const struct tabs *t)
{
	return (struct translate_from){ .texts = t->symbol_strings,
		.functions = t->functions,
		.mappings = t->mappings,
		.locations = t->locations,
		.lines = t->lines,
		.string_count = t->symbol_string_count,
		.function_count = t->function_count,
		.mapping_count = t->mapping_count,
		.location_count = t->location_count };
}

static enum status add_string(void *to, struct str s, uint32_t *out)
{
	return tables_add_string(to, s, out);
}

static enum status add_function(void *to, const struct profile_function *f, uint32_t *out)
{
	return tables_add_function(to, f, out);
}

static enum status add_mapping(void *to, const struct profile_mapping *m, uint32_t *out)
{
	return tables_add_mapping(to, m, out);
}

static enum status add_location(void *to, const struct profile_location *l,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out)
{
	return tables_add_location(to, l, lines, line_count, out);
}

const struct translate_ops translate_to_tables = { add_string, add_function, add_mapping,
	add_location };
