/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Samples are sorted so that those of one OTLP message follow each other: by resource, head and the
 * profile's time (for ResourceProfiles, ScopeProfiles and Profile), then by the identity of a
 * Sample: stack, own labels, link. Writing them gives each table element its index in the
 * dictionary on first use; the dictionary is written last.
 *
 * A Profile's time is its head's if the sample's own time is within [time, time + duration]; a
 * sample outside of it gets a Profile with its own time, because receivers refuse such a timestamp.
 * The decoder takes a profile with a duration for a delta, so a delta without one gets 1 ns, and a
 * gauge with one gets 0.
 *
 * All attribute values are written as text: Parca drops others.
 */
#include "otlp/names.h"
#include "otlp/otlp.h"
#include "pb/pb.h"

#include <stdlib.h>

enum attribute_use { USE_LABEL, USE_BUILD_ID, USE_FRAME_KIND };

struct attribute_key {
	uint32_t use;   /* enum attribute_use */
	uint32_t name;  /* USE_LABEL: string of the profile */
	uint32_t value; /* string of the profile; USE_FRAME_KIND: the kind */
};

/* The numbers in the dictionary of a table's elements. */
struct order {
	uint32_t *index;    /* by the profile's index; 0: not used so far (or the null element) */
	VEC(uint32_t) list; /* the profile's indices in order; list.v[i] has index i + 1 */
};

struct encoder {
	const struct profile *p;
	struct buf *out;
	bool no_memory;
	uint32_t *sorted; /* indices of samples */
	struct order mappings, locations, functions, links, stacks;
	uint32_t *string_index; /* by the profile's string; 0: not used so far, or "" */
	struct strtab strings;
	VEC(struct attribute_key) attributes; /* attributes.v[i] has index i + 1 */
	struct map attribute_index;
	uint32_t profiles; /* written so far */
};

/* ---- indices ---- */

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
static bool order_take(struct encoder *c, struct order *o, uint32_t id, uint32_t *out)
{
	*out = o->index[id];
	if (id == 0 || *out)
		return false;
	if (!VEC_PUSH(&o->list, id)) {
		c->no_memory = true;
		return false;
	}
	*out = o->index[id] = (uint32_t)o->list.len;
	return true;
}

static uint32_t text_index(struct encoder *c, struct str s)
{
	uint32_t id = 0;
	if (strtab_intern(&c->strings, s, &id) != OK)
		c->no_memory = true;
	return id;
}

static uint32_t string_index(struct encoder *c, uint32_t id)
{
	if (id && !c->string_index[id])
		c->string_index[id] = text_index(c, profile_str(c->p, id));
	return c->string_index[id];
}

static bool attribute_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct encoder *c = ctx;
	const struct attribute_key *a = &c->attributes.v[value - 1], *b = key;
	return a->use == b->use && a->name == b->name && a->value == b->value;
}

static uint32_t attribute_index(
	struct encoder *c, enum attribute_use use, uint32_t name, uint32_t value)
{
	struct attribute_key key = { use, name, value };
	uint64_t h = hash_u64((uint64_t)name << 34 ^ (uint64_t)use << 32 ^ value);
	uint32_t i = map_find(&c->attribute_index, h, attribute_equal, c, &key);
	if (i != MAP_NONE)
		return i;
	i = (uint32_t)c->attributes.len + 1;
	if (!VEC_PUSH(&c->attributes, key) || !map_insert(&c->attribute_index, h, i)) {
		c->no_memory = true;
		return 0;
	}
	return i;
}

static uint32_t stack_index(struct encoder *c, uint32_t stack)
{
	uint32_t index, ignored;
	if (!order_take(c, &c->stacks, stack, &index))
		return index;
	const struct profile_stack *s = &c->p->stacks.v[stack];
	for (uint32_t i = 0; i < s->count; i++) {
		uint32_t id = c->p->stack_locations.v[s->first + i];
		if (!order_take(c, &c->locations, id, &ignored))
			continue;
		const struct profile_location *l = &c->p->locations.v[id];
		order_take(c, &c->mappings, l->mapping, &ignored);
		for (uint32_t j = 0; j < l->line_count; j++)
			order_take(c, &c->functions, c->p->lines.v[l->line_first + j].function,
				&ignored);
	}
	return index;
}

