/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/durations: by group and step, the time in which at least one of the profiles was being
 * taken whose samples a query finds.
 *
 * Layer 3, private to store/. Only profiles of a delta type whose samples have no times of their
 * own say how long they took. So compare `samples` with the number of samples found: if they
 * differ, some of the time is not known.
 */
#pragma once

#include "store/read/groups.h"

struct step_duration {
	uint32_t group;
	int64_t step;
	int64_t ns;
	uint64_t samples;
};

/* One profile of one series. */
struct duration {
	uint32_t group;
	int64_t step, from_ns, to_ns;
	uint64_t samples;
};

struct durations {
	struct store_view *view;
	const struct samples_query *query;
	struct budget *budget;
	struct groups
		*groups; /* at the source at hand, none beside samples; NULL: all is group 0 */
	int64_t step_ns; /* 0: all is step 0 */
	VEC(struct duration) profiles;
	uint64_t bytes; /* that these have of the budget */
	/* The profiles do not fit the budget: no duration is known. */
	bool is_left_out;
};
void durations_deinit(struct durations *c);
/* Adds the profiles of the series of a source that `pick` wants. */
NODISCARD enum status durations_add(
	struct durations *c, struct source *s, const struct pick *pick, struct err *e);
/* To be called when all sources were added. Sorted by group, then by step, each once; empty if
 * is_left_out. `out` is malloc'ed. */
NODISCARD enum status durations_finish(
	struct durations *c, struct step_duration **out, size_t *out_count, struct err *e);

/* All steps for one answer. *out_ns: how long its `samples` took; 0: not known. */
NODISCARD enum status durations_of_all(struct store_view *v, const struct pick *picks,
	const struct samples_query *q, uint64_t samples, struct budget *b, int64_t *out_ns,
	struct err *e);

static inline int64_t durations_step(int64_t time_ns, int64_t step_ns)
{
	return step_ns ? time_ns / step_ns - (time_ns % step_ns < 0) : 0;
}
