/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the stacks that the filters kept become samples of the profile that holds their tables. A
 * location of which frames were left out, or that a sandwich cuts, gets a copy with the rest of its
 * lines, made once.
 */
#include "query/report.h"

#include "codec/codec.h"
#include "pprof/pprof.h"

#include <stdlib.h>

#define PPROF_BYTES_MAX ((size_t)1 << 30)
#define GZIP_LEVEL 3

struct maker {
	const struct query_tree *t;
	const struct query_report_request *r;
	struct profile *p;
	uint32_t *copies;     /* by location: + 1; 0: not made yet, 1: nothing is left */
	uint32_t *cut_copies; /* the same, of the location where the sandwich's function is */
	uint32_t *sets;       /* by group: the labels */
	uint32_t path[PROFILE_STACK_MAX];
	struct err *e;
};

/* Frames lines[from .. to) of a location, those that are kept: as a location. 0: none is. */
static enum status copy_location(struct maker *m, uint32_t location, uint32_t from, uint32_t to,
	uint32_t *memo, uint32_t *out)
{
	const struct query_line *v = m->t->lines.v;
	struct profile_line lines[PROFILE_LINES_MAX];
	uint32_t first = m->t->lines.first[location], end = m->t->lines.first[location + 1];
	uint32_t count = 0, kept = 0;
	if (*memo) {
		*out = *memo - 1;
		return OK;
	}
	/* Innermost first, as profiles have them. */
	for (uint32_t i = to; i-- > from;) {
		if (!v[i].kept)
			continue;
		kept++;
		if (v[i].line != QUERY_LINE_NONE && count < PROFILE_LINES_MAX)
			lines[count++] = m->p->lines.v[v[i].line];
	}
	*out = location;
	if (kept == 0) {
		*out = 0;
	} else if (kept < end - first || (m->r->invert && count > 1)) {
		for (uint32_t i = 0; m->r->invert && i < count / 2; i++) {
			struct profile_line other = lines[count - 1 - i];
			lines[count - 1 - i] = lines[i];
			lines[i] = other;
		}
		struct profile_location l = m->p->locations.v[location];
		enum status s = profile_add_location(m->p, &l, lines, count, out);
		if (s != OK)
			return err_set(m->e, s, "a profile's locations");
	}
	*memo = *out + 1;
	return OK;
}

/* Where the sandwich cuts: from its function inwards, or inverted outwards. */
static enum status cut_location(struct maker *m, uint32_t location, uint32_t *out)
{
	uint32_t first = m->t->lines.first[location], end = m->t->lines.first[location + 1];
	uint32_t at = query_tree_cut_line(m->t, first, end, m->r->invert);
	uint32_t *memo = &m->cut_copies[location];
	return m->r->invert ? copy_location(m, location, first, at + 1, memo, out)
			    : copy_location(m, location, at, end, memo, out);
}

