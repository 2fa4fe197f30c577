/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: types, label names and label values come from the store's index; here they are written.
 */
#include "query/plan/plan.h"
#include "query/write/formats.h"
#include "query/write/json.h"
#include "query/write/text.h"
#include "query/write/write.h"

#include "base/clock.h"

enum status query_format_check(enum query_format format, struct err *e)
{
	if (format < QUERY_FOLDED)
		return OK;
	return err_set(e, E_INVALID, "this format is for flame graphs only");
}

enum status query_written(const struct buf *out, struct err *e)
{
	enum status s = buf_status(out);
	return s == OK ? OK : err_set(e, s, "the answer is larger than %zu MiB", out->max >> 20);
}

/* ---- types ---- */

static struct str type_text(struct buf *text, const struct samples_type *t)
{
	const struct str parts[] = { t->name, t->sample_type, t->sample_unit, t->period_type,
		t->period_unit };
	buf_clear(text);
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		if (i > 0)
			buf_u8(text, ':');
		buf_str(text, parts[i]);
	}
	if (t->delta)
		buf_cstr(text, ":delta");
	return buf_view(text);
}

static struct str type_unit(const struct samples_type *t)
{
	/* The index has no periods: any period above 1 gives the unit of types that have one. */
	return query_unit_of(t->sample_type, t->sample_unit, t->period_unit, 2).name;
}

static void types_json(
	const struct samples_type *types, size_t count, struct buf *text, struct buf *b)
{
	buf_cstr(b, "{\"types\":[");
	for (size_t i = 0; i < count; i++) {
		buf_cstr(b, i ? ",{" : "{");
		query_json_pair_str(b, "type", type_text(text, &types[i]));
		query_json_pair_str(b, "unit", type_unit(&types[i]));
		query_json_key(b, "delta");
		buf_cstr(b, types[i].delta ? "true" : "false");
		query_json_pair_i64(b, "first", types[i].first_ns / NS_PER_MS);
		query_json_pair_i64(b, "last", types[i].last_ns / NS_PER_MS);
		buf_u8(b, '}');
	}
	buf_cstr(b, "]}");
}

static void types_text(
	const struct samples_type *types, size_t count, struct buf *text, struct buf *b)
{
	static const char *const heads[] = { "UNIT", "FIRST", "LAST", "TYPE" };
	CLEANUP(query_text_deinit) struct query_text t;
	query_text_begin(&t, ARRAY_COUNT(heads), b->max);
	for (size_t i = 0; i < ARRAY_COUNT(heads); i++)
		query_text_cell(&t, str_of(heads[i]));
	for (size_t i = 0; i < count; i++) {
		char time[32];
		query_text_cell(&t, type_unit(&types[i]));
		query_text_time(types[i].first_ns, time);
		query_text_cell(&t, str_of(time));
		query_text_time(types[i].last_ns, time);
		query_text_cell(&t, str_of(time));
		query_text_cell(&t, type_text(text, &types[i]));
	}
	if (count == 0)
		buf_cstr(b, "no profiles in this time range\n");
	else
		query_text_end(&t, b);
}

/* Keeps the types that have samples of the selector. */
static enum status keep_met(const struct query_plan *p, const struct query_request *r,
	struct samples_type *types, size_t *io_count, struct arena *a, struct err *e)
{
	size_t kept = 0;
	enum status s = OK;
	for (size_t i = 0; s == OK && i < *io_count; i++) {
		bool met = false;
		s = query_type_has(p, r, &types[i], a, &met, e);
		if (met)
			types[kept++] = types[i];
	}
	*io_count = kept;
	return s;
}

enum status query_write_types(const struct query_engine *q, const struct query_request *r,
	enum query_format format, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf text;
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	buf_init(&text, SELECTOR_BYTES_MAX);
	struct samples_type *types = NULL;
	size_t count = 0;
	enum status s = query_format_check(format, e);
	if (s == OK)
		s = query_plan_open(q, r, false, &a, &plan, e);
	if (s == OK)
		s = plan.view->ops->types(plan.view, r->from_ns, r->to_ns, &a, &types, &count, e);
	if (s == OK && plan.selector.matcher_count && !plan.selector.has_type)
		s = keep_met(&plan, r, types, &count, &a, e);
	if (s == OK && r->required && count == 0)
		s = query_nothing(q, r, STR(""), e);
	if (s != OK)
		return s;
	if (format == QUERY_JSON)
		types_json(types, count, &text, out);
	else
		types_text(types, count, &text, out);
	return query_written(out, e);
}

/* ---- labels ---- */

static void write_list(
	const char *key, const struct str *v, size_t count, enum query_format format, struct buf *b)
{
	if (format == QUERY_TEXT) {
		for (size_t i = 0; i < count; i++) {
			query_text_clean(b, v[i]);
			buf_u8(b, '\n');
		}
		return;
	}
	buf_u8(b, '{');
	query_json_key(b, key);
	buf_u8(b, '[');
	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			buf_u8(b, ',');
		buf_json_str(b, v[i]);
	}
	buf_cstr(b, "]}");
}

enum status query_write_labels(const struct query_engine *q, const struct query_request *r,
	enum query_format format, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	struct str *names = NULL;
	size_t count = 0;
	enum status s = query_format_check(format, e);
	if (s == OK)
		s = query_plan_open(q, r, false, &a, &plan, e);
	if (s == OK)
		s = plan.view->ops->label_names(plan.view, &plan.store, &a, &names, &count, e);
	if (s == OK && r->required && count == 0)
		s = query_nothing(q, r, STR(""), e);
	if (s != OK)
		return s;
	size_t shown = 0;
	for (size_t i = 0; i < count; i++)
		if (!profile_label_is_hidden(names[i]))
			names[shown++] = names[i];
	write_list("labels", names, shown, format, out);
	return query_written(out, e);
}

enum status query_write_label_values(const struct query_engine *q, const struct query_request *r,
	struct str name, enum query_format format, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(query_plan_close) struct query_plan plan = { 0 };
	arena_init(&a, QUERY_REPORT_BYTES_MAX);
	struct str *values = NULL;
	size_t count = 0;
	enum status s = query_format_check(format, e);
	if (s == OK)
		s = query_plan_open(q, r, false, &a, &plan, e);
	if (s == OK)
		s = plan.view->ops->label_values(
			plan.view, &plan.store, name, &a, &values, &count, e);
	if (s == OK && r->required && count == 0)
		s = query_nothing(q, r, name, e);
	if (s != OK)
		return s;
	write_list("values", values, count, format, out);
	return query_written(out, e);
}
