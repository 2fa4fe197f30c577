/* SPDX-License-Identifier: Apache-2.0 */
/*
 * profile.proto refers to elements by ids that the writer chose (1, 2, 3, … for nearly all, any
 * distinct non-zero number for some) and to strings by index; a table may come after the fields
 * that use it. So one scan notes where each table lies and how many elements it has, and the tables
 * are then read in the order of their dependencies.
 */
#include "pprof/decode.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif
#include <endian.h>
#include <inttypes.h>
#include <stdio.h>

/* ---- strings ---- */

static enum status decode_string(struct decoder *d, struct str bytes, size_t index)
{
	if (index == 0 && bytes.len)
		return err_set(d->e, E_INVALID, "string_table[0]: not empty");
	enum status s = profile_add_string(d->out, bytes, &d->strings[index]);
	return s == OK ? OK : pprof_not_added(d, s, PPROF_STRING, index);
}

/* ---- sample types ---- */

static bool read_value_type(struct str bytes, uint64_t out[2])
{
	uint64_t v[3] = { 0, out[0], out[1] };
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (next_other(&r, v, 2, &f))
		;
	out[0] = v[1];
	out[1] = v[2];
	return !r.failed;
}

static enum status type_part(struct decoder *d, uint64_t index, uint32_t *out)
{
	uint32_t id = string_at(d, index);
	if (id == NO_ID)
		return err_set(d->e, E_INVALID,
			"sample_type or period_type: string %" PRIu64 " does not exist", index);
	return profile_add_type_part(d->out, profile_str(d->out, id), out);
}

static enum status add_column(
	struct decoder *d, uint32_t name, const uint64_t parts[2], uint32_t *out)
{
	struct profile_type t = { .name = name, .delta = d->head.duration_ns != 0 };
	struct profile_head h = d->head;
	enum status s = type_part(d, parts[0], &t.sample_type);
	if (s == OK)
		s = type_part(d, parts[1], &t.sample_unit);
	if (s == OK)
		s = type_part(d, d->period_type[0], &t.period_type);
	if (s == OK)
		s = type_part(d, d->period_type[1], &t.period_unit);
	if (s == OK)
		s = profile_add_type(d->out, &t, &h.type);
	return s == OK ? profile_add_head(d->out, &h, out) : s;
}

static enum status decode_columns(struct decoder *d, struct str name)
{
	const struct table_run *run = &d->runs[PPROF_SAMPLE_TYPE];
	d->column_count = run->count;
	d->columns = ARENA_ARRAY(&d->arena, uint32_t, run->count);
	d->values = ARENA_ARRAY(&d->arena, int64_t, run->count);
	if (!d->columns || !d->values)
		return arena_status(&d->arena);
	if (run->count == 0) {
		if (d->runs[PPROF_SAMPLE].count)
			return err_set(d->e, E_INVALID, "samples without sample_type");
		return OK;
	}
	uint32_t name_id;
	enum status s = profile_add_name(d->out, name.len ? name : STR("unknown"), &name_id);
	struct reader r = reader_over(run->first, (size_t)(run->end - run->first));
	struct pb_field f;
	for (size_t i = 0; s == OK && pb_next_inline(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(PPROF_SAMPLE_TYPE, PB_BYTES))
			continue;
		uint64_t parts[2] = { 0 };
		if (!read_value_type(f.bytes, parts))
			return pprof_torn(d, &r, PPROF_SAMPLE_TYPE, i);
		s = add_column(d, name_id, parts, &d->columns[i++]);
	}
	return s;
}

/* ---- comments ---- */

static void note_comments(struct decoder *d, const struct pb_field *f)
{
	struct pb_packed p = pb_packed(f, PB_VARINT);
	uint64_t id;
	while (pb_packed_next(&p, &id))
		if (d->comment_count < PROFILE_COMMENTS_MAX)
			d->comments[d->comment_count++] = id;
}

static bool was_before(const struct decoder *d, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (string_at(d, d->comments[k]) == string_at(d, d->comments[i]))
			return true;
	return false;
}

