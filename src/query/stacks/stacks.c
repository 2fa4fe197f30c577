/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: without labels and times (groups.c, events.c) the store's own tree of sums is taken as it
 * is, not copied. For a comparison the base's tree is merged into the other: each stack of either
 * side has one node, whose value is that of the compared side and whose difference is that value
 * less the base's.
 *
 * In a relative comparison the side with the smaller total is scaled up, and each stack's sum is
 * truncated to a whole number, as in Parca.
 */
#include "query/plan/plan.h"
#include "query/stacks/loaded.h"
#include "query/stacks/loader.h"

#include "profile/translate.h"

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

/* ---- names ---- */

static enum status resolve(struct query_loader *l)
{
	struct query_stacks *s = l->s;
	if (!l->q->symbolizer)
		return OK;
	return symbolizer_resolve(l->q->symbolizer, &s->tables, QUERY_WAIT_MS, &s->pending, l->e);
}

/* ---- without labels ---- */

static enum status sum_side(
	struct query_loader *l, const struct query_side *of, struct query_loader_side *out)
{
	enum status s = query_side_open(l, of, out);
	if (s != OK)
		return s;
	if (out->plan->empty)
		return OK;
	s = out->plan->view->ops->sum_stacks(out->plan->view, &out->plan->store, &out->tree, l->e);
	if (s != OK)
		return s;
	out->has_tree = true;
	if (out->tree.nodes.len > 1 || out->tree.sample_count)
		query_side_unit(
			l, out, &out->tree.tables, &out->tree.type, out->tree.period, of->single);
	l->s->sample_count += out->tree.sample_count;
	return OK;
}

static enum status take_tree(struct query_loader *l, struct query_loader_side *side)
{
	struct query_stacks *s = l->s;
	size_t count = side->tree.nodes.len;
	if (count > SAMPLES_TREE_NODES_MAX || count * sizeof(*s->v.v) > l->memory_max)
		return query_loader_no_room(l, E_LIMIT);
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

static enum status load_merge(struct query_loader *l)
{
	CLEANUP(query_side_deinit) struct query_loader_side side = { .factor = 1 };
	enum status s = sum_side(l, &l->r->side, &side);
	if (s != OK)
		return s;
	query_side_unit_of_selector(l, &side, l->r->side.single);
	return side.has_tree ? take_tree(l, &side) : query_loader_begin(l);
}

/* ---- a comparison ---- */

static int64_t scale_by(int64_t value, double ratio)
{
	if (ratio == 1)
		return value;
	double scaled = (double)value * ratio;
	return scaled >= 0x1p63 ? INT64_MAX : scaled < -0x1p63 ? INT64_MIN : (int64_t)scaled;
}

static enum status graft_base(
	struct query_loader *l, const struct query_loader_side *base, double ratio)
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
		struct query_stack_key key = { .parent = to[n->parent] };
		enum status st = OK;
		if (i > 0) {
			st = translate_location(&t, n->location, &key.location);
			if (st != OK)
				return err_set(l->e, st, "the symbols of both sides");
			st = query_loader_find(l, &key, &to[i]);
		}
		if (st != OK)
			return st;
		int64_t *diff = &s->diff.v[to[i]];
		*diff = query_sub(*diff, scale_by(query_scale(n->self, base->factor), ratio));
	}
	return OK;
}

/* The difference begins with the compared side's own value. */
static enum status scale_side(struct query_loader *l, double ratio)
{
	struct query_stacks *s = l->s;
	if (!VEC_RESERVE(&s->diff, s->v.len))
		return query_loader_no_room(l, E_NOMEM);
	s->diff.len = s->v.len;
	for (size_t i = 0; i < s->v.len; i++)
		s->v.v[i].self = s->diff.v[i] = scale_by(s->v.v[i].self, ratio);
	return OK;
}

static double total_of(const struct query_loader_side *s)
{
	return (double)s->tree.total * (double)s->factor;
}

static enum status load_diff(struct query_loader *l)
{
	CLEANUP(query_side_deinit)
	struct query_loader_side side = { .factor = 1 }, base = { .factor = 1 };
	enum status s = sum_side(l, &l->r->side, &side);
	if (s != OK)
		return err_prefix(l->e, s, "compared profile");
	s = sum_side(l, &l->r->base, &base);
	if (s != OK)
		return err_prefix(l->e, s, "base profile");
	query_side_unit_of_selector(l, &side, l->r->side.single);
	double a = total_of(&base), b = total_of(&side), ratio_a = 1, ratio_b = 1;
	if (!l->r->absolute && a > 0 && b > 0) {
		ratio_a = b > a ? b / a : 1;
		ratio_b = a > b ? a / b : 1;
	}
	s = side.has_tree ? take_tree(l, &side) : query_loader_begin(l);
	if (s == OK && !l->s->has_tables) {
		s = profile_init(&l->s->tables, QUERY_REPORT_BYTES_MAX);
		l->s->has_tables = s == OK;
	}
	if (s == OK)
		s = query_loader_index(l, sizeof(int64_t));
	if (s == OK)
		s = scale_side(l, ratio_b);
	if (s == OK && base.has_tree)
		s = graft_base(l, &base, ratio_a);
	return s;
}

enum status query_stacks_load(struct query_stacks *s, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e)
{
	struct query_loader l = { .s = s, .q = q, .r = r, .a = a, .e = e, .memory_max = a->limit };
	*s = (struct query_stacks){ .group_count = 1 };
	enum status st = r->diff              ? load_diff(&l)
			 : r->chart           ? query_loader_chart(&l)
			 : r->label_count > 0 ? query_loader_sum_groups(&l)
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
