/* SPDX-License-Identifier: Apache-2.0 */
/* docs/api.md: makes a query_request of the parameters, and sends the text that query writes. */
#include "server/api/api.h"
#include "base/clock.h"
#include "server/debuginfo/debuginfo.h"
#include "server/parca/parca.h"
#include "server/request/request.h"

#include <stdio.h>
#include <time.h>

#define ARENA_BYTES_MAX ((size_t)1 << 20)
#define DEFAULT_RANGE_NS (15 * 60 * NS_PER_SEC)
#define DEFAULT_TRIM 0.0001
#define SNAPSHOT_USUAL_NS (30 * 86400 * NS_PER_SEC)
#define SNAPSHOT_MAX_NS (3650 * 86400 * NS_PER_SEC)
#define SNAPSHOT_BYTES_MAX ((size_t)64 << 20)
#define DEFAULT_SERIES_LIMIT 20
#define DEFAULT_FLAME_VALUES 10 /* of the label in `by` */
#define WIDTH_MAX 100000        /* characters of a line */

/* ---- parameters ---- */

struct api_query {
	struct server *server;
	struct arena arena;
	struct query_request request;
	enum query_format format;
	struct buf chosen; /* a line for an answer as text: the profile type that was chosen */
};

static void api_query_deinit(struct api_query *q)
{
	buf_deinit(&q->chosen);
	arena_deinit(&q->arena);
}

static enum status take_time(const struct net_request *r, struct api_query *q, const char *key,
	int64_t now, int64_t *out, struct err *e)
{
	struct str text;
	if (!net_query_param(r, key, 0, &q->arena, &text) || text.len == 0)
		return OK;
	unsigned flags = str_ends(str_of(key), STR("to")) ? QUERY_TIME_END : 0;
	enum status s = query_parse_time(text, now, flags, out, e);
	return s == OK ? OK : err_prefix(e, s, "%s", key);
}

static enum status take_range(const struct net_request *r, struct api_query *q, struct err *e)
{
	int64_t now = clock_realtime_ns();
	q->request.from_ns = now - DEFAULT_RANGE_NS;
	q->request.to_ns = now;
	enum status s = take_time(r, q, "from", now, &q->request.from_ns, e);
	if (s == OK)
		s = take_time(r, q, "to", now, &q->request.to_ns, e);
	if (s == OK && q->request.from_ns >= q->request.to_ns)
		return err_set(e, E_INVALID, "from must lie before to");
	return s;
}

static enum status take_numbers(const struct net_request *r, struct api_query *q, struct err *e)
{
	struct str text;
	uint64_t n;
	if (net_query_param(r, "limit", 0, &q->arena, &text) && text.len) {
		if (!str_parse_u64(text, 10, &n) || n > UINT32_MAX)
			return err_set(e, E_INVALID, "limit: \"%.*s\" is not a count",
				STR_ARG(str_sub(text, 0, 40)));
		q->request.limit = (uint32_t)n;
	}
	if (net_query_param(r, "width", 0, &q->arena, &text) && text.len) {
		if (!str_parse_u64(text, 10, &n) || n > WIDTH_MAX)
			return err_set(e, E_INVALID, "width: \"%.*s\" is no number of characters",
				STR_ARG(str_sub(text, 0, 40)));
		q->request.width = (uint32_t)n;
	}
	if (net_query_param(r, "trim", 0, &q->arena, &text) && text.len) {
		double trim;
		if (!str_parse_double(text, &trim) || !(trim >= 0 && trim < 1))
			return err_set(e, E_INVALID, "trim: \"%.*s\" is not a share from 0 to 1",
				STR_ARG(str_sub(text, 0, 40)));
		q->request.trim = trim;
	}
	if (net_query_param(r, "step", 0, &q->arena, &text) && text.len) {
		if (str_parse_u64(text, 10, &n) && n > 0 && n <= INT64_MAX / NS_PER_SEC)
			q->request.step_ns = (int64_t)n * NS_PER_SEC;
		else if (query_parse_duration(text, &q->request.step_ns, NULL) != OK ||
			 q->request.step_ns <= 0)
			return err_set(e, E_INVALID, "step: \"%.*s\" is not a duration",
				STR_ARG(str_sub(text, 0, 40)));
	}
	return OK;
}

