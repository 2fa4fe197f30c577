/* SPDX-License-Identifier: Apache-2.0 */
/* GET /pyroscope/render and /pyroscope/render-diff: flame graphs by the parameters of a URL. */
#include "server/pyroscope/pyroscope.h"
#include "server/pyroscope/querier.h"

#include "base/clock.h"

#define TIMELINE_STEPS_MAX 20000

/* Without a query, makes one of `name`, in the form of /ingest: "app.cpu{…}". */
static enum status query_of_name(struct server_call *c, struct str *io)
{
	struct str name = STR("");
	if (io->len || !net_query_param(c->r, "name", 0, &c->a, &name))
		return OK;
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 2 * name.len + 256);
	enum status s = pyroscope_name_query(name, &b, c->e);
	if (s != OK)
		return c->e->text[0] ? s : err_set(c->e, s, "name: too long");
	const char *copy = arena_copy(&c->a, b.data, b.len);
	if (!copy)
		return server_call_no_memory(c);
	*io = str_make(copy, b.len);
	return OK;
}

/* Takes "TYPE{labels}" from the parameters with that prefix. */
static enum status render_query(
	struct server_call *c, const char *const keys[3], struct pyroscope_query *q)
{
	struct str text = STR(""), from = STR(""), until = STR(""), nodes = STR("");
	int64_t now = clock_realtime_ns();
	uint64_t n;
	*q = (struct pyroscope_query){ 0 };
	net_query_param(c->r, keys[0], 0, &c->a, &text);
	net_query_param(c->r, keys[1], 0, &c->a, &from);
	net_query_param(c->r, keys[2], 0, &c->a, &until);
	if (!net_query_param(c->r, "max-nodes", 0, &c->a, &nodes))
		net_query_param(c->r, "maxNodes", 0, &c->a, &nodes);
	if (str_parse_u64(nodes, 10, &n) && n > 0)
		q->nodes_max = (int64_t)MIN(n, (uint64_t)PYROSCOPE_NODES_MAX);
	enum status s = str_eq(str_of(keys[0]), STR("query")) ? query_of_name(c, &text) : OK;
	if (s != OK)
		return s;
	size_t brace = str_index(text, '{');
	q->type = str_trim(str_sub(text, 0, brace));
	q->selector = str_sub(text, brace, text.len);
	if (q->type.len == 0)
		return err_set(
			c->e, E_INVALID, "%s: it has to be TYPE{label=\"value\",…}", keys[0]);
	int64_t start = 0, end = 0;
	if (!pyroscope_time(from.len ? from : STR("now-1h"), now, &start))
		return err_set(c->e, E_INVALID, "%s: \"%.*s\" is not a time", keys[1],
			STR_ARG(str_sub(from, 0, 32)));
	if (!pyroscope_time(until, now, &end))
		return err_set(c->e, E_INVALID, "%s: \"%.*s\" is not a time", keys[2],
			STR_ARG(str_sub(until, 0, 32)));
	q->start_ms = start / NS_PER_MS;
	q->end_ms = end / NS_PER_MS;
	return OK;
}

static void write_flame(struct server_call *c, const struct pyroscope_query *q,
	const struct pyroscope_flame *flame, const struct pyroscope_timelines *lines)
{
	pyroscope_flamebearer_write(
		flame, querier_type_word(q->type, 1), querier_type_unit(q->type), lines, c->out);
}

/* ---- the timeline ---- */

/* Adds the points of a series to the sums of each step. */
static void add_points(
	const struct pyroscope_timelines *lines, const struct query_range_series *s, int64_t *sums)
{
	for (size_t i = 0; i < s->point_count; i++) {
		int64_t at = (s->points[i].time_ns / NS_PER_SEC - lines->start_s) / lines->step_s;
		if (at >= 0 && (uint64_t)at < lines->steps)
			sums[at] = (int64_t)((uint64_t)sums[at] + (uint64_t)s->points[i].value);
	}
}

