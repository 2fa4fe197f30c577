/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TOTALS of a part that is being written: rows are summed by stack as they come. Where a stretch
 * ends a block ends too, so that a total is of whole blocks.
 */
#include "store/part/part_write.h"
#include "store/part/part_writer.h"

#include <stdlib.h>

/* A stretch with fewer rows is not worth ending a block for. */
#define STRETCH_ROWS_MIN 16384
/* A total must have at least this many times fewer rows than its blocks. */
#define TOTAL_GAIN_MIN 4

enum status part_writer_total(struct part_writer *w, uint32_t node_count, struct err *e)
{
	assert(w->rows == 0);
	w->stretch.sums = calloc(MAX(node_count, 1u), sizeof(int64_t));
	w->whole.sums = calloc(MAX(node_count, 1u), sizeof(int64_t));
	if (!w->stretch.sums || !w->whole.sums)
		return err_set(e, E_NOMEM, "totals of %u stacks", node_count);
	w->node_count = node_count;
	return OK;
}

/* An entry for the blocks since t->first_block, if it is much less to read than they are. */
static enum status encode_total(
	struct part_writer *w, const struct total *t, struct buf *out, struct err *e)
{
	size_t n = 0;
	for (uint32_t i = 0; i < w->node_count; i++)
		n += t->sums[i] != 0;
	if (n == 0 || n > BLOCK_ROWS_READ_MAX || n > t->rows / TOTAL_GAIN_MIN)
		return OK;
	CLEANUP(free_cleanup) int64_t *nodes = malloc(2 * n * sizeof(*nodes));
	if (!nodes)
		return err_set(e, E_NOMEM, "totals of %zu stacks", n);
	int64_t *values = nodes + n;
	n = 0;
	for (uint32_t i = 0; i < w->node_count; i++) {
		if (t->sums[i] == 0)
			continue;
		nodes[n] = i;
		values[n++] = t->sums[i];
	}
	struct column c[2];
	buf_clear(&w->data);
	enum status s =
		column_encode(&w->columns, ROW_NODE, nodes, n, COLUMN_PLAIN, &w->data, &c[0]);
	if (s == OK)
		s = column_encode(&w->columns, ROW_VALUE, values, n, COLUMN_PLAIN, &w->data, &c[1]);
	buf_varint(out, t->first_block);
	buf_varint(out, w->block_count - t->first_block);
	buf_varint(out, t->samples);
	buf_varint(out, n);
	buf_varint(out, (uint64_t)nodes[0]);
	buf_varint(out, (uint64_t)(nodes[n - 1] - nodes[0]));
	buf_varint(out, ARRAY_COUNT(c));
	for (size_t i = 0; i < ARRAY_COUNT(c); i++) {
		c[i].offset += w->at;
		column_write_header(out, &c[i]);
	}
	if (s == OK)
		s = buf_status(out);
	if (s != OK)
		return err_set(e, s, "encoding totals of %zu stacks", n);
	w->total_count++;
	return part_write_bytes(w, buf_view(&w->data), e);
}

/* To be called when all rows of the stretch are in blocks: writes its total, unless it is that of
 * the whole part, and begins a new stretch. */
static enum status end_stretch(struct part_writer *w, bool ending, struct err *e)
{
	struct total *t = &w->stretch;
	enum status s = OK;
	if (t->rows < w->rows || !ending)
		s = encode_total(w, t, &w->totals, e);
	for (uint32_t i = 0; i < w->node_count; i++)
		w->whole.sums[i] = (int64_t)((uint64_t)w->whole.sums[i] + (uint64_t)t->sums[i]);
	memset(t->sums, 0, w->node_count * sizeof(*t->sums));
	w->whole.rows += t->rows;
	w->whole.samples += t->samples;
	t->rows = t->samples = 0;
	t->first_block = w->block_count;
	return s;
}

/* A stretch ends where a slice of time or the series of a type do, unless it is short. */
enum status part_totals_before(struct part_writer *w, const struct row *row, struct err *e)
{
	if (!w->node_count)
		return OK;
	bool here = row->time_ns >= w->slice.first_ns && row->time_ns <= w->slice.last_ns;
	if (w->rows && here && w->kinds[row->series] == w->kind)
		return OK;
	w->slice = part_slice_of(row->time_ns);
	w->kind = w->kinds[row->series];
	if (w->stretch.rows < STRETCH_ROWS_MIN)
		return OK;
	enum status s = part_write_block(w, e);
	return s == OK ? end_stretch(w, false, e) : s;
}

void part_totals_rows(struct part_writer *w, const struct row *v, size_t n, uint64_t samples)
{
	struct total *t = &w->stretch;
	if (!w->node_count)
		return;
	t->rows += n;
	t->samples += samples;
	for (size_t i = 0; i < n; i++) {
		assert(v[i].node < w->node_count);
		int64_t *sum = &t->sums[v[i].node];
		*sum = (int64_t)((uint64_t)*sum + (uint64_t)v[i].value);
	}
}

enum status part_totals_end(struct part_writer *w, struct err *e)
{
	if (!w->node_count || !w->rows)
		return OK;
	enum status s = end_stretch(w, true, e);
	return s == OK ? encode_total(w, &w->whole, &w->total_of_all, e) : s;
}

enum status part_totals_section(struct part_writer *w, struct err *e)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, PART_SECTION_BYTES_MAX);
	if (w->total_count == 0)
		return OK;
	buf_varint(&out, w->total_count);
	buf_str(&out, buf_view(&w->total_of_all));
	buf_str(&out, buf_view(&w->totals));
	enum status s = buf_status(&out);
	if (s != OK)
		return err_set(e, s, "%llu totals", (unsigned long long)w->total_count);
	return part_write_section(w, PART_TOTALS, buf_view(&out), e);
}
