/* SPDX-License-Identifier: Apache-2.0 */
/* types: the names that profile types get. */
#pragma once

#include "pyroscope/pyroscope.h"

/* What sample_type_config says about a sample type of a pprof file. */
struct type_config {
	struct str type;
	struct str display_name;
	bool average;
};
#define TYPE_CONFIGS_MAX 64
struct type_configs {
	struct type_config v[TYPE_CONFIGS_MAX];
	size_t count;
	struct buf text; /* of the names; deinit is the caller's */
};
NODISCARD enum status type_configs_read(struct str json, struct type_configs *out, struct err *e);

/* What was added to a profile: heads from `head` on, samples from `sample` on. */
struct added {
	uint32_t head;
	size_t sample;
};
struct made {
	int64_t from_ns; /* for profiles without a time, or with the time of a clock that was never
			    set */
	int64_t duration_ns;                /* for profiles without a duration; 0: not known */
	bool average;                       /* all of them are gauges */
	const struct type_configs *configs; /* NULL: names stay as they are */
};
/* Gives the types their names, and tells gauges from deltas. */
NODISCARD enum status types_finish(struct profile *p, struct added a, const struct made *m);
