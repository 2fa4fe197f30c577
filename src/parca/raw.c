/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WriteRawRequest: pprof files by series. Fields of a message may come in any order, so each
 * message is read twice: first for the fields that inner messages need, then for the inner
 * messages.
 */
#include "parca/parca.h"

#include "codec/codec.h"
#include "pb/pb.h"
#include "pprof/pprof.h"

#include <inttypes.h>

#define FIELD(number, wire) ((uint64_t)(number) << 3 | (wire))
#define NAME_LABEL STR("__name__")

struct raw {
	struct profile *out;
	struct err *e;
	int64_t now_ns;
	bool normalized;
	size_t unpacked;  /* bytes of all profiles */
	struct buf plain; /* one profile, decompressed */
	VEC(struct pprof_segment) segments;
};

static enum status malformed(struct raw *r, const char *what)
{
	return err_set(r->e, E_INVALID, "%s: malformed", what);
}

/* ---- labels ---- */

static bool read_label(const struct pb_field *field, struct str *name, struct str *value)
{
	struct reader r = pb_message(field);
	struct pb_field f;
	*name = *value = STR("");
	while (pb_next(&r, &f)) {
		if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			*name = f.bytes;
		else if (FIELD(f.number, f.wire) == FIELD(2, PB_BYTES))
			*value = f.bytes;
	}
	return !r.failed;
}

struct label_list {
	struct profile_label v[PROFILE_LABELS_MAX];
	uint32_t count;
	struct str name; /* __name__ */
};

static enum status add_label(struct raw *r, struct label_list *l, struct str name, struct str value)
{
	if (str_eq(name, NAME_LABEL)) {
		if (l->name.len)
			return err_set(r->e, E_INVALID, "label __name__ occurs twice");
		l->name = value;
		return OK;
	}
	if (name.len == 0)
		return err_set(r->e, E_INVALID, "a label without a name");
	if (l->count == PROFILE_LABELS_MAX)
		return err_set(r->e, E_LIMIT, "more than %d labels", PROFILE_LABELS_MAX);
	struct profile_label *label = &l->v[l->count];
	enum status s = profile_add_name(r->out, name, &label->name);
	if (s == OK)
		s = profile_add_string(r->out, value, &label->value);
	if (s != OK)
		return err_set(r->e, s, "labels: %s", status_text(s));
	for (uint32_t i = 0; i < l->count; i++)
		if (l->v[i].name == label->name)
			return err_set(r->e, E_INVALID, "label %.*s occurs twice",
				STR_ARG(str_sub(name, 0, 64)));
	l->count++;
	return OK;
}

/* LabelSet { repeated Label labels = 1 } */
static enum status read_labels(struct raw *r, const struct pb_field *field, struct label_list *l)
{
	struct reader reader = pb_message(field);
	struct pb_field f;
	struct str name, value;
	enum status s = OK;
	while (s == OK && pb_next(&reader, &f)) {
		if (FIELD(f.number, f.wire) != FIELD(1, PB_BYTES))
			continue;
		if (!read_label(&f, &name, &value))
			return malformed(r, "labels");
		s = add_label(r, l, name, value);
	}
	return s == OK && reader.failed ? malformed(r, "labels") : s;
}

/* ---- samples ---- */

/* ExecutableInfo { elf_type = 1; LoadSegment load_segment = 2 { offset = 1; vaddr = 2 } } */
static enum status read_segment(struct raw *r, const struct pb_field *field)
{
	struct pprof_segment segment = { 0 };
	struct reader reader = pb_message(field);
	struct pb_field f, g;
	while (pb_next(&reader, &f)) {
		if (FIELD(f.number, f.wire) == FIELD(1, PB_VARINT))
			segment.elf_type = (uint32_t)f.u64;
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		struct reader inner = pb_message(&f);
		while (pb_next(&inner, &g)) {
			if (FIELD(g.number, g.wire) == FIELD(1, PB_VARINT))
				segment.offset = g.u64;
			else if (FIELD(g.number, g.wire) == FIELD(2, PB_VARINT))
				segment.vaddr = g.u64;
		}
		reader.failed |= inner.failed;
	}
	if (reader.failed)
		return malformed(r, "executable_info");
	return VEC_PUSH(&r->segments, segment) ? OK : E_NOMEM;
}

