/* SPDX-License-Identifier: Apache-2.0 */
#include "query/plan/plan.h"

enum status query_list_types(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct samples_type **out, size_t *out_count, struct err *e)
{
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	enum status s = query_plan_open(q, r, false, a, &plan, e);
	if (s != OK)
		return s;
	return plan.view->ops->types(plan.view, r->from_ns, r->to_ns, a, out, out_count, e);
}

enum status query_list_labels(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	struct str *names = NULL;
	size_t count = 0;
	enum status s = query_plan_open(q, r, false, a, &plan, e);
	if (s != OK)
		return s;
	s = plan.view->ops->label_names(plan.view, &plan.store, a, &names, &count, e);
	if (s != OK)
		return s;
	*out_count = 0;
	for (size_t i = 0; i < count; i++)
		if (!str_eq(names[i], STR(PROFILE_LABEL_BYTES)) &&
			!profile_label_is_hidden(names[i]))
			names[(*out_count)++] = names[i];
	*out = names;
	return OK;
}

enum status query_list_values(const struct query_engine *q, const struct query_request *r,
	struct str name, struct arena *a, struct str **out, size_t *out_count, struct err *e)
{
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	enum status s = query_plan_open(q, r, false, a, &plan, e);
	if (s != OK)
		return s;
	return plan.view->ops->label_values(plan.view, &plan.store, name, a, out, out_count, e);
}
