/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: from the root down, a stack's place in the tree of calls follows from its parent's place, so
 * each node of the store's tree costs one search among the calls below its parent's for each of its
 * frames, however many stacks run through it. Facts about the frames above a stack (conditions
 * seen, where the sandwich's function is) are passed down the same way.
 *
 * Inverted, a stack is walked from its leaf to its root; the sandwich then begins where the
 * function is, and all stacks below share that walk.
 *
 * Only stacks that the filters keep, and that are something, leave a trace: a node's columns do not
 * depend on what was filtered.
 *
 * A chart: samples in the order of time; a frame goes on as long as the next sample has it too, and
 * comes within a period and a tenth after the end of the last.
 */
#include "query/report.h"

#include <stdlib.h>

#define CANCEL_STEP 8192u

struct builder {
	struct query_calls *c;
	const struct query_report_request *r;
	struct arena *a;
	struct err *e;
	size_t memory_max;
	uint32_t *place;           /* by stack: its call; QUERY_LINE_NONE: none */
	uint64_t *seen;            /* by stack */
	uint8_t *live;             /* by stack: something below it is kept */
	uint32_t *group_call;      /* by group: its node */
	struct children *children; /* by call */
	size_t children_cap;
};

void query_calls_deinit(struct query_calls *c)
{
	query_stacks_deinit(&c->stacks);
	VEC_FREE(&c->v);
	map_deinit(&c->index);
	*c = (struct query_calls){ 0 };
}

static enum status no_room(struct builder *b, enum status s)
{
	return err_set(b->e, s, "%zu calls: choose a shorter time range or a narrower selector",
		b->c->v.len);
}

static bool is_canceled(const struct builder *b, size_t i)
{
	return i % CANCEL_STEP == 0 && b->r->cancel && b->r->cancel(b->r->cancel_ctx);
}

static enum status canceled(struct builder *b)
{
	return err_set(b->e, E_CANCELED, "the caller went away");
}

/* ---- calls ---- */

/* Of a call beside itself: the index, its children, its place among them. */
#define CALL_BYTES 32
/* Children of a call that are looked through; more are looked up in the index. Most calls of deep
 * stacks have one, and that was the call before it: nothing else of memory is touched. */
#define CHILDREN_MAX 4

struct children {
	uint32_t last; /* child; 0: none */
	uint32_t next; /* the child of the same parent that came before this call; 0: none */
};

struct call_key {
	uint32_t parent, key;
};

static bool call_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct query_call *have = &((const struct query_calls *)ctx)->v.v[value];
	const struct call_key *want = key;
	return have->parent == want->parent && have->key == want->key;
}

static enum status push_call(struct builder *b, const struct query_call *call, uint32_t *out)
{
	*out = (uint32_t)b->c->v.len;
	if (b->c->v.len >= SAMPLES_TREE_NODES_MAX ||
		b->c->v.cap * (sizeof(*call) + 16) > b->memory_max)
		return no_room(b, E_LIMIT);
	if (b->c->v.len == b->c->v.cap) {
		enum status s = query_stacks_hold(
			&b->c->stacks, (b->c->v.cap / 2 + 8) * (sizeof(*call) + CALL_BYTES), b->e);
		if (s != OK)
			return s;
	}
	size_t had = b->children_cap;
	if (!VEC_PUSH(&b->c->v, *call) ||
		(had < b->c->v.len && !vec_grow(&b->children, &b->children_cap, b->c->v.len,
					      sizeof(*b->children))))
		return no_room(b, E_NOMEM);
	if (b->children_cap > had)
		memset(b->children + had, 0, (b->children_cap - had) * sizeof(*b->children));
	return OK;
}

