/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: without labels and times the store's own tree of sums is taken as it is, not copied. With
 * labels each group gets a copy of what it has of the tree: its sums are taken group by group, and
 * from the node of each upwards, until one that the group has already. With times samples come as a
 * list of stacks, and the tree is made here. Of a comparison the base's tree
 * is grafted onto the other's: a stack of both is one node, its value that of the compared side,
 * its difference the compared less the base.
 *
 * Relative comparison: the side with the smaller total is scaled up, sums cut to whole numbers
 * stack by stack, as Parca does it.
 */
#include "query/report.h"

#include "profile/translate.h"

#include <stdlib.h>

void query_stacks_deinit(struct query_stacks *s)
{
	if (s->has_tables)
		profile_deinit(&s->tables);
	VEC_FREE(&s->v);
	VEC_FREE(&s->diff);
	VEC_FREE(&s->group);
	VEC_FREE(&s->events);
	map_deinit(&s->index);
	query_plan_close(&s->plan);
	*s = (struct query_stacks){ 0 };
}

enum status query_stacks_hold(struct query_stacks *s, uint64_t bytes, struct err *e)
{
	enum status st = query_count(&s->plan, s->held + bytes, e);
	if (st == OK)
		s->held += bytes;
	return st;
}

/* Of an index of stacks, each. */
#define INDEX_BYTES 16

struct loader {
	struct query_stacks *s;
	const struct query_engine *q;
	const struct query_report_request *r;
	struct arena *a;
	struct err *e;
	size_t memory_max;
};

/* ---- the tree ---- */

struct stack_key {
	uint32_t parent, location, group;
};

static bool stack_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct query_stacks *s = ctx;
	const struct samples_node *have = &s->v.v[value];
	const struct stack_key *want = key;
	return have->parent == want->parent && have->location == want->location &&
	       query_stack_group(s, value) == want->group;
}

static uint64_t stack_hash(const struct stack_key *k)
{
	return hash_u64(((uint64_t)k->parent << 32 | k->location) ^ (uint64_t)k->group << 52);
}

static enum status no_room(struct loader *l, enum status s)
{
	return err_set(l->e, s, "%zu stacks: choose a shorter time range or a narrower selector",
		l->s->v.len);
}

/* Bytes of one stack in all of the arrays, with its index. */
static uint64_t stack_bytes(const struct loader *l)
{
	return sizeof(struct samples_node) + INDEX_BYTES + (l->r->diff ? sizeof(int64_t) : 0) +
	       (l->r->label_count ? sizeof(uint32_t) : 0);
}

static enum status push_stack(struct loader *l, const struct stack_key *k, uint32_t *out)
{
	struct query_stacks *s = l->s;
	struct samples_node stack = { .parent = k->parent, .location = k->location };
	*out = (uint32_t)s->v.len;
	if (s->v.len >= SAMPLES_TREE_NODES_MAX || s->v.cap * sizeof(stack) > l->memory_max)
		return no_room(l, E_LIMIT);
	if (s->v.len == s->v.cap) {
		/* Half as many more. */
		enum status st = query_stacks_hold(s, (s->v.cap / 2 + 8) * stack_bytes(l), l->e);
		if (st != OK)
			return st;
	}
	if (!VEC_PUSH(&s->v, stack) || (l->r->diff && !VEC_PUSH(&s->diff, 0)) ||
		(l->r->label_count && !VEC_PUSH(&s->group, k->group)))
		return no_room(l, E_NOMEM);
	return OK;
}

static enum status find_stack(struct loader *l, const struct stack_key *k, uint32_t *out)
{
	uint64_t hash = stack_hash(k);
	*out = map_find(&l->s->index, hash, stack_equal, l->s, k);
	if (*out != MAP_NONE)
		return OK;
	enum status s = push_stack(l, k, out);
	if (s == OK && !map_insert(&l->s->index, hash, *out))
		s = no_room(l, E_NOMEM);
	return s;
}

static enum status begin_stacks(struct loader *l)
{
	uint32_t root;
	return push_stack(l, &(struct stack_key){ 0, 0, 0 }, &root);
}

/* ---- names ---- */

static enum status resolve(struct loader *l)
{
	struct query_stacks *s = l->s;
	struct symbolizer_beside beside = query_beside(&s->plan);
	if (!l->q->symbolizer)
		return OK;
	return symbolizer_resolve(
		l->q->symbolizer, &s->tables, QUERY_WAIT_MS, &beside, &s->pending, l->e);
}

