/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the stacks that the filters kept are written as samples (pprof_writer.c), with their tables.
 * Before the first sample is written, each location that lost frames to a filter or is cut by a
 * sandwich gets a copy with the remaining lines, and each group of labels gets a label set.
 */
#include "query/plan/plan.h"
#include "query/pprof/pgo.h"
#include "query/pprof/pprof_writer.h"
#include "query/stacks/stacks.h"

#include <stdlib.h>

struct maker {
	const struct query_tree *t;
	const struct query_report_request *r;
	struct profile *p;
	uint32_t *copies;     /* by location: itself, a copy with fewer lines, or 0 where no line is
				 left */
	uint32_t *cut_copies; /* the same for locations that the sandwich cuts; NULL without a
				 sandwich */
	uint32_t *callees; /* with plain_callee, for locations that end a stack: a copy without line
			      and address; else NULL */
	uint32_t *sets;    /* by group: the labels */
	struct query_cuts cuts;
	uint32_t path[PROFILE_STACK_MAX];
	struct err *e;
};

/* Makes a location of the kept frames among lines[from .. to). 0: no frame is kept. */
static enum status copy_location(
	struct maker *m, uint32_t location, uint32_t from, uint32_t to, uint32_t *out)
{
	const struct query_line *v = m->t->lines.v;
	struct profile_line lines[PROFILE_LINES_MAX];
	uint32_t first = m->t->lines.first[location], end = m->t->lines.first[location + 1];
	uint32_t count = 0, kept = 0;
	/* Innermost first, as profiles have them. */
	for (uint32_t i = to; i-- > from;) {
		if (!v[i].kept)
			continue;
		kept++;
		if (v[i].line != QUERY_LINE_NONE && count < PROFILE_LINES_MAX)
			lines[count++] = m->p->lines.v[v[i].line];
	}
	*out = kept ? location : 0;
	if (kept == 0 || (kept == end - first && !(m->r->invert && count > 1)))
		return OK;
	for (uint32_t i = 0; m->r->invert && i < count / 2; i++) {
		struct profile_line other = lines[count - 1 - i];
		lines[count - 1 - i] = lines[i];
		lines[i] = other;
	}
	struct profile_location l = m->p->locations.v[location];
	enum status s = profile_add_location(m->p, &l, lines, count, out);
	return s == OK ? OK : err_set(m->e, s, "a profile's locations");
}

/* A copy for where the sandwich cuts: the lines from its function inwards, or outwards if inverted.
 */
static enum status cut_location(struct maker *m, uint32_t location)
{
	uint32_t first = m->t->lines.first[location], end = m->t->lines.first[location + 1];
	uint32_t at = query_tree_cut_line(m->t, first, end, m->r->invert);
	uint32_t *out = &m->cut_copies[location];
	if (at == end)
		return OK;
	return m->r->invert ? copy_location(m, location, first, at + 1, out)
			    : copy_location(m, location, at, end, out);
}

static enum status copy_locations(struct maker *m, struct arena *a)
{
	uint32_t count = (uint32_t)m->p->locations.len; /* copies are appended */
	bool cut = m->t->cut != NULL;
	m->copies = ARENA_ARRAY(a, uint32_t, count);
	if (m->copies && cut)
		m->cut_copies = ARENA_ARRAY(a, uint32_t, count);
	if (!m->copies || (cut && !m->cut_copies))
		return err_set(m->e, arena_status(a), "a profile of %u locations", count);
	enum status s = OK;
	for (uint32_t i = 1; s == OK && i < count; i++) {
		s = copy_location(
			m, i, m->t->lines.first[i], m->t->lines.first[i + 1], &m->copies[i]);
		if (s == OK && cut)
			s = cut_location(m, i);
	}
	return s;
}