/* By enum query_format. */
static const struct {
	const char *name;
	const char *content_type;
} formats[] = {
	[QUERY_JSON] = { "json", "application/json" },
	[QUERY_TEXT] = { "text", "text/plain; charset=utf-8" },
	[QUERY_FOLDED] = { "folded", "text/plain; charset=utf-8" },
	[QUERY_HTML] = { "html", "text/html; charset=utf-8" },
	[QUERY_SPEEDSCOPE] = { "speedscope", "application/json" },
	[QUERY_FIREFOX] = { "firefox", "application/json" },
};

/* For a page of its own: it may run its own script, but not reach this server. */
#define PAGE_POLICY                                                                       \
	"content-security-policy: sandbox allow-scripts; default-src 'none'; script-src " \
	"'unsafe-inline'; style-src 'unsafe-inline'\r\n"

static enum status take_format(const struct net_request *r, struct api_query *q, struct err *e)
{
	struct str text;
	q->format = QUERY_JSON;
	if (!net_query_param(r, "format", 0, &q->arena, &text) || text.len == 0 ||
		str_eq(text, STR("json")))
		return OK;
	for (size_t i = 0; i < ARRAY_COUNT(formats); i++)
		if (str_eq(text, str_of(formats[i].name))) {
			q->format = (enum query_format)i;
			return OK;
		}
	return err_set(e, E_INVALID,
		"format: \"%.*s\"; json, text, folded, html, speedscope and firefox are known",
		STR_ARG(str_sub(text, 0, 40)));
}

static enum status take_labels(const struct net_request *r, struct api_query *q, struct err *e)
{
	struct query_request *request = &q->request;
	struct str text;
	for (size_t i = 0; net_query_param(r, "by", i, &q->arena, &text); i++) {
		if (text.len == 0)
			continue;
		if (request->by_count == ARRAY_COUNT(request->by))
			return err_set(
				e, E_LIMIT, "by: at most %zu labels", ARRAY_COUNT(request->by));
		request->by[request->by_count++] = text;
	}
	return OK;
}

static enum status take_query(const struct net_request *r, struct api_query *q, struct err *e)
{
	struct query_request *request = &q->request;
	struct str text;
	(void)net_query_param(r, "query", 0, &q->arena, &request->selector);
	(void)net_query_param(r, "match", 0, &q->arena, &request->match);
	if (net_query_param(r, "sort", 0, &q->arena, &text) && text.len) {
		request->by_total = str_eq(text, STR("total"));
		if (!request->by_total && !str_eq(text, STR("self")))
			return err_set(e, E_INVALID, "sort: \"%.*s\" is neither self nor total",
				STR_ARG(str_sub(text, 0, 40)));
	}
	request->required = net_query_param(r, "required", 0, &q->arena, &text) &&
			    (str_eq(text, STR("1")) || str_eq(text, STR("true")));
	request->invert = net_query_param(r, "invert", 0, &q->arena, &text) &&
			  (str_eq(text, STR("1")) || str_eq(text, STR("true")));
	request->depth = net_query_param(r, "depth", 0, &q->arena, &text) && str_eq(text, STR("1"));
	request->cancel = server_client_gone;
	request->cancel_ctx = (void *)(uintptr_t)r;
	enum status s = take_range(r, q, e);
	if (s == OK)
		s = take_format(r, q, e);
	/* These formats cannot hold the value of the nodes that were left out. */
	if (q->format == QUERY_SPEEDSCOPE || q->format == QUERY_FIREFOX)
		q->request.trim = 0;
	if (s == OK)
		s = take_numbers(r, q, e);
	return s == OK ? take_labels(r, q, e) : s;
}

/* ---- the frame around each query ---- */

typedef enum status answer_fn(const struct query_engine *engine, const struct net_request *r,
	struct api_query *q, struct buf *out, struct err *e);

