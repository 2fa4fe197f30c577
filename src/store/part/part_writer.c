/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The end of the file, to which sections and blocks of rows are appended. A block has the collected
 * values of each column; a column with only default values is left out.
 */
#include "store/part/part_writer.h"

#include "base/clock.h"
#include "codec/codec.h"

enum status part_write_bytes(struct part_writer *w, struct str bytes, struct err *e)
{
	enum status s = place_put_write(w->put, bytes.p, bytes.len, e);
	if (s == OK)
		w->at += bytes.len;
	return s;
}

static void bounds(const int64_t *v, size_t n, int64_t *min, int64_t *max)
{
	*min = *max = v[0];
	for (size_t i = 1; i < n; i++) {
		*min = MIN(*min, v[i]);
		*max = MAX(*max, v[i]);
	}
}

static bool all_equal(const int64_t *v, size_t n, int64_t x)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] != x)
			return false;
	return true;
}

/* The factor that makes values of counts; 0: there is none. */
static int64_t factor_of(const struct part_writer *w, size_t n)
{
	const int64_t *value = w->rows_of[ROW_VALUE], *count = w->rows_of[ROW_COUNT];
	int64_t k = count[0] > 0 ? value[0] / count[0] : 0;
	for (size_t i = 0; k && i < n; i++)
		if ((uint64_t)count[i] * (uint64_t)k != (uint64_t)value[i])
			return 0;
	return k;
}

static enum status encode_row_column(struct part_writer *w, int id, size_t n, uint32_t *count)
{
	const int64_t *v = w->rows_of[id];
	struct column c;
	if ((id == ROW_COUNT && all_equal(v, n, 1)) || (id == ROW_SET && all_equal(v, n, 0)))
		return OK;
	int64_t factor = id == ROW_VALUE && !all_equal(v, n, v[0]) ? factor_of(w, n) : 0;
	if (factor) {
		c = (struct column){
			.id = ROW_VALUE, .encoding = COLUMN_SCALE, .base = factor, .unit = ROW_COUNT
		};
	} else {
		enum column_hint hint =
			id == ROW_NODE || id == ROW_SET ? COLUMN_TRY_DICT : COLUMN_PLAIN;
		enum status s =
			id == ROW_TIME
				? column_encode_times(&w->columns, (uint8_t)id, v, n,
					  w->periods_ns[w->rows_of[ROW_SERIES][n / 2]], &w->data,
					  &c)
				: column_encode(&w->columns, (uint8_t)id, v, n, hint, &w->data, &c);
		if (s != OK)
			return s;
	}
	c.offset += w->at;
	column_write_header(&w->header, &c);
	++*count;
	return buf_status(&w->header);
}

enum status part_write_block(struct part_writer *w, struct err *e)
{
	size_t n = w->block_rows;
	if (n == 0)
		return OK;
	buf_clear(&w->data);
	buf_clear(&w->header);
	uint32_t count = 0;
	enum status s = OK;
	for (int id = ROW_SERIES; id < ROW_COLUMNS && s == OK; id++)
		s = encode_row_column(w, id, n, &count);
	buf_varint(&w->blocks, n);
	static const int bounded[] = { ROW_SERIES, ROW_TIME, ROW_NODE };
	for (size_t i = 0; i < ARRAY_COUNT(bounded); i++) {
		int64_t min, max;
		bounds(w->rows_of[bounded[i]], n, &min, &max);
		if (bounded[i] == ROW_TIME)
			buf_zigzag(&w->blocks, min);
		else
			buf_varint(&w->blocks, (uint64_t)min);
		buf_varint(&w->blocks, (uint64_t)max - (uint64_t)min);
	}
	buf_varint(&w->blocks, count);
	buf_str(&w->blocks, buf_view(&w->header));
	if (s == OK)
		s = buf_status(&w->blocks);
	if (s != OK)
		return err_set(e, s, "encoding a block of %zu rows", n);
	w->block_count++;
	w->block_rows = 0;
	return part_write_bytes(w, buf_view(&w->data), e);
}

enum status part_write_section(
	struct part_writer *w, enum part_section kind, struct str bytes, struct err *e)
{
	buf_u16(&w->toc, (uint16_t)kind);
	buf_u16(&w->toc, 0);
	buf_u32(&w->toc, codec_crc32c(0, bytes.p, bytes.len));
	buf_u64(&w->toc, w->at);
	buf_u64(&w->toc, bytes.len);
	w->toc_count++;
	return part_write_bytes(w, bytes, e);
}
