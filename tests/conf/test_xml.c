/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "base/buf.h"
#include "conf/conf.h"

static void reads_a_tree(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	CHECK_OK(conf_xml_parse(STR("<?xml version=\"1.0\"?><!-- c --><r x='1'>\n <id> a&lt;&#228;"
				    "<![CDATA[<&]]></id>\n <set><item><n>1</n></item> lost <item>"
				    "<n>2</n></item></set><none/></r>"),
			 &a, &root, &e),
		&e);
	CHECK_STR(conf_text_at(root, "id"), " a<\xc3\xa4<&");
	const struct conf_node *set = conf_find(root, "set");
	CHECK(set && set->kind == CONF_MAP && set->count == 2 && set->height == 2);
	CHECK_STR(conf_text_at(set->v[0].value, "n"), "1");
	CHECK_STR(conf_text_at(set->v[1].value, "n"), "2");
	CHECK(conf_is_empty(conf_find(root, "none")) && root->weight == 8);
}

static void refuses(void **state)
{
	(void)state;
	static const struct {
		const char *name, *xml, *says;
	} cases[] = {
		{ "nothing", "", "no element" },
		{ "no end", "<a><b></b>", "not XML at byte" },
		{ "crossed", "<a><b></a></b>", "mismatched tag" },
		{ "two", "<a/><b/>", "junk after" },
		{ "bytes", "<a>\xff</a>", "not XML at byte 3" },
		{ "an entity", "<a>&x;</a>", "undefined entity" },
		{ "laughs", "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "a document type" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		const struct conf_node *root = NULL;
		struct err e = { 0 };
		arena_init(&a, 1 << 20);
		enum status s = conf_xml_parse(str_of(c->xml), &a, &root, &e);
		CHECK_CASE(c, s == E_INVALID && !root && strstr(e.text, c->says));
	}
}

static void holds_limits(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf b;
	const struct conf_node *root = NULL;
	struct err e = { 0 };
	buf_init(&b, 1 << 20);
	for (int i = 0; i < CONF_XML_DEPTH_MAX; i++)
		buf_cstr(&b, "<a>");
	for (int i = 0; i < CONF_XML_DEPTH_MAX; i++)
		buf_cstr(&b, "</a>");
	arena_init(&a, 1 << 16);
	CHECK_OK(conf_xml_parse(buf_view(&b), &a, &root, &e), &e);
	CHECK(root->height == CONF_XML_DEPTH_MAX - 1);
	buf_clear(&b);
	for (int i = 0; i <= CONF_XML_DEPTH_MAX; i++)
		buf_cstr(&b, "<a>");
	CHECK(conf_xml_parse(buf_view(&b), &a, &root, &e) == E_LIMIT);
	CHECK(strstr(e.text, "nested deeper"));
	buf_clear(&b);
	buf_cstr(&b, "<a>");
	for (int i = 0; i < 10000; i++)
		buf_cstr(&b, "<b/>");
	buf_cstr(&b, "</a>");
	CHECK(conf_xml_parse(buf_view(&b), &a, &root, &e) == E_LIMIT);
	CHECK(strstr(e.text, "more elements than fit"));
}

TEST_MAIN(cmocka_unit_test(reads_a_tree), cmocka_unit_test(refuses), cmocka_unit_test(holds_limits))