/* Adds a frame to the call: fields in which its frames differ become unknown. */
static void mix(struct builder *b, struct query_call *call, const struct query_line *line)
{
	const struct query_stacks *s = &b->c->stacks;
	if (call->inlined != line->inlined)
		call->mixed |= QUERY_MIXED_INLINED;
	if (call->location == line->location && call->line == line->line)
		return;
	struct query_line_texts x = query_line_texts(s, call->location, call->line);
	struct query_line_texts y = query_line_texts(s, line->location, line->line);
	if (x.mapping.p != y.mapping.p || x.has_mapping != y.has_mapping)
		call->mixed |= QUERY_MIXED_MAPPING;
	if (x.build_id.p != y.build_id.p || x.has_mapping != y.has_mapping)
		call->mixed |= QUERY_MIXED_BUILD_ID;
	if (x.address != y.address)
		call->mixed |= QUERY_MIXED_ADDRESS;
	if (x.line != y.line)
		call->mixed |= QUERY_MIXED_LINE;
	if (x.start_line != y.start_line)
		call->mixed |= QUERY_MIXED_START_LINE;
	if (!str_eq(x.system_name, y.system_name))
		call->mixed |= QUERY_MIXED_SYSTEM_NAME;
	if (!str_eq(x.file, y.file))
		call->mixed |= QUERY_MIXED_FILE;
}

static struct query_call call_of(
	const struct builder *b, uint32_t parent, const struct query_line *l)
{
	return (struct query_call){ .parent = parent,
		.key = l->key,
		.location = l->location,
		.line = l->line,
		.group = b->c->v.v[parent].group,
		.inlined = l->inlined };
}

static enum status find_call(
	struct builder *b, uint32_t parent, const struct query_line *line, uint32_t *out)
{
	struct call_key key = { parent, line->key };
	uint64_t hash = 0;
	uint32_t child = b->children[parent].last, count = 0;
	for (; child && b->c->v.v[child].key != line->key; child = b->children[child].next)
		count++;
	bool indexed = !child && count >= CHILDREN_MAX;
	if (indexed) {
		hash = hash_u64((uint64_t)parent << 32 | line->key);
		child = map_find(&b->c->index, hash, call_equal, b->c, &key);
	}
	if (child && child != MAP_NONE) {
		mix(b, &b->c->v.v[child], line);
		*out = child;
		return OK;
	}
	struct query_call call = call_of(b, parent, line);
	enum status s = push_call(b, &call, out);
	if (s != OK)
		return s;
	if (indexed)
		return map_insert(&b->c->index, hash, *out) ? OK : no_room(b, E_NOMEM);
	b->children[*out].next = b->children[parent].last;
	b->children[parent].last = *out;
	return OK;
}

static enum status find_group(struct builder *b, uint32_t group, uint32_t *out)
{
	if (group == 0 || b->group_call[group]) {
		*out = b->group_call[group];
		return OK;
	}
	struct query_call call = { .key = QUERY_LINE_NONE, .group = group };
	enum status s = push_call(b, &call, out);
	b->group_call[group] = *out;
	return s;
}

/* ---- which stacks ---- */

static const struct query_line *lines_of(
	const struct query_calls *c, uint32_t stack, uint32_t *out_count)
{
	const uint32_t *first = &c->lines.first[c->stacks.v.v[stack].location];
	*out_count = c->stacks.v.v[stack].location ? first[1] - first[0] : 0;
	return c->lines.v + first[0];
}

/* seen[] and cut[] of every stack: from the root down. */
static void look_down(struct builder *b)
{
	struct query_calls *c = b->c;
	const struct query_stack *v = c->stacks.v.v;
	for (uint32_t i = 0; i < c->stacks.v.len; i++) {
		uint32_t count, parent = v[i].parent;
		const struct query_line *lines = lines_of(c, i, &count);
		if (i > 0)
			b->seen[i] = b->seen[parent];
		if (c->cut)
			c->cut[i] = i > 0 ? c->cut[parent] : QUERY_LINE_NONE;
		for (uint32_t k = 0; k < count; k++) {
			b->seen[i] |= lines[k].seen;
			/* The outermost of a recursion for the callers, the innermost for the
			 * called. */
			if (lines[k].sandwich && (!b->r->invert || c->cut[i] == QUERY_LINE_NONE))
				c->cut[i] = i;
		}
	}
}

