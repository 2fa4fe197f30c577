/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows come first: they are gathered to blocks, whose columns are encoded and written at once, so a
 * writer needs the memory of one block, whatever the part's size. The tables follow, then the table
 * of contents. The file has a temporary name until it is whole and durable.
 */
#include "store/part.h"

#include "base/clock.h"
#include "codec/codec.h"
#include "store/part_index.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#define SECTION_BYTES_MAX ((size_t)4 << 30)
#define HEADER_BYTES 32
/* A stretch of fewer rows is not worth a block that ends with it. */
#define STRETCH_ROWS_MIN 16384
/* A total has at most one row for so many that it stands for. */
#define TOTAL_GAIN_MIN 4
/* An index of locations may have so many pairs, and one more for each 8 rows. */
#define INDEX_PAIRS_MIN 16384
/* Tables of merged parts stay for long: an eighth less of the trie for a little of the background's
 * time. */
#define TABLES_LEVEL_MERGED 6

struct series_span {
	int64_t first_ns;
	int64_t last_ns;
	uint64_t rows;
};

/* What rows since `first_block` sum up to, by node. */
struct total {
	int64_t *sums;
	uint64_t first_block;
	uint64_t rows, samples;
};

struct part_writer {
	char dir[STORE_PATH_MAX];
	char tmp[STORE_PATH_MAX];
	char path[STORE_PATH_MAX];
	bool finished;
	int fd;
	uint64_t id;
	uint64_t at; /* bytes of the file so far */
	struct column_writer columns;
	struct buf data;   /* bytes of the section or block at hand */
	struct buf header; /* column headers of the section at hand */
	struct buf blocks; /* BLOCKS */
	struct buf toc;
	uint64_t block_count;
	uint32_t toc_count;
	bool needs_ticks;
	uint64_t rows, samples;
	int64_t first_ns, last_ns;
	struct series_span *spans;
	uint64_t *periods_ns; /* of the series; 0: no timer's */
	uint32_t series_count;
	int64_t *rows_of[ROW_COLUMNS]; /* the block at hand */
	size_t block_rows;
	int64_t *values; /* one column of a table at hand */
	size_t values_cap;
	struct part_index index;
	/* TOTALS: of the stretch at hand, and of all */
	uint32_t node_count; /* 0: none are kept */
	int64_t slice_ns;
	struct part_slice slice; /* of the last row */
	uint32_t *kinds;         /* by series: equal for those of one tenant and type */
	uint32_t kind;
	struct total stretch, whole;
	struct buf totals, total_of_all; /* entries */
	uint64_t total_count;
};

void part_meta_deinit(struct part_meta *m)
{
	VEC_FREE(&m->covers);
	VEC_FREE(&m->replaces);
	VEC_FREE(&m->imports);
}

static enum status write_bytes(struct part_writer *w, struct str bytes, struct err *e)
{
	enum status s = store_io_pwrite(w->fd, bytes.p, bytes.len, w->at, w->tmp, e);
	if (s == OK)
		w->at += bytes.len;
	return s;
}

