/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request: resources, their scopes, their profiles, their samples.
 *
 * Labels that hold for all samples of a profile (resource, scope and profile attributes, in this
 * order, so that the resource's wins) grow in d->labels on the way down and are cut back on the way
 * up. At each level a first pass over the fields finds what the inner messages need (a protobuf
 * writer may put them after), a second one goes down.
 *
 * A profile is taken as a whole or not at all: on a refusal its samples are removed. What it added
 * to other tables stays there unused.
 */
#include "otlp/decoder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* "resource_profiles[N].scope_profiles[N].profiles[N]" */
#define PLACE_BYTES 128

/* Refuses the current profile, or all profiles below the current message; decoding goes on after
 * it. */
static PRINTF(3, 4) enum status
	reject(struct decoder *d, enum otlp_reject why, const char *fmt, ...)
{
	if (d->rejects->profiles == 0) { /* the message of the first one is kept */
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(d->rejection, sizeof(d->rejection), fmt, ap);
		va_end(ap);
	}
	d->why = why;
	d->rejected = true;
	return E_INVALID;
}

/* Counts profiles that are left out for the reason that reject() gave, found in `place`. */
static void count_rejected(struct decoder *d, uint64_t profiles, const char *place)
{
	struct otlp_rejects *r = d->rejects;
	d->rejected = false;
	if (profiles && r->profiles == 0)
		snprintf(r->reason, sizeof(r->reason), "%s: %s", place, d->rejection);
	r->profiles += (int64_t)profiles;
	r->by_reason[d->why] += profiles;
}

/* Refuses an index: its element is defective (d->defect says why), or it is out of range. */
static enum status reject_index(
	struct decoder *d, size_t sample, const char *field, uint64_t index, size_t count)
{
	if (index < count)
		return reject(d, OTLP_REJECT_INDEX,
			"samples[%zu].%s: %" PRIu64 " cannot be used (%s)", sample, field, index,
			d->defect);
	return reject(d, OTLP_REJECT_INDEX,
		"samples[%zu].%s: %" PRIu64 " is out of range (%zu elements)", sample, field, index,
		count);
}

/* ---- labels of a resource, scope or profile ---- */

/* Adds a label of a resource, scope or profile; the first of a name wins. */
static enum status push_label(struct decoder *d, struct profile_label label)
{
	for (size_t i = 0; i < d->labels.len; i++)
		if (d->labels.v[i].name == label.name)
			return OK;
	if (d->labels.len == PROFILE_LABELS_MAX)
		return reject(d, OTLP_REJECT_LIMIT, "attributes: more than %d", PROFILE_LABELS_MAX);
	d->has_resource = false;
	return VEC_PUSH(&d->labels, label) ? OK : E_NOMEM;
}

static void cut_labels(struct decoder *d, size_t count)
{
	d->has_resource = d->has_resource && d->labels.len == count;
	d->labels.len = count;
}

static enum status read_key_value(struct decoder *d, const struct pb_field *field)
{
	struct profile_label label = { 0 };
	struct str key = { 0 };
	struct reader r = pb_message(field);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f)) {
		uint32_t id;
		switch (FIELD(f.number, f.wire)) {
		case FIELD(1, PB_BYTES):
			key = f.bytes;
			break;
		case FIELD(2, PB_BYTES):
			s = otlp_any_value(d, f.bytes, &label.value);
			break;
		case FIELD(3, PB_VARINT):
			id = id_at(&d->strings, f.u64);
			if (id == BAD)
				return reject(d, OTLP_REJECT_INDEX,
					"attributes.key_strindex: %" PRIu64 " is out of range",
					f.u64);
			if (id != 0)
				key = profile_str(d->out, id);
			break;
		default:
			break;
		}
	}
	if (s != OK)
		return s;
	if (r.failed)
		return otlp_torn(d, &r, "attributes", 0);
	if (label.value == BAD)
		return reject(d, OTLP_REJECT_INDEX,
			"attributes.value.string_value_strindex is out of range");
	if (label.value == 0 || key.len == 0)
		return OK;
	s = profile_add_name(d->out, otlp_label_of_attribute(key), &label.name);
	if (s != OK)
		return s;
	return push_label(d, label);
}

