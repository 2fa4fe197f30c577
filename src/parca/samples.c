/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of samples: the part common to both schemas. Labels are children of the struct `labels` (v2)
 * or columns "labels.NAME" (v1).
 *
 * Nearly all columns are run-end encoded, so the loop over rows works in spans: labels, and the
 * fields of a head (type, period, duration), are read again only where one of their runs ends.
 */
#include "parca/columns.h"

#include <inttypes.h>

#define LABEL_COLUMNS_MAX 4096
#define LABEL_PREFIX "labels."

/* Labels of one kind: those of the process, or those of the thread. */
struct label_group {
	VEC(struct arrow_cursor) columns;
	VEC(uint32_t) names;
	uint64_t until;
	uint32_t set;
};

enum head_text {
	HEAD_NAME,
	HEAD_SAMPLE_TYPE,
	HEAD_SAMPLE_UNIT,
	HEAD_PERIOD_TYPE,
	HEAD_PERIOD_UNIT,
	HEAD_TEXTS
};

static const char *const head_names[HEAD_TEXTS] = { "producer", "sample_type", "sample_unit",
	"period_type", "period_unit" };

struct row_reader {
	struct parca_rows *rows;
	struct parca_decoder *d;
	struct label_group resource;
	struct label_group own;
	struct arrow_cursor texts[HEAD_TEXTS];
	struct arrow_cursor period, duration, value, time;
	bool has_text[HEAD_TEXTS], has_period, has_duration;
	int64_t time_factor; /* factor from timestamps to nanoseconds */
	uint64_t head_until;
	struct profile_head last_head;
	uint32_t head; /* 0: none yet */
};

/* ---- labels ---- */

static enum status add_label_column(
	struct row_reader *r, struct str name, const struct arrow_array *a)
{
	if (arrow_leaf(a->field)->type == ARROW_NULL)
		return OK;
	if (!arrow_is_bytes(arrow_leaf(a->field)))
		return err_set(r->d->e, E_INVALID, "label %.*s is not of type text",
			STR_ARG(str_sub(name, 0, 64)));
	if (r->resource.names.len + r->own.names.len == LABEL_COLUMNS_MAX)
		return err_set(r->d->e, E_LIMIT, "more than %d label columns", LABEL_COLUMNS_MAX);
	uint32_t id;
	enum status s = profile_add_name(r->d->out, name, &id);
	if (s != OK)
		return err_set(r->d->e, s, "labels: %s", status_text(s));
	struct label_group *g =
		parca_label_is_own(profile_str(r->d->out, id)) ? &r->own : &r->resource;
	if (!VEC_PUSH(&g->columns, arrow_cursor_over(a)) || !VEC_PUSH(&g->names, id))
		return err_set(r->d->e, E_NOMEM, "labels");
	return OK;
}

static enum status find_labels(struct row_reader *r, const struct arrow_array *batch)
{
	const struct arrow_array *labels;
	enum status s = parca_column(r->d, batch, "labels", COLUMN_STRUCT, false, &labels);
	if (s == OK && labels && labels->field->type != ARROW_STRUCT)
		s = err_set(r->d->e, E_INVALID, "column labels is encoded");
	for (uint32_t i = 0; s == OK && labels && i < labels->child_count; i++)
		s = add_label_column(r, labels->field->children[i].name, &labels->children[i]);
	for (uint32_t i = 0; s == OK && i < batch->child_count; i++) {
		struct str name = batch->field->children[i].name;
		if (str_starts(name, STR(LABEL_PREFIX)))
			s = add_label_column(r, str_sub(name, strlen(LABEL_PREFIX), name.len),
				&batch->children[i]);
	}
	return s;
}

static enum status labels_at(struct row_reader *r, struct label_group *g, uint64_t row)
{
	struct profile_label labels[PROFILE_LABELS_MAX];
	uint32_t count = 0;
	if (row < g->until)
		return OK;
	g->until = UINT64_MAX;
	for (size_t i = 0; i < g->columns.len; i++) {
		struct profile_label l = { .name = g->names.v[i] };
		const struct arrow_value *v = arrow_cursor_at(&g->columns.v[i], row);
		enum status s = parca_text(r->d, MEMO_STRING, v, &l.value);
		if (s != OK)
			return s;
		g->until = MIN(g->until, g->columns.v[i].until);
		if (!l.value)
			continue;
		if (count == PROFILE_LABELS_MAX)
			return err_set(r->d->e, E_LIMIT, "row %" PRIu64 ": more than %d labels",
				row, PROFILE_LABELS_MAX);
		labels[count++] = l;
	}
	enum status s = profile_add_labels(r->d->out, labels, count, &g->set);
	return s == OK ? OK : err_set(r->d->e, s, "labels: %s", status_text(s));
}

/* ---- heads ---- */

static enum status find_head(struct row_reader *r, const struct arrow_array *batch)
{
	const struct arrow_array *a;
	for (int i = 0; i < HEAD_TEXTS; i++) {
		bool needed = i == HEAD_SAMPLE_TYPE || i == HEAD_SAMPLE_UNIT;
		enum status s = parca_column(r->d, batch, head_names[i], COLUMN_TEXT, needed, &a);
		if (s != OK)
			return s;
		r->has_text[i] = a != NULL;
		r->texts[i] = arrow_cursor_over(a);
	}
	enum status s = parca_column(r->d, batch, "period", COLUMN_INT, false, &a);
	if (s != OK)
		return s;
	r->has_period = a != NULL;
	r->period = arrow_cursor_over(a);
	s = parca_column(r->d, batch, "duration", COLUMN_INT, false, &a);
	r->has_duration = a != NULL;
	r->duration = arrow_cursor_over(a);
	return s;
}

