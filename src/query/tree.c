/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: the path that flame graph and table share: sum by stack in the store, names, frames, fold.
 */
#include "query/internal.h"

void query_tree_deinit(struct query_tree *t)
{
	query_fold_deinit(&t->fold);
	if (t->has_store)
		store_tree_deinit(&t->store);
	query_plan_close(&t->plan);
}

static enum status name_locations(struct query_tree *t, const struct query_engine *q, struct err *e)
{
	if (!q->symbolizer)
		return OK;
	return symbolizer_resolve(q->symbolizer, &t->store.tables, QUERY_WAIT_MS, &t->pending, e);
}

static enum status fill(struct query_tree *t, const struct query_engine *q,
	const struct query_request *r, struct arena *work, struct err *e)
{
	const struct profile *tables = &t->store.tables;
	enum status s = store_sum_stacks(t->plan.view, &t->plan.store, &t->store, e);
	if (s != OK)
		return s;
	t->has_store = true;
	s = name_locations(t, q, e);
	if (s != OK)
		return s;
	const struct profile_type *type = &t->store.type;
	t->unit = query_unit_of(profile_str(tables, type->sample_type),
		profile_str(tables, type->sample_unit), profile_str(tables, type->period_unit),
		t->store.period);
	s = query_frames_make(&t->store.tables, r->match, work, &t->frames, e);
	if (s != OK)
		return s;
	s = query_fold_make(
		&t->fold, &t->store, &t->frames, t->unit.factor, work->limit - work->used, e);
	if (s == OK)
		t->total = t->fold.nodes.v[0].total;
	return s;
}

enum status query_tree_make(struct query_tree *t, const struct query_engine *q,
	const struct query_request *r, struct arena *work, struct err *e)
{
	*t = (struct query_tree){ .unit = { STR("count"), 1 } };
	enum status s = query_plan_open(q, r, true, work, &t->plan, e);
	if (s != OK)
		return s;
	if (t->plan.empty)
		return OK;
	s = fill(t, q, r, work, e);
	if (s != OK)
		query_tree_deinit(t);
	return s;
}
