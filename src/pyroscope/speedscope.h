/* SPDX-License-Identifier: Apache-2.0 */
/* speedscope: profiles in speedscope's JSON. */
#pragma once

#include "pyroscope/labels.h"
#include "pyroscope/pyroscope.h"

struct speedscope {
	struct str bytes; /* JSON */
	struct str app;   /* with or without the suffix that names a type */
	const struct series_labels *labels;
	uint32_t rate; /* samples a second, for weights without a unit */
	int64_t time_ns, duration_ns;
};
/* Adds each profile of the file to `out`, with the label profile_name. E_INVALID, E_LIMIT. */
NODISCARD enum status speedscope_decode(
	const struct speedscope *in, struct profile *out, struct err *e);
