/* SPDX-License-Identifier: Apache-2.0 */
#include "store/part/part.h"

#include "base/reader.h"
#include "codec/codec.h"
#include "store/part/part_table.h"

#include <stdlib.h>

#define BLOCKS_MAX (1u << 24)
#define BATCHES_BYTES_MAX ((uint64_t)1 << 30)
#define STORED_BYTES_MAX ((size_t)1 << 30)
/* Some values of a row, of which a group takes this many bytes on disk at least. */
#define BLOCK_BYTES_MIN 8
#define VERIFY_GROUPS (PART_LOAD_ALL | PART_LOAD_INDEX | PART_LOAD_KINDS)

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
	pthread_mutex_lock(&p->lock);
	p->load_limit = BATCHES_BYTES_MAX;
	enum status s = part_table_read(p, PART_BATCHES, &t, e);
	pthread_mutex_unlock(&p->lock);
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

static enum status verify_blocks(struct part *p, const struct tabs *t, struct err *e)
{
	CLEANUP(part_rows_deinit) struct part_rows rows;
	part_rows_init(&rows);
	uint64_t total = 0, samples = 0;
	size_t n;
	const struct part_block *blocks = part_blocks(p, &n);
	for (size_t i = 0; i < n; i++) {
		enum status s = part_read_block(p, t, &blocks[i], ~0u, &rows, e);
		if (s != OK)
			return s;
		total += rows.count;
		for (size_t j = 0; j < rows.count; j++) {
			samples += (uint64_t)rows.n[j];
			if (rows.n[j] < 1)
				return err_set(e, E_CORRUPT,
					"%s: block %zu, row %zu stands for %lld samples", p->path,
					i, j, (long long)rows.n[j]);
			if (rows.time_ns[j] < blocks[i].time_min ||
				rows.time_ns[j] > blocks[i].time_max ||
				rows.series[j] < blocks[i].series_min ||
				rows.series[j] > blocks[i].series_max ||
				rows.node[j] < blocks[i].node_min ||
				rows.node[j] > blocks[i].node_max)
				return err_set(e, E_CORRUPT,
					"%s: block %zu, row %zu is outside "
					"the block's bounds",
					p->path, i, j);
		}
	}
	if (total != p->meta.rows || samples != p->meta.samples)
		return err_set(e, E_CORRUPT,
			"%s: %llu rows of %llu samples, META says %llu of %llu", p->path,
			(unsigned long long)total, (unsigned long long)samples,
			(unsigned long long)p->meta.rows, (unsigned long long)p->meta.samples);
	return OK;
}

static enum status verify_totals(struct part *p, const struct tabs *t, struct err *e)
{
	CLEANUP(part_rows_deinit) struct part_rows rows;
	CLEANUP(free_cleanup) int64_t *want = calloc(MAX(t->node_count, 1u), sizeof(*want));
	CLEANUP(free_cleanup) int64_t *got = calloc(MAX(t->node_count, 1u), sizeof(*got));
	size_t n, block_count;
	const struct part_total *totals = part_totals(p, &n);
	const struct part_block *blocks = part_blocks(p, &block_count);
	part_rows_init(&rows);
	if (!want || !got)
		return err_set(e, E_NOMEM, "%s: totals of %u stacks", p->path, t->node_count);
	for (size_t i = 0; i < n; i++) {
		uint64_t samples = 0, ignored = 0;
		memset(want, 0, t->node_count * sizeof(*want));
		memset(got, 0, t->node_count * sizeof(*got));
		enum status s = part_sum_block(p, t, &totals[i].sums, &rows, got, &ignored, e);
		for (size_t k = 0; k < totals[i].count && s == OK; k++)
			s = part_sum_block(
				p, t, &blocks[totals[i].first + k], &rows, want, &samples, e);
		if (s != OK)
			return s;
		if (samples != totals[i].samples ||
			memcmp(want, got, t->node_count * sizeof(*got)) != 0)
			return err_set(e, E_CORRUPT,
				"%s: the total of blocks %zu to %zu is not what their rows sum up "
				"to",
				p->path, totals[i].first, totals[i].first + totals[i].count - 1);
	}
	return OK;
}

/* The kind of a series, where its rows of KIND_NAMES and KIND_VALUES have the label. */
static bool kind_has(const struct tabs *t, const struct tab_kind *x, const struct profile_label *l)
{
	for (uint32_t i = x->name_first; i < x->name_first + x->name_count; i++) {
		const struct tab_kind_name *n = &t->kind_names[i];
		uint32_t lo = 0, hi = n->value_count;
		if (n->name != l->name)
			continue;
		while (lo < hi) {
			uint32_t mid = (lo + hi) / 2;
			if (t->kind_values[n->value_first + mid] < l->value)
				lo = mid + 1;
			else
				hi = mid;
		}
		return lo < n->value_count && t->kind_values[n->value_first + lo] == l->value;
	}
	return false;
}

