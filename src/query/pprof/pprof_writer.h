/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof_writer: a gzipped profile.proto, sample by sample, for our own API and for Parca's reports.
 *
 * Private to query/. What it holds counts in the plan's quota. After a failure `out` has bytes that
 * are no profile.
 */
#pragma once

#include "pprof/pprof.h"
#include "query/plan/plan.h"

struct query_pprof_writer {
	const struct query_plan *plan;
	struct pprof_stream *stream;
	struct codec_pack *pack; /* once the plain bytes are many */
	struct buf plain;
	struct buf *out;
	size_t samples;
};

/* `tables` must not change until the end; they contain all that samples refer to. types[]: a column
 * of values each. Free with query_pprof_writer_deinit(), also after a failure. */
NODISCARD enum status query_pprof_begin(struct query_pprof_writer *w, const struct query_plan *plan,
	const struct profile *tables, const uint32_t *types, uint32_t type_count, struct buf *out,
	struct err *e);
/* locations[] leaf first; a value for each type; label_sets[] of the tables. */
NODISCARD enum status query_pprof_sample(struct query_pprof_writer *w, const uint32_t *locations,
	uint32_t count, const int64_t *values, uint32_t labels, struct err *e);
NODISCARD enum status query_pprof_end(struct query_pprof_writer *w, int64_t time_ns,
	int64_t duration_ns, int64_t period, struct err *e);
void query_pprof_writer_deinit(struct query_pprof_writer *w);