/* ---- one side ---- */

struct side {
	struct query_plan *plan; /* that of the report for the shown side, else: */
	struct query_plan own;
	struct samples_tree tree;
	bool has_tree;
	int64_t factor;
};

static void side_deinit(struct side *s)
{
	if (s->has_tree)
		samples_tree_deinit(&s->tree);
	query_plan_close(&s->own);
}

static enum status open_side(struct loader *l, const struct query_side *of, struct side *out)
{
	const struct query_report_request *r = l->r;
	const struct query_request request = { .tenant = r->tenant,
		.selector = of->selector,
		.from_ns = of->from_ns,
		.to_ns = of->to_ns,
		.deadline_ns = r->deadline_ns,
		.trim = r->trim,
		.cancel = r->cancel,
		.cancel_ctx = r->cancel_ctx };
	struct query_plan *plan = of == &r->side ? &l->s->plan : &out->own;
	enum status s = query_plan_open(l->q, &request, r->any_type, l->a, plan, l->e);
	if (s != OK)
		return s;
	out->plan = plan;
	if (!plan->selector.has_type && !plan->empty)
		return err_set(l->e, E_INVALID, "query must contain a profile-type selection");
	if (of->single)
		plan->store.times_period = false;
	plan->store.durations = r->durations;
	return OK;
}

static struct str keep_text(struct loader *l, struct str text)
{
	char *copy = arena_copy(l->a, text.p, text.len);
	return str_make(copy ? copy : "", copy ? text.len : 0);
}

/* Values that count samples, or the time that each stands for, tell how many were taken. Other
 * values (bytes, goroutines, contentions) do not. */
static int64_t value_of_sample(
	const struct profile *p, const struct profile_type *type, int64_t period, int64_t factor)
{
	struct str unit = profile_str(p, type->sample_unit);
	bool counts = str_eq(profile_str(p, type->sample_type), STR("samples")) &&
		      str_eq(unit, STR("count"));
	/* 1: of several periods, by which the values are multiplied already. */
	if (counts)
		return period != 1 ? factor : 0;
	bool times = type->sample_type == type->period_type &&
		     type->sample_unit == type->period_unit && !str_eq(unit, STR("bytes"));
	return times && period > 1 ? period : 0;
}

/* The report's unit, from the shown side. */
static void take_unit(struct loader *l, struct side *side, const struct profile *p,
	const struct profile_type *type, int64_t period, bool single)
{
	struct str sample_type = profile_str(p, type->sample_type);
	struct str sample_unit = profile_str(p, type->sample_unit);
	struct str period_unit = profile_str(p, type->period_unit);
	struct query_unit unit = { sample_unit, 1 };
	bool scaled = false;
	if (!single) {
		unit = query_unit_of(sample_type, sample_unit, period_unit, period);
		scaled = !str_eq(unit.name, sample_unit);
	}
	side->factor = unit.factor;
	if (l->s->unit.p)
		return;
	l->s->sample_type = keep_text(l, scaled ? profile_str(p, type->period_type) : sample_type);
	l->s->unit = keep_text(l, unit.name);
	l->s->period_type = keep_text(l, profile_str(p, type->period_type));
	l->s->period_unit = keep_text(l, period_unit);
	l->s->period = period;
	l->s->per_sample = value_of_sample(p, type, period, unit.factor);
}

/* Nothing was found: the unit is what the selector's type says. */
static void take_unit_of_selector(struct loader *l, const struct side *side, bool single)
{
	const struct str *type = side->plan->selector.type;
	if (l->s->unit.p || !side->plan->selector.has_type)
		return;
	struct query_unit unit = single ? (struct query_unit){ type[2], 1 }
					: query_unit_of(type[1], type[2], type[4], 1);
	bool scaled = !str_eq(unit.name, type[2]);
	l->s->sample_type = keep_text(l, scaled ? type[3] : type[1]);
	l->s->unit = keep_text(l, unit.name);
	l->s->period_type = keep_text(l, type[3]);
	l->s->period_unit = keep_text(l, type[4]);
}