/* Reads all KeyValue fields of that number in a Resource or InstrumentationScope. */
static enum status read_attributes(struct decoder *d, struct str bytes, uint32_t number)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f))
		if (f.number == number && f.wire == PB_BYTES)
			s = read_key_value(d, &f);
	if (s == OK && r.failed)
		return otlp_torn(d, &r, "attributes", 0);
	return s;
}

/* Reads attribute_indices of a profile. */
static enum status read_profile_attributes(struct decoder *d, const struct pb_field *f)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t i;
	while (pb_packed_next(&p, &i)) {
		if (i == 0 && d->schema != SCHEMA_1_7)
			continue;
		if (i >= d->attribute_count || d->attributes[i].name == BAD)
			return reject(d, OTLP_REJECT_INDEX,
				"attribute_indices: %" PRIu64 " cannot be used", i);
		const struct attribute *a = &d->attributes[i];
		enum status s = a->name && a->value
					? push_label(d, (struct profile_label){ a->name, a->value })
					: OK;
		if (s != OK)
			return s;
	}
	return p.failed ? otlp_torn(d, &p.r, "attribute_indices", 0) : OK;
}

/* ---- samples ---- */

/* Reads the elements of one field attribute_indices, packed or not. */
static enum status read_own_labels(struct decoder *d, const struct pb_field *f, size_t index,
	struct profile_label labels[PROFILE_LABELS_MAX], uint32_t *io_count)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t i;
	while (pb_packed_next(&p, &i)) {
		if (i == 0 && d->schema != SCHEMA_1_7)
			continue;
		if (i >= d->attribute_count || d->attributes[i].name == BAD)
			return reject_index(d, index, "attribute_indices", i, d->attribute_count);
		if (*io_count == PROFILE_LABELS_MAX)
			return reject(d, OTLP_REJECT_LIMIT,
				"samples[%zu].attribute_indices: more than %d", index,
				PROFILE_LABELS_MAX);
		const struct attribute *a = &d->attributes[i];
		labels[(*io_count)++] = (struct profile_label){ a->name, a->value };
	}
	return p.failed ? otlp_torn(d, &p.r, "attribute_indices", 0) : OK;
}

/* The label set of a sample. `only` is its one field attribute_indices, packed, or NULL: then
 * there are several. */
static enum status own_labels(struct decoder *d, const struct pb_field *sample,
	const struct pb_field *only, size_t index, uint32_t *out)
{
	struct own_slot *slot = NULL;
	if (only) {
		uint64_t h = hash64(only->bytes.p, only->bytes.len);
		slot = &d->own_cache[h % ARRAY_COUNT(d->own_cache)];
		if (slot->bytes.p && str_eq(slot->bytes, only->bytes)) {
			*out = slot->set;
			return OK;
		}
	}
	struct profile_label labels[PROFILE_LABELS_MAX];
	uint32_t count = 0;
	struct reader r = pb_message(sample);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f))
		if (otlp_sample_role(d->schema, f.number) == ROLE_ATTRIBUTES)
			s = read_own_labels(d, &f, index, labels, &count);
	if (s == OK)
		s = profile_add_labels(d->out, labels, count, out);
	if (s == E_LIMIT) /* this number does fit */
		return err_set(
			d->e, s, "labels: so many long names that sorting them takes too long");
	if (s == OK && slot)
		*slot = (struct own_slot){ only->bytes, *out };
	return s;
}

/* A profile's heads: one, in 1.7 one for each sample type. */
struct sample_types {
	uint32_t heads[SAMPLE_TYPES_MAX];
	uint32_t count;
};

