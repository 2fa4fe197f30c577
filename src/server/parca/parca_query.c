/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parca.query.v1alpha1.QueryService (reference: Parca's pkg/query/columnquery.go). Statuses and
 * texts are Parca's, since its clients depend on them: an empty range of QueryRange and a missing
 * single profile are NOT_FOUND, an empty merge is an empty report.
 */
#include "parca/parca.h"
#include "pb/pb.h"
#include "server/debuginfo/debuginfo.h"
#include "server/parca/parca.h"
#include "server/parca/parca_report.h"
#include "server/request/request.h"

#define SELECTOR_TEXT_MAX ((size_t)SELECTOR_BYTES_MAX + 1024)
#define RECORD_BYTES_MAX NET_ANSWER_MAX

#define NO_DATA                                                                            \
	"No data found for the query, try a different query or time range or no data has " \
	"been written to be queried yet."
#define NO_SINGLE "could not find profile at requested time and selectors"
#define NO_SOURCE "no sources for this build id have been uploaded"

/* Errors of selectors get Parca's message. */
static enum status bad_query(struct err *e, enum status s)
{
	return s == E_INVALID && str_starts(str_of(e->text), STR("selector"))
		       ? err_prefix(e, s, "failed to parse query")
		       : s;
}

static struct query_request request_of(const struct server_call *c, struct str selector)
{
	return (struct query_request){ .tenant = c->tenant,
		.selector = selector,
		.from_ns = INT64_MIN,
		.to_ns = INT64_MAX,
		.cancel = server_client_gone,
		.cancel_ctx = (void *)(uintptr_t)c->r };
}

/* ---- types, labels, values ---- */

/* Both times or none: without one Parca asks for all of time. An instant at 1970 counts as none. */
static void set_range(struct query_request *q, const struct parca_index_request *in)
{
	bool given = in->start.set && in->end.set && in->start.ns / NS_PER_SEC != 0 &&
		     in->end.ns / NS_PER_SEC != 0;
	if (!given)
		return;
	q->from_ns = in->start.ns;
	q->to_ns = in->end.ns < INT64_MAX ? in->end.ns + 1 : INT64_MAX;
}

/* type{match,match}. A match that is a whole selector stands for itself. */
static enum status selector_of(
	struct server_call *c, const struct parca_index_request *in, struct str *out)
{
	struct buf text;
	buf_init(&text, SELECTOR_TEXT_MAX);
	if (in->profile_type.len == 0 && in->match.count == 1 &&
		str_index(in->match.v[0], '{') < in->match.v[0].len) {
		buf_str(&text, in->match.v[0]);
	} else {
		buf_str(&text, in->profile_type);
		buf_u8(&text, '{');
		for (uint32_t i = 0; i < in->match.count; i++) {
			struct str match = str_trim(in->match.v[i]);
			if (str_starts(match, STR("{")) && str_ends(match, STR("}")))
				match = str_sub(match, 1, match.len - 2);
			buf_cstr(&text, i ? "," : "");
			buf_str(&text, match);
		}
		buf_u8(&text, '}');
	}
	char *copy = text.failed ? NULL : arena_copy(&c->a, text.data, text.len);
	*out = str_make(copy, text.len);
	buf_deinit(&text);
	return copy ? OK : err_set(c->e, E_INVALID, "match: too long");
}

static enum status index_request(struct server_call *c, enum parca_index_kind kind,
	struct query_request *out, struct str *out_name)
{
	struct parca_index_request in;
	struct str selector = STR("");
	enum status s = parca_index_decode(c->r->body, kind, &c->a, &in, c->e);
	if (s == OK)
		s = selector_of(c, &in, &selector);
	if (s != OK)
		return s;
	*out = request_of(c, selector);
	*out_name = in.label_name;
	set_range(out, &in);
	return OK;
}

static enum status profile_types(struct server_call *c)
{
	struct query_request q;
	struct samples_type *types = NULL;
	struct str unused;
	size_t count = 0;
	enum status s = index_request(c, PARCA_PROFILE_TYPES, &q, &unused);
	if (s == OK)
		s = query_list_types(c->engine, &q, &c->a, &types, &count, c->e);
	for (size_t i = 0; s == OK && i < count; i++) {
		const struct samples_type *t = &types[i];
		const struct parca_profile_type type = { t->name, t->sample_type, t->sample_unit,
			t->period_type, t->period_unit, t->delta };
		parca_types_encode(&type, 1, c->out);
	}
	return s;
}

static enum status labels(struct server_call *c)
{
	struct query_request q;
	struct str *names = NULL, unused;
	size_t count = 0;
	enum status s = index_request(c, PARCA_LABELS, &q, &unused);
	if (s == OK)
		s = query_list_labels(c->engine, &q, &c->a, &names, &count, c->e);
	if (s == OK)
		parca_names_encode(names, count, c->out);
	return bad_query(c->e, s);
}

static enum status values(struct server_call *c)
{
	struct query_request q;
	struct str *found = NULL, name;
	size_t count = 0;
	enum status s = index_request(c, PARCA_VALUES, &q, &name);
	if (s == OK && name.len == 0)
		s = err_set(c->e, E_INVALID, "label_name: cannot be blank.");
	if (s == OK)
		s = query_list_values(c->engine, &q, name, &c->a, &found, &count, c->e);
	if (s == OK)
		parca_names_encode(found, count, c->out);
	return bad_query(c->e, s);
}

/* SeriesResponse has no fields: only errors of the request are reported. */
static enum status series(struct server_call *c)
{
	struct query_request q;
	struct str *names = NULL, unused;
	size_t count = 0;
	enum status s = index_request(c, PARCA_SERIES, &q, &unused);
	if (s == OK)
		s = query_list_labels(c->engine, &q, &c->a, &names, &count, c->e);
	return bad_query(c->e, s);
}

/* HasProfileDataResponse { has_data = 1 } */
static enum status has_profile_data(struct server_call *c)
{
	struct query_request q = request_of(c, STR("{}"));
	struct samples_type *types = NULL;
	size_t count = 0;
	enum status s = query_list_types(c->engine, &q, &c->a, &types, &count, c->e);
	if (s == OK)
		pb_put_bool(c->out, 1, count > 0);
	return s;
}

/* ---- QueryRange ---- */

static int64_t behind(int64_t end_ns)
{
	return end_ns < INT64_MAX ? end_ns + 1 : INT64_MAX;
}

/* Accepts "comm", and the form of group_by: "labels.comm". */
static void plain_label(struct str *name)
{
	if (str_starts(*name, STR("labels.")))
		*name = str_sub(*name, strlen("labels."), name->len);
}

static enum status put_series(struct server_call *c, const struct query_range *range,
	const struct query_range_series *from)
{
	struct parca_label *named = ARENA_ARRAY(&c->a, struct parca_label, range->name_count);
	struct parca_sample *samples = ARENA_ARRAY(&c->a, struct parca_sample, from->point_count);
	size_t count = 0;
	if (!named || !samples)
		return err_set(c->e, arena_status(&c->a), "%zu series", range->count);
	for (size_t i = 0; i < range->name_count; i++)
		if (from->values[i].len > 0)
			named[count++] = (struct parca_label){ range->names[i], from->values[i] };
	for (size_t i = 0; i < from->point_count; i++) {
		const struct query_range_point *p = &from->points[i];
		samples[i] = (struct parca_sample){ p->time_ns, p->value, p->duration_ns,
			p->per_second, (int32_t)p->count };
	}
	struct parca_series s = { .labels = named,
		.label_count = count,
		.samples = samples,
		.sample_count = from->point_count };
	if (range->delta) {
		s.period_type = range->period_type;
		s.period_unit = range->period_unit;
		s.sample_type = range->sample_type;
		s.sample_unit = range->unit;
	}
	parca_series_encode(&s, c->out);
	return OK;
}

static enum status range(struct server_call *c)
{
	struct parca_range_request in;
	struct query_range found = { 0 };
	enum status s = parca_range_decode(c->r->body, &c->a, &in, c->e);
	if (s != OK)
		return s;
	struct query_request q = request_of(c, in.query);
	q.from_ns = in.start_ns;
	q.to_ns = behind(in.end_ns);
	q.step_ns = in.step_ns;
	q.limit = in.limit;
	for (uint32_t i = 0; i < in.sum_by.count; i++)
		plain_label(&in.sum_by.v[i]);
	s = query_range(c->engine, &q, in.sum_by.v, in.sum_by.count, &c->a, &found, c->e);
	if (s == OK && found.count == 0)
		s = err_set(c->e, E_NOTFOUND, NO_DATA);
	for (size_t i = 0; s == OK && i < found.count; i++)
		s = put_series(c, &found, &found.series[i]);
	return bad_query(c->e, s);
}

/* ---- Query ---- */

static enum status group_by(
	const struct parca_strings *fields, struct query_report_request *out, struct err *e)
{
	static const struct {
		const char *name;
		unsigned by;
	} known[] = { { "function_name", 0 }, { "function_file_name", QUERY_BY_FILE },
		{ "location_address", QUERY_BY_ADDRESS }, { "mapping_file", QUERY_BY_MAPPING } };
	for (uint32_t i = 0; i < fields->count; i++) {
		struct str field = fields->v[i];
		size_t k = 0;
		while (k < ARRAY_COUNT(known) && !str_eq(field, str_of(known[k].name)))
			k++;
		if (k < ARRAY_COUNT(known)) {
			out->by |= known[k].by;
		} else if (str_eq(field, STR("timestamp"))) {
			out->chart = true;
		} else if (!str_starts(field, STR("labels.")) || field.len == strlen("labels.")) {
			return err_set(e, E_INVALID, "invalid group by field: %.*s",
				STR_ARG(str_sub(field, 0, 128)));
		} else if (out->label_count == QUERY_LABELS_MAX) {
			return err_set(
				e, E_INVALID, "group_by: more than %d labels", QUERY_LABELS_MAX);
		} else {
			plain_label(&field);
			out->labels[out->label_count++] = field;
		}
	}
	return OK;
}

/* A single profile: all samples of one millisecond. */
static struct query_side side_of(const struct parca_selection *s)
{
	struct query_side side = { .selector = s->query, .single = s->single };
	side.from_ns = s->start.ns;
	side.to_ns = behind(s->end.ns);
	if (s->single) {
		int64_t ms = s->start.ns / NS_PER_MS - (s->start.ns % NS_PER_MS < 0);
		side.from_ns = ms * NS_PER_MS;
		side.to_ns = side.from_ns + NS_PER_MS;
	}
	return side;
}

static enum status report_request(const struct net_request *r, struct str tenant,
	const struct parca_query_request *q, struct query_report_request *out, struct err *e)
{
	*out = (struct query_report_request){ .tenant = tenant,
		.side = side_of(&q->side),
		.diff = q->mode == PARCA_DIFF,
		.absolute = q->absolute,
		.filters = q->filters,
		.filter_count = q->filter_count,
		.chart = q->report == PARCA_FLAMECHART,
		.durations = q->report == PARCA_PPROF,
		.invert = q->invert,
		.sandwich = q->sandwich,
		.trim = q->trim_percent / 100,
		.cancel = server_client_gone,
		.cancel_ctx = (void *)(uintptr_t)r };
	enum status s = group_by(&q->group_by, out, e);
	if (s != OK)
		return s;
	if (out->diff) {
		out->base = side_of(&q->base);
		out->label_count = 0;
		out->chart = false;
	}
	return OK;
}

struct recorder {
	const struct server *s;
	const struct query_engine *engine;
	const struct parca_query_request *q;
	const struct query_report_request *r;
	struct arena *a;
	struct buf *out;
	struct query_report *info;
	struct err *e;
};

static enum status metadata(struct recorder *w)
{
	struct str *files = NULL, *names = NULL;
	size_t file_count = 0, name_count = 0;
	struct query_report_request plain = *w->r;
	plain.diff = false;
	plain.label_count = 0;
	plain.chart = false;
	const struct query_request names_of = { .tenant = plain.tenant,
		.selector = plain.side.selector,
		.from_ns = plain.side.from_ns,
		.to_ns = plain.side.to_ns };
	enum status s = query_mapping_files(w->engine, &plain, w->a, &files, &file_count, w->e);
	if (s == OK)
		s = query_list_labels(w->engine, &names_of, w->a, &names, &name_count, w->e);
	if (s == OK)
		parca_metadata_encode(files, file_count, names, name_count, w->out);
	*w->info = (struct query_report){ .found = true };
	return s;
}

/* The source text; "": there is none, or not yet, as in Parca. */
static enum status source_text(struct recorder *w, struct buf *out)
{
	const struct parca_query_request *q = w->q;
	if (q->report != PARCA_SOURCE)
		return OK;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, DEBUGINFO_SOURCE_BYTES_MAX);
	enum status s = server_source_text(w->s, w->r->tenant, q->source_build_id,
		q->source_filename, clock_monotonic_ns() + SERVER_SOURCE_WAIT_NS, w->r->cancel,
		w->r->cancel_ctx, NULL, &text, w->e);
	if (s != OK)
		return s == E_NOTFOUND || s == E_UNAVAILABLE ? OK : s;
	buf_utf8(out, buf_view(&text)); /* a string of protobuf */
	return buf_status(out);
}

