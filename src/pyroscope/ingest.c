/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /ingest. The body's format is given by `format`, else by the content type, as in Pyroscope;
 * without either the body is folded stacks. A body or part whose first bytes are those of gzip is
 * decompressed.
 */
#include "codec/codec.h"
#include "jfr/jfr.h"
#include "pprof/pprof.h"
#include "pyroscope/contexts.h"
#include "pyroscope/labels.h"
#include "pyroscope/multipart.h"
#include "pyroscope/repair.h"
#include "pyroscope/speedscope.h"
#include "pyroscope/stacks.h"
#include "pyroscope/types.h"

#include <string.h>

#define RATE_DEFAULT 100
#define RATE_MAX 1000000000u

enum format { GROUPS, LINES, TRIE, TREE, PPROF, PPROF_PARTS, JFR, SPEEDSCOPE };

struct ingest {
	const struct pyroscope_ingest *q;
	struct profile *out;
	struct err *e;
	int64_t now_ns, from_ns, duration_ns;
	struct str app;
	struct series_labels labels;
	struct type_configs configs;
	size_t plain_max; /* limit of both buffers below together */
	struct buf plain; /* the decompressed profile */
	struct buf labels_plain;
};

static bool type_has(const struct pyroscope_ingest *q, const char *part)
{
	return q->content_type.len &&
	       memmem(q->content_type.p, q->content_type.len, part, strlen(part));
}

/* "" and the last three are the same as the default: multipart pprof, or folded stacks. */
static const struct {
	const char *name;
	enum format format;
} formats[] = { { "trie", TRIE }, { "tree", TREE }, { "lines", LINES }, { "jfr", JFR },
	{ "pprof", PPROF }, { "speedscope", SPEEDSCOPE }, { "", GROUPS }, { "groups", GROUPS },
	{ "folded", GROUPS }, { "collapsed", GROUPS } };

static enum format format_of(const struct pyroscope_ingest *q)
{
	if (type_has(q, "binary/octet-stream+trie"))
		return TRIE;
	if (type_has(q, "binary/octet-stream+tree"))
		return TREE;
	for (size_t i = 0; i < ARRAY_COUNT(formats); i++)
		if (formats[i].format != GROUPS && str_eq(q->format, str_of(formats[i].name)))
			return formats[i].format;
	return type_has(q, "multipart/form-data") ? PPROF_PARTS : GROUPS;
}

static uint32_t rate_of(const struct pyroscope_ingest *q)
{
	uint64_t rate;
	if (!str_parse_u64(q->sample_rate, 10, &rate) || rate == 0 || rate > RATE_MAX)
		return RATE_DEFAULT;
	return (uint32_t)rate;
}

static enum status add_labels(struct ingest *in)
{
	struct str spy = in->q->spy.len ? in->q->spy : STR("unknown");
	enum status s = labels_add(&in->labels, in->out, STR("pyroscope_spy"), spy, in->e);
	if (s == OK && in->labels.has_service)
		s = labels_add(&in->labels, in->out, STR("app_name"), in->app, in->e);
	return s;
}

/* Makes the label set of all samples. */
static enum status intern_labels(struct ingest *in, uint32_t *out)
{
	enum status s = add_labels(in);
	return s == OK ? labels_intern(&in->labels, in->out, in->app, out, in->e) : s;
}

static enum status unpack(struct ingest *in, struct buf *plain, struct str packed, struct str *out)
{
	*out = packed;
	if (!codec_is_gzip(packed.p, packed.len))
		return OK;
	enum status s = codec_gunzip(packed.p, packed.len, plain, in->e);
	if (s != OK)
		return s == E_CORRUPT ? err_prefix(in->e, E_INVALID, "gzip") : s;
	*out = buf_view(plain);
	return OK;
}

/* ---- pprof ---- */