/* ---- samples ---- */

static int64_t head_duration(const struct profile *p, const struct profile_head *h)
{
	return p->types.v[h->type].delta ? MAX(h->duration_ns, (int64_t)1) : 0;
}

/* The time of the Profile that a sample goes into. */
static int64_t profile_time(const struct profile *p, const struct profile_sample *s)
{
	const struct profile_head *h = &p->heads.v[s->head];
	bool inside = s->time_ns >= h->time_ns &&
		      (uint64_t)s->time_ns - (uint64_t)h->time_ns <= (uint64_t)head_duration(p, h);
	return inside ? h->time_ns : s->time_ns;
}

#define ORDER_BY(a, b)  \
	if ((a) != (b)) \
	return (a) < (b) ? -1 : 1

static int compare_samples(const void *pa, const void *pb, void *ctx)
{
	const struct profile *p = ctx;
	uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
	const struct profile_sample *a = &p->samples.v[ia], *b = &p->samples.v[ib];
	ORDER_BY(a->resource, b->resource);
	ORDER_BY(a->head, b->head);
	ORDER_BY(profile_time(p, a), profile_time(p, b));
	ORDER_BY(a->stack, b->stack);
	ORDER_BY(a->own, b->own);
	ORDER_BY(a->link, b->link);
	ORDER_BY(a->time_ns, b->time_ns);
	ORDER_BY(ia, ib);
	return 0;
}

static const struct profile_sample *sorted_at(const struct encoder *c, size_t i)
{
	return &c->p->samples.v[c->sorted[i]];
}

/* The end of the run from `i` on whose samples are one Sample; ends at `end`. */
static size_t same_sample(const struct encoder *c, size_t i, size_t end)
{
	const struct profile_sample *a = sorted_at(c, i);
	for (i++; i < end; i++) {
		const struct profile_sample *b = sorted_at(c, i);
		if (a->stack != b->stack || a->own != b->own || a->link != b->link)
			break;
	}
	return i;
}

static size_t same_profile(const struct encoder *c, size_t i, size_t end)
{
	const struct profile_sample *a = sorted_at(c, i);
	int64_t time = profile_time(c->p, a);
	for (i++; i < end; i++) {
		const struct profile_sample *b = sorted_at(c, i);
		if (a->head != b->head || profile_time(c->p, b) != time)
			break;
	}
	return i;
}

static size_t same_resource(const struct encoder *c, size_t i, size_t end)
{
	uint32_t resource = sorted_at(c, i)->resource;
	while (i < end && sorted_at(c, i)->resource == resource)
		i++;
	return i;
}

/* Writes values and timestamps of the samples first … end - 1, which have the same identity. A
 * single sample may be without a time of its own; of several each has one, since receivers count
 * times. */
static void put_values(struct encoder *c, size_t first, size_t end, int64_t time_ns)
{
	bool own_times = end - first > 1, ones = true;
	for (size_t i = first; i < end; i++) {
		const struct profile_sample *s = sorted_at(c, i);
		own_times |= s->time_ns != time_ns;
		ones &= s->value == 1;
	}
	if (!own_times || !ones) {
		size_t values = pb_begin(c->out, 4);
		for (size_t i = first; i < end; i++)
			buf_varint(c->out, (uint64_t)sorted_at(c, i)->value);
		pb_end(c->out, values);
	}
	if (own_times) {
		size_t times = pb_begin(c->out, 5);
		for (size_t i = first; i < end; i++)
			buf_u64(c->out, (uint64_t)sorted_at(c, i)->time_ns);
		pb_end(c->out, times);
	}
}