/* 1.7: makes a stack of a range of the profile's location_indices. */
static enum status range_stack(
	struct decoder *d, size_t index, uint64_t start, uint64_t length, uint32_t *out)
{
	if (start > d->places.len || length > d->places.len - start)
		return reject_index(
			d, index, "locations_length", start + length, d->places.len + 1);
	/* One frame more than the limit, so that profile_add_stack() truncates and marks the
	 * stack. */
	uint64_t taken = MIN(length, (uint64_t)PROFILE_STACK_MAX + 1);
	d->frames += taken;
	if (d->frames > OTLP_FRAMES_MAX)
		return err_set(d->e, E_LIMIT, "stacks of more than %" PRIu64 " frames together",
			OTLP_FRAMES_MAX);
	VEC_CLEAR(&d->stack);
	for (uint64_t i = start; i < start + taken; i++) {
		uint32_t id = d->places.v[i];
		if (id == BAD)
			return reject_index(d, index, "locations_start_index", i, d->places.len);
		if (id != 0 && !VEC_PUSH(&d->stack, id))
			return E_NOMEM;
	}
	return profile_add_stack(d->out, d->stack.v, (uint32_t)d->stack.len, out);
}

static enum status read_numbers(
	struct decoder *d, const struct pb_field *f, size_t index, bool times)
{
	bool fixed = times && d->schema != SCHEMA_1_7;
	struct pb_packed p = pb_packed(f, fixed ? PB_FIXED64 : PB_VARINT);
	uint64_t v;
	while (pb_packed_next(&p, &v)) {
		if ((times ? d->times.len : d->values.len) == OTLP_OBSERVATIONS_MAX)
			return reject(d, OTLP_REJECT_LIMIT, "samples[%zu].%s: more than %d", index,
				times ? "timestamps_unix_nano" : "values", OTLP_OBSERVATIONS_MAX);
		if (times ? !VEC_PUSH(&d->times, v) : !VEC_PUSH(&d->values, (int64_t)v))
			return E_NOMEM;
	}
	return p.failed ? otlp_torn(d, &p.r, times ? "timestamps_unix_nano" : "values", 0) : OK;
}

/* Reads a sample; its values and times go to the scratch vectors. */
static enum status read_sample(
	struct decoder *d, const struct pb_field *field, size_t index, struct profile_sample *out)
{
	struct reader r = pb_message(field);
	struct pb_field f, attributes = { 0 };
	size_t attribute_fields = 0;
	uint64_t start = 0, length = 0;
	enum status s = OK;
	VEC_CLEAR(&d->values);
	VEC_CLEAR(&d->times);
	while (s == OK && pb_next(&r, &f)) {
		switch (otlp_sample_role(d->schema, f.number)) {
		case ROLE_STACK:
			out->stack = id_at(&d->stacks, f.u64);
			if (out->stack == BAD)
				return reject_index(
					d, index, "stack_index", f.u64, d->stacks.count);
			break;
		case ROLE_START:
			start = f.u64;
			break;
		case ROLE_LENGTH:
			length = f.u64;
			break;
		case ROLE_ATTRIBUTES:
			attributes = f;
			attribute_fields++;
			break;
		case ROLE_LINK:
			out->link = id_at(&d->links, f.u64);
			if (out->link == BAD)
				return reject_index(d, index, "link_index", f.u64, d->links.count);
			break;
		case ROLE_VALUES:
			s = read_numbers(d, &f, index, false);
			break;
		case ROLE_TIMESTAMPS:
			s = read_numbers(d, &f, index, true);
			break;
		default:
			break;
		}
	}
	if (s == OK && r.failed)
		s = otlp_torn(d, &r, "field", 0);
	if (s == OK && length)
		s = range_stack(d, index, start, length, &out->stack);
	if (s != OK || attribute_fields == 0)
		return s;
	bool simple = attribute_fields == 1 && attributes.wire == PB_BYTES;
	return own_labels(d, field, simple ? &attributes : NULL, index, &out->own);
}

