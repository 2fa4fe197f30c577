/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each table that is interned has a map from the hash of an element's content to its index. An
 * element is appended in three steps that leave the profile as it was when one of them fails:
 * reserve room, insert the index into the map, write the element.
 *
 * A message with several profiles of one program has the same tables several times, in the same
 * order. So the element after the last one found is compared first, before anything is hashed.
 *
 * Writers number texts and functions in the order in which they first occur. So a function whose
 * name has a higher number than all others is new, and likewise a location by its first line's
 * function. These are indexed only when an element comes that must be searched for.
 *
 * Structures with padding are hashed as arrays of numbers, never as bytes.
 *
 * The null elements are appended like all others, so that equal content finds them: a function
 * without any text is function 0, the stack without frames is stack 0.
 */
#include "profile/profile.h"

#define MARKER_TRUNCATED STR("[truncated]")

/* ---- memory ---- */

static size_t map_bytes(const struct map *m)
{
	return m->slots ? ((size_t)m->mask + 1) * 2 * sizeof(uint32_t) : 0;
}

#define VEC_BYTES(vec) ((vec)->cap * sizeof(*(vec)->v))

static size_t tables_bytes(const struct profile *p)
{
	return VEC_BYTES(&p->functions) + VEC_BYTES(&p->mappings) + VEC_BYTES(&p->lines) +
	       VEC_BYTES(&p->locations) + VEC_BYTES(&p->stack_locations) + VEC_BYTES(&p->stacks) +
	       VEC_BYTES(&p->labels) + VEC_BYTES(&p->label_sets) + VEC_BYTES(&p->links) +
	       VEC_BYTES(&p->types) + VEC_BYTES(&p->heads) + VEC_BYTES(&p->samples) +
	       map_bytes(&p->function_index) + map_bytes(&p->mapping_index) +
	       map_bytes(&p->location_index) + map_bytes(&p->stack_index) +
	       map_bytes(&p->label_set_index) + map_bytes(&p->type_index);
}

/* `v` is the address of the vector's pointer, as for vec_grow(). */
static enum status reserve(
	struct profile *p, void *v, size_t *cap, size_t len, size_t more, size_t elem_size)
{
	size_t need = len + more;
	if (need > PROFILE_TABLE_MAX)
		return E_LIMIT;
	if (need <= *cap)
		return OK;
	size_t added = (need + need / 2 - *cap) * elem_size;
	size_t limit = p->strings.arena.limit, used = tables_bytes(p);
	if (used > limit || added > limit - used)
		return E_LIMIT;
	return vec_grow(v, cap, need, elem_size) ? OK : E_NOMEM;
}

#define RESERVE(p, vec, more)                                                      \
	((vec)->len + (more) <= MIN((vec)->cap, (size_t)PROFILE_TABLE_MAX)         \
			? OK                                                       \
			: reserve((p), &(vec)->v, &(vec)->cap, (vec)->len, (more), \
				  sizeof(*(vec)->v)))

/* Room for one more element of `vec`, and its index in `index`. */
#define RESERVE_INDEXED(p, vec, index, hash)                                        \
	({                                                                          \
		enum status s_ = RESERVE((p), (vec), 1);                            \
		if (s_ == OK && !map_insert((index), (hash), (uint32_t)(vec)->len)) \
			s_ = E_NOMEM;                                               \
		s_;                                                                 \
	})

static enum status add_nulls(struct profile *p)
{
	uint32_t id;
	enum status s = profile_add_function(p, &(struct profile_function){ 0 }, &id);
	if (s == OK)
		s = profile_add_mapping(p, &(struct profile_mapping){ 0 }, &id);
	if (s == OK)
		s = profile_add_location(p, &(struct profile_location){ 0 }, NULL, 0, &id);
	if (s == OK)
		s = profile_add_stack(p, NULL, 0, &id);
	if (s == OK)
		s = profile_add_labels(p, NULL, 0, &id);
	if (s == OK)
		s = profile_add_type(p, &(struct profile_type){ 0 }, &id);
	if (s == OK)
		s = profile_add_link(p, &(struct profile_link){ 0 }, &id);
	if (s == OK)
		s = profile_add_head(p, &(struct profile_head){ 0 }, &id);
	return s;
}

