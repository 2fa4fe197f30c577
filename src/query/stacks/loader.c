/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the tree is the list of stacks; a map over it finds a stack by its parent, location and
 * group. Memory is counted before the list grows.
 */
#include "query/stacks/loader.h"
#include "query/plan/plan.h"
#include "query/stacks/loaded.h"

#include <stdlib.h>

/* Bytes of the index for each stack. */
#define INDEX_BYTES 16

enum status query_stacks_hold(struct query_stacks *s, uint64_t bytes, struct err *e)
{
	enum status st = query_count(&s->plan, s->held + bytes, e);
	if (st == OK)
		s->held += bytes;
	return st;
}

/* ---- the tree ---- */

static bool stack_equal(const void *ctx, uint32_t value, const void *key)
{
	const struct query_stacks *s = ctx;
	const struct samples_node *have = &s->v.v[value];
	const struct query_stack_key *want = key;
	return have->parent == want->parent && have->location == want->location &&
	       query_stack_group(s, value) == want->group;
}

static uint64_t stack_hash(const struct query_stack_key *k)
{
	return hash_u64(((uint64_t)k->parent << 32 | k->location) ^ (uint64_t)k->group << 52);
}

enum status query_loader_no_room(struct query_loader *l, enum status s)
{
	return err_set(l->e, s, "%zu stacks: choose a shorter time range or a narrower selector",
		l->s->v.len);
}

/* Bytes of one stack in all of the arrays, with its index. */
static uint64_t stack_bytes(const struct query_loader *l)
{
	return sizeof(struct samples_node) + INDEX_BYTES + (l->r->diff ? sizeof(int64_t) : 0) +
	       (l->r->label_count ? sizeof(uint32_t) : 0);
}

enum status query_loader_push(
	struct query_loader *l, const struct query_stack_key *k, uint32_t *out)
{
	struct query_stacks *s = l->s;
	struct samples_node stack = { .parent = k->parent, .location = k->location };
	*out = (uint32_t)s->v.len;
	if (s->v.len >= SAMPLES_TREE_NODES_MAX || s->v.cap * sizeof(stack) > l->memory_max)
		return query_loader_no_room(l, E_LIMIT);
	if (s->v.len == s->v.cap) {
		/* The arrays grow by half. */
		enum status st = query_stacks_hold(s, (s->v.cap / 2 + 8) * stack_bytes(l), l->e);
		if (st != OK)
			return st;
	}
	if (!VEC_PUSH(&s->v, stack) || (l->r->diff && !VEC_PUSH(&s->diff, 0)) ||
		(l->r->label_count && !VEC_PUSH(&s->group, k->group)))
		return query_loader_no_room(l, E_NOMEM);
	return OK;
}

enum status query_loader_find(
	struct query_loader *l, const struct query_stack_key *k, uint32_t *out)
{
	uint64_t hash = stack_hash(k);
	*out = map_find(&l->s->index, hash, stack_equal, l->s, k);
	if (*out != MAP_NONE)
		return OK;
	enum status s = query_loader_push(l, k, out);
	if (s == OK && !map_insert(&l->s->index, hash, *out))
		s = query_loader_no_room(l, E_NOMEM);
	return s;
}

enum status query_loader_begin(struct query_loader *l)
{
	uint32_t root;
	return query_loader_push(l, &(struct query_stack_key){ 0, 0, 0 }, &root);
}

enum status query_loader_index(struct query_loader *l, size_t extra)
{
	enum status s = query_stacks_hold(l->s, l->s->v.len * (INDEX_BYTES + extra), l->e);
	if (s != OK)
		return s;
	for (uint32_t i = 1; i < l->s->v.len; i++) {
		const struct samples_node *at = &l->s->v.v[i];
		struct query_stack_key key = { at->parent, at->location, 0 };
		if (!map_insert(&l->s->index, stack_hash(&key), i))
			return query_loader_no_room(l, E_NOMEM);
	}
	return OK;
}

/* ---- one side ---- */

void query_side_deinit(struct query_loader_side *s)
{
	if (s->has_tree)
		samples_tree_deinit(&s->tree);
	query_plan_close(&s->own);
}

enum status query_side_open(
	struct query_loader *l, const struct query_side *of, struct query_loader_side *out)
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

static struct str keep_text(struct query_loader *l, struct str text)
{
	char *copy = arena_copy(l->a, text.p, text.len);
	return str_make(copy ? copy : "", copy ? text.len : 0);
}

/* The value of one sample, from which the number of samples can be computed; 0 where it cannot be,
 * as for bytes, goroutines and contentions. */
static int64_t value_of_sample(
	const struct profile *p, const struct profile_type *type, int64_t period, int64_t factor)
{
	struct str unit = profile_str(p, type->sample_unit);
	bool counts = str_eq(profile_str(p, type->sample_type), STR("samples")) &&
		      str_eq(unit, STR("count"));
	/* Period 1: the values are multiplied already by different periods. */
	if (counts)
		return period != 1 ? factor : 0;
	bool times = type->sample_type == type->period_type &&
		     type->sample_unit == type->period_unit && !str_eq(unit, STR("bytes"));
	return times && period > 1 ? period : 0;
}

/* Sets the side's factor, and the report's unit unless another side has set it. */
void query_side_unit(struct query_loader *l, struct query_loader_side *side,
	const struct profile *p, const struct profile_type *type, int64_t period, bool single)
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

/* The report's unit where no sample was found: that of the selector's type. */
void query_side_unit_of_selector(
	struct query_loader *l, const struct query_loader_side *side, bool single)
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

/* ---- groups of labels ---- */

/* Group of each label set of the answer; sets without any of the labels are group 0. */
enum status query_loader_groups(struct query_loader *l, const struct profile *p, uint32_t **out)
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