/* Puts a line above an answer that is a table of text. */
static enum status put_above(const struct buf *line, struct buf *body, struct err *e)
{
	if (line->len == 0)
		return OK;
	size_t len = body->len;
	if (!buf_extend(body, line->len))
		return err_set(e, buf_status(body), "the answer is too large");
	memmove(body->data + line->len, body->data, len);
	memcpy(body->data, line->data, line->len);
	return OK;
}

/* `defaults`: the parameters' defaults of this query. */
static void answer(struct server *s, const struct net_request *r, struct net_response *out,
	const struct query_request *defaults, answer_fn *fn)
{
	struct err e = { 0 };
	if (!server_is_ready(s, out))
		return;
	CLEANUP(api_query_deinit) struct api_query q = { .server = s, .request = *defaults };
	arena_init(&q.arena, ARENA_BYTES_MAX);
	buf_init(&q.chosen, ARENA_BYTES_MAX);
	q.request.chosen = &q.chosen;
	struct server_query query;
	enum status status = server_query_begin(s, r, &query, &e);
	if (status == OK)
		status = take_query(r, &q, &e);
	if (status == OK)
		status = server_tenant(s, r, &q.request.tenant, &e);
	if (status == OK)
		do {
			buf_clear(&out->body);
			status = fn(&query.engine, r, &q, &out->body, &e);
		} while (server_query_again(&query, status));
	if (status == OK && q.format == QUERY_TEXT)
		status = put_above(&q.chosen, &out->body, &e);
	server_query_end(&query, status);
	if (status != OK) {
		net_fail(out, status, &e);
		return;
	}
	out->content_type = formats[q.format].content_type;
	snprintf(out->headers, sizeof(out->headers), "cache-control: no-store\r\n%s",
		q.format == QUERY_HTML ? PAGE_POLICY : "");
}

/* ---- the queries ---- */

#define ANSWER(name, call)                                                                        \
	static enum status answer_##name(const struct query_engine *engine,                       \
		const struct net_request *r, struct api_query *q, struct buf *out, struct err *e) \
	{                                                                                         \
		(void)r;                                                                          \
		return call(engine, &q->request, q->format, out, e);                              \
	}                                                                                         \
	void server_handle_##name(                                                                \
		void *ctx, const struct net_request *r, struct net_response *out)                 \
	{                                                                                         \
		answer((struct server *)ctx, r, out, &defaults_##name, answer_##name);            \
	}

static const struct query_request defaults_types = { 0 };
static const struct query_request defaults_labels = { 0 };
static const struct query_request defaults_series = { .limit = DEFAULT_SERIES_LIMIT };
static const struct query_request defaults_flamegraph = { .trim = DEFAULT_TRIM,
	.limit = DEFAULT_FLAME_VALUES };
static const struct query_request defaults_top = { 0 };
static const struct query_request defaults_functions = { 0 };

ANSWER(types, query_write_types)
ANSWER(labels, query_write_labels)
ANSWER(series, query_write_series)
ANSWER(flamegraph, query_write_flame)
ANSWER(top, query_write_top)
ANSWER(functions, query_write_functions)

/* ---- a flame graph in the order of time ---- */

static enum status answer_flamechart(const struct query_engine *engine, const struct net_request *r,
	struct api_query *q, struct buf *out, struct err *e)
{
	(void)r;
	q->request.chart = true;
	return query_write_flame(engine, &q->request, q->format, out, e);
}

void server_handle_flamechart(void *ctx, const struct net_request *r, struct net_response *out)
{
	static const struct query_request defaults = { 0 };
	answer((struct server *)ctx, r, out, &defaults, answer_flamechart);
}

/* /api/labels/NAME/values */
static enum status answer_values(const struct query_engine *engine, const struct net_request *r,
	struct api_query *q, struct buf *out, struct err *e)
{
	struct str name = r->path, prefix = STR("/api/labels/"), suffix = STR("/values");
	if (!str_starts(name, prefix) || !str_ends(name, suffix) ||
		name.len <= prefix.len + suffix.len)
		return err_set(e, E_NOTFOUND, "nothing at %.*s", STR_ARG(str_sub(name, 0, 128)));
	name = str_sub(name, prefix.len, name.len - prefix.len - suffix.len);
	return query_write_label_values(engine, &q->request, name, q->format, out, e);
}

void server_handle_label_values(void *ctx, const struct net_request *r, struct net_response *out)
{
	answer((struct server *)ctx, r, out, &defaults_labels, answer_values);
}

/* ---- two queries compared ---- */

/* base_query, base_from, base_to: a missing one is as on the other side; if all are missing, the
 * base is the time of the same length right before. */
static enum status take_base(
	const struct net_request *r, struct api_query *q, struct query_request *out, struct err *e)
{
	static const char *const keys[] = { "base_query", "base_from", "base_to" };
	struct str text;
	int64_t now = clock_realtime_ns();
	bool given = false;
	*out = q->request;
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++)
		given |= net_query_param(r, keys[i], 0, &q->arena, &text) && text.len > 0;
	if (!given) {
		out->to_ns = q->request.from_ns;
		if (__builtin_sub_overflow(q->request.from_ns,
			    q->request.to_ns - q->request.from_ns, &out->from_ns))
			out->from_ns = INT64_MIN;
	}
	if (net_query_param(r, "base_query", 0, &q->arena, &text) && text.len)
		out->selector = text;
	enum status s = take_time(r, q, "base_from", now, &out->from_ns, e);
	if (s == OK)
		s = take_time(r, q, "base_to", now, &out->to_ns, e);
	if (s == OK && out->from_ns >= out->to_ns)
		return err_set(e, E_INVALID, "base_from must lie before base_to");
	return s;
}