enum status profile_init(struct profile *p, size_t limit_bytes)
{
	*p = (struct profile){ .stack_max = PROFILE_STACK_MAX };
	enum status s = strtab_init(&p->strings, limit_bytes);
	if (s == OK)
		s = add_nulls(p);
	if (s != OK)
		profile_deinit(p);
	return s;
}

void profile_deinit(struct profile *p)
{
	strtab_deinit(&p->strings);
	VEC_FREE(&p->functions);
	VEC_FREE(&p->mappings);
	VEC_FREE(&p->lines);
	VEC_FREE(&p->locations);
	VEC_FREE(&p->stack_locations);
	VEC_FREE(&p->stacks);
	VEC_FREE(&p->labels);
	VEC_FREE(&p->label_sets);
	VEC_FREE(&p->links);
	VEC_FREE(&p->types);
	VEC_FREE(&p->heads);
	VEC_FREE(&p->samples);
	map_deinit(&p->function_index);
	map_deinit(&p->mapping_index);
	map_deinit(&p->location_index);
	map_deinit(&p->stack_index);
	map_deinit(&p->label_set_index);
	map_deinit(&p->type_index);
}

enum status profile_clear(struct profile *p)
{
	p->cut_stacks = p->zero_samples = p->bad_lines = p->label_work = 0;
	VEC_CLEAR(&p->functions);
	VEC_CLEAR(&p->mappings);
	VEC_CLEAR(&p->lines);
	VEC_CLEAR(&p->locations);
	VEC_CLEAR(&p->stack_locations);
	VEC_CLEAR(&p->stacks);
	VEC_CLEAR(&p->labels);
	VEC_CLEAR(&p->label_sets);
	VEC_CLEAR(&p->links);
	VEC_CLEAR(&p->types);
	VEC_CLEAR(&p->heads);
	VEC_CLEAR(&p->samples);
	map_clear(&p->function_index);
	map_clear(&p->mapping_index);
	map_clear(&p->location_index);
	map_clear(&p->stack_index);
	map_clear(&p->label_set_index);
	map_clear(&p->type_index);
	p->name_max = p->function_max = 0;
	enum status s = strtab_clear(&p->strings);
	return s == OK ? add_nulls(p) : s;
}

/* The number of elements for which a table of `len` reserves room, if a message states that it has
 * `count`. */
static uint32_t expected(size_t len, size_t count, size_t most)
{
	count = MIN(count, most);
	return (uint32_t)(count - MIN(len, count));
}

void profile_expect(struct profile *p, const struct profile_room *r)
{
	const size_t most = PROFILE_EXPECTED_MAX;
	uint32_t texts = expected(p->strings.len, r->strings, most);
	uint32_t functions = expected(p->functions.len, r->functions, most);
	uint32_t locations = expected(p->locations.len, r->locations, most);
	uint32_t lines = expected(p->lines.len, r->locations, most);
	uint32_t stacks = expected(p->stacks.len, r->samples, most);
	uint32_t frames = expected(p->stack_locations.len, r->frames, 16 * most);
	bool ok = strtab_reserve(&p->strings, texts) == OK;
	ok = ok && RESERVE(p, &p->functions, functions) == OK;
	ok = ok && RESERVE(p, &p->locations, locations) == OK;
	ok = ok && RESERVE(p, &p->lines, lines) == OK;
	ok = ok && RESERVE(p, &p->stacks, stacks) == OK;
	ok = ok && map_reserve(&p->stack_index, (uint32_t)p->stacks.len + stacks);
	ok = ok && RESERVE(p, &p->stack_locations, frames) == OK;
	if (ok)
		(void)!RESERVE(p, &p->samples, expected(0, r->samples, most));
}

/* ---- frame kinds ---- */

static const struct {
	enum frame_kind kind;
	struct str name;
} frame_kinds[] = {
#define FRAME_KIND_ROW(id, number, text) { FRAME_##id, { text, sizeof(text) - 1 } },
	FRAME_KIND_LIST(FRAME_KIND_ROW)
#undef FRAME_KIND_ROW
};
static_assert(ARRAY_COUNT(frame_kinds) == FRAME_KIND_COUNT, "FRAME_KIND_COUNT");

