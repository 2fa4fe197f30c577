/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: a node of the fold stands for a group of places in the store's tree: those whose path of
 * frames from the root is the same. A place is a node of the store's tree and which of its
 * location's frames is meant, since a location with inlined calls is several frames.
 *
 * A group is opened by listing the places below its places, sorting the list by frame, and cutting
 * it into groups. The sum of a group is known from the totals of its places, so what is too small
 * is left closed: a trimmed graph touches only what it shows. Groups wait on a stack, largest on
 * top, with their places stacked in the same order, so nodes come out depth first, children by
 * descending total, and nothing is hashed or visited twice.
 *
 *	groups  [ small | middle | LARGE ]        <- LARGE is opened next
 *	places  [ .. | .... | ........ ]          <- and its places are on top too
 *
 * From the leaves up it is the same with the other direction: the place "below" is the frame
 * outside, its weight is the own value of the stack that began there.
 */
#include "query/internal.h"

#define NODES_MAX (1u << 30)
/* Groups of up to so many places are sorted by insertion. */
#define INSERTION_MAX 24
/* Nodes between two checks whether the client still wants the answer. */
#define STOP_CHECK_NODES 4096

struct place {
	uint32_t frame; /* with QUERY_FRAME_INLINED */
	uint32_t node;  /* of the store's tree */
	uint32_t k;     /* which frame of its location */
	int64_t weight;
};

struct group {
	uint32_t parent; /* node of the fold */
	uint32_t first;  /* places[first .. end of the stack) when it is on top */
	int64_t total;
};

struct folder {
	const struct query_tree *t;
	const struct profile *tables;
	struct query_fold *out;
	uint64_t least;
	bool up;
	VEC(struct place) places;
	VEC(struct group) groups;
	VEC(struct place) below; /* of the group that is being opened */
	VEC(struct group) runs;  /* its children: first is an index of below[] */
	uint64_t held;           /* bytes that were asked for, more than there are */
	struct err *e;
};

void query_fold_deinit(struct query_fold *f)
{
	VEC_FREE(&f->nodes);
	*f = (struct query_fold){ 0 };
}

static void folder_deinit(struct folder *f)
{
	VEC_FREE(&f->places);
	VEC_FREE(&f->groups);
	VEC_FREE(&f->below);
	VEC_FREE(&f->runs);
}

