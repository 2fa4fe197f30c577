/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "scrape/internal.h"

static enum status read_it(const char *yaml, struct scrape_config **out, struct err *e)
{
	const struct conf_node *root = NULL;
	struct scrape_config *c = calloc(1, sizeof(*c));
	CHECK(c);
	atomic_store(&c->refs, 1);
	arena_init(&c->arena, CONF_ARENA_BYTES);
	CHECK_OK(conf_parse(str_of(yaml), &c->arena, &root, e), e);
	enum status s = scrape_config_read(conf_find(root, "scrape_configs"), c, e);
	if (s == OK)
		*out = c;
	else
		scrape_config_unref(c);
	return s;
}

static void reads_jobs(void **state)
{
	(void)state;
	struct scrape_config *c = NULL;
	struct err e = { 0 };
	CHECK_OK(read_it("scrape_configs:\n"
			 "- job_name: a\n"
			 "- job_name: b\n"
			 "  scrape_interval: 15s\n"
			 "  scheme: https\n"
			 "  params: {x: [1, 2]}\n"
			 "  basic_auth: {username: u, password_file: /p}\n"
			 "  tls_config: {ca_file: /ca, insecure_skip_verify: true}\n"
			 "  http_headers: {X-A: {values: [b]}}\n"
			 "  follow_redirects: false\n"
			 "  profiling_config:\n"
			 "    path_prefix: /in\n"
			 "    pprof_config:\n"
			 "      memory: {enabled: false}\n"
			 "      process_cpu: {path: /cpu}\n"
			 "      fgprof: {path: /debug/fgprof, delta: true, seconds: 5,\n"
			 "        keep_sample_type: [{type: time, unit: nanoseconds}]}\n"
			 "  static_configs: [{targets: [h:1, h:2], labels: {l: v}}]\n"
			 "  file_sd_configs: [{files: [/x/*.yaml], refresh_interval: 1m}]\n"
			 "  http_sd_configs: [{url: 'http://h/sd', authorization: {credentials: "
			 "t}}]\n"
			 "  relabel_configs: [{action: labeldrop, regex: l}]\n",
			 &c, &e),
		&e);
	CHECK(c->jobs.len == 2);
	const struct scrape_job *a = c->jobs.v[0], *b = c->jobs.v[1];
	CHECK(a->interval_ns == 10 * NS_PER_SEC && a->timeout_ns == 13 * NS_PER_SEC);
	CHECK(a->profile_count == 5 && a->profiles[4].delta && a->client.follow);
	CHECK(b->timeout_ns == 18 * NS_PER_SEC && b->profile_count == 6);
	CHECK(!b->profiles[0].enabled);
	/* As in Parca, delta is not taken over from the default. */
	CHECK_STR(str_of(b->profiles[4].path), "/cpu");
	CHECK(!b->profiles[4].delta && b->profiles[5].delta && b->profiles[5].seconds == 5);
	CHECK(b->profiles[5].keep_count == 1);
	CHECK_STR(str_of(b->client.username), "u");
	CHECK_STR(str_of(b->client.password_file), "/p");
	CHECK_STR(str_of(b->client.headers[0].value), "b");
	CHECK(b->client.tls.insecure && !b->client.follow);
	CHECK(b->source_count == 3 && b->sources[0].groups.len == 1);
	CHECK(b->sources[1].kind == SCRAPE_FILE && b->sources[2].kind == SCRAPE_HTTP);
	CHECK_STR(str_of(b->sources[2].client.credentials), "t");
	CHECK(relabel_count(b->rules) == 1 && a->settings != b->settings);
	scrape_config_unref(c);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *name, *job, *says;
	} cases[] = {
		{ "unknown", "job_name: a\n  scrape_intervall: 1s",
			"line 3, column 3: there is no key \"scrape_intervall\" here; did you mean "
			"\"scrape_interval\"?" },
		{ "no name", "scheme: http", "job_name is missing" },
		{ "twice", "job_name: a\n- job_name: a", "there is another job \"a\"" },
		{ "interval", "job_name: a\n  scrape_interval: soon", "line 3, column 20: " },
		{ "short", "job_name: a\n  scrape_interval: 10ms", "must be 1s or more" },
		{ "scheme", "job_name: a\n  scheme: ftp", "scheme must be http or https" },
		{ "timeout", "job_name: a\n  scrape_timeout: 10s",
			"scrape_timeout must be longer than process_cpu takes, which is 10s" },
		{ "discovery", "job_name: a\n  vultr_sd_configs: [{}]",
			"vultr_sd_configs: firn does not find targets this way" },
		{ "oauth", "job_name: a\n  oauth2: {client_id: x}",
			"oauth2 needs client_id and token_url" },
		{ "role", "job_name: a\n  kubernetes_sd_configs: [{role: pods}]",
			"role must be node, pod" },
		{ "selector",
			"job_name: a\n  kubernetes_sd_configs: [{role: node, selectors: [{role: "
			"pod, label: a}]}]",
			"has no use for a selector" },
		{ "two secrets", "job_name: a\n  basic_auth: {username: x}\n  bearer_token: y",
			"one of them is enough" },
		{ "targets", "job_name: a\n  static_configs: [{targets: x}]",
			"targets must be a list" },
		{ "group", "job_name: a\n  static_configs: [{target: [x]}]",
			"did you mean \"targets\"?" },
		{ "rules", "job_name: a\n  relabel_configs: [{action: x}]", "no action \"x\"" },
		{ "path", "job_name: a\n  profiling_config: {pprof_config: {x: {}}}",
			"path must begin with a '/'" },
		{ "url", "job_name: a\n  http_sd_configs: [{url: 'file:///x'}]",
			"url must begin with http://" },
		{ "proxy", "job_name: a\n  proxy_url: 'ftp://user:hidden@h:1'",
			"proxy_url must begin with http://" },
		{ "discovery's proxy",
			"job_name: a\n  http_sd_configs: [{url: 'http://h', proxy_url: "
			"'ftp://user:hidden@h:1'}]",
			"proxy_url must begin with http://" },
		{ "token's proxy",
			"job_name: a\n  oauth2: {client_id: a, token_url: 'http://h', proxy_url: "
			"'ftp://user:hidden@h:1'}",
			"proxy_url must begin with http://" },
	};
	FOR_EACH_CASE (x, cases) {
		struct scrape_config *c = NULL;
		struct err e = { 0 };
		char yaml[400];
		snprintf(yaml, sizeof(yaml), "scrape_configs:\n- %s\n", x->job);
		enum status s = read_it(yaml, &c, &e);
		if (s != E_INVALID || !strstr(e.text, x->says))
			print_error("%s\n", e.text);
		CHECK_CASE(x, s == E_INVALID && strstr(e.text, x->says));
	}
}

TEST_MAIN(cmocka_unit_test(reads_jobs), cmocka_unit_test(says_what_is_wrong))
