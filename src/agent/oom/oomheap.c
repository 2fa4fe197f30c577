/* SPDX-License-Identifier: Apache-2.0 */
/*
 * As in batch.c: a struct profile is filled, and cleared when it was encoded. The labels are kept
 * apart, since the process has ended by then and other parts have forgotten it.
 *
 * Source: Go, src/runtime/pprof/protomem.go (scaleHeapSample).
 */
#include "agent/oom/oomheap.h"

#include "agent/process/process.h"
#include "agent/send/send.h"
#include "base/arena.h"
#include "otlp/otlp.h"
#include "profile/profile.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_BYTES_MAX ((size_t)1 << 20)
#define PROFILE_BYTES_MAX ((size_t)16 << 20)
#define TYPES_MAX 4

struct oomheap {
	struct oomheap_config config;
	struct arena texts;
	struct profile profile;
	uint64_t rate;
	uint32_t heads[TYPES_MAX];
	uint32_t mapping;
	uint32_t resource;
	uint32_t own;
};

/* A victim's memory may hold any number. */
static uint64_t whole(double x)
{
	return x < 0x1p62 ? (uint64_t)x : (uint64_t)1 << 62;
}

void oomheap_scale(uint64_t rate, uint64_t *count, uint64_t *bytes)
{
	if (*count == 0 || *bytes == 0) {
		*count = *bytes = 0;
		return;
	}
	if (rate <= 1)
		return;
	double mean = (double)*bytes / (double)*count;
	double scale = 1 / (1 - exp(-mean / (double)rate));
	*count = whole((double)*count * scale);
	*bytes = whole((double)*bytes * scale);
}

/* ---- what every message has ---- */

static enum status add_heads(struct oomheap *h)
{
	static const char *const types[TYPES_MAX][2] = { { "inuse_objects", "count" },
		{ "inuse_space", "bytes" }, { "alloc_objects", "count" },
		{ "alloc_space", "bytes" } };
	struct profile *p = &h->profile;
	enum status s = OK;
	for (size_t i = 0; i < (h->config.allocs ? 4u : 2u) && s == OK; i++) {
		const char *parts[] = { "memory", types[i][0], types[i][1], "space", "bytes" };
		struct profile_type type = { 0 };
		uint32_t *ids[] = { &type.name, &type.sample_type, &type.sample_unit,
			&type.period_type, &type.period_unit };
		for (size_t k = 0; k < ARRAY_COUNT(ids) && s == OK; k++)
			s = profile_add_string(p, str_of(parts[k]), ids[k]);
		struct profile_head head = { .period = (int64_t)h->rate,
			.time_ns = h->config.time_ns };
		if (s == OK)
			s = profile_add_type(p, &type, &head.type);
		if (s == OK)
			s = profile_add_head(p, &head, &h->heads[i]);
	}
	return s;
}

static enum status add_label(struct profile *p, struct str name, struct str value,
	struct profile_label *labels, uint32_t *count)
{
	enum status s = profile_add_string(p, name, &labels[*count].name);
	if (s == OK)
		s = profile_add_string(p, value, &labels[*count].value);
	*count += s == OK;
	return s;
}

/* Of a name given twice the first is taken. */
static enum status add_labels(struct oomheap *h)
{
	struct profile_label labels[METADATA_LABELS_MAX + 1];
	struct profile_label own[1];
	uint32_t count = 0, own_count = 0;
	struct profile *p = &h->profile;
	char pid[16];
	snprintf(pid, sizeof(pid), "%u", h->config.begin->o.pid);
	enum status s = add_label(p, STR("job"), STR("oomprof"), labels, &count);
	for (uint32_t i = 0; i < h->config.label_count && s == OK; i++)
		s = add_label(
			p, h->config.labels[i].name, h->config.labels[i].value, labels, &count);
	if (s == OK)
		s = profile_add_labels(p, labels, count, &h->resource);
	if (s == OK)
		s = add_label(p, STR("pid"), str_of(pid), own, &own_count);
	return s == OK ? profile_add_labels(p, own, own_count, &h->own) : s;
}

static enum status begin(struct oomheap *h)
{
	struct profile *p = &h->profile;
	struct profile_mapping m = { 0 };
	enum status s = profile_clear(p);
	if (s == OK)
		s = add_heads(h);
	if (s == OK)
		s = add_labels(h);
	if (s == OK)
		s = profile_add_string(p, str_of(h->config.path), &m.filename);
	if (s == OK)
		s = profile_add_string(p, str_of(h->config.build_id), &m.build_id);
	return s == OK ? profile_add_mapping(p, &m, &h->mapping) : s;
}

enum status oomheap_finish(struct oomheap *h, uint32_t *out_lost)
{
	uint32_t count = (uint32_t)h->profile.samples.len;
	*out_lost = 0;
	if (count == 0)
		return OK;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, BATCH_MESSAGE_BYTES_MAX);
	enum status s = otlp_encode(&h->profile, &message);
	if (s == OK)
		h->config.emit(h->config.ctx, &message, count);
	else
		*out_lost = count;
	h->profile.samples.len = 0;
	return s;
}

