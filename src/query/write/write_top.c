/* SPDX-License-Identifier: Apache-2.0 */
#include "query/plan/plan.h"
#include "query/write/formats.h"
#include "query/write/json.h"
#include "query/write/text.h"
#include "query/write/write.h"

#include "base/units.h"

#define PLACE_BYTES_MAX 4096

static void write_json(const struct query_table *t, struct buf *b)
{
	buf_u8(b, '{');
	query_json_pair_str(b, "unit", t->unit);
	query_json_pair_i64(b, "total", t->total);
	query_json_key(b, "rows");
	buf_u8(b, '[');
	for (uint32_t i = 0; i < t->count; i++) {
		const struct query_row *row = &t->rows[i];
		buf_cstr(b, i ? ",{" : "{");
		query_json_pair_str(b, "name", row->name);
		query_json_pair_str(b, "binary", row->binary);
		query_json_pair_str(b, "file", row->file);
		if (row->line)
			query_json_pair_i64(b, "line", row->line);
		query_json_pair_str(b, "kind", str_of(frame_kind_name(row->kind)));
		query_json_pair_i64(b, "self", row->self);
		query_json_pair_i64(b, "total", row->total);
		buf_u8(b, '}');
	}
	buf_cstr(b, "]}");
}

/* The binary; for code without one, its source file and the function's first line, since one file
 * has many functions of a name ("run", "<lambda>"). */
static void put_place(struct query_text *t, const struct query_row *row)
{
	bool is_source = row->line && row->binary.len && str_ends(row->file, row->binary);
	if (!is_source) {
		query_text_binary(t, row->binary, row->kind);
		return;
	}
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, PLACE_BYTES_MAX);
	buf_str(&text, str_sub(row->binary, 0, PLACE_BYTES_MAX - 16));
	buf_printf(&text, ":%u", row->line);
	query_text_cell(t, buf_view(&text));
}

static void write_text(const struct query_table *table, uint32_t width, struct buf *b)
{
	static const char *const heads[] = { "SELF", "SELF%", "TOTAL", "TOTAL%", "PLACE",
		"FUNCTION" };
	CLEANUP(query_text_deinit) struct query_text t;
	query_text_begin(&t, ARRAY_COUNT(heads), b->max);
	for (uint32_t i = 0; i < ARRAY_COUNT(heads); i++)
		query_text_cell(&t, str_of(heads[i]));
	for (uint32_t i = 0; i < 4; i++)
		query_text_right(&t, i);
	query_text_fit(&t, 4, width);
	for (uint32_t i = 0; i < table->count; i++) {
		const struct query_row *row = &table->rows[i];
		query_text_value(&t, row->self, table->unit);
		query_text_share(&t, row->self, table->total);
		query_text_value(&t, row->total, table->unit);
		query_text_share(&t, row->total, table->total);
		put_place(&t, row);
		query_text_cell(&t, row->name);
	}
	char total[UNITS_TEXT_MAX];
	buf_printf(b, "%s in %u functions", units_format(table->total, table->unit, total),
		table->functions);
	if (table->count < table->functions)
		buf_printf(b, ", %u shown", table->count);
	buf_cstr(b, "\n");
	if (table->count > 0) {
		buf_cstr(b, "\n");
		query_text_end(&t, b);
	}
}

enum status query_write_top(const struct query_engine *q, const struct query_request *r,
	enum query_format format, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	struct query_table t;
	enum status s = query_format_check(format, e);
	if (s == OK)
		s = query_top(q, r, &a, &t, e);
	if (s == OK && r->required && t.functions == 0 && t.total == 0)
		s = query_nothing(q, r, STR(""), e);
	if (s != OK)
		return s;
	if (format == QUERY_JSON)
		write_json(&t, out);
	else
		write_text(&t, r->width, out);
	return query_written(out, e);
}
