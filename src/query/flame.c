/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: from the fold to columns. A node stays when its total reaches the threshold and its parent
 * stays; each parent's children are sorted by total, then a walk without recursion numbers the
 * nodes depth first and writes the columns. What is not written is total less the sum of the
 * written self values.
 */
#include "query/internal.h"

#include <math.h>

struct emitter {
	const struct profile *tables;
	const struct query_frames *frames;
	const struct query_fold *fold;
	uint64_t least; /* smallest total that stays; at least 1 */
	struct arena *work;
	struct arena *a;
	struct query_flame *out;
	uint32_t *numbers; /* of tables.strings: number in out->strings + 1; 0: not used yet */
	struct err *e;
};

static enum status no_memory(struct emitter *m, const struct arena *a)
{
	return err_set(m->e, arena_status(a), "flame graph of %zu nodes", m->fold->nodes.len);
}

/* keep[i]: node i stays. Returns how many. */
static uint32_t choose(const struct emitter *m, uint8_t *keep)
{
	uint32_t count = 1;
	keep[0] = 1;
	for (size_t i = 1; i < m->fold->nodes.len; i++) {
		const struct query_fold_node *n = &m->fold->nodes.v[i];
		keep[i] = keep[n->parent] && query_abs(n->total) >= m->least;
		count += keep[i];
	}
	return count;
}

static int compare_children(const void *pa, const void *pb, void *ctx)
{
	const struct emitter *m = ctx;
	const struct query_fold_node *a = &m->fold->nodes.v[*(const uint32_t *)pa];
	const struct query_fold_node *b = &m->fold->nodes.v[*(const uint32_t *)pb];
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	const struct query_frame *fa = &m->frames->v[a->frame], *fb = &m->frames->v[b->frame];
	int by_text = str_cmp(profile_str(m->tables, fa->name), profile_str(m->tables, fb->name));
	if (by_text == 0)
		by_text = str_cmp(
			profile_str(m->tables, fa->binary), profile_str(m->tables, fb->binary));
	return by_text ? by_text : (int)fa->kind - (int)fb->kind;
}

static bool make_columns(struct query_flame *f, uint32_t count, struct arena *a)
{
	f->parent = ARENA_ARRAY(a, uint32_t, count);
	f->name = ARENA_ARRAY(a, uint32_t, count);
	f->file = ARENA_ARRAY(a, uint32_t, count);
	f->line = ARENA_ARRAY(a, uint32_t, count);
	f->binary = ARENA_ARRAY(a, uint32_t, count);
	f->kind = ARENA_ARRAY(a, uint8_t, count);
	f->inlined = ARENA_ARRAY(a, uint8_t, count);
	f->self = ARENA_ARRAY(a, int64_t, count);
	f->total = ARENA_ARRAY(a, int64_t, count);
	return f->parent && f->name && f->file && f->line && f->binary && f->kind && f->inlined &&
	       f->self && f->total;
}

/* Number in out->strings, whose room is there; false: no memory for the text. */
static bool number_string(struct emitter *m, uint32_t id, uint32_t *out)
{
	if (m->numbers[id] == 0) {
		struct str s = profile_str(m->tables, id);
		char *copy = arena_copy(m->a, s.p, s.len);
		if (!copy)
			return false;
		m->out->strings[m->out->string_count++] = str_make(copy, s.len);
		m->numbers[id] = m->out->string_count;
	}
	*out = m->numbers[id] - 1;
	return true;
}

static bool write_node(struct emitter *m, uint32_t node, uint32_t parent)
{
	struct query_flame *f = m->out;
	const struct query_fold_node *n = &m->fold->nodes.v[node];
	uint32_t at = f->count++;
	f->parent[at] = parent;
	f->self[at] = n->self;
	f->total[at] = n->total;
	f->trimmed = query_sub(f->trimmed, n->self);
	if (node == 0)
		return true;
	const struct query_frame *frame = &m->frames->v[n->frame];
	f->line[at] = frame->line;
	f->kind[at] = frame->kind;
	f->inlined[at] = n->inlined;
	return number_string(m, frame->name, &f->name[at]) &&
	       number_string(m, frame->file, &f->file[at]) &&
	       number_string(m, frame->binary, &f->binary[at]);
}

/* Depth first with a stack of (node, number of its parent); children pushed last to first. */
struct visit {
	uint32_t node;
	uint32_t parent;
};

