/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store/part/part_writer: what the files that write a part share: rows and the end of the file
 * (part_write.c), totals (part_totals.c), tables (part_tables.c).
 *
 * Layer 3, private to these.
 */
#pragma once

#include "store/disk/disk.h"
#include "store/memory/memory.h"
#include "store/part/column.h"
#include "store/part/part_format.h"
#include "store/part/part_index.h"

#define PART_SECTION_BYTES_MAX ((size_t)4 << 30)

struct series_span {
	int64_t first_ns;
	int64_t last_ns;
	uint64_t rows;
};

/* Sums of the rows since `first_block`, by node. */
struct total {
	int64_t *sums;
	uint64_t first_block;
	uint64_t rows, samples;
};

struct part_writer {
	struct place_put *put;
	uint64_t id;
	uint64_t at; /* bytes of the file so far */
	struct column_writer columns;
	struct buf data;   /* bytes of the section or block at hand */
	struct buf header; /* column headers of the section at hand */
	struct buf blocks; /* BLOCKS */
	struct buf toc;
	uint64_t block_count;
	uint32_t toc_count;
	uint64_t rows, samples;
	int64_t first_ns, last_ns;
	struct series_span *spans;
	uint64_t *periods_ns; /* of the series; 0: no timer's */
	uint32_t series_count;
	int64_t *rows_of[ROW_COLUMNS]; /* the block at hand */
	size_t block_rows;
	size_t block_cap; /* rows for which rows_of[] has room, doubled up to BLOCK_ROWS_MAX */
	int64_t *values;  /* one column of a table at hand */
	size_t values_cap;
	struct part_index index;
	/* TOTALS: of the stretch at hand, and of all */
	uint32_t node_count;     /* 0: none are kept */
	struct part_slice slice; /* of the last row */
	uint32_t *kinds;         /* by series: equal for those of one tenant and type */
	uint32_t kind;
	struct total stretch, whole;
	struct buf totals, total_of_all; /* entries */
	uint64_t total_count;
};

/* Appends bytes to the file. */
NODISCARD enum status part_write_bytes(struct part_writer *w, struct str bytes, struct err *e);
NODISCARD enum status part_write_section(
	struct part_writer *w, enum part_section kind, struct str bytes, struct err *e);
/* Writes the rows gathered so far as a block, if there are any. */
NODISCARD enum status part_write_block(struct part_writer *w, struct err *e);

/* ---- part_totals.c ---- */

/* To be called before each row, or before several of one series and slice. It may end the stretch
 * before it. */
NODISCARD enum status part_totals_before(
	struct part_writer *w, const struct row *row, struct err *e);
/* Adds rows to the stretch; `samples`: how many samples they are in all. */
void part_totals_rows(struct part_writer *w, const struct row *v, size_t n, uint64_t samples);
/* To be called after the last block. */
NODISCARD enum status part_totals_end(struct part_writer *w, struct err *e);
NODISCARD enum status part_totals_section(struct part_writer *w, struct err *e);

/* ---- part_tables.c ---- */

/* Writes all tables that rows refer to, and the index. */
NODISCARD enum status part_write_tables(struct part_writer *w, const struct tabs *t,
	const struct canon *c, const struct part_meta *meta, struct err *e);
/* BATCHES. */
NODISCARD enum status part_write_batches(
	struct part_writer *w, const struct batch_seen *batches, size_t count, struct err *e);