/* ---- buckets ---- */

static enum status add_stack(struct oomheap *h, const struct oom_bucket *b, uint32_t *out)
{
	const struct oomprogram *program = h->config.program;
	uint32_t count = MIN((uint32_t)b->o.stack_count, (uint32_t)OOM_STACK_MAX);
	uint32_t locations[OOM_STACK_MAX + 1];
	uint64_t stack[OOM_STACK_MAX];
	enum status s = OK;
	bool is_cut = count == OOM_STACK_MAX;
	for (uint32_t i = 0; i < count; i++)
		stack[i] = b->stack[i];
	count = oomprogram_frames(program, h->config.begin->bias, stack, count);
	for (uint32_t i = 0; i < count && s == OK; i++) {
		bool is_known = oomprogram_has(program, stack[i]);
		const struct profile_location loc = { .address = stack[i],
			.mapping = is_known ? h->mapping : 0,
			.kind = is_known ? FRAME_NATIVE : FRAME_JIT };
		s = profile_add_location(&h->profile, &loc, NULL, 0, &locations[i]);
	}
	/* A stack of the greatest length was probably cut; that cannot be known. */
	if (s == OK && is_cut)
		s = profile_add_marker(&h->profile, STR("[truncated]"), &locations[count++]);
	return s == OK ? profile_add_stack(&h->profile, locations, count, out) : s;
}

static size_t bytes_so_far(const struct profile *p)
{
	return p->samples.len * 32 + p->stack_locations.len * 3 + p->locations.len * 16 +
	       p->strings.arena.used;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

enum status oomheap_add(struct oomheap *h, const struct oom_bucket *b)
{
	struct profile *p = &h->profile;
	uint64_t values[TYPES_MAX] = { less(b->allocs, b->frees),
		less(b->alloc_bytes, b->free_bytes), b->allocs, b->alloc_bytes };
	oomheap_scale(h->rate, &values[0], &values[1]);
	oomheap_scale(h->rate, &values[2], &values[3]);
	struct profile_sample sample = {
		.time_ns = h->config.time_ns, .resource = h->resource, .own = h->own
	};
	enum status s = add_stack(h, b, &sample.stack);
	for (size_t i = 0; i < (h->config.allocs ? 4u : 2u) && s == OK; i++) {
		sample.head = h->heads[i];
		sample.value = (int64_t)MIN(values[i], (uint64_t)INT64_MAX);
		if (sample.value)
			s = profile_add_sample(p, &sample);
	}
	if (s == OK && p->samples.len < BATCH_SAMPLES_MAX && bytes_so_far(p) < BATCH_BYTES_SOFT)
		return OK;
	uint32_t lost;
	enum status sent = oomheap_finish(h, &lost);
	if (sent == OK)
		sent = begin(h);
	return s != OK ? s : sent;
}

/* ---- life ---- */

static struct str keep(struct oomheap *h, struct str text)
{
	const char *copy = arena_copy(&h->texts, text.p, text.len);
	return copy ? str_make(copy, text.len) : STR("");
}

/* A text that has no room is empty, and what is empty is no label. */
static enum status keep_texts(struct oomheap *h, const struct oomheap_config *c)
{
	uint32_t count = MIN(c->label_count, (uint32_t)METADATA_LABELS_MAX);
	struct relabel_label *labels = ARENA_ARRAY(&h->texts, struct relabel_label, count + 1);
	struct oom_begin *begun = ARENA_NEW(&h->texts, struct oom_begin);
	if (!labels || !begun)
		return E_NOMEM;
	*begun = *c->begin;
	for (uint32_t i = 0; i < count; i++)
		labels[i] = (struct relabel_label){ keep(h, c->labels[i].name),
			keep(h, c->labels[i].value) };
	h->config.labels = labels;
	h->config.label_count = count;
	h->config.begin = begun;
	h->config.build_id = keep(h, str_of(c->build_id)).p;
	h->config.path = keep(h, str_of(c->path)).p;
	return OK;
}

enum status oomheap_new(const struct oomheap_config *c, struct oomheap **out, struct err *e)
{
	struct oomheap *h = calloc(1, sizeof(*h));
	if (!h)
		return err_set(e, E_NOMEM, "heap of a victim");
	h->config = *c;
	h->rate =
		c->begin->rate && c->begin->rate <= INT64_MAX ? c->begin->rate : OOMHEAP_RATE_BYTES;
	arena_init(&h->texts, TEXT_BYTES_MAX);
	enum status s = profile_init(&h->profile, PROFILE_BYTES_MAX);
	if (s == OK)
		s = keep_texts(h, c);
	if (s == OK)
		s = begin(h);
	if (s != OK) {
		oomheap_free(h);
		return err_set(e, s, "heap of a victim");
	}
	*out = h;
	return OK;
}

void oomheap_free(struct oomheap *h)
{
	if (!h)
		return;
	profile_deinit(&h->profile);
	arena_deinit(&h->texts);
	free(h);
}