static enum status walk(struct emitter *m, uint32_t count, const uint8_t *keep)
{
	uint32_t *first = NULL, *list = NULL;
	enum status s = query_fold_children(m->fold, m->work, &first, &list, m->e);
	struct visit *stack = ARENA_ARRAY(m->work, struct visit, count);
	if (s != OK || !stack)
		return s != OK ? s : no_memory(m, m->work);
	size_t depth = 0;
	stack[depth++] = (struct visit){ 0, 0 };
	while (depth > 0) {
		struct visit v = stack[--depth];
		uint32_t number = m->out->count;
		if (!write_node(m, v.node, v.parent))
			return no_memory(m, m->a);
		uint32_t *children = list + first[v.node];
		size_t kept = 0;
		for (uint32_t i = 0; i < first[v.node + 1] - first[v.node]; i++)
			if (keep[children[i]])
				children[kept++] = children[i];
		qsort_r(children, kept, sizeof(*children), compare_children, m);
		while (kept > 0)
			stack[depth++] = (struct visit){ children[--kept], number };
	}
	assert(m->out->count == count);
	return OK;
}

static enum status emit(struct emitter *m)
{
	uint8_t *keep = arena_alloc(m->work, m->fold->nodes.len, 1);
	m->numbers = ARENA_ARRAY(m->work, uint32_t, m->tables->strings.len);
	if (!keep || !m->numbers)
		return no_memory(m, m->work);
	uint32_t count = choose(m, keep);
	while (count > QUERY_FLAME_NODES_MAX) {
		m->least *= 2;
		count = choose(m, keep);
	}
	uint64_t strings = MIN((uint64_t)count * 3 + 1, (uint64_t)m->tables->strings.len);
	m->out->strings = ARENA_ARRAY(m->a, struct str, strings);
	uint32_t empty = 0;
	if (!m->out->strings || !make_columns(m->out, count, m->a) || !number_string(m, 0, &empty))
		return no_memory(m, m->a);
	return walk(m, count, keep);
}

/* The smallest total that a trim of `share` keeps: never 0, so that what is nothing is not drawn.
 */
static uint64_t threshold(int64_t total, double share)
{
	double least = ceil(share * (double)query_abs(total));
	return least < 1 ? 1 : least >= 0x1p63 ? (uint64_t)1 << 63 : (uint64_t)least;
}

static enum status flame_of(struct query_tree *t, const struct query_request *r, struct arena *work,
	struct arena *a, struct query_flame *out, struct err *e)
{
	CLEANUP(query_fold_deinit) struct query_fold inverted = { 0 };
	struct emitter m = {
		.tables = &t->store.tables,
		.frames = &t->frames,
		.fold = &t->fold,
		.least = threshold(t->total, r->trim),
		.work = work,
		.a = a,
		.out = out,
		.e = e,
	};
	if (r->invert) {
		enum status s = query_fold_invert(
			&inverted, &t->fold, m.least, work->limit - work->used, e);
		if (s != OK)
			return s;
		m.fold = &inverted;
	}
	out->trimmed = t->total;
	return emit(&m);
}

static enum status empty_flame(struct arena *a, struct query_flame *out, struct err *e)
{
	out->strings = ARENA_NEW(a, struct str);
	if (!out->strings || !make_columns(out, 1, a))
		return err_set(e, arena_status(a), "empty flame graph");
	out->strings[0] = STR("");
	out->string_count = out->count = 1;
	return OK;
}

enum status query_flame(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct query_flame *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena work;
	arena_init(&work, a->limit - a->used);
	struct query_tree t;
	enum status s = query_tree_make(&t, q, r, &work, e);
	if (s != OK)
		return s;
	struct query_flame made = { .unit = t.unit.name };
	if (t.has_store)
		s = flame_of(&t, r, &work, a, &made, e);
	else
		s = empty_flame(a, &made, e);
	char *unit = arena_copy(a, t.unit.name.p, t.unit.name.len);
	if (s == OK && !unit)
		s = err_set(e, arena_status(a), "unit");
	if (s == OK) {
		made.unit = str_make(unit, t.unit.name.len);
		made.sample_count = t.has_store ? t.store.sample_count : 0;
		made.pending = t.pending;
		*out = made;
	}
	query_tree_deinit(&t);
	return s;
}
