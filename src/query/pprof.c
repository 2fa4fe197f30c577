/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the store collects the samples as one profile, the symbolizer names its locations; samples
 * that are counted with a period get a twin in the period's unit under a head of its own, so that
 * the encoder writes two columns, [samples count, cpu nanoseconds], as Go's own CPU profiles have
 * them; pprof shows the last one by default.
 */
#include "query/internal.h"

#include "codec/codec.h"
#include "pprof/pprof.h"

/* Bytes of an uncompressed profile.proto. */
#define PPROF_BYTES_MAX ((size_t)1 << 30)
#define GZIP_LEVEL 3
#define LABELS_MAX 64

/* Labels that would make nearly each sample its own: kept only when they are asked for. */
static const char *const dropped[] = { "cpu", "thread_id", "span_id", "trace_id" };

static bool is_dropped(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(dropped); i++)
		if (str_eq(name, str_of(dropped[i])))
			return true;
	return false;
}

/* `by` if there is any, else every label but the dropped ones. */
static enum status choose_labels(const struct query_plan *p, const struct query_request *r,
	struct arena *a, struct str *out, size_t *out_count, struct err *e)
{
	struct str *names = NULL;
	size_t count = 0;
	if (r->by_count > 0) {
		memcpy(out, r->by, r->by_count * sizeof(*out));
		*out_count = r->by_count;
		return OK;
	}
	enum status s = p->view->ops->label_names(p->view, &p->store, a, &names, &count, e);
	if (s != OK)
		return s;
	*out_count = 0;
	for (size_t i = 0; i < count && *out_count < LABELS_MAX; i++)
		if (!is_dropped(names[i]))
			out[(*out_count)++] = names[i];
	return OK;
}

/* Only the samples with a frame that matches stay. */
static enum status keep_matches(struct profile *p, struct str match, struct arena *a, struct err *e)
{
	struct query_frames f;
	enum status s = query_frames_make(p, match, a, &f, e);
	uint8_t *kept = s == OK ? ARENA_ARRAY(a, uint8_t, p->stacks.len) : NULL;
	if (s == OK && !kept)
		s = err_set(e, arena_status(a), "%zu stacks", p->stacks.len);
	if (s != OK)
		return s;
	for (size_t i = 0; i < p->stacks.len; i++) {
		const uint32_t *locations = p->stack_locations.v + p->stacks.v[i].first;
		for (uint32_t k = 0; k < p->stacks.v[i].count && !kept[i]; k++)
			for (uint32_t n = f.first[locations[k]]; n < f.first[locations[k] + 1]; n++)
				kept[i] |= f.matched[f.ids[n] & ~QUERY_FRAME_INLINED];
	}
	size_t count = 0;
	for (size_t i = 0; i < p->samples.len; i++)
		if (kept[p->samples.v[i].stack])
			p->samples.v[count++] = p->samples.v[i];
	p->samples.len = count;
	return OK;
}

/* The head of the twins of head `h`; 0: its samples have none. */
static enum status twin_head(struct profile *p, uint32_t h, uint32_t *out)
{
	struct profile_head head = p->heads.v[h];
	struct profile_type type = p->types.v[head.type];
	struct query_unit unit = query_unit_of(profile_str(p, type.sample_type),
		profile_str(p, type.sample_unit), profile_str(p, type.period_unit), head.period);
	*out = 0;
	if (str_eq(unit.name, profile_str(p, type.sample_unit)))
		return OK;
	type.sample_type = type.period_type;
	type.sample_unit = type.period_unit;
	enum status s = profile_add_type(p, &type, &head.type);
	return s == OK ? profile_add_head(p, &head, out) : s;
}

static enum status add_twins(struct profile *p, struct arena *a, struct err *e)
{
	size_t heads = p->heads.len, samples = p->samples.len;
	uint32_t *twins = ARENA_ARRAY(a, uint32_t, heads);
	if (!twins)
		return err_set(e, arena_status(a), "%zu heads", heads);
	for (uint32_t h = 1; h < heads; h++) {
		enum status s = twin_head(p, h, &twins[h]);
		if (s != OK)
			return err_set(e, s, "%zu heads", heads);
	}
	for (size_t i = 0; i < samples; i++) {
		struct profile_sample sample = p->samples.v[i];
		if (twins[sample.head] == 0)
			continue;
		sample.value = query_scale(sample.value, p->heads.v[sample.head].period);
		sample.head = twins[sample.head];
		enum status s = profile_add_sample(p, &sample);
		if (s != OK)
			return err_set(e, s, "%zu samples", samples);
	}
	return OK;
}

/* What the encoded profile takes, about: each sample has its whole stack. */
static uint64_t plain_bytes(const struct profile *p)
{
	uint64_t bytes = p->strings.arena.used + p->locations.len * 24 + p->functions.len * 16;
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_sample *x = &p->samples.v[i];
		bytes += 16 + (uint64_t)p->stacks.v[x->stack].count * 3 +
			 (uint64_t)p->label_sets.v[x->own].count * 8;
	}
	return bytes;
}

/* The profile is freed before the bytes are compressed, which takes as much again. */
static enum status encode(
	const struct query_plan *plan, struct profile *p, struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf plain;
	buf_init(&plain, PPROF_BYTES_MAX);
	enum status s = query_hold(plan, plain_bytes(p), e);
	if (s == OK)
		s = pprof_encode(p, &plain, e);
	profile_deinit(p);
	if (s != OK)
		return s;
	s = codec_gzip(plain.data, plain.len, GZIP_LEVEL, out);
	return s == OK ? OK : err_set(e, s, "profile of %zu bytes", plain.len);
}

/* Samples, names and twins in *out, which the caller frees if this is OK. */
static enum status collect(const struct query_engine *q, const struct query_request *r,
	const struct query_plan *plan, struct arena *a, struct profile *out, struct err *e)
{
	struct str labels[LABELS_MAX];
	size_t label_count = 0;
	uint32_t pending = 0;
	if (plan->empty) {
		enum status none = profile_init(out, QUERY_REPORT_BYTES_MAX);
		return none == OK ? OK : err_set(e, none, "profile");
	}
	enum status s = choose_labels(plan, r, a, labels, &label_count, e);
	if (s == OK)
		s = plan->view->ops->collect(plan->view, &plan->store, labels, label_count, out, e);
	if (s != OK)
		return s;
	if (q->symbolizer)
		s = symbolizer_resolve(q->symbolizer, out, QUERY_PPROF_WAIT_MS, &pending, e);
	if (s == OK && r->match.len > 0)
		s = keep_matches(out, r->match, a, e);
	if (s == OK)
		s = add_twins(out, a, e);
	if (s != OK)
		profile_deinit(out);
	return s;
}

enum status query_pprof(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	enum status s = query_plan_open(q, r, true, &a, &plan, e);
	struct profile p;
	if (s == OK)
		s = collect(q, r, &plan, &a, &p, e);
	if (s != OK)
		return s;
	return encode(&plan, &p, out, e);
}
