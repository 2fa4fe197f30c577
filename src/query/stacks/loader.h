/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loader: shared by the files that load a report's stacks (stacks.c for one tree or two, groups.c
 * by labels, events.c by time): the tree that grows, and the sides that are asked for.
 *
 * Private to query/. Memory lies in the caller's arena and is counted by the shown side's plan.
 */
#pragma once

#include "query/stacks/loaded.h"

struct query_loader {
	struct query_stacks *s;
	const struct query_engine *q;
	const struct query_report_request *r;
	struct arena *a;
	struct err *e;
	size_t memory_max;
};

/* Stacks with equal keys are one. */
struct query_stack_key {
	uint32_t parent, location, group;
};

/* query_loader_find() gives the number of a stack, and adds it if it is new; query_loader_push()
 * adds one that is known to be new. */
NODISCARD enum status query_loader_push(
	struct query_loader *l, const struct query_stack_key *k, uint32_t *out);
NODISCARD enum status query_loader_find(
	struct query_loader *l, const struct query_stack_key *k, uint32_t *out);
/* The root alone. */
NODISCARD enum status query_loader_begin(struct query_loader *l);
/* Indexes all stacks so far, so that query_loader_find() finds them. Counts `extra` more bytes for
 * each. */
NODISCARD enum status query_loader_index(struct query_loader *l, size_t extra);
enum status query_loader_no_room(struct query_loader *l, enum status s);

struct query_loader_side {
	struct query_plan *plan; /* that of the report for the shown side, else: */
	struct query_plan own;
	struct samples_tree tree;
	bool has_tree;
	int64_t factor;
};
void query_side_deinit(struct query_loader_side *s);
NODISCARD enum status query_side_open(
	struct query_loader *l, const struct query_side *of, struct query_loader_side *out);
/* The report's unit, from the shown side. */
void query_side_unit(struct query_loader *l, struct query_loader_side *side,
	const struct profile *p, const struct profile_type *type, int64_t period, bool single);
/* Nothing was found: the unit is what the selector's type says. */
void query_side_unit_of_selector(
	struct query_loader *l, const struct query_loader_side *side, bool single);

/* Group of each label set of the answer; sets without any of the labels are group 0. */
NODISCARD enum status query_loader_groups(
	struct query_loader *l, const struct profile *p, uint32_t **out);
/* groups.c: a tree of sums for each group of labels. */
NODISCARD enum status query_loader_sum_groups(struct query_loader *l);
/* events.c: the stacks of all samples, by time. */
NODISCARD enum status query_loader_chart(struct query_loader *l);