static enum status answer_diff(const struct query_engine *engine, const struct net_request *r,
	struct api_query *q, struct buf *out, struct err *e)
{
	struct query_request base;
	struct str text;
	double worse_above = -1;
	enum status s = take_base(r, q, &base, e);
	if (s != OK)
		return s;
	if (net_query_param(r, "worse_above", 0, &q->arena, &text) && text.len &&
		(!str_parse_double(text, &worse_above) || !(worse_above >= 0 && worse_above <= 1)))
		return err_set(e, E_INVALID, "worse_above: \"%.*s\" is not a share from 0 to 1",
			STR_ARG(str_sub(text, 0, 40)));
	return query_write_diff(engine, &q->request, &base, worse_above, q->format, out, e);
}

void server_handle_diff(void *ctx, const struct net_request *r, struct net_response *out)
{
	static const struct query_request defaults = { 0 };
	answer((struct server *)ctx, r, out, &defaults, answer_diff);
}

/* ---- source ---- */

static enum status answer_source(const struct query_engine *engine, const struct net_request *r,
	struct api_query *q, struct buf *out, struct err *e)
{
	if (q->format != QUERY_JSON)
		return err_set(e, E_INVALID, "format: a source is answered as json only");
	return server_source(q->server, engine, r, &q->request, out, e);
}

void server_handle_source(void *ctx, const struct net_request *r, struct net_response *out)
{
	static const struct query_request defaults = { 0 };
	answer((struct server *)ctx, r, out, &defaults, answer_source);
}

static enum status answer_instructions(const struct query_engine *engine,
	const struct net_request *r, struct api_query *q, struct buf *out, struct err *e)
{
	if (q->format != QUERY_JSON)
		return err_set(e, E_INVALID, "format: instructions are answered as json only");
	return server_instructions(q->server, engine, r, &q->request, out, e);
}

void server_handle_instructions(void *ctx, const struct net_request *r, struct net_response *out)
{
	static const struct query_request defaults = { 0 };
	answer((struct server *)ctx, r, out, &defaults, answer_instructions);
}

/* ---- pprof ---- */

static enum status answer_pprof(const struct query_engine *engine, const struct net_request *r,
	struct api_query *q, struct buf *out, struct err *e)
{
	(void)r;
	q->request.required = true; /* no tool opens an empty profile */
	return query_pprof(engine, &q->request, out, e);
}