static enum status make_groups(
	struct server_call *c, const struct query_range *range, struct pyroscope_timelines *out)
{
	struct pyroscope_timeline *groups =
		ARENA_ARRAY(&c->a, struct pyroscope_timeline, MAX(range->count, (size_t)1));
	if (!groups)
		return server_call_no_memory(c);
	for (size_t i = 0; i < range->count; i++) {
		struct str value = range->series[i].values[0];
		int64_t *sums = ARENA_ARRAY(&c->a, int64_t, out->steps);
		if (!sums)
			return server_call_no_memory(c);
		add_points(out, &range->series[i], sums);
		groups[i] = (struct pyroscope_timeline){ value.len ? value : STR("*"), sums };
	}
	out->groups = groups;
	out->group_count = range->count;
	return OK;
}

/* Makes the timelines, by the label `groupBy` if it is given. */
static enum status make_timelines(
	struct server_call *c, const struct pyroscope_query *in, struct pyroscope_timelines *out)
{
	struct pyroscope_query steps = *in;
	CLEANUP(querier_selection_deinit) struct querier_selection x = { 0 };
	struct query_range range = { 0 };
	struct str by = STR("");
	bool grouped = net_query_param(c->r, "groupBy", 0, &c->a, &by) && by.len;
	int64_t step = pyroscope_timeline_step(in->start_ms, in->end_ms);
	int64_t first = in->start_ms / 1000 / step, last = in->end_ms / 1000 / step;
	steps.step_s = (double)step;
	enum status s = querier_select_steps(c, &steps, &x);
	if (s == OK && last - first >= TIMELINE_STEPS_MAX)
		s = err_set(c->e, E_LIMIT, "from, until: more than %d steps", TIMELINE_STEPS_MAX);
	if (s != OK)
		return s;
	*out = (struct pyroscope_timelines){
		.start_s = first * step, .step_s = step, .steps = (size_t)(last - first + 1)
	};
	int64_t *all = ARENA_ARRAY(&c->a, int64_t, out->steps);
	if (!all)
		return server_call_no_memory(c);
	out->all = all;
	by = grouped ? querier_plain_name(c, by) : STR("__none__");
	if (x.found)
		s = query_range(c->engine, &x.q, &by, 1, &c->a, &range, c->e);
	for (size_t i = 0; s == OK && i < range.count; i++)
		add_points(out, &range.series[i], all);
	return s == OK && grouped ? make_groups(c, &range, out) : s;
}

static enum status render(struct server_call *c)
{
	static const char *const keys[] = { "query", "from", "until" };
	struct pyroscope_query q;
	struct pyroscope_flame flame;
	struct pyroscope_timelines lines;
	struct str format = STR("");
	net_query_param(c->r, "format", 0, &c->a, &format);
	bool dot = str_eq(format, STR("dot"));
	if (format.len && !dot && !str_eq(format, STR("json")))
		return err_set(c->e, E_UNSUPPORTED, "format \"%.*s\": json and dot are known",
			STR_ARG(str_sub(format, 0, 32)));
	enum status s = render_query(c, keys, &q);
	if (s == OK && dot) {
		*c->content_type = "text/plain; charset=utf-8";
		return querier_dot(c, &q, c->out);
	}
	if (s == OK)
		s = querier_flame(c, &q, &flame);
	if (s == OK)
		s = make_timelines(c, &q, &lines);
	if (s == OK)
		write_flame(c, &q, &flame, &lines);
	return s;
}

static enum status render_diff(struct server_call *c)
{
	static const char *const left_keys[] = { "leftQuery", "leftFrom", "leftUntil" };
	static const char *const right_keys[] = { "rightQuery", "rightFrom", "rightUntil" };
	struct pyroscope_query left, right;
	struct pyroscope_flame flame;
	enum status s = render_query(c, left_keys, &left);
	if (s == OK)
		s = render_query(c, right_keys, &right);
	if (s == OK)
		s = querier_flame_diff(c, &left, &right, &flame);
	if (s == OK)
		write_flame(c, &left, &flame, NULL);
	return s;
}

void server_pyroscope_render(void *ctx, const struct net_request *r, struct net_response *out)
{
	out->content_type = "application/json";
	server_call_answer(ctx, r, out, render);
}

void server_pyroscope_render_diff(void *ctx, const struct net_request *r, struct net_response *out)
{
	out->content_type = "application/json";
	server_call_answer(ctx, r, out, render_diff);
}