/* Takes each comment once, and as many as fit. */
static enum status decode_comments(struct decoder *d)
{
	CLEANUP(buf_deinit) struct buf all;
	buf_init(&all, PROFILE_COMMENTS_BYTES_MAX);
	for (size_t i = 0; i < d->comment_count; i++) {
		uint32_t id = string_at(d, d->comments[i]);
		if (id == NO_ID)
			return err_set(d->e, E_INVALID,
				"comment: string %" PRIu64 " does not exist", d->comments[i]);
		struct str text = profile_str(d->out, id);
		bool fits = text.len > 0 && all.len + 1 + text.len <= PROFILE_COMMENTS_BYTES_MAX &&
			    str_index(text, PROFILE_COMMENTS_END) == text.len;
		if (!fits || was_before(d, i))
			continue;
		if (all.len)
			buf_u8(&all, PROFILE_COMMENTS_END);
		buf_str(&all, text);
	}
	enum status s = buf_status(&all);
	if (s == OK)
		s = profile_add_string(d->out, buf_view(&all), &d->comment);
	return s == OK ? profile_add_string(d->out, STR(PROFILE_LABEL_COMMENTS), &d->comment_name)
		       : s;
}

/* ---- samples ---- */

/* A label name that the resource has, too, becomes exported_NAME. */
static enum status export_name(struct decoder *d, uint32_t *name)
{
	const struct profile_labels *set = &d->out->label_sets.v[d->options->resource];
	bool taken = false;
	for (uint32_t i = 0; i < set->count && !taken; i++)
		taken = d->out->labels.v[set->first + i].name == *name;
	if (!taken)
		return OK;
	struct buf b;
	buf_init(&b, 2048);
	buf_cstr(&b, "exported_");
	buf_str(&b, profile_str(d->out, *name));
	enum status s = buf_status(&b);
	if (s == OK)
		s = profile_add_name(d->out, buf_view(&b), name);
	buf_deinit(&b);
	return s;
}

/* Numbers that are no sample labels are joined into one label, so that they make no series of their
 * own. A number that would make the label too long is left out. */
static void add_number(struct decoder *d, struct str name, int64_t number, struct str unit)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "=%" PRId64, number);
	if (str_index(unit, ',') < unit.len)
		unit = STR("");
	size_t begin = d->numbers.len, more = name.len + (size_t)len + unit.len + 2;
	if (name.len == 0 || begin + more > PROFILE_NUMBERS_BYTES_MAX)
		return;
	buf_cstr(&d->numbers, begin ? "," : "");
	buf_str(&d->numbers, name);
	buf_cstr(&d->numbers, text);
	buf_cstr(&d->numbers, unit.len ? ":" : "");
	buf_str(&d->numbers, unit);
}

static enum status add_numbers(struct decoder *d, size_t sample, struct profile_label *out)
{
	enum status s = buf_status(&d->numbers);
	if (s == OK)
		s = profile_add_string(d->out, STR(PROFILE_LABEL_NUMBERS), &out->name);
	if (s == OK)
		s = profile_add_string(d->out, buf_view(&d->numbers), &out->value);
	return s == OK ? OK : pprof_not_added(d, s, PPROF_SAMPLE, sample);
}

/* Sets no name in *out if the label went to d->numbers, or if only decoders may set a label of
 * this name. */
static enum status decode_label(
	struct decoder *d, const struct pb_field *field, size_t sample, struct profile_label *out)
{
	uint64_t v[5] = { 0 }; /* by field */
	struct reader r = pb_message(field);
	struct pb_field f;
	while (next_other(&r, v, 4, &f))
		;
	if (r.failed)
		return pprof_torn(d, &r, PPROF_SAMPLE, sample);
	uint64_t key = v[1], text = v[2], unit = v[4];
	int64_t number = (int64_t)v[3];
	uint32_t name = string_at(d, key), value = string_at(d, text);
	if (name == NO_ID)
		return pprof_dangling(d, PPROF_SAMPLE, sample, "a label's key", key);
	if (value == NO_ID)
		return pprof_dangling(d, PPROF_SAMPLE, sample, "a label's str", text);
	struct str text_name = profile_str(d->out, name);
	if (d->options->profile_id_is_span && str_eq(text_name, STR("profile_id")))
		text_name = STR("span_id");
	enum status s = profile_add_name(d->out, text_name, &out->name);
	if (s == OK && d->options->resource)
		s = export_name(d, &out->name);
	out->value = value;
	if (s == OK && text == 0 && !profile_label_is_of_sample(profile_str(d->out, out->name))) {
		uint32_t unit_id = string_at(d, unit);
		if (unit_id == NO_ID)
			return pprof_dangling(d, PPROF_SAMPLE, sample, "a label's num_unit", unit);
		add_number(d, profile_str(d->out, out->name), number, profile_str(d->out, unit_id));
		out->name = 0;
	} else if (s == OK && profile_label_is_hidden(profile_str(d->out, out->name))) {
		out->name = 0;
	} else if (s == OK && text == 0) {
		char digits[24];
		snprintf(digits, sizeof(digits), "%" PRId64, number);
		s = profile_add_string(d->out, str_of(digits), &out->value);
	}
	return s == OK ? OK : pprof_not_added(d, s, PPROF_SAMPLE, sample);
}

