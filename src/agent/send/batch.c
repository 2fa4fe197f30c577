/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The batch is a struct profile that is filled sample by sample and cleared when it was encoded.
 * A sample that runs into a limit or out of memory is left out whole and counted; the
 * interned pieces it left behind do no harm.
 */
#include "agent/send/batch.h"

#include "agent/send/frames.h"
#include "agent/send/sample_labels.h"
#include "base/clock.h"
#include "base/log.h"
#include "otlp/otlp.h"
#include "profile/profile.h"

#include <stdio.h>
#include <stdlib.h>

#define PROFILE_NAME "parca_agent"
#define PROFILE_BYTES_MAX ((size_t)64 << 20) /* of texts in one batch */
/* A smaller difference comes from a slewed clock, or from an interruption between two reads. */
#define CLOCK_STEP_NS (100 * NS_PER_MS)

struct batch {
	struct batch_config config;
	struct profile profile;
	uint32_t head;
	uint32_t wall_head;      /* of the wall clock's type; 0: not needed so far */
	int64_t begin_ns;        /* realtime */
	int64_t clock_offset_ns; /* realtime - monotonic */
	/* Samples until `step_ns` (monotonic) belong to the offset before. */
	int64_t step_ns, offset_before_ns;
	int64_t looked_ns; /* when the clocks were compared last; monotonic */
	struct batch_frames frames;
	struct sample_labels labels;
	const struct process *process; /* of the sample that is added */
	struct batch_metrics metrics;
};

/* ---- begin and end of an interval ---- */

static enum status add_head(struct batch *b, const char *const type_parts[5], uint32_t *out)
{
	struct profile *p = &b->profile;
	struct profile_type type = { .delta = true };
	uint32_t *ids[] = { &type.name, &type.sample_type, &type.sample_unit, &type.period_type,
		&type.period_unit };
	enum status s = OK;
	for (size_t i = 0; i < ARRAY_COUNT(ids) && s == OK; i++)
		s = profile_add_string(p, str_of(type_parts[i]), ids[i]);
	struct profile_head head = { .period = NS_PER_SEC / b->config.frequency_hz,
		.time_ns = b->begin_ns };
	if (s == OK)
		s = profile_add_type(p, &type, &head.type);
	return s == OK ? profile_add_head(p, &head, out) : s;
}

static enum status wall_head(struct batch *b, uint32_t *out)
{
	static const char *const type[] = { PROFILE_NAME, "wallclock", "nanoseconds", "samples",
		"count" };
	enum status s = OK;
	if (!b->wall_head)
		s = add_head(b, type, &b->wall_head);
	*out = b->wall_head;
	return s;
}

static int64_t realtime_ns(const struct batch *b)
{
	return b->config.realtime_ns ? b->config.realtime_ns() : clock_realtime_ns();
}

static enum status begin(struct batch *b)
{
	struct profile *p = &b->profile;
	enum status s = profile_clear(p);
	if (s != OK)
		return s;
	batch_frames_clear(&b->frames);
	int64_t now = clock_monotonic_ns();
	b->looked_ns = now;
	b->begin_ns = realtime_ns(b);
	b->clock_offset_ns = b->begin_ns - now;
	b->wall_head = 0;
	static const char *const type[] = { PROFILE_NAME, "samples", "count", "cpu",
		"nanoseconds" };
	return add_head(b, type, &b->head);
}

/* Encode what is there, hand it over, begin anew. */
static void emit(struct batch *b)
{
	struct profile *p = &b->profile;
	uint32_t count = (uint32_t)p->samples.len;
	if (count) {
		/* By the clock that the batch began with, should it have been set since. */
		int64_t end = MAX(clock_monotonic_ns() + b->clock_offset_ns, b->begin_ns + 1);
		p->heads.v[b->head].duration_ns = end - b->begin_ns;
		if (b->wall_head)
			p->heads.v[b->wall_head].duration_ns = end - b->begin_ns;
		for (size_t i = 0; i < p->samples.len; i++)
			p->samples.v[i].time_ns = MIN(p->samples.v[i].time_ns, end);
		batch_frames_resolve(&b->frames);
		CLEANUP(buf_deinit) struct buf message;
		buf_init(&message, BATCH_MESSAGE_BYTES_MAX);
		if (otlp_encode(p, &message) == OK) {
			metric_add(&b->metrics.messages, 1);
			metric_add(&b->metrics.message_bytes, message.len);
			b->config.emit(b->config.ctx, &message, count);
		} else {
			metric_add(&b->metrics.lost, count);
		}
	}
	/* Out of memory here: the next samples are lost and counted until there is some. */
	b->head = b->wall_head = 0;
	(void)!begin(b);
}

