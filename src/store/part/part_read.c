/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A block's columns are read one by one, as many as are asked for: checksum, unpacked, decoded into
 * arrays that the next block uses again. Every number that refers to a table is checked against it.
 */
#include "store/part/part_read.h"

#include "base/reader.h"
#include "codec/codec.h"
#include "store/part/part_table.h"

#include <stdlib.h>

#define BATCHES_BYTES_MAX ((uint64_t)1 << 30)
#define STORED_BYTES_MAX ((size_t)1 << 30)

void part_rows_init(struct part_rows *r)
{
	*r = (struct part_rows){ 0 };
	for (int i = 0; i < ROW_COLUMNS; i++)
		buf_init(&r->stored[i], STORED_BYTES_MAX), buf_init(&r->room[i], STORED_BYTES_MAX);
}

void part_rows_deinit(struct part_rows *r)
{
	free(r->series);
	free(r->node);
	free(r->set);
	free(r->time_ns);
	free(r->value);
	free(r->n);
	free(r->keep);
	free(r->bytes);
	free(r->by_code);
	for (int i = 0; i < ROW_COLUMNS; i++)
		buf_deinit(&r->stored[i]), buf_deinit(&r->room[i]);
}

enum status part_rows_reserve(struct part_rows *r, size_t n)
{
	if (n <= r->cap)
		return OK;
	r->cap = 0;
	uint32_t **narrow[] = { &r->series, &r->node, &r->set };
	int64_t **wide[] = { &r->time_ns, &r->value, &r->n };
	for (size_t i = 0; i < 3; i++) {
		free(*narrow[i]);
		free(*wide[i]);
		*narrow[i] = malloc(n * sizeof(**narrow[i]));
		*wide[i] = malloc(n * sizeof(**wide[i]));
	}
	free(r->keep);
	free(r->bytes);
	r->keep = malloc(n);
	r->bytes = malloc(n + COLUMN_BYTES_SLACK);
	for (size_t i = 0; i < 3; i++)
		if (!*narrow[i] || !*wide[i])
			return E_NOMEM;
	if (!r->keep || !r->bytes)
		return E_NOMEM;
	r->cap = n;
	return OK;
}

enum status part_read_streams(struct part *p, const struct part_block *b, enum part_column id,
	struct buf *stored, struct buf *room, struct column_streams *out, struct err *e)
{
	const struct column *c = &b->columns[id];
	uint64_t len = column_stored_len(c);
	if (c->offset > p->bytes || len > p->bytes - c->offset)
		return err_set(e, E_CORRUPT, "%s: column %d lies beyond the file", p->path, id);
	buf_clear(stored);
	uint8_t *bytes = len ? buf_extend(stored, (size_t)len) : NULL;
	if (len && !bytes)
		return err_set(e, buf_status(stored), "%s: no memory for %llu bytes of a block",
			p->path, (unsigned long long)len);
	enum status s = len ? object_read(p->object, c->offset, bytes, (size_t)len, e) : OK;
	if (s == OK)
		s = column_unpack_into(c, str_make(bytes, (size_t)len), b->rows, room, out, e);
	return s == OK ? OK : err_prefix(e, s, "%s", p->path);
}

static enum status read_column(struct part *p, const struct part_block *b, enum part_column id,
	uint64_t limit, uint32_t *narrow, int64_t *wide, struct part_rows *r, struct err *e)
{
	struct column_streams streams;
	const struct column *c = &b->columns[id];
	enum status s = part_read_streams(p, b, id, &r->stored[0], &r->room[0], &streams, e);
	if (s != OK)
		return s;
	if (narrow)
		s = column_decode_u32(c, &streams, b->rows, limit, narrow, e);
	else
		s = column_decode(c, &streams, b->rows, wide, e);
	return s == OK ? OK
		       : err_prefix(e, s, "%s: block at +%llu", p->path,
				 (unsigned long long)c->offset);
}

