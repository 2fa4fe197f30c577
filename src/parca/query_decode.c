/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: each message is one loop over its fields. A decoder has the arena, the first failure and its
 * message; a bad nested message ends all loops. The checks of Parca's server (its validate.go) are
 * made with the same messages, so that clients show the same errors.
 */
#include "base/clock.h"
#include "parca/parca.h"
#include "pb/pb.h"

#include <stdio.h>

struct decoder {
	struct arena *a;
	struct err *e;
	enum status status;
	uint32_t condition_count;
};

static void fail(struct decoder *d, enum status s, const char *sentence)
{
	if (d->status == OK)
		d->status = err_set(d->e, s, "%s", sentence);
}

static void malformed(struct decoder *d, const struct reader *r, const char *message)
{
	if (d->status == OK)
		d->status = err_set(
			d->e, E_INVALID, "%s: malformed at +%zu", message, reader_offset(r));
}

/* The next field of `message`; false ends its loop. */
static bool next(struct decoder *d, struct reader *r, struct pb_field *f, const char *message)
{
	if (d->status != OK)
		return false;
	if (pb_next(r, f))
		return true;
	if (r->failed)
		malformed(d, r, message);
	return false;
}

static struct str text_of(struct decoder *d, const struct pb_field *f, const char *name)
{
	if (f->wire != PB_BYTES || !str_is_utf8(f->bytes)) {
		if (d->status == OK)
			d->status = err_set(d->e, E_INVALID, "%s is not UTF-8 text", name);
		return STR("");
	}
	return f->bytes;
}

static uint64_t number_of(struct decoder *d, const struct pb_field *f, const char *name)
{
	if (f->wire != PB_VARINT && d->status == OK)
		d->status = err_set(d->e, E_INVALID, "%s is not a number", name);
	return f->u64;
}

static struct reader message_of(struct decoder *d, const struct pb_field *f, const char *name)
{
	if (f->wire != PB_BYTES && d->status == OK)
		d->status = err_set(d->e, E_INVALID, "%s is not a message", name);
	return f->wire == PB_BYTES ? pb_message(f) : reader_over("", 0);
}

static void add_text(
	struct decoder *d, const struct pb_field *f, const char *name, struct parca_strings *out)
{
	struct str s = text_of(d, f, name);
	if (d->status != OK)
		return;
	if (!out->v)
		out->v = ARENA_ARRAY(d->a, struct str, PARCA_QUERY_LIST_MAX);
	if (!out->v)
		fail(d, arena_status(d->a), "the request needs too much memory");
	else if (out->count == PARCA_QUERY_LIST_MAX)
		d->status =
			err_set(d->e, E_INVALID, "%s: more than %d", name, PARCA_QUERY_LIST_MAX);
	else
		out->v[out->count++] = s;
}

/* Timestamp and Duration: seconds, nanos. */
static int64_t time_of(struct decoder *d, const struct pb_field *f, const char *name)
{
	struct reader r = message_of(d, f, name);
	int64_t seconds = 0, nanos = 0, ns;
	for (struct pb_field part; next(d, &r, &part, name);) {
		if (part.number == 1)
			seconds = (int64_t)number_of(d, &part, name);
		else if (part.number == 2)
			nanos = (int32_t)number_of(d, &part, name);
	}
	if (__builtin_mul_overflow(seconds, NS_PER_SEC, &ns) ||
		__builtin_add_overflow(ns, nanos, &ns))
		return seconds < 0 ? INT64_MIN : INT64_MAX;
	return ns;
}

static struct parca_time instant_of(struct decoder *d, const struct pb_field *f, const char *name)
{
	return (struct parca_time){ true, time_of(d, f, name) };
}

/* ---- types, labels, values, series ---- */

/* Field numbers by kind of request; 0: it does not have the field. */
static const struct index_fields {
	uint8_t label_name, match, start, end, profile_type;
} index_fields[] = {
	[PARCA_PROFILE_TYPES] = { 0, 0, 1, 2, 0 },
	[PARCA_LABELS] = { 0, 1, 2, 3, 4 },
	[PARCA_VALUES] = { 1, 2, 3, 4, 5 },
	[PARCA_SERIES] = { 0, 1, 2, 3, 0 },
};

