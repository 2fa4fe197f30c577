/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: a node of the fold stands for a group of places in the tree that have the same path of keys
 * from the root. A place is a stack and one frame of its location, since a location with inlined
 * calls has several frames.
 *
 * A group is opened by listing the places below its places, sorting the list by key, and cutting it
 * into groups. The sum of a group is known from the totals of its places, so a group that is too
 * small is not opened: a trimmed graph costs only as much as it shows. Groups wait on a stack,
 * largest on top, with their places stacked in the same order, so nodes come out depth first,
 * children by descending total, and nothing is hashed or visited twice.
 *
 * 	groups  [ small | middle | LARGE ]        <- LARGE is opened next
 * 	places  [ .. | .... | ........ ]          <- and its places are on top too
 *
 * An inverted fold, from the leaves up, works the same way: the place "below" is the caller's
 * frame, and its weight is the own value of the stack at whose leaf the path began.
 *
 * For a frame that filters leave out, the places below it are listed instead. A group of labels is
 * a place of its own. A sandwich begins at each stack that it cuts, and goes on down to the next
 * cut.
 */
#include "query/fold/fold.h"
#include "query/plan/plan.h"
#include "query/stacks/stacks.h"

#define NODES_MAX (1u << 30)
/* Lists of up to this many places are sorted by insertion. */
#define INSERTION_MAX 24
/* Nodes between two checks whether the client still wants the answer. */
#define STOP_CHECK_NODES 4096
/* Bit that marks the key of a group of labels; the other bits are the group's number. */
#define KEY_GROUP 0x80000000u

struct place {
	uint32_t key;
	uint32_t line;   /* lines.v; QUERY_LINE_NONE: of a group of labels */
	uint32_t stack;  /* where the frame is */
	uint32_t origin; /* the stack whose value it has: downwards `stack`, upwards the leaf */
};

struct group {
	uint32_t parent; /* node of the fold */
	uint32_t first;  /* its first place; on top of the stack it has places[first ..] */
	int64_t total, total_diff;
};

struct folder {
	const struct query_tree *t;
	const struct query_report_request *r;
	struct query_fold *out;
	enum query_trim trim;
	uint64_t least;
	bool up;
	int64_t *at_cut, *at_cut_diff; /* upwards from a sandwich, by stack: the sum of the stacks
					  that are cut at it */
	VEC(struct place) places;
	VEC(struct group) groups;
	VEC(struct place) below; /* of the group that is being opened */
	VEC(struct place)
	hidden; /* places that filters left out, until those below them are listed */
	VEC(struct group) runs; /* its children: first is an index of below[] */
	uint64_t held;          /* bytes reserved from the query's memory, at least those in use */
	int64_t self;           /* of the group that is being opened */
	struct err *e;
};

void query_fold_deinit(struct query_fold *f)
{
	VEC_FREE(&f->nodes);
	VEC_FREE(&f->total_diff);
	VEC_FREE(&f->time_ns);
	*f = (struct query_fold){ 0 };
}

static void folder_deinit(struct folder *f)
{
	free(f->at_cut);
	free(f->at_cut_diff);
	VEC_FREE(&f->places);
	VEC_FREE(&f->groups);
	VEC_FREE(&f->below);
	VEC_FREE(&f->hidden);
	VEC_FREE(&f->runs);
}

static enum status check_memory(struct folder *f)
{
	size_t bytes = f->out->nodes.len * sizeof(*f->out->nodes.v) +
		       f->out->total_diff.cap * sizeof(*f->out->total_diff.v) +
		       (f->places.cap + f->below.cap + f->hidden.cap) * sizeof(*f->places.v) +
		       (f->groups.cap + f->runs.cap) * sizeof(*f->groups.v);
	if (bytes <= f->out->memory_max && f->out->nodes.len < NODES_MAX) {
		if (bytes <= f->held)
			return OK;
		/* Reserve half as much again, as each array grows by half. */
		f->held = bytes + bytes / 2;
		return query_count(&f->t->stacks.plan, f->t->stacks.held + f->held, f->e);
	}
	return err_set(f->e, E_LIMIT,
		"the flame graph has more than %zu nodes and would pass %zu MiB: choose a shorter "
		"time range or a narrower selector",
		f->out->nodes.len, f->out->memory_max >> 20);
}