/* Adds one observation, at timestamp `t`, or at the profile's time if there is none. */
static enum status add_observation(
	struct decoder *d, size_t index, struct profile_sample *sample, int64_t value, size_t t)
{
	sample->value = value;
	if (d->times.len) {
		uint64_t time = d->times.v[t];
		if (time == 0 || time > INT64_MAX)
			return reject(d, OTLP_REJECT_TIME,
				"samples[%zu].timestamps_unix_nano: %" PRIu64
				" is no time from 1970 to 2262",
				index, time);
		sample->time_ns = (int64_t)time;
	}
	if (value)
		return profile_add_sample(d->out, sample);
	d->out->zero_samples++;
	return OK;
}

/* 1.7: a sample has a value for each sample type, which applies to each timestamp, or with a single
 * type a value for each timestamp. */
static enum status add_columns(struct decoder *d, size_t index, struct profile_sample *sample,
	const struct sample_types *types)
{
	size_t times = d->times.len, values = d->values.len;
	if (values != types->count)
		return reject(d, OTLP_REJECT_VALUES,
			"samples[%zu].values: %zu of %" PRIu32 " sample types", index, values,
			types->count);
	enum status s = OK;
	for (size_t j = 0; s == OK && j < values; j++) {
		sample->head = types->heads[j];
		for (size_t t = 0; s == OK && t < MAX(times, (size_t)1); t++)
			s = add_observation(d, index, sample, d->values.v[j], t);
	}
	return s;
}

static enum status decode_sample(struct decoder *d, const struct pb_field *field, size_t index,
	const struct profile_sample *like, const struct sample_types *types)
{
	struct profile_sample sample = *like;
	enum status s = read_sample(d, field, index, &sample);
	if (s != OK)
		return s;
	size_t times = d->times.len, values = d->values.len;
	if (times == 0 && values && like->time_ns == 0)
		return reject(d, OTLP_REJECT_TIME,
			"samples[%zu]: neither timestamps_unix_nano nor the profile's "
			"time_unix_nano",
			index);
	if (d->schema == SCHEMA_1_7 && values && (times != values || types->count > 1))
		return add_columns(d, index, &sample, types);
	if (times && values && times != values)
		return reject(d, OTLP_REJECT_VALUES,
			"samples[%zu].values: %zu of %zu timestamps_unix_nano", index, values,
			times);
	for (size_t i = 0; s == OK && i < MAX(times, values); i++)
		s = add_observation(d, index, &sample, values ? d->values.v[i] : 1, i);
	return s;
}

static enum status decode_samples(struct decoder *d, struct str bytes,
	const struct profile_sample *like, const struct sample_types *types)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	memset(d->own_cache, 0, sizeof(d->own_cache));
	for (size_t i = 0; pb_next(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		enum status s = decode_sample(d, &f, i, like, types);
		if (s != OK)
			return d->rejected ? s : err_prefix(d->e, s, "samples[%zu]", i);
		i++;
	}
	return OK;
}

/* ---- a profile ---- */

struct head_fields {
	uint64_t sample_types[SAMPLE_TYPES_MAX][2]; /* type_strindex, unit_strindex */
	uint32_t sample_type_count;
	uint64_t period_type[2];
	uint64_t time;
	uint64_t duration;
	int64_t period;
};

/* Reads a ValueType. False: truncated. */
static bool read_value_type(const struct pb_field *field, uint64_t out[2])
{
	struct reader r = pb_message(field);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.wire == PB_VARINT && (f.number == 1 || f.number == 2))
			out[f.number - 1] = f.u64;
	return !r.failed;
}

/* 1.7: reads location_indices, of which samples use ranges. */
static enum status read_places(struct decoder *d, const struct pb_field *f)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t i;
	while (pb_packed_next(&p, &i)) {
		if (d->places.len == OTLP_PLACES_MAX)
			return reject(d, OTLP_REJECT_LIMIT, "location_indices: more than %d",
				OTLP_PLACES_MAX);
		if (!VEC_PUSH(&d->places, id_at(&d->locations, i)))
			return E_NOMEM;
	}
	return p.failed ? otlp_torn(d, &p.r, "location_indices", d->places.len) : OK;
}