enum status parca_index_decode(struct str message, enum parca_index_kind kind, struct arena *a,
	struct parca_index_request *out, struct err *e)
{
	struct decoder d = { .a = a, .e = e };
	struct parca_index_request q = { 0 };
	const struct index_fields *at = &index_fields[kind];
	struct reader r = reader_over(message.p, message.len);
	for (struct pb_field f; next(&d, &r, &f, "request");) {
		if (f.number == at->label_name)
			q.label_name = text_of(&d, &f, "label_name");
		else if (f.number == at->match)
			add_text(&d, &f, "match", &q.match);
		else if (f.number == at->start)
			q.start = instant_of(&d, &f, "start");
		else if (f.number == at->end)
			q.end = instant_of(&d, &f, "end");
		else if (f.number == at->profile_type)
			q.profile_type = text_of(&d, &f, "profile_type");
	}
	if (d.status == OK)
		*out = q;
	return d.status;
}

/* ---- what must be there, in Parca's words: "end: cannot be blank; query: cannot be blank." ----
 */

struct blanks {
	char text[160];
	size_t len;
};

static void blank(struct blanks *b, bool is_blank, const char *name, const char *why)
{
	if (!is_blank)
		return;
	int n = snprintf(b->text + b->len, sizeof(b->text) - b->len, "%s%s: %s", b->len ? "; " : "",
		name, why);
	b->len = MIN(b->len + (size_t)n, sizeof(b->text) - 1);
}

static void check_range(struct decoder *d, struct str query, const struct parca_time *start,
	const struct parca_time *end)
{
	struct blanks b = { .len = 0 };
	blank(&b, !end->set, "end", "cannot be blank");
	blank(&b, end->set && start->set && start->ns > end->ns, "end",
		"start timestamp must be before end");
	blank(&b, query.len == 0, "query", "cannot be blank");
	blank(&b, !start->set, "start", "cannot be blank");
	if (b.len && d->status == OK)
		d->status = err_set(d->e, E_INVALID, "%s.", b.text);
}

enum status parca_range_decode(
	struct str message, struct arena *a, struct parca_range_request *out, struct err *e)
{
	struct decoder d = { .a = a, .e = e };
	struct parca_range_request q = { 0 };
	struct parca_time start = { 0 }, end = { 0 };
	struct reader r = reader_over(message.p, message.len);
	for (struct pb_field f; next(&d, &r, &f, "QueryRangeRequest");) {
		if (f.number == 1)
			q.query = text_of(&d, &f, "query");
		else if (f.number == 2)
			start = instant_of(&d, &f, "start");
		else if (f.number == 3)
			end = instant_of(&d, &f, "end");
		else if (f.number == 4)
			q.limit = (uint32_t)number_of(&d, &f, "limit");
		else if (f.number == 5)
			q.step_ns = time_of(&d, &f, "step");
		else if (f.number == 6)
			add_text(&d, &f, "sum_by", &q.sum_by);
	}
	if (d.status == OK)
		check_range(&d, q.query, &start, &end);
	if (d.status == OK && q.step_ns < 0)
		fail(&d, E_INVALID, "step: must not be negative.");
	q.start_ns = start.ns;
	q.end_ns = end.ns;
	if (d.status == OK)
		*out = q;
	return d.status;
}

/* ---- filters ---- */

/* String conditions have the numbers of enum filter_op, from 1 on; the last member of a oneof
 * wins. */
static void decode_condition(
	struct decoder *d, struct reader r, bool is_number, struct filter_condition *out, bool *set)
{
	for (struct pb_field f; next(d, &r, &f, "condition");) {
		if (is_number && (f.number == 1 || f.number == 2)) {
			out->op = f.number == 1 ? FILTER_EQ : FILTER_NE;
			out->number = number_of(d, &f, "condition");
			*set = true;
		} else if (!is_number && f.number >= 1 && f.number <= 6) {
			out->op = (enum filter_op)(f.number - 1);
			out->text = text_of(d, &f, "condition");
			*set = true;
		}
	}
}

static bool add_condition(
	struct decoder *d, struct frame_filter *filter, const struct filter_condition *c)
{
	if (!filter->conditions)
		filter->conditions =
			ARENA_ARRAY(d->a, struct filter_condition, FILTER_CONDITIONS_MAX);
	if (!filter->conditions) {
		fail(d, arena_status(d->a), "the request needs too much memory");
		return false;
	}
	if (d->condition_count++ == FILTER_CONDITIONS_MAX) {
		d->status = err_set(
			d->e, E_INVALID, "filter: more than %d conditions", FILTER_CONDITIONS_MAX);
		return false;
	}
	filter->conditions[filter->condition_count++] = *c;
	return true;
}

