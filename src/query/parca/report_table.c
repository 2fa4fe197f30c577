/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parca's table (pkg/query/table.go) and source report (sources.go), as Arrow records. Dictionary
 * indices are as wide as Parca declares them: by this schema a table cannot have more mapped files
 * or system names than 16 bits can number.
 */
#include "query/fold/fold.h"
#include "query/plan/plan.h"
#include "query/stacks/stacks.h"

#include "arrow/arrow.h"

#define RECORD_BYTES_MAX ((size_t)1 << 30)

struct table {
	const struct query_tree *t;
	const struct query_report_request *r;
	struct query_key_rows rows;
	struct arena *a;
	struct arrow_writer w;
	size_t count;
	int64_t *ints;
	uint8_t *valid;
	uint32_t *indices;
	struct str *texts;
	size_t text_count;
	struct map text_index;
	bool no_memory, too_many;
};

static enum status make_columns(struct table *t, size_t ints, struct err *e)
{
	t->ints = ARENA_ARRAY(t->a, int64_t, MAX(ints, t->count));
	t->valid = ARENA_ARRAY(t->a, uint8_t, t->count);
	t->indices = ARENA_ARRAY(t->a, uint32_t, t->count + 1);
	t->texts = ARENA_ARRAY(t->a, struct str, t->count);
	if (!t->ints || !t->valid || !t->indices || !t->texts)
		return err_set(e, arena_status(t->a), "table of %zu functions", t->count);
	return OK;
}

static const struct query_key_row *row_of(const struct table *t, size_t i)
{
	return &t->rows.v[t->rows.order[i]];
}

static struct query_line_texts texts_of(const struct table *t, size_t i)
{
	return query_line_texts(&t->t->stacks.tables, &t->t->lines.v[row_of(t, i)->line]);
}

/* ---- texts ---- */

static bool text_equal(const void *ctx, uint32_t value, const void *key)
{
	return str_eq(((const struct table *)ctx)->texts[value], *(const struct str *)key);
}

static void begin_texts(struct table *t)
{
	map_clear(&t->text_index);
	t->text_count = 0;
	memset(t->valid, 0, t->count);
}

static void set_text(struct table *t, size_t i, struct str text)
{
	uint64_t hash = hash64(text.p, text.len);
	uint32_t at = map_find(&t->text_index, hash, text_equal, t, &text);
	if (at == MAP_NONE) {
		at = (uint32_t)t->text_count++;
		t->texts[at] = text;
		t->no_memory |= !map_insert(&t->text_index, hash, at);
	}
	t->valid[i] = 1;
	t->indices[i] = at;
}

/* If no row has any text, all are null rather than empty, as in Parca. */
static void put_texts(struct table *t, struct str name, uint8_t bits, bool is_signed)
{
	if (t->text_count == 1 && t->texts[0].len == 0)
		begin_texts(t);
	t->too_many |= bits == 16 && t->text_count > (size_t)UINT16_MAX + 1;
	arrow_write_column(&t->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_DICT_UTF8,
					  .bits = bits,
					  .is_signed = is_signed,
					  .indices = t->indices,
					  .texts = t->texts,
					  .text_count = t->text_count,
					  .valid = t->valid });
}

static void put_mappings(struct table *t)
{
	begin_texts(t);
	for (size_t i = 0; i < t->count; i++) {
		struct query_line_texts x = texts_of(t, i);
		if (x.has_mapping)
			set_text(t, i, x.mapping);
	}
	put_texts(t, STR("mapping_file"), 16, false);
	begin_texts(t);
	for (size_t i = 0; i < t->count; i++) {
		struct query_line_texts x = texts_of(t, i);
		if (x.has_mapping)
			set_text(t, i, x.build_id);
	}
	put_texts(t, STR("mapping_build_id"), 16, false);
}

static void put_functions(struct table *t)
{
	const struct {
		struct str name;
		size_t at;
		uint8_t bits;
	} columns[] = {
		{ STR("function_name"), offsetof(struct query_line_texts, function), 32 },
		{ STR("function_system_name"), offsetof(struct query_line_texts, system_name), 16 },
		{ STR("function_file_name"), offsetof(struct query_line_texts, file), 32 },
	};
	for (size_t k = 0; k < ARRAY_COUNT(columns); k++) {
		begin_texts(t);
		for (size_t i = 0; i < t->count; i++) {
			struct query_line_texts x = texts_of(t, i);
			struct str text;
			memcpy(&text, (const char *)&x + columns[k].at, sizeof(text));
			if (x.has_function)
				set_text(t, i, text);
		}
		put_texts(t, columns[k].name, columns[k].bits, false);
	}
}

