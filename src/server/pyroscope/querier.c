/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reports of querier.v1.QuerierService, which Grafana, its Drilldown and profilecli ask: flame
 * graphs, pprof files, comparisons and series. Its lists: querier_labels.c.
 */
#include "server/pyroscope/querier.h"
#include "server/pyroscope/pyroscope.h"

#include "base/clock.h"
#include "codec/codec.h"

#include <stdlib.h>

/* The version of querier.v1's messages, as Pyroscope counts it. */
#define QUERIER_API 1
/* Nodes of the tree that a graph of functions is made of; smaller ones are "other". */
#define DOT_TREE_NODES 65536

/* ---- flame graphs and pprof ---- */

static int64_t querier_nodes(const struct pyroscope_query *q)
{
	if (q->nodes_max <= 0)
		return q->nodes_max < 0 ? PYROSCOPE_NODES_MAX : PYROSCOPE_NODES_DEFAULT;
	return MIN(q->nodes_max, (int64_t)PYROSCOPE_NODES_MAX);
}

/* nodes_max: beyond it, nodes with the smallest totals may be left out; 0: all are kept. */
static enum status side_of(struct server_call *c, const struct pyroscope_query *in,
	int64_t nodes_max, struct pyroscope_side *out)
{
	static const uint32_t no_node[1];
	static const int64_t no_value[1];
	CLEANUP(querier_selection_deinit) struct querier_selection x;
	struct query_flame flame = { 0 };
	*out = (struct pyroscope_side){ 1, no_node, no_node, NULL, no_value, NULL };
	enum status s = querier_select(c, in, &x);
	x.q.by_name = true;
	x.q.nodes_wanted = (uint32_t)nodes_max;
	if (s == OK && x.found)
		s = query_flame(c->engine, &x.q, &c->a, &flame, c->e);
	if (s == OK && flame.count)
		*out = (struct pyroscope_side){ flame.count, flame.parent, flame.name,
			flame.strings, flame.self, flame.total };
	return s;
}

enum status querier_flame(
	struct server_call *c, const struct pyroscope_query *in, struct pyroscope_flame *out)
{
	struct pyroscope_side side;
	int64_t nodes_max = querier_nodes(in);
	enum status s = side_of(c, in, nodes_max, &side);
	return s == OK ? pyroscope_flame_make(&side, NULL, nodes_max, &c->a, out, c->e) : s;
}

enum status querier_dot(struct server_call *c, const struct pyroscope_query *in, struct buf *out)
{
	struct pyroscope_query all = *in;
	struct pyroscope_flame flame;
	all.nodes_max = DOT_TREE_NODES;
	enum status s = querier_flame(c, &all, &flame);
	return s == OK ? pyroscope_dot_write(&flame, querier_type_unit(in->type), in->nodes_max,
				 &c->a, out, c->e)
		       : s;
}

/* profile.proto, not compressed; empty: there are no samples. */
static enum status pprof_of(
	struct server_call *c, const struct pyroscope_query *in, struct buf *out)
{
	CLEANUP(buf_deinit) struct buf packed;
	CLEANUP(querier_selection_deinit) struct querier_selection x;
	struct query_report info = { 0 };
	buf_init(&packed, NET_ANSWER_MAX);
	enum status s = querier_select(c, in, &x);
	if (s != OK || !x.found)
		return s;
	uint64_t innermost = x.calls.innermost;
	struct query_report_request r = { .tenant = c->tenant,
		.calls = x.q.calls,
		.call_count = x.q.call_count,
		.filters = x.q.frames,
		.filter_count = x.q.frames != NULL,
		.innermost = innermost > QUERY_INNERMOST_MAX ? 0 : (uint32_t)innermost,
		.plain_callee = x.calls.plain_callee,
		.side = { .selector = x.q.selector,
			.from_ns = x.q.from_ns,
			.to_ns = x.q.to_ns,
			.single = true },
		.cancel = x.q.cancel,
		.cancel_ctx = x.q.cancel_ctx };
	s = query_report_pprof(c->engine, &r, &packed, &info, c->e);
	return s == OK && info.found ? codec_gunzip(packed.data, packed.len, out, c->e) : s;
}