static enum status sum_side(struct loader *l, const struct query_side *of, struct side *out)
{
	enum status s = open_side(l, of, out);
	if (s != OK)
		return s;
	if (out->plan->empty)
		return OK;
	s = out->plan->view->ops->sum_stacks(out->plan->view, &out->plan->store, &out->tree, l->e);
	if (s != OK)
		return s;
	out->has_tree = true;
	if (out->tree.nodes.len > 1 || out->tree.sample_count)
		take_unit(l, out, &out->tree.tables, &out->tree.type, out->tree.period, of->single);
	l->s->sample_count += out->tree.sample_count;
	return OK;
}

/* ---- without labels ---- */

static enum status take_tree(struct loader *l, struct side *side)
{
	struct query_stacks *s = l->s;
	size_t count = side->tree.nodes.len;
	if (count > SAMPLES_TREE_NODES_MAX || count * sizeof(*s->v.v) > l->memory_max)
		return no_room(l, E_LIMIT);
	s->v.v = side->tree.nodes.v;
	s->v.len = count;
	s->v.cap = side->tree.nodes.cap;
	s->tables = side->tree.tables;
	s->has_tables = true;
	s->first_ns = side->tree.first_ns;
	s->covered_ns = side->tree.covered_ns;
	side->has_tree = false;
	for (size_t i = 0; side->factor != 1 && i < count; i++)
		s->v.v[i].self = query_scale(s->v.v[i].self, side->factor);
	return OK;
}

static enum status load_merge(struct loader *l)
{
	CLEANUP(side_deinit) struct side side = { .factor = 1 };
	enum status s = sum_side(l, &l->r->side, &side);
	if (s != OK)
		return s;
	take_unit_of_selector(l, &side, l->r->side.single);
	return side.has_tree ? take_tree(l, &side) : begin_stacks(l);
}

/* ---- a comparison ---- */

static int64_t scale_by(int64_t value, double ratio)
{
	if (ratio == 1)
		return value;
	double scaled = (double)value * ratio;
	return scaled >= 0x1p63 ? INT64_MAX : scaled < -0x1p63 ? INT64_MIN : (int64_t)scaled;
}

static enum status graft_base(struct loader *l, const struct side *base, double ratio)
{
	struct query_stacks *s = l->s;
	const struct profile *from = &base->tree.tables;
	const struct translate_from symbols = translate_from_profile(from);
	uint32_t *memory = ARENA_ARRAY(l->a, uint32_t, translate_words(&symbols, true));
	uint32_t *to = ARENA_ARRAY(l->a, uint32_t, MAX(base->tree.nodes.len, (size_t)1));
	struct translate t;
	if (!memory || !to)
		return err_set(l->e, arena_status(l->a), "two trees of %zu and %zu stacks",
			s->v.len, base->tree.nodes.len);
	translate_init(&t, &symbols, &translate_to_profile, &s->tables, true, memory);
	to[0] = 0;
	for (size_t i = 0; i < base->tree.nodes.len; i++) {
		const struct samples_node *n = &base->tree.nodes.v[i];
		struct stack_key key = { .parent = to[n->parent] };
		enum status st = OK;
		if (i > 0) {
			st = translate_location(&t, n->location, &key.location);
			if (st != OK)
				return err_set(l->e, st, "the symbols of both sides");
			st = find_stack(l, &key, &to[i]);
		}
		if (st != OK)
			return st;
		int64_t *diff = &s->diff.v[to[i]];
		*diff = query_sub(*diff, scale_by(query_scale(n->self, base->factor), ratio));
	}
	return OK;
}

static enum status index_stacks(struct loader *l)
{
	enum status s =
		query_stacks_hold(l->s, l->s->v.len * (INDEX_BYTES + sizeof(int64_t)), l->e);
	if (s != OK)
		return s;
	for (uint32_t i = 1; i < l->s->v.len; i++) {
		const struct samples_node *at = &l->s->v.v[i];
		struct stack_key key = { at->parent, at->location, 0 };
		if (!map_insert(&l->s->index, stack_hash(&key), i))
			return no_room(l, E_NOMEM);
	}
	return OK;
}

/* The difference begins with the compared side's own value. */
static enum status scale_side(struct loader *l, double ratio)
{
	struct query_stacks *s = l->s;
	if (!VEC_RESERVE(&s->diff, s->v.len))
		return no_room(l, E_NOMEM);
	s->diff.len = s->v.len;
	for (size_t i = 0; i < s->v.len; i++)
		s->v.v[i].self = s->diff.v[i] = scale_by(s->v.v[i].self, ratio);
	return OK;
}