/* ---- numbers ---- */

static void put_ints(
	struct table *t, struct str name, bool is_signed, bool with_nulls, bool nullable)
{
	arrow_write_column(&t->w, &(struct arrow_write_column){ .name = name,
					  .kind = ARROW_WRITE_INT,
					  .bits = 64,
					  .is_signed = is_signed,
					  .nullable = nullable,
					  .valid = with_nulls ? t->valid : NULL,
					  .ints = t->ints });
}

static void put_lines(struct table *t)
{
	for (size_t i = 0; i < t->count; i++)
		t->ints[i] = (int64_t)texts_of(t, i).address;
	put_ints(t, STR("location_address"), false, false, false);
	for (size_t i = 0; i < t->count; i++) {
		struct query_line_texts x = texts_of(t, i);
		t->ints[i] = x.line;
		t->valid[i] = x.has_function;
	}
	put_ints(t, STR("location_line"), true, true, false);
	for (size_t i = 0; i < t->count; i++) {
		t->ints[i] = texts_of(t, i).start_line;
		t->valid[i] = t->ints[i] > 0;
	}
	put_ints(t, STR("function_startline"), true, true, false);
}

/* Without a comparison the difference of the totals is null, and that of the own values 0, as in
 * Parca. */
static void put_values(struct table *t)
{
	for (size_t i = 0; i < t->count; i++)
		t->ints[i] = row_of(t, i)->total;
	put_ints(t, STR("cumulative"), true, false, false);
	for (size_t i = 0; i < t->count; i++) {
		t->ints[i] = row_of(t, i)->total_diff;
		t->valid[i] = t->r->diff;
	}
	put_ints(t, STR("cumulative_diff"), true, true, true);
	for (size_t i = 0; i < t->count; i++)
		t->ints[i] = row_of(t, i)->self;
	put_ints(t, STR("flat"), true, false, false);
	for (size_t i = 0; i < t->count; i++)
		t->ints[i] = t->r->diff ? row_of(t, i)->self_diff : 0;
	put_ints(t, STR("flat_diff"), true, false, false);
}

/* A list for each row: the rows of its callers or callees, ascending. */
static void put_neighbors(struct table *t, bool callers)
{
	const struct query_key_rows *r = &t->rows;
	uint32_t *offsets = t->indices;
	memset(offsets, 0, (t->count + 1) * sizeof(*offsets));
	for (size_t i = 0; i < r->edges.len; i++) {
		const struct query_key_edge *edge = &r->edges.v[i];
		offsets[r->v[callers ? edge->callee : edge->caller].row]++;
	}
	uint32_t sum = 0;
	for (size_t i = 0; i <= t->count; i++) {
		uint32_t n = i < t->count ? offsets[i] : 0;
		if (i < t->count)
			t->valid[i] = n > 0;
		offsets[i] = sum;
		sum += n;
	}
	/* Each list grows at its offset; afterwards each offset has moved to the begin of the next
	 * list. */
	for (size_t i = 0; i < r->edges.len; i++) {
		const struct query_key_edge *edge = &r->edges.v[i];
		uint32_t at = r->v[callers ? edge->callee : edge->caller].row;
		uint32_t other = r->v[callers ? edge->caller : edge->callee].row;
		t->ints[offsets[at]++] = other;
	}
	for (size_t i = t->count; i > 0; i--)
		offsets[i] = offsets[i - 1];
	offsets[0] = 0;
	arrow_write_column(&t->w,
		&(struct arrow_write_column){ .name = callers ? STR("callers") : STR("callees"),
			.kind = ARROW_WRITE_LIST,
			.bits = 64,
			.is_signed = true,
			.ints = t->ints,
			.offsets = offsets,
			.valid = t->valid });
}

static enum status end_record(struct table *t, struct buf *out, struct err *e)
{
	enum status s = arrow_write_end(&t->w, false, out, e);
	map_deinit(&t->text_index);
	if (s == OK && t->no_memory)
		return err_set(e, E_NOMEM, "table of %zu functions", t->count);
	if (s == OK && t->too_many)
		return err_set(e, E_LIMIT,
			"a table of more than 65536 mapped files or system names, which its schema "
			"cannot hold: choose a narrower selector");
	return s;
}

static enum status write_table(struct table *t, struct buf *out, struct err *e)
{
	enum status s = make_columns(t, t->rows.edges.len, e);
	if (s != OK)
		return s;
	arrow_write_begin(&t->w, t->count, ARROW_WRITE_LZ4, RECORD_BYTES_MAX);
	put_mappings(t);
	put_lines(t);
	put_functions(t);
	put_values(t);
	put_neighbors(t, true);
	put_neighbors(t, false);
	return end_record(t, out, e);
}

