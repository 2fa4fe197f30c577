/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts the rows of all functions as requested, and keeps the first of them. */
#include "query/fold/fold.h"
#include "query/report/report.h"
#include "query/stacks/stacks.h"

static int compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct query_row *a = pa, *b = pb;
	bool by_total = ((const struct query_request *)ctx)->by_total;
	int64_t x = by_total ? a->total : a->self, y = by_total ? b->total : b->self;
	if (x == y) {
		x = by_total ? a->self : a->total;
		y = by_total ? b->self : b->total;
	}
	if (x != y)
		return x > y ? -1 : 1;
	int by_text = str_cmp(a->name, b->name);
	if (by_text == 0)
		by_text = str_cmp(a->binary, b->binary);
	return by_text ? by_text : (int)a->kind - (int)b->kind;
}

static bool keep_text(struct arena *a, struct str *s)
{
	char *copy = arena_copy(a, s->p, s->len);
	*s = str_make(copy, s->len);
	return copy;
}

/* Takes the rows that have a value. */
static uint32_t list_rows(
	const struct query_tree *t, const struct query_key_rows *keys, struct query_row *rows)
{
	const struct profile *tables = &t->stacks.tables;
	uint32_t count = 0;
	for (uint32_t i = 0; i < keys->count; i++) {
		uint32_t key = keys->order[i];
		const struct query_key_row *from = &keys->v[key];
		const struct query_key *k = &t->lines.keys[key];
		if (from->self == 0 && from->total == 0)
			continue;
		rows[count++] = (struct query_row){ .name = profile_str(tables, k->name),
			.binary = profile_str(tables, k->mapping),
			.file = profile_str(tables, t->lines.origins[key].file),
			.line = t->lines.origins[key].line,
			.kind = (uint8_t)k->file,
			.self = from->self,
			.total = from->total };
	}
	return count;
}

static enum status table_of(const struct query_tree *t, const struct query_request *r,
	struct arena *work, struct arena *a, struct query_table *out, struct err *e)
{
	CLEANUP(query_rows_deinit) struct query_key_rows keys = { 0 };
	enum status s = query_rows_make(&keys, t, false, false, work, e);
	if (s != OK)
		return s;
	struct query_row *rows = ARENA_ARRAY(work, struct query_row, keys.count);
	if (!rows)
		return err_set(e, arena_status(work), "table of %u functions", keys.count);
	uint32_t count = list_rows(t, &keys, rows);
	if (count > 1)
		qsort_r(rows, count, sizeof(*rows), compare_rows, (void *)(uintptr_t)r);
	out->functions = count;
	if (r->limit && count > r->limit)
		count = r->limit;
	out->rows = ARENA_ARRAY(a, struct query_row, count);
	if (!out->rows)
		return err_set(e, arena_status(a), "table of %u functions", count);
	for (out->count = 0; out->count < count; out->count++) {
		struct query_row *row = &out->rows[out->count];
		*row = rows[out->count];
		if (!keep_text(a, &row->name) || !keep_text(a, &row->binary) ||
			!keep_text(a, &row->file))
			return err_set(e, arena_status(a), "table of %u functions", count);
	}
	out->total = t->sum;
	return OK;
}

enum status query_top(const struct query_engine *q, const struct query_request *r, struct arena *a,
	struct query_table *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena work;
	CLEANUP(query_tree_deinit) struct query_tree t = { 0 };
	struct query_shown room;
	struct query_report_request request = query_shown_request(r, &room);
	struct query_table made = { 0 };
	arena_init(&work, a->limit - a->used);
	request.invert = false;
	enum status s = query_tree_make(&t, q, &request, &work, e);
	if (s == OK)
		s = table_of(&t, r, &work, a, &made, e);
	if (s != OK)
		return s;
	made.unit = t.stacks.unit.len ? t.stacks.unit : STR("count");
	if (!keep_text(a, &made.unit))
		return err_set(e, arena_status(a), "unit");
	*out = made;
	return OK;
}