enum status part_check_scale(const struct part *p, const struct part_block *b, struct err *e)
{
	const struct column *value = &b->columns[ROW_VALUE];
	if (value->encoding == COLUMN_SCALE &&
		(value->unit != ROW_COUNT || b->columns[ROW_COUNT].encoding == COLUMN_SCALE))
		return err_set(e, E_CORRUPT, "%s: values scaled from column %llu", p->path,
			(unsigned long long)value->unit);
	return OK;
}

static enum status read_values(struct part *p, const struct part_block *b, unsigned columns,
	struct part_rows *out, struct err *e)
{
	const struct column *value = &b->columns[ROW_VALUE];
	bool scaled = value->encoding == COLUMN_SCALE;
	enum status s = part_check_scale(p, b, e);
	if (s != OK)
		return s;
	if ((columns & 1u << ROW_COUNT) || (scaled && columns & 1u << ROW_VALUE))
		s = read_column(p, b, ROW_COUNT, 0, NULL, out->n, out, e);
	if (s != OK || !(columns & 1u << ROW_VALUE))
		return s;
	if (!scaled)
		return read_column(p, b, ROW_VALUE, 0, NULL, out->value, out, e);
	for (size_t i = 0; i < b->rows; i++)
		out->value[i] = (int64_t)((uint64_t)out->n[i] * (uint64_t)value->base);
	return OK;
}

enum status part_read_block(struct part *p, const struct tabs *t, const struct part_block *b,
	unsigned columns, struct part_rows *out, struct err *e)
{
	enum status s = part_rows_reserve(out, b->rows);
	if (s != OK)
		return err_set(e, s, "%s: a block of %u rows", p->path, b->rows);
	out->count = b->rows;
	if (columns & 1u << ROW_SERIES)
		s = read_column(p, b, ROW_SERIES, t->series_count, out->series, NULL, out, e);
	if (s == OK && columns & 1u << ROW_TIME)
		s = read_column(p, b, ROW_TIME, 0, NULL, out->time_ns, out, e);
	if (s == OK && columns & 1u << ROW_NODE)
		s = read_column(p, b, ROW_NODE, t->node_count, out->node, NULL, out, e);
	if (s == OK && columns & 1u << ROW_SET)
		s = read_column(p, b, ROW_SET, t->set_count, out->set, NULL, out, e);
	return s == OK ? read_values(p, b, columns, out, e) : s;
}

/* ---- batches, verification ---- */

enum status part_read_batches(
	struct part *p, struct batch_seen **out, size_t *out_count, struct err *e)
{
	*out = NULL;
	*out_count = 0;
	if (!part_section_has(p, PART_BATCHES))
		return OK;
	CLEANUP(part_table_deinit) struct part_table t;
	lock_take(&p->lock);
	p->load_limit = BATCHES_BYTES_MAX;
	enum status s = part_table_read(p, PART_BATCHES, &t, e);
	lock_release(&p->lock);
	if (s != OK)
		return s;
	CLEANUP(free_cleanup) struct batch_seen *v = calloc(MAX(t.rows, 1u), sizeof(*v));
	CLEANUP(free_cleanup) int64_t *column = calloc(MAX(t.rows, 1u), sizeof(*column));
	if (!v || !column)
		return err_set(e, E_NOMEM, "%s: batches", p->path);
	for (uint8_t id = 1; id <= 3; id++) {
		s = part_table_i64(&t, id, column, e);
		if (s != OK)
			return err_prefix(e, s, "%s: batches", p->path);
		for (uint32_t i = 0; i < t.rows; i++) {
			if (id == 1)
				v[i].id.lo = (uint64_t)column[i];
			else if (id == 2)
				v[i].id.hi = (uint64_t)column[i];
			else
				v[i].arrived_ns = column[i];
		}
	}
	*out = STEAL_PTR(v);
	*out_count = t.rows;
	return OK;
}