static bool passes(const struct builder *b, uint32_t i)
{
	const struct query_lines *l = &b->c->lines;
	/* A stack of no frames passes Parca's filters. */
	bool no_frames = b->c->stacks.v.v[i].location == 0;
	if (no_frames && l->some_frame)
		return false;
	if (!no_frames && ((b->seen[i] & l->must) != l->must || (b->seen[i] & l->must_not) != 0))
		return false;
	return !b->c->cut || b->c->cut[i] != QUERY_LINE_NONE;
}

static void choose_stacks(struct builder *b)
{
	struct query_calls *c = b->c;
	const struct query_stack *v = c->stacks.v.v;
	for (uint32_t i = 0; i < c->stacks.v.len; i++) {
		bool something = v[i].value != 0 || v[i].diff != 0;
		c->kept[i] = something && passes(b, i);
		if (c->kept[i]) {
			c->total = query_add(c->total, v[i].value);
			c->total_diff = query_add(c->total_diff, v[i].diff);
		} else {
			c->filtered = query_add(c->filtered, v[i].value);
		}
	}
	/* What lies above the sandwich's function leads to no call. */
	bool down = c->cut && !b->r->invert;
	for (uint32_t i = (uint32_t)c->stacks.v.len; i-- > 0;) {
		b->live[i] |= c->kept[i];
		if (!down || c->cut[v[i].parent] == c->cut[i])
			b->live[v[i].parent] |= b->live[i];
	}
}

/* ---- from the root down ---- */

static enum status place_stack(struct builder *b, uint32_t i)
{
	struct query_calls *c = b->c;
	const struct query_stack *stack = &c->stacks.v.v[i];
	uint32_t count, at = b->place[stack->parent];
	const struct query_line *lines = lines_of(c, i, &count);
	enum status s = OK;
	if (stack->location == 0)
		s = find_group(b, stack->group, &at);
	uint32_t k = 0;
	for (uint32_t n = 0; n < count; n++)
		if (lines[n].sandwich)
			k = n;
	if (s == OK && k < count && lines[k].sandwich)
		s = find_group(b, stack->group, &at);
	for (; s == OK && k < count && at != QUERY_LINE_NONE; k++)
		if (lines[k].kept)
			s = find_call(b, at, &lines[k], &at);
	b->place[i] = at;
	return s;
}

static void add_to_call(struct builder *b, uint32_t call, const struct query_stack *stack)
{
	struct query_call *to = &b->c->v.v[call];
	to->self = query_add(to->self, stack->value);
	to->self_diff = query_add(to->self_diff, stack->diff);
}

/* With a sandwich nothing has a place before its function. */
static enum status build_down(struct builder *b)
{
	struct query_calls *c = b->c;
	b->place[0] = c->cut ? QUERY_LINE_NONE : 0;
	for (uint32_t i = 0; i < c->stacks.v.len; i++) {
		if (is_canceled(b, i))
			return canceled(b);
		if (!b->live[i])
			continue;
		enum status s = OK;
		if (i > 0)
			s = place_stack(b, i);
		if (c->cut && c->stacks.v.v[i].location == 0)
			b->place[i] = QUERY_LINE_NONE;
		if (s != OK)
			return s;
		if (c->kept[i])
			add_to_call(b, b->place[i] == QUERY_LINE_NONE ? 0 : b->place[i],
				&c->stacks.v.v[i]);
	}
	return OK;
}

/* ---- from the leaf up ---- */

/* The call of the stack that begins with frame `from` of stack i and goes up to the root. */
static enum status walk_up(struct builder *b, uint32_t i, uint32_t skip, uint32_t *out)
{
	struct query_calls *c = b->c;
	enum status s = find_group(b, c->stacks.v.v[i].group, out);
	for (; s == OK && i > 0; i = c->stacks.v.v[i].parent) {
		uint32_t count;
		const struct query_line *lines = lines_of(c, i, &count);
		count -= MIN(skip, count);
		skip = 0;
		while (s == OK && count-- > 0)
			if (lines[count].kept)
				s = find_call(b, *out, &lines[count], out);
	}
	return s;
}

