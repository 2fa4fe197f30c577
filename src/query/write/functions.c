/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which series ran a function, and when. The index of the store knows locations only; which of them
 * belong to the function is found here, once they have names.
 */
#include "query/plan/plan.h"
#include "query/report/report.h"
#include "query/stacks/stacks.h"
#include "query/write/formats.h"
#include "query/write/json.h"
#include "query/write/text.h"
#include "query/write/write.h"

#include "base/clock.h"

/* Names that are listed at most: the first that match. */
#define NAMES_MAX 100

struct asking {
	const struct query_engine *q;
	const struct query_request *r;
	struct arena *a;
	struct str *names; /* distinct */
	uint32_t name_count;
	uint32_t matched; /* functions, listed or not */
	uint32_t pending;
};

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Texts of the functions that match, sorted. */
static enum status list_names(
	struct asking *x, const struct query_lines *l, const struct profile *tables, struct err *e)
{
	uint32_t n = 0, lines = l->first[tables->locations.len];
	struct str *v = ARENA_ARRAY(x->a, struct str, MAX(l->key_count, 1u));
	uint8_t *listed = ARENA_ARRAY(x->a, uint8_t, MAX(l->key_count, 1u));
	if (!v || !listed)
		return err_set(e, arena_status(x->a), "%u functions", l->key_count);
	for (uint32_t i = l->first[1]; i < lines; i++) /* location 0 is none */
		if (l->v[i].seen && !listed[l->v[i].key]++)
			v[n++] = profile_str(tables, l->keys[l->v[i].key].name);
	qsort(v, n, sizeof(*v), by_text);
	x->names = v;
	x->name_count = x->matched = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (i && str_eq(v[i], v[i - 1]))
			continue;
		x->matched++;
		if (x->name_count == NAMES_MAX)
			continue;
		char *text = arena_copy(x->a, v[i].p, v[i].len);
		if (!text)
			return err_set(e, arena_status(x->a), "%u functions", n);
		v[x->name_count++] = str_make(text, v[i].len);
	}
	return OK;
}

static enum status choose(void *ctx, struct profile *tables, uint8_t *chosen, struct err *e)
{
	struct asking *x = ctx;
	struct query_shown room;
	struct query_report_request shown = query_shown_request(x->r, &room);
	struct query_lines l;
	uint32_t locations = (uint32_t)tables->locations.len;
	enum status s = OK;
	if (x->q->symbolizer)
		s = symbolizer_resolve(x->q->symbolizer, tables, QUERY_WAIT_MS, &x->pending, e);
	if (s == OK)
		s = query_lines_make(tables, &shown, x->a, &l, e);
	if (s != OK)
		return s;
	for (uint32_t i = 1; i < locations; i++)
		for (uint32_t k = l.first[i]; k < l.first[i + 1] && !chosen[i]; k++)
			chosen[i] = l.v[k].seen != 0;
	return list_names(x, &l, tables, e);
}

static void write_type(const struct samples_type *t, struct buf *out)
{
	struct selector sel = {
		.has_type = true,
		.type = { t->name, t->sample_type, t->sample_unit, t->period_type, t->period_unit },
		.delta = t->delta,
	};
	selector_write(out, &sel);
}

static void hit_json(const struct samples_hit *h, struct buf *text, struct buf *b)
{
	buf_clear(text);
	write_type(&h->type, text);
	buf_u8(b, '{');
	query_json_pair_str(b, "type", buf_view(text));
	buf_cstr(b, ",\"labels\":{");
	for (uint32_t i = 0; i < h->label_count; i++) {
		buf_cstr(b, i ? "," : "");
		buf_json_str(b, h->names[i]);
		buf_u8(b, ':');
		buf_json_str(b, h->values[i]);
	}
	buf_cstr(b, "},\"spans\":[");
	for (size_t i = 0; i < h->span_count; i++) {
		buf_cstr(b, i ? ",[" : "[");
		query_json_i64(b, h->spans[i].first_ns / NS_PER_MS);
		buf_u8(b, ',');
		query_json_i64(b, h->spans[i].last_ns / NS_PER_MS);
		buf_u8(b, ']');
	}
	buf_cstr(b, "]}");
}

static void write_json(const struct asking *x, const struct samples_hit *hits, size_t count,
	struct buf *text, struct buf *b)
{
	buf_u8(b, '{');
	query_json_pair_i64(b, "matched", x->matched);
	query_json_pair_i64(b, "pending", x->pending);
	buf_cstr(b, ",\"functions\":[");
	for (uint32_t i = 0; i < x->name_count; i++) {
		buf_cstr(b, i ? "," : "");
		buf_json_str(b, x->names[i]);
	}
	buf_cstr(b, "],\"series\":[");
	for (size_t i = 0; i < count; i++) {
		buf_cstr(b, i ? "," : "");
		hit_json(&hits[i], text, b);
	}
	buf_cstr(b, "]}");
}

static void write_text(
	const struct samples_hit *hits, size_t count, struct buf *text, struct buf *b)
{
	struct query_text t;
	query_text_begin(&t, 3, QUERY_REPORT_BYTES_MAX);
	query_text_cell(&t, STR("FIRST"));
	query_text_cell(&t, STR("LAST"));
	query_text_cell(&t, STR("SERIES"));
	for (size_t i = 0; i < count; i++) {
		const struct samples_hit *h = &hits[i];
		char first[32], last[32];
		query_text_time(h->type.first_ns, first);
		query_text_time(h->type.last_ns, last);
		query_text_cell(&t, str_of(first));
		query_text_cell(&t, str_of(last));
		buf_clear(text);
		write_type(&h->type, text);
		for (uint32_t k = 0; k < h->label_count; k++)
			buf_printf(text, "%s%.*s=%.*s", k ? "," : " ", STR_ARG(h->names[k]),
				STR_ARG(h->values[k]));
		query_text_cell(&t, buf_view(text));
	}
	if (count == 0)
		buf_cstr(b, "no series ran such a function in this time range\n");
	else
		query_text_end(&t, b);
	query_text_deinit(&t);
}

enum status query_write_functions(const struct query_engine *q, const struct query_request *r,
	enum query_format format, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf text;
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	buf_init(&text, 1 << 20);
	struct asking x = { .q = q, .r = r, .a = &a };
	struct samples_hit *hits = NULL;
	size_t count = 0;
	enum status s = query_format_check(format, e);
	if (s == OK && r->match.len == 0)
		s = err_set(e, E_INVALID, "match: a part of the function's name is missing");
	if (s == OK)
		s = query_plan_open(q, r, false, &a, &plan, e);
	if (s == OK)
		s = plan.view->ops->where(plan.view, &plan.store, choose, &x, &a, &hits, &count, e);
	if (s == OK && r->required && count == 0)
		s = query_nothing(q, r, STR(""), e);
	if (s != OK)
		return s;
	if (format == QUERY_JSON)
		write_json(&x, hits, count, &text, out);
	else
		write_text(hits, count, &text, out);
	return query_written(out, e);
}