const char *frame_kind_name(enum frame_kind k)
{
	return (unsigned)k < FRAME_KIND_COUNT ? frame_kinds[k].name.p : "";
}

enum frame_kind frame_kind_parse(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(frame_kinds); i++)
		if (str_eq(frame_kinds[i].name, name))
			return frame_kinds[i].kind;
	return FRAME_UNKNOWN;
}

/* ---- the tables ---- */

static bool function_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct profile *p = ctx;
	const struct profile_function *a = &p->functions.v[value], *b = key;
	return a->name == b->name && a->system_name == b->system_name &&
	       a->filename == b->filename && a->start_line == b->start_line;
}

static uint64_t function_hash(const struct profile_function *f)
{
	const uint32_t words[] = { f->name, f->system_name, f->filename, f->start_line };
	return hash64(words, sizeof(words));
}

static enum status index_functions(struct profile *p)
{
	if (!map_reserve(&p->function_index, (uint32_t)p->functions.len))
		return E_NOMEM;
	for (uint32_t i = p->function_index.count; i < p->functions.len; i++)
		if (!map_insert(&p->function_index, function_hash(&p->functions.v[i]), i))
			return E_NOMEM;
	return OK;
}

static enum status find_function(struct profile *p, const struct profile_function *f, uint32_t *out)
{
	*out = p->function_index.expected;
	if (*out < p->functions.len && function_equal(p, *out, f))
		return OK;
	*out = MAP_NONE;
	if (f->name > p->name_max)
		return OK;
	enum status s = index_functions(p);
	if (s == OK)
		*out = map_find(&p->function_index, function_hash(f), function_equal, p, f);
	return s;
}

enum status profile_add_function(struct profile *p, const struct profile_function *f, uint32_t *out)
{
	assert(f->name < p->strings.len && f->system_name < p->strings.len &&
		f->filename < p->strings.len);
	uint32_t id;
	enum status s = find_function(p, f, &id);
	if (s != OK)
		return s;
	if (id == MAP_NONE) {
		s = RESERVE(p, &p->functions, 1);
		if (s != OK)
			return s;
		id = (uint32_t)p->functions.len;
		p->functions.v[p->functions.len++] = *f;
		p->name_max = MAX(p->name_max, f->name);
	}
	p->function_index.expected = id + 1;
	*out = id;
	return OK;
}

static bool mapping_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct profile *p = ctx;
	const struct profile_mapping *a = &p->mappings.v[value], *b = key;
	return a->start == b->start && a->limit == b->limit && a->offset == b->offset &&
	       a->filename == b->filename && a->build_id == b->build_id;
}

