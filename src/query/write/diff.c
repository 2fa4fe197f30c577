/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two queries compared by function. Growth is the difference between a function's share of each
 * side's total, so that runs of different length can be compared; values are not scaled.
 *
 * How: two tables as query_top() makes them, so that a frame has the same name and value in all
 * three, joined by name, binary and kind. The tables are made one after the other, so that neither
 * query holds memory while the other waits.
 */
#include "query/plan/plan.h"
#include "query/write/formats.h"
#include "query/write/json.h"
#include "query/write/text.h"
#include "query/write/write.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct change {
	struct str name, binary;
	uint8_t kind;
	int64_t self, total, base_self, base_total;
	double growth; /* of its share of the total */
};

struct changes {
	struct change *v;
	uint32_t count;
	int64_t total, base_total;
	struct str unit;
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
	int by_text = str_cmp(a->name, b->name);
	return by_text ? by_text : str_cmp(a->binary, b->binary);
}

static int compare_names(const void *pa, const void *pb)
{
	const struct query_row *a = pa, *b = pb;
	int by_text = str_cmp(a->name, b->name);
	if (by_text == 0)
		by_text = str_cmp(a->binary, b->binary);
	return by_text ? by_text : (int)a->kind - (int)b->kind;
}

static void sort_rows(struct query_table *t)
{
	if (t->count > 1)
		qsort(t->rows, t->count, sizeof(*t->rows), compare_names);
}

/* Joins both tables in the order of names; a function that one side lacks is 0 there. */
static enum status make_changes(struct query_table *side, struct query_table *base,
	double worse_above, struct arena *a, struct changes *out, struct err *e)
{
	size_t rows = (size_t)side->count + base->count;
	*out = (struct changes){ .total = side->total,
		.base_total = base->total,
		.unit = side->functions || !base->functions ? side->unit : base->unit };
	out->v = ARENA_ARRAY(a, struct change, rows);
	if (!out->v)
		return err_set(e, arena_status(a), "%zu functions", rows);
	sort_rows(side);
	sort_rows(base);
	for (uint32_t i = 0, k = 0; i < side->count || k < base->count;) {
		const struct query_row *x = i < side->count ? &side->rows[i] : NULL;
		const struct query_row *y = k < base->count ? &base->rows[k] : NULL;
		int order = !x ? 1 : !y ? -1 : compare_names(x, y);
		const struct query_row *any = order <= 0 ? x : y;
		struct change c = { .name = any->name, .binary = any->binary, .kind = any->kind };
		if (order <= 0) {
			c.self = x->self;
			c.total = x->total;
			i++;
		}
		if (order >= 0) {
			c.base_self = y->self;
			c.base_total = y->total;
			k++;
		}
		c.growth = share(c.self, out->total) - share(c.base_self, out->base_total);
		out->worse |= worse_above >= 0 && c.growth > worse_above;
		out->v[out->count++] = c;
	}
	if (out->count > 1)
		qsort(out->v, out->count, sizeof(*out->v), compare_changes);
	return OK;
}

/* Fails where there is nothing to compare, so that a check for "got worse" does not pass. With a
 * filter one side may be without samples: then a function is new, or gone. */
static enum status check_sides(const struct query_engine *q, const struct query_request *side,
	const struct query_request *base, const struct changes *c, struct err *e)
{
	bool none = c->total == 0, base_none = c->base_total == 0;
	if (side->match.len > 0 ? !(none && base_none) : !(none || base_none))
		return OK;
	enum status s = query_nothing(q, none ? side : base, STR(""), e);
	if (s != E_NOTFOUND)
		return s;
	return err_prefix(e, s, "nothing to compare: %s no samples",
		none && base_none ? "both sides have"
		: none            ? "the selector and time range have"
				  : "the base has");
}

/* "worse" comes first, so that a script sees it without reading further. */
static void write_json(const struct changes *c, uint32_t limit, struct buf *b)
{
	buf_printf(b, "{\"worse\":%s", c->worse ? "true" : "false");
	query_json_pair_str(b, "unit", c->unit);
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

static void side_row(struct query_text *t, const char *name, const struct query_request *r,
	int64_t total, struct str unit)
{
	char time[32];
	query_text_cell(t, str_of(name));
	query_text_time(r->from_ns, time);
	query_text_cell(t, str_of(time));
	query_text_time(r->to_ns, time);
	query_text_cell(t, str_of(time));
	query_text_value(t, total, unit);
	query_text_cell(t, r->selector.len ? r->selector : STR("{}"));
}

/* Names both sides: selector and time range. */
static void write_sides(const struct changes *c, const struct query_request *side,
	const struct query_request *base, struct buf *b)
{
	static const char *const heads[] = { "", "FROM", "TO", "TOTAL", "SELECTOR" };
	CLEANUP(query_text_deinit) struct query_text t;
	query_text_begin(&t, ARRAY_COUNT(heads), b->max);
	query_text_right(&t, 3);
	query_text_fit(&t, 0, side->width);
	for (uint32_t i = 0; i < ARRAY_COUNT(heads); i++)
		query_text_cell(&t, str_of(heads[i]));
	side_row(&t, "this", side, c->total, c->unit);
	side_row(&t, "base", base, c->base_total, c->unit);
	query_text_end(&t, b);
	buf_cstr(b, "\n");
}

static void write_text(const struct changes *c, const struct query_request *side,
	const struct query_request *base, struct buf *b)
{
	static const char *const heads[] = { "CHANGE", "SELF%", "BASE%", "SELF", "BASE", "PLACE",
		"FUNCTION" };
	CLEANUP(query_text_deinit) struct query_text t;
	query_text_begin(&t, ARRAY_COUNT(heads), b->max);
	for (uint32_t i = 0; i < ARRAY_COUNT(heads); i++)
		query_text_cell(&t, str_of(heads[i]));
	for (uint32_t i = 0; i < 5; i++)
		query_text_right(&t, i);
	query_text_fit(&t, 5, side->width);
	for (uint32_t i = 0; i < c->count && (side->limit == 0 || i < side->limit); i++) {
		const struct change *x = &c->v[i];
		char change[32];
		snprintf(change, sizeof(change), "%+.2f%%", 100 * x->growth);
		query_text_cell(&t, str_of(change));
		query_text_share(&t, x->self, c->total);
		query_text_share(&t, x->base_self, c->base_total);
		query_text_value(&t, x->self, c->unit);
		query_text_value(&t, x->base_self, c->unit);
		query_text_binary(&t, x->binary, x->kind);
		query_text_cell(&t, x->name);
	}
	buf_cstr(b, c->worse ? "worse: a function's share grew beyond the limit\n\n" : "");
	write_sides(c, side, base, b);
	if (c->count > 0)
		query_text_end(&t, b);
}

enum status query_write_diff(const struct query_engine *q, const struct query_request *side,
	const struct query_request *base, double worse_above, enum query_format format,
	struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	struct query_request whole = *side, other = *base;
	struct query_table t, u;
	struct changes changes;
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	whole.limit = other.limit = 0;
	enum status s = query_format_check(format, e);
	if (s == OK)
		s = query_top(q, &whole, &a, &t, e);
	if (s == OK)
		s = query_top(q, &other, &a, &u, e);
	if (s == OK)
		s = make_changes(&t, &u, worse_above, &a, &changes, e);
	if (s == OK && (worse_above >= 0 || side->required))
		s = check_sides(q, side, base, &changes, e);
	if (s != OK)
		return s;
	if (format == QUERY_JSON)
		write_json(&changes, side->limit, out);
	else
		write_text(&changes, side, base, out);
	return query_written(out, e);
}