static enum status merge(struct server_call *c, enum pyroscope_request kind)
{
	struct pyroscope_query q;
	struct pyroscope_flame flame;
	enum status s = pyroscope_query_decode(c->r->body, kind, &q, c->e);
	if (s != OK)
		return s;
	if (q.format == PYROSCOPE_PPROF) {
		size_t pprof = pb_begin(c->out, 5), profile = pb_begin(c->out, 1);
		s = pprof_of(c, &q, c->out);
		pb_end(c->out, profile);
		pb_end(c->out, pprof);
		return s;
	}
	if (q.format > PYROSCOPE_PPROF)
		return err_set(c->e, E_UNSUPPORTED, "format %llu is not known",
			(unsigned long long)q.format);
	if (q.format == PYROSCOPE_DOT) {
		size_t dot = pb_begin(c->out, 3);
		s = querier_dot(c, &q, c->out);
		pb_end(c->out, dot);
		return s;
	}
	s = querier_flame(c, &q, &flame);
	if (s == OK && q.format == PYROSCOPE_TREE) {
		size_t tree = pb_begin(c->out, 2);
		s = pyroscope_tree_write(&flame, &c->a, c->out, c->e);
		pb_end(c->out, tree);
	} else if (s == OK) {
		pyroscope_flame_encode(&flame, 1, c->out);
	}
	return s;
}

static enum status merge_stacktraces(struct server_call *c)
{
	return merge(c, PYROSCOPE_STACKTRACES);
}

static enum status merge_span_profile(struct server_call *c)
{
	return merge(c, PYROSCOPE_SPAN_PROFILE);
}

static enum status merge_profile(struct server_call *c)
{
	struct pyroscope_query q;
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_PROFILE, &q, c->e);
	return s == OK ? pprof_of(c, &q, c->out) : s;
}

enum status querier_flame_diff(struct server_call *c, const struct pyroscope_query *left,
	const struct pyroscope_query *right, struct pyroscope_flame *out)
{
	struct pyroscope_side sides[2];
	enum status s = side_of(c, left, 0, &sides[0]);
	if (s == OK)
		s = side_of(c, right, 0, &sides[1]);
	return s == OK ? pyroscope_flame_make(
				 &sides[0], &sides[1], querier_nodes(left), &c->a, out, c->e)
		       : s;
}

static enum status diff(struct server_call *c)
{
	struct pyroscope_query left, right;
	struct pyroscope_flame flame;
	enum status s = pyroscope_diff_decode(c->r->body, &left, &right, c->e);
	if (s == OK)
		s = querier_flame_diff(c, &left, &right, &flame);
	if (s == OK)
		pyroscope_flame_encode(&flame, 1, c->out);
	return s;
}

/* ---- SelectSeries ---- */

static int64_t sum_of(const struct query_range_series *s)
{
	int64_t sum = 0;
	for (size_t i = 0; i < s->point_count; i++)
		sum = (int64_t)((uint64_t)sum + (uint64_t)s->points[i].value);
	return sum;
}

static int by_sum(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

/* Finds the smallest sum among the `limit` series with the largest sums: series with a smaller one
 * are left out. Also how many with exactly that sum stay. */
static enum status smallest_sum(struct server_call *c, const struct query_range *r, int64_t limit,
	int64_t *out, int64_t *out_equal)
{
	*out = INT64_MIN;
	*out_equal = INT64_MAX;
	if (limit <= 0 || (uint64_t)limit >= r->count)
		return OK;
	int64_t *sums = ARENA_ARRAY(&c->a, int64_t, r->count);
	if (!sums)
		return server_call_no_memory(c);
	for (size_t i = 0; i < r->count; i++)
		sums[i] = sum_of(&r->series[i]);
	qsort(sums, r->count, sizeof(*sums), by_sum);
	*out = sums[limit - 1];
	for (*out_equal = 0; *out_equal < limit && sums[limit - 1 - *out_equal] == *out;)
		(*out_equal)++;
	return OK;
}

static double mean_of(const struct querier_points *p, size_t first, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++)
		sum += (double)p->v[first + i].value;
	return sum / (double)count;
}

/* `each`: the profiles or spans of all points, if the answer has them. */
static void put_series(struct server_call *c, const struct pyroscope_query *in,
	const struct query_range_series *s, const struct querier_points *each, int64_t step_ns)
{
	size_t begun = pb_begin(c->out, 1);
	for (uint32_t i = 0; i < in->names.count; i++)
		if (s->values[i].len)
			querier_put_pair(c->out, in->names.v[i], s->values[i]);
	for (size_t i = 0; i < s->point_count; i++) {
		const struct query_range_point *p = &s->points[i];
		size_t point = pb_begin(c->out, 2), first = 0;
		size_t count = each ? querier_points_of(each, s->values, p->time_ns, &first) : 0;
		bool mean = in->average && count;
		pb_put_double(c->out, 1, mean ? mean_of(each, first, count) : (double)p->value);
		pb_put_i64(c->out, 2, (p->time_ns + step_ns) / NS_PER_MS);
		if (in->exemplars && count)
			querier_put_exemplar(c, each, first, 4);
		pb_end(c->out, point);
	}
	pb_end(c->out, begun);
}

