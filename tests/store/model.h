/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model: random samples from a small world, kept in a plain list, and the store's answers computed
 * from that list the slow way.
 *
 * The world: two delta types and a gauge; labels comm and node make series; pid, thread_name and
 * cpu lie beside the samples; twelve stacks of up to eleven frames that share their roots.
 */
#pragma once

#include "tests/store/fixture.h"

enum { MODEL_STACKS = 12, MODEL_COMMS = 4, MODEL_NODES = 3, MODEL_PIDS = 3, MODEL_THREADS = 4 };

struct model_sample {
	int type;
	int comm, node, pid, thread, cpu; /* 0: absent */
	int stack;
	int64_t time_ns, value;
};

struct model {
	uint64_t random;
	uint64_t next_batch;
	VEC(struct model_sample) samples;
};

static const struct {
	const char *name;
	bool delta;
	int64_t period;
	const char *text;
} model_types[] = {
	{ "cpu", true, 52631578, "cpu:samples:count:cpu:nanoseconds:delta" },
	{ "wall", true, 1000, "wall:samples:count:cpu:nanoseconds:delta" },
	{ "inuse", false, 0, "inuse:samples:count:cpu:nanoseconds" },
};

static inline const char *model_text(const char *prefix, int i)
{
	static char texts[64][24];
	static int at;
	char *t = texts[at++ % 64];
	snprintf(t, 24, "%s%d", prefix, i);
	return i ? t : "";
}

/* Frames of stack `i`, root first: 0 is empty, others share their beginnings. */
static inline uint32_t model_stack(struct profile *p, int i)
{
	uint32_t root_first[16], leaf_first[16], n = 0, id;
	for (int k = 0; k < i; k++)
		root_first[n++] = k % 3 == 2 ? fx_named(p, model_text("f", k + 1), (uint32_t)i / 4,
						       k % 2 ? "inl" : NULL)
					     : fx_frame(p, k % 2 ? "/bin/a" : "/lib/b.so",
						       (uint64_t)(k < 5 ? k : k * i) * 16 + 1);
	for (uint32_t k = 0; k < n; k++)
		leaf_first[k] = root_first[n - 1 - k];
	CHECK(profile_add_stack(p, leaf_first, n, &id) == OK);
	return id;
}

static inline uint32_t model_resource(struct profile *p, const struct model_sample *s)
{
	const char *pairs[] = { "comm", model_text("c", s->comm), "node", model_text("n", s->node),
		"pid", model_text("", s->pid), NULL };
	return fx_labels(p, pairs);
}

static inline uint32_t model_own(struct profile *p, const struct model_sample *s)
{
	const char *pairs[] = { "thread_name", model_text("t", s->thread), "cpu",
		model_text("", s->cpu), NULL };
	return fx_labels(p, pairs);
}

/* `n` random samples at `at` and up to `span` later, added to the list and to `p`. */
static inline void model_batch(struct model *m, struct profile *p, int n, int64_t at, int64_t span)
{
	uint32_t heads[ARRAY_COUNT(model_types)];
	uint64_t *r = &m->random;
	CHECK(profile_init(p, 64 << 20) == OK);
	for (size_t i = 0; i < ARRAY_COUNT(model_types); i++)
		heads[i] = fx_head(
			p, model_types[i].name, model_types[i].delta, model_types[i].period);
	for (int i = 0; i < n; i++) {
		struct model_sample s = {
			.type = (int)rnd_below(r, ARRAY_COUNT(model_types)),
			.comm = (int)rnd_below(r, MODEL_COMMS),
			.node = (int)rnd_below(r, MODEL_NODES),
			.pid = (int)rnd_below(r, MODEL_PIDS),
			.thread = (int)rnd_below(r, MODEL_THREADS),
			.cpu = (int)rnd_below(r, 3),
			.stack = (int)rnd_below(r, MODEL_STACKS),
			.time_ns = at + (int64_t)rnd_below(r, (uint64_t)span),
			.value = (int64_t)rnd_below(r, 100) + 1,
		};
		if (!model_types[s.type].delta)
			s.time_ns -= s.time_ns % (5 * SEC); /* gauges are scraped together */
		CHECK(VEC_PUSH(&m->samples, s));
		fx_sample(p, s.time_ns, s.value, heads[s.type], model_stack(p, s.stack),
			model_resource(p, &s), model_own(p, &s));
	}
}

static inline void model_append(struct model *m, struct store *s, int n, int64_t at, int64_t span)
{
	struct profile p;
	struct err e = { 0 };
	model_batch(m, &p, n, at, span);
	CHECK_OK(store_append(s, STR(""), &p, (struct hash128){ ++m->next_batch, 7 }, &e), &e);
	profile_deinit(&p);
}