/* The locations of stack i, leaf first. */
static enum status path_of(struct maker *m, uint32_t i, uint32_t *out_count)
{
	const struct query_tree *c = m->t;
	uint32_t cut = c->cut ? c->cut[i] : QUERY_LINE_NONE, count = 0;
	bool inside = c->cut && m->r->invert; /* of the function: left out until it comes */
	for (uint32_t at = i; at > 0 && count < PROFILE_STACK_MAX; at = c->stacks.v.v[at].parent) {
		uint32_t location = c->stacks.v.v[at].location, put = 0;
		enum status s = OK;
		if (location == 0)
			break;
		if (at == cut)
			s = cut_location(m, location, &put);
		else if (!inside)
			s = copy_location(m, location, c->lines.first[location],
				c->lines.first[location + 1], &m->copies[location], &put);
		if (s != OK)
			return s;
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
	*out_count = count;
	return OK;
}

static enum status labels_of(struct maker *m, uint32_t group, uint32_t *out)
{
	struct profile_label labels[QUERY_LABELS_MAX];
	uint32_t n = m->r->label_count;
	enum status s = OK;
	*out = m->sets[group];
	if (group == 0 || *out)
		return OK;
	for (uint32_t i = 0; s == OK && i < n; i++) {
		s = profile_add_string(m->p, m->r->labels[i], &labels[i].name);
		if (s == OK)
			s = profile_add_string(
				m->p, m->t->stacks.groups[group * n + i], &labels[i].value);
	}
	if (s == OK)
		s = profile_add_labels(m->p, labels, n, out);
	m->sets[group] = *out;
	return s == OK ? OK : err_set(m->e, s, "a profile's labels");
}

static enum status add_head(struct maker *m, uint32_t *out)
{
	const struct query_stacks *s = &m->t->stacks;
	struct profile_type type = { .delta = true };
	/* 0 where profiles do not say what they took. The width of the range is another thing:
	 * shares of it would say nothing. */
	struct profile_head head = { .period = s->period,
		.duration_ns = m->r->diff ? 0 : s->covered_ns,
		.time_ns = s->first_ns ? s->first_ns : m->r->side.from_ns };
	const struct str texts[] = { s->sample_type, s->unit, s->period_type, s->period_unit };
	uint32_t *ids[] = { &type.sample_type, &type.sample_unit, &type.period_type,
		&type.period_unit };
	enum status st = OK;
	for (size_t i = 0; st == OK && i < ARRAY_COUNT(ids); i++)
		st = profile_add_string(m->p, texts[i], ids[i]);
	if (st == OK)
		st = profile_add_type(m->p, &type, &head.type);
	if (st == OK)
		st = profile_add_head(m->p, &head, out);
	return st == OK ? OK : err_set(m->e, st, "a profile's head");
}

static enum status add_sample(struct maker *m, uint32_t i, uint32_t head)
{
	const struct query_stacks *stacks = &m->t->stacks;
	struct profile_sample sample = { .head = head };
	uint32_t count = 0;
	sample.value = m->r->diff ? stacks->diff.v[i] : stacks->v.v[i].self;
	if (sample.value == 0)
		return OK;
	enum status s = path_of(m, i, &count);
	if (s != OK || count == 0) /* pprof wants a location */
		return s;
	s = labels_of(m, query_stack_group(stacks, i), &sample.own);
	if (s != OK)
		return s;
	s = profile_add_stack(m->p, m->path, count, &sample.stack);
	if (s == OK)
		s = profile_add_sample(m->p, &sample);
	return s == OK ? OK : err_set(m->e, s, "a profile's samples");
}

static enum status add_samples(struct maker *m, struct arena *a)
{
	size_t locations = m->p->locations.len;
	uint32_t head = 0;
	m->copies = ARENA_ARRAY(a, uint32_t, locations);
	m->cut_copies = ARENA_ARRAY(a, uint32_t, locations);
	m->sets = ARENA_ARRAY(a, uint32_t, m->t->stacks.group_count);
	if (!m->copies || !m->cut_copies || !m->sets)
		return err_set(m->e, arena_status(a), "a profile of %zu locations", locations);
	VEC_CLEAR(&m->p->samples);
	VEC_CLEAR(&m->p->heads);
	enum status s = profile_add_head(m->p, &(struct profile_head){ 0 }, &head);
	if (s == OK)
		s = add_head(m, &head);
	for (uint32_t i = 0; s == OK && i < m->t->count; i++)
		s = add_sample(m, i, head);
	return s;
}

static enum status encode(const struct profile *p, struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf plain;
	buf_init(&plain, PPROF_BYTES_MAX);
	enum status s = pprof_encode(p, &plain, e);
	if (s != OK)
		return s;
	s = codec_gzip(plain.data, plain.len, GZIP_LEVEL, out);
	return s == OK ? OK : err_set(e, s, "profile of %zu bytes", plain.len);
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
	s = add_samples(m, &a);
	if (s == OK)
		s = encode(m->p, out, e);
	if (s == OK)
		query_tree_info(&t, info);
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