/* The point of a time t is the sum of the samples in [t - step, t). Times are multiples of the
 * step, so that they stay where they are when a client asks again a little later. */
static enum status select_series(struct server_call *c)
{
	CLEANUP(querier_selection_deinit) struct querier_selection x = { 0 };
	struct pyroscope_query in;
	struct query_range range = { 0 };
	struct querier_points each;
	struct str by[PYROSCOPE_LIST_MAX + 1];
	int64_t least = 0, equal = 0;
	enum status s = pyroscope_query_decode(c->r->body, PYROSCOPE_SELECT_SERIES, &in, c->e);
	if (s == OK && in.average && in.exemplars == PYROSCOPE_EXEMPLARS_SPANS)
		s = err_set(c->e, E_UNSUPPORTED, "averages with exemplars of spans");
	if (s == OK)
		s = querier_select_steps(c, &in, &x);
	if (s == OK && x.chosen && in.average)
		s = err_set(c->e, E_UNSUPPORTED, "averages with stack_trace_selector");
	if (s != OK || !x.found)
		return s;
	/* Exemplars are whole profiles: if only some stacks are wanted, there are none. */
	bool more = !x.chosen && (in.average || in.exemplars);
	struct query_request *q = &x.q;
	size_t by_count = MAX(in.names.count, 1u);
	for (uint32_t i = 0; i < in.names.count; i++)
		by[i] = querier_plain_name(c, in.names.v[i]);
	/* A label that no series has, so that all are summed, gauges too. */
	by[in.names.count] = STR("__none__");
	if (x.chosen)
		s = query_range_chosen(c->engine, q, by, by_count, &c->a, &range, c->e);
	else
		s = query_range(c->engine, q, by, by_count, &c->a, &range, c->e);
	if (s == OK)
		s = smallest_sum(c, &range, in.series_max, &least, &equal);
	if (s == OK && more)
		s = querier_points_find(
			c, q, by, in.names.count, in.exemplars == PYROSCOPE_EXEMPLARS_SPANS, &each);
	for (size_t i = 0; s == OK && i < range.count; i++) {
		int64_t sum = sum_of(&range.series[i]);
		if (sum > least || (sum == least && equal-- > 0))
			put_series(c, &in, &range.series[i], more ? &each : NULL, q->step_ns);
	}
	return s;
}

/* ---- handlers ---- */

SERVER_CALL_HANDLER(server_querier_select_series, select_series)
SERVER_CALL_HANDLER(server_querier_merge_stacktraces, merge_stacktraces)
SERVER_CALL_HANDLER(server_querier_merge_span_profile, merge_span_profile)
SERVER_CALL_HANDLER(server_querier_merge_profile, merge_profile)
SERVER_CALL_HANDLER(server_querier_diff, diff)

void server_pyroscope_nothing(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	(void)out;
}

/* Calls that firn does not implement: the error says so. */
#define REFUSAL(name, sentence)                                                     \
	void name(void *ctx, const struct net_request *r, struct net_response *out) \
	{                                                                           \
		struct err e = { 0 };                                               \
		(void)ctx;                                                          \
		(void)r;                                                            \
		net_fail(out, err_set(&e, E_UNSUPPORTED, sentence), &e);            \
	}
REFUSAL(server_pyroscope_no_github, "GitHub integration is not configured: firn has none")
REFUSAL(server_pyroscope_no_rules, "firn makes no metrics of profiles")
REFUSAL(server_pyroscope_no_debuginfo, "firn takes debug files by Parca's DebuginfoService")

/* ShouldInitiateUploadResponse { should_initiate_upload = 1, reason = 2 } */
void server_pyroscope_decline(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	pb_put_str(&out->body, 2, STR("firn takes debug files by Parca's DebuginfoService"));
}

/* VersionResponse { QuerierAPI = 1 } */
void server_pyroscope_version(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	pb_put_u64(&out->body, 1, QUERIER_API);
}