static enum status write_header(struct part_writer *w, struct err *e)
{
	uint8_t h[HEADER_BYTES] = "FIRNPART";
	h[8] = 1;  /* major */
	h[10] = 2; /* minor */
	memcpy(h + 16, &w->id, 8);
	uint32_t crc = codec_crc32c(0, h, HEADER_BYTES - 4);
	memcpy(h + HEADER_BYTES - 4, &crc, 4);
	return write_bytes(w, str_make(h, sizeof(h)), e);
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

enum status part_writer_open(const char *dir, uint64_t id, const struct tabs *t,
	const struct canon *c, struct part_writer **out, struct err *e)
{
	struct part_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(e, E_NOMEM, "a part's writer");
	w->fd = -1;
	w->id = id;
	w->series_count = t->series_count;
	w->first_ns = INT64_MAX;
	w->last_ns = INT64_MIN;
	column_writer_init(&w->columns);
	buf_init(&w->data, SECTION_BYTES_MAX);
	buf_init(&w->header, SECTION_BYTES_MAX);
	buf_init(&w->blocks, SECTION_BYTES_MAX);
	buf_init(&w->toc, SECTION_BYTES_MAX);
	w->spans = calloc(MAX(t->series_count, 1u), sizeof(*w->spans));
	w->periods_ns = calloc(MAX(t->series_count, 1u), sizeof(*w->periods_ns));
	w->kinds = calloc(MAX(t->series_count, 1u), sizeof(*w->kinds));
	buf_init(&w->totals, SECTION_BYTES_MAX);
	buf_init(&w->total_of_all, SECTION_BYTES_MAX);
	bool ok = w->spans && w->periods_ns && w->kinds;
	for (int i = ROW_SERIES; i < ROW_COLUMNS; i++) {
		w->rows_of[i] = malloc(BLOCK_ROWS_MAX * sizeof(int64_t));
		ok &= w->rows_of[i] != NULL;
	}
	if (ok) {
		take_periods(w, t, c);
		take_kinds(w, t, c);
	}
	unsigned long long name = id;
	enum status s = ok ? OK : err_set(e, E_NOMEM, "a part's writer");
	if (s == OK)
		s = store_path(w->dir, e, "%s", dir);
	if (s == OK)
		s = store_path(w->tmp, e, "%s/%016llx.tmp", dir, name);
	if (s == OK)
		s = store_path(w->path, e, "%s/%016llx.part", dir, name);
	if (s == OK)
		s = store_io_open(w->tmp, O_CREAT | O_EXCL | O_WRONLY, 0640, &w->fd, e);
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
	if (w->fd >= 0)
		close(w->fd);
	if (w->fd >= 0 && !w->finished)
		(void)!store_io_unlink(w->tmp, NULL);
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
	w->needs_ticks |= c.encoding == COLUMN_TICKS;
	c.offset += w->at;
	column_write_header(&w->header, &c);
	++*count;
	return buf_status(&w->header);
}

static enum status flush_block(struct part_writer *w, struct err *e)
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
	return write_bytes(w, buf_view(&w->data), e);
}

/* ---- totals ---- */

enum status part_writer_total(
	struct part_writer *w, uint32_t node_count, int64_t slice_ns, struct err *e)
{
	assert(w->rows == 0);
	w->slice_ns = slice_ns;
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
	return write_bytes(w, buf_view(&w->data), e);
}

/* The stretch's rows are all in blocks: its total, if not that of the whole, and a new stretch. */
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
static enum status begin_row(struct part_writer *w, const struct row *row, struct err *e)
{
	if (!w->node_count)
		return OK;
	bool here = row->time_ns >= w->slice.first_ns && row->time_ns <= w->slice.last_ns;
	if (w->rows && here && w->kinds[row->series] == w->kind)
		return OK;
	w->slice = part_slice_of(row->time_ns, w->slice_ns);
	w->kind = w->kinds[row->series];
	if (w->stretch.rows < STRETCH_ROWS_MIN)
		return OK;
	enum status s = flush_block(w, e);
	return s == OK ? end_stretch(w, false, e) : s;
}

static void add_to_stretch(struct part_writer *w, const struct row *row)
{
	struct total *t = &w->stretch;
	if (!w->node_count)
		return;
	assert(row->node < w->node_count);
	t->rows++;
	t->samples += (uint64_t)row->count;
	t->sums[row->node] = (int64_t)((uint64_t)t->sums[row->node] + (uint64_t)row->value);
}

/* Behind the last block. */
static enum status end_totals(struct part_writer *w, struct err *e)
{
	if (!w->node_count || !w->rows)
		return OK;
	enum status s = end_stretch(w, true, e);
	return s == OK ? encode_total(w, &w->whole, &w->total_of_all, e) : s;
}