static void put_sample(struct encoder *c, size_t first, size_t end, int64_t time_ns)
{
	const struct profile_sample *s = sorted_at(c, first);
	const struct profile_labels *own = &c->p->label_sets.v[s->own];
	uint32_t indices[PROFILE_LABELS_MAX], link;
	assert(own->count <= PROFILE_LABELS_MAX);
	for (uint32_t i = 0; i < own->count; i++) {
		const struct profile_label *l = &c->p->labels.v[own->first + i];
		indices[i] = attribute_index(c, USE_LABEL, l->name, l->value);
	}
	order_take(c, &c->links, s->link, &link);
	size_t begun = pb_begin(c->out, 2);
	pb_put_u64(c->out, 1, stack_index(c, s->stack));
	pb_put_packed_u32(c->out, 2, indices, own->count);
	pb_put_u64(c->out, 3, link);
	put_values(c, first, end, time_ns);
	pb_end(c->out, begun);
}

static void put_value_type(struct encoder *c, uint32_t field, uint32_t type, uint32_t unit)
{
	size_t begun = pb_begin(c->out, field);
	pb_put_u64(c->out, 1, string_index(c, type));
	pb_put_u64(c->out, 2, string_index(c, unit));
	pb_end(c->out, begun);
}

/* Writes 16 bytes that are not all zero, and equal for equal content, so that a retry can be
 * recognized. */
static void put_profile_id(struct encoder *c, size_t begun)
{
	struct hash128 h = { .lo = 1 };
	if (!c->out->failed)
		h = hash128(c->out->data + begun, c->out->len - begun);
	h.hi ^= hash_u64(c->profiles);
	h.lo |= 1;
	pb_put_str(c->out, 7, str_make(&h, sizeof(h)));
}

static void put_profile(struct encoder *c, size_t first, size_t end)
{
	const struct profile_sample *s = sorted_at(c, first);
	const struct profile_head *h = &c->p->heads.v[s->head];
	const struct profile_type *t = &c->p->types.v[h->type];
	int64_t time_ns = profile_time(c->p, s);
	size_t begun = pb_begin(c->out, 2);
	put_value_type(c, 1, t->sample_type, t->sample_unit);
	for (size_t i = first; i < end;) {
		size_t next = same_sample(c, i, end);
		put_sample(c, i, next, time_ns);
		i = next;
	}
	pb_put_fixed64(c->out, 3, (uint64_t)time_ns);
	pb_put_i64(c->out, 4, head_duration(c->p, h));
	put_value_type(c, 5, t->period_type, t->period_unit);
	pb_put_i64(c->out, 6, h->period);
	put_profile_id(c, begun);
	pb_end(c->out, begun);
	c->profiles++;
}

static void put_key_value(struct encoder *c, struct str key, struct str text)
{
	size_t attribute = pb_begin(c->out, 1);
	pb_put_str(c->out, 1, key);
	size_t value = pb_begin(c->out, 2);
	pb_put_str(c->out, 1, text);
	pb_end(c->out, value);
	pb_end(c->out, attribute);
}

/* Writes a resource's labels by the keys of the conventions, and also by the label's own name if a
 * reader would make another name of the key: dashboards use `node`. */
static void put_resource(struct encoder *c, uint32_t set)
{
	const struct profile_labels *labels = &c->p->label_sets.v[set];
	size_t resource = pb_begin(c->out, 1);
	for (uint32_t i = 0; i < labels->count; i++) {
		const struct profile_label *l = &c->p->labels.v[labels->first + i];
		struct str label = profile_str(c->p, l->name);
		struct str key = otlp_attribute_of_label(label);
		put_key_value(c, key, profile_str(c->p, l->value));
		if (!otlp_attribute_gives_label(key, label))
			put_key_value(c, label, profile_str(c->p, l->value));
	}
	pb_end(c->out, resource);
}

static uint32_t name_of(const struct encoder *c, size_t i)
{
	return c->p->types.v[c->p->heads.v[sorted_at(c, i)->head].type].name;
}

/* Writes the samples of one resource: a ScopeProfiles for consecutive profiles of one name. */
static void put_scopes(struct encoder *c, size_t first, size_t end)
{
	while (first < end) {
		uint32_t name = name_of(c, first);
		size_t begun = pb_begin(c->out, 2);
		size_t scope = pb_begin(c->out, 1);
		pb_put_str(c->out, 1, profile_str(c->p, name));
		pb_end(c->out, scope);
		while (first < end && name_of(c, first) == name) {
			size_t next = same_profile(c, first, end);
			put_profile(c, first, next);
			first = next;
		}
		pb_end(c->out, begun);
	}
}

