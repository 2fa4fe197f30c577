/* SPDX-License-Identifier: Apache-2.0 */
/* contexts: labels of the contexts in JFR files. */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "jfr/jfr.h"
#include "profile/profile.h"
#include "pyroscope/types.h"

/* Labels of async-profiler's contexts, as Pyroscope's Java agent sends them: LabelsSnapshot {
 * contexts = 1: map<int64, Context>; strings = 2: map<int64, string> }, Context { labels = 1:
 * map<int64, int64> }.
 */
#define CONTEXTS_MAX 1000000u
struct context_entry {
	bool is_string;
	uint64_t id;
	struct str bytes; /* Context, or the text */
	bool made;        /* of a context: it has labels[first .. first + count) */
	uint32_t first, count;
	uint32_t name, value; /* of a text: the strings of the profile; 0: not made yet */
};
struct contexts {
	struct map index;
	VEC(struct context_entry) entries;
	VEC(struct profile_label) labels;
};
NODISCARD enum status contexts_read(struct str message, struct contexts *out, struct err *e);
void contexts_deinit(struct contexts *c);
jfr_context_fn contexts_labels; /* of a struct contexts, which is for one profile */
