/* SPDX-License-Identifier: Apache-2.0 */
/*
 * push.v1.PushRequest: series of labels and pprof files. Fields of a message may come in any order,
 * so a series is read twice: for its labels, then for its files.
 */
#include "codec/codec.h"
#include "pb/pb.h"
#include "pprof/pprof.h"
#include "pyroscope/labels.h"
#include "pyroscope/repair.h"
#include "pyroscope/types.h"

#define FIELD(number, wire) ((uint64_t)(number) << 3 | (wire))

struct push {
	struct profile *out;
	struct err *e;
	int64_t now_ns;
	size_t unpacked;  /* bytes of all profiles */
	struct buf plain; /* one profile, decompressed */
};

static enum status malformed(struct push *p, const char *what)
{
	return err_set(p->e, E_INVALID, "%s: malformed", what);
}

/* LabelPair { name = 1; value = 2 } */
static enum status read_label(
	struct push *p, const struct pb_field *field, struct series_labels *labels)
{
	struct str text[2] = { STR(""), STR("") };
	struct reader r = pb_message(field);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.wire == PB_BYTES && (f.number == 1 || f.number == 2))
			text[f.number - 1] = f.bytes;
	if (r.failed)
		return malformed(p, "labels");
	return labels_add(labels, p->out, text[0], text[1], p->e);
}

/* The bytes of a pprof file, decompressed if they are gzip. */
static enum status unpack(struct push *p, struct str in, struct str *out)
{
	*out = in;
	if (codec_is_gzip(in.p, in.len)) {
		buf_clear(&p->plain);
		enum status s = codec_gunzip(in.p, in.len, &p->plain, p->e);
		if (s != OK)
			return s == E_CORRUPT ? err_prefix(p->e, E_INVALID, "gzip") : s;
		*out = buf_view(&p->plain);
	}
	p->unpacked += out->len;
	if (p->unpacked > PYROSCOPE_BYTES_MAX)
		return err_set(
			p->e, E_LIMIT, "more than %zu bytes, decompressed", PYROSCOPE_BYTES_MAX);
	return OK;
}

static enum status read_file(struct push *p, struct str packed, const struct pprof_options *series)
{
	struct added a = { (uint32_t)p->out->heads.len, p->out->samples.len };
	struct str plain;
	if (packed.len == 0)
		return err_set(p->e, E_INVALID, "it is empty");
	enum status s = unpack(p, packed, &plain);
	if (s == OK)
		s = pprof_decode_with(plain, series, p->out, p->e);
	if (s != OK)
		return s;
	s = repair_go_stacks(p->out, a);
	if (s == OK)
		s = types_finish(p->out, a, &(struct made){ .from_ns = p->now_ns });
	return s == OK ? OK : err_set(p->e, s, "stacks or types: %s", status_text(s));
}

/* RawSample { raw_profile = 1; ID = 2 } */
static enum status read_sample(
	struct push *p, const struct pb_field *field, const struct pprof_options *series)
{
	struct str packed = STR("");
	struct reader r = pb_message(field);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			packed = f.bytes;
	if (r.failed)
		return malformed(p, "field");
	enum status s = read_file(p, packed, series);
	return s == OK ? OK : err_prefix(p->e, s, "raw_profile");
}

/* RawProfileSeries { labels = 1; samples = 2; annotations = 3 } */
static enum status read_series(struct push *p, const struct pb_field *field)
{
	struct series_labels labels = { .count = 0 };
	struct pprof_options options = {
		.time_ns = p->now_ns, .profile_id_is_span = true, .without_go_shapes = true
	};
	struct reader r = pb_message(field);
	struct pb_field f;
	enum status s = OK;
	while (s == OK && pb_next(&r, &f))
		if (FIELD(f.number, f.wire) == FIELD(1, PB_BYTES))
			s = read_label(p, &f, &labels);
	if (s == OK && r.failed)
		s = malformed(p, "field");
	if (s == OK && labels.name.len == 0)
		s = err_set(p->e, E_INVALID, "no label __name__");
	if (s == OK)
		s = labels_intern(&labels, p->out, STR("unspecified"), &options.resource, p->e);
	options.name = labels.name;
	r = pb_message(field);
	for (size_t i = 0; s == OK && pb_next(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(2, PB_BYTES))
			continue;
		s = read_sample(p, &f, &options);
		if (s != OK)
			err_prefix(p->e, s, "samples[%zu]", i);
		i++;
	}
	return s;
}

static enum status read_request(struct push *p, struct str message)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	enum status s = OK;
	for (size_t i = 0; s == OK && pb_next(&r, &f);) {
		if (FIELD(f.number, f.wire) != FIELD(1, PB_BYTES))
			continue;
		s = read_series(p, &f);
		if (s != OK)
			err_prefix(p->e, s, "series[%zu]", i);
		i++;
	}
	if (s == OK && r.failed)
		s = err_set(
			p->e, E_INVALID, "PushRequest: malformed at byte %zu", reader_offset(&r));
	return s;
}

enum status pyroscope_push_decode(
	struct str message, int64_t now_ns, struct profile *out, struct err *e)
{
	struct err none = { 0 };
	struct push p = { .out = out, .e = e ? e : &none, .now_ns = now_ns };
	size_t samples = out->samples.len;
	*p.e = (struct err){ 0 };
	buf_init(&p.plain, PYROSCOPE_BYTES_MAX);
	enum status s = read_request(&p, message);
	if (s != OK) {
		out->samples.len = samples;
		if (!p.e->text[0])
			err_set(p.e, s, "%s", status_text(s));
	}
	buf_deinit(&p.plain);
	return s;
}