/* The bytes of a pprof file, decompressed if they are gzip. */
static enum status unpack(struct raw *r, struct str in, struct str *out)
{
	*out = in;
	if (codec_is_gzip(in.p, in.len)) {
		buf_clear(&r->plain);
		enum status s = codec_gunzip(in.p, in.len, &r->plain, r->e);
		if (s != OK)
			return err_prefix(r->e, s == E_CORRUPT ? E_INVALID : s, "raw_profile");
		*out = buf_view(&r->plain);
	}
	r->unpacked += out->len;
	if (r->unpacked > PARCA_RAW_BYTES_MAX)
		return err_set(r->e, E_LIMIT, "raw_profile: more than %zu bytes, decompressed",
			PARCA_RAW_BYTES_MAX);
	return OK;
}

/* RawSample { raw_profile = 1; repeated ExecutableInfo executable_info = 2 } */
static enum status read_sample(
	struct raw *r, const struct pb_field *field, const struct pprof_options *series)
{
	struct pprof_options options = *series;
	struct str packed = STR(""), plain;
	struct reader reader = pb_message(field);
	struct pb_field f;
	enum status s = OK;
	VEC_CLEAR(&r->segments);
	while (s == OK && pb_next(&reader, &f)) {
		if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			packed = f.bytes;
		else if (FIELD(f.number, f.wire) == FIELD(2, PB_BYTES))
			s = read_segment(r, &f);
	}
	if (s == OK && reader.failed)
		s = malformed(r, "field");
	if (s == OK && packed.len == 0)
		s = err_set(r->e, E_INVALID, "no raw_profile");
	if (s == OK)
		s = unpack(r, packed, &plain);
	if (s != OK)
		return s;
	if (!r->normalized) {
		options.segments = r->segments.v;
		options.segment_count = r->segments.len;
	}
	s = pprof_decode_with(plain, &options, r->out, r->e);
	return s == OK ? OK : err_prefix(r->e, s, "raw_profile");
}

/* ---- series ---- */

static enum status read_series_labels(
	struct raw *r, const struct pb_field *field, struct pprof_options *options)
{
	struct label_list labels = { .count = 0 };
	struct reader reader = pb_message(field);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&reader, &f))
		if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			s = read_labels(r, &f, &labels);
	if (s == OK && reader.failed)
		s = malformed(r, "field");
	if (s == OK && labels.name.len == 0)
		s = err_set(r->e, E_INVALID, "no label __name__");
	if (s != OK)
		return s;
	s = profile_add_labels(r->out, labels.v, labels.count, &options->resource);
	options->name = labels.name;
	return s == OK ? OK : err_set(r->e, s, "labels: %s", status_text(s));
}

static enum status read_series(struct raw *r, const struct pb_field *field)
{
	struct pprof_options options = { .time_ns = r->now_ns, .is_vaddr = r->normalized };
	enum status s = read_series_labels(r, field, &options);
	struct reader reader = pb_message(field);
	struct pb_field f;
	for (size_t i = 0; s == OK && pb_next(&reader, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		s = read_sample(r, &f, &options);
		if (s != OK)
			err_prefix(r->e, s, "samples[%zu]", i);
		i++;
	}
	return s;
}

static enum status read_request(struct raw *r, struct str message)
{
	struct reader reader = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&reader, &f))
		if (FIELD(f.number, f.wire) == FIELD(3, PB_VARINT))
			r->normalized = f.u64 != 0;
	if (reader.failed)
		return err_set(r->e, E_INVALID, "WriteRawRequest: malformed at byte %zu",
			reader_offset(&reader));
	enum status s = OK;
	reader = reader_over(message.p, message.len);
	for (size_t i = 0; s == OK && pb_next(&reader, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		s = read_series(r, &f);
		if (s != OK)
			err_prefix(r->e, s, "series[%zu]", i);
		i++;
	}
	return s;
}

enum status parca_raw_decode(struct str message, int64_t now_ns, struct profile *out, struct err *e)
{
	struct err none;
	struct raw r = { .out = out, .e = e ? e : &none, .now_ns = now_ns };
	size_t samples = out->samples.len;
	*r.e = (struct err){ 0 };
	buf_init(&r.plain, PARCA_RAW_BYTES_MAX);
	enum status s = read_request(&r, message);
	if (s != OK) {
		out->samples.len = samples;
		if (!r.e->text[0])
			err_set(r.e, s, "%s", status_text(s));
	}
	buf_deinit(&r.plain);
	VEC_FREE(&r.segments);
	return s;
}