static enum status read_sample_type(
	struct decoder *d, const struct pb_field *f, struct head_fields *out)
{
	/* If a field that is not repeated comes twice, the last one is used. */
	uint32_t at = d->schema == SCHEMA_1_7 ? out->sample_type_count : 0;
	if (at == SAMPLE_TYPES_MAX)
		return reject(d, OTLP_REJECT_LIMIT, "sample_type: more than %d", SAMPLE_TYPES_MAX);
	out->sample_type_count = at + 1;
	struct reader r = pb_message(f);
	return read_value_type(f, out->sample_types[at]) ? OK : otlp_torn(d, &r, "sample_type", at);
}

static enum status read_head_field(
	struct decoder *d, const struct pb_field *f, struct head_fields *out)
{
	switch (otlp_profile_role(d->schema, f->number)) {
	case ROLE_SAMPLE_TYPE:
		return f->wire == PB_BYTES ? read_sample_type(d, f, out) : OK;
	case ROLE_LOCATIONS:
		return read_places(d, f);
	case ROLE_TIME:
		if (f->wire == PB_FIXED64 || d->schema == SCHEMA_1_7)
			out->time = f->u64;
		return OK;
	case ROLE_DURATION:
		if (f->wire == PB_VARINT)
			out->duration = f->u64;
		return OK;
	case ROLE_PERIOD_TYPE:
		if (f->wire == PB_BYTES && !read_value_type(f, out->period_type)) {
			struct reader r = pb_message(f);
			return otlp_torn(d, &r, "period_type", 0);
		}
		return OK;
	case ROLE_PERIOD:
		if (f->wire == PB_VARINT)
			out->period = (int64_t)f->u64;
		return OK;
	case ROLE_ATTRIBUTES:
		if (f->wire == PB_VARINT || f->wire == PB_BYTES)
			return read_profile_attributes(d, f);
		return OK;
	default:
		return OK;
	}
}

/* Reads all fields of a profile except the samples. */
static enum status read_head_fields(struct decoder *d, struct str bytes, struct head_fields *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	VEC_CLEAR(&d->places);
	while (s == OK && pb_next(&r, &f))
		s = read_head_field(d, &f, out);
	return s == OK && r.failed ? otlp_torn(d, &r, "field", 0) : s;
}

static enum status make_head(struct decoder *d, const struct head_fields *f,
	const uint64_t sample_type[2], uint32_t name, uint32_t *out)
{
	struct profile_type t = { .name = name, .delta = f->duration != 0 };
	struct profile_head h = { .period = f->period,
		.time_ns = (int64_t)f->time,
		.duration_ns = (int64_t)f->duration };
	if (f->period < 0)
		return reject(d, OTLP_REJECT_PERIOD, "period: %" PRId64 " is negative", f->period);
	if (f->time > INT64_MAX || f->duration > INT64_MAX - f->time)
		return reject(d, OTLP_REJECT_TIME,
			"time_unix_nano: with duration_nano beyond the year 2262");
	const struct {
		const char *field;
		uint64_t index;
		uint32_t *to;
	} parts[] = {
		{ "sample_type.type_strindex", sample_type[0], &t.sample_type },
		{ "sample_type.unit_strindex", sample_type[1], &t.sample_unit },
		{ "period_type.type_strindex", f->period_type[0], &t.period_type },
		{ "period_type.unit_strindex", f->period_type[1], &t.period_unit },
	};
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		uint32_t id = id_at(&d->strings, parts[i].index);
		if (id == BAD)
			return reject(d, OTLP_REJECT_INDEX, "%s: %" PRIu64 " is out of range",
				parts[i].field, parts[i].index);
		enum status s = profile_add_type_part(d->out, profile_str(d->out, id), parts[i].to);
		if (s != OK)
			return s;
	}
	if (t.sample_type == 0)
		return reject(d, OTLP_REJECT_TYPE, "sample_type.type_strindex: no type");
	enum status s = profile_add_type(d->out, &t, &h.type);
	return s == OK ? profile_add_head(d->out, &h, out) : s;
}