/* The three Arrow reports: the record, then the message around it. */
static enum status arrow_report(struct recorder *w)
{
	CLEANUP(buf_deinit) struct buf record;
	CLEANUP(buf_deinit) struct buf source;
	const struct parca_query_request *q = w->q;
	buf_init(&record, RECORD_BYTES_MAX);
	buf_init(&source, 3 * DEBUGINFO_SOURCE_BYTES_MAX);
	enum status s = source_text(w, &source);
	if (s != OK)
		return s;
	if (q->report == PARCA_TABLE_ARROW)
		s = query_table_arrow(w->engine, w->r, &record, w->info, w->e);
	else if (q->report == PARCA_SOURCE)
		s = query_source_arrow(w->engine, w->r, q->source_build_id, q->source_filename,
			&record, w->info, w->e);
	else
		s = query_flame_arrow(w->engine, w->r, &record, w->info, w->e);
	if (s != OK)
		return s;
	struct str bytes = buf_view(&record), unit = str_of(w->info->unit);
	if (q->report == PARCA_TABLE_ARROW)
		parca_table_arrow_encode(bytes, unit, w->out);
	else if (q->report == PARCA_SOURCE)
		parca_source_encode(bytes, buf_view(&source), unit, w->out);
	else
		parca_flamegraph_arrow_encode(
			bytes, unit, w->info->height, w->info->trimmed, w->out);
	return OK;
}

