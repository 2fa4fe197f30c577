/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "conf/conf.h"

struct settings {
	const char *name;
	bool yes;
	int64_t wait_ns;
	uint64_t port;
	const struct conf_node *list;
};

static const struct conf_field fields[] = {
	{ "name", conf_field_text, offsetof(struct settings, name), NULL },
	{ "yes", conf_field_bool, offsetof(struct settings, yes), NULL },
	{ "wait", conf_field_duration, offsetof(struct settings, wait_ns), NULL },
	{ "port", conf_field_port, offsetof(struct settings, port), NULL },
	{ "list", conf_field_texts, offsetof(struct settings, list), NULL },
	{ "old", conf_field_ignore, 0, NULL },
	{ "cloud", conf_field_refuse, 0, "there is none" },
	{ 0 },
};

static enum status read_it(const char *yaml, struct arena *a, struct settings *out, struct err *e)
{
	const struct conf_node *root = NULL;
	arena_init(a, CONF_ARENA_BYTES);
	CHECK_OK(conf_parse(str_of(yaml), a, &root, e), e);
	return conf_read_map(root, fields, out, e);
}

static void reads_by_a_table(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct settings s = { .port = 7 };
	struct err e = { 0 };
	CHECK_OK(read_it("name: n\nyes: true\nwait: 0\nport:\nlist: [a, b]\nold: 1\n", &a, &s, &e),
		&e);
	CHECK_STR(str_of(s.name), "n");
	CHECK(s.yes && s.wait_ns == 0 && s.port == 7 && s.list->count == 2);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *name, *yaml, *says;
	} cases[] = {
		{ "unknown", "names: x", "there is no key \"names\" here; did you mean \"name\"?" },
		{ "refused", "cloud: x", "line 1, column 1: cloud: there is none" },
		{ "port", "port: 70000", "port must be a whole number from 1 to 65535" },
		{ "list", "list: x", "list must be a list of texts" },
		{ "item", "list: [[x]]", "a text is expected" },
		{ "no map", "[x]", "a mapping is expected" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		struct settings s = { 0 };
		struct err e = { 0 };
		CHECK_CASE(c, read_it(c->yaml, &a, &s, &e) == E_INVALID && strstr(e.text, c->says));
	}
}

TEST_MAIN(cmocka_unit_test(reads_by_a_table), cmocka_unit_test(says_what_is_wrong))