static enum status no_memory(const struct folder *f)
{
	return err_set(f->e, E_NOMEM, "a flame graph of %zu nodes", f->out->nodes.len);
}

/* ---- weights ---- */

static int64_t weight(const struct folder *f, const struct place *p)
{
	if (!f->up)
		return f->t->total[p->origin];
	return f->at_cut ? f->at_cut[p->origin] : f->t->stacks.v.v[p->origin].self;
}

static int64_t weight_diff(const struct folder *f, const struct place *p)
{
	if (!f->t->total_diff)
		return 0;
	if (!f->up)
		return f->t->total_diff[p->origin];
	return f->at_cut ? f->at_cut_diff[p->origin] : f->t->stacks.diff.v[p->origin];
}

/* ---- what lies below a place ---- */

static bool push_frame(struct folder *f, uint32_t stack, uint32_t line, uint32_t origin)
{
	const struct query_line *l = &f->t->lines.v[line];
	struct place p = { l->key, line, stack, origin };
	return l->kept ? VEC_PUSH(&f->below, p) : VEC_PUSH(&f->hidden, p);
}

static bool push_group(struct folder *f, uint32_t group, uint32_t stack)
{
	struct place p = { KEY_GROUP | group, QUERY_LINE_NONE, stack, stack };
	return VEC_PUSH(&f->below, p);
}

/* The first place below the group, for a stack at which the fold begins. */
static bool push_begin(struct folder *f, uint32_t stack)
{
	const struct query_tree *t = f->t;
	uint32_t end, first = query_tree_lines(t, stack, &end);
	if (t->cut)
		return push_frame(f, stack, query_tree_cut_line(t, first, end, f->up), stack);
	return push_frame(f, stack, end - 1, stack);
}

/* False: no memory. */
static bool list_down(struct folder *f, const struct place *p)
{
	const struct query_tree *t = f->t;
	uint32_t end, first = query_tree_lines(t, p->stack, &end);
	if (p->line == QUERY_LINE_NONE && first < end)
		return push_begin(f, p->stack);
	if (p->line != QUERY_LINE_NONE && p->line + 1 < end)
		return push_frame(f, p->stack, p->line + 1, p->origin);
	f->self = query_add(f->self, t->stacks.v.v[p->stack].self);
	for (uint32_t i = t->first_child[p->stack]; i < t->first_child[p->stack + 1]; i++) {
		uint32_t child = t->child[i];
		/* Needed soon, and rarely in a cache: the child's frame is fetched meanwhile. */
		__builtin_prefetch(&t->total[child]);
		__builtin_prefetch(&t->first_child[child]);
		if (t->cut && t->cut[child] != t->cut[p->stack])
			continue;
		first = query_tree_lines(t, child, &end);
		if (first < end ? !push_frame(f, child, first, child)
				: !push_group(f, query_stack_group(&t->stacks, child), child))
			return false;
	}
	return true;
}

/* Lists the caller of this frame: the frame before it at the same address, or the last one of the
 * parent's location. */
static bool list_up(struct folder *f, const struct place *p)
{
	const struct query_tree *t = f->t;
	uint32_t end, first = query_tree_lines(t, p->stack, &end);
	if (p->line == QUERY_LINE_NONE && first < end)
		return push_begin(f, p->stack);
	if (p->line != QUERY_LINE_NONE && p->line > first)
		return push_frame(f, p->stack, p->line - 1, p->origin);
	uint32_t parent = t->stacks.v.v[p->stack].parent;
	first = query_tree_lines(t, parent, &end);
	if (p->line != QUERY_LINE_NONE && first < end)
		return push_frame(f, parent, end - 1, p->origin);
	f->self = query_add(f->self, weight(f, p));
	return true;
}

