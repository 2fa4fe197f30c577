/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows come first: they are gathered to blocks, whose columns are encoded and written at once, so a
 * writer needs the memory of one block at most, whatever the part's size. The tables follow, then
 * the table of contents. The part is not in its place until it is whole and durable.
 */
#include "store/part/part_write.h"
#include "store/part/part_writer.h"

#include "base/clock.h"
#include "codec/codec.h"

#include <stdlib.h>

#define HEADER_BYTES 32
#define BLOCK_ROWS_FIRST 1024
/* Tables of merged parts stay for long, so they are packed harder in the background: the trie takes
 * an eighth less. */
#define TABLES_LEVEL_MERGED 6

static enum status write_header(struct part_writer *w, struct err *e)
{
	uint8_t h[HEADER_BYTES] = "FIRNPART";
	h[8] = 1; /* major; minor 0 */
	memcpy(h + 16, &w->id, 8);
	uint32_t crc = codec_crc32c(0, h, HEADER_BYTES - 4);
	memcpy(h + HEADER_BYTES - 4, &crc, 4);
	return part_write_bytes(w, str_make(h, sizeof(h)), e);
}

static bool same_kind(const struct tab_series *a, const struct tab_series *b)
{
	return a->tenant == b->tenant && memcmp(a->type, b->type, sizeof(a->type)) == 0 &&
	       a->delta == b->delta;
}

/* Series of one tenant and type follow each other in canonical order. */
static void take_kinds(struct part_writer *w, const struct tabs *t, const struct canon *c)
{
	for (uint32_t i = 1; i < t->series_count; i++)
		w->kinds[i] = w->kinds[i - 1] + !same_kind(&t->series[c->series.order[i - 1]],
							&t->series[c->series.order[i]]);
}

static void take_periods(struct part_writer *w, const struct tabs *t, const struct canon *c)
{
	for (uint32_t i = 0; i < t->series_count; i++) {
		const struct tab_series *x = &t->series[i];
		struct str unit = t->label_strings[x->type[TABLES_TYPE_PARTS - 1]];
		if (str_eq(unit, STR("nanoseconds")) && x->period > 0)
			w->periods_ns[c->series.to[i]] = (uint64_t)x->period;
	}
}

enum status part_writer_open(struct place *place, uint64_t id, const struct tabs *t,
	const struct canon *c, struct part_writer **out, struct err *e)
{
	struct part_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, E_NOMEM, "a part's writer");
	w->id = id;
	w->series_count = t->series_count;
	w->first_ns = INT64_MAX;
	w->last_ns = INT64_MIN;
	column_writer_init(&w->columns);
	buf_init(&w->data, PART_SECTION_BYTES_MAX);
	buf_init(&w->header, PART_SECTION_BYTES_MAX);
	buf_init(&w->blocks, PART_SECTION_BYTES_MAX);
	buf_init(&w->toc, PART_SECTION_BYTES_MAX);
	w->spans = calloc(MAX(t->series_count, 1u), sizeof(*w->spans));
	w->periods_ns = calloc(MAX(t->series_count, 1u), sizeof(*w->periods_ns));
	w->kinds = calloc(MAX(t->series_count, 1u), sizeof(*w->kinds));
	buf_init(&w->totals, PART_SECTION_BYTES_MAX);
	buf_init(&w->total_of_all, PART_SECTION_BYTES_MAX);
	bool ok = w->spans && w->periods_ns && w->kinds;
	if (ok) {
		take_periods(w, t, c);
		take_kinds(w, t, c);
	}
	enum status s = ok ? OK : err_set(e, E_NOMEM, "a part's writer");
	if (s == OK)
		s = place_put_open(place, id, &w->put, e);
	if (s == OK)
		s = write_header(w, e);
	if (s != OK) {
		part_writer_close(w);
		return s;
	}
	*out = w;
	return OK;
}

void part_writer_close(struct part_writer *w)
{
	if (!w)
		return;
	place_put_close(w->put);
	column_writer_deinit(&w->columns);
	buf_deinit(&w->data);
	buf_deinit(&w->header);
	buf_deinit(&w->blocks);
	buf_deinit(&w->toc);
	for (int i = 0; i < ROW_COLUMNS; i++)
		free(w->rows_of[i]);
	free(w->spans);
	free(w->periods_ns);
	free(w->kinds);
	free(w->stretch.sums);
	free(w->whole.sums);
	buf_deinit(&w->totals);
	buf_deinit(&w->total_of_all);
	free(w->values);
	part_index_deinit(&w->index);
	free(w);
}

