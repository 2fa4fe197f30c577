/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pages: makes the blobs of an unwind_table from rows in ascending order of file offset. Private to
 * unwind/. Keeps one page of rows, and the blobs made so far.
 */
#pragma once

#include "base/vec.h"
#include "unwind/unwind.h"

/* Different rules in one page; a row with one more rule is UNSUPPORTED. Real pages have up to 280.
 */
#define PAGES_RULES_MAX 4096

struct pages;

/* All blobs together: beyond that pages_finish() is E_LIMIT. */
#define PAGES_BYTES_MAX ((size_t)1 << 30)
/* Slots of the hash table of a page's rules that are searched for one rule; if that is not enough,
 * the rule counts as one too many. Real pages need up to 5. */
#define PAGES_PROBES_MAX 64

NODISCARD struct pages *pages_new(size_t bytes_max); /* NULL: no memory */
void pages_free(struct pages *p);
/* From `offset` on, `rule` holds. Offsets ascend; of several rules for one offset the last one
 * holds. A failure is kept: pages_finish() returns it. */
void pages_put(struct pages *p, uint64_t offset, struct unwind_rule rule);
/* UNWIND_ROWS_MAX was reached: further rows are not taken. */
bool pages_full(const struct pages *p);
/* Close the last page, and hand the pages over. The table must be zeroed. */
NODISCARD enum status pages_finish(struct pages *p, struct unwind_table *out);

/* Length of a blob with these counts; 0: there can be no such blob. */
uint32_t pages_blob_len(uint32_t rule_count, uint32_t row_count, uint32_t dense_rows);