/* The wall clock was set, or the host slept: what follows belongs to another batch, with a
 * beginning by the new time. A drift stays within a batch. */
static void look_at_clocks(struct batch *b, int64_t sampled_ns)
{
	int64_t now = clock_monotonic_ns();
	int64_t offset = realtime_ns(b) - now;
	int64_t change = offset - b->clock_offset_ns;
	if (change > -CLOCK_STEP_NS && change < CLOCK_STEP_NS) {
		b->looked_ns = now;
		return;
	}
	if (sampled_ns <= b->looked_ns)
		return; /* before that: it belongs to the batch that is there */
	int64_t before = b->clock_offset_ns, until = b->looked_ns;
	metric_add(&b->metrics.clock_steps, 1);
	emit(b);
	b->step_ns = until;
	b->offset_before_ns = before;
}

void batch_look_at_clocks(struct batch *b)
{
	look_at_clocks(b, INT64_MAX);
}

/* Real time of a sample. */
static int64_t time_of(const struct batch *b, uint64_t sampled_ns)
{
	int64_t at = (int64_t)sampled_ns;
	if (b->step_ns && at <= b->step_ns)
		return at + b->offset_before_ns;
	return MAX(at + b->clock_offset_ns, b->begin_ns);
}

/* ---- samples ---- */

/* A sample of the wall clock: the same stack, as time in a state. */
static enum status add_wall(struct batch *b, const struct event_sample *s,
	const struct profile_sample *like, int64_t value_ns)
{
	static const char *const states[] = {
#define STATE_TEXT(name, number, text) [number] = text,
		THREAD_STATE_LIST(STATE_TEXT)
#undef STATE_TEXT
	};
	struct profile_sample sample = *like;
	sample.value = value_ns;
	enum status st = wall_head(b, &sample.head);
	if (st == OK)
		st = sample_labels_own(&b->labels, &b->profile, b->process, s,
			str_of(states[event_state(&s->h)]), &sample.own);
	return st == OK ? profile_add_sample(&b->profile, &sample) : st;
}

/* All that the samples of both types have in common. */
static enum status add_common(struct batch *b, const struct event_sample *s,
	const struct process *x, struct profile_sample *out)
{
	out->time_ns = time_of(b, s->h.time_ns);
	enum status st = sample_labels_of_process(&b->profile, x, &out->resource);
	return st == OK ? batch_frames_stack(&b->frames, s, &out->stack) : st;
}

static enum status add_on_cpu(
	struct batch *b, const struct event_sample *s, const struct profile_sample *common)
{
	struct profile_sample sample = *common;
	sample.value = 1;
	sample.head = b->head;
	enum status st =
		sample_labels_own(&b->labels, &b->profile, b->process, s, STR(""), &sample.own);
	if (st == OK)
		st = profile_add_sample(&b->profile, &sample);
	if (st == OK && b->config.wall_clock)
		st = add_wall(b, s, common, NS_PER_SEC / b->config.frequency_hz);
	return st;
}

/* For the status page: whose stacks do not reach their root, and why. */
static void note_cut(struct batch *b, const struct event_sample *s, const struct process *x)
{
	static const char *const reasons[] = {
#define REASON(name, number, text) [number] = text,
		STACK_END_LIST(REASON)
#undef REASON
	};
	unsigned end = MIN((unsigned)s->h.stack_end, (unsigned)STACK_END_COUNT - 1);
	if (stack_end_is_whole(end) || !b->config.problems)
		return;
	char name[64];
	snprintf(name, sizeof(name), "%.*s", STR_ARG(x->comm));
	problems_add(b->config.problems, PROBLEM_STACK, name[0] ? name : "?", reasons[end]);
}