void server_handle_pprof(void *ctx, const struct net_request *r, struct net_response *out)
{
	static const struct query_request defaults = { 0 };
	answer((struct server *)ctx, r, out, &defaults, answer_pprof);
	if (out->status != OK) {
		/* `go tool pprof` shows the user this text. */
		buf_clear(&out->body);
		buf_printf(&out->body, "%s\n", out->message);
		out->content_type = "text/plain; charset=utf-8";
		snprintf(out->headers, sizeof(out->headers), "X-Go-Pprof: 1\r\n");
		return;
	}
	out->content_type = "application/octet-stream";
	out->no_compress = true;
	snprintf(out->headers, sizeof(out->headers),
		"content-disposition: attachment; filename=\"profile.pb.gz\"\r\n"
		"cache-control: no-store\r\n");
}

/* ---- a profile that is kept for some time ---- */

/* Otherwise a mistyped `expires` would only be noticed when the snapshot is gone. */
static enum status refuse_other_parameters(const struct net_request *r, struct err *e)
{
	static const char *const known[] = { "query", "from", "to", "by", "match", "expires",
		"format" };
	struct str rest = r->query, pair;
	while (str_split(&rest, '&', &pair)) {
		struct str name = str_sub(pair, 0, str_index(pair, '='));
		bool found = pair.len == 0;
		for (size_t i = 0; i < ARRAY_COUNT(known); i++)
			found |= str_eq(name, str_of(known[i]));
		if (!found)
			return err_set(e, E_INVALID,
				"\"%.*s\" is no parameter of a snapshot: query, from, to, by, "
				"match "
				"and expires are known",
				STR_ARG(str_sub(name, 0, 40)));
	}
	return OK;
}

static void put_instant(struct buf *out, int64_t ns)
{
	time_t seconds = ns / NS_PER_SEC;
	struct tm tm;
	char text[32] = "?";
	if (gmtime_r(&seconds, &tm))
		(void)strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_cstr(out, text);
}

/* The comment of the file: "firn: SELECTOR from TIME to TIME", which the page reads again. */
static enum status put_note(const struct query_request *r, struct buf *out, struct err *e)
{
	buf_printf(out, "firn: %.*s from ", STR_ARG(r->selector));
	put_instant(out, r->from_ns);
	buf_cstr(out, " to ");
	put_instant(out, r->to_ns);
	if (r->match.len)
		buf_printf(out, " through %.*s", STR_ARG(r->match));
	return buf_status(out) == OK ? OK : err_set(e, buf_status(out), "the query is too long");
}

static enum status answer_snapshot(const struct query_engine *engine, const struct net_request *r,
	struct api_query *q, struct buf *out, struct err *e)
{
	int64_t length_ns = SNAPSHOT_USUAL_NS;
	struct str text;
	enum status s = refuse_other_parameters(r, e);
	if (s != OK)
		return s;
	if (net_query_param(r, "expires", 0, &q->arena, &text) && text.len)
		s = query_parse_duration(text, &length_ns, e);
	if (s != OK)
		return err_prefix(e, s, "expires");
	if (length_ns <= 0 || length_ns > SNAPSHOT_MAX_NS)
		return err_set(e, E_INVALID, "expires: from 1s to %lldd",
			SNAPSHOT_MAX_NS / NS_PER_SEC / 86400);
	CLEANUP(buf_deinit) struct buf profile, note;
	buf_init(&profile, SNAPSHOT_BYTES_MAX);
	buf_init(&note, ARENA_BYTES_MAX);
	q->request.required = true;
	q->format = QUERY_JSON; /* of the answer, whatever the query says */
	s = put_note(&q->request, &note, e);
	q->request.note = buf_view(&note);
	if (s == OK)
		s = query_pprof(engine, &q->request, &profile, e);
	q->request.note = STR("");
	if (s == OK)
		s = server_snapshot(q->server, q->request.tenant, buf_view(&profile),
			clock_realtime_ns() + length_ns, out, e);
	return s;
}

void server_handle_snapshots(void *ctx, const struct net_request *r, struct net_response *out)
{
	static const struct query_request defaults = { 0 };
	answer((struct server *)ctx, r, out, &defaults, answer_snapshot);
}