static void decode_criteria(struct decoder *d, struct reader r, struct frame_filter *filter)
{
	static const enum filter_field fields[] = { 0, FILTER_FUNCTION, FILTER_SYSTEM_NAME,
		FILTER_BINARY, FILTER_FILE, FILTER_ADDRESS, FILTER_LINE };
	struct filter_condition by_field[ARRAY_COUNT(fields)] = { 0 };
	bool set[ARRAY_COUNT(fields)] = { 0 };
	for (struct pb_field f; next(d, &r, &f, "FilterCriteria");)
		if (f.number >= 1 && f.number < ARRAY_COUNT(fields)) {
			by_field[f.number].field = fields[f.number];
			decode_condition(d, message_of(d, &f, "FilterCriteria"), f.number >= 5,
				&by_field[f.number], &set[f.number]);
		}
	for (size_t i = 1; i < ARRAY_COUNT(fields) && d->status == OK; i++)
		/* In a stack filter, a condition on the function's name replaces all others, as in
		 * Parca. */
		if (set[i] && (!filter->of_stack || i == 1 || !set[1]))
			add_condition(d, filter, &by_field[i]);
}

/* function_name_stack_filter { function_to_filter = 1; exclude = 2 } */
static void decode_old_stack(struct decoder *d, struct reader r, struct frame_filter *filter)
{
	struct filter_condition c = { .field = FILTER_FUNCTION, .op = FILTER_CONTAINS };
	for (struct pb_field f; next(d, &r, &f, "FunctionNameStackFilter");) {
		if (f.number == 1)
			c.text = text_of(d, &f, "function_to_filter");
		else if (f.number == 2 && number_of(d, &f, "exclude"))
			c.op = FILTER_NOT_CONTAINS;
	}
	if (d->status == OK)
		add_condition(d, filter, &c);
}

/* binary_frame_filter { include_binaries = 1 }: frames of any of them. */
static void decode_old_frame(struct decoder *d, struct reader r, struct frame_filter *filter)
{
	filter->any = true;
	for (struct pb_field f; next(d, &r, &f, "BinaryFrameFilter");)
		if (f.number == 1) {
			struct filter_condition c = { .field = FILTER_BINARY,
				.op = FILTER_CONTAINS };
			c.text = text_of(d, &f, "include_binaries");
			if (d->status == OK)
				add_condition(d, filter, &c);
		}
}

/* StackFilter, FrameFilter: the new form is preferred. */
static void decode_one_filter(struct decoder *d, struct reader r, struct frame_filter *filter)
{
	struct frame_filter old = *filter, new = *filter;
	bool has_new = false;
	for (struct pb_field f; next(d, &r, &f, "filter");) {
		if (f.number == 1 && filter->of_stack)
			decode_old_stack(d, message_of(d, &f, "filter"), &old);
		else if (f.number == 1)
			decode_old_frame(d, message_of(d, &f, "filter"), &old);
		else if (f.number == 2)
			decode_criteria(d, message_of(d, &f, "filter"), &new);
		has_new |= f.number == 2;
	}
	*filter = has_new ? new : old;
}

static void decode_filter(struct decoder *d, struct reader r, struct parca_query_request *q)
{
	struct frame_filter filter = { 0 };
	for (struct pb_field f; next(d, &r, &f, "Filter");)
		if (f.number == 1 || f.number == 2) {
			filter = (struct frame_filter){ .of_stack = f.number == 1 };
			decode_one_filter(d, message_of(d, &f, "Filter"), &filter);
		}
	if (d->status != OK || filter.condition_count == 0)
		return;
	if (!q->filters)
		q->filters = ARENA_ARRAY(d->a, struct frame_filter, FILTER_CONDITIONS_MAX);
	if (!q->filters)
		fail(d, arena_status(d->a), "the request needs too much memory");
	else /* each filter has a condition, and conditions are counted */
		q->filters[q->filter_count++] = filter;
}

/* ---- QueryRequest ---- */