enum status part_writer_row(struct part_writer *w, const struct row *row, struct err *e)
{
	assert(row->series < w->series_count);
	enum status s = begin_row(w, row, e);
	if (s != OK)
		return s;
	struct series_span *span = &w->spans[row->series];
	if (span->rows++ == 0)
		span->first_ns = span->last_ns = row->time_ns;
	span->first_ns = MIN(span->first_ns, row->time_ns);
	span->last_ns = MAX(span->last_ns, row->time_ns);
	w->first_ns = MIN(w->first_ns, row->time_ns);
	w->last_ns = MAX(w->last_ns, row->time_ns);
	w->rows++;
	w->samples += (uint64_t)row->count;
	add_to_stretch(w, row);
	s = part_index_row(&w->index, row->series, row->node, row->set);
	if (s != OK)
		return err_set(e, s, "the index of a part");
	size_t i = w->block_rows++;
	w->rows_of[ROW_SERIES][i] = row->series;
	w->rows_of[ROW_TIME][i] = row->time_ns;
	w->rows_of[ROW_NODE][i] = row->node;
	w->rows_of[ROW_VALUE][i] = row->value;
	w->rows_of[ROW_SET][i] = row->set;
	w->rows_of[ROW_COUNT][i] = row->count;
	return w->block_rows == BLOCK_ROWS_MAX ? flush_block(w, e) : OK;
}

uint64_t part_writer_bytes(const struct part_writer *w)
{
	return w->at;
}

/* ---- sections ---- */

static enum status add_section(
	struct part_writer *w, enum part_section kind, struct str bytes, struct err *e)
{
	buf_u16(&w->toc, (uint16_t)kind);
	buf_u16(&w->toc, kind == PART_NEEDS ? PART_FLAG_MUST_KNOW : 0);
	buf_u32(&w->toc, codec_crc32c(0, bytes.p, bytes.len));
	buf_u64(&w->toc, w->at);
	buf_u64(&w->toc, bytes.len);
	w->toc_count++;
	return write_bytes(w, bytes, e);
}

/* A table in the making: begin_table(), columns, end_table(). Failures stay in `status`. */
struct table {
	struct part_writer *w;
	size_t rows;
	uint32_t columns;
	enum status status;
};

static struct table begin_table(struct part_writer *w, size_t rows)
{
	struct table t = { .w = w, .rows = rows, .status = OK };
	buf_clear(&w->data);
	buf_clear(&w->header);
	if (!vec_grow(&w->values, &w->values_cap, MAX(rows, (size_t)1), sizeof(int64_t)))
		t.status = E_NOMEM;
	return t;
}

/* The column of w->values. */
static void end_column(struct table *t, uint8_t id)
{
	struct column c;
	if (t->status == OK)
		t->status = column_encode(
			&t->w->columns, id, t->w->values, t->rows, COLUMN_PLAIN, &t->w->data, &c);
	if (t->status != OK)
		return;
	column_write_header(&t->w->header, &c);
	t->columns++;
}

#define TABLE_COLUMN(t, id, i, value)                                       \
	do {                                                                \
		for (size_t i = 0; (t)->status == OK && i < (t)->rows; i++) \
			(t)->w->values[i] = (int64_t)(value);               \
		end_column((t), (id));                                      \
	} while (0)

static enum status end_table(struct table *t, enum part_section kind, struct err *e)
{
	struct part_writer *w = t->w;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, SECTION_BYTES_MAX);
	buf_varint(&out, t->rows);
	buf_varint(&out, t->columns);
	buf_str(&out, buf_view(&w->header));
	buf_str(&out, buf_view(&w->data));
	enum status s = t->status != OK ? t->status : buf_status(&w->header);
	if (s == OK)
		s = buf_status(&w->data);
	if (s == OK)
		s = buf_status(&out);
	if (s != OK)
		return err_set(e, s, "encoding section %d", kind);
	return add_section(w, kind, buf_view(&out), e);
}

static enum status write_texts(struct part_writer *w, enum part_section kind,
	const struct str *strings, const uint32_t *order, size_t count, struct err *e)
{
	struct table t = begin_table(w, count);
	TABLE_COLUMN(&t, 1, i, strings[order ? order[i] : i].len);
	CLEANUP(buf_deinit) struct buf all;
	buf_init(&all, SECTION_BYTES_MAX);
	for (size_t i = 0; i < count; i++)
		buf_str(&all, strings[order ? order[i] : i]);
	struct column c;
	if (t.status == OK)
		t.status = buf_status(&all);
	if (t.status == OK)
		t.status = column_encode_bytes(&w->columns, 2, buf_view(&all), &w->data, &c);
	if (t.status == OK) {
		column_write_header(&w->header, &c);
		t.columns++;
	}
	return end_table(&t, kind, e);
}