/* Frames of stack i inside the sandwich's function: those are left out. */
static uint32_t frames_inside(const struct query_calls *c, uint32_t i)
{
	uint32_t count, k = 0;
	const struct query_line *lines = lines_of(c, i, &count);
	while (k < count && !lines[k].sandwich)
		k++;
	return count - k - 1;
}

static enum status build_up(struct builder *b)
{
	struct query_calls *c = b->c;
	for (uint32_t i = 0; i < c->stacks.v.len; i++)
		b->place[i] = QUERY_LINE_NONE;
	for (uint32_t i = 0; i < c->stacks.v.len; i++) {
		uint32_t from = c->cut ? c->cut[i] : i;
		enum status s = OK;
		if (is_canceled(b, i))
			return canceled(b);
		if (!c->kept[i])
			continue;
		if (b->place[from] == QUERY_LINE_NONE)
			s = walk_up(b, from, c->cut ? frames_inside(c, from) : 0, &b->place[from]);
		if (s != OK)
			return s;
		add_to_call(b, b->place[from], &c->stacks.v.v[i]);
	}
	return OK;
}

/* ---- a chart ---- */

static bool goes_on(const struct builder *b, const struct query_call *last,
	const struct query_line *line, int64_t time_ns)
{
	if (last->key != line->key)
		return false;
	int64_t gap = query_sub(time_ns, query_add(last->time_ns, last->total));
	return gap - b->c->stacks.period / 10 <= 0;
}

static enum status chart_frame(struct builder *b, uint32_t *at, const struct query_line *line,
	const struct query_event *event)
{
	struct query_calls *c = b->c;
	uint32_t last = b->children[*at].last, parent = *at;
	if (last && goes_on(b, &c->v.v[last], line, event->time_ns)) {
		*at = last;
		mix(b, &c->v.v[last], line);
	} else {
		struct query_call call = call_of(b, parent, line);
		call.time_ns = event->time_ns;
		enum status s = push_call(b, &call, at);
		if (s != OK)
			return s;
		b->children[parent].last = *at;
	}
	c->v.v[*at].total = query_add(c->v.v[*at].total, event->value);
	return OK;
}

/* The stacks from the root to `i`, which is last. */
static uint32_t path_of(const struct query_calls *c, uint32_t i, uint32_t *path)
{
	uint32_t depth = 0, at = PROFILE_STACK_MAX + 2;
	for (; i > 0 && at > 0; i = c->stacks.v.v[i].parent) {
		path[--at] = i;
		depth++;
	}
	memmove(path, path + at, depth * sizeof(*path));
	return depth;
}

static enum status chart_event(struct builder *b, const struct query_event *event, uint32_t *path)
{
	struct query_calls *c = b->c;
	uint32_t depth = path_of(c, event->stack, path), at = 0;
	enum status s = find_group(b, c->stacks.v.v[event->stack].group, &at);
	bool in = !c->cut;
	for (uint32_t i = 0; s == OK && i < depth; i++) {
		uint32_t count;
		const struct query_line *lines = lines_of(c, path[i], &count);
		for (uint32_t k = 0; s == OK && k < count; k++) {
			in = in || (lines[k].sandwich && c->cut[event->stack] == path[i]);
			if (in && lines[k].kept)
				s = chart_frame(b, &at, &lines[k], event);
		}
	}
	if (s == OK)
		c->v.v[at].self = query_add(c->v.v[at].self, event->value);
	return s;
}

static enum status build_chart(struct builder *b)
{
	struct query_calls *c = b->c;
	uint32_t *path = ARENA_ARRAY(b->a, uint32_t, PROFILE_STACK_MAX + 2);
	enum status s = path ? OK : err_set(b->e, arena_status(b->a), "a flame chart");
	for (size_t i = 0; s == OK && i < c->stacks.events.len; i++) {
		if (is_canceled(b, i))
			return canceled(b);
		if (c->kept[c->stacks.events.v[i].stack])
			s = chart_event(b, &c->stacks.events.v[i], path);
	}
	for (size_t i = 0; s == OK && i < c->v.len; i++)
		c->v.v[i].total = 0;
	return s;
}

/* ---- sums and children ---- */

