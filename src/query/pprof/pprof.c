/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the store sums by stack and labels, the symbolizer names the locations; then the sums are
 * written one by one (pprof_writer.c). Counts with
 * a period have a second value in the period's unit, so that there are two columns, [samples count,
 * cpu nanoseconds], as Go's own CPU profiles have them; pprof shows the last one by default.
 */
#include "query/plan/plan.h"
#include "query/pprof/pprof_writer.h"
#include "query/report/report.h"
#include "query/stacks/stacks.h"
#include "query/write/write.h"

#include <stdio.h>

#define LABELS_MAX PROFILE_LABELS_MAX
#define COMMENTS_MAX 2

/* Labels with which hardly any two samples could be joined: kept only if the request names them. */
static const char *const dropped[] = { "cpu", "thread_id", "span_id", "trace_id" };

static bool is_dropped(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(dropped); i++)
		if (str_eq(name, str_of(dropped[i])))
			return true;
	return false;
}

/* The labels that the request names, else all but dropped[], at most LABELS_MAX; *out_left counts
 * those beyond. */
static enum status choose_labels(const struct query_plan *p, const struct query_request *r,
	struct arena *a, struct str *out, size_t *out_count, size_t *out_left, struct err *e)
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
	for (size_t i = 0; i < count; i++) {
		if (is_dropped(names[i]))
			continue;
		if (*out_count < LABELS_MAX)
			out[(*out_count)++] = names[i];
		else
			(*out_left)++;
	}
	return OK;
}

/* ---- writing ---- */

struct writer {
	struct query_pprof_writer out;
	const struct query_plan *plan;
	const struct samples_cells *cells;
	const uint8_t *matched; /* by node; NULL: all */
	uint32_t types[2];
	uint32_t type_count;
};

static bool has_period(const struct samples_cells *c)
{
	bool any = c->tree.period > 0;
	for (size_t i = 0; i < c->groups.len && !any; i++)
		any = c->groups.v[i].period > 0;
	return any;
}

/* The type where no sample was found: the selector's, so that the profile can be read and merged.
 */
static enum status take_type_of_selector(
	const struct selector *s, struct profile *p, struct profile_type *out, struct err *e)
{
	uint32_t *parts[] = { &out->name, &out->sample_type, &out->sample_unit, &out->period_type,
		&out->period_unit };
	enum status st = OK;
	for (size_t i = 0; i < ARRAY_COUNT(parts) && st == OK; i++)
		st = profile_add_string(p, s->type[i], parts[i]);
	return st == OK ? OK : err_set(e, st, "the type of a profile");
}

/* Counts of CPU samples and the like: a second column in the unit of their periods. */
static enum status choose_types(struct writer *w, struct samples_tree *t, struct err *e)
{
	struct profile *p = &t->tables;
	struct profile_type type = t->type;
	enum status s = OK;
	if (t->sample_count == 0)
		s = take_type_of_selector(&w->plan->selector, p, &type, e);
	if (s != OK)
		return s;
	struct query_unit unit = query_unit_of(profile_str(p, type.sample_type),
		profile_str(p, type.sample_unit), profile_str(p, type.period_unit), 2);
	s = profile_add_type(p, &type, &w->types[0]);
	w->type_count = 1;
	if (s == OK && unit.factor == 2 && has_period(w->cells)) {
		type.sample_type = type.period_type;
		type.sample_unit = type.period_unit;
		s = profile_add_type(p, &type, &w->types[1]);
		w->type_count = 2;
	}
	return s == OK ? OK : err_set(e, s, "the types of a profile");
}

/* A stack matches when one of its frames does; parents come before their children. */
static enum status find_matches(struct writer *w, struct samples_tree *t,
	const struct query_request *r, struct arena *a, struct err *e)
{
	struct query_shown room;
	struct query_report_request shown = query_shown_request(r, &room);
	struct query_lines l;
	enum status s = query_lines_make(&t->tables, &shown, a, &l, e);
	uint8_t *matched = s == OK ? ARENA_ARRAY(a, uint8_t, t->nodes.len) : NULL;
	if (s == OK && !matched)
		s = err_set(e, arena_status(a), "a tree of %zu locations", t->nodes.len);
	for (size_t i = 1; s == OK && i < t->nodes.len; i++) {
		const struct samples_node *n = &t->nodes.v[i];
		matched[i] = matched[n->parent];
		for (uint32_t k = l.first[n->location]; k < l.first[n->location + 1]; k++)
			matched[i] |= l.v[k].seen != 0;
	}
	w->matched = matched;
	return s;
}

/* The locations of a node, leaf first. */
static uint32_t path_of(const struct samples_tree *t, uint32_t node, uint32_t *out)
{
	uint32_t n = 0;
	for (; node && n < PROFILE_STACK_MAX; node = t->nodes.v[node].parent)
		out[n++] = t->nodes.v[node].location;
	return n;
}

