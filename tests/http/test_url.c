/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "http/http.h"

/* clang-format off */
static const struct { const char *name, *target, *path, *query; } targets[] = {
	{ "root",             "/", "/", "" },
	{ "query",            "/a?b=c?d", "/a", "b=c?d" },
	{ "empty query",      "/a?", "/a", "" },
	{ "escapes",          "/a%20b%2Fc%C3%A9", "/a b/c\xC3\xA9", "" },
	{ "plus stays",       "/a+b", "/a+b", "" },
	{ "dots in names",    "/..a/b../...", "/..a/b../...", "" },
	{ "no slash",         "a", NULL, NULL },
	{ "asterisk",         "*", NULL, NULL },
	{ "empty",            "", NULL, NULL },
	{ "only query",       "?a", NULL, NULL },
	{ "parent",           "/a/../b", NULL, NULL },
	{ "parent last",      "/a/..", NULL, NULL },
	{ "escaped parent",   "/%2e%2E/etc", NULL, NULL },
	{ "escaped slash",    "/a%2f..%2fb", NULL, NULL },
	{ "single dot",       "/./a", NULL, NULL },
	{ "NUL",              "/a%00b", NULL, NULL },
	{ "line break",       "/a%0d%0ab", NULL, NULL },
	{ "short escape",     "/a%2", NULL, NULL },
	{ "bad escape",       "/a%zz", NULL, NULL },
};
/* clang-format on */

static void splits_targets(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, targets) {
		char out[64];
		struct str path, query;
		struct err e;
		enum status s = http_target_parse(str_of(c->target), out, &path, &query, &e);
		CHECK_CASE(c, s == (c->path ? OK : E_INVALID));
		if (s != OK)
			continue;
		CHECK_CASE(c, str_eq(path, str_of(c->path)));
		CHECK_CASE(c, str_eq(query, str_of(c->query)));
	}
}

static void finds_parameters(void **state)
{
	(void)state;
	struct arena a;
	struct str v, q = STR("by=comm&x=%7B+%2B%7d&by=cpu&empty=&flag&b%79=third&bad=%2");
	arena_init(&a, 10000);
	CHECK(http_query_find(q, "by", 0, &a, &v));
	CHECK_STR(v, "comm");
	CHECK(http_query_find(q, "by", 1, &a, &v));
	CHECK_STR(v, "cpu");
	CHECK(http_query_find(q, "by", 2, &a, &v));
	CHECK_STR(v, "third");
	CHECK(!http_query_find(q, "by", 3, &a, &v));
	CHECK(http_query_find(q, "x", 0, &a, &v));
	CHECK_STR(v, "{ +}");
	CHECK(http_query_find(q, "empty", 0, &a, &v) && v.len == 0);
	CHECK(http_query_find(q, "flag", 0, &a, &v) && v.len == 0);
	CHECK(!http_query_find(q, "bad", 0, &a, &v));
	CHECK(!http_query_find(q, "absent", 0, &a, &v));
	arena_deinit(&a);
}

static void reads_lists(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { const char *name, *list; bool has; } lists[] = {
		{ "alone", "gzip", true },             { "among", "br, GZIP ,x", true },
		{ "weight", "gzip;q=0.5", true },      { "zero", "gzip;q=0", false },
		{ "zeros", "gzip; q=0.000", false },   { "longer", "gzipped", false },
		{ "empty", "", false },                { "other's weight", "br;q=0, gzip", true },
		{ "parameter", "gzip;x=1", true },
	};
	/* clang-format on */
	FOR_EACH_CASE (c, lists)
		CHECK_CASE(c, http_list_has(str_of(c->list), "gzip") == c->has);
}

static void knows_reasons(void **state)
{
	(void)state;
	assert_string_equal(http_status_text(404), "Not Found");
	assert_string_equal(http_status_text(299), "");
}

TEST_MAIN(cmocka_unit_test(splits_targets), cmocka_unit_test(finds_parameters),
	cmocka_unit_test(reads_lists), cmocka_unit_test(knows_reasons))
