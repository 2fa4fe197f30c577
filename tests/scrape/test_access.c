/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"

#include "scrape/discover/kubernetes.h"

static char dir[] = "/tmp/firn-access-XXXXXX";

static const char *put(const char *name, const char *text)
{
	static char path[200];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
	return path;
}

static void reads_a_kubeconfig(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct kubernetes k = { 0 };
	struct kubernetes_access x;
	struct err e = { 0 };
	arena_init(&a, CONF_ARENA_BYTES);
	k.kubeconfig_file = put("config",
		"apiVersion: v1\nkind: Config\ncurrent-context: two\npreferences: {}\n"
		"clusters:\n- {name: a, cluster: {server: 'https://a:1'}}\n"
		"- name: b\n  cluster:\n    server: https://b:2\n    proxy-url: http://p:3\n"
		"    certificate-authority-data: Q0EK\n"
		"contexts:\n- {name: one, context: {cluster: a, user: x}}\n"
		"- {name: two, context: {cluster: b, user: y, namespace: n}}\n"
		"users:\n- {name: x, user: {token: t}}\n"
		"- name: y\n  user: {client-certificate-data: Q1JUCg==, client-key: /key}\n");
	CHECK_OK(kubernetes_access_find(&k, &a, &x, &e), &e);
	CHECK_STR(str_of(x.server), "https://b:2");
	CHECK_STR(str_of(x.as.client.tls.ca), "CA\n");
	CHECK_STR(str_of(x.as.client.tls.cert), "CRT\n");
	CHECK_STR(str_of(x.as.client.tls.key_file), "/key");
	CHECK_STR(str_of(x.as.client.proxy.url), "http://p:3");
	CHECK(!x.as.client.credentials);
	CHECK(unlink(k.kubeconfig_file) == 0);
}

static void refuses_a_kubeconfig(void **state)
{
	(void)state;
	static const struct {
		const char *name, *yaml, *says;
	} cases[] = {
		{ "empty", "", "names no cluster" },
		{ "no context", "current-context: x\ncontexts: {}\n", "names no cluster" },
		{ "program",
			"current-context: c\ncontexts: [{name: c, context: {cluster: c, user: "
			"u}}]\n"
			"clusters: [{name: c, cluster: {server: 'https://x'}}]\n"
			"users: [{name: u, user: {exec: {command: aws}}}]\n",
			"which firn does not start" },
		{ "base64",
			"current-context: c\ncontexts: [{name: c, context: {cluster: c, user: "
			"u}}]\n"
			"clusters: [{name: c, cluster: {server: 'https://x', "
			"certificate-authority-data: '***'}}]\n",
			"certificate-authority-data is not base64" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		struct kubernetes k = { 0 };
		struct kubernetes_access x;
		struct err e = { 0 };
		arena_init(&a, CONF_ARENA_BYTES);
		k.kubeconfig_file = put("config", c->yaml);
		CHECK_CASE(c, kubernetes_access_find(&k, &a, &x, &e) != OK &&
				      strstr(e.text, c->says) && strstr(e.text, "/config: "));
		CHECK(unlink(k.kubeconfig_file) == 0);
	}
}

static void uses_the_service_account(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct kubernetes k = { .account = "/account" };
	struct kubernetes_access x;
	struct err e = { 0 };
	arena_init(&a, CONF_ARENA_BYTES);
	CHECK(!unsetenv("KUBERNETES_SERVICE_HOST"));
	CHECK(kubernetes_access_find(&k, &a, &x, &e) == E_UNAVAILABLE &&
		strstr(e.text, "this is no pod"));
	CHECK(!setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1) &&
		!setenv("KUBERNETES_SERVICE_PORT", "443", 1));
	CHECK_OK(kubernetes_access_find(&k, &a, &x, &e), &e);
	CHECK_STR(str_of(x.server), "https://[fd00::1]:443");
	CHECK_STR(str_of(x.as.client.credentials_file), "/account/token");
	CHECK_STR(str_of(x.as.client.tls.ca_file), "/account/ca.crt");
	k.api_server = "http://x:1/base/";
	CHECK_OK(kubernetes_access_find(&k, &a, &x, &e), &e);
	CHECK_STR(str_of(x.server), "http://x:1/base");
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int clean_up(void **state)
{
	(void)state;
	return rmdir(dir);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(reads_a_kubeconfig),
		cmocka_unit_test(refuses_a_kubeconfig),
		cmocka_unit_test(uses_the_service_account) };
	return cmocka_run_group_tests(tests, set_up, clean_up);
}