/* ---- blocks ---- */

static void take_span(struct part_writer *w, const struct row *v, size_t n)
{
	struct series_span *span = &w->spans[v->series];
	int64_t first = v->time_ns, last = first;
	uint64_t samples = 0;
	for (size_t i = 0; i < n; i++) {
		first = MIN(first, v[i].time_ns);
		last = MAX(last, v[i].time_ns);
		samples += (uint64_t)v[i].count;
	}
	span->first_ns = span->rows ? MIN(span->first_ns, first) : first;
	span->last_ns = span->rows ? MAX(span->last_ns, last) : last;
	span->rows += n;
	w->first_ns = MIN(w->first_ns, first);
	w->last_ns = MAX(w->last_ns, last);
	w->rows += n;
	w->samples += samples;
	part_totals_rows(w, v, n, samples);
}

/* A small part needs less than the memory of a whole block. */
static enum status reserve_rows(struct part_writer *w, size_t need)
{
	size_t cap = MAX(w->block_cap, (size_t)BLOCK_ROWS_FIRST);
	while (cap < need)
		cap *= 2;
	for (int i = ROW_SERIES; i < ROW_COLUMNS && cap != w->block_cap; i++) {
		int64_t *rows = realloc(w->rows_of[i], cap * sizeof(*rows));
		if (!rows)
			return E_NOMEM;
		w->rows_of[i] = rows;
	}
	w->block_cap = cap;
	return OK;
}

static void take_columns(struct part_writer *w, const struct row *v, size_t n)
{
	int64_t *const *to = w->rows_of;
	size_t at = w->block_rows;
	for (size_t i = 0; i < n; i++, at++) {
		to[ROW_SERIES][at] = v[i].series;
		to[ROW_TIME][at] = v[i].time_ns;
		to[ROW_NODE][at] = v[i].node;
		to[ROW_VALUE][at] = v[i].value;
		to[ROW_SET][at] = v[i].set;
		to[ROW_COUNT][at] = v[i].count;
	}
	w->block_rows = at;
}

enum status part_writer_rows(struct part_writer *w, const struct row *rows, size_t n, struct err *e)
{
	assert(n && rows->series < w->series_count);
	enum status s = part_totals_before(w, rows, e);
	while (n && s == OK) {
		size_t take = MIN(n, BLOCK_ROWS_MAX - w->block_rows);
		take_span(w, rows, take);
		for (size_t i = 0; i < take && s == OK; i++)
			s = part_index_row(&w->index, rows[i].series, rows[i].node, rows[i].set);
		if (s != OK)
			return err_set(e, s, "the index of a part");
		s = reserve_rows(w, w->block_rows + take);
		if (s != OK)
			return err_set(e, s, "a part's writer");
		take_columns(w, rows, take);
		if (w->block_rows == BLOCK_ROWS_MAX)
			s = part_write_block(w, e);
		rows += take;
		n -= take;
	}
	return s;
}

enum status part_writer_row(struct part_writer *w, const struct row *row, struct err *e)
{
	return part_writer_rows(w, row, 1, e);
}

void part_writer_keep(struct part_writer *w)
{
	assert(w->rows == 0);
	w->columns.level = TABLES_LEVEL_MERGED;
}

void part_writer_young(struct part_writer *w)
{
	assert(w->rows == 0);
	w->columns.level = COLUMN_LEVEL_YOUNG;
}

uint64_t part_writer_bytes(const struct part_writer *w)
{
	return w->at;
}

/* ---- sections ---- */

static enum status write_blocks(struct part_writer *w, struct err *e)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, PART_SECTION_BYTES_MAX);
	buf_varint(&out, w->block_count);
	buf_str(&out, buf_view(&w->blocks));
	enum status s = buf_status(&out);
	if (s != OK)
		return err_set(
			e, s, "the index of %llu blocks", (unsigned long long)w->block_count);
	return part_write_section(w, PART_BLOCKS, buf_view(&out), e);
}

/* ---- META and the end ---- */

static void meta_number(struct buf *out, unsigned tag, uint64_t v)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 16);
	buf_varint(&b, v);
	buf_varint(out, tag);
	buf_varint(out, b.len);
	buf_str(out, buf_view(&b));
	out->failed |= b.failed;
}

static uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static void meta_bytes(struct buf *out, unsigned tag, const struct buf *b)
{
	buf_varint(out, tag);
	buf_varint(out, b->len);
	buf_str(out, buf_view(b));
	out->failed |= b->failed;
}

static enum status write_meta(struct part_writer *w, const struct part_meta *m, struct err *e)
{
	CLEANUP(buf_deinit) struct buf out, list;
	buf_init(&out, PART_SECTION_BYTES_MAX);
	buf_init(&list, PART_SECTION_BYTES_MAX);
	buf_put(&list, &m->store_id, 16);
	meta_bytes(&out, 1, &list);
	meta_number(&out, 2, m->level);
	meta_number(&out, 3, m->order);
	meta_number(&out, 4, (uint64_t)m->resolution_ns);
	meta_number(&out, 5, m->rows);
	meta_number(&out, 6, m->samples);
	meta_number(&out, 7, zigzag(m->first_ns));
	meta_number(&out, 8, zigzag(m->last_ns));
	meta_number(&out, 9, zigzag(m->written_ns));
	buf_clear(&list);
	for (size_t i = 0; i < m->covers.len; i++) {
		buf_varint(&list, m->covers.v[i].first);
		buf_varint(&list, m->covers.v[i].last - m->covers.v[i].first);
	}
	meta_bytes(&out, 10, &list);
	buf_clear(&list);
	for (size_t i = 0; i < m->replaces.len; i++)
		buf_varint(&list, m->replaces.v[i]);
	meta_bytes(&out, 11, &list);
	buf_clear(&list);
	buf_cstr(&list, "firn " FIRN_VERSION);
	meta_bytes(&out, 12, &list);
	buf_clear(&list);
	buf_put(&list, m->imports.v, m->imports.len * sizeof(*m->imports.v));
	if (list.len)
		meta_bytes(&out, 13, &list);
	enum status s = buf_status(&out);
	if (s != OK)
		return err_set(e, s, "encoding a part's META");
	return part_write_section(w, PART_META, buf_view(&out), e);
}

static enum status write_end(struct part_writer *w, uint64_t samples_end, struct err *e)
{
	buf_u16(&w->toc, PART_SAMPLES);
	buf_u16(&w->toc, PART_FLAG_PIECEWISE);
	buf_u32(&w->toc, 0);
	buf_u64(&w->toc, HEADER_BYTES);
	buf_u64(&w->toc, samples_end - HEADER_BYTES);
	w->toc_count++;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, PART_SECTION_BYTES_MAX);
	buf_u32(&out, w->toc_count);
	buf_str(&out, buf_view(&w->toc));
	uint32_t toc_len = (uint32_t)out.len;
	uint32_t crc = out.failed ? 0 : codec_crc32c(0, out.data, out.len);
	buf_u64(&out, w->at);
	buf_u32(&out, toc_len);
	buf_u32(&out, crc);
	buf_u64(&out, w->at + toc_len + 32);
	buf_put(&out, "FIRNPEND", 8);
	enum status s = buf_status(&w->toc);
	if (s == OK)
		s = buf_status(&out);
	if (s != OK)
		return err_set(e, s, "encoding a part's table of contents");
	return part_write_bytes(w, buf_view(&out), e);
}

enum status part_writer_finish(struct part_writer *w, const struct tabs *t, const struct canon *c,
	struct part_meta *meta, const struct batch_seen *batches, size_t batch_count, struct err *e)
{
	enum status s = part_write_block(w, e);
	if (s == OK)
		s = part_totals_end(w, e);
	uint64_t samples_end = w->at;
	meta->id = w->id;
	meta->rows = w->rows;
	meta->samples = w->samples;
	meta->first_ns = w->rows ? w->first_ns : 0;
	meta->last_ns = w->rows ? w->last_ns : 0;
	meta->written_ns = clock_realtime_ns();
	w->columns.level = meta->level ? TABLES_LEVEL_MERGED : COLUMN_LEVEL;
	if (s == OK)
		s = part_write_tables(w, t, c, meta, e);
	if (s == OK && batch_count)
		s = part_write_batches(w, batches, batch_count, e);
	if (s == OK)
		s = write_blocks(w, e);
	if (s == OK)
		s = part_totals_section(w, e);
	if (s == OK)
		s = write_meta(w, meta, e);
	if (s == OK)
		s = write_end(w, samples_end, e);
	return s == OK ? place_put_finish(w->put, e) : s;
}