static double total_of(const struct side *s)
{
	return (double)s->tree.total * (double)s->factor;
}

static enum status load_diff(struct loader *l)
{
	CLEANUP(side_deinit) struct side side = { .factor = 1 }, base = { .factor = 1 };
	enum status s = sum_side(l, &l->r->side, &side);
	if (s != OK)
		return err_prefix(l->e, s, "compared profile");
	s = sum_side(l, &l->r->base, &base);
	if (s != OK)
		return err_prefix(l->e, s, "base profile");
	take_unit_of_selector(l, &side, l->r->side.single);
	double a = total_of(&base), b = total_of(&side), ratio_a = 1, ratio_b = 1;
	if (!l->r->absolute && a > 0 && b > 0) {
		ratio_a = b > a ? b / a : 1;
		ratio_b = a > b ? a / b : 1;
	}
	s = side.has_tree ? take_tree(l, &side) : begin_stacks(l);
	if (s == OK && !l->s->has_tables) {
		s = profile_init(&l->s->tables, QUERY_REPORT_BYTES_MAX);
		l->s->has_tables = s == OK;
	}
	if (s == OK)
		s = index_stacks(l);
	if (s == OK)
		s = scale_side(l, ratio_b);
	if (s == OK && base.has_tree)
		s = graft_base(l, &base, ratio_a);
	return s;
}

/* ---- with labels, or times ---- */

/* Group of each label set of the answer; sets without any of the labels are group 0. */
static enum status make_groups(struct loader *l, const struct profile *p, uint32_t **out)
{
	struct query_stacks *s = l->s;
	size_t sets = p->label_sets.len, labels = l->r->label_count;
	*out = ARENA_ARRAY(l->a, uint32_t, sets);
	s->groups = ARENA_ARRAY(l->a, struct str, (sets + 3) * MAX(labels, (size_t)1));
	s->group_count = 1;
	if (!*out || !s->groups)
		return err_set(l->e, arena_status(l->a), "%zu sets of labels", sets);
	for (size_t i = 1; i < sets; i++) {
		const struct profile_labels *set = &p->label_sets.v[i];
		struct str *values = s->groups + s->group_count * labels;
		bool any = false;
		for (size_t k = 0; k < labels; k++) {
			values[k] = STR("");
			for (uint32_t j = 0; j < set->count; j++) {
				const struct profile_label *label = &p->labels.v[set->first + j];
				if (str_eq(profile_str(p, label->name), l->r->labels[k]))
					values[k] = profile_str(p, label->value);
			}
			any |= values[k].len > 0;
		}
		(*out)[i] = any ? s->group_count++ : 0;
	}
	return OK;
}

/* ---- groups of their own ---- */

/* A new group, named by the value of its first label. */
static uint32_t add_group(struct query_stacks *s, size_t labels, struct str name)
{
	uint32_t group = s->group_count++;
	for (size_t i = 0; i < labels; i++)
		s->groups[group * labels + i] = i ? STR("") : name;
	return group;
}

static int compare_totals(const void *pa, const void *pb, void *ctx)
{
	const int64_t *totals = ctx;
	uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
	uint64_t x = query_abs(totals[a]), y = query_abs(totals[b]);
	return x != y ? (x > y ? -1 : 1) : a < b ? -1 : a > b;
}

/* The largest `group_max` groups stay, of which what has none of the labels is one; the others
 * become one together. */
static enum status join_groups(struct loader *l, const struct samples_cells *c,
	const int64_t *factors, uint32_t *group_of_set)
{
	struct query_stacks *s = l->s;
	size_t sets = s->tables.label_sets.len, labels = l->r->label_count;
	const char *none = arena_printf(l->a, "no %.*s", STR_ARG(l->r->labels[0]));
	uint32_t unnamed = none ? add_group(s, labels, str_of(none)) : 0;
	for (size_t i = 0; i < sets; i++)
		if (group_of_set[i] == 0)
			group_of_set[i] = unnamed;
	uint32_t count = s->group_count;
	int64_t *totals = ARENA_ARRAY(l->a, int64_t, count);
	uint32_t *order = ARENA_ARRAY(l->a, uint32_t, count);
	uint32_t *to = ARENA_ARRAY(l->a, uint32_t, count);
	if (!none || !totals || !order || !to)
		return err_set(l->e, arena_status(l->a), "%u groups", count);
	for (size_t i = 0; i < c->v.len; i++) {
		uint32_t group = group_of_set[c->groups.v[c->v.v[i].group].labels];
		totals[group] = query_add(
			totals[group], query_scale(c->v.v[i].value, factors[c->v.v[i].group]));
	}
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order, count, sizeof(*order), compare_totals, totals);
	uint32_t rest = 0;
	for (uint32_t i = 0, kept = 0; i < count; i++) {
		uint32_t group = order[i];
		to[group] = group;
		if (totals[group] == 0 || kept++ < l->r->group_max)
			continue;
		if (!rest)
			rest = add_group(s, labels, STR("everything else"));
		to[group] = rest;
	}
	for (size_t i = 0; i < sets; i++)
		group_of_set[i] = to[group_of_set[i]];
	return OK;
}