static enum status write_strings(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	struct str names[TABLES_NAMES_MAX + 1] = { STR("") };
	for (uint32_t i = 0; i < t->name_count; i++)
		names[i + 1] = t->names[i];
	enum status s = write_texts(w, PART_LABEL_STRINGS, t->label_strings, c->label_strings.order,
		c->label_strings.count, e);
	if (s == OK)
		s = write_texts(w, PART_SAMPLE_NAMES, names, NULL, t->name_count + 1, e);
	if (s == OK)
		s = write_texts(w, PART_SAMPLE_STRINGS, t->sample_strings, c->sample_strings.order,
			c->sample_strings.count, e);
	if (s == OK)
		s = write_texts(w, PART_SYMBOL_STRINGS, t->symbol_strings, c->symbol_strings.order,
			c->symbol_strings.count, e);
	return s;
}

static enum status write_series(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	const uint32_t *order = c->series.order, *text = c->label_strings.to;
	struct table tab = begin_table(w, t->series_count);
	TABLE_COLUMN(&tab, 1, i, text[t->series[order[i]].tenant]);
	for (int k = 0; k < TABLES_TYPE_PARTS; k++)
		TABLE_COLUMN(&tab, (uint8_t)(2 + k), i, text[t->series[order[i]].type[k]]);
	TABLE_COLUMN(&tab, 7, i, t->series[order[i]].delta);
	TABLE_COLUMN(&tab, 8, i, t->series[order[i]].period);
	TABLE_COLUMN(&tab, 9, i, t->series[order[i]].label_count);
	TABLE_COLUMN(&tab, 10, i, w->spans[i].first_ns);
	TABLE_COLUMN(&tab, 11, i, w->spans[i].last_ns);
	TABLE_COLUMN(&tab, 12, i, w->spans[i].rows);
	enum status s = end_table(&tab, PART_SERIES, e);
	if (s != OK)
		return s;
	size_t labels = 0;
	for (uint32_t i = 0; i < t->series_count; i++)
		labels += t->series[i].label_count;
	tab = begin_table(w, labels);
	for (int value = 0; value < 2; value++) {
		size_t n = 0;
		for (uint32_t i = 0; i < t->series_count && tab.status == OK; i++) {
			const struct tab_series *se = &t->series[order[i]];
			for (uint32_t j = 0; j < se->label_count; j++) {
				const struct profile_label *l = &t->labels[se->label_first + j];
				w->values[n++] = text[value ? l->value : l->name];
			}
		}
		end_column(&tab, (uint8_t)(1 + value));
	}
	return end_table(&tab, PART_SERIES_LABELS, e);
}

static enum status write_sets(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	size_t width = 1 + t->name_count;
	struct table tab = begin_table(w, t->set_count);
	for (size_t k = 0; k < width; k++)
		TABLE_COLUMN(&tab, (uint8_t)(k ? 16 + k : 1), i,
			c->sample_strings.to[t->sets[c->sets.order[i] * width + k]]);
	return end_table(&tab, PART_SAMPLE_SETS, e);
}

static enum status write_symbols(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	const uint32_t *text = c->symbol_strings.to, *order = c->functions.order;
	struct table tab = begin_table(w, t->function_count);
	TABLE_COLUMN(&tab, 1, i, text[t->functions[order[i]].name]);
	TABLE_COLUMN(&tab, 2, i, text[t->functions[order[i]].system_name]);
	TABLE_COLUMN(&tab, 3, i, text[t->functions[order[i]].filename]);
	TABLE_COLUMN(&tab, 4, i, t->functions[order[i]].start_line);
	enum status s = end_table(&tab, PART_FUNCTIONS, e);
	if (s != OK)
		return s;
	order = c->mappings.order;
	tab = begin_table(w, t->mapping_count);
	TABLE_COLUMN(&tab, 1, i, text[t->mappings[order[i]].filename]);
	TABLE_COLUMN(&tab, 2, i, text[t->mappings[order[i]].build_id]);
	TABLE_COLUMN(&tab, 3, i, t->mappings[order[i]].start);
	TABLE_COLUMN(&tab, 4, i, t->mappings[order[i]].limit);
	TABLE_COLUMN(&tab, 5, i, t->mappings[order[i]].offset);
	return end_table(&tab, PART_MAPPINGS, e);
}

