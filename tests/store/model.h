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

/* ---- gauges: docs/api.md, on a grid of the 5 s at which they are scraped ---- */

enum { MODEL_SERIES = MODEL_COMMS * MODEL_NODES, MODEL_SLOTS = 8192 };

/* Slots of 5 s since an hour before the first sample in which a series of a gauge has points. */
struct model_times {
	bool points[MODEL_SERIES][MODEL_SLOTS];
	bool there[MODEL_SERIES][MODEL_SLOTS];
};

static inline int64_t model_first(const struct model *m)
{
	int64_t first = INT64_MAX;
	for (size_t i = 0; i < m->samples.len; i++)
		first = MIN(first, m->samples.v[i].time_ns);
	return first - first % (5 * SEC);
}

static inline int model_slot(int64_t time_ns, int64_t first_ns)
{
	int64_t slot = (time_ns - first_ns) / (5 * SEC) + 720;
	CHECK(slot >= 0 && slot < MODEL_SLOTS - 1000);
	return (int)slot;
}

static inline int model_by_number(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

/* The lower one in the middle; 0 of none. */
static inline int model_median(int *v, int n)
{
	qsort(v, (size_t)n, sizeof(*v), model_by_number);
	return n ? v[(n - 1) / 2] : 0;
}

static inline int model_interval(const bool *points)
{
	static int gaps[MODEL_SLOTS];
	int n = 0, last = -1;
	for (int i = 0; i < MODEL_SLOTS; i++) {
		if (points[i] && last >= 0)
			gaps[n++] = i - last;
		last = points[i] ? i : last;
	}
	return model_median(gaps, n);
}

static inline void model_points(struct model_times *t, const struct model *m,
	const struct model_query *q, int64_t from, int64_t to)
{
	int64_t first_ns = model_first(m);
	memset(t, 0, sizeof(*t));
	for (size_t i = 0; i < m->samples.len; i++) {
		const struct model_sample *s = &m->samples.v[i];
		if (model_picks(q, s, from, to))
			t->points[s->comm * MODEL_NODES + s->node]
				 [model_slot(s->time_ns, first_ns)] = true;
	}
}

/* When a series was there, from its points: returns how many these are. */
static inline int model_there(const bool *points, bool *there, int interval, int past)
{
	int n = 0;
	for (int i = 0; i < MODEL_SLOTS; i++) {
		int next = i + 1;
		if (!points[i])
			continue;
		n++;
		while (next < MODEL_SLOTS && !points[next])
			next++;
		int until = next < MODEL_SLOTS && next - i <= 2 * interval ? next : i + past;
		for (int k = i; k < until; k++)
			there[k] = true;
	}
	return n;
}

/* Beginnings and ends of a series that are within an interval of those of all. */
static inline int model_share(bool *there, int interval, int first, int end)
{
	int n = 0;
	for (int i = 1; i < MODEL_SLOTS - 1; i++) {
		if (there[i] && !there[i - 1] && i - first <= interval)
			for (int k = first; k < i; k++)
				there[k] = true;
		if (there[i] && !there[i + 1] && end - (i + 1) <= interval)
			for (int k = i + 1; k < end; k++)
				there[k] = true;
	}
	for (int i = 0; i < MODEL_SLOTS; i++)
		n += there[i];
	return n;
}

/* What a value of each series counts in [from, to), of points in [all_from, all_to). */
static inline void model_weights(const struct model *m, const struct model_query *q,
	int64_t all_from, int64_t all_to, int64_t from, int64_t to, double out[MODEL_SERIES])
{
	struct model_times *t = malloc(sizeof(*t));
	int intervals[MODEL_SERIES], known[MODEL_SERIES], count = 0, n[MODEL_SERIES];
	int first = MODEL_SLOTS, end = 0, together = 0;
	CHECK(t != NULL);
	model_points(t, m, q, all_from, all_to);
	for (int s = 0; s < MODEL_SERIES; s++) {
		intervals[s] = model_interval(t->points[s]);
		if (intervals[s])
			known[count++] = intervals[s];
	}
	int usual = model_median(known, count);
	model_points(t, m, q, from, to);
	for (int s = 0; s < MODEL_SERIES; s++) {
		intervals[s] = intervals[s] ? intervals[s] : usual;
		n[s] = model_there(
			t->points[s], t->there[s], intervals[s], MIN(intervals[s], usual));
		for (int i = 0; i < MODEL_SLOTS; i++)
			if (t->there[s][i]) {
				first = MIN(first, i);
				end = MAX(end, i + 1);
			}
	}
	for (int s = 0; s < MODEL_SERIES; s++)
		out[s] = model_share(t->there[s], intervals[s], first, end);
	for (int i = 0; i < MODEL_SLOTS; i++) {
		bool any = false;
		for (int s = 0; s < MODEL_SERIES; s++)
			any |= t->there[s][i];
		together += any;
	}
	for (int s = 0; s < MODEL_SERIES; s++)
		out[s] = n[s] ? (together ? out[s] / together : 1) / n[s] : 0;
	free(t);
}

/* By stack: the sum, or the gauge's average before rounding. */
static inline void model_sum(const struct model *m, const struct model_query *q, int64_t from,
	int64_t to, double sums[MODEL_STACKS], uint64_t *count)
{
	bool gauge = !model_types[q->type].delta;
	double weights[MODEL_SERIES];
	if (gauge)
		model_weights(m, q, from, to, from, to, weights);
	memset(sums, 0, MODEL_STACKS * sizeof(*sums));
	*count = 0;
	for (size_t i = 0; i < m->samples.len; i++) {
		const struct model_sample *s = &m->samples.v[i];
		if (!model_picks(q, s, from, to))
			continue;
		double w = gauge ? weights[s->comm * MODEL_NODES + s->node] : 1;
		sums[s->stack] += (double)s->value * w;
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
