/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/buf.h"
#include "conf/conf.h"

static enum status parse(struct str json, const char *const *without, struct arena *a,
	const struct conf_node **out, struct err *e)
{
	arena_init(a, 1 << 20);
	return conf_json_parse(json, without, a, out, e);
}

static void reads_a_tree(void **state)
{
	(void)state;
	static const char *const without[] = { "managed", NULL };
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	CHECK_OK(parse(STR(" {\"a\": {\"b\": \"x\\u00e4\\ud83d\\ude00\\n\\\"\", \"managed\": "
			   "{\"c\": [1]}},\n"
			   "\"n\": -1.5e3, \"t\": true, \"z\": null, \"v\": [1, \"2\", []], \"e\": "
			   "{}} "),
			 without, &a, &root, &e),
		&e);
	CHECK_STR(conf_text_at(root, "a.b"), "x\xc3\xa4\xf0\x9f\x98\x80\n\"");
	CHECK_STR(conf_text_at(root, "n"), "-1.5e3");
	CHECK_STR(conf_text_at(root, "t"), "true");
	CHECK(conf_is_empty(conf_find(root, "z")) && conf_find(root, "v")->count == 3);
	CHECK(conf_node_at(root, "a")->count == 1 && !conf_node_at(root, "a.managed"));
	CHECK(!conf_text_at(root, "a.b.c").len && !conf_text_at(root, "x.y").len);
	CHECK(conf_find(root, "e")->kind == CONF_MAP && root->height == 2);
}

static void refuses(void **state)
{
	(void)state;
	static const struct {
		const char *name, *json, *says;
	} cases[] = {
		{ "nothing", "", "no value" },
		{ "a comma too many", "[1,]", "no value" },
		{ "no end", "[1", "an end is expected" },
		{ "no colon", "{\"a\" 1}", "a ':' is expected" },
		{ "no key", "{1: 2}", "a key is expected" },
		{ "text", "\"abc", "without an end" },
		{ "escape", "\"\\x\"", "an escape that is none" },
		{ "NUL", "\"\\u0000\"", "a NUL" },
		{ "control", "\"a\nb\"", "a control character" },
		{ "bytes", "\"\xff\"", "not UTF-8" },
		{ "word", "maybe", "no value" },
		{ "two", "1 2", "something follows" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		const struct conf_node *root = NULL;
		struct err e = { 0 };
		enum status s = parse(str_of(c->json), NULL, &a, &root, &e);
		CHECK_CASE(c, s == E_INVALID && !root && strstr(e.text, c->says));
	}
}

static void has_limits(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(arena_deinit) struct arena b;
	CLEANUP(buf_deinit) struct buf deep, many;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	buf_init(&deep, 1 << 20);
	buf_init(&many, 1 << 20);
	for (int i = 0; i < 100000; i++)
		buf_u8(&deep, '[');
	CHECK(parse(buf_view(&deep), NULL, &a, &root, &e) == E_LIMIT);
	CHECK(strstr(e.text, "nested deeper than 64"));
	buf_u8(&many, '[');
	for (int i = 0; i < 100000; i++)
		buf_cstr(&many, "1,");
	buf_cstr(&many, "1]");
	CHECK(parse(buf_view(&many), NULL, &b, &root, &e) == E_LIMIT);
	CHECK(strstr(e.text, "more values than fit"));
}

TEST_MAIN(cmocka_unit_test(reads_a_tree), cmocka_unit_test(refuses), cmocka_unit_test(has_limits))