static enum status write_locations(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	const uint32_t *order = c->locations.order;
	struct table tab = begin_table(w, t->location_count);
	TABLE_COLUMN(&tab, 1, i, c->mappings.to[t->locations[order[i]].mapping]);
	TABLE_COLUMN(&tab, 2, i, t->locations[order[i]].address);
	TABLE_COLUMN(&tab, 3, i, t->locations[order[i]].kind);
	TABLE_COLUMN(&tab, 4, i, t->locations[order[i]].line_count);
	enum status s = end_table(&tab, PART_LOCATIONS, e);
	if (s != OK)
		return s;
	size_t lines = 0;
	for (uint32_t i = 0; i < t->location_count; i++)
		lines += t->locations[i].line_count;
	tab = begin_table(w, lines);
	for (int k = 0; k < 3; k++) {
		size_t n = 0;
		for (uint32_t i = 0; i < t->location_count && tab.status == OK; i++) {
			const struct profile_location *l = &t->locations[order[i]];
			for (uint32_t j = 0; j < l->line_count; j++) {
				const struct profile_line *x = &t->lines[l->line_first + j];
				w->values[n++] = k == 0   ? c->functions.to[x->function]
						 : k == 1 ? x->line
							  : x->column;
			}
		}
		end_column(&tab, (uint8_t)(1 + k));
	}
	return end_table(&tab, PART_LINES, e);
}

static enum status write_trie(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	uint32_t n = t->node_count;
	const uint32_t *order = c->nodes.order;
	CLEANUP(free_cleanup) uint32_t *depth = calloc(n, sizeof(*depth));
	struct table tab = begin_table(w, n);
	if (!depth)
		return err_set(e, E_NOMEM, "a trie of %u nodes", n);
	for (uint32_t i = 1; i < n; i++)
		depth[i] = depth[c->nodes.to[t->parent[order[i]]]] + 1;
	TABLE_COLUMN(&tab, 1, i, i ? depth[i - 1] + 1 - depth[i] : 0);
	TABLE_COLUMN(&tab, 2, i, i ? c->locations.to[t->node_location[order[i]]] : 0);
	return end_table(&tab, PART_TRIE, e);
}

static enum status write_batches(
	struct part_writer *w, const struct batch_seen *batches, size_t count, struct err *e)
{
	struct table tab = begin_table(w, count);
	TABLE_COLUMN(&tab, 1, i, batches[i].id.lo);
	TABLE_COLUMN(&tab, 2, i, batches[i].id.hi);
	TABLE_COLUMN(&tab, 3, i, batches[i].arrived_ns);
	return end_table(&tab, PART_BATCHES, e);
}

/* Two tables: how many items each key has, and the items. */
static enum status write_lists(struct part_writer *w, const struct part_lists *l, size_t keys,
	enum part_section counts, struct err *e)
{
	if (!l->found)
		return OK;
	struct table tab = begin_table(w, keys);
	TABLE_COLUMN(&tab, 1, i, l->counts[i]);
	enum status s = end_table(&tab, counts, e);
	if (s != OK)
		return s;
	tab = begin_table(w, l->item_count);
	TABLE_COLUMN(&tab, 1, i, l->items[i]);
	return end_table(&tab, counts + 1, e);
}

static enum status write_index(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	CLEANUP(part_lists_deinit) struct part_lists sets = { 0 };
	CLEANUP(part_lists_deinit) struct part_lists locations = { 0 };
	uint32_t n = t->node_count;
	CLEANUP(free_cleanup) uint32_t *parent = calloc(n, sizeof(*parent));
	CLEANUP(free_cleanup) uint32_t *location = calloc(n, sizeof(*location));
	if (!parent || !location)
		return err_set(e, E_NOMEM, "the index of a part");
	for (uint32_t i = 1; i < n; i++) {
		parent[i] = c->nodes.to[t->parent[c->nodes.order[i]]];
		location[i] = c->locations.to[t->node_location[c->nodes.order[i]]];
	}
	struct part_trie trie = { parent, location, n, t->location_count };
	enum status s = part_index_sets(&w->index, t->series_count, &sets);
	if (s == OK)
		s = part_index_locations(
			&w->index, &trie, INDEX_PAIRS_MIN + w->rows / 8, &locations);
	if (s != OK)
		return err_set(e, s, "the index of a part");
	s = write_lists(w, &sets, t->series_count, PART_SERIES_SET_COUNTS, e);
	return s == OK ? write_lists(w, &locations, t->location_count, PART_LOCATION_COUNTS, e) : s;
}