static enum status add_sample(struct batch *b, const struct event_sample *s, int64_t away_ns)
{
	if (!b->head) {
		/* The last begin() found no memory. */
		enum status again = begin(b);
		if (again != OK)
			return again;
	}
	b->frames.pid = (int)s->h.pid;
	const struct process *x = processes_find(b->config.processes, &s->h);
	b->process = x;
	if (!x)
		return E_NOMEM;
	if (x->dropped) {
		metric_add(&b->metrics.dropped, 1);
		return OK;
	}
	bool is_off_cpu = event_state(&s->h) != THREAD_ON_CPU;
	struct profile_sample common = { 0 };
	enum status st = add_common(b, s, x, &common);
	if (st == OK)
		st = is_off_cpu ? add_wall(b, s, &common, away_ns) : add_on_cpu(b, s, &common);
	if (st != OK)
		return st;
	metric_add(&b->metrics.samples, 1);
	metric_add(&b->metrics.off_cpu, is_off_cpu);
	note_cut(b, s, x);
	metric_add(&b->metrics.stack_end[MIN(s->h.stack_end, STACK_END_COUNT - 1)], 1);
	return OK;
}

/* About what the message will take: a sample with its time and label indexes, a frame of a stack, a
 * location, and the texts. */
static size_t bytes_so_far(const struct profile *p)
{
	return p->samples.len * 32 + p->stack_locations.len * 3 + p->locations.len * 16 +
	       p->strings.arena.used;
}

static void add(struct batch *b, const struct event_sample *s, int64_t away_ns)
{
	if (add_sample(b, s, away_ns) != OK)
		metric_add(&b->metrics.lost, 1);
	if (b->profile.samples.len >= BATCH_SAMPLES_MAX ||
		bytes_so_far(&b->profile) >= BATCH_BYTES_SOFT)
		emit(b);
}

void batch_add(struct batch *b, const struct event_sample *s)
{
	look_at_clocks(b, (int64_t)s->h.time_ns);
	assert(event_state(&s->h) == THREAD_ON_CPU);
	add(b, s, 0);
}

void batch_add_off_cpu(struct batch *b, const struct event_sample *s, int64_t away_ns)
{
	assert(event_state(&s->h) != THREAD_ON_CPU);
	add(b, s, away_ns);
}

void batch_set_frequency(struct batch *b, uint32_t frequency_hz)
{
	assert(frequency_hz > 0 && b->profile.samples.len == 0);
	b->config.frequency_hz = frequency_hz;
	b->head = 0;
	(void)!begin(b);
}

bool batch_finish(struct batch *b)
{
	emit(b);
	bool missed = b->frames.missed_kernel;
	b->frames.missed_kernel = false;
	return missed;
}

/* ---- life ---- */

enum status batch_new(const struct batch_config *c, struct batch **out, struct err *e)
{
	assert(c->frequency_hz > 0 && c->emit);
	struct batch *b = calloc(1, sizeof(*b));
	if (!b)
		return err_set(e, E_NOMEM, "batch");
	b->config = *c;
	b->frames = (struct batch_frames){ .profile = &b->profile,
		.files = c->files,
		.kallsyms = c->kallsyms,
		.codes = c->codes,
		.keep_interpreters = c->keep_interpreters,
		.met = c->met,
		.ctx = c->ctx,
		.unnamed_kernel = &b->metrics.unnamed_kernel,
		.jit = { .names = c->jitnames } };
	b->labels.no_thread_id = c->no_thread_id;
	b->labels.no_thread_name = c->no_thread_name;
	b->labels.no_cpu = c->no_cpu;
	b->labels.codes = c->codes;
	b->labels.left_out = &b->metrics.labels_left_out;
	enum status s = profile_init(&b->profile, PROFILE_BYTES_MAX);
	if (s == OK)
		s = begin(b);
	if (s != OK) {
		batch_free(b);
		return err_set(e, s, "batch");
	}
	*out = b;
	return OK;
}

void batch_free(struct batch *b)
{
	if (!b)
		return;
	profile_deinit(&b->profile);
	batch_frames_deinit(&b->frames);
	free(b);
}

const struct runtimes_met *batch_runtimes_met(const struct batch *b)
{
	return &b->frames.runtimes;
}

const struct batch_metrics *batch_metrics(const struct batch *b)
{
	return &b->metrics;
}

void batch_write_metrics(const struct batch *b, struct buf *out)
{
	static const struct metric_def defs[] = { BATCH_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &b->metrics.samples, ARRAY_COUNT(defs));
	static const struct metric_def ends[] = {
#define END_DEF(name, number, text)                                                      \
	{ "firn_agent_stacks_total{end=\"" #name "\"}", "User stacks, by why they end.", \
		METRIC_COUNTER },
		STACK_END_LIST(END_DEF)
#undef END_DEF
	};
	metrics_write(out, ends, b->metrics.stack_end, ARRAY_COUNT(ends));
}