/* Cells of one node with equal labels become one sample. */
static enum status write_samples(struct writer *w, struct err *e)
{
	const struct samples_cells *c = w->cells;
	uint32_t path[PROFILE_STACK_MAX], depth = 0, node = UINT32_MAX;
	enum status s = OK;
	for (size_t i = 0; i < c->v.len && s == OK;) {
		const struct samples_cell *first = &c->v.v[i];
		uint32_t labels = c->groups.v[first->group].labels;
		int64_t values[2] = { 0, 0 };
		for (; i < c->v.len && c->v.v[i].node == first->node; i++) {
			const struct samples_group *g = &c->groups.v[c->v.v[i].group];
			if (g->labels != labels)
				break;
			int64_t value = c->v.v[i].value;
			values[0] = query_add(values[0], value);
			values[1] = query_add(
				values[1], query_scale(value, g->period > 0 ? g->period : 1));
		}
		if (w->matched && !w->matched[first->node])
			continue;
		if (first->node != node)
			depth = path_of(&c->tree, first->node, path);
		node = first->node;
		s = query_pprof_sample(&w->out, path, depth, values, labels, e);
	}
	return s;
}

/* comments[]: strings, 0 for none. */
static enum status add_comments(struct profile *p, size_t left_labels,
	const struct query_request *r, uint32_t comments[COMMENTS_MAX], struct err *e)
{
	char text[128];
	(void)snprintf(text, sizeof(text),
		"firn: %zu labels are left out, %d are the most; ask for those you need (by=)",
		left_labels, LABELS_MAX);
	enum status s = OK;
	if (left_labels)
		s = profile_add_string(p, str_of(text), &comments[0]);
	if (s == OK && r->note.len)
		s = profile_add_string(p, r->note, &comments[1]);
	return s == OK ? OK : err_set(e, s, "the comments of a profile");
}

static enum status write_profile(struct writer *w, struct samples_cells *c, size_t left_labels,
	const struct query_request *r, struct arena *a, struct buf *out, struct err *e)
{
	struct samples_tree *t = &c->tree;
	int64_t longest = MAX(t->period, 0);
	uint32_t comments[COMMENTS_MAX] = { 0 };
	for (size_t i = 0; i < c->groups.len; i++)
		longest = MAX(longest, c->groups.v[i].period);
	enum status s = choose_types(w, t, e);
	if (s == OK && r->match.len > 0)
		s = find_matches(w, t, r, a, e);
	if (s == OK)
		s = add_comments(&t->tables, left_labels, r, comments, e);
	if (s == OK)
		s = query_pprof_begin(
			&w->out, w->plan, &t->tables, w->types, w->type_count, out, e);
	for (size_t i = 0; s == OK && i < COMMENTS_MAX; i++)
		if (comments[i])
			pprof_stream_comment(w->out.stream, comments[i], &w->out.plain);
	if (s == OK)
		s = write_samples(w, e);
	if (s != OK)
		return s;
	int64_t duration_ns = t->covered_ns ? t->covered_ns : query_sub(t->last_ns, t->first_ns);
	return query_pprof_end(&w->out, t->first_ns, duration_ns, longest, e);
}

/* ---- the report ---- */

/* The caller frees *out, also after a failure. */
static enum status sum(const struct query_engine *q, const struct query_request *r,
	const struct query_plan *plan, struct arena *a, struct samples_cells *out,
	size_t *out_left_labels, struct err *e)
{
	struct str labels[LABELS_MAX];
	size_t label_count = 0;
	uint32_t pending = 0;
	enum status s = choose_labels(plan, r, a, labels, &label_count, out_left_labels, e);
	if (s == OK)
		s = plan->view->ops->sum_cells(
			plan->view, &plan->store, labels, label_count, out, e);
	if (s != OK || !q->symbolizer)
		return s;
	return symbolizer_resolve(
		q->symbolizer, &out->tree.tables, QUERY_PPROF_WAIT_MS, &pending, e);
}

enum status query_pprof(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	struct samples_cells cells = { 0 };
	struct writer w = { .plan = &plan, .cells = &cells };
	size_t left_labels = 0;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	enum status s = query_plan_open(q, r, true, &a, &plan, e);
	if (s == OK && plan.empty)
		s = err_set(e, E_NOTFOUND, "there are no samples yet, of any type");
	plan.store.durations = true;
	if (s == OK)
		s = sum(q, r, &plan, &a, &cells, &left_labels, e);
	if (s == OK && r->required && cells.v.len == 0)
		s = query_nothing(q, r, STR(""), e);
	if (s == OK)
		s = write_profile(&w, &cells, left_labels, r, &a, out, e);
	query_pprof_writer_deinit(&w.out);
	samples_cells_deinit(&cells);
	return s;
}