static enum status make_report(struct recorder *w)
{
	switch (w->q->report) {
	case PARCA_FLAMEGRAPH_FLAT:
	case PARCA_FLAMEGRAPH_TABLE:
		return query_flame_message(w->engine, w->r, w->out, w->info, w->e);
	case PARCA_PPROF:
		return query_report_pprof(w->engine, w->r, w->out, w->info, w->e);
	case PARCA_TOP:
		return query_top_message(w->engine, w->r, w->out, w->info, w->e);
	case PARCA_CALLGRAPH:
		return query_callgraph_message(w->engine, w->r, w->out, w->info, w->e);
	case PARCA_PROFILE_METADATA:
		return metadata(w);
	case PARCA_SOURCE:
		if (!w->q->has_source)
			return err_set(w->e, E_INVALID, "source_reference: cannot be blank.");
		return arrow_report(w);
	case PARCA_FLAMEGRAPH_ARROW:
	case PARCA_TABLE_ARROW:
	case PARCA_FLAMECHART:
		return arrow_report(w);
	case PARCA_REPORT_COUNT:
		break;
	}
	UNREACHABLE();
}

enum status server_parca_report(const struct server *s, const struct query_engine *engine,
	const struct net_request *r, const struct parca_query_request *q, struct arena *a,
	struct buf *out, struct query_report *info, struct err *e)
{
	struct query_report_request request;
	struct str tenant;
	enum status st = server_tenant(s, r, &tenant, e);
	if (st == OK)
		st = report_request(r, tenant, q, &request, e);
	if (st != OK)
		return st;
	struct recorder w = { s, engine, q, &request, a, out, info, e };
	st = make_report(&w);
	if (st == OK && q->mode == PARCA_SINGLE && !info->found)
		return err_set(e, E_NOTFOUND, NO_SINGLE);
	return bad_query(e, st);
}