/* ---- sums by group ---- */

struct copier {
	struct loader *l;
	const struct samples_node *nodes;
	uint32_t *stack_of; /* by node, of the group at hand */
	uint32_t *group_of; /* by node: whose that is, + 1 */
	uint32_t path[PROFILE_STACK_MAX + 1];
};

/* The copy of a node in its group, below `top`. */
static enum status copy_node(
	struct copier *c, uint32_t node, uint32_t group, uint32_t top, uint32_t *out)
{
	uint32_t depth = 0, at = node;
	for (; at && c->group_of[at] != group + 1; at = c->nodes[at].parent) {
		if (depth == ARRAY_COUNT(c->path))
			return err_set(c->l->e, E_CORRUPT, "a stack of more than %zu locations",
				ARRAY_COUNT(c->path));
		c->path[depth++] = at;
	}
	*out = at ? c->stack_of[at] : top;
	while (depth > 0) {
		at = c->path[--depth];
		struct stack_key key = { *out, c->nodes[at].location, group };
		enum status s = push_stack(c->l, &key, out);
		if (s != OK)
			return s;
		c->group_of[at] = group + 1;
		c->stack_of[at] = *out;
	}
	return OK;
}

/* order[]: cells by group, those of one in their order. */
static enum status order_cells(struct loader *l, const struct samples_cells *c,
	const uint32_t *group_of_set, uint32_t **out_order, uint32_t **out_begin)
{
	uint32_t count = l->s->group_count;
	uint32_t *order = ARENA_ARRAY(l->a, uint32_t, MAX(c->v.len, (size_t)1));
	uint32_t *begin = ARENA_ARRAY(l->a, uint32_t, (size_t)count + 2);
	if (!order || !begin)
		return no_room(l, arena_status(l->a));
	/* One ahead while the lists are filled: each ends where the next begins. */
	for (size_t i = 0; i < c->v.len; i++)
		begin[group_of_set[c->groups.v[c->v.v[i].group].labels] + 2]++;
	for (uint32_t i = 2; i < count + 2; i++)
		begin[i] += begin[i - 1];
	for (uint32_t i = 0; i < c->v.len; i++)
		order[begin[group_of_set[c->groups.v[c->v.v[i].group].labels] + 1]++] = i;
	*out_order = order;
	*out_begin = begin;
	return OK;
}

static enum status copy_groups(struct loader *l, const struct samples_cells *c,
	const int64_t *factors, const uint32_t *group_of_set)
{
	struct query_stacks *s = l->s;
	size_t nodes = c->tree.nodes.len;
	CLEANUP(free_cleanup) struct copier *copier = calloc(1, sizeof(*copier));
	uint32_t *order = NULL, *begin = NULL;
	enum status st = query_stacks_hold(s, (nodes * 2 + c->v.len) * sizeof(uint32_t), l->e);
	if (st == OK)
		st = order_cells(l, c, group_of_set, &order, &begin);
	if (st != OK)
		return st;
	if (copier) {
		*copier = (struct copier){ .l = l, .nodes = c->tree.nodes.v };
		copier->stack_of = ARENA_ARRAY(l->a, uint32_t, MAX(nodes, (size_t)1));
		copier->group_of = ARENA_ARRAY(l->a, uint32_t, MAX(nodes, (size_t)1));
	}
	if (!copier || !copier->stack_of || !copier->group_of)
		return no_room(l, E_NOMEM);
	for (uint32_t group = 0; st == OK && group < s->group_count; group++) {
		uint32_t top = 0, at = 0;
		if (group && begin[group] < begin[group + 1])
			st = push_stack(l, &(struct stack_key){ 0, 0, group }, &top);
		if (st == OK)
			st = samples_stopped(&s->plan.store, l->e);
		for (uint32_t i = begin[group]; st == OK && i < begin[group + 1]; i++) {
			const struct samples_cell *cell = &c->v.v[order[i]];
			st = copy_node(copier, cell->node, group, top, &at);
			if (st == OK)
				s->v.v[at].self = query_add(s->v.v[at].self,
					query_scale(cell->value, factors[cell->group]));
		}
	}
	return st;
}