static enum status write_blocks(struct part_writer *w, struct err *e)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, SECTION_BYTES_MAX);
	buf_varint(&out, w->block_count);
	buf_str(&out, buf_view(&w->blocks));
	enum status s = buf_status(&out);
	if (s != OK)
		return err_set(
			e, s, "the index of %llu blocks", (unsigned long long)w->block_count);
	return add_section(w, PART_BLOCKS, buf_view(&out), e);
}

static enum status write_totals(struct part_writer *w, struct err *e)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, SECTION_BYTES_MAX);
	if (w->total_count == 0)
		return OK;
	buf_varint(&out, w->total_count);
	buf_str(&out, buf_view(&w->total_of_all));
	buf_str(&out, buf_view(&w->totals));
	enum status s = buf_status(&out);
	if (s != OK)
		return err_set(e, s, "%llu totals", (unsigned long long)w->total_count);
	return add_section(w, PART_TOTALS, buf_view(&out), e);
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
	buf_init(&out, SECTION_BYTES_MAX);
	buf_init(&list, SECTION_BYTES_MAX);
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
	if (m->slice_ns)
		meta_number(&out, 14, (uint64_t)m->slice_ns);
	enum status s = buf_status(&out);
	if (s != OK)
		return err_set(e, s, "encoding a part's META");
	return add_section(w, PART_META, buf_view(&out), e);
}

static enum status write_needs(struct part_writer *w, const struct part_meta *m, struct err *e)
{
	uint8_t needs[PART_NEED_MAX];
	size_t n = 0;
	if (w->needs_ticks)
		needs[n++] = PART_NEED_TICKS;
	if (m->slice_ns)
		needs[n++] = PART_NEED_SLICES;
	return n ? add_section(w, PART_NEEDS, str_make(needs, n), e) : OK;
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
	buf_init(&out, SECTION_BYTES_MAX);
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
	return write_bytes(w, buf_view(&out), e);
}

static enum status write_tables(
	struct part_writer *w, const struct tabs *t, const struct canon *c, struct err *e)
{
	enum status s = write_strings(w, t, c, e);
	if (s == OK)
		s = write_series(w, t, c, e);
	if (s == OK)
		s = write_sets(w, t, c, e);
	if (s == OK)
		s = write_symbols(w, t, c, e);
	if (s == OK)
		s = write_locations(w, t, c, e);
	if (s == OK)
		s = write_trie(w, t, c, e);
	return s == OK ? write_index(w, t, c, e) : s;
}

enum status part_writer_finish(struct part_writer *w, const struct tabs *t, const struct canon *c,
	struct part_meta *meta, const struct batch_seen *batches, size_t batch_count, struct err *e)
{
	enum status s = flush_block(w, e);
	if (s == OK)
		s = end_totals(w, e);
	uint64_t samples_end = w->at;
	meta->id = w->id;
	meta->rows = w->rows;
	meta->samples = w->samples;
	meta->first_ns = w->rows ? w->first_ns : 0;
	meta->last_ns = w->rows ? w->last_ns : 0;
	meta->written_ns = clock_realtime_ns();
	w->columns.level = meta->level ? TABLES_LEVEL_MERGED : 1;
	if (s == OK)
		s = write_tables(w, t, c, e);
	if (s == OK && batch_count)
		s = write_batches(w, batches, batch_count, e);
	if (s == OK)
		s = write_blocks(w, e);
	if (s == OK)
		s = write_totals(w, e);
	if (s == OK)
		s = write_needs(w, meta, e);
	if (s == OK)
		s = write_meta(w, meta, e);
	if (s == OK)
		s = write_end(w, samples_end, e);
	if (s == OK)
		s = store_io_sync(w->fd, w->tmp, e);
	if (s == OK)
		s = store_io_rename(w->tmp, w->path, e);
	if (s != OK)
		return s;
	w->finished = true;
	s = store_io_sync_dir(w->dir, e);
	if (s != OK)
		(void)!store_io_unlink(w->path, NULL);
	return s;
}
