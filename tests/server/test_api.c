/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the parameters of a URL. The questions are answered by the functions below, which
 * stand in for query's own and write down what they were asked. */
#include "test.h"

#include "base/clock.h"

#include <dirent.h>
#include <stdio.h>

#include "ask.h"
#include "server/api/api.h"
#include "server/parca/snapshot.h"
#include "server/request/state.h"
#include "temp_dir.h"

static struct query_request asked;
static enum query_format asked_format;
static char asked_name[16], asked_texts[6][64], asked_label[64];
static bool asked_gone;
static enum status fail_with;
static int yields; /* so often an older query needs the memory of this one */
static const struct query_engine *asked_engine;

static enum status note(const char *name, const struct query_request *r, enum query_format f,
	struct buf *out, struct err *e)
{
	asked = *r;
	asked_format = f;
	snprintf(asked_name, sizeof(asked_name), "%s", name);
	snprintf(asked_texts[0], 64, "%.*s", STR_ARG(r->selector));
	snprintf(asked_texts[1], 64, "%.*s", STR_ARG(r->match));
	for (uint32_t i = 0; i < r->by_count && i < 4; i++)
		snprintf(asked_texts[2 + i], 64, "%.*s", STR_ARG(r->by[i]));
	asked_gone = r->cancel(r->cancel_ctx);
	buf_cstr(out, "answer");
	if (yields > 0) {
		yields--;
		((struct store_query *)asked_engine->samples)->again = true;
		return err_set(e, E_UNAVAILABLE, "later");
	}
	return fail_with == OK ? OK : err_set(e, fail_with, "it failed");
}

#define STAND_IN(fn, name)                                                          \
	enum status fn(const struct query_engine *q, const struct query_request *r, \
		enum query_format f, struct buf *out, struct err *e)                \
	{                                                                           \
		asked_engine = q;                                                   \
		return note(name, r, f, out, e);                                    \
	}
STAND_IN(query_write_types, "types")
STAND_IN(query_write_labels, "labels")
STAND_IN(query_write_series, "series")
STAND_IN(query_write_flame, "flame")
STAND_IN(query_write_top, "top")
STAND_IN(query_write_functions, "functions")

enum status query_write_label_values(const struct query_engine *q, const struct query_request *r,
	struct str name, enum query_format f, struct buf *out, struct err *e)
{
	(void)q;
	snprintf(asked_label, sizeof(asked_label), "%.*s", STR_ARG(name));
	return note("values", r, f, out, e);
}

enum status query_pprof(
	const struct query_engine *q, const struct query_request *r, struct buf *out, struct err *e)
{
	(void)q;
	return note("pprof", r, QUERY_JSON, out, e);
}

enum status server_snapshot(struct server *s, struct str tenant, struct str profile, int64_t end_ns,
	struct buf *out, struct err *e)
{
	(void)s;
	(void)tenant;
	(void)end_ns;
	(void)e;
	buf_str(out, profile);
	return OK;
}

static struct query_request asked_base;
static double asked_worse;

enum status query_write_diff(const struct query_engine *q, const struct query_request *side,
	const struct query_request *base, double worse_above, enum query_format f, struct buf *out,
	struct err *e)
{
	(void)q;
	asked_base = *base;
	asked_worse = worse_above;
	return note("diff", side, f, out, e);
}

static struct server server;
/* What a handler reads of it a test sets here: server_config_default() lies in a file that draws in
 * the functions which have a stand-in above. */
static struct server_config config;

static int setup(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	server.config = &config;
	atomic_store(&server.ready, true);
	fail_with = OK;
	ask_gone_value = false;
	return 0;
}

static void passes_parameters(void **state)
{
	(void)state;
	struct ask a;
	ask_init(&a, "/api/series",
		"query=x%3Ay%7Ba%3D%22b%22%7D&from=1000&to=2000.5&match=foo+bar&by=comm&by=&by=cpu&"
		"limit=7&trim=0.25&step=15s&invert=1&depth=1&format=text&width=80&sort=total");
	server_handle_series(&server, &a.r, &a.out);
	assert_int_equal(a.out.status, OK);
	CHECK_STR(buf_view(&a.out.body), "answer");
	assert_string_equal(asked_name, "series");
	assert_string_equal(asked_texts[0], "x:y{a=\"b\"}");
	assert_string_equal(asked_texts[1], "foo bar");
	assert_string_equal(asked_texts[2], "comm");
	assert_string_equal(asked_texts[3], "cpu");
	assert_int_equal(asked.by_count, 2);
	assert_int_equal(asked.from_ns, 1000 * NS_PER_SEC);
	assert_int_equal(asked.to_ns, 2000 * NS_PER_SEC + NS_PER_SEC / 2);
	assert_int_equal(asked.limit, 7);
	assert_int_equal(asked.step_ns, 15 * NS_PER_SEC);
	CHECK(asked.trim == 0.25 && asked.invert && asked_format == QUERY_TEXT && !asked_gone);
	CHECK(asked.width == 80 && asked.by_total && asked.depth);
	assert_string_equal(a.out.content_type, "text/plain; charset=utf-8");
	ask_deinit(&a);
}