static enum status make_heads(
	struct decoder *d, const struct head_fields *f, uint32_t name, struct sample_types *out)
{
	out->count = MAX(f->sample_type_count, 1u); /* a missing one is refused there */
	enum status s = OK;
	for (uint32_t i = 0; s == OK && i < out->count; i++)
		s = make_head(d, f, f->sample_types[i], name, &out->heads[i]);
	return s;
}

static enum status decode_whole_profile(struct decoder *d, struct str bytes, uint32_t name)
{
	struct head_fields fields = { 0 };
	struct sample_types types = { 0 };
	struct profile_sample like = { 0 };
	enum status s = read_head_fields(d, bytes, &fields);
	if (s == OK)
		s = make_heads(d, &fields, name, &types);
	if (s != OK)
		return s;
	like.head = types.heads[0];
	like.time_ns = (int64_t)fields.time;
	/* Most profiles have no labels of their own: the labels of resource and scope are sorted
	 * once. */
	if (!d->has_resource)
		s = profile_add_labels(d->out, d->labels.v, (uint32_t)d->labels.len, &d->resource);
	d->has_resource = s == OK;
	like.resource = d->resource;
	return s == OK ? decode_samples(d, bytes, &like, &types) : s;
}

/* Decodes a profile. A refusal is counted here, and decoding goes on. */
static enum status decode_profile(
	struct decoder *d, const struct pb_field *f, size_t index, uint32_t name)
{
	size_t samples = d->out->samples.len, labels = d->labels.len;
	uint64_t zeros = d->out->zero_samples;
	enum status s = decode_whole_profile(d, f->bytes, name);
	cut_labels(d, labels);
	if (s == OK)
		return OK;
	d->out->samples.len = samples;
	d->out->zero_samples = zeros;
	if (!d->rejected)
		return err_prefix(d->e, s, "profiles[%zu]", index);
	char place[PLACE_BYTES] = "";
	if (d->rejects->profiles == 0)
		snprintf(place, sizeof(place),
			"resource_profiles[%zu].scope_profiles[%zu].profiles[%zu]",
			d->resource_index, d->scope_index, index);
	count_rejected(d, 1, place);
	return OK;
}

/* ---- scopes, resources, the request ---- */

/* Reads a scope's name and attributes. */
static enum status read_scope(struct decoder *d, struct str bytes, uint32_t *out_name)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (FIELD(f.number, f.wire) != FIELD(1, PB_BYTES) || f.bytes.len == 0)
			continue;
		enum status s = profile_add_name(d->out, str_trim(f.bytes), out_name);
		if (s != OK)
			return s;
	}
	if (r.failed)
		return otlp_torn(d, &r, "scope", 0);
	return read_attributes(d, bytes, 3);
}

/* Counts the profiles below. */
static enum status count_below(struct decoder *d, struct str bytes, int depth, uint64_t *io_count)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f)) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		if (depth == 0)
			(*io_count)++;
		else
			s = count_below(d, f.bytes, depth - 1, io_count);
	}
	return s == OK && r.failed ? otlp_torn(d, &r, "field", 0) : s;
}

/* Refuses all profiles below, because of an error in the message above them. */
static enum status reject_below(struct decoder *d, struct str bytes, int depth)
{
	char place[PLACE_BYTES];
	uint64_t count = 0;
	enum status s = count_below(d, bytes, depth, &count);
	if (s != OK)
		return s;
	if (depth > 0)
		snprintf(
			place, sizeof(place), "resource_profiles[%zu].resource", d->resource_index);
	else
		snprintf(place, sizeof(place), "resource_profiles[%zu].scope_profiles[%zu].scope",
			d->resource_index, d->scope_index);
	count_rejected(d, count, place);
	return OK;
}

/* ScopeProfiles (depth 0) and ResourceProfiles (depth 1) have the same form: the common part is in
 * field 1, the elements are in field 2. */
static enum status decode_level(struct decoder *d, struct str bytes, int depth, uint32_t name);