static enum status no_location(struct decoder *d, uint64_t id, size_t sample)
{
	return pprof_dangling(d, PPROF_SAMPLE, sample, "location_id", id);
}

static enum status add_location_id(struct decoder *d, uint64_t id, size_t sample)
{
	uint32_t location = id_index(&d->locations, id);
	if (id == 0 || location == NO_ID)
		return no_location(d, id, sample);
	if (location != 0 && !VEC_PUSH(&d->stack, location))
		return pprof_not_added(d, E_NOMEM, PPROF_SAMPLE, sample);
	return OK;
}

/* Reads four ids of two bytes each, into parts of 16 bits. False: they are no such ids of the
 * profile's locations. */
static inline bool read_four_ids(const uint8_t *p, uint32_t filled, uint64_t *out)
{
	const uint64_t each = 0x0001000100010001;
	uint64_t w, most = MIN(filled, 0x3fffu);
	memcpy(&w, p, sizeof(w));
	w = le64toh(w);
	if ((w & 0x80 * each) != 0x80 * each || (w & 0x8000 * each))
		return false;
	w = (w & 0x7f * each) | (w >> 1 & 0x3f80 * each);
	*out = w;
	/* In the first sum the highest bit of each part says that the id is above 0; in the second,
	 * that it is above the last. */
	return ((w + 0x7fff * each) & 0x8000 * each) == 0x8000 * each &&
	       ((w + (0x7fff - most) * each) & 0x8000 * each) == 0;
}

/* Reads eight such ids and stores them at `to`. */
static inline bool read_eight_ids(const uint8_t *p, uint32_t filled, uint32_t *to)
{
#ifdef __SSE2__
	const short most = (short)MIN(filled, 0x3fffu);
	__m128i w = _mm_loadu_si128((const __m128i_u *)p), zero = _mm_setzero_si128();
	__m128i two = _mm_cmpeq_epi16(
		_mm_and_si128(w, _mm_set1_epi16((short)0x8080)), _mm_set1_epi16(0x80));
	w = _mm_or_si128(_mm_and_si128(w, _mm_set1_epi16(0x7f)),
		_mm_and_si128(_mm_srli_epi16(w, 1), _mm_set1_epi16(0x3f80)));
	__m128i known = _mm_and_si128(
		_mm_cmpgt_epi16(w, zero), _mm_cmpgt_epi16(_mm_set1_epi16((short)(most + 1)), w));
	if (_mm_movemask_epi8(_mm_and_si128(two, known)) != 0xffff)
		return false;
	_mm_storeu_si128((__m128i_u *)to, _mm_unpacklo_epi16(w, zero));
	_mm_storeu_si128((__m128i_u *)(to + 4), _mm_unpackhi_epi16(w, zero));
	return true;
#else
	(void)p;
	(void)filled;
	(void)to;
	return false;
#endif
}

/* Reads ids of one or two bytes that are their own places, as most ids of a message are. Leaves the
 * reader at the first id of another kind. */
static enum status read_short_ids(struct decoder *d, struct reader *r, size_t sample)
{
	const uint8_t *p = r->at, *end = r->end;
	const uint32_t *indices = d->locations.indices, filled = d->locations.filled;
	if (!VEC_RESERVE(&d->stack, d->stack.len + (size_t)(end - p)))
		return pprof_not_added(d, E_NOMEM, PPROF_SAMPLE, sample);
	uint32_t *to = d->stack.v + d->stack.len;
	bool same = !d->locations.moved;
	while (p < end) {
		uint64_t four;
		for (; same && end - p >= 16 && read_eight_ids(p, filled, to); p += 16)
			to += 8;
		if (p == end)
			break;
		if (same && end - p >= 8 && read_four_ids(p, filled, &four)) {
			for (int i = 0; i < 4; i++)
				to[i] = four >> 16 * i & 0xffff;
			to += 4;
			p += 8;
			continue;
		}
		uint32_t id = *p, more = 0;
		if (id >= 0x80) {
			if (end - p < 2 || p[1] >= 0x80)
				break;
			more = 1;
			id = (id & 0x7f) | (uint32_t)p[1] << 7;
		}
		if (id - 1 >= filled)
			return no_location(d, id, sample);
		uint32_t location = indices[id - 1];
		*to = location;
		to += location != 0;
		p += 1 + more;
	}
	r->at = p;
	d->stack.len = (size_t)(to - d->stack.v);
	return OK;
}