/* By group of the answer what its values are multiplied by; the report's unit. As in sums, 1 is the
 * period of what is multiplied by several, and 0 where they differ otherwise. */
static int64_t *take_periods(struct loader *l, struct side *side, const struct samples_cells *c)
{
	const struct profile *p = &l->s->tables;
	const struct profile_type *type = &c->tree.type;
	bool differ = false, any = false, single = l->r->side.single;
	int64_t *factors = ARENA_ARRAY(l->a, int64_t, MAX(c->groups.len, (size_t)1));
	for (size_t i = 0; i < c->groups.len; i++) {
		differ |= c->groups.v[i].period != c->groups.v[0].period;
		any |= c->groups.v[i].period > 0;
	}
	bool several = differ && any && side->plan->store.times_period && type->delta;
	bool by_period = !single && (several || !differ);
	if (c->groups.len)
		take_unit(l, side, p, type, differ ? several : c->groups.v[0].period, single);
	for (size_t i = 0; factors && i < c->groups.len; i++) {
		factors[i] = 1;
		if (by_period)
			factors[i] = query_unit_of(profile_str(p, type->sample_type),
				profile_str(p, type->sample_unit),
				profile_str(p, type->period_unit), c->groups.v[i].period)
					     .factor;
	}
	return factors;
}

static enum status take_cells(struct loader *l, struct side *side, struct samples_cells *c)
{
	struct query_stacks *s = l->s;
	uint32_t *groups = NULL;
	s->tables = c->tree.tables;
	c->tree.tables = (struct profile){ 0 };
	s->has_tables = true;
	s->sample_count = c->tree.sample_count;
	s->first_ns = c->tree.first_ns;
	const int64_t *factors = take_periods(l, side, c);
	take_unit_of_selector(l, side, l->r->side.single);
	enum status st = make_groups(l, &s->tables, &groups);
	if (st == OK && !factors)
		st = no_room(l, arena_status(l->a));
	if (st == OK && l->r->group_max)
		st = join_groups(l, c, factors, groups);
	return st == OK ? copy_groups(l, c, factors, groups) : st;
}

static enum status load_groups(struct loader *l)
{
	CLEANUP(side_deinit) struct side side = { .factor = 1 };
	struct samples_cells cells = { 0 };
	enum status st = open_side(l, &l->r->side, &side);
	if (st == OK)
		st = begin_stacks(l);
	if (st != OK || side.plan->empty)
		return st;
	st = side.plan->view->ops->sum_cells(
		side.plan->view, &side.plan->store, l->r->labels, l->r->label_count, &cells, l->e);
	if (st != OK)
		return st;
	st = take_cells(l, &side, &cells);
	samples_cells_deinit(&cells);
	return st;
}

/* ---- a chart ---- */

static enum status stack_of_sample(
	struct loader *l, const struct profile_sample *sample, uint32_t group, uint32_t *out)
{
	const struct profile *p = &l->s->tables;
	const struct profile_stack *stack = &p->stacks.v[sample->stack];
	enum status s = OK;
	*out = 0;
	if (group)
		s = find_stack(l, &(struct stack_key){ 0, 0, group }, out);
	for (uint32_t i = stack->count; s == OK && i-- > 0;) {
		struct stack_key key = { *out, p->stack_locations.v[stack->first + i], group };
		s = find_stack(l, &key, out);
	}
	return s;
}

/* The factor of each head's samples; NULL: no room. */
static int64_t *head_factors(struct loader *l, bool by_period)
{
	const struct profile *p = &l->s->tables;
	int64_t *factors = ARENA_ARRAY(l->a, int64_t, p->heads.len);
	for (size_t i = 0; factors && i < p->heads.len; i++) {
		const struct profile_head *h = &p->heads.v[i];
		const struct profile_type *type = &p->types.v[h->type];
		factors[i] = 1;
		if (by_period)
			factors[i] = query_unit_of(profile_str(p, type->sample_type),
				profile_str(p, type->sample_unit),
				profile_str(p, type->period_unit), h->period)
					     .factor;
	}
	return factors;
}

