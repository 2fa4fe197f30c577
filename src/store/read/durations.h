/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/durations: how long the profiles took whose samples a query finds: the time that at
 * least one of them was being taken, by group and step.
 *
 * Layer 3, private to store/. Only profiles of a delta type whose samples have no times of their
 * own say how long they took. So `samples` is to be compared with what was found: where it is
 * another number, some of the time is not known.
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
	/* They do not fit the budget: how long they took is not known, of none of them. */
	bool is_left_out;
};
void durations_deinit(struct durations *c);
/* The profiles of what `pick` wants of a source. */
NODISCARD enum status durations_add(
	struct durations *c, struct source *s, const struct pick *pick, struct err *e);
/* When all sources were added: by group, then by step, each once; nothing where they were left out.
 * `out` is malloc'ed. */
NODISCARD enum status durations_finish(
	struct durations *c, struct step_duration **out, size_t *out_count, struct err *e);

/* All of it for one answer: what its `samples` took; 0: that is not known. */
NODISCARD enum status durations_of_all(struct store_view *v, const struct pick *picks,
	const struct samples_query *q, uint64_t samples, struct budget *b, int64_t *out_ns,
	struct err *e);

static inline int64_t durations_step(int64_t time_ns, int64_t step_ns)
{
	return step_ns ? time_ns / step_ns - (time_ns % step_ns < 0) : 0;
}
