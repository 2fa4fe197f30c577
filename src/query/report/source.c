/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values by source line or instruction. How: the tree of stacks is summed by keys that are one
 * place in one build, so that a recursive place counts once in a stack; then the rows of the wanted
 * file or function are joined over builds.
 */
#include "query/fold/fold.h"
#include "query/plan/plan.h"
#include "query/report/report.h"
#include "query/stacks/stacks.h"

/* A row of the wanted file or function. */
struct found {
	uint64_t at;
	uint32_t build; /* strings of the tables */
	uint32_t location;
	int64_t self, total;
};

struct finder {
	const struct query_tree *t;
	struct str file;             /* of lines */
	struct str function, binary; /* for instructions; binary "": any */
	bool lines;
	struct found *v;
	uint32_t count;
};

static int compare_places(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	return a->at < b->at ? -1 : a->at > b->at;
}

static int compare_weights(const void *pa, const void *pb)
{
	const struct found *a = pa, *b = pb;
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return a->build < b->build ? -1 : a->build > b->build;
}

/* Whether the frame lies in the wanted file or function, and at which line or address. An
 * instruction belongs to the function that contains it, also if it was inlined from another. */
static bool is_wanted(const struct finder *f, const struct query_line *line, uint64_t *out_at)
{
	const struct query_tree *t = f->t;
	if (f->lines) {
		struct query_line_texts x = query_line_texts(&t->stacks.tables, line);
		*out_at = x.line;
		return x.has_function && x.line > 0 && str_eq(x.file, f->file);
	}
	const struct query_line *outer = &t->lines.v[t->lines.first[line->location]];
	struct query_line_texts x = query_line_texts(&t->stacks.tables, outer);
	*out_at = x.address;
	return x.has_mapping && str_eq(x.function, f->function) &&
	       (f->binary.len == 0 || str_eq(str_base_name(x.mapping), f->binary));
}

static uint32_t build_of(const struct query_tree *t, const struct query_line *line)
{
	const struct profile *p = &t->stacks.tables;
	return p->mappings.v[p->locations.v[line->location].mapping].build_id;
}

static enum status find_rows(
	struct finder *f, const struct query_key_rows *rows, struct arena *a, struct err *e)
{
	f->v = ARENA_ARRAY(a, struct found, rows->count);
	if (!f->v)
		return err_set(e, arena_status(a), "%u places in code", rows->count);
	for (uint32_t i = 0; i < rows->count; i++) {
		const struct query_key_row *row = &rows->v[rows->order[i]];
		const struct query_line *line = &f->t->lines.v[row->line];
		struct found *to = &f->v[f->count];
		if ((row->self || row->total) && is_wanted(f, line, &to->at)) {
			to->build = build_of(f->t, line);
			to->location = line->location;
			to->self = row->self;
			to->total = row->total;
			f->count++;
		}
	}
	return OK;
}

/* Lists the builds, the largest value first; builds beyond QUERY_BUILDS_MAX are not listed. */
static enum status list_builds(
	const struct finder *f, struct arena *work, struct arena *a, struct query_places *out)
{
	struct found *sums = ARENA_ARRAY(work, struct found, f->count);
	uint32_t count = 0;
	if (!sums)
		return arena_status(work);
	for (uint32_t i = 0; i < f->count; i++) {
		uint32_t k = 0;
		while (k < count && sums[k].build != f->v[i].build)
			k++;
		if (k == count && count == QUERY_BUILDS_MAX)
			continue;
		if (k == count)
			sums[count++] = (struct found){ .build = f->v[i].build };
		sums[k].total = query_add(sums[k].total, f->v[i].total);
	}
	if (count > 1)
		qsort(sums, count, sizeof(*sums), compare_weights);
	out->builds = ARENA_ARRAY(a, struct str, count);
	if (!out->builds)
		return arena_status(a);
	for (uint32_t i = 0; i < count; i++) {
		struct str id = profile_str(&f->t->stacks.tables, sums[i].build);
		char *copy = arena_copy(a, id.p, id.len);
		if (!copy)
			return arena_status(a);
		out->builds[out->build_count++] = str_make(copy, id.len);
	}
	return OK;
}

