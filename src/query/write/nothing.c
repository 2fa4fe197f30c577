/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out from the index why an answer is empty: because of the first condition of the selector
 * that no sample matches, else because of the time range.
 */
#include "query/plan/plan.h"
#include "query/write/text.h"
#include "query/write/write.h"

#include <stdio.h>

#define TYPES_SHOWN_MAX 2

struct asked {
	const struct query_plan *plan; /* the query's, over all time */
	struct arena *a;
	struct err *e;
};

static bool is_type(const struct samples_type *t, const struct selector *s)
{
	const struct str parts[] = { t->name, t->sample_type, t->sample_unit, t->period_type,
		t->period_unit };
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		if (!str_eq(parts[i], s->type[i]))
			return false;
	return t->delta == s->delta;
}

static void write_type(struct buf *out, const struct samples_type *t)
{
	struct selector s = { .has_type = true,
		.type = { t->name, t->sample_type, t->sample_unit, t->period_type, t->period_unit },
		.delta = t->delta };
	selector_write(out, &s);
}

static enum status no_such_type(
	struct asked *x, const struct samples_type *types, size_t count, struct selector *s)
{
	CLEANUP(buf_deinit) struct buf text;
	struct selector bare = *s;
	buf_init(&text, 64 << 10);
	bare.matcher_count = 0;
	buf_cstr(&text, "there is no profile type ");
	selector_write(&text, &bare);
	buf_cstr(&text, "; there ");
	buf_cstr(&text, count == 1 ? "is " : "are ");
	for (size_t i = 0; i < count && i < TYPES_SHOWN_MAX; i++) {
		buf_cstr(&text, i ? ", " : "");
		write_type(&text, &types[i]);
	}
	if (count > TYPES_SHOWN_MAX)
		buf_printf(&text, " and %zu more (`firn types`)", count - TYPES_SHOWN_MAX);
	return err_set(x->e, E_NOTFOUND, "%.*s", STR_ARG(buf_view(&text)));
}

/* One condition alone, over all time: is there such a label, and such a value? */
static enum status check_condition(struct asked *x, const struct selector_matcher *m)
{
	struct selector all = { 0 };
	struct samples_query store = x->plan->store;
	struct str *values = NULL;
	size_t count = 0;
	bool met = false;
	store.selector = &all;
	enum status s = x->plan->view->ops->label_values(
		x->plan->view, &store, m->name, x->a, &values, &count, x->e);
	if (s != OK)
		return s;
	for (size_t i = 0; i < count && !met; i++)
		met = selector_matches(m, values[i]);
	if (met || selector_matches(m, STR("")))
		return OK;
	static const char *const operators[] = { "=", "!=", "=~", "!~" };
	if (count == 0)
		return err_set(x->e, E_NOTFOUND, "no sample has a label %.*s", STR_ARG(m->name));
	return err_set(x->e, E_NOTFOUND, "no sample has %.*s%s\"%.*s\"; %.*s has %zu other value%s",
		STR_ARG(m->name), operators[m->op], STR_ARG(str_sub(m->value, 0, 200)),
		STR_ARG(m->name), count, count == 1 ? "" : "s");
}

static void span_of(const struct samples_type *types, size_t count, const struct selector *s,
	int64_t *first, int64_t *last)
{
	*first = INT64_MAX;
	*last = INT64_MIN;
	for (size_t i = 0; i < count; i++)
		if (!s->has_type || is_type(&types[i], s)) {
			*first = MIN(*first, types[i].first_ns);
			*last = MAX(*last, types[i].last_ns);
		}
}

static enum status not_then(struct asked *x, const struct query_request *r, struct str label,
	const struct samples_type *types, size_t count)
{
	int64_t first, last;
	char from[32], to[32];
	const struct selector *s = &x->plan->selector;
	span_of(types, count, s, &first, &last);
	query_text_time(first, from);
	query_text_time(last, to);
	if (last < r->from_ns || first >= r->to_ns)
		return err_set(x->e, E_NOTFOUND,
			"no samples in this time range: there are some from %s to %s", from, to);
	if (label.len > 0)
		return err_set(
			x->e, E_NOTFOUND, "none of these samples has a label %.*s", STR_ARG(label));
	if (r->match.len > 0)
		return err_set(x->e, E_NOTFOUND,
			"no stack in this time range has a function whose name contains \"%.*s\"",
			STR_ARG(str_sub(r->match, 0, 200)));
	if (s->type[0].len == 0)
		return err_set(x->e, E_NOTFOUND,
			"no sample in this time range meets the selector; a longer range (--from) "
			"or another profile type (`firn types`) may help");
	return err_set(x->e, E_NOTFOUND,
		"no sample of %.*s:%.*s in this time range meets the selector; a longer range "
		"(--from) "
		"or another profile type (`firn types`) may help",
		STR_ARG(s->type[0]), STR_ARG(s->type[1]));
}

enum status query_nothing(const struct query_engine *q, const struct query_request *r,
	struct str label, struct err *e)
{
	const struct selector_matcher there = { .name = label, .op = SELECTOR_NE };
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	struct samples_type *types = NULL;
	struct query_request ever = *r;
	size_t count = 0;
	bool known = false;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	ever.from_ns = INT64_MIN;
	ever.to_ns = INT64_MAX;
	enum status s = query_plan_open(q, &ever, false, &a, &plan, e);
	if (s == OK)
		s = plan.view->ops->types(plan.view, INT64_MIN, INT64_MAX, &a, &types, &count, e);
	if (s != OK)
		return s;
	if (count == 0)
		return err_set(e, E_NOTFOUND, "there are no samples at all yet");
	struct asked x = { &plan, &a, e };
	for (size_t i = 0; i < count; i++)
		known |= is_type(&types[i], &plan.selector);
	if (plan.selector.has_type && !known)
		return no_such_type(&x, types, count, &plan.selector);
	for (uint32_t i = 0; i < plan.selector.matcher_count; i++) {
		s = check_condition(&x, &plan.selector.matchers[i]);
		if (s != OK)
			return s;
	}
	s = label.len ? check_condition(&x, &there) : OK;
	return s == OK ? not_then(&x, r, label, types, count) : s;
}