static enum status add_samples(struct loader *l, const uint32_t *groups, bool by_period)
{
	struct query_stacks *s = l->s;
	const int64_t *factors = head_factors(l, by_period);
	if (!factors)
		return no_room(l, arena_status(l->a));
	for (size_t i = 0; i < s->tables.samples.len; i++) {
		const struct profile_sample *sample = &s->tables.samples.v[i];
		uint32_t at = 0;
		if (i % 4096 == 0 && l->r->cancel && l->r->cancel(l->r->cancel_ctx))
			return err_set(l->e, E_CANCELED, "the caller went away");
		enum status st = stack_of_sample(
			l, sample, groups[sample->own ? sample->own : sample->resource], &at);
		if (st != OK)
			return st;
		int64_t value = query_scale(sample->value, factors[sample->head]);
		s->v.v[at].self = query_add(s->v.v[at].self, value);
		struct query_event event = { sample->time_ns, value, at };
		if (l->r->chart && !VEC_PUSH(&s->events, event))
			return no_room(l, E_NOMEM);
	}
	return OK;
}

static int compare_events(const void *pa, const void *pb)
{
	const struct query_event *a = pa, *b = pb;
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns ? -1 : 1;
	return a->stack < b->stack ? -1 : a->stack > b->stack;
}

/* What the samples have in common; *out_by_period: values are to be multiplied by the periods of
 * their heads. As in sums, 1 is the period of what is multiplied by several, and 0 where they
 * differ otherwise. */
static void take_heads(struct loader *l, struct side *side, bool *out_by_period)
{
	struct query_stacks *s = l->s;
	const struct profile *p = &s->tables;
	*out_by_period = false;
	if (p->samples.len == 0)
		return;
	const struct profile_head *first = &p->heads.v[p->samples.v[0].head];
	const struct profile_type *type = &p->types.v[first->type];
	bool differ = false, any = false, single = l->r->side.single;
	s->first_ns = first->time_ns;
	for (size_t i = 0; i < p->samples.len; i++) {
		const struct profile_head *h = &p->heads.v[p->samples.v[i].head];
		s->first_ns = MIN(s->first_ns, h->time_ns);
		differ |= h->period != first->period;
		any |= h->period > 0;
	}
	bool several = differ && any && side->plan->store.times_period && type->delta;
	*out_by_period = !single && (several || !differ);
	take_unit(l, side, p, type, differ ? several : first->period, single);
}

static enum status load_samples(struct loader *l)
{
	CLEANUP(side_deinit) struct side side = { .factor = 1 };
	struct query_stacks *s = l->s;
	uint32_t *groups = NULL;
	bool by_period = false;
	enum status st = open_side(l, &l->r->side, &side);
	if (st == OK)
		st = begin_stacks(l);
	if (st != OK)
		return st;
	if (side.plan->empty)
		return OK;
	side.plan->store.each_time = l->r->chart;
	st = side.plan->view->ops->collect(side.plan->view, &side.plan->store, l->r->labels,
		l->r->label_count, &s->tables, l->e);
	if (st != OK)
		return st;
	s->has_tables = true;
	s->sample_count = s->tables.samples.len;
	take_heads(l, &side, &by_period);
	take_unit_of_selector(l, &side, l->r->side.single);
	st = make_groups(l, &s->tables, &groups);
	if (st == OK)
		st = add_samples(l, groups, by_period);
	if (st == OK && s->events.len > 1)
		qsort(s->events.v, s->events.len, sizeof(*s->events.v), compare_events);
	return st;
}

enum status query_stacks_load(struct query_stacks *s, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e)
{
	struct loader l = { .s = s, .q = q, .r = r, .a = a, .e = e, .memory_max = a->limit };
	*s = (struct query_stacks){ .group_count = 1 };
	enum status st = r->diff              ? load_diff(&l)
			 : r->chart           ? load_samples(&l)
			 : r->label_count > 0 ? load_groups(&l)
					      : load_merge(&l);
	if (st == OK && !s->has_tables) {
		st = profile_init(&s->tables, 1 << 20);
		s->has_tables = st == OK;
	}
	if (st == OK)
		st = resolve(&l);
	if (st != OK)
		query_stacks_deinit(s);
	return st;
}