static enum status copy_path(
	const struct found *of, const struct profile *p, struct arena *a, struct query_places *out)
{
	uint32_t mapping = of ? p->locations.v[of->location].mapping : 0;
	struct str path = profile_str(p, p->mappings.v[mapping].filename);
	char *copy = arena_copy(a, path.p, path.len);
	if (!copy)
		return arena_status(a);
	out->path = str_make(copy, path.len);
	return OK;
}

/* The places of one build, or of all (`build` ""), ascending. */
static enum status join(
	const struct finder *f, struct str build, struct arena *a, struct query_places *out)
{
	const struct found *most = NULL;
	if (f->count > 1)
		qsort(f->v, f->count, sizeof(*f->v), compare_places);
	out->v = ARENA_ARRAY(a, struct query_place, f->count);
	if (!out->v)
		return arena_status(a);
	for (uint32_t i = 0; i < f->count; i++) {
		const struct found *from = &f->v[i];
		struct str id = profile_str(&f->t->stacks.tables, from->build);
		if (build.len && !str_eq(id, build))
			continue;
		if (!most || from->total > most->total)
			most = from;
		if (out->count == 0 || out->v[out->count - 1].at != from->at)
			out->v[out->count++] = (struct query_place){ .at = from->at };
		struct query_place *to = &out->v[out->count - 1];
		to->self = query_add(to->self, from->self);
		to->total = query_add(to->total, from->total);
	}
	return copy_path(most, &f->t->stacks.tables, a, out);
}

static enum status places(const struct query_engine *q, const struct query_request *r,
	struct finder *f, struct str build, struct arena *a, struct query_places *out,
	struct err *e)
{
	CLEANUP(arena_deinit) struct arena work;
	CLEANUP(query_tree_deinit) struct query_tree tree = { 0 };
	CLEANUP(query_rows_deinit) struct query_key_rows rows = { 0 };
	struct query_places made = { 0 };
	struct query_shown room;
	struct query_report_request request = query_shown_request(r, &room);
	request.by = f->lines ? QUERY_BY_SOURCE | QUERY_BY_MAPPING : QUERY_BY_LOCATION;
	request.invert = false;
	arena_init(&work, a->limit - a->used);
	f->t = &tree;
	enum status s = query_tree_make(&tree, q, &request, &work, e);
	if (s == OK)
		s = query_rows_make(&rows, &tree, false, false, &work, e);
	if (s == OK)
		s = find_rows(f, &rows, &work, e);
	if (s != OK)
		return s;
	s = list_builds(f, &work, a, &made);
	/* Addresses of different builds cannot be joined: the largest build is shown. */
	if (s == OK && !f->lines && build.len == 0 && made.build_count)
		build = made.builds[0];
	if (s == OK)
		s = join(f, build, a, &made);
	struct str unit = tree.stacks.unit.len ? tree.stacks.unit : STR("count");
	char *copy = s == OK ? arena_copy(a, unit.p, unit.len) : NULL;
	if (!copy)
		return err_set(e, arena_status(a), "%u places in code", f->count);
	made.unit = str_make(copy, unit.len);
	made.total = tree.sum;
	made.pending = tree.stacks.pending;
	*out = made;
	return OK;
}

enum status query_source_places(const struct query_engine *q, const struct query_request *r,
	struct str file, struct str build, struct arena *a, struct query_places *out, struct err *e)
{
	struct finder f = { .lines = true, .file = file };
	return places(q, r, &f, build, a, out, e);
}

enum status query_code_places(const struct query_engine *q, const struct query_request *r,
	struct str function, struct str binary, struct str build, struct arena *a,
	struct query_places *out, struct err *e)
{
	struct finder f = { .function = function, .binary = binary };
	return places(q, r, &f, build, a, out, e);
}