static struct parca_selection decode_merge(struct decoder *d, struct reader r)
{
	struct parca_selection s = { 0 };
	for (struct pb_field f; next(d, &r, &f, "MergeProfile");) {
		if (f.number == 1)
			s.query = text_of(d, &f, "query");
		else if (f.number == 2)
			s.start = instant_of(d, &f, "start");
		else if (f.number == 3)
			s.end = instant_of(d, &f, "end");
	}
	return s;
}

static struct parca_selection decode_single(struct decoder *d, struct reader r)
{
	struct parca_selection s = { .single = true };
	for (struct pb_field f; next(d, &r, &f, "SingleProfile");) {
		if (f.number == 1)
			s.start = instant_of(d, &f, "time");
		else if (f.number == 2)
			s.query = text_of(d, &f, "query");
	}
	return s;
}

static void check_selection(struct decoder *d, const struct parca_selection *s)
{
	struct blanks b = { .len = 0 };
	if (!s->single) {
		check_range(d, s->query, &s->start, &s->end);
		return;
	}
	blank(&b, s->query.len == 0, "query", "cannot be blank");
	blank(&b, !s->start.set, "time", "cannot be blank");
	if (b.len && d->status == OK)
		d->status = err_set(d->e, E_INVALID, "%s.", b.text);
}

/* ProfileDiffSelection { mode = 1; merge = 2; single = 3 } */
static struct parca_selection decode_side(struct decoder *d, struct reader r)
{
	struct parca_selection s = { 0 };
	uint64_t mode = 0;
	uint32_t option = 0;
	for (struct pb_field f; next(d, &r, &f, "ProfileDiffSelection");) {
		if (f.number == 1)
			mode = number_of(d, &f, "mode");
		else if (f.number == 2)
			s = decode_merge(d, message_of(d, &f, "merge"));
		else if (f.number == 3)
			s = decode_single(d, message_of(d, &f, "single"));
		if (f.number == 2 || f.number == 3)
			option = f.number;
	}
	if (mode > 1)
		fail(d, E_INVALID, "mode: invalid diff selection mode.");
	else if (option == 0)
		fail(d, E_INVALID, "Options: cannot be blank.");
	else if (option != (mode == 1 ? 2u : 3u))
		fail(d, E_INVALID, "Options: invalid option for mode.");
	else
		check_selection(d, &s);
	return s;
}

struct sides {
	struct parca_selection a, b;
	bool has_a, has_b, absolute;
};

static struct sides decode_diff(struct decoder *d, struct reader r)
{
	struct sides s = { 0 };
	for (struct pb_field f; next(d, &r, &f, "DiffProfile");) {
		if (f.number == 1) {
			s.a = decode_side(d, message_of(d, &f, "a"));
			s.has_a = true;
		} else if (f.number == 2) {
			s.b = decode_side(d, message_of(d, &f, "b"));
			s.has_b = true;
		} else if (f.number == 3) {
			s.absolute = number_of(d, &f, "absolute");
		}
	}
	struct blanks b = { .len = 0 };
	blank(&b, !s.has_a, "a", "cannot be blank");
	blank(&b, !s.has_b, "b", "cannot be blank");
	if (b.len && d->status == OK)
		d->status = err_set(d->e, E_INVALID, "%s.", b.text);
	return s;
}

static double trim_of(struct decoder *d, const struct pb_field *f)
{
	float percent;
	uint32_t bits = (uint32_t)f->u64;
	memcpy(&percent, &bits, sizeof(percent));
	if (f->wire != PB_FIXED32 || !(percent >= 0 && percent <= 100))
		fail(d, E_INVALID,
			"node_trim_threshold: expected a number of percent from 0 to 100");
	return (double)percent;
}

static void decode_source(struct decoder *d, struct reader r, struct parca_query_request *q)
{
	q->has_source = true;
	for (struct pb_field f; next(d, &r, &f, "SourceReference");) {
		if (f.number == 1)
			q->source_build_id = text_of(d, &f, "build_id");
		else if (f.number == 2)
			q->source_filename = text_of(d, &f, "filename");
		else if (f.number == 3)
			q->source_only = number_of(d, &f, "source_only");
	}
}