static enum status head_number(
	struct row_reader *r, const char *name, struct arrow_cursor *c, uint64_t row, int64_t *out)
{
	const struct arrow_value *v = arrow_cursor_at(c, row);
	int64_t n = v->array ? arrow_int(v) : 0;
	r->head_until = MIN(r->head_until, c->until);
	if (n < 0)
		return err_set(r->d->e, E_INVALID, "row %" PRIu64 ": %s %" PRId64, row, name, n);
	*out = n;
	return OK;
}

static enum status head_type(struct row_reader *r, uint64_t row, struct profile_type *t)
{
	uint32_t *const to[HEAD_TEXTS] = { &t->name, &t->sample_type, &t->sample_unit,
		&t->period_type, &t->period_unit };
	for (int i = 0; i < HEAD_TEXTS; i++) {
		if (!r->has_text[i])
			continue;
		const struct arrow_value *v = arrow_cursor_at(&r->texts[i], row);
		r->head_until = MIN(r->head_until, r->texts[i].until);
		enum status s =
			parca_text(r->d, i == HEAD_NAME ? MEMO_NAME : MEMO_TYPE_PART, v, to[i]);
		if (s != OK)
			return s;
	}
	if (!t->sample_type || !t->sample_unit)
		return err_set(r->d->e, E_INVALID, "row %" PRIu64 ": no %s", row,
			t->sample_type ? "sample_unit" : "sample_type");
	return t->name ? OK : profile_add_string(r->d->out, STR("unknown"), &t->name);
}

static enum status head_at(struct row_reader *r, uint64_t row, int64_t time_ns)
{
	struct profile_type t = { 0 };
	struct profile_head h = { .time_ns = time_ns };
	if (r->head && row < r->head_until)
		return OK;
	r->head_until = UINT64_MAX;
	enum status s = head_type(r, row, &t);
	if (s == OK && r->has_period)
		s = head_number(r, "period", &r->period, row, &h.period);
	if (s == OK && r->has_duration)
		s = head_number(r, "duration", &r->duration, row, &h.duration_ns);
	if (s != OK)
		return s;
	t.delta = h.duration_ns != 0;
	s = profile_add_type(r->d->out, &t, &h.type);
	if (s == OK && r->head && r->last_head.type == h.type && r->last_head.period == h.period &&
		r->last_head.duration_ns == h.duration_ns)
		return OK;
	if (s == OK)
		s = profile_add_head(r->d->out, &h, &r->head);
	if (s != OK)
		return err_set(r->d->e, s, "types: %s", status_text(s));
	r->last_head = h;
	return OK;
}

/* ---- times ---- */

static enum status find_time(struct row_reader *r, const struct arrow_array *batch)
{
	static const int64_t factors[] = { 1000000000, 1000000, 1000, 1 };
	const struct arrow_array *a;
	enum status s = parca_column(r->d, batch, "timestamp", COLUMN_INT, true, &a);
	if (s != OK)
		return s;
	const struct arrow_field *f = arrow_leaf(a->field);
	r->time = arrow_cursor_over(a);
	r->time_factor = f->is_time ? factors[f->unit] : 1;
	return OK;
}

static enum status time_at(struct row_reader *r, uint64_t row, int64_t *out)
{
	const struct arrow_value *v = arrow_cursor_at(&r->time, row);
	if (!v->array)
		return err_set(r->d->e, E_INVALID, "row %" PRIu64 ": no timestamp", row);
	int64_t n = arrow_int(v), ns;
	if (n <= 0 || __builtin_mul_overflow(n, r->time_factor, &ns))
		return err_set(r->d->e, E_INVALID, "row %" PRIu64 ": timestamp %" PRId64, row, n);
	*out = ns;
	return OK;
}

/* ---- rows ---- */

static enum status read_row(struct row_reader *r, uint64_t row)
{
	struct profile_sample sample = { 0 };
	const struct arrow_value *v = arrow_cursor_at(&r->value, row);
	sample.value = v->array ? arrow_int(v) : 0;
	if (sample.value == 0) {
		r->d->stats->zero_values++;
		return OK;
	}
	enum status s = time_at(r, row, &sample.time_ns);
	if (s == OK)
		s = head_at(r, row, sample.time_ns);
	if (s == OK)
		s = labels_at(r, &r->resource, row);
	if (s == OK)
		s = labels_at(r, &r->own, row);
	if (s == OK)
		s = r->rows->stack_of(r->rows, row, &sample.stack);
	if (s != OK)
		return s;
	sample.head = r->head;
	sample.resource = r->resource.set;
	sample.own = r->own.set;
	return r->rows->add(r->rows, &sample);
}

static enum status read_batch(struct row_reader *r, const struct arrow_array *batch)
{
	const struct arrow_array *value;
	enum status s = parca_column(r->d, batch, "value", COLUMN_INT, true, &value);
	if (s == OK)
		s = find_time(r, batch);
	if (s == OK)
		s = find_head(r, batch);
	if (s == OK)
		s = find_labels(r, batch);
	r->value = arrow_cursor_over(value);
	for (uint64_t row = 0; s == OK && row < batch->length; row++)
		s = read_row(r, row);
	return s;
}

enum status parca_read_rows(struct parca_rows *rows, const struct arrow_array *batch)
{
	struct row_reader r = { .rows = rows, .d = rows->d };
	if (batch->length == 0)
		return OK;
	enum status s = read_batch(&r, batch);
	VEC_FREE(&r.resource.columns);
	VEC_FREE(&r.resource.names);
	VEC_FREE(&r.own.columns);
	VEC_FREE(&r.own.names);
	return s;
}