/* The locations of stack i, leaf first, in path[]; returns how many. */
static uint32_t path_of(struct maker *m, uint32_t i)
{
	const struct query_tree *c = m->t;
	uint32_t cut = c->cut ? c->cut[i] : QUERY_LINE_NONE, count = 0;
	bool inside = c->cut && m->r->invert; /* still below the sandwich's function */
	for (uint32_t at = i; at > 0 && count < PROFILE_STACK_MAX; at = c->stacks.v.v[at].parent) {
		uint32_t location = c->stacks.v.v[at].location, put = 0;
		if (location == 0)
			break;
		if (at == cut)
			put = m->cut_copies[location];
		else if (!inside)
			put = m->copies[location];
		if (put)
			m->path[count++] = put;
		if (at == cut && !m->r->invert)
			break;
		inside = inside && at != cut;
	}
	for (uint32_t k = 0; m->r->invert && k < count / 2; k++) {
		uint32_t other = m->path[count - 1 - k];
		m->path[count - 1 - k] = m->path[k];
		m->path[k] = other;
	}
	return count;
}

/* With plain_callee, copies the locations that stacks end in. */
static enum status copy_callees(struct maker *m, struct arena *a)
{
	const struct query_stacks *s = &m->t->stacks;
	uint32_t count = (uint32_t)m->p->locations.len;
	if (!m->r->plain_callee)
		return OK;
	uint32_t *callees = ARENA_ARRAY(a, uint32_t, count);
	if (!callees)
		return err_set(m->e, arena_status(a), "a profile of %u locations", count);
	enum status st = OK;
	for (uint32_t i = 1; st == OK && i < m->t->count; i++) {
		uint32_t leaf = s->v.v[i].self && path_of(m, i) ? m->path[0] : 0;
		if (leaf && !callees[leaf])
			st = query_callee_copy(m->p, leaf, &callees[leaf], m->e);
	}
	m->callees = callees;
	return st;
}

static enum status add_labels(struct maker *m, struct arena *a)
{
	struct profile_label labels[QUERY_LABELS_MAX];
	uint32_t n = m->r->label_count, count = m->t->stacks.group_count;
	m->sets = ARENA_ARRAY(a, uint32_t, count);
	enum status s = m->sets ? OK : arena_status(a);
	for (uint32_t group = 1; s == OK && group < count; group++) {
		for (uint32_t i = 0; s == OK && i < n; i++) {
			s = profile_add_string(m->p, m->r->labels[i], &labels[i].name);
			if (s == OK)
				s = profile_add_string(
					m->p, m->t->stacks.groups[group * n + i], &labels[i].value);
		}
		if (s == OK)
			s = profile_add_labels(m->p, labels, n, &m->sets[group]);
	}
	return s == OK ? OK : err_set(m->e, s, "a profile's labels");
}

static enum status add_type(struct maker *m, uint32_t *out)
{
	const struct query_stacks *s = &m->t->stacks;
	struct profile_type type = { .delta = true };
	const struct str texts[] = { s->sample_type, s->unit, s->period_type, s->period_unit };
	uint32_t *ids[] = { &type.sample_type, &type.sample_unit, &type.period_type,
		&type.period_unit };
	enum status st = OK;
	for (size_t i = 0; st == OK && i < ARRAY_COUNT(ids); i++)
		st = profile_add_string(m->p, texts[i], ids[i]);
	if (st == OK)
		st = profile_add_type(m->p, &type, out);
	return st == OK ? OK : err_set(m->e, st, "a profile's type");
}

static enum status write_samples(struct maker *m, struct query_pprof_writer *w)
{
	const struct query_stacks *stacks = &m->t->stacks;
	uint32_t most = m->r->innermost;
	enum status s = OK;
	for (uint32_t i = 0; s == OK && i < m->t->count; i++) {
		int64_t value = m->r->diff ? stacks->diff.v[i] : stacks->v.v[i].self;
		uint32_t count = value ? path_of(m, i) : 0;
		if (count == 0) /* pprof wants a location */
			continue;
		if (m->callees)
			m->path[0] = m->callees[m->path[0]];
		if (most)
			s = query_cuts_add(&m->cuts, m->path, MIN(count, most), value, m->e);
		else
			s = query_pprof_sample(w, m->path, count, &value,
				m->sets[query_stack_group(stacks, i)], m->e);
	}
	return s == OK ? query_cuts_write(&m->cuts, w, m->e) : s;
}

