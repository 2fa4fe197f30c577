/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request: resources, their scopes, their profiles, their samples.
 *
 * Labels that hold for all samples of a profile (resource, scope and profile attributes, in this
 * order, so that the resource's wins) grow in d->labels on the way down and are cut back on the
 * way up. At each level a first pass over the fields finds what the inner messages need (a
 * protobuf writer may put them after), a second one goes down.
 *
 * A profile is taken whole or not at all: on a refusal the samples that it added go again. What
 * it added to the other tables stays, unused.
 */
#include "otlp/decoder.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* The profile at hand is refused; the decoding goes on after it. */
static PRINTF(2, 3) enum status reject(struct decoder *d, const char *fmt, ...)
{
	d->rejected = true;
	if (d->rejects->reason[0] == 0) {
		va_list ap;
		va_start(ap, fmt);
		vsnprintf(d->rejects->reason, sizeof(d->rejects->reason), fmt, ap);
		va_end(ap);
	}
	return E_INVALID;
}

/* "" when the defect of the dictionary is not known to be the reason. */
static enum status reject_index(
	struct decoder *d, size_t sample, const char *field, uint64_t index, size_t count)
{
	if (index < count)
		return reject(d, "samples[%zu]: %s %" PRIu64 " cannot be used (%s)", sample, field,
			index, d->defect);
	return reject(d, "samples[%zu]: %s %" PRIu64 " is out of range (%zu elements)", sample,
		field, index, count);
}

/* ---- labels of a resource, scope or profile ---- */

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
				return reject(d,
					"attributes: key_strindex %" PRIu64 " is out of range",
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
		return reject(d, "attributes: string_value_strindex is out of range");
	if (label.value == 0 || key.len == 0)
		return OK;
	s = profile_add_name(d->out, otlp_label_of_attribute(key), &label.name);
	if (s != OK)
		return s;
	return VEC_PUSH(&d->labels, label) ? OK : E_NOMEM;
}

/* All KeyValue fields of that number in a Resource or InstrumentationScope. */
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

/* attribute_indices of a profile. */
static enum status read_profile_attributes(struct decoder *d, const struct pb_field *f)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t i;
	while (pb_packed_next(&p, &i)) {
		if (i == 0)
			continue;
		if (i >= d->attribute_count || d->attributes[i].name == BAD)
			return reject(d, "attribute_indices: %" PRIu64 " cannot be used", i);
		const struct attribute *a = &d->attributes[i];
		if (!VEC_PUSH(&d->labels, (struct profile_label){ a->name, a->value }))
			return E_NOMEM;
	}
	return p.failed ? otlp_torn(d, &p.r, "attribute_indices", 0) : OK;
}

/* ---- samples ---- */

