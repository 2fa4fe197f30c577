/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_write: a part is written once, in the order of its rows.
 *
 * Layer 3, private to store/.
 */
#pragma once

#include "store/disk/disk.h"
#include "store/memory/memory.h"
#include "store/part/part_format.h"

struct part_writer;
/* E_EXISTS: a part of the same id is being written there. */
NODISCARD enum status part_writer_open(struct place *place, uint64_t id, const struct tabs *t,
	const struct canon *c, struct part_writer **out, struct err *e);
/* Memory that part_writer_total() takes for each node of the part. */
#define PART_TOTAL_NODE_BYTES (2 * sizeof(int64_t))
/* Makes the part have TOTALS, by slices; for parts that last. To be called before the first row. */
NODISCARD enum status part_writer_total(struct part_writer *w, uint32_t node_count, struct err *e);
/* Choose the compression; to be called before the first row. keep: the part stays for long and is
 * compressed harder. young: it will be merged soon and is compressed as fast as possible. */
void part_writer_keep(struct part_writer *w);
void part_writer_young(struct part_writer *w);
/* Adds a row. Rows come in the order of the part; their numbers are canonical. */
NODISCARD enum status part_writer_row(struct part_writer *w, const struct row *row, struct err *e);
/* Adds several rows of one series and slice. */
NODISCARD enum status part_writer_rows(
	struct part_writer *w, const struct row *rows, size_t n, struct err *e);
/* Bytes of the file so far. */
uint64_t part_writer_bytes(const struct part_writer *w);
/* Ends the part. After OK it is durable under its name. Rows, samples and times of `meta` are set
 * here. */
NODISCARD enum status part_writer_finish(struct part_writer *w, const struct tabs *t,
	const struct canon *c, struct part_meta *meta, const struct batch_seen *batches,
	size_t batch_count, struct err *e);
/* To be called after success too. It removes a file that was not finished. */
void part_writer_close(struct part_writer *w);
static inline void part_writer_cleanup(struct part_writer **w)
{
	part_writer_close(*w);
}
