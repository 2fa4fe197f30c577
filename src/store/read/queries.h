/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/read/queries: the queries of samples/samples.h, made to a view; each is answered by the
 * file of its name.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/read/view.h"

/* From the index, without a look at samples. Results are sorted, texts in `a`. */
NODISCARD enum status store_types(struct store_view *v, int64_t from_ns, int64_t to_ns,
	struct arena *a, struct samples_type **out, size_t *out_count, struct err *e);
NODISCARD enum status store_label_names(struct store_view *v, const struct samples_query *q,
	struct arena *a, struct str **out, size_t *out_count, struct err *e);
NODISCARD enum status store_label_values(struct store_view *v, const struct samples_query *q,
	struct str name, struct arena *a, struct str **out, size_t *out_count, struct err *e);

/* Gauges (types without delta) are averaged over the points in time of each series. */
NODISCARD enum status store_sum_stacks(struct store_view *v, const struct samples_query *q,
	struct samples_tree *out, struct err *e);

NODISCARD enum status store_sum_series(struct store_view *v, const struct samples_query *q,
	const struct str *by, size_t by_count, int64_t step_ns, struct arena *a,
	struct samples_series **out, size_t *out_count, struct samples_type *out_type,
	int64_t *out_period, struct err *e);

/* Sums by stack, period and the values of `keep_labels` (none: all labels of both kinds dropped):
 * the pprof report. */
NODISCARD enum status store_sum_cells(struct store_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct samples_cells *out, struct err *e);

/* The same as one profile, with the times of samples where they are asked for. */
NODISCARD enum status store_collect(struct store_view *v, const struct samples_query *q,
	const struct str *keep_labels, size_t keep_count, struct profile *out, struct err *e);

/* Which series had the chosen locations in their stacks, and when. */
NODISCARD enum status store_where(struct store_view *v, const struct samples_query *q,
	samples_choose_fn *choose, void *ctx, struct arena *a, struct samples_hit **out,
	size_t *out_count, struct err *e);