/* The elements of one field attribute_indices, packed or not. */
static enum status read_own_labels(struct decoder *d, const struct pb_field *f, size_t index,
	struct profile_label labels[PROFILE_LABELS_MAX], uint32_t *io_count)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t i;
	while (pb_packed_next(&p, &i)) {
		if (i == 0)
			continue;
		if (i >= d->attribute_count || d->attributes[i].name == BAD)
			return reject_index(d, index, "attribute index", i, d->attribute_count);
		if (*io_count == PROFILE_LABELS_MAX)
			return reject(d, "samples[%zu]: more than %d attributes", index,
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
		if (f.number == 2)
			s = read_own_labels(d, &f, index, labels, &count);
	if (s == OK)
		s = profile_add_labels(d->out, labels, count, out);
	if (s == OK && slot)
		*slot = (struct own_slot){ only->bytes, *out };
	return s;
}

/* The fields of a sample; values and times go to the scratch vectors. */
static enum status read_sample(
	struct decoder *d, const struct pb_field *field, size_t index, struct profile_sample *out)
{
	struct reader r = pb_message(field);
	struct pb_field f, attributes = { 0 };
	struct pb_packed p;
	uint64_t v;
	size_t attribute_fields = 0;
	VEC_CLEAR(&d->values);
	VEC_CLEAR(&d->times);
	while (pb_next(&r, &f)) {
		switch (f.number) {
		case 1:
			out->stack = id_at(&d->stacks, f.u64);
			if (out->stack == BAD)
				return reject_index(
					d, index, "stack_index", f.u64, d->stacks.count);
			break;
		case 2:
			attributes = f;
			attribute_fields++;
			break;
		case 3:
			out->link = id_at(&d->links, f.u64);
			if (out->link == BAD)
				return reject_index(d, index, "link_index", f.u64, d->links.count);
			break;
		case 4:
			for (p = pb_packed(&f, PB_VARINT); pb_packed_next(&p, &v);)
				if (!VEC_PUSH(&d->values, (int64_t)v))
					return E_NOMEM;
			if (p.failed)
				return otlp_torn(d, &p.r, "values", d->values.len);
			break;
		case 5:
			for (p = pb_packed(&f, PB_FIXED64); pb_packed_next(&p, &v);)
				if (!VEC_PUSH(&d->times, v))
					return E_NOMEM;
			if (p.failed)
				return otlp_torn(d, &p.r, "timestamps_unix_nano", d->times.len);
			break;
		default:
			break;
		}
	}
	if (r.failed)
		return otlp_torn(d, &r, "field", 0);
	if (attribute_fields == 0)
		return OK;
	bool simple = attribute_fields == 1 && attributes.wire == PB_BYTES;
	return own_labels(d, field, simple ? &attributes : NULL, index, &out->own);
}

static enum status decode_sample(struct decoder *d, const struct pb_field *field, size_t index,
	const struct profile_sample *like)
{
	struct profile_sample sample = *like;
	enum status s = read_sample(d, field, index, &sample);
	if (s != OK)
		return s;
	size_t times = d->times.len, values = d->values.len;
	if (times && values && times != values)
		return reject(
			d, "samples[%zu]: %zu values and %zu timestamps", index, values, times);
	if (times == 0 && values && like->time_ns == 0)
		return reject(
			d, "samples[%zu]: no time: neither timestamps nor the profile's", index);
	for (size_t i = 0; i < MAX(times, values); i++) {
		sample.value = values ? d->values.v[i] : 1;
		if (times && (d->times.v[i] == 0 || d->times.v[i] > INT64_MAX))
			return reject(d, "samples[%zu]: timestamp %" PRIu64, index, d->times.v[i]);
		if (times)
			sample.time_ns = (int64_t)d->times.v[i];
		if (sample.value == 0)
			continue;
		s = profile_add_sample(d->out, &sample);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status decode_samples(
	struct decoder *d, struct str bytes, const struct profile_sample *like)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	memset(d->own_cache, 0, sizeof(d->own_cache));
	for (size_t i = 0; pb_next(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		enum status s = decode_sample(d, &f, i, like);
		if (s != OK)
			return d->rejected ? s : err_prefix(d->e, s, "samples[%zu]", i);
		i++;
	}
	return OK;
}

/* ---- a profile ---- */

struct head_fields {
	uint64_t sample_type[2]; /* type_strindex, unit_strindex */
	uint64_t period_type[2];
	uint64_t time;
	uint64_t duration;
	int64_t period;
};

/* False: torn. */
static bool read_value_type(const struct pb_field *field, uint64_t out[2])
{
	struct reader r = pb_message(field);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.wire == PB_VARINT && (f.number == 1 || f.number == 2))
			out[f.number - 1] = f.u64;
	return !r.failed;
}

/* Everything but the samples. */
static enum status read_head_fields(struct decoder *d, struct str bytes, struct head_fields *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	bool sound = true;
	while (s == OK && sound && pb_next(&r, &f)) {
		switch (FIELD(f.number, f.wire)) {
		case FIELD(1, PB_BYTES):
			sound = read_value_type(&f, out->sample_type);
			break;
		case FIELD(3, PB_FIXED64):
			out->time = f.u64;
			break;
		case FIELD(4, PB_VARINT):
			out->duration = f.u64;
			break;
		case FIELD(5, PB_BYTES):
			sound = read_value_type(&f, out->period_type);
			break;
		case FIELD(6, PB_VARINT):
			out->period = (int64_t)f.u64;
			break;
		case FIELD(11, PB_VARINT):
		case FIELD(11, PB_BYTES):
			s = read_profile_attributes(d, &f);
			break;
		default:
			break;
		}
	}
	if (s == OK && (r.failed || !sound))
		return otlp_torn(d, &r, "field", 0);
	return s;
}

static enum status make_head(
	struct decoder *d, const struct head_fields *f, uint32_t name, uint32_t *out)
{
	struct profile_type t = { .name = name, .delta = f->duration != 0 };
	struct profile_head h = { .period = f->period,
		.time_ns = (int64_t)f->time,
		.duration_ns = (int64_t)f->duration };
	if (f->time > INT64_MAX || f->duration > INT64_MAX - f->time)
		return reject(d, "time_unix_nano or duration_nano is beyond the year 2262");
	const struct {
		uint64_t index;
		uint32_t *to;
	} parts[] = {
		{ f->sample_type[0], &t.sample_type },
		{ f->sample_type[1], &t.sample_unit },
		{ f->period_type[0], &t.period_type },
		{ f->period_type[1], &t.period_unit },
	};
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		uint32_t id = id_at(&d->strings, parts[i].index);
		if (id == BAD)
			return reject(d,
				"sample_type or period_type: strindex %" PRIu64 " is out of range",
				parts[i].index);
		enum status s = profile_add_type_part(d->out, profile_str(d->out, id), parts[i].to);
		if (s != OK)
			return s;
	}
	if (t.sample_type == 0)
		return reject(d, "no sample_type");
	enum status s = profile_add_type(d->out, &t, &h.type);
	return s == OK ? profile_add_head(d->out, &h, out) : s;
}

static enum status decode_whole_profile(struct decoder *d, struct str bytes, uint32_t name)
{
	struct head_fields fields = { 0 };
	struct profile_sample like = { 0 };
	enum status s = read_head_fields(d, bytes, &fields);
	if (s == OK)
		s = make_head(d, &fields, name, &like.head);
	if (s != OK)
		return s;
	like.time_ns = (int64_t)fields.time;
	if (d->labels.len > UINT32_MAX)
		return E_LIMIT;
	s = profile_add_labels(d->out, d->labels.v, (uint32_t)d->labels.len, &like.resource);
	if (s == E_LIMIT && d->labels.len > PROFILE_LABELS_MAX)
		return reject(d, "more than %d attributes", PROFILE_LABELS_MAX);
	return s == OK ? decode_samples(d, bytes, &like) : s;
}

/* A refusal is counted here and is no failure of the decoding. */
static enum status decode_profile(
	struct decoder *d, const struct pb_field *f, size_t index, uint32_t name)
{
	size_t samples = d->out->samples.len, labels = d->labels.len;
	enum status s = decode_whole_profile(d, f->bytes, name);
	d->labels.len = labels;
	if (s == OK)
		return OK;
	d->out->samples.len = samples;
	if (!d->rejected)
		return err_prefix(d->e, s, "profiles[%zu]", index);
	d->rejected = false;
	d->rejects->profiles++;
	return OK;
}

/* ---- scopes, resources, the request ---- */

/* The scope's name and attributes. */
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

/* All profiles below are refused for what is wrong above them. */
static enum status reject_below(struct decoder *d, struct str bytes, int depth)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f)) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		if (depth == 0)
			d->rejects->profiles++;
		else
			s = reject_below(d, f.bytes, depth - 1);
	}
	d->rejected = false;
	if (d->rejects->profiles == 0) /* there was none: nothing is lost */
		d->rejects->reason[0] = 0;
	return s == OK && r.failed ? otlp_torn(d, &r, "field", 0) : s;
}

