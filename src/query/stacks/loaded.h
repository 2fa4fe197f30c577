/* SPDX-License-Identifier: Apache-2.0 */
/* loaded: the stacks of a report, as stacks.c loads them from the store and names them. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "query/plan/plan.h"
#include "query/query.h"

/* A sample of a flame chart. */
struct query_event {
	int64_t time_ns;
	int64_t value;
	uint32_t stack;
};

struct query_stacks {
	struct query_plan plan; /* of the shown side; open as long: its memory counts there */
	uint64_t held;          /* by query_stacks_hold() */
	struct profile tables;
	/* 0 is the root, parents come before their children. Location 0: the root, or the node of
	 * a group of labels right below it. Values are in the report's unit. */
	VEC(struct samples_node) v;
	VEC(int64_t) diff;              /* by stack, of a comparison; else empty */
	VEC(uint32_t) group;            /* by stack, where labels are asked for; else empty */
	VEC(struct query_event) events; /* by time; only where the request is a chart's */
	struct map index;               /* of v, by (parent, location, group) */
	struct str *groups;     /* values of the request's labels, group by group from 1 on */
	uint32_t group_count;   /* with group 0 */
	struct str sample_type; /* what `unit` counts */
	struct str unit;
	struct str period_type, period_unit;
	int64_t period;
	int64_t per_sample; /* the value of one sample; 0: not known */
	int64_t first_ns;
	int64_t covered_ns; /* as in samples_tree */
	uint64_t sample_count;
	uint32_t pending;
	bool has_tables;
};
NODISCARD enum status query_stacks_load(struct query_stacks *s, const struct query_engine *q,
	const struct query_report_request *r, struct arena *a, struct err *e);
void query_stacks_deinit(struct query_stacks *s);
/* So many bytes more are taken for the report. */
NODISCARD enum status query_stacks_hold(struct query_stacks *s, uint64_t bytes, struct err *e);

static inline int64_t query_stack_diff(const struct query_stacks *s, uint32_t i)
{
	return s->diff.len ? s->diff.v[i] : 0;
}

static inline uint32_t query_stack_group(const struct query_stacks *s, uint32_t i)
{
	return s->group.len ? s->group.v[i] : 0;
}
