/* SPDX-License-Identifier: Apache-2.0 */
#include "amazon.h"

#define KEYS "region: eu-west-1\naccess_key: AKIAEXAMPLE\nsecret_key: " SECRET "\n"

static void finds_instances(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf out;
	struct err e = { 0 };
	char url[100];
	buf_init(&out, 1 << 20);
	struct net_server *server = start(url);
	CHECK_OK(find(url, KEYS, &out, &e), &e);
	CHECK_STR(str_of((const char *)out.data), FIRST SECOND);
	CHECK_OK(find(url, KEYS "filters: [{name: 'tag:env', values: [a b, c]}]", &out, &e), &e);
	CHECK_STR(str_of((const char *)out.data), "");
	CHECK(find(url, "region: eu-west-1\naccess_key: AKIAEXAMPLE\nsecret_key: no", &out, &e) ==
		E_DENIED);
	CHECK_STR(str_of(e.text), "EC2: HTTP status 403: AuthFailure: wrong signature");
	CHECK(find(url, "region: eu.west\n", &out, &e) == E_INVALID);
	net_server_stop(server);
}

static void refuses_settings(void **state)
{
	(void)state;
	static const struct {
		const char *name, *yaml, *says;
	} cases[] = {
		{ "half a key", "access_key: a", "belong together" },
		{ "a password", "basic_auth: {username: a, password: b}", "by no other way" },
		{ "filters", "filters: [{name: a}]", "a list of values" },
		{ "a filter's value", "filters: [{name: a, values: [[b]]}]", "a list of values" },
		{ "a port", "port: 70000", "65535" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		const struct conf_node *root = NULL;
		struct discover *d = NULL;
		struct err e = { 0 };
		arena_init(&a, CONF_ARENA_BYTES);
		CHECK_OK(conf_parse(str_of(c->yaml), &a, &root, &e), &e);
		for (size_t i = 0; discover_kinds[i]; i++)
			if (strcmp(discover_kinds[i]->key, "ec2_sd_configs") == 0)
				CHECK_CASE(c, discover_read(discover_kinds[i], root, &d, &e) ==
						      E_INVALID);
		CHECK_CASE(c, !d && strstr(e.text, c->says));
	}
}

TEST_MAIN(cmocka_unit_test(finds_instances), cmocka_unit_test(refuses_settings))
