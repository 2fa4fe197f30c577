/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: query_range() finds the series and their steps. Then one report of the whole range by the
 * same labels, with samples summed by stack and step, gives the values of the kept stacks; a
 * group's series is found by its label values. If that takes more memory than a query may have, the
 * range is cut into pieces of whole steps.
 */
#include "query/plan/plan.h"
#include "query/report/report.h"
#include "query/stacks/stacks.h"

#include "base/clock.h"

struct chooser {
	const struct query_engine *q;
	const struct query_report_request *r;
	struct query_range
		*range; /* of all stacks; its values are replaced by those of the kept ones */
	size_t by_count;
	struct map index; /* of range->series */
	struct err *e;
};

static uint64_t values_hash(const struct str *values, size_t count)
{
	uint64_t h = 0;
	for (size_t i = 0; i < count; i++)
		h = hash_u64(h) ^ hash64(values[i].p, values[i].len);
	return h;
}

static bool values_equal(const void *ctx, uint32_t series, const void *key)
{
	const struct chooser *c = ctx;
	const struct str *values = key;
	for (size_t i = 0; i < c->by_count; i++)
		if (!str_eq(c->range->series[series].values[i], values[i]))
			return false;
	return true;
}

/* Sets the values, which are those of all stacks, to 0, so that those of the kept ones can be
 * added. */
static enum status clear_values(struct chooser *c)
{
	for (size_t i = 0; i < c->range->count; i++) {
		struct query_range_series *s = &c->range->series[i];
		for (size_t k = 0; k < s->point_count; k++)
			s->points[k].value = 0;
		if (!map_insert(&c->index, values_hash(s->values, c->by_count), (uint32_t)i))
			return err_set(c->e, E_NOMEM, "%zu series", c->range->count);
	}
	return OK;
}

/* The point of a group in the step; NULL: the series began meanwhile. */
static struct query_range_point *find_point(
	struct chooser *c, const struct str *values, int64_t time_ns)
{
	uint32_t at =
		map_find(&c->index, values_hash(values, c->by_count), values_equal, c, values);
	if (at == MAP_NONE)
		return NULL;
	const struct query_range_series *s = &c->range->series[at];
	size_t from = 0, to = s->point_count;
	while (from < to) {
		size_t middle = from + (to - from) / 2;
		if (s->points[middle].time_ns < time_ns)
			from = middle + 1;
		else
			to = middle;
	}
	bool there = from < s->point_count && s->points[from].time_ns == time_ns;
	return there ? &s->points[from] : NULL;
}

/* Events come by step, within a step by stack, and so mostly by group: consecutive ones often have
 * the same point. */
static void add_events(struct chooser *c, const struct query_tree *t)
{
	static const struct str none[QUERY_LABELS_MAX];
	const struct query_stacks *s = &t->stacks;
	uint32_t last = UINT32_MAX;
	int64_t last_ns = 0;
	struct query_range_point *p = NULL;
	for (size_t i = 0; i < s->events.len; i++) {
		const struct query_event *event = &s->events.v[i];
		uint32_t group = query_stack_group(s, event->stack);
		if (t->left_out && t->left_out[event->stack])
			continue;
		if (group != last || event->time_ns != last_ns)
			p = find_point(
				c, group ? s->groups + group * c->by_count : none, event->time_ns);
		last = group;
		last_ns = event->time_ns;
		if (p)
			p->value = query_add(p->value, event->value);
	}
}

static enum status add_piece(struct chooser *c, int64_t from_ns, int64_t to_ns)
{
	CLEANUP(arena_deinit) struct arena work;
	CLEANUP(query_tree_deinit) struct query_tree t = { 0 };
	struct query_report_request piece = *c->r;
	piece.side.from_ns = from_ns;
	piece.side.to_ns = to_ns;
	arena_init(&work, QUERY_REPORT_BYTES_MAX);
	enum status s = query_tree_make(&t, c->q, &piece, &work, c->e);
	if (s == OK)
		add_events(c, &t);
	return s;
}

/* From the first point to the last. */
static enum status add_pieces(struct chooser *c)
{
	int64_t step_ns = c->r->step_ns, first = INT64_MAX, last = INT64_MIN;
	for (size_t i = 0; i < c->range->count; i++) {
		const struct query_range_series *s = &c->range->series[i];
		first = MIN(first, s->points[0].time_ns);
		last = MAX(last, s->points[s->point_count - 1].time_ns);
	}
	uint64_t steps =
		first > last ? 0 : (uint64_t)query_sub(last, first) / (uint64_t)step_ns + 1;
	uint64_t at = 0, most = steps;
	while (at < steps) {
		uint64_t n = MIN(most, steps - at);
		int64_t begin = first + (int64_t)at * step_ns, end;
		if (__builtin_add_overflow(begin, (int64_t)n * step_ns, &end))
			end = INT64_MAX;
		enum status s =
			add_piece(c, MAX(begin, c->r->side.from_ns), MIN(end, c->r->side.to_ns));
		if (s == E_LIMIT && n > 1)
			most = n / 2;
		else if (s != OK)
			return s;
		else
			at += n;
	}
	return OK;
}

enum status query_range_chosen(const struct query_engine *q, const struct query_request *r,
	const struct str *by, size_t by_count, struct arena *a, struct query_range *out,
	struct err *e)
{
	struct query_shown room;
	struct query_report_request request = query_shown_request(r, &room);
	struct chooser c = { .q = q, .r = &request, .range = out, .by_count = by_count, .e = e };
	if (by_count == 0 || by_count > QUERY_LABELS_MAX || r->step_ns <= 0)
		return err_set(e, by_count > QUERY_LABELS_MAX ? E_LIMIT : E_INVALID,
			"series of chosen stacks: a step and 1 to %d labels are needed",
			QUERY_LABELS_MAX);
	memcpy(request.labels, by, by_count * sizeof(*by));
	request.label_count = (uint32_t)by_count;
	request.chart = true;
	request.step_ns = r->step_ns;
	if (!request.deadline_ns)
		request.deadline_ns = clock_monotonic_ns() + QUERY_TIME_MAX_NS;
	enum status s = query_range(q, r, by, by_count, a, out, e);
	if (s == OK)
		s = clear_values(&c);
	if (s == OK)
		s = add_pieces(&c);
	map_deinit(&c.index);
	return s;
}
