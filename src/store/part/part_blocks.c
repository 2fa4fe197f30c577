/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The entries of BLOCKS and TOTALS say where the columns of rows lie and between which bounds their
 * values are. Every offset and count is checked here against the section; what columns hold is
 * checked when they are read.
 */
#include "store/part/part_blocks.h"

#include "base/reader.h"

#include <stdlib.h>

#define BLOCKS_MAX (1u << 24)
/* A block takes at least this many bytes on disk. */
#define BLOCK_BYTES_MIN 8

static uint32_t u32_of(struct reader *r)
{
	uint64_t v = reader_varint(r);
	if (v > UINT32_MAX)
		r->failed = true;
	return (uint32_t)v;
}

/* The headers of a block's columns, after their number. */
static enum status parse_columns(struct reader *r, struct part_block *b, struct err *e)
{
	uint64_t columns = reader_varint(r);
	if (r->failed || b->rows == 0 || b->rows > BLOCK_ROWS_READ_MAX ||
		columns > COLUMN_COUNT_MAX)
		return err_set(
			e, E_CORRUPT, "a block of %u rows at +%zu", b->rows, reader_offset(r));
	for (unsigned id = 0; id < ROW_COLUMNS; id++)
		b->columns[id] =
			(struct column){ .id = (uint8_t)id, .unit = 1, .base = id == ROW_COUNT };
	for (uint64_t i = 0; i < columns; i++) {
		struct column c;
		enum status s = column_parse_header(r, &c, e);
		if (s != OK)
			return s;
		if (c.id > 0 && c.id < ROW_COLUMNS)
			b->columns[c.id] = c;
	}
	return OK;
}

static enum status parse_block(struct reader *r, struct part_block *b, struct err *e)
{
	*b = (struct part_block){ .rows = u32_of(r) };
	b->series_min = u32_of(r);
	b->series_max = b->series_min + u32_of(r);
	b->time_min = reader_zigzag(r);
	b->time_max = (int64_t)((uint64_t)b->time_min + reader_varint(r));
	b->node_min = u32_of(r);
	b->node_max = b->node_min + u32_of(r);
	return parse_columns(r, b, e);
}

enum status part_blocks_parse(
	struct str bytes, struct part_block **out, size_t *out_count, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	uint64_t n = reader_varint(&r);
	if (r.failed || n > BLOCKS_MAX || n > bytes.len / BLOCK_BYTES_MIN + 1)
		return err_set(e, E_CORRUPT, "%llu blocks", (unsigned long long)n);
	CLEANUP(free_cleanup)
	struct part_block *blocks = calloc(MAX(n, (uint64_t)1), sizeof(*blocks));
	if (!blocks)
		return err_set(e, E_NOMEM, "%llu blocks", (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++) {
		enum status s = parse_block(&r, &blocks[i], e);
		if (s != OK)
			return s;
	}
	*out = STEAL_PTR(blocks);
	*out_count = n;
	return OK;
}

static enum status parse_total(
	struct reader *r, size_t block_count, struct part_total *t, struct err *e)
{
	uint64_t first = reader_varint(r), count = reader_varint(r);
	*t = (struct part_total){ .samples = reader_varint(r) };
	t->sums.rows = u32_of(r);
	t->sums.node_min = u32_of(r);
	t->sums.node_max = t->sums.node_min + u32_of(r);
	if (r->failed || count == 0 || first > block_count || count > block_count - first)
		return err_set(e, E_CORRUPT, "blocks %llu and %llu more of %zu at +%zu",
			(unsigned long long)first, (unsigned long long)count, block_count,
			reader_offset(r));
	t->first = (size_t)first;
	t->count = (size_t)count;
	return parse_columns(r, &t->sums, e);
}

enum status part_totals_parse(struct str bytes, size_t block_count, struct part_total **out,
	size_t *out_count, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	uint64_t n = reader_varint(&r);
	if (r.failed || n > BLOCKS_MAX || n > bytes.len / BLOCK_BYTES_MIN + 1)
		return err_set(e, E_CORRUPT, "%llu totals", (unsigned long long)n);
	CLEANUP(free_cleanup)
	struct part_total *totals = calloc(MAX(n, (uint64_t)1), sizeof(*totals));
	if (!totals)
		return err_set(e, E_NOMEM, "%llu totals", (unsigned long long)n);
	for (uint64_t i = 0; i < n; i++) {
		enum status s = parse_total(&r, block_count, &totals[i], e);
		if (s != OK)
			return s;
	}
	*out = STEAL_PTR(totals);
	*out_count = n;
	return OK;
}

/* ---- rows ---- */
