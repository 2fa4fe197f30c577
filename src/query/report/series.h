/* SPDX-License-Identifier: Apache-2.0 */
/* series: values over time, by labels. */
#pragma once

#include "query/query.h"

struct query_points {
	struct str *labels; /* values of the request's `by`, "" when absent; NULL: the rest */
	struct samples_point *points;
	size_t count;
	int64_t total;
};
struct query_graph {
	struct query_points *series; /* largest first, the rest last */
	size_t count;
	int64_t step_ns;
	struct str unit;
	bool gauge; /* totals are averages over the time */
};
NODISCARD enum status query_series(const struct query_engine *q, const struct query_request *r,
	struct arena *a, struct query_graph *out, struct err *e);