static void sum_up(struct query_calls *c)
{
	for (size_t i = c->v.len; i-- > 0;) {
		struct query_call *at = &c->v.v[i], *parent = &c->v.v[at->parent];
		at->total = query_add(at->total, at->self);
		at->total_diff = query_add(at->total_diff, at->self_diff);
		if (i == 0)
			continue;
		parent->total = query_add(parent->total, at->total);
		parent->total_diff = query_add(parent->total_diff, at->total_diff);
	}
}

static struct str name_of(const struct query_calls *c, const struct query_call *call)
{
	if (call->key == QUERY_LINE_NONE)
		return STR("");
	return profile_str(&c->stacks.tables, c->lines.keys[call->key].name);
}

static int compare_children(const void *pa, const void *pb, void *ctx)
{
	const struct query_calls *c = ctx;
	const struct query_call *a = &c->v.v[*(const uint32_t *)pa];
	const struct query_call *b = &c->v.v[*(const uint32_t *)pb];
	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	int by_text = str_cmp(name_of(c, a), name_of(c, b));
	return by_text ? by_text : *(const uint32_t *)pa < *(const uint32_t *)pb ? -1 : 1;
}

static enum status list_children(struct builder *b)
{
	struct query_calls *c = b->c;
	uint32_t count = (uint32_t)c->v.len;
	c->first_child = ARENA_ARRAY(b->a, uint32_t, (size_t)count + 2);
	c->child = ARENA_ARRAY(b->a, uint32_t, count);
	if (!c->first_child || !c->child)
		return no_room(b, arena_status(b->a));
	for (uint32_t i = 1; i < count; i++)
		c->first_child[c->v.v[i].parent + 2]++;
	for (uint32_t i = 2; i < count + 2; i++)
		c->first_child[i] += c->first_child[i - 1];
	for (uint32_t i = 1; i < count; i++)
		c->child[c->first_child[c->v.v[i].parent + 1]++] = i;
	for (uint32_t i = 0; i < count && !b->r->chart; i++) {
		uint32_t first = c->first_child[i], n = c->first_child[i + 1] - first;
		if (n > 1)
			qsort_r(c->child + first, n, sizeof(*c->child), compare_children, c);
	}
	return OK;
}

static enum status make_room(struct builder *b)
{
	struct query_calls *c = b->c;
	size_t count = c->stacks.v.len;
	b->place = ARENA_ARRAY(b->a, uint32_t, count);
	b->seen = ARENA_ARRAY(b->a, uint64_t, count);
	b->live = ARENA_ARRAY(b->a, uint8_t, count);
	b->group_call = ARENA_ARRAY(b->a, uint32_t, c->stacks.group_count);
	c->kept = ARENA_ARRAY(b->a, uint8_t, count);
	if (b->r->sandwich.len)
		c->cut = ARENA_ARRAY(b->a, uint32_t, count);
	if (!b->place || !b->seen || !b->live || !b->group_call || !c->kept ||
		(b->r->sandwich.len && !c->cut))
		return err_set(b->e, arena_status(b->a),
			"%zu stacks: choose a shorter time range or a narrower selector", count);
	return OK;
}

static enum status build(struct builder *b)
{
	struct query_call root = { .key = QUERY_LINE_NONE };
	uint32_t number;
	enum status s = make_room(b);
	if (s == OK)
		s = push_call(b, &root, &number);
	if (s != OK)
		return s;
	look_down(b);
	choose_stacks(b);
	s = b->r->chart ? build_chart(b) : b->r->invert ? build_up(b) : build_down(b);
	if (s != OK)
		return s;
	sum_up(b->c);
	return list_children(b);
}

enum status query_calls_make(struct query_calls *c, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e)
{
	*c = (struct query_calls){ 0 };
	enum status s = query_stacks_load(&c->stacks, q, r, a, e);
	if (s != OK)
		return s;
	struct builder b = { .c = c, .r = r, .a = a, .e = e, .memory_max = a->limit };
	s = query_lines_make(&c->stacks, r, a, &c->lines, e);
	if (s == OK)
		s = build(&b);
	free(b.children);
	if (s != OK)
		query_calls_deinit(c);
	return s;
}
