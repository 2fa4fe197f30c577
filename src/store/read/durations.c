/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Profiles are picked as their rows are: by series, and by the time that rows of this part have. A
 * profile belongs to the step in which it began, with all of its time, as its values do. Sorted by
 * group, step and time, the union of their times is one pass.
 */
#include "store/read/durations.h"

#include "store/part/part.h"

#include <stdlib.h>

#define PROFILES_MIN 256

void durations_deinit(struct durations *c)
{
	VEC_FREE(&c->profiles);
	if (c->bytes)
		budget_give(c->budget, c->bytes);
	c->bytes = 0;
}

/* An answer without durations is valid too, so E_LIMIT only leaves them out. */
static enum status leave_out(struct durations *c, enum status s, struct err *e)
{
	if (s != E_LIMIT)
		return s;
	durations_deinit(c);
	c->is_left_out = true;
	if (e)
		*e = (struct err){ 0 };
	return OK;
}

static enum status reserve(struct durations *c, struct err *e)
{
	size_t cap = c->profiles.cap;
	if (c->profiles.len < cap)
		return OK;
	cap = MAX(2 * cap, (size_t)PROFILES_MIN);
	uint64_t more = cap * sizeof(struct duration) - c->bytes;
	enum status s = budget_take(c->budget, more, e);
	if (s != OK)
		return s;
	c->bytes += more;
	return VEC_RESERVE(&c->profiles, cap) ? OK : err_set(e, E_NOMEM, "durations of profiles");
}

static enum status add(
	struct durations *c, struct source *s, const struct pick *pick, struct err *e)
{
	enum status st =
		source_load(c->view, s, PART_LOAD_LABELS | PART_LOAD_PROFILES, c->budget, e);
	for (uint32_t i = 0; st == OK && i < s->tabs.profile_count; i++) {
		const struct tab_profile *x = &s->tabs.profiles[i];
		int64_t at = s->part ? part_row_time(part_meta(s->part), x->time_ns) : x->time_ns;
		struct duration p = { .from_ns = x->time_ns,
			.step = durations_step(at, c->step_ns),
			.samples = (uint64_t)x->samples };
		if (!pick->series[x->series] || at < c->query->from_ns || at >= c->query->to_ns)
			continue;
		if (__builtin_add_overflow(x->time_ns, x->duration_ns, &p.to_ns))
			p.to_ns = INT64_MAX;
		if (c->groups)
			st = groups_find(c->groups, x->series, 0, &p.group, e);
		if (st == OK)
			st = reserve(c, e);
		if (st == OK)
			c->profiles.v[c->profiles.len++] = p;
	}
	return st;
}

enum status durations_add(
	struct durations *c, struct source *s, const struct pick *pick, struct err *e)
{
	if (pick->wanted == 0 || c->is_left_out)
		return OK;
	return leave_out(c, add(c, s, pick, e), e);
}

static int by_group_step_time(const void *a, const void *b)
{
	const struct duration *x = a, *y = b;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

static void add_time(struct step_duration *c, int64_t from, int64_t to)
{
	int64_t more;
	if (__builtin_sub_overflow(to, from, &more) || __builtin_add_overflow(c->ns, more, &c->ns))
		c->ns = INT64_MAX;
}

static size_t count_steps(const struct duration *v, size_t n)
{
	size_t count = n > 0;
	for (size_t i = 1; i < n; i++)
		count += v[i].group != v[i - 1].group || v[i].step != v[i - 1].step;
	return count;
}

enum status durations_finish(
	struct durations *c, struct step_duration **out, size_t *out_count, struct err *e)
{
	const struct duration *v = c->profiles.v;
	size_t n = c->profiles.len, count = 0;
	struct step_duration *made = NULL;
	*out_count = 0;
	if (n)
		qsort(c->profiles.v, n, sizeof(*v), by_group_step_time);
	enum status s = budget_array(c->budget, count_steps(v, n), sizeof(*made), &made, e);
	int64_t end = INT64_MIN;
	if (s != OK)
		return leave_out(c, s, e);
	for (size_t i = 0; i < n; i++) {
		struct step_duration *last = &made[count - (count > 0)];
		if (count == 0 || last->group != v[i].group || last->step != v[i].step) {
			last = &made[count++];
			*last = (struct step_duration){ v[i].group, v[i].step, 0, 0 };
			end = INT64_MIN;
		}
		if (v[i].to_ns > end)
			add_time(last, MAX(v[i].from_ns, end), v[i].to_ns);
		end = MAX(end, v[i].to_ns);
		last->samples += v[i].samples;
	}
	durations_deinit(c);
	*out = made;
	*out_count = count;
	return OK;
}

enum status durations_of_all(struct store_view *v, const struct pick *picks,
	const struct samples_query *q, uint64_t samples, struct budget *b, int64_t *out_ns,
	struct err *e)
{
	CLEANUP(durations_deinit)
	struct durations c = { .view = v, .query = q, .budget = b };
	CLEANUP(free_cleanup) struct step_duration *made = NULL;
	size_t count = 0;
	enum status s = OK;
	for (size_t i = 0; i < v->source_count && s == OK; i++) {
		s = durations_add(&c, &v->sources[i], &picks[i], e);
		if (s == OK)
			source_done(v, &v->sources[i]);
	}
	if (s == OK)
		s = durations_finish(&c, &made, &count, e);
	if (s == OK)
		*out_ns = count == 1 && made[0].samples == samples ? made[0].ns : 0;
	return s;
}
