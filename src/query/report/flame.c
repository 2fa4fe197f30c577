/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the fold comes in the order of the answer; here it becomes columns, and the texts that occur
 * are numbered anew. Grouped by a label, each of its values is a node below the root, without a
 * kind. The value that is not in the graph is the total less the sum of all own values.
 */
#include "query/fold/fold.h"
#include "query/plan/plan.h"
#include "query/report/report.h"
#include "query/stacks/stacks.h"

#include <math.h>

struct emitter {
	const struct query_tree *t;
	const struct query_fold *fold;
	struct arena *a;
	struct query_flame *out;
	uint32_t *numbers; /* of tables.strings: number in out->strings + 1; 0: not used yet */
	bool chart;
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

/* The text's number in out->strings, which has room for it; false: no memory for the text. */
static bool number_string(struct emitter *m, uint32_t id, uint32_t *out)
{
	if (m->numbers[id] == 0) {
		struct str s = profile_str(&m->t->stacks.tables, id);
		char *copy = arena_copy(m->a, s.p, s.len);
		if (!copy)
			return false;
		m->out->strings[m->out->string_count++] = str_make(copy, s.len);
		m->numbers[id] = m->out->string_count;
	}
	*out = m->numbers[id] - 1;
	return true;
}

/* Writes the node of a value of the label; each value has one. */
static bool write_group(struct emitter *m, uint32_t i, uint32_t group)
{
	struct query_flame *f = m->out;
	struct str name = m->t->stacks.groups[group]; /* of one label */
	char *copy = arena_copy(m->a, name.p, name.len);
	f->name[i] = f->string_count;
	if (copy)
		f->strings[f->string_count++] = str_make(copy, name.len);
	return copy != NULL;
}

static bool write_node(struct emitter *m, uint32_t i)
{
	struct query_flame *f = m->out;
	const struct query_fold_node *n = &m->fold->nodes.v[i];
	f->parent[i] = n->parent;
	f->self[i] = n->self;
	f->total[i] = n->total;
	if (f->time_ns)
		f->time_ns[i] = m->fold->time_ns.v[i];
	if (i == 0)
		return true;
	if (n->line == QUERY_LINE_NONE)
		return write_group(m, i, n->group);
	uint32_t key = m->t->lines.v[n->line].key;
	const struct query_key *k = &m->t->lines.keys[key];
	const struct query_origin *origin = &m->t->lines.origins[key];
	f->line[i] = origin->line;
	f->kind[i] = (uint8_t)k->file;
	f->inlined[i] = n->inlined && !(n->mixed & QUERY_MIXED_INLINED);
	return number_string(m, k->name, &f->name[i]) &&
	       number_string(m, origin->file, &f->file[i]) &&
	       number_string(m, k->mapping, &f->binary[i]);
}

static enum status emit(struct emitter *m, struct arena *work, struct err *e)
{
	struct query_flame *f = m->out;
	size_t count = m->fold->nodes.len, texts = m->t->stacks.tables.strings.len;
	uint32_t empty = 0;
	m->numbers = ARENA_ARRAY(work, uint32_t, texts);
	if (!m->numbers)
		return err_set(e, arena_status(work), "%zu texts", texts);
	f->strings =
		ARENA_ARRAY(m->a, struct str, MIN(count * 3 + 1, texts + m->t->stacks.group_count));
	bool good = f->strings && make_columns(f, count, m->a) && number_string(m, 0, &empty);
	if (good && m->chart)
		good = (f->time_ns = ARENA_ARRAY(m->a, int64_t, count)) != NULL;
	for (uint32_t i = 0; good && i < count; i++)
		good = write_node(m, i);
	f->count = (uint32_t)count;
	f->trimmed = m->fold->trimmed;
	return good ? OK : err_set(e, arena_status(m->a), "flame graph of %zu nodes", count);
}

/* The smallest total that a trim of `share` keeps: never 0, so that a node with total 0 is not
 * drawn. */
static uint64_t threshold(int64_t total, double share)
{
	double least = ceil(share * (double)query_abs(total));
	return least < 1 ? 1 : least >= 0x1p63 ? (uint64_t)1 << 63 : (uint64_t)least;
}

/* The histogram's step of a total: eight steps for each power of two; below 16 a step for each
 * number. */
#define TOTAL_STEPS 496

static unsigned step_of(uint64_t total)
{
	unsigned shift = total < 16 ? 0 : 60 - (unsigned)__builtin_clzll(total);
	return shift * 8 + (unsigned)(total >> shift);
}

static uint64_t step_begin(unsigned step)
{
	return step < 16 ? step : (uint64_t)(8 + step % 8) << (step / 8 - 1);
}

/* The value that at least `wanted` stacks reach, and not many more. */
static uint64_t total_of_largest(const struct query_tree *t, uint64_t wanted)
{
	uint32_t counts[TOTAL_STEPS] = { 0 };
	unsigned step = TOTAL_STEPS;
	for (uint32_t i = 0; i < t->count; i++)
		counts[step_of(query_abs(t->total[i]))]++;
	for (uint64_t n = 0; n < wanted && step > 0;)
		n += counts[--step];
	return step_begin(step);
}

static enum status fold_again(struct query_fold *fold, const struct query_tree *t,
	const struct query_report_request *r, uint64_t least, size_t memory_max, struct err *e)
{
	query_fold_deinit(fold);
	return query_fold_make(fold, t, r, QUERY_TRIM_WHOLE, least, memory_max, e);
}

/* Stacks that differ only by addresses within functions are one node. If too few nodes come of the
 * wanted number of stacks, it is tried again with more stacks. */
static enum status flame_of(const struct query_tree *t, const struct query_report_request *r,
	struct arena *work, struct arena *a, struct query_flame *out, struct err *e)
{
	CLEANUP(query_fold_deinit) struct query_fold fold = { 0 };
	size_t memory_max = work->limit - work->used;
	uint64_t all = threshold(t->sum, r->trim), least = all;
	enum status s = OK;
	for (uint64_t wanted = r->nodes_wanted; s == OK; wanted *= 4) {
		if (wanted)
			least = MAX(all, total_of_largest(t, wanted));
		s = fold_again(&fold, t, r, least, memory_max, e);
		if (least == all || fold.nodes.len >= r->nodes_wanted)
			break;
	}
	while (s == OK && !r->chart && fold.nodes.len > QUERY_FLAME_NODES_MAX)
		s = fold_again(&fold, t, r, least *= 2, memory_max, e);
	if (s != OK)
		return s;
	if (r->chart && fold.nodes.len > QUERY_CHART_NODES_MAX)
		return err_set(e, E_LIMIT,
			"a flame chart of %zu calls, at most %u are drawn: choose a shorter time "
			"range or a narrower selector",
			fold.nodes.len, QUERY_CHART_NODES_MAX);
	struct emitter m = { .t = t, .fold = &fold, .a = a, .out = out, .chart = r->chart };
	return emit(&m, work, e);
}

static enum status list_pending(const struct query_engine *q, const struct query_tree *t,
	struct arena *a, struct query_flame *out, struct err *e)
{
	struct str names[QUERY_PENDING_FILES_MAX];
	size_t count = symbolizer_list_pending(
		q->symbolizer, &t->stacks.tables, names, ARRAY_COUNT(names));
	out->pending_files = ARENA_ARRAY(a, struct str, MAX(count, (size_t)1));
	for (size_t i = 0; out->pending_files && i < count; i++) {
		char *copy = arena_copy(a, names[i].p, names[i].len);
		if (!copy)
			return err_set(e, arena_status(a), "names of executables");
		out->pending_files[out->pending_file_count++] = str_make(copy, names[i].len);
	}
	return out->pending_files ? OK : err_set(e, arena_status(a), "names of executables");
}

struct query_report_request query_shown_request(
	const struct query_request *r, struct query_shown *room)
{
	room->condition = (struct filter_condition){
		.field = FILTER_SHOWN, .op = FILTER_CONTAINS, .text = r->match
	};
	uint32_t count = 0;
	if (r->match.len > 0)
		room->filters[count++] = (struct frame_filter){ .of_stack = true,
			.conditions = &room->condition,
			.condition_count = 1,
			.some_frame = true };
	if (r->frames)
		room->filters[count++] = *r->frames;
	return (struct query_report_request){ .tenant = r->tenant,
		.side = { r->selector, r->from_ns, r->to_ns, r->counts },
		.any_type = true,
		.filters = room->filters,
		.filter_count = count,
		.calls = r->calls,
		.call_count = r->call_count,
		.by = QUERY_BY_SHOWN | (r->by_name ? QUERY_BY_NAME : 0),
		.chart = r->chart,
		.invert = r->invert && !r->chart,
		.trim = r->chart ? 0 : r->trim,
		.nodes_wanted = r->chart ? 0 : r->nodes_wanted,
		.cancel = r->cancel,
		.cancel_ctx = r->cancel_ctx,
		.deadline_ns = r->deadline_ns };
}

enum status query_flame(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct query_flame *out, struct err *e)
{
	if (r->by_count > 1)
		return err_set(e, E_INVALID, "by: a flame graph is by one label");
	CLEANUP(arena_deinit) struct arena work;
	CLEANUP(query_tree_deinit) struct query_tree t = { 0 };
	struct query_shown room;
	struct query_report_request request = query_shown_request(r, &room);
	struct query_flame made = { 0 };
	memcpy(request.labels, r->by, r->by_count * sizeof(*r->by));
	request.label_count = r->by_count;
	request.group_max = r->limit ? r->limit : UINT32_MAX; /* 0: all */
	arena_init(&work, a->limit - a->used);
	enum status s = query_tree_make(&t, q, &request, &work, e);
	if (s == OK)
		s = flame_of(&t, &request, &work, a, &made, e);
	if (s == OK && t.stacks.pending)
		s = list_pending(q, &t, a, &made, e);
	if (s != OK)
		return s;
	struct str unit = t.stacks.unit.len ? t.stacks.unit : STR("count");
	char *text = arena_copy(a, unit.p, unit.len);
	if (!text)
		return err_set(e, arena_status(a), "unit");
	made.unit = str_make(text, unit.len);
	made.sample_count = t.stacks.sample_count;
	if (made.sample_count)
		made.taken = t.stacks.per_sample ? t.sum / t.stacks.per_sample : -1;
	made.pending = t.stacks.pending;
	*out = made;
	return OK;
}
