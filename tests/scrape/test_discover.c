/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

static void gathers_labels(void **state)
{
	(void)state;
	CLEANUP(discover_found_deinit) struct discover_found f;
	CLEANUP(buf_deinit) struct buf out;
	struct discover_draft d;
	struct err e = { 0 };
	buf_init(&out, 1 << 20);
	discover_found_init(&f);
	discover_draft_begin(&d, &f);
	discover_put(&d, "shared", STR("s"));
	discover_put(&d, "both", STR("s"));
	const struct discover_labels *shared = discover_keep(&d, &f);
	discover_draft_back(&d, 0);
	discover_put(&d, "both", STR("own"));
	discover_put(&d, "empty", STR(""));
	discover_put_key(&d, "key_", STR("a.b/c-d\xc3\xa4"), STR("v"));
	discover_put_number(&d, "n", 42);
	discover_put(&d, "n", STR("43")); /* the last one counts */
	CHECK_OK(discover_add(&f, STR("h:1"), shared, &d, &e), &e);
	answers_dump(&f, "key_", &out);
	CHECK_STR(str_of((const char *)out.data), "h:1 both=own a_b_c_d__=v n=43 shared=s\n");
	CHECK_STR(str_of(discover_join(&f.arena, STR("fd00::1"), STR("80"))), "[fd00::1]:80");
}

static void has_limits(void **state)
{
	(void)state;
	CLEANUP(discover_found_deinit) struct discover_found f;
	struct discover_draft d;
	struct err e = { 0 };
	enum status s = OK;
	discover_found_init(&f);
	discover_draft_begin(&d, &f);
	for (int i = 0; i < 2 * DISCOVER_LABELS_MAX; i++) {
		char name[20];
		snprintf(name, sizeof(name), "l%d", i);
		discover_put_key(&d, "", str_of(name), STR("v"));
	}
	CHECK(d.count == DISCOVER_LABELS_MAX);
	for (int i = 0; s == OK; i++)
		s = discover_add(&f, STR("h:1"), NULL, &d, &e);
	CHECK(s == E_LIMIT && strstr(e.text, "more labels than fit"));
}

static void refuses_settings(void **state)
{
	(void)state;
	static const struct {
		const char *name, *key, *yaml, *says;
	} cases[] = {
		{ "role", "kubernetes_sd_configs", "role: x", "role must be node" },
		{ "address", "kubernetes_sd_configs", "role: pod\napi_server: x",
			"must begin with http" },
		{ "two ways", "kubernetes_sd_configs",
			"role: pod\napi_server: http://x\nkubeconfig_file: y", "is enough" },
		{ "unknown", "kubernetes_sd_configs", "rule: pod", "did you mean \"role\"?" },
		{ "selector", "kubernetes_sd_configs", "role: pod\nselectors: [{labels: x}]",
			"a selector needs a role" },
		{ "selector's key", "kubernetes_sd_configs",
			"role: pod\nselectors: [{role: pod, labels: x}]",
			"did you mean \"label\"?" },
		{ "secrets", "kubernetes_sd_configs",
			"role: pod\nbearer_token: x\nbasic_auth: {username: y}",
			"one of them is enough" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		struct discover *d = NULL;
		struct err e = { 0 };
		enum status s = answers_read(c->key, c->yaml, &a, &d, &e);
		if (s != E_INVALID || !strstr(e.text, c->says))
			print_error("%s\n", e.text);
		CHECK_CASE(c, s == E_INVALID && !d && strstr(e.text, c->says));
	}
}

static void hides_secrets_of_addresses(void **state)
{
	(void)state;
	static const struct {
		const char *name, *shown;
	} cases[] = {
		{ "http://h:1/x", "http://h:1/x" },
		{ "http://user:hidden@h:1/x", "h:1/x" },
		{ "http://user:hid/den@h:1/x", "h:1/x" },
		{ "http://h:1/x?password=hidden", "http://h:1/x" },
		{ "http://h:1/x#hidden", "http://h:1/x" },
		{ "http://user:hidden@h:1/x?password=hidden", "h:1/x" },
		{ "http://h:1/x?user=a@b&password=hidden", "h" },
		{ "http://user:hid?den@h:1/x", "user" },
		{ "user:hid?den@h:1/x", "user" },
		{ "?hidden@://", "" },
		{ "", "" },
	};
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, str_eq(discover_shown(c->name), str_of(c->shown)));
}

TEST_MAIN(cmocka_unit_test(gathers_labels), cmocka_unit_test(has_limits),
	cmocka_unit_test(refuses_settings), cmocka_unit_test(hides_secrets_of_addresses))