/* ---- the dictionary ---- */

static void put_null(struct encoder *c, enum dictionary_field table)
{
	pb_put_str_always(c->out, table, STR(""));
}

static void put_mappings(struct encoder *c)
{
	put_null(c, DICT_MAPPING);
	for (size_t i = 0; i < c->mappings.list.len; i++) {
		const struct profile_mapping *m = &c->p->mappings.v[c->mappings.list.v[i]];
		uint32_t build_id = 0;
		if (m->build_id)
			build_id = attribute_index(c, USE_BUILD_ID, 0, m->build_id);
		size_t begun = pb_begin(c->out, DICT_MAPPING);
		pb_put_u64(c->out, 1, m->start);
		pb_put_u64(c->out, 2, m->limit);
		pb_put_u64(c->out, 3, m->offset);
		pb_put_u64(c->out, 4, string_index(c, m->filename));
		pb_put_packed_u32(c->out, 5, &build_id, build_id != 0);
		pb_end(c->out, begun);
	}
}

static void put_locations(struct encoder *c)
{
	put_null(c, DICT_LOCATION);
	for (size_t i = 0; i < c->locations.list.len; i++) {
		const struct profile_location *l = &c->p->locations.v[c->locations.list.v[i]];
		uint32_t kind = 0;
		if (l->kind)
			kind = attribute_index(c, USE_FRAME_KIND, 0, l->kind);
		size_t begun = pb_begin(c->out, DICT_LOCATION);
		pb_put_u64(c->out, 1, c->mappings.index[l->mapping]);
		pb_put_u64(c->out, 2, l->address);
		for (uint32_t j = 0; j < l->line_count; j++) {
			const struct profile_line *line = &c->p->lines.v[l->line_first + j];
			if (line->function == 0)
				continue;
			size_t put = pb_begin(c->out, 3);
			pb_put_u64(c->out, 1, c->functions.index[line->function]);
			pb_put_u64(c->out, 2, line->line);
			pb_put_u64(c->out, 3, line->column);
			pb_end(c->out, put);
		}
		pb_put_packed_u32(c->out, 4, &kind, kind != 0);
		pb_end(c->out, begun);
	}
}

static void put_functions(struct encoder *c)
{
	put_null(c, DICT_FUNCTION);
	for (size_t i = 0; i < c->functions.list.len; i++) {
		const struct profile_function *f = &c->p->functions.v[c->functions.list.v[i]];
		size_t begun = pb_begin(c->out, DICT_FUNCTION);
		pb_put_u64(c->out, 1, string_index(c, f->name));
		pb_put_u64(c->out, 2, string_index(c, f->system_name));
		pb_put_u64(c->out, 3, string_index(c, f->filename));
		pb_put_u64(c->out, 4, f->start_line);
		pb_end(c->out, begun);
	}
}

static void put_links(struct encoder *c)
{
	put_null(c, DICT_LINK);
	for (size_t i = 0; i < c->links.list.len; i++) {
		const struct profile_link *l = &c->p->links.v[c->links.list.v[i]];
		size_t begun = pb_begin(c->out, DICT_LINK);
		pb_put_str(c->out, 1, str_make(l->trace_id, sizeof(l->trace_id)));
		pb_put_str(c->out, 2, str_make(l->span_id, sizeof(l->span_id)));
		pb_end(c->out, begun);
	}
}

static void put_stacks(struct encoder *c)
{
	put_null(c, DICT_STACK);
	for (size_t i = 0; i < c->stacks.list.len; i++) {
		const struct profile_stack *s = &c->p->stacks.v[c->stacks.list.v[i]];
		uint32_t indices[PROFILE_STACK_MAX];
		assert(s->count <= PROFILE_STACK_MAX);
		for (uint32_t j = 0; j < s->count; j++)
			indices[j] = c->locations.index[c->p->stack_locations.v[s->first + j]];
		size_t begun = pb_begin(c->out, DICT_STACK);
		pb_put_packed_u32(c->out, 1, indices, s->count);
		pb_end(c->out, begun);
	}
}