static void decode_group_by(struct decoder *d, struct reader r, struct parca_query_request *q)
{
	for (struct pb_field f; next(d, &r, &f, "GroupBy");)
		if (f.number == 1)
			add_text(d, &f, "group_by", &q->group_by);
}

struct query_raw {
	uint64_t mode, report;
	uint32_t option; /* field number of the oneof's member */
	struct pb_field diff;
};

static void decode_query_field(struct decoder *d, const struct pb_field *f,
	struct parca_query_request *q, struct query_raw *raw)
{
	switch (f->number) {
	case 1:
		raw->mode = number_of(d, f, "mode");
		return;
	case 2:
		raw->diff = *f;
		raw->option = 2;
		return;
	case 3:
		q->side = decode_merge(d, message_of(d, f, "merge"));
		raw->option = 3;
		return;
	case 4:
		q->side = decode_single(d, message_of(d, f, "single"));
		raw->option = 4;
		return;
	case 5:
		raw->report = number_of(d, f, "report_type");
		return;
	case 7:
		q->trim_percent = trim_of(d, f);
		return;
	case 8:
		decode_group_by(d, message_of(d, f, "group_by"), q);
		return;
	case 9:
		decode_source(d, message_of(d, f, "source_reference"), q);
		return;
	case 11:
		q->invert = number_of(d, f, "invert_call_stack");
		return;
	case 12:
		decode_filter(d, message_of(d, f, "filter"), q);
		return;
	case 13:
		q->sandwich = text_of(d, f, "sandwich_by_function");
		return;
	default: /* filter_query and runtime_filter do nothing in Parca either */
		return;
	}
}

/* Parca's QueryRequest.Validate(). */
static void check_query(struct decoder *d, struct parca_query_request *q, struct query_raw *raw)
{
	static const uint32_t options[] = {
		[PARCA_SINGLE] = 4, [PARCA_DIFF] = 2, [PARCA_MERGE] = 3
	};
	struct blanks b = { .len = 0 };
	bool known = raw->mode < ARRAY_COUNT(options);
	blank(&b, raw->option == 0, "Options", "cannot be blank");
	blank(&b, raw->option && (!known || raw->option != options[raw->mode]), "Options",
		known ? "invalid option for mode" : "invalid query request mode");
	blank(&b, !known, "mode", "invalid query request mode");
	blank(&b, raw->report >= PARCA_REPORT_COUNT, "report_type", "invalid report type");
	if (b.len) {
		d->status = err_set(d->e, E_INVALID, "%s.", b.text);
		return;
	}
	q->mode = (enum parca_mode)raw->mode;
	q->report = (enum parca_report)raw->report;
	if (q->mode != PARCA_DIFF) {
		check_selection(d, &q->side);
		return;
	}
	struct sides s = decode_diff(d, message_of(d, &raw->diff, "diff"));
	q->side = s.b;
	q->base = s.a;
	q->absolute = s.absolute;
}

static void decode_query(struct decoder *d, struct reader r, struct parca_query_request *out)
{
	struct parca_query_request q = { 0 };
	struct query_raw raw = { 0 };
	for (struct pb_field f; next(d, &r, &f, "QueryRequest");)
		decode_query_field(d, &f, &q, &raw);
	if (d->status == OK)
		check_query(d, &q, &raw);
	if (d->status == OK)
		*out = q;
}

enum status parca_query_decode(
	struct str message, struct arena *a, struct parca_query_request *out, struct err *e)
{
	struct decoder d = { .a = a, .e = e };
	decode_query(&d, reader_over(message.p, message.len), out);
	return d.status;
}

enum status parca_share_decode(
	struct str message, struct arena *a, struct parca_share_request *out, struct err *e)
{
	struct decoder d = { .a = a, .e = e };
	struct parca_share_request q = { 0 };
	struct reader r = reader_over(message.p, message.len);
	bool has_query = false;
	for (struct pb_field f; next(&d, &r, &f, "ShareProfileRequest");) {
		if (f.number == 1) {
			decode_query(&d, message_of(&d, &f, "query_request"), &q.query);
			has_query = true;
		} else if (f.number == 2) {
			q.description = text_of(&d, &f, "description");
		}
	}
	if (d.status == OK && !has_query)
		fail(&d, E_INVALID, "query_request: cannot be blank.");
	q.query.report = PARCA_PPROF;
	if (d.status == OK)
		*out = q;
	return d.status;
}