static bool list_below(struct folder *f, const struct place *p)
{
	return f->up ? list_up(f, p) : list_down(f, p);
}

static bool list_hidden(struct folder *f)
{
	while (f->hidden.len > 0) {
		struct place p = f->hidden.v[--f->hidden.len];
		if (!list_below(f, &p))
			return false;
	}
	return true;
}

/* ---- groups ---- */

/* The order of a fold: by key, then by first occurrence. */
static int compare_places(const void *pa, const void *pb)
{
	const struct place *a = pa, *b = pb;
	if (a->key != b->key)
		return a->key < b->key ? -1 : 1;
	if (a->origin != b->origin)
		return a->origin < b->origin ? -1 : 1;
	return a->line < b->line ? -1 : a->line > b->line;
}

static void sort_below(struct folder *f)
{
	struct place *v = f->below.v;
	if (f->below.len > INSERTION_MAX) {
		qsort(v, f->below.len, sizeof(*v), compare_places);
		return;
	}
	for (size_t i = 1; i < f->below.len; i++) {
		struct place p = v[i];
		size_t k = i;
		for (; k > 0 && compare_places(&v[k - 1], &p) > 0; k--)
			v[k] = v[k - 1];
		v[k] = p;
	}
}

static const struct query_key *key_of(const struct folder *f, const struct group *g)
{
	static const struct query_key none;
	uint32_t key = f->below.v[g->first].key;
	return key & KEY_GROUP ? &none : &f->t->lines.keys[key];
}

/* Largest last, groups of equal total in descending order of their texts: they are opened from the
 * end. */
static int compare_runs(const void *pa, const void *pb, void *ctx)
{
	const struct group *a = pa, *b = pb;
	const struct folder *f = ctx;
	const struct profile *p = &f->t->stacks.tables;
	if (a->total != b->total)
		return a->total < b->total ? -1 : 1;
	const struct query_key *x = key_of(f, a), *y = key_of(f, b);
	int by_text = str_cmp(profile_str(p, y->name), profile_str(p, x->name));
	if (by_text == 0 && (f->r->by & QUERY_BY_SHOWN))
		by_text = str_cmp(profile_str(p, y->mapping), profile_str(p, x->mapping));
	if (by_text == 0 && (f->r->by & QUERY_BY_SHOWN))
		by_text = (int)y->file - (int)x->file;
	if (by_text)
		return by_text;
	const struct place *first = &f->below.v[a->first], *other = &f->below.v[b->first];
	if (first->origin != other->origin)
		return first->origin < other->origin ? 1 : -1;
	return first->line < other->line ? 1 : first->line > other->line ? -1 : 0;
}

static size_t run_end(const struct folder *f, size_t first)
{
	size_t end = first + 1;
	while (end < f->below.len && f->below.v[end].key == f->below.v[first].key)
		end++;
	return end;
}

static bool is_kept(struct folder *f, const struct group *g)
{
	int64_t whole = f->out->nodes.v[g->parent].total;
	if (query_trim_keeps(f->trim, f->r->trim, f->least, whole, g->total, g->total_diff))
		return true;
	f->out->trimmed = query_add(f->out->trimmed, g->total);
	return false;
}

/* Cuts the places below into groups; keeps those that are large enough. */
static bool cut_runs(struct folder *f, uint32_t parent)
{
	VEC_CLEAR(&f->runs);
	for (size_t first = 0, end; first < f->below.len; first = end) {
		struct group g = { .parent = parent, .first = (uint32_t)first };
		end = run_end(f, first);
		for (size_t i = first; i < end; i++) {
			g.total = query_add(g.total, weight(f, &f->below.v[i]));
			g.total_diff = query_add(g.total_diff, weight_diff(f, &f->below.v[i]));
		}
		if (is_kept(f, &g) && !VEC_PUSH(&f->runs, g))
			return false;
	}
	if (f->runs.len > 1)
		qsort_r(f->runs.v, f->runs.len, sizeof(*f->runs.v), compare_runs, f);
	return true;
}