static struct str attribute_key_text(const struct encoder *c, const struct attribute_key *a)
{
	switch ((enum attribute_use)a->use) {
	case USE_FRAME_KIND:
		return STR(ATTRIBUTE_FRAME_TYPE);
	case USE_BUILD_ID:
		return str_starts(profile_str(c->p, a->value), STR("x")) ? STR(ATTRIBUTE_CONTENT_ID)
									 : STR(ATTRIBUTE_BUILD_ID);
	case USE_LABEL:
	default:
		return otlp_attribute_of_own_label(profile_str(c->p, a->name));
	}
}

static void put_attributes(struct encoder *c)
{
	put_null(c, DICT_ATTRIBUTE);
	for (size_t i = 0; i < c->attributes.len; i++) {
		const struct attribute_key *a = &c->attributes.v[i];
		struct str value = a->use == USE_FRAME_KIND
					   ? str_of(frame_kind_name((enum frame_kind)a->value))
					   : profile_str(c->p, a->value);
		size_t begun = pb_begin(c->out, DICT_ATTRIBUTE);
		pb_put_u64(c->out, 1, text_index(c, attribute_key_text(c, a)));
		size_t any = pb_begin(c->out, 2);
		pb_put_str(c->out, 1, value);
		pb_end(c->out, any);
		pb_end(c->out, begun);
	}
}

/* Writes attributes and strings last, since the other tables add to them. */
static void put_dictionary(struct encoder *c)
{
	size_t begun = pb_begin(c->out, 2);
	put_mappings(c);
	put_locations(c);
	put_functions(c);
	put_links(c);
	put_stacks(c);
	put_attributes(c);
	for (uint32_t i = 0; i < c->strings.len; i++)
		pb_put_str_always(c->out, DICT_STRING, strtab_get(&c->strings, i));
	pb_end(c->out, begun);
}

/* ---- the request ---- */

static void encoder_deinit(struct encoder *c)
{
	free(c->sorted);
	free(c->string_index);
	order_deinit(&c->mappings);
	order_deinit(&c->locations);
	order_deinit(&c->functions);
	order_deinit(&c->links);
	order_deinit(&c->stacks);
	strtab_deinit(&c->strings);
	VEC_FREE(&c->attributes);
	map_deinit(&c->attribute_index);
}

static bool encoder_init(struct encoder *c, const struct profile *p, struct buf *out)
{
	*c = (struct encoder){ .p = p, .out = out };
	c->sorted = calloc(p->samples.len + 1, sizeof(*c->sorted));
	c->string_index = calloc(p->strings.len, sizeof(*c->string_index));
	/* All strings of the profile and the keys, which are few. */
	size_t text_bytes = p->strings.arena.used + 65536;
	if (!c->sorted || !c->string_index || strtab_init(&c->strings, text_bytes) != OK ||
		!order_init(&c->mappings, p->mappings.len) ||
		!order_init(&c->locations, p->locations.len) ||
		!order_init(&c->functions, p->functions.len) ||
		!order_init(&c->links, p->links.len) || !order_init(&c->stacks, p->stacks.len))
		return false;
	for (uint32_t i = 0; i < p->samples.len; i++)
		c->sorted[i] = i;
	return true;
}

enum status otlp_encode(const struct profile *p, struct buf *out)
{
	CLEANUP(encoder_deinit) struct encoder c;
	if (!encoder_init(&c, p, out))
		return E_NOMEM;
	size_t count = p->samples.len;
	qsort_r(c.sorted, count, sizeof(*c.sorted), compare_samples, (void *)(uintptr_t)p);
	for (size_t i = 0; i < count;) {
		size_t next = same_resource(&c, i, count);
		size_t begun = pb_begin(out, 1);
		put_resource(&c, sorted_at(&c, i)->resource);
		put_scopes(&c, i, next);
		pb_end(out, begun);
		i = next;
	}
	put_dictionary(&c);
	return c.no_memory ? E_NOMEM : buf_status(out);
}