/* Reserves the most memory that the cut stacks and their index can take. */
static enum status hold_cuts(struct maker *m, struct query_tree *t)
{
	uint64_t each = sizeof(struct query_cut) + m->r->innermost * sizeof(uint32_t) + 16;
	if (m->r->innermost > QUERY_INNERMOST_MAX || (m->r->innermost && m->r->label_count))
		return err_set(m->e, E_INVALID, "more than %d innermost locations, or by labels",
			QUERY_INNERMOST_MAX);
	return m->r->innermost ? query_stacks_hold(&t->stacks, t->count * each, m->e) : OK;
}

static enum status write_profile(struct maker *m, struct arena *a, struct buf *out)
{
	CLEANUP(query_pprof_writer_deinit) struct query_pprof_writer w = { 0 };
	const struct query_stacks *stacks = &m->t->stacks;
	uint32_t type = 0;
	enum status s = copy_locations(m, a);
	if (s == OK)
		s = copy_callees(m, a);
	if (s == OK)
		s = add_labels(m, a);
	if (s == OK)
		s = add_type(m, &type);
	if (s == OK)
		s = query_pprof_begin(&w, &stacks->plan, m->p, &type, 1, out, m->e);
	if (s == OK)
		s = write_samples(m, &w);
	if (s != OK)
		return s;
	/* 0 if profiles state no duration. The width of the range would not do: shares of it mean
	 * nothing. */
	int64_t duration_ns = m->r->diff ? 0 : stacks->covered_ns;
	int64_t time_ns = stacks->first_ns ? stacks->first_ns : m->r->side.from_ns;
	return query_pprof_end(&w, time_ns, duration_ns, stacks->period, m->e);
}

enum status query_report_pprof(const struct query_engine *q, const struct query_report_request *r,
	struct buf *out, struct query_report *info, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_tree_deinit) struct query_tree t = { 0 };
	CLEANUP(free_cleanup) struct maker *m = calloc(1, sizeof(*m));
	struct query_report_request plain = *r;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	plain.chart = false;
	enum status s =
		m ? query_tree_make(&t, q, &plain, &a, e) : err_set(e, E_NOMEM, "a profile");
	if (s != OK)
		return s;
	*m = (struct maker){ .t = &t, .r = &plain, .p = &t.stacks.tables, .e = e };
	s = hold_cuts(m, &t);
	if (s == OK)
		s = write_profile(m, &a, out);
	if (s == OK)
		query_tree_info(&t, info);
	query_cuts_deinit(&m->cuts);
	return s;
}

/* ---- the files that are mapped ---- */

static int compare_texts(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static enum status keep_files(const struct profile *p, struct arena *a, struct str **out,
	size_t *out_count, struct err *e)
{
	struct str *files = ARENA_ARRAY(a, struct str, p->mappings.len);
	size_t count = 0;
	for (size_t i = 1; files && i < p->mappings.len; i++) {
		struct str file = profile_str(p, p->mappings.v[i].filename);
		char *copy = arena_copy(a, file.p, file.len);
		if (!copy)
			return err_set(e, arena_status(a), "%zu mapped files", p->mappings.len);
		files[count++] = str_make(copy, file.len);
	}
	if (!files)
		return err_set(e, arena_status(a), "%zu mapped files", p->mappings.len);
	if (count > 1)
		qsort(files, count, sizeof(*files), compare_texts);
	size_t kept = 0;
	for (size_t i = 0; i < count; i++)
		if (kept == 0 || !str_eq(files[kept - 1], files[i]))
			files[kept++] = files[i];
	*out = files;
	*out_count = kept;
	return OK;
}

enum status query_mapping_files(const struct query_engine *q, const struct query_report_request *r,
	struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	CLEANUP(arena_deinit) struct arena work;
	const struct query_engine unnamed = { .samples = q->samples };
	struct query_stacks s;
	arena_init(&work, QUERY_REPORT_BYTES_MAX);
	enum status st = query_stacks_load(&s, &unnamed, r, &work, e);
	if (st != OK)
		return st;
	st = keep_files(&s.tables, a, out, out_count, e);
	query_stacks_deinit(&s);
	return st;
}
