/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/groups: rows grouped by the values of some labels, over all sources.
 *
 * Layer 3, private to store/. A group is a list of values, one for each label; equal lists have
 * equal numbers, in order of first appearance.
 */
#pragma once

#include "store/read/pick.h"

#define GROUP_LABELS_MAX PROFILE_LABELS_MAX

struct groups {
	const struct str *names;
	uint32_t name_count;
	struct strtab keys; /* id - 1 is the group: encoded values */
	struct budget *budget;
	/* of the source at hand */
	struct source *source;
	uint32_t *of_series;   /* where no name is a sample label: group + 1, 0 unknown */
	bool by_set;           /* some name is a sample label */
	struct map pair_index; /* (series, set) */
	VEC(struct group_pair) pairs;
	uint32_t last; /* of pairs: found before */
};

struct group_pair {
	uint32_t series;
	uint32_t set;
	uint32_t group;
};

NODISCARD enum status groups_init(struct groups *g, const struct str *names, uint32_t name_count,
	struct budget *b, struct err *e);
void groups_deinit(struct groups *g);
uint32_t groups_count(const struct groups *g);
/* Value `i` of a group. */
struct str groups_value(const struct groups *g, uint32_t group, uint32_t i);
/* All of them, as a set of labels of a profile. */
NODISCARD enum status groups_labels(
	const struct groups *g, uint32_t group, struct profile *p, uint32_t *out);
/* The following rows are of this source. Loads its sets if they are needed. */
NODISCARD enum status groups_source(
	struct groups *g, struct store_view *v, struct source *s, struct err *e);
/* The columns that a scan must read for groups_find(), as a mask. */
unsigned groups_columns(const struct groups *g);
NODISCARD enum status groups_find(
	struct groups *g, uint32_t series, uint32_t set, uint32_t *out, struct err *e);
