/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: query_range() says which series have something in which steps. Each of these steps is then
 * a tree of its own, by the same labels, of which the kept stacks are summed by group; a group is
 * found among the series by its values.
 */
#include "query/report.h"

#include "base/clock.h"

#include <stdlib.h>

struct chooser {
	const struct query_engine *q;
	const struct query_report_request *r;
	struct query_range *range; /* of all stacks; its values are replaced */
	size_t by_count;
	struct map index; /* of range->series */
	uint32_t *at;     /* by series: the next point */
	int64_t *times;   /* begins of the steps */
	size_t time_count;
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

static int compare_times(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x > y) - (x < y);
}

static enum status find_times(struct chooser *c, struct arena *a)
{
	size_t count = 0;
	for (size_t i = 0; i < c->range->count; i++)
		count += c->range->series[i].point_count;
	c->times = ARENA_ARRAY(a, int64_t, count);
	c->at = ARENA_ARRAY(a, uint32_t, c->range->count);
	if (!c->times || !c->at)
		return err_set(c->e, arena_status(a), "%zu points", count);
	count = 0;
	for (size_t i = 0; i < c->range->count; i++)
		for (size_t k = 0; k < c->range->series[i].point_count; k++)
			c->times[count++] = c->range->series[i].points[k].time_ns;
	if (count > 1)
		qsort(c->times, count, sizeof(*c->times), compare_times);
	for (size_t i = 0; i < count; i++)
		if (i == 0 || c->times[i] != c->times[i - 1])
			c->times[c->time_count++] = c->times[i];
	if (c->time_count > QUERY_CHOSEN_STEPS_MAX)
		return err_set(c->e, E_LIMIT,
			"%zu steps of chosen stacks, where %d are the most: choose a longer step",
			c->time_count, QUERY_CHOSEN_STEPS_MAX);
	return OK;
}

/* What all stacks had becomes 0, for the sums of the kept ones. */
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

/* The point of a group in the step; NULL: the series ended meanwhile. */
static struct query_range_point *find_point(
	struct chooser *c, const struct str *values, int64_t time_ns)
{
	uint32_t at =
		map_find(&c->index, values_hash(values, c->by_count), values_equal, c, values);
	if (at == MAP_NONE)
		return NULL;
	const struct query_range_series *s = &c->range->series[at];
	while (c->at[at] < s->point_count && s->points[c->at[at]].time_ns < time_ns)
		c->at[at]++;
	bool there = c->at[at] < s->point_count && s->points[c->at[at]].time_ns == time_ns;
	return there ? &s->points[c->at[at]] : NULL;
}

static void add_groups(struct chooser *c, const struct query_tree *t, int64_t time_ns)
{
	static const struct str none[QUERY_LABELS_MAX];
	const struct query_stacks *s = &t->stacks;
	uint32_t last = UINT32_MAX;
	struct query_range_point *p = NULL;
	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t group = query_stack_group(s, i);
		if (s->v.v[i].self == 0)
			continue;
		if (group != last)
			p = find_point(c, group ? s->groups + group * c->by_count : none, time_ns);
		last = group;
		if (p)
			p->value = query_add(p->value, s->v.v[i].self);
	}
}

static enum status add_step(struct chooser *c, int64_t time_ns, int64_t step_ns)
{
	CLEANUP(arena_deinit) struct arena work;
	CLEANUP(query_tree_deinit) struct query_tree t = { 0 };
	struct query_report_request step = *c->r;
	step.side.from_ns = MAX(step.side.from_ns, time_ns);
	if (query_sub(step.side.to_ns, time_ns) > step_ns)
		step.side.to_ns = time_ns + step_ns;
	arena_init(&work, QUERY_REPORT_BYTES_MAX);
	enum status s = query_tree_make(&t, c->q, &step, &work, c->e);
	if (s == OK)
		add_groups(c, &t, time_ns);
	return s;
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
	if (!request.deadline_ns)
		request.deadline_ns = clock_monotonic_ns() + QUERY_TIME_MAX_NS;
	enum status s = query_range(q, r, by, by_count, a, out, e);
	if (s == OK)
		s = find_times(&c, a);
	if (s == OK)
		s = clear_values(&c);
	for (size_t i = 0; s == OK && i < c.time_count; i++)
		s = add_step(&c, c.times[i], r->step_ns);
	map_deinit(&c.index);
	return s;
}