static enum status read_pprof(struct ingest *in, struct str packed)
{
	struct pprof_options options = { .name = STR("unknown"),
		.time_ns = in->from_ns,
		.profile_id_is_span = true,
		.without_go_shapes = true,
		.lost_function_ids = str_eq(in->q->spy, STR("dotnetspy")) };
	struct added a = { (uint32_t)in->out->heads.len, in->out->samples.len };
	struct made made = { .from_ns = in->from_ns,
		.duration_ns = in->duration_ns,
		.average = str_eq(in->q->aggregation, STR("average")),
		.configs = &in->configs };
	struct str plain;
	if (packed.len == 0)
		return err_set(in->e, E_INVALID, "profile: it is empty");
	enum status s = unpack(in, &in->plain, packed, &plain);
	if (s == OK)
		s = intern_labels(in, &options.resource);
	if (s == OK)
		s = pprof_decode_with(plain, &options, in->out, in->e);
	if (s != OK)
		return err_prefix(in->e, s, "profile");
	s = repair_go_stacks(in->out, a);
	if (s == OK)
		s = types_finish(in->out, a, &made);
	return s == OK ? OK : err_set(in->e, s, "stacks or types: %s", status_text(s));
}

static enum status read_parts(struct ingest *in, struct str body)
{
	struct parts parts;
	enum status s = parts_read(in->q->content_type, body, &parts, in->e);
	if (s != OK)
		return s;
	const struct part *profile = parts_find(&parts, "profile");
	const struct part *config = parts_find(&parts, "sample_type_config");
	const struct part *before = parts_find(&parts, "prev_profile");
	if (before && before->body.len)
		return err_set(in->e, E_UNSUPPORTED,
			"prev_profile: this version of the SDK sends sums since its start; please "
			"update github.com/grafana/pyroscope-go");
	if (!profile)
		return err_set(in->e, E_INVALID, "multipart: no part \"profile\"");
	if (config) {
		s = type_configs_read(config->body, &in->configs, in->e);
		if (s != OK)
			return s;
	}
	return read_pprof(in, profile->body);
}

/* ---- text ---- */

static enum status read_text(struct ingest *in, enum text_format format, struct str packed)
{
	struct text_body b = { .format = format,
		.rate = rate_of(in->q),
		.time_ns = in->from_ns,
		.duration_ns = in->duration_ns };
	enum status s = unpack(in, &in->plain, packed, &b.bytes);
	if (s == OK)
		s = text_type_of(&in->app, &b.type, in->e);
	if (s == OK)
		s = intern_labels(in, &b.resource);
	return s == OK ? text_decode(&b, in->out, in->e) : s;
}

static enum status read_speedscope(struct ingest *in, struct str packed)
{
	struct speedscope x = { .app = in->app,
		.labels = &in->labels,
		.rate = rate_of(in->q),
		.time_ns = in->from_ns,
		.duration_ns = in->duration_ns };
	enum status s = unpack(in, &in->plain, packed, &x.bytes);
	if (s == OK)
		s = add_labels(in);
	return s == OK ? speedscope_decode(&x, in->out, in->e) : s;
}

/* ---- JFR ---- */

/* Reads the labels of contexts, which may be compressed too. */
static enum status read_contexts(struct ingest *in, struct str packed, struct contexts *out)
{
	struct str plain;
	buf_init(&in->labels_plain, in->plain_max - in->plain.len);
	enum status s = unpack(in, &in->labels_plain, packed, &plain);
	return s == OK ? contexts_read(plain, out, in->e) : s;
}

static enum status read_jfr(struct ingest *in, struct str packed, struct str labels)
{
	bool has_time = in->q->from.len > 0;
	struct contexts contexts = { 0 };
	struct jfr_options options = { .period_ns = 1000000000 / rate_of(in->q),
		.time_ns = has_time ? in->from_ns : 0,
		.duration_ns = in->duration_ns,
		.context = contexts_labels,
		.ctx = &contexts };
	struct str plain;
	enum status s = unpack(in, &in->plain, packed, &plain);
	if (s == OK)
		s = read_contexts(in, labels, &contexts);
	if (s == OK)
		s = intern_labels(in, &options.resource);
	if (s == OK)
		s = jfr_decode(plain, &options, in->out, in->e);
	contexts_deinit(&contexts);
	return s;
}