static bool push_runs(struct folder *f)
{
	for (size_t i = 0; i < f->runs.len; i++) {
		struct group g = f->runs.v[i];
		size_t first = g.first, end = run_end(f, first);
		g.first = (uint32_t)f->places.len;
		if (!VEC_PUSH(&f->groups, g) ||
			!VEC_RESERVE(&f->places, f->places.len + end - first))
			return false;
		memcpy(f->places.v + f->places.len, f->below.v + first,
			(end - first) * sizeof(*f->places.v));
		f->places.len += end - first;
	}
	return true;
}

/* Pushes the places below onto the stack as groups, whose parent is node `number`. */
static enum status close_below(struct folder *f, uint32_t number)
{
	if (!list_hidden(f))
		return no_memory(f);
	f->out->nodes.v[number].self = f->self;
	sort_below(f);
	return cut_runs(f, number) && push_runs(f) ? check_memory(f) : no_memory(f);
}

/* Fill the node with what its frames have in common. */
static void describe(struct folder *f, struct query_fold_node *n, size_t first, size_t end)
{
	const struct query_tree *t = f->t;
	const struct place *p = &f->places.v[first];
	n->group = query_stack_group(&t->stacks, p->stack);
	n->line = p->line;
	if (p->line == QUERY_LINE_NONE)
		return;
	n->inlined = t->lines.v[p->line].inlined;
	for (size_t i = first + 1; i < end; i++) {
		const struct query_line *other = &t->lines.v[f->places.v[i].line];
		if (f->places.v[i].line != p->line)
			n->mixed |=
				query_lines_differ(&t->stacks.tables, &t->lines.v[p->line], other);
	}
}

static bool push_node(struct folder *f, const struct query_fold_node *n, int64_t total_diff)
{
	return VEC_PUSH(&f->out->nodes, *n) &&
	       (!f->t->total_diff || VEC_PUSH(&f->out->total_diff, total_diff));
}

/* The group becomes a node, and its places give way to the list of those below. */
static bool open_group(struct folder *f, const struct group *g)
{
	struct query_fold_node n = { .parent = g->parent, .total = g->total };
	VEC_CLEAR(&f->below);
	f->self = 0;
	describe(f, &n, g->first, f->places.len);
	for (size_t i = g->first; i < f->places.len; i++)
		if (!list_below(f, &f->places.v[i]))
			return false;
	f->places.len = g->first;
	return push_node(f, &n, g->total_diff);
}

/* In a whole graph most nodes have one place below: its group takes the room of the one that was
 * just opened. False: there are others, or none. */
static bool next_in_chain(struct folder *f, struct group *g)
{
	if (f->below.len != 1 || f->hidden.len > 0)
		return false;
	const struct place *p = f->below.v;
	g->parent = (uint32_t)f->out->nodes.len - 1;
	g->total = weight(f, p);
	g->total_diff = weight_diff(f, p);
	f->out->nodes.v[g->parent].self = f->self;
	if (!is_kept(f, g)) {
		VEC_CLEAR(&f->below);
		return false;
	}
	f->places.v[f->places.len++] = *p;
	return true;
}

/* The group on top becomes a node, and its children wait on the stack in its place. */
static enum status open_top(struct folder *f)
{
	struct group g = f->groups.v[--f->groups.len];
	do {
		if (!open_group(f, &g))
			return no_memory(f);
	} while (next_in_chain(f, &g));
	return close_below(f, (uint32_t)f->out->nodes.len - 1);
}

static enum status open_all(struct folder *f)
{
	enum status s = OK;
	for (size_t check_at = 0; s == OK && f->groups.len > 0;) {
		s = open_top(f);
		if (s != OK || f->out->nodes.len < check_at)
			continue;
		check_at = f->out->nodes.len + STOP_CHECK_NODES;
		s = samples_stopped(&f->t->stacks.plan.store, f->e);
	}
	return s;
}

