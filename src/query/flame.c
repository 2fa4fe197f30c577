/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the fold comes in the order of the answer; here it becomes columns, with the texts that are
 * used numbered anew. The part that is not in the graph is its total less the sum of its own
 * values.
 */
#include "query/internal.h"

#include <math.h>

struct emitter {
	const struct query_tree *t;
	const struct query_fold *fold;
	struct arena *a;
	struct query_flame *out;
	uint32_t *numbers; /* of tables.strings: number in out->strings + 1; 0: not used yet */
};

static bool make_columns(struct query_flame *f, size_t count, struct arena *a)
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
		struct str s = profile_str(&m->t->store.tables, id);
		char *copy = arena_copy(m->a, s.p, s.len);
		if (!copy)
			return false;
		m->out->strings[m->out->string_count++] = str_make(copy, s.len);
		m->numbers[id] = m->out->string_count;
	}
	*out = m->numbers[id] - 1;
	return true;
}

static bool write_node(struct emitter *m, uint32_t i)
{
	struct query_flame *f = m->out;
	const struct query_fold_node *n = &m->fold->nodes.v[i];
	int64_t factor = m->t->unit.factor;
	f->parent[i] = n->parent;
	f->self[i] = query_scale(n->self, factor);
	f->total[i] = query_scale(n->total, factor);
	f->trimmed = query_sub(f->trimmed, f->self[i]);
	if (i == 0)
		return true;
	const struct query_frame *frame = &m->t->frames.v[n->frame];
	f->line[i] = frame->line;
	f->kind[i] = frame->kind;
	f->inlined[i] = n->inlined;
	return number_string(m, frame->name, &f->name[i]) &&
	       number_string(m, frame->file, &f->file[i]) &&
	       number_string(m, frame->binary, &f->binary[i]);
}

static enum status emit(struct emitter *m, struct arena *work, struct err *e)
{
	struct query_flame *f = m->out;
	size_t count = m->fold->nodes.len, texts = m->t->store.tables.strings.len;
	uint32_t empty = 0;
	m->numbers = ARENA_ARRAY(work, uint32_t, texts);
	if (!m->numbers)
		return err_set(e, arena_status(work), "%zu texts", texts);
	f->strings = ARENA_ARRAY(m->a, struct str, MIN(count * 3 + 1, texts));
	bool good = f->strings && make_columns(f, count, m->a) && number_string(m, 0, &empty);
	f->trimmed = query_scale(m->t->total[0], m->t->unit.factor);
	for (uint32_t i = 0; good && i < count; i++)
		good = write_node(m, i);
	f->count = (uint32_t)count;
	return good ? OK : err_set(e, arena_status(m->a), "flame graph of %zu nodes", count);
}

/* The smallest total that a trim of `share` keeps: never 0, so that what is nothing is not drawn.
 */
static uint64_t threshold(int64_t total, double share)
{
	double least = ceil(share * (double)query_abs(total));
	return least < 1 ? 1 : least >= 0x1p63 ? (uint64_t)1 << 63 : (uint64_t)least;
}

static enum status flame_of(const struct query_tree *t, const struct query_request *r,
	struct arena *work, struct arena *a, struct query_flame *out, struct err *e)
{
	CLEANUP(query_fold_deinit) struct query_fold fold = { 0 };
	uint64_t least = threshold(t->total[0], r->trim);
	enum status s = OK;
	do {
		query_fold_deinit(&fold);
		size_t memory_max = work->limit - work->used;
		s = r->invert ? query_fold_up(&fold, t, least, memory_max, e)
			      : query_fold_down(&fold, t, least, memory_max, e);
		least *= 2;
	} while (s == OK && fold.nodes.len > QUERY_FLAME_NODES_MAX);
	if (s != OK)
		return s;
	struct emitter m = { .t = t, .fold = &fold, .a = a, .out = out };
	return emit(&m, work, e);
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

static enum status list_pending(const struct query_engine *q, const struct query_tree *t,
	struct arena *a, struct query_flame *out, struct err *e)
{
	struct str names[QUERY_PENDING_FILES_MAX];
	size_t count =
		symbolizer_list_pending(q->symbolizer, &t->store.tables, names, ARRAY_COUNT(names));
	out->pending_files = ARENA_ARRAY(a, struct str, MAX(count, (size_t)1));
	for (size_t i = 0; out->pending_files && i < count; i++) {
		char *copy = arena_copy(a, names[i].p, names[i].len);
		if (!copy)
			return err_set(e, arena_status(a), "names of executables");
		out->pending_files[out->pending_file_count++] = str_make(copy, names[i].len);
	}
	return out->pending_files ? OK : err_set(e, arena_status(a), "names of executables");
}

/* The number of samples that were taken, from values that count them or from the time that each
 * stands for. Other values (bytes, goroutines, contentions) do not tell it. */
static int64_t samples_taken(const struct query_tree *t, int64_t total)
{
	const struct profile *p = &t->store.tables;
	const struct profile_type *type = &t->store.type;
	bool counts = str_eq(profile_str(p, type->sample_type), STR("samples")) &&
		      str_eq(profile_str(p, type->sample_unit), STR("count"));
	bool is_bytes = str_eq(profile_str(p, type->sample_unit), STR("bytes"));
	/* 1: of several periods, by which the values are multiplied already. */
	if (counts && t->store.period != 1)
		return total / t->unit.factor;
	if (!counts && t->store.period > 1 && type->sample_type == type->period_type &&
		type->sample_unit == type->period_unit && !is_bytes)
		return total / t->store.period;
	return -1;
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
	if (s == OK && t.pending)
		s = list_pending(q, &t, a, &made, e);
	if (s == OK) {
		made.unit = str_make(unit, t.unit.name.len);
		made.sample_count = t.has_store ? t.store.sample_count : 0;
		made.taken = t.has_store ? samples_taken(&t, made.total[0]) : 0;
		made.pending = t.pending;
		*out = made;
	}
	query_tree_deinit(&t);
	return s;
}