static enum status decode_below(struct decoder *d, struct str bytes, int depth, uint32_t name)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	for (size_t i = 0; pb_next(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		if (depth > 0)
			d->scope_index = i;
		enum status s = depth == 0 ? decode_profile(d, &f, i, name)
					   : decode_level(d, f.bytes, depth - 1, name);
		if (s != OK)
			return depth == 0 ? s : err_prefix(d->e, s, "scope_profiles[%zu]", i);
		i++;
	}
	return OK;
}

static enum status decode_level(struct decoder *d, struct str bytes, int depth, uint32_t name)
{
	size_t labels = d->labels.len;
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f))
		if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			s = depth == 0 ? read_scope(d, f.bytes, &name)
				       : read_attributes(d, f.bytes, 1);
	if (s == OK && r.failed)
		s = otlp_torn(d, &r, "field", 0);
	if (s == OK)
		s = decode_below(d, bytes, depth, name);
	else if (d->rejected)
		s = reject_below(d, bytes, depth);
	cut_labels(d, labels);
	return s;
}

static enum status decode_request(struct decoder *d)
{
	struct reader r = reader_over(d->message.p, d->message.len);
	struct pb_field f;
	struct str dictionary = { 0 };
	size_t dictionaries = 0, resources = 0;
	while (pb_next(&r, &f)) {
		if (FIELD(f.number, f.wire) == FIELD(2, PB_BYTES)) {
			dictionary = f.bytes;
			dictionaries++;
		}
		resources += FIELD(f.number, f.wire) == FIELD(1, PB_BYTES);
	}
	if (r.failed)
		return err_set(d->e, E_INVALID,
			"ExportProfilesServiceRequest: malformed at byte %zu", reader_offset(&r));
	if (resources == 0)
		return OK;
	if (dictionaries != 1)
		return err_set(d->e, E_INVALID,
			dictionaries ? "more than one dictionary"
				     : "no dictionary (OTLP profiles before 1.7 are not taken)");
	d->schema = otlp_schema_of(d->message);
	enum status s = otlp_decode_dictionary(d, dictionary);
	if (s != OK)
		return err_prefix(d->e, s, "dictionary");
	uint32_t name;
	s = profile_add_string(d->out, STR("unknown"), &name);
	r = reader_over(d->message.p, d->message.len);
	for (size_t i = 0; s == OK && pb_next(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(1, PB_BYTES))
			continue;
		d->resource_index = i;
		s = decode_level(d, f.bytes, 1, name);
		if (s != OK)
			err_prefix(d->e, s, "resource_profiles[%zu]", i);
		i++;
	}
	return s;
}

/* The longest text of an attribute that is a number. */
#define ANY_VALUE_TEXT_MAX 64

enum status otlp_decode(
	struct str message, struct profile *out, struct otlp_rejects *rejects, struct err *e)
{
	struct decoder *d = calloc(1, sizeof(*d));
	if (!d)
		return err_set(e, E_NOMEM, "%s", status_text(E_NOMEM));
	struct err none;
	d->e = e ? e : &none;
	*d->e = (struct err){ 0 };
	*rejects = (struct otlp_rejects){ 0 };
	d->message = message;
	d->out = out;
	d->rejects = rejects;
	/* The largest element of a table takes this much for each byte of the smallest message that
	 * makes one. */
	arena_init(&d->arena, message.len * sizeof(struct attribute) + 4096);
	buf_init(&d->text, ANY_VALUE_TEXT_MAX);
	size_t samples = out->samples.len;
	enum status s = decode_request(d);
	if (s != OK) {
		out->samples.len = samples;
		if (!d->e->text[0])
			err_set(d->e, s, "%s", status_text(s));
	}
	arena_deinit(&d->arena);
	buf_deinit(&d->text);
	VEC_FREE(&d->stack);
	VEC_FREE(&d->places);
	VEC_FREE(&d->values);
	VEC_FREE(&d->times);
	VEC_FREE(&d->labels);
	free(d);
	return s;
}