/* ---- selectors whose meaning the model knows ---- */

struct model_query {
	const char *name;
	int type;
	const char *matchers;
	bool (*matches)(const struct model_sample *s);
};

static inline bool mq_all(const struct model_sample *s)
{
	(void)s;
	return true;
}
static inline bool mq_comm(const struct model_sample *s)
{
	return s->comm == 1;
}
static inline bool mq_not_comm(const struct model_sample *s)
{
	return s->comm != 1; /* holds when absent */
}
static inline bool mq_regex(const struct model_sample *s)
{
	return (s->comm == 1 || s->comm == 3) && s->node != 2;
}
static inline bool mq_pid(const struct model_sample *s)
{
	return s->pid == 2;
}
static inline bool mq_threads(const struct model_sample *s)
{
	return s->thread != 0 && s->thread != 3 && s->comm == 2;
}
static inline bool mq_no_cpu(const struct model_sample *s)
{
	return s->cpu == 0;
}

static const struct model_query model_queries[] = {
	{ "cpu", 0, "", mq_all },
	{ "wall", 1, "", mq_all },
	{ "gauge", 2, "", mq_all },
	{ "comm", 0, "{comm=\"c1\"}", mq_comm },
	{ "not comm", 1, "{comm!=\"c1\"}", mq_not_comm },
	{ "regex", 0, "{comm=~\"c[13]\",node!~\"n2\"}", mq_regex },
	{ "pid", 0, "{pid=\"2\"}", mq_pid },
	{ "threads", 1, "{thread_name=~\"t[12]\",comm=\"c2\"}", mq_threads },
	{ "no cpu", 0, "{cpu=\"\"}", mq_no_cpu },
	{ "gauge by comm", 2, "{comm=\"c1\"}", mq_comm },
	{ "gauge by pid", 2, "{pid=\"2\"}", mq_pid },
};

static inline void model_query_text(const struct model_query *q, char out[256])
{
	snprintf(out, 256, "%s%s", model_types[q->type].text, q->matchers);
}

static inline bool model_picks(
	const struct model_query *q, const struct model_sample *s, int64_t from, int64_t to)
{
	return s->type == q->type && s->time_ns >= from && s->time_ns < to && q->matches(s);
}

/* Distinct times of the series of `s` among the samples that the query picks. */
static inline int model_times(const struct model *m, const struct model_query *q,
	const struct model_sample *s, int64_t from, int64_t to)
{
	int64_t seen[4096];
	int n = 0;
	for (size_t i = 0; i < m->samples.len; i++) {
		const struct model_sample *x = &m->samples.v[i];
		if (!model_picks(q, x, from, to) || x->comm != s->comm || x->node != s->node)
			continue;
		int k = 0;
		while (k < n && seen[k] != x->time_ns)
			k++;
		if (k == n && n < 4096)
			seen[n++] = x->time_ns;
	}
	return n;
}

/* By stack: the sum, or the gauge's average before rounding. */
static inline void model_sum(const struct model *m, const struct model_query *q, int64_t from,
	int64_t to, double sums[MODEL_STACKS], uint64_t *count)
{
	bool gauge = !model_types[q->type].delta;
	double weights[MODEL_COMMS][MODEL_NODES] = { 0 };
	memset(sums, 0, MODEL_STACKS * sizeof(*sums));
	*count = 0;
	for (size_t i = 0; i < m->samples.len; i++) {
		const struct model_sample *s = &m->samples.v[i];
		if (!model_picks(q, s, from, to))
			continue;
		double *w = &weights[s->comm][s->node];
		if (*w == 0)
			*w = gauge ? 1.0 / model_times(m, q, s, from, to) : 1;
		sums[s->stack] += (double)s->value * *w;
		++*count;
	}
}

/* The stacks of the world as the tree shows them: text of stack i. */
static inline void model_stack_text(int i, struct buf *out)
{
	struct profile p;
	CHECK(profile_init(&p, 1 << 20) == OK);
	const struct profile_stack st = p.stacks.v[0];
	(void)st;
	uint32_t id = model_stack(&p, i);
	const struct profile_stack *s = &p.stacks.v[id];
	for (uint32_t k = s->count; k-- > 0;) {
		fx_location_text(&p, p.stack_locations.v[s->first + k], out);
		buf_u8(out, ';');
	}
	profile_deinit(&p);
}

static inline int model_stack_find(struct str text)
{
	for (int i = 0; i < MODEL_STACKS; i++) {
		struct buf b;
		buf_init(&b, 4096);
		model_stack_text(i, &b);
		bool same = str_eq(buf_view(&b), text);
		buf_deinit(&b);
		if (same)
			return i;
	}
	return -1;
}