enum status profile_add_mapping(struct profile *p, const struct profile_mapping *m, uint32_t *out)
{
	assert(m->filename < p->strings.len && m->build_id < p->strings.len);
	const uint64_t words[] = { m->start, m->limit, m->offset, m->filename, m->build_id };
	uint64_t h = hash64(words, sizeof(words));
	uint32_t id = map_find(&p->mapping_index, h, mapping_equal, p, m);
	if (id == MAP_NONE) {
		enum status s = RESERVE_INDEXED(p, &p->mappings, &p->mapping_index, h);
		if (s != OK)
			return s;
		id = (uint32_t)p->mappings.len;
		p->mappings.v[p->mappings.len++] = *m;
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
	const struct profile *p = ctx;
	const struct location_key *k = key;
	const struct profile_location *a = &p->locations.v[value];
	return a->address == k->loc->address && a->mapping == k->loc->mapping &&
	       a->kind == k->loc->kind && a->line_count == k->line_count &&
	       (a->line_count == 0 || memcmp(p->lines.v + a->line_first, k->lines,
					      a->line_count * sizeof(*k->lines)) == 0);
}

static uint64_t location_hash(
	const struct profile_location *loc, const struct profile_line *lines, uint32_t line_count)
{
	static_assert(sizeof(struct profile_line) == 12, "hashed and compared as bytes");
	const uint64_t words[] = { loc->address, loc->mapping, loc->kind,
		line_count ? hash64(lines, line_count * sizeof(*lines)) : 0 };
	return hash64(words, sizeof(words));
}

static enum status index_locations(struct profile *p)
{
	if (!map_reserve(&p->location_index, (uint32_t)p->locations.len))
		return E_NOMEM;
	for (uint32_t i = p->location_index.count; i < p->locations.len; i++) {
		const struct profile_location *l = &p->locations.v[i];
		const struct profile_line *lines =
			l->line_count ? p->lines.v + l->line_first : NULL;
		uint64_t h = location_hash(l, lines, l->line_count);
		if (!map_insert(&p->location_index, h, i))
			return E_NOMEM;
	}
	return OK;
}

/* The caller has reserved room. */
static uint32_t write_location(struct profile *p, const struct profile_location *loc,
	const struct profile_line *lines, uint32_t line_count)
{
	p->locations.v[p->locations.len] = (struct profile_location){
		.address = loc->address,
		.mapping = loc->mapping,
		.kind = loc->kind,
		.line_first = (uint32_t)p->lines.len,
		.line_count = line_count,
	};
	if (line_count) {
		memcpy(p->lines.v + p->lines.len, lines, line_count * sizeof(*lines));
		p->function_max = MAX(p->function_max, lines[0].function);
	}
	p->lines.len += line_count;
	return (uint32_t)p->locations.len++;
}

static enum status check_location(const struct profile *p, const struct profile_location *loc,
	const struct profile_line *lines, uint32_t line_count)
{
	assert(loc->mapping < p->mappings.len || p->mappings.len == 0);
	if (line_count > PROFILE_LINES_MAX)
		return E_LIMIT;
	for (uint32_t i = 0; i < line_count; i++)
		assert(lines[i].function < p->functions.len);
	return OK;
}

static enum status find_location(struct profile *p, const struct location_key *key, uint32_t *out)
{
	*out = p->location_index.expected;
	if (*out < p->locations.len && location_equal(p, *out, key))
		return OK;
	*out = MAP_NONE;
	if (key->line_count && key->lines[0].function > p->function_max)
		return OK;
	enum status s = index_locations(p);
	if (s == OK) {
		uint64_t h = location_hash(key->loc, key->lines, key->line_count);
		*out = map_find(&p->location_index, h, location_equal, p, key);
	}
	return s;
}

enum status profile_add_location(struct profile *p, const struct profile_location *loc,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out)
{
	enum status s = check_location(p, loc, lines, line_count);
	uint32_t id;
	if (s == OK)
		s = find_location(p, &(struct location_key){ loc, lines, line_count }, &id);
	if (s != OK)
		return s;
	if (id == MAP_NONE) {
		s = RESERVE(p, &p->lines, line_count);
		if (s == OK)
			s = RESERVE(p, &p->locations, 1);
		if (s != OK)
			return s;
		id = write_location(p, loc, lines, line_count);
	}
	p->location_index.expected = id + 1;
	*out = id;
	return OK;
}

enum status profile_append_location(struct profile *p, const struct profile_location *loc,
	const struct profile_line *lines, uint32_t line_count, uint32_t *out)
{
	enum status s = check_location(p, loc, lines, line_count);
	if (s == OK)
		s = RESERVE(p, &p->lines, line_count);
	if (s == OK)
		s = RESERVE(p, &p->locations, 1);
	if (s != OK)
		return s;
	*out = write_location(p, loc, lines, line_count);
	return OK;
}

enum status profile_add_marker(struct profile *p, struct str name, uint32_t *out)
{
	struct profile_function f = { 0 };
	enum status s = profile_add_string(p, name, &f.name);
	if (s != OK)
		return s;
	f.system_name = f.name;
	struct profile_line line = { 0 };
	s = profile_add_function(p, &f, &line.function);
	if (s != OK)
		return s;
	struct profile_location loc = { .kind = FRAME_MARKER };
	return profile_add_location(p, &loc, &line, 1, out);
}

struct stack_key {
	const uint32_t *locations;
	uint32_t count;
};

static bool stack_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct profile *p = ctx;
	const struct stack_key *k = key;
	const struct profile_stack *a = &p->stacks.v[value];
	return a->count == k->count &&
	       (a->count == 0 || memcmp(p->stack_locations.v + a->first, k->locations,
					 a->count * sizeof(*k->locations)) == 0);
}

