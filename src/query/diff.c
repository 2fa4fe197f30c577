/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two questions compared by function. What counts is a function's share of its own side's total, so
 * that runs of different length compare; values are as they are.
 */
#include "query/report.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct change {
	struct str name, binary;
	int64_t self, total, base_self, base_total;
	double growth; /* of its own share of the whole */
};

struct changes {
	struct change *v;
	uint32_t count;
	int64_t total, base_total;
	bool worse;
};

static double share(int64_t part, int64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static int compare_changes(const void *pa, const void *pb)
{
	const struct change *a = pa, *b = pb;
	double x = fabs(a->growth), y = fabs(b->growth);
	if (x != y)
		return x > y ? -1 : 1;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return str_cmp(a->name, b->name);
}

static struct change change_of(
	const struct query_calls *c, const struct query_key_row *row, const struct changes *all)
{
	const struct query_call *call = &c->v.v[row->call];
	struct query_line_texts t = query_line_texts(&c->stacks, call->location, call->line);
	struct change x = { .name = t.function,
		.binary = query_base_name(t.mapping),
		.self = row->self,
		.total = row->total,
		.base_self = query_sub(row->self, row->self_diff),
		.base_total = query_sub(row->total, row->total_diff) };
	x.growth = share(x.self, all->total) - share(x.base_self, all->base_total);
	return x;
}

static enum status make_changes(const struct query_calls *c, const struct query_key_rows *rows,
	double worse_above, struct arena *a, struct changes *out, struct err *e)
{
	*out = (struct changes){ .total = c->total,
		.base_total = query_sub(c->total, c->total_diff) };
	out->v = ARENA_ARRAY(a, struct change, rows->count);
	if (!out->v)
		return err_set(e, arena_status(a), "%u functions", rows->count);
	for (uint32_t i = 0; i < rows->count; i++) {
		struct change x = change_of(c, &rows->v[rows->order[i]], out);
		if (x.name.len == 0) {
			const struct query_call *call = &c->v.v[rows->v[rows->order[i]].call];
			char *name = arena_printf(a, "%.*s+0x%llx", STR_ARG(x.binary),
				(unsigned long long)c->stacks.tables.locations.v[call->location]
					.address);
			x.name = str_of(name ? name : "?");
		}
		out->worse |= worse_above >= 0 && x.growth > worse_above;
		out->v[out->count++] = x;
	}
	if (out->count > 1)
		qsort(out->v, out->count, sizeof(*out->v), compare_changes);
	return OK;
}

/* Who asks whether something got worse is not told "no" where nothing was compared. A filter may
 * leave one side without samples: then a function came, or went. */
static enum status check_sides(const struct changes *c, bool filtered, struct err *e)
{
	bool none = c->total == 0, base_none = c->base_total == 0;
	if (filtered ? !(none && base_none) : !(none || base_none))
		return OK;
	return err_set(e, E_NOTFOUND, "nothing to compare: %s no samples%s",
		none && base_none ? "both sides have"
		: none            ? "the selector and time range have"
				  : "the base has",
		filtered ? " with such a function" : "");
}

/* "worse" comes first, so that a script sees it without reading further. */
static void write_json(const struct changes *c, struct str unit, uint32_t limit, struct buf *b)
{
	buf_printf(b, "{\"worse\":%s", c->worse ? "true" : "false");
	query_json_pair_str(b, "unit", unit);
	query_json_pair_i64(b, "total", c->total);
	query_json_pair_i64(b, "base_total", c->base_total);
	query_json_key(b, "rows");
	buf_u8(b, '[');
	for (uint32_t i = 0; i < c->count && (limit == 0 || i < limit); i++) {
		const struct change *x = &c->v[i];
		buf_cstr(b, i ? ",{" : "{");
		query_json_pair_str(b, "name", x->name);
		query_json_pair_str(b, "binary", x->binary);
		query_json_pair_i64(b, "self", x->self);
		query_json_pair_i64(b, "total", x->total);
		query_json_pair_i64(b, "base_self", x->base_self);
		query_json_pair_i64(b, "base_total", x->base_total);
		query_json_key(b, "growth");
		buf_json_double(b, x->growth);
		buf_u8(b, '}');
	}
	buf_cstr(b, "]}");
}

static void write_text(
	const struct changes *c, struct str unit, uint32_t limit, uint32_t width, struct buf *b)
{
	static const char *const heads[] = { "CHANGE", "SELF%", "BASE%", "SELF", "BASE", "BINARY",
		"FUNCTION" };
	CLEANUP(query_text_deinit) struct query_text t;
	query_text_begin(&t, ARRAY_COUNT(heads), b->max);
	for (uint32_t i = 0; i < ARRAY_COUNT(heads); i++)
		query_text_cell(&t, str_of(heads[i]));
	for (uint32_t i = 0; i < 5; i++)
		query_text_right(&t, i);
	query_text_fit(&t, 5, width);
	for (uint32_t i = 0; i < c->count && (limit == 0 || i < limit); i++) {
		const struct change *x = &c->v[i];
		char change[32];
		snprintf(change, sizeof(change), "%+.2f%%", 100 * x->growth);
		query_text_cell(&t, str_of(change));
		query_text_share(&t, x->self, c->total);
		query_text_share(&t, x->base_self, c->base_total);
		query_text_value(&t, x->self, unit);
		query_text_value(&t, x->base_self, unit);
		query_text_cell(&t, x->binary);
		query_text_cell(&t, x->name);
	}
	buf_cstr(b, c->worse ? "worse: a function's share grew beyond the limit\n\n" : "");
	query_text_end(&t, b);
}

enum status query_write_diff(const struct query_engine *q, const struct query_report_request *r,
	double worse_above, uint32_t limit, enum query_format format, struct buf *out,
	struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct query_key_rows rows = { 0 };
	struct query_calls c;
	struct changes changes;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	enum status s = query_format_check(format, e);
	if (s == OK)
		s = query_calls_make(&c, q, r, &a, e);
	if (s != OK)
		return s;
	s = query_rows_make(&rows, &c, &a, e);
	if (s == OK)
		s = make_changes(&c, &rows, worse_above, &a, &changes, e);
	if (s == OK && worse_above >= 0)
		s = check_sides(&changes, r->filter_count > 0, e);
	if (s == OK && format == QUERY_JSON)
		write_json(&changes, c.stacks.unit, limit, out);
	else if (s == OK)
		write_text(&changes, c.stacks.unit, limit, r->width, out);
	query_rows_deinit(&rows);
	query_calls_deinit(&c);
	return s == OK ? query_written(out, e) : s;
}