/* The rows by these keys; not for a chart. */
static enum status make_table(struct table *t, const struct query_engine *q, unsigned by,
	bool edges, struct query_tree *tree, struct err *e)
{
	struct query_report_request plain = *t->r;
	plain.by = by;
	plain.chart = false;
	enum status s = query_tree_make(tree, q, &plain, t->a, e);
	if (s != OK)
		return s;
	t->t = tree;
	s = query_rows_make(&t->rows, tree, plain.invert, edges, t->a, e);
	t->count = t->rows.count;
	return s;
}

enum status query_table_arrow(const struct query_engine *q, const struct query_report_request *r,
	struct buf *out, struct query_report *info, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_tree_deinit) struct query_tree tree = { 0 };
	struct table t = { .r = r, .a = &a };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	enum status s = make_table(&t, q, 0, true, &tree, e);
	if (s == OK)
		s = write_table(&t, out, e);
	if (s == OK)
		query_tree_info(&tree, info);
	query_rows_deinit(&t.rows);
	return s;
}

/* ---- source ---- */

/* Equal, or `path` ends with '/' and `wanted`. */
static bool is_file(struct str path, struct str wanted)
{
	if (str_eq(path, wanted))
		return true;
	return wanted.len > 0 && str_ends(path, wanted) && path.len > wanted.len &&
	       path.p[path.len - wanted.len - 1] == '/';
}

struct source {
	struct table t;
	struct str build_id, filename;
};

static int compare_lines(const void *pa, const void *pb, void *ctx)
{
	const struct table *t = ctx;
	const struct query_key *keys = t->t->lines.keys;
	const struct query_key *a = &keys[*(const uint32_t *)pa], *b = &keys[*(const uint32_t *)pb];
	const struct profile *p = &t->t->stacks.tables;
	int by_file = str_cmp(profile_str(p, a->file), profile_str(p, b->file));
	return by_file ? by_file : a->line < b->line ? -1 : a->line > b->line;
}

/* Joins the functions of one line into one row: their keys follow each other once they are sorted.
 */
static void keep_lines(struct source *s)
{
	struct query_key_rows *r = &s->t.rows;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < r->count; i++) {
		struct query_line_texts x = texts_of(&s->t, i);
		bool from_it = s->build_id.len == 0 || str_eq(x.build_id, s->build_id);
		if (x.has_function && x.has_mapping && from_it && is_file(x.file, s->filename))
			r->order[kept++] = r->order[i];
	}
	r->count = kept;
	if (kept > 1)
		qsort_r(r->order, kept, sizeof(*r->order), compare_lines, &s->t);
}

static enum status write_source(struct source *s, struct buf *out, struct err *e)
{
	struct table *t = &s->t;
	t->count = t->rows.count;
	enum status st = make_columns(t, 0, e);
	if (st != OK)
		return st;
	arrow_write_begin(&t->w, t->count, ARROW_WRITE_LZ4, RECORD_BYTES_MAX);
	begin_texts(t);
	for (size_t i = 0; i < t->count; i++)
		set_text(t, i, texts_of(t, i).file);
	put_texts(t, STR("filename"), 32, true);
	for (size_t i = 0; i < t->count; i++)
		t->ints[i] = texts_of(t, i).line;
	put_ints(t, STR("line_number"), true, false, false);
	for (size_t i = 0; i < t->count; i++)
		t->ints[i] = row_of(t, i)->total;
	put_ints(t, STR("cumulative"), true, false, false);
	for (size_t i = 0; i < t->count; i++)
		t->ints[i] = row_of(t, i)->self;
	put_ints(t, STR("flat"), true, false, false);
	return end_record(t, out, e);
}

enum status query_source_arrow(const struct query_engine *q, const struct query_report_request *r,
	struct str build_id, struct str filename, struct buf *out, struct query_report *info,
	struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_tree_deinit) struct query_tree tree = { 0 };
	struct source source = {
		.t = { .r = r, .a = &a }, .build_id = build_id, .filename = filename
	};
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	unsigned by = QUERY_BY_SOURCE | (build_id.len ? QUERY_BY_MAPPING : 0);
	enum status s = make_table(&source.t, q, by, false, &tree, e);
	if (s == OK) {
		keep_lines(&source);
		s = write_source(&source, out, e);
	}
	if (s == OK)
		query_tree_info(&tree, info);
	query_rows_deinit(&source.t.rows);
	return s;
}