static void has_defaults(void **state)
{
	(void)state;
	struct ask a;
	int64_t before = clock_realtime_ns();
	ask_init(&a, "/api/flamegraph", "step=20");
	ask_gone_value = true;
	server_handle_flamegraph(&server, &a.r, &a.out);
	int64_t after = clock_realtime_ns();
	CHECK(asked.to_ns >= before && asked.to_ns <= after);
	assert_int_equal(asked.to_ns - asked.from_ns, 15 * 60 * NS_PER_SEC);
	CHECK(asked.trim == 0.0001 && asked.limit == 10 && !asked.invert && !asked.depth &&
		asked_gone);
	assert_int_equal(asked.step_ns, 20 * NS_PER_SEC);
	assert_int_equal(asked_format, QUERY_JSON);
	assert_string_equal(a.out.content_type, "application/json");
	ask_deinit(&a);
}

/* Forms that have no place for the value of what is left out. */
static void leaves_nothing_out_of_speedscope(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		double trim;
	} forms[] = {
		{ "format=speedscope", 0 },
		{ "format=firefox", 0 },
		{ "format=firefox&trim=0.5", 0.5 },
		{ "format=folded", 0.0001 },
	};
	FOR_EACH_CASE (c, forms) {
		struct ask a;
		ask_init(&a, "/api/flamegraph", c->name);
		server_handle_flamegraph(&server, &a.r, &a.out);
		CHECK_CASE(c, asked.trim == c->trim);
		ask_deinit(&a);
	}
}

static void routes_each_query(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name; net_handler_fn *fn; } handlers[] = {
		{ "types", server_handle_types }, { "labels", server_handle_labels },
		{ "series", server_handle_series }, { "flame", server_handle_flamegraph },
		{ "top", server_handle_top }, { "pprof", server_handle_pprof },
		{ "flame", server_handle_flamechart },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, handlers) {
		struct ask a;
		ask_init(&a, "/", "");
		c->fn(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == OK);
		CHECK_CASE(c, strcmp(asked_name, c->name) == 0);
		CHECK_CASE(c, asked.chart == (c->fn == server_handle_flamechart));
		ask_deinit(&a);
	}
	assert_int_equal(metric_get(&server.metrics.queries), 7);
	assert_int_equal(metric_get(&server.metrics.queries_running), 0);
}

static void finds_the_label(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name, *label; } paths[] = {
		{ "/api/labels/comm/values", "comm" }, { "/api/labels/a/b/values", "a/b" },
		{ "/api/labels//values", NULL },       { "/api/labels/values", NULL },
		{ "/api/labels/comm", NULL },          { "/api/labels/comm/valuesx", NULL },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, paths) {
		struct ask a;
		ask_init(&a, c->name, "");
		server_handle_label_values(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == (c->label ? OK : E_NOTFOUND));
		CHECK_CASE(c, !c->label || strcmp(asked_label, c->label) == 0);
		ask_deinit(&a);
	}
}

static void refuses_parameters(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name, *says; enum status s; } queries[] = {
		{ "from=yesterday", "from", E_INVALID },  { "to=x", "to", E_INVALID },
		{ "from=20&to=10", "before", E_INVALID }, { "from=10&to=10", "before", E_INVALID },
		{ "limit=-1", "limit", E_INVALID },       { "limit=5000000000", "limit", E_INVALID },
		{ "trim=2", "trim", E_INVALID },          { "trim=nan", "trim", E_INVALID },
		{ "step=0", "step", E_INVALID },          { "step=abc", "step", E_INVALID },
		{ "format=xml", "format", E_INVALID },    { "width=wide", "width", E_INVALID },
		{ "width=100001", "width", E_INVALID },   { "sort=name", "sort", E_INVALID },
		{ "by=1&by=2&by=3&by=4&by=5&by=6&by=7&by=8&by=9", "by", E_LIMIT },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, queries) {
		struct ask a;
		ask_init(&a, "/api/top", c->name);
		server_handle_top(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == c->s);
		CHECK_CASE(c, a.out.http_status == (c->s == E_LIMIT ? 422 : 400));
		CHECK_CASE(c, strstr(a.out.message, c->says) != NULL);
		ask_deinit(&a);
	}
	assert_int_equal(
		metric_get(&server.metrics.queries_failed), sizeof(queries) / sizeof(queries[0]));
	assert_int_equal(metric_get(&server.metrics.queries_running), 0);
}