/* Ascending lists, whose pairs are as many as series have different ones. */
static bool lists_ascend(const struct tabs *t, const struct tab_kind *x)
{
	for (uint32_t i = x->name_first; i < x->name_first + x->name_count; i++) {
		const struct tab_kind_name *n = &t->kind_names[i];
		if (n->value_count == 0 || (i > x->name_first && n[-1].name >= n->name))
			return false;
		for (uint32_t k = n->value_first + 1; k < n->value_first + n->value_count; k++)
			if (t->kind_values[k - 1] >= t->kind_values[k])
				return false;
	}
	return true;
}

static bool same_kind(const struct tab_kind *x, const struct tab_series *s)
{
	return x->tenant == s->tenant && memcmp(x->type, s->type, sizeof(x->type)) == 0 &&
	       x->delta == s->delta;
}

static uint32_t kind_pairs(const struct tabs *t, const struct tab_kind *x)
{
	uint32_t n = 0;
	for (uint32_t i = x->name_first; i < x->name_first + x->name_count; i++)
		n += t->kind_names[i].value_count;
	return n;
}

static int by_pair(const void *a, const void *b)
{
	const struct profile_label *x = a, *y = b;
	if (x->name != y->name)
		return x->name < y->name ? -1 : 1;
	return x->value < y->value ? -1 : x->value > y->value;
}

/* Different pairs of labels of series[from .. to) that have rows; UINT32_MAX: no memory. */
static uint32_t series_pairs(const struct tabs *t, uint32_t from, uint32_t to)
{
	uint32_t n = 0, different = 0;
	CLEANUP(free_cleanup)
	struct profile_label *v = malloc(((size_t)t->label_count + 1) * sizeof(*v));
	if (!v)
		return UINT32_MAX;
	for (uint32_t i = from; i < to; i++) {
		const struct tab_series *s = &t->series[i];
		if (!s->rows)
			continue;
		memcpy(v + n, t->labels + s->label_first, s->label_count * sizeof(*v));
		n += s->label_count;
	}
	if (n)
		qsort(v, n, sizeof(*v), by_pair);
	for (uint32_t i = 0; i < n; i++)
		different += i == 0 || by_pair(&v[i - 1], &v[i]) != 0;
	return different;
}

/* The kind of series[*at] and those that follow it, behind which *at is then. */
static bool verify_kind(const struct tabs *t, const struct tab_kind *x, uint32_t *at)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	uint32_t from = *at, i = from;
	bool good = lists_ascend(t, x);
	for (; i < t->series_count && (!t->series[i].rows || same_kind(x, &t->series[i])); i++) {
		const struct tab_series *s = &t->series[i];
		if (!s->rows)
			continue;
		first = MIN(first, s->first_ns);
		last = MAX(last, s->last_ns);
		for (uint32_t k = 0; k < s->label_count && good; k++)
			good = kind_has(t, x, &t->labels[s->label_first + k]);
	}
	*at = i;
	return good && first == x->first_ns && last == x->last_ns &&
	       kind_pairs(t, x) == series_pairs(t, from, i);
}

static enum status verify_kinds(struct part *p, const struct tabs *t, struct err *e)
{
	uint32_t at = 0, i = 0;
	while (i < t->kind_count && verify_kind(t, &t->kinds[i], &at))
		i++;
	while (at < t->series_count && !t->series[at].rows)
		at++;
	if (i < t->kind_count || (t->kinds && at < t->series_count))
		return err_set(e, E_CORRUPT,
			"%s: kind %u: its labels and times are not those of its series", p->path,
			i);
	return OK;
}

static enum status verify_sections(struct part *p, struct err *e)
{
	for (size_t i = 0; i < p->section_count; i++) {
		if (p->sections[i].flags & PART_FLAG_PIECEWISE)
			continue;
		CLEANUP(buf_deinit) struct buf b;
		buf_init(&b, STORED_BYTES_MAX);
		enum status s = part_section_read(p, (enum part_section)p->sections[i].kind, &b, e);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status verify(struct part *p, uint64_t limit_bytes, bool batches_too, struct err *e)
{
	struct tabs t;
	enum status s = verify_sections(p, e);
	if (s == OK)
		s = part_pin(p, VERIFY_GROUPS, limit_bytes, &t, e);
	if (s != OK)
		return s;
	for (uint32_t i = 0; i < t.node_count && s == OK; i++)
		if (t.node_location[i] >= t.location_count)
			s = err_set(e, E_CORRUPT, "%s: trie node %u: location %u", p->path, i,
				t.node_location[i]);
	struct batch_seen *batches = NULL;
	size_t n;
	if (s == OK)
		s = verify_blocks(p, &t, e);
	if (s == OK)
		s = verify_totals(p, &t, e);
	if (s == OK)
		s = verify_kinds(p, &t, e);
	if (s == OK && batches_too)
		s = part_read_batches(p, &batches, &n, e);
	free(batches);
	part_unpin(p, VERIFY_GROUPS);
	return s;
}

enum status part_verify(struct part *p, struct err *e)
{
	return verify(p, UINT64_MAX, true, e);
}

enum status part_verify_import(struct part *p, uint64_t limit_bytes, struct err *e)
{
	return verify(p, limit_bytes, false, e);
}
