/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/buf.h"
#include "conf/conf.h"

static void reads_a_tree(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, CONF_ARENA_BYTES);
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	struct str yaml = STR("a: 1\nlist:\n- x\n- {b: 'null', c: ~}\nsame: &s [1, 2]\nmore: *s\n"
			      "t: 1m30s\nyes: true\n");
	CHECK_OK(conf_parse(yaml, &a, &root, &e), &e);
	CHECK(root->kind == CONF_MAP && root->count == 6);
	CHECK_STR(root->v[0].key, "a");
	const struct conf_node *list = conf_find(root, "list");
	CHECK(list->kind == CONF_LIST && list->count == 2 && list->line == 3 && list->column == 1);
	const struct conf_node *map = list->v[1].value;
	CHECK(map->line == 4 && map->column == 3);
	CHECK_STR(conf_find(map, "b")->text, "null");
	CHECK(!conf_is_empty(conf_find(map, "b")) && conf_is_empty(conf_find(map, "c")));
	CHECK(conf_find(root, "more") == conf_find(root, "same"));
	CHECK(!conf_find(root, "none") && !conf_find(list, "x"));
	uint64_t number = 0;
	int64_t ns = 0;
	bool yes = false;
	CHECK_OK(conf_number(conf_find(root, "a"), "a", 0, 9, &number, &e), &e);
	CHECK_OK(conf_duration(conf_find(root, "t"), "t", &ns, &e), &e);
	CHECK_OK(conf_bool(conf_find(root, "yes"), "yes", &yes, &e), &e);
	CHECK(number == 1 && ns == 90000000000 && yes);
	CHECK(conf_number(conf_find(root, "a"), "a", 2, 9, &number, &e) == E_INVALID);
	CHECK_STR(str_of(e.text), "line 1, column 4: a must be a whole number from 2 to 9");
	static const char *const names[] = { "list", "lost", NULL };
	CHECK(conf_unknown(&e, &root->v[1], names) == E_INVALID);
	CHECK_OK(conf_parse(STR("# nothing\n"), &a, &root, &e), &e);
	CHECK(!root);
}

static void says_where_it_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *name, *yaml;
		enum status status;
		const char *says;
	} cases[] = {
		{ "twice", "a: 1\nb: 2\na: 3\n", E_INVALID,
			"line 3, column 1: \"a\" is there twice" },
		{ "no YAML", "a: [1, 2\nb: 3", E_INVALID, "line 2, column 2: " },
		{ "key", "? [a]\n: 1\n", E_INVALID, "line 1, column 3: a key must be a text" },
		{ "anchor", "a: *x\n", E_INVALID, "line 1, column 4: there is no anchor \"x\"" },
		{ "itself", "a: &x [*x]\n", E_INVALID, "an alias inside of what it stands for" },
		{ "documents", "a: 1\n---\nb: 2\n", E_INVALID, "a second document" },
		{ "deep", "[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]", E_LIMIT, "nested deeper than 16" },
		{ "laughs",
			"a: &a [1,1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
			"c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\n"
			"e: [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\n",
			E_LIMIT, "too many values" },
		{ "deep by aliases",
			"a: &a [[[[[1]]]]]\nb: &b [[[[[*a]]]]]\nc: &c [[[[[*b]]]]]\nd: [*c]\n",
			E_LIMIT, "nested too deep by its aliases" },
		{ "NUL", "a: \"x\\0y\"\n", E_INVALID, "a NUL byte" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		const struct conf_node *root = NULL;
		struct err e = { 0 };
		arena_init(&a, CONF_ARENA_BYTES);
		CHECK_CASE(c, conf_parse(str_of(c->yaml), &a, &root, &e) == c->status);
		if (!strstr(e.text, c->says))
			print_error("%s\n", e.text);
		CHECK_CASE(c, strstr(e.text, c->says) && !root);
	}
}

/* 47,722 times 90,001 values are 60,426 of 32 bits. */
static void counts_what_aliases_stand_for(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	buf_init(&b, CONF_BYTES_MAX);
	arena_init(&a, CONF_ARENA_BYTES);
	buf_cstr(&b, "a: &a [");
	for (int i = 0; i < 90000; i++)
		buf_cstr(&b, "x,");
	buf_cstr(&b, "]\nb: [");
	for (int i = 0; i < 47722; i++)
		buf_cstr(&b, "*a ,");
	buf_cstr(&b, "]\n");
	CHECK(buf_status(&b) == OK);
	CHECK(conf_parse(buf_view(&b), &a, &root, &e) == E_LIMIT && !root);
	CHECK(strstr(e.text, "too many values"));
}

/* As many keys as fit: compared with each other they would take half a minute. */
static void reads_many_keys(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	buf_init(&b, CONF_BYTES_MAX);
	arena_init(&a, CONF_ARENA_BYTES);
	for (int i = 0; i < 49000; i++)
		buf_printf(&b, "k%d: 1\n", i);
	CHECK_OK(conf_parse(buf_view(&b), &a, &root, &e), &e);
	CHECK(root->count == 49000);
	CHECK_STR(root->v[48999].key, "k48999");
	buf_cstr(&b, "k77: 2\n");
	CHECK(conf_parse(buf_view(&b), &a, &root, &e) == E_INVALID);
	CHECK_STR(str_of(e.text), "line 49001, column 1: \"k77\" is there twice");
	buf_clear(&b);
	for (int i = 0; i <= CONF_ANCHORS_MAX; i++)
		buf_printf(&b, "- &a%d x\n", i);
	CHECK(conf_parse(buf_view(&b), &a, &root, &e) == E_LIMIT);
	CHECK_STR(str_of(e.text), "line 1001, column 3: too many anchors");
}

TEST_MAIN(cmocka_unit_test(reads_a_tree), cmocka_unit_test(says_where_it_is_wrong),
	cmocka_unit_test(counts_what_aliases_stand_for), cmocka_unit_test(reads_many_keys))
