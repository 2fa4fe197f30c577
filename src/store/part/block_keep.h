/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/block_keep: which rows of a block a query wants, without making arrays of rows.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/part/part_read.h"

/* A row passes if its series, set and time pass. */
struct part_filter {
	const uint8_t *series; /* by series: not 0 passes; NULL: all do */
	const uint8_t *sets;   /* by set; NULL: all do */
	bool times;            /* whether times matter: from_ns <= time < to_ns */
	int64_t from_ns, to_ns;
};

struct part_kept {
	size_t rows;
	int64_t first_ns, last_ns; /* of these rows; set only if `times` is set and a row passes */
};
/* scratch->keep has 1 for each row that passes, else 0. */
NODISCARD enum status part_keep_rows(struct part *p, const struct tabs *t,
	const struct part_block *b, const struct part_filter *f, struct part_rows *scratch,
	struct part_kept *out, struct err *e);

/* As part_sum_block(), but sums only the rows that pass. */
NODISCARD enum status part_sum_kept(struct part *p, const struct tabs *t,
	const struct part_block *b, const struct part_filter *f, struct part_rows *scratch,
	int64_t *sums, uint64_t *samples, struct part_kept *out, struct err *e);

/* Each row's value is added to sums[node], the number of samples to *samples. After a failure the
 * sums are spoilt. */
NODISCARD enum status part_sum_block(struct part *p, const struct tabs *t,
	const struct part_block *b, struct part_rows *scratch, int64_t *sums, uint64_t *samples,
	struct err *e);