static enum status add_cut_stack(struct profile *p, const uint32_t *locations, uint32_t *out)
{
	uint32_t cut[PROFILE_STACK_MAX];
	p->cut_stacks++;
	memcpy(cut, locations, (p->stack_max - 1) * sizeof(cut[0]));
	enum status s = profile_add_marker(p, MARKER_TRUNCATED, &cut[p->stack_max - 1]);
	return s == OK ? profile_add_stack(p, cut, p->stack_max, out) : s;
}

enum status profile_add_stack(
	struct profile *p, const uint32_t *locations, uint32_t count, uint32_t *out)
{
	if (count > p->stack_max)
		return add_cut_stack(p, locations, out);
	struct stack_key key = { locations, count };
	uint64_t h = hash64(locations, count * sizeof(*locations));
	uint32_t id = map_find(&p->stack_index, h, stack_equal, p, &key);
	if (id == MAP_NONE) {
		uint32_t greatest = 0;
		for (uint32_t i = 0; i < count;
			i++) /* no branch, so that the compiler vectorizes it */
			greatest = MAX(greatest, locations[i]);
		assert(greatest < p->locations.len || count == 0);
		enum status s = RESERVE(p, &p->stack_locations, count);
		if (s == OK)
			s = RESERVE_INDEXED(p, &p->stacks, &p->stack_index, h);
		if (s != OK)
			return s;
		id = (uint32_t)p->stacks.len;
		p->stacks.v[p->stacks.len++] =
			(struct profile_stack){ (uint32_t)p->stack_locations.len, count };
		if (count)
			memcpy(p->stack_locations.v + p->stack_locations.len, locations,
				count * sizeof(*locations));
		p->stack_locations.len += count;
	}
	*out = id;
	return OK;
}

/* ---- labels ---- */

struct labels_key {
	const struct profile_label *labels;
	uint32_t count;
};

static bool labels_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct profile *p = ctx;
	const struct labels_key *k = key;
	const struct profile_labels *a = &p->label_sets.v[value];
	return a->count == k->count &&
	       (a->count == 0 || memcmp(p->labels.v + a->first, k->labels,
					 a->count * sizeof(*k->labels)) == 0);
}

/* The index of a name among the first `count` labels, or where it would be. */
static uint32_t place_label(struct profile *p, const struct profile_label *out, uint32_t count,
	uint32_t wanted, bool *out_there)
{
	struct str name = profile_str(p, wanted);
	uint32_t low = 0, high = count;
	*out_there = false;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		struct str other = profile_str(p, out[middle].name);
		*out_there = out[middle].name == wanted;
		if (*out_there)
			return middle;
		p->label_work += 16 + MIN(name.len, other.len);
		if (str_cmp(other, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	p->label_work += (count - low) * sizeof(*out);
	return low;
}

/* Insertion sort that drops names which occur twice. UINT32_MAX: more than fit. */
static uint32_t sort_labels(struct profile *p, const struct profile_label *in, uint32_t n,
	struct profile_label out[PROFILE_LABELS_MAX])
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < n; i++) {
		assert(in[i].name < p->strings.len && in[i].value < p->strings.len);
		if (in[i].name == 0 || in[i].value == 0)
			continue;
		bool twice;
		uint32_t at = place_label(p, out, count, in[i].name, &twice);
		if (twice)
			continue;
		if (count == PROFILE_LABELS_MAX)
			return UINT32_MAX;
		memmove(out + at + 1, out + at, (count - at) * sizeof(*out));
		out[at] = in[i];
		count++;
	}
	return count;
}