static enum status check_memory(struct folder *f)
{
	size_t bytes = f->out->nodes.cap * sizeof(*f->out->nodes.v) +
		       (f->places.cap + f->below.cap) * sizeof(*f->places.v) +
		       (f->groups.cap + f->runs.cap) * sizeof(*f->groups.v);
	if (bytes <= f->out->memory_max && f->out->nodes.len < NODES_MAX) {
		if (bytes <= f->held)
			return OK;
		/* Each of these grows by half when it grows. */
		f->held = bytes + bytes / 2;
		return query_count(&f->t->plan, f->t->held + f->held, f->e);
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

/* ---- what lies below a place ---- */

static bool push_below(struct folder *f, uint32_t node, uint32_t k, int64_t weight)
{
	uint32_t count = 0;
	const uint32_t *ids = query_tree_frames(f->t, node, &count);
	return VEC_PUSH(&f->below, (struct place){ ids[k], node, k, weight });
}

/* False: no memory. */
static bool list_down(struct folder *f, const struct place *p, int64_t *self)
{
	const struct query_tree *t = f->t;
	uint32_t count = 0;
	if (p->node > 0) {
		(void)query_tree_frames(t, p->node, &count);
		if (p->k + 1 < count)
			return push_below(f, p->node, p->k + 1, p->weight);
	}
	*self = query_add(*self, t->self[p->node]);
	for (uint32_t i = t->first_child[p->node]; i < t->first_child[p->node + 1]; i++) {
		uint32_t child = t->child[i];
		if (t->total[child] != 0 && !push_below(f, child, 0, t->total[child]))
			return false;
	}
	return true;
}

/* The frame outside of this one: the calling one at the same address, or the last of the caller. */
static bool list_up(struct folder *f, const struct place *p, int64_t *self)
{
	uint32_t count = 0, parent = f->t->store.nodes.v[p->node].parent;
	if (p->k > 0)
		return push_below(f, p->node, p->k - 1, p->weight);
	if (parent == 0) {
		*self = query_add(*self, p->weight);
		return true;
	}
	(void)query_tree_frames(f->t, parent, &count);
	return push_below(f, parent, count - 1, p->weight);
}

/* ---- groups ---- */

static uint32_t frame_of(const struct place *p)
{
	return p->frame & ~QUERY_FRAME_INLINED;
}

static int compare_places(const void *pa, const void *pb)
{
	uint32_t a = frame_of(pa), b = frame_of(pb);
	return a < b ? -1 : a > b;
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
		for (; k > 0 && frame_of(&v[k - 1]) > frame_of(&p); k--)
			v[k] = v[k - 1];
		v[k] = p;
	}
}

/* Largest last, equal ones in the order of their texts from last to first. */
static int compare_runs(const void *pa, const void *pb, void *ctx)
{
	const struct group *a = pa, *b = pb;
	const struct folder *f = ctx;
	if (a->total != b->total)
		return a->total < b->total ? -1 : 1;
	const struct query_frame *fa = &f->t->frames.v[frame_of(&f->below.v[a->first])];
	const struct query_frame *fb = &f->t->frames.v[frame_of(&f->below.v[b->first])];
	int by_text = str_cmp(profile_str(f->tables, fb->name), profile_str(f->tables, fa->name));
	if (by_text == 0)
		by_text = str_cmp(
			profile_str(f->tables, fb->binary), profile_str(f->tables, fa->binary));
	return by_text ? by_text : (int)fb->kind - (int)fa->kind;
}

static size_t run_end(const struct folder *f, size_t first)
{
	size_t end = first + 1;
	while (end < f->below.len && frame_of(&f->below.v[end]) == frame_of(&f->below.v[first]))
		end++;
	return end;
}

/* The groups among the places below, those that are large enough. */
static bool cut_runs(struct folder *f, uint32_t parent)
{
	VEC_CLEAR(&f->runs);
	for (size_t first = 0, end; first < f->below.len; first = end) {
		int64_t total = 0;
		end = run_end(f, first);
		for (size_t i = first; i < end; i++)
			total = query_add(total, f->below.v[i].weight);
		if (query_abs(total) >= f->least &&
			!VEC_PUSH(&f->runs, (struct group){ parent, (uint32_t)first, total }))
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

/* The group on top becomes a node, and its children wait on the stack in its place. */
static enum status open_top(struct folder *f)
{
	struct group g = f->groups.v[--f->groups.len];
	uint32_t number = (uint32_t)f->out->nodes.len;
	struct query_fold_node n = { .parent = g.parent, .total = g.total, .inlined = true };
	VEC_CLEAR(&f->below);
	for (size_t i = g.first; i < f->places.len; i++) {
		const struct place *p = &f->places.v[i];
		n.frame = frame_of(p);
		n.inlined = n.inlined && (p->frame & QUERY_FRAME_INLINED);
		if (!(f->up ? list_up(f, p, &n.self) : list_down(f, p, &n.self)))
			return no_memory(f);
	}
	f->places.len = g.first;
	sort_below(f);
	if (!VEC_PUSH(&f->out->nodes, n) || !cut_runs(f, number) || !push_runs(f))
		return no_memory(f);
	return check_memory(f);
}

static enum status open_all(struct folder *f)
{
	enum status s = OK;
	for (size_t n = 0; s == OK && f->groups.len > 0; n++) {
		s = open_top(f);
		if (s == OK && n % STOP_CHECK_NODES == 0)
			s = samples_stopped(&f->t->stop, f->e);
	}
	return s;
}

static struct folder folder_begin(struct query_fold *out, const struct query_tree *t,
	uint64_t least, size_t memory_max, struct err *e)
{
	assert(least > 0 && t->count > 0);
	*out = (struct query_fold){ .memory_max = memory_max };
	return (struct folder){
		.t = t, .tables = &t->store.tables, .out = out, .least = least, .e = e
	};
}

enum status query_fold_down(struct query_fold *out, const struct query_tree *t, uint64_t least,
	size_t memory_max, struct err *e)
{
	CLEANUP(folder_deinit)
	struct folder f = folder_begin(out, t, least, memory_max, e);
	if (!VEC_PUSH(&f.places, (struct place){ .weight = t->total[0] }) ||
		!VEC_PUSH(&f.groups, (struct group){ .total = t->total[0] }))
		return no_memory(&f);
	return open_all(&f);
}

/* The root's places are all stacks; the first frames below it are their leaves. */
enum status query_fold_up(struct query_fold *out, const struct query_tree *t, uint64_t least,
	size_t memory_max, struct err *e)
{
	CLEANUP(folder_deinit)
	struct folder f = folder_begin(out, t, least, memory_max, e);
	struct query_fold_node root = { .self = t->self[0], .total = t->total[0], .inlined = true };
	f.up = true;
	for (uint32_t i = 1; i < t->count; i++) {
		uint32_t count = 0;
		(void)query_tree_frames(t, i, &count);
		if (t->self[i] != 0 && !push_below(&f, i, count - 1, t->self[i]))
			return no_memory(&f);
		enum status stopped = i % STOP_CHECK_NODES ? OK : samples_stopped(&t->stop, e);
		if (stopped != OK)
			return stopped;
	}
	sort_below(&f);
	if (!VEC_PUSH(&out->nodes, root) || !cut_runs(&f, 0) || !push_runs(&f))
		return no_memory(&f);
	enum status s = check_memory(&f);
	return s == OK ? open_all(&f) : s;
}