/* ---- the root ---- */

/* Upwards from a sandwich, the weight of a stack is the sum of all stacks that are cut at it. */
static bool sum_at_cuts(struct folder *f)
{
	const struct query_tree *t = f->t;
	f->at_cut = calloc(t->count, sizeof(*f->at_cut));
	f->at_cut_diff = calloc(t->count, sizeof(*f->at_cut_diff));
	for (uint32_t i = 0; f->at_cut && f->at_cut_diff && i < t->count; i++) {
		uint32_t at = t->cut[i];
		if (at == QUERY_LINE_NONE)
			continue;
		f->at_cut[at] = query_add(f->at_cut[at], t->stacks.v.v[i].self);
		f->at_cut_diff[at] = query_add(f->at_cut_diff[at], query_stack_diff(&t->stacks, i));
	}
	return f->at_cut && f->at_cut_diff;
}

static bool begins(const struct folder *f, uint32_t i)
{
	const struct query_tree *t = f->t;
	if (t->cut)
		return t->live[i] && t->cut[i] == i;
	return t->stacks.v.v[i].self != 0 || query_stack_diff(&t->stacks, i) != 0;
}

/* Lists the stacks at which the fold begins: those that the sandwich cuts, or upwards all leaves.
 */
static enum status list_begins(struct folder *f)
{
	const struct query_tree *t = f->t;
	for (uint32_t i = 0; i < t->count; i++) {
		uint32_t group = query_stack_group(&t->stacks, i);
		enum status stopped =
			i % STOP_CHECK_NODES ? OK : samples_stopped(&t->stacks.plan.store, f->e);
		if (stopped != OK)
			return stopped;
		if (!begins(f, i))
			continue;
		if (group ? !push_group(f, group, i)
			  : t->stacks.v.v[i].location && !push_begin(f, i))
			return no_memory(f);
		if (!group && !t->stacks.v.v[i].location)
			f->self = query_add(f->self, t->stacks.v.v[i].self);
	}
	return OK;
}

/* Most stacks are a node of a graph that is hardly trimmed. Memory that is not used costs nothing,
 * but an array of this size that grows is moved page by page. */
static void expect_nodes(struct folder *f)
{
	size_t most = (size_t)f->t->count + f->t->count / 4;
	if (f->trim != QUERY_TRIM_WHOLE || f->least <= 1)
		(void)!VEC_RESERVE(&f->out->nodes, MIN(most, (size_t)QUERY_FLAME_NODES_MAX));
}

static enum status fold(struct folder *f)
{
	const struct query_tree *t = f->t;
	struct query_fold_node root = { .line = QUERY_LINE_NONE, .total = t->sum };
	struct place whole = { .line = QUERY_LINE_NONE };
	expect_nodes(f);
	enum status s = push_node(f, &root, t->sum_diff) ? OK : no_memory(f);
	if (s == OK && f->up && t->cut && !sum_at_cuts(f))
		s = no_memory(f);
	if (s == OK && (f->up || t->cut))
		s = list_begins(f);
	else if (s == OK && !list_down(f, &whole))
		s = no_memory(f);
	if (s == OK)
		s = close_below(f, 0);
	return s == OK ? open_all(f) : s;
}

enum status query_fold_make(struct query_fold *out, const struct query_tree *t,
	const struct query_report_request *r, enum query_trim trim, uint64_t least,
	size_t memory_max, struct err *e)
{
	assert(t->count > 0 && (trim != QUERY_TRIM_WHOLE || least > 0));
	*out = (struct query_fold){ .memory_max = memory_max };
	if (r->chart)
		return query_chart_make(out, t, trim, r->trim, e);
	CLEANUP(folder_deinit)
	struct folder f = {
		.t = t, .r = r, .out = out, .trim = trim, .least = least, .up = r->invert, .e = e
	};
	return fold(&f);
}
