/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/gauge: sums of gauges, averaged over time; series of all sources under common numbers.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/read/pick.h"

/* Series of all sources under common numbers: equal type and labels, equal number. */
struct common_series {
	struct strtab keys;
	uint32_t **ids; /* [source][series] */
	size_t source_count;
};
NODISCARD enum status common_series_init(struct common_series *c, struct store_view *v,
	const struct pick *picks, struct budget *b, struct err *e);
void common_series_deinit(struct common_series *c);

struct gauge_weight {
	int64_t step;
	uint32_t series; /* common number */
	double weight;
};
/* A gauge's sum is averaged over time: `weight[i][series]` is the share of the time that the series
 * covers, by the number of its distinct points, for source i. */
struct gauge {
	double **weights; /* NULL by step */
	size_t source_count;
	/* By step: of what a series has there. */
	struct common_series common;
	VEC(struct gauge_weight) of_step; /* by step, then series */
	int64_t step_ns;
	size_t last; /* of of_step: found before */
};
NODISCARD enum status gauge_init(struct gauge *g, struct store_view *v, const struct pick *picks,
	const struct samples_query *q, struct budget *b, struct err *e);
void gauge_deinit(struct gauge *g);
/* Where the query has steps: of a row of source i. */
double gauge_step_weight(struct gauge *g, size_t i, uint32_t series, int64_t time_ns);