/* location_id, packed or not. */
static enum status read_locations(struct decoder *d, const struct pb_field *f, size_t sample)
{
	enum status s = OK;
	if (f->wire == PB_VARINT)
		return add_location_id(d, f->u64, sample);
	struct reader r = pb_message(f);
	r.failed |= f->wire != PB_BYTES;
	while (s == OK && !reader_done(&r)) {
		if (!d->locations.sparse) {
			s = read_short_ids(d, &r, sample);
			if (s != OK || reader_done(&r))
				break;
		}
		uint64_t id = reader_varint(&r);
		if (r.failed)
			break;
		s = add_location_id(d, id, sample);
	}
	return s == OK && r.failed ? pprof_torn(d, &r, PPROF_SAMPLE, sample) : s;
}

static enum status read_values(
	struct decoder *d, const struct pb_field *f, size_t sample, size_t *io_count)
{
	struct reader r = pb_message(f);
	r.failed |= f->wire != PB_BYTES && f->wire != PB_VARINT;
	bool single = f->wire == PB_VARINT;
	while (single || !reader_done(&r)) {
		uint64_t v = single ? f->u64 : reader_varint(&r);
		if (r.failed)
			break;
		if (*io_count < d->column_count)
			d->values[*io_count] = (int64_t)v;
		(*io_count)++;
		single = false;
	}
	return r.failed ? pprof_torn(d, &r, PPROF_SAMPLE, sample) : OK;
}

static enum status add_sample(
	struct decoder *d, size_t index, const struct profile_label *labels, uint32_t label_count)
{
	struct profile_sample sample = { .time_ns = d->head.time_ns,
		.resource = d->options->resource };
	enum status s = profile_add_labels(d->out, labels, label_count, &sample.own);
	if (s == OK)
		s = profile_add_stack(d->out, d->stack.v, (uint32_t)d->stack.len, &sample.stack);
	for (size_t i = 0; s == OK && i < d->column_count; i++) {
		sample.head = d->columns[i];
		sample.value = d->values[i];
		if (sample.value)
			s = profile_add_sample(d->out, &sample);
		else
			d->out->zero_samples++;
	}
	return s == OK ? OK : pprof_not_added(d, s, PPROF_SAMPLE, index);
}

static enum status decode_sample(struct decoder *d, struct str bytes, size_t index)
{
	struct profile_label labels[PROFILE_LABELS_MAX + 2];
	uint32_t label_count = 0;
	size_t value_count = 0;
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	enum status s = OK;
	VEC_CLEAR(&d->stack);
	buf_clear(&d->numbers);
	while (s == OK && pb_next_inline(&r, &f)) {
		if (f.number == 1) {
			s = read_locations(d, &f, index);
		} else if (f.number == 2) {
			s = read_values(d, &f, index, &value_count);
		} else if (f.number == 3 && f.wire == PB_BYTES) {
			if (label_count == PROFILE_LABELS_MAX)
				return pprof_not_added(d, E_LIMIT, PPROF_SAMPLE, index);
			s = decode_label(d, &f, index, &labels[label_count]);
			label_count += s == OK && labels[label_count].name != 0;
		}
	}
	if (s == OK && d->numbers.len)
		s = add_numbers(d, index, &labels[label_count++]);
	if (d->comment && label_count < PROFILE_LABELS_MAX)
		labels[label_count++] = (struct profile_label){ d->comment_name, d->comment };
	if (s != OK)
		return s;
	if (r.failed)
		return pprof_torn(d, &r, PPROF_SAMPLE, index);
	if (value_count != d->column_count)
		return err_set(d->e, E_INVALID, "sample[%zu]: %zu values for %zu sample types",
			index, value_count, d->column_count);
	return add_sample(d, index, labels, label_count);
}

/* ---- the message ---- */