enum status profile_add_labels(
	struct profile *p, const struct profile_label *labels, uint32_t count, uint32_t *out)
{
	struct profile_label sorted[PROFILE_LABELS_MAX];
	if (count == 0 && p->label_sets.len) {
		*out = 0;
		return OK;
	}
	uint32_t n = sort_labels(p, labels, count, sorted);
	if (n == UINT32_MAX || (p->label_work_max && p->label_work > p->label_work_max))
		return E_LIMIT;
	if (n == 0 && p->label_sets.len) {
		*out = 0;
		return OK;
	}
	struct labels_key key = { sorted, n };
	uint64_t h = hash64(sorted, n * sizeof(sorted[0]));
	uint32_t id = map_find(&p->label_set_index, h, labels_equal, p, &key);
	if (id == MAP_NONE) {
		enum status s = RESERVE(p, &p->labels, n);
		if (s == OK)
			s = RESERVE_INDEXED(p, &p->label_sets, &p->label_set_index, h);
		if (s != OK)
			return s;
		id = (uint32_t)p->label_sets.len;
		p->label_sets.v[p->label_sets.len++] =
			(struct profile_labels){ (uint32_t)p->labels.len, n };
		if (n)
			memcpy(p->labels.v + p->labels.len, sorted, n * sizeof(sorted[0]));
		p->labels.len += n;
	}
	*out = id;
	return OK;
}

/* ---- types, heads, samples ---- */

static bool type_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct profile *p = ctx;
	const struct profile_type *a = &p->types.v[value], *b = key;
	return a->name == b->name && a->sample_type == b->sample_type &&
	       a->sample_unit == b->sample_unit && a->period_type == b->period_type &&
	       a->period_unit == b->period_unit && a->delta == b->delta;
}

enum status profile_add_type(struct profile *p, const struct profile_type *t, uint32_t *out)
{
	const uint32_t words[] = { t->name, t->sample_type, t->sample_unit, t->period_type,
		t->period_unit, t->delta };
	for (size_t i = 0; i < 5; i++)
		assert(words[i] < p->strings.len);
	uint64_t h = hash64(words, sizeof(words));
	uint32_t id = map_find(&p->type_index, h, type_equal, p, t);
	if (id == MAP_NONE) {
		enum status s = RESERVE_INDEXED(p, &p->types, &p->type_index, h);
		if (s != OK)
			return s;
		id = (uint32_t)p->types.len;
		p->types.v[p->types.len++] = *t;
	}
	*out = id;
	return OK;
}

enum status profile_add_link(struct profile *p, const struct profile_link *l, uint32_t *out)
{
	enum status s = RESERVE(p, &p->links, 1);
	if (s != OK)
		return s;
	*out = (uint32_t)p->links.len;
	p->links.v[p->links.len++] = *l;
	return OK;
}

enum status profile_add_head(struct profile *p, const struct profile_head *h, uint32_t *out)
{
	assert(h->type < p->types.len);
	enum status s = RESERVE(p, &p->heads, 1);
	if (s != OK)
		return s;
	*out = (uint32_t)p->heads.len;
	p->heads.v[p->heads.len++] = *h;
	return OK;
}

enum status profile_add_sample(struct profile *p, const struct profile_sample *sample)
{
	assert(sample->head < p->heads.len && sample->stack < p->stacks.len);
	assert(sample->resource < p->label_sets.len && sample->own < p->label_sets.len);
	assert(sample->link < p->links.len);
	enum status s = RESERVE(p, &p->samples, 1);
	if (s != OK)
		return s;
	p->samples.v[p->samples.len++] = *sample;
	return OK;
}

void profile_type_write(struct buf *out, const struct profile *p, const struct profile_type *t)
{
	const uint32_t parts[] = { t->name, t->sample_type, t->sample_unit, t->period_type,
		t->period_unit };
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		if (i)
			buf_u8(out, ':');
		buf_str(out, profile_str(p, parts[i]));
	}
	if (t->delta)
		buf_cstr(out, ":delta");
}

uint64_t profile_bytes(const struct profile *p)
{
	return p->strings.arena.used + (uint64_t)p->strings.cap * sizeof(*p->strings.v) +
	       map_bytes(&p->strings.index) + tables_bytes(p);
}
