/* SPDX-License-Identifier: Apache-2.0 */
/* GET /pyroscope/render and /pyroscope/render-diff: flame graphs by the parameters of a URL. */
#include "server/querier.h"

#include "base/clock.h"

/* "TYPE{labels}" of the parameters with that prefix. */
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

static enum status write_flame(
	struct server_call *c, const struct pyroscope_query *q, const struct pyroscope_flame *flame)
{
	pyroscope_flamebearer_write(
		flame, querier_type_word(q->type, 1), querier_type_unit(q->type), c->out);
	return OK;
}

static enum status render(struct server_call *c)
{
	static const char *const keys[] = { "query", "from", "until" };
	struct pyroscope_query q;
	struct pyroscope_flame flame;
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
	return s == OK ? write_flame(c, &q, &flame) : s;
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
	return s == OK ? write_flame(c, &left, &flame) : s;
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