/* ScopeProfiles (depth 0) and ResourceProfiles (depth 1) have the same form: what is common in
 * field 1, what it is common to in field 2. */
static enum status decode_level(struct decoder *d, struct str bytes, int depth, uint32_t name);

static enum status decode_below(struct decoder *d, struct str bytes, int depth, uint32_t name)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	for (size_t i = 0; pb_next(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
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
	d->labels.len = labels;
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
			dictionaries ? "more than one dictionary" : "no dictionary");
	enum status s = otlp_decode_dictionary(d, dictionary);
	if (s != OK)
		return err_prefix(d->e, s, "dictionary");
	uint32_t name;
	s = profile_add_string(d->out, STR("unknown"), &name);
	r = reader_over(d->message.p, d->message.len);
	for (size_t i = 0; s == OK && pb_next(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(1, PB_BYTES))
			continue;
		s = decode_level(d, f.bytes, 1, name);
		if (s != OK)
			err_prefix(d->e, s, "resource_profiles[%zu]", i);
		i++;
	}
	return s;
}

/* Texts of attributes that are numbers. */
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
	/* The largest element of a table against the smallest message that makes one. */
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
	VEC_FREE(&d->values);
	VEC_FREE(&d->times);
	VEC_FREE(&d->labels);
	free(d);
	return s;
}