static enum status read_jfr_parts(struct ingest *in, struct str body)
{
	struct parts parts;
	if (!type_has(in->q, "multipart/form-data"))
		return read_jfr(in, body, STR(""));
	enum status s = parts_read(in->q->content_type, body, &parts, in->e);
	if (s != OK)
		return s;
	const struct part *jfr = parts_find(&parts, "jfr"), *labels = parts_find(&parts, "labels");
	if (!jfr)
		return err_set(in->e, E_INVALID, "multipart: no part \"jfr\"");
	return read_jfr(in, jfr->body, labels ? labels->body : STR(""));
}

/* ---- all ---- */

static enum status read_body(struct ingest *in, struct str body)
{
	switch (format_of(in->q)) {
	case GROUPS:
		return read_text(in, TEXT_GROUPS, body);
	case LINES:
		return read_text(in, TEXT_LINES, body);
	case TRIE:
		return read_text(in, TEXT_TRIE, body);
	case TREE:
		return read_text(in, TEXT_TREE, body);
	case PPROF_PARTS:
		return read_parts(in, body);
	case PPROF:
		return type_has(in->q, "multipart/form-data") ? read_parts(in, body)
							      : read_pprof(in, body);
	case JFR:
		return read_jfr_parts(in, body);
	case SPEEDSCOPE:
		return read_speedscope(in, body);
	}
	UNREACHABLE();
}

static void read_times(struct ingest *in)
{
	int64_t until = in->now_ns;
	in->from_ns = in->now_ns;
	if (!pyroscope_time(in->q->from, in->now_ns, &in->from_ns) ||
		!pyroscope_time(in->q->until, in->now_ns, &until))
		return; /* pyroscope_ingest_check() has refused other names */
	if (until > in->from_ns)
		in->duration_ns = until - in->from_ns;
}

enum status pyroscope_ingest_check(const struct pyroscope_ingest *q, struct err *e)
{
	struct str app, labels;
	int64_t unused;
	size_t i = 0;
	if (!name_split(q->name, &app, &labels))
		return err_set(e, E_INVALID, "name: it has to be app{key=value,…}");
	while (i < ARRAY_COUNT(formats) && !str_eq(q->format, str_of(formats[i].name)))
		i++;
	if (i == ARRAY_COUNT(formats))
		return err_set(e, E_INVALID,
			"format: \"%.*s\"; folded, lines, trie, tree, pprof, jfr and speedscope "
			"are known",
			STR_ARG(str_sub(q->format, 0, 32)));
	if (!pyroscope_time(q->from, 0, &unused))
		return err_set(e, E_INVALID, "from: \"%.*s\" is not a time",
			STR_ARG(str_sub(q->from, 0, 32)));
	if (!pyroscope_time(q->until, 0, &unused))
		return err_set(e, E_INVALID, "until: \"%.*s\" is not a time",
			STR_ARG(str_sub(q->until, 0, 32)));
	return OK;
}

enum status pyroscope_ingest_decode(const struct pyroscope_ingest *q, struct str body,
	int64_t now_ns, struct profile *out, struct err *e)
{
	struct err none = { 0 };
	struct ingest in = { .q = q, .out = out, .e = e ? e : &none, .now_ns = now_ns };
	struct str labels;
	size_t samples = out->samples.len;
	*in.e = (struct err){ 0 };
	in.plain_max = MIN(MAX(PYROSCOPE_EXPANSION_MAX * body.len, PYROSCOPE_EXPANDED_MIN),
		PYROSCOPE_BYTES_MAX);
	buf_init(&in.plain, in.plain_max);
	read_times(&in);
	enum status s = name_split(q->name, &in.app, &labels)
				? labels_add_text(&in.labels, out, labels, in.e)
				: err_set(in.e, E_INVALID, "name: no application");
	if (s == OK)
		s = read_body(&in, body);
	if (s != OK) {
		out->samples.len = samples;
		if (!in.e->text[0])
			err_set(in.e, s, "%s", status_text(s));
	}
	buf_deinit(&in.plain);
	buf_deinit(&in.labels_plain);
	buf_deinit(&in.configs.text);
	return s;
}