static void answers_pprof_as_go_expects(void **state)
{
	(void)state;
	struct ask a;
	ask_init(&a, "/api/pprof", "");
	server_handle_pprof(&server, &a.r, &a.out);
	assert_string_equal(a.out.content_type, "application/octet-stream");
	CHECK(a.out.no_compress && strstr(a.out.headers, "attachment"));
	ask_deinit(&a);
	fail_with = E_INVALID;
	ask_init(&a, "/api/pprof", "");
	server_handle_pprof(&server, &a.r, &a.out);
	CHECK_STR(buf_view(&a.out.body), "it failed\n");
	assert_int_equal(a.out.http_status, 400);
	assert_string_equal(a.out.headers, "X-Go-Pprof: 1\r\n");
	CHECK(str_starts(str_of(a.out.content_type), STR("text/plain")));
	ask_deinit(&a);
}

static void is_not_ready(void **state)
{
	(void)state;
	struct ask a;
	atomic_store(&server.ready, false);
	ask_init(&a, "/api/top", "");
	server_handle_top(&server, &a.r, &a.out);
	assert_int_equal(a.out.http_status, 503);
	CHECK(strstr(a.out.message, "opened"));
	ask_deinit(&a);
}

/* A query whose memory an older one needed is asked anew, and its client sees one answer. */
static void asks_anew_after_giving_way(void **state)
{
	(void)state;
	struct ask a;
	struct temp_dir dir;
	struct store_config c;
	struct err e = { 0 };
	temp_dir_init(&dir);
	store_config_default(&c);
	char path[80];
	snprintf(path, sizeof(path), "%s/store", dir.path);
	c.path = path;
	CHECK_OK(store_open(&c, NULL, NULL, &server.store, &e), &e);
	yields = 2;
	ask_init(&a, "/api/top", "");
	server_handle_top(&server, &a.r, &a.out);
	CHECK(a.out.status == OK && yields == 0);
	CHECK_STR(buf_view(&a.out.body), "answer");
	ask_deinit(&a);
	CHECK(metric_get(&server.metrics.queries) == 1);
	ask_gone_value = true; /* nobody waits for it any more */
	yields = 2;
	ask_init(&a, "/api/top", "");
	server_handle_top(&server, &a.r, &a.out);
	CHECK(a.out.status == E_UNAVAILABLE && yields == 1);
	ask_deinit(&a);
	store_close(server.store);
	server.store = NULL;
	char command[128];
	snprintf(command, sizeof(command), "rm -rf %s", dir.path);
	CHECK(system(command) == 0);
}

static void compares_two_queries(void **state)
{
	(void)state;
	struct ask a;
	ask_init(&a, "/api/diff",
		"query=x&from=1000&to=2000&base_from=500&limit=5&worse_above=0.5&match=foo");
	server_handle_diff(&server, &a.r, &a.out);
	assert_int_equal(a.out.status, OK);
	CHECK_STR(str_of(asked_texts[0]), "x");
	CHECK_STR(str_of(asked_texts[1]), "foo");
	CHECK(asked.limit == 5 && asked_worse == 0.5 && !asked.required);
	CHECK(asked_base.from_ns == 500 * NS_PER_SEC);
	CHECK(asked_base.to_ns == 2000 * NS_PER_SEC);
	ask_deinit(&a);
	/* Without a base: as long a time right before. */
	ask_init(&a, "/api/diff", "query=x&from=1000&to=3000&required=1");
	server_handle_diff(&server, &a.r, &a.out);
	CHECK(a.out.status == OK && asked.required && asked.from_ns == 1000 * NS_PER_SEC);
	CHECK(asked_base.from_ns == -1000 * NS_PER_SEC);
	CHECK(asked_base.to_ns == 1000 * NS_PER_SEC);
	ask_deinit(&a);
	static const char *const wrong[] = { "worse_above=2", "base_from=x",
		"base_from=3000&base_to=2000" };
	for (size_t i = 0; i < ARRAY_COUNT(wrong); i++) {
		ask_init(&a, "/api/diff", wrong[i]);
		server_handle_diff(&server, &a.r, &a.out);
		CHECK(a.out.status == E_INVALID);
		ask_deinit(&a);
	}
	ask_init(&a, "/api/flamegraph", "format=html");
	server_handle_flamegraph(&server, &a.r, &a.out);
	CHECK(a.out.status == OK && asked_format == QUERY_HTML);
	CHECK(strstr(a.out.headers, "content-security-policy: sandbox allow-scripts;"));
	CHECK_STR(str_of(a.out.content_type), "text/html; charset=utf-8");
	ask_deinit(&a);
}

TEST_MAIN(cmocka_unit_test_setup(compares_two_queries, setup),
	cmocka_unit_test_setup(passes_parameters, setup),
	cmocka_unit_test_setup(has_defaults, setup),
	cmocka_unit_test_setup(leaves_nothing_out_of_speedscope, setup),
	cmocka_unit_test_setup(routes_each_query, setup),
	cmocka_unit_test_setup(finds_the_label, setup),
	cmocka_unit_test_setup(refuses_parameters, setup),
	cmocka_unit_test_setup(answers_pprof_as_go_expects, setup),
	cmocka_unit_test_setup(asks_anew_after_giving_way, setup),
	cmocka_unit_test_setup(is_not_ready, setup))