static enum status query(struct server_call *c)
{
	CLEANUP(buf_deinit) struct buf report;
	struct parca_query_request q;
	struct query_report info = { 0 };
	buf_init(&report, NET_ANSWER_MAX);
	enum status s = parca_query_decode(c->r->body, &c->a, &q, c->e);
	if (s == OK && q.has_source && q.source_only) {
		/* Only asks whether there are sources. */
		if (!server_has_sources(c->s, c->tenant, q.source_build_id))
			return err_set(c->e, E_NOTFOUND, NO_SOURCE);
		parca_report_encode(PARCA_SOURCE, STR(""), 0, 0, c->out);
		return OK;
	}
	if (s == OK)
		s = server_parca_report(c->s, c->engine, c->r, &q, &c->a, &report, &info, c->e);
	if (s != OK)
		return s;
	bool has_total = q.report != PARCA_PPROF && q.report != PARCA_PROFILE_METADATA;
	parca_report_encode(
		q.report, buf_view(&report), has_total ? info.total : 0, info.filtered, c->out);
	return OK;
}

/* ---- handlers ---- */

SERVER_CALL_HANDLER(server_parca_profile_types, profile_types)
SERVER_CALL_HANDLER(server_parca_labels, labels)
SERVER_CALL_HANDLER(server_parca_values, values)
SERVER_CALL_HANDLER(server_parca_series, series)
SERVER_CALL_HANDLER(server_parca_query_range, range)
SERVER_CALL_HANDLER(server_parca_query, query)
SERVER_CALL_HANDLER(server_parca_has_profile_data, has_profile_data)