static enum status find_tables(struct decoder *d)
{
	struct reader r = reader_over(d->message.p, d->message.len);
	struct pb_field f;
	for (const uint8_t *at = r.at; pb_next_inline(&r, &f); at = r.at) {
		switch (FIELD(f.number, f.wire)) {
		case FIELD(9, PB_VARINT):
			d->head.time_ns = (int64_t)f.u64;
			break;
		case FIELD(10, PB_VARINT):
			d->head.duration_ns = (int64_t)f.u64;
			break;
		case FIELD(11, PB_BYTES):
			if (!read_value_type(f.bytes, d->period_type))
				return err_set(d->e, E_INVALID, "period_type: malformed");
			break;
		case FIELD(12, PB_VARINT):
			d->head.period = (int64_t)f.u64;
			break;
		case FIELD(13, PB_VARINT):
		case FIELD(13, PB_BYTES):
			note_comments(d, &f);
			break;
		default:
			if (f.number >= PPROF_TABLES || f.wire != PB_BYTES)
				break;
			if (d->runs[f.number].count++ == 0)
				d->runs[f.number].first = at;
			d->runs[f.number].end = r.at;
		}
	}
	if (r.failed)
		return err_set(
			d->e, E_INVALID, "profile.proto: malformed at byte %zu", reader_offset(&r));
	if (d->head.period < 0)
		return err_set(d->e, E_INVALID, "period %" PRId64, d->head.period);
	if (d->head.time_ns == 0)
		d->head.time_ns = d->options->time_ns;
	if (d->head.time_ns < 0 || d->head.duration_ns < 0)
		return err_set(d->e, E_INVALID, "time_nanos or duration_nanos is negative");
	if (d->head.time_ns > INT64_MAX - d->head.duration_ns)
		return err_set(
			d->e, E_INVALID, "time_nanos and duration_nanos end beyond the year 2262");
	return OK;
}

/* Reserves room for the elements; most ids of locations take two bytes. */
static void expect_elements(struct decoder *d)
{
	const struct table_run *samples = &d->runs[PPROF_SAMPLE];
	const struct profile_room r = {
		.strings = d->string_count,
		.functions = d->runs[PPROF_FUNCTION].count,
		.locations = d->runs[PPROF_LOCATION].count,
		.frames = samples->count ? (size_t)(samples->end - samples->first) / 2 : 0,
		.samples = samples->count,
	};
	profile_expect(d->out, &r);
}

/* Looks at all texts at once, since few programs have any. */
static bool mentions_shapes(const struct decoder *d)
{
	const struct table_run *texts = &d->runs[PPROF_STRING];
	return memmem(texts->first, (size_t)(texts->end - texts->first), "[go.shape.", 10);
}

static enum status decode_tables(struct decoder *d)
{
	enum status s = find_tables(d);
	if (s == OK)
		s = pprof_code_begin(d);
	if (s != OK)
		return s;
	d->string_count = d->runs[PPROF_STRING].count;
	if (d->string_count == 0)
		return err_set(d->e, E_INVALID, "no string_table");
	d->strings = ARENA_ARRAY(&d->arena, uint32_t, d->string_count);
	if (!d->strings)
		return pprof_not_added(d, arena_status(&d->arena), PPROF_STRING, d->string_count);
	expect_elements(d);
	d->has_shapes = d->options->without_go_shapes && mentions_shapes(d);
	s = each_element(d, PPROF_STRING, decode_string);
	if (s == OK)
		s = decode_comments(d);
	if (s == OK)
		s = pprof_code_read(d);
	if (s == OK)
		s = decode_columns(d, d->options->name);
	if (s == OK)
		s = each_element(d, PPROF_SAMPLE, decode_sample);
	return s;
}

enum status pprof_decode(struct str message, struct str name, struct profile *out, struct err *e)
{
	return pprof_decode_with(message, &(struct pprof_options){ .name = name }, out, e);
}

enum status pprof_decode_with(
	struct str message, const struct pprof_options *options, struct profile *out, struct err *e)
{
	struct err none = { 0 };
	struct decoder d = {
		.message = message, .options = options, .out = out, .e = e ? e : &none
	};
	*d.e = (struct err){ 0 };
	/* An element has at least two bytes, and its id table needs at most 12 bytes for it, or 28
	 * for a mapping. */
	arena_init(&d.arena, message.len * 14 + 4096);
	size_t samples = out->samples.len;
	buf_init(&d.numbers, PROFILE_NUMBERS_BYTES_MAX);
	enum status s = decode_tables(&d);
	if (s != OK) {
		out->samples.len = samples;
		if (!d.e->text[0])
			err_set(d.e, s, "%s", status_text(s));
	}
	arena_deinit(&d.arena);
	buf_deinit(&d.numbers);
	map_deinit(&d.mappings.map);
	map_deinit(&d.locations.map);
	map_deinit(&d.functions.map);
	VEC_FREE(&d.stack);
	return s;
}
