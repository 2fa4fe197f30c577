/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "capture.h"
#include "cli/cli.h"

#include <unistd.h>

static char path[] = "/tmp/firn-config-XXXXXX";

static void put(const char *text)
{
	FILE *f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static int make(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	return fd < 0 || close(fd) != 0;
}

static int drop(void **state)
{
	(void)state;
	return unlink(path);
}

/* `line`, the path, and what may follow it. */
static void run(struct capture *c, int (*verb)(int, char **), const char *line, const char *rest)
{
	char text[512];
	snprintf(text, sizeof(text), "%s %s%s", line, path, rest);
	capture_run(c, verb, text);
}

/* A flag wins over the environment, that over the file, and that over the default. */
static void shows_what_wins(void **state)
{
	(void)state;
	struct capture c;
	put("node: of-file\nprofiling_duration: 9s\nmetadata_external_labels: {a: b, c: d}\n"
	    "include_env_var: [X, Y]\nagent_cpu_limit: 0.5\n\nbpf_table_memory: 64MiB\n"
	    "remote_store_bearer_token: secret-1\nwall_clock: true\ncache_path:\n");
	setenv("FIRN_PROFILING_DURATION", "8s", 1);
	setenv("FIRN_AGENT_CPU_LIMIT", "0.25", 1);
	run(&c, cli_config, "config show agent --config-path", " --agent-cpu-limit 0.75");
	unsetenv("FIRN_PROFILING_DURATION");
	unsetenv("FIRN_AGENT_CPU_LIMIT");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "node: \"of-file\"  # line 1 of the file\n");
	CHECK_HAS(c.out, "profiling_duration: 8s  # FIRN_PROFILING_DURATION\n");
	CHECK_HAS(c.out, "agent_cpu_limit: 0.75  # --agent-cpu-limit\n");
	CHECK_HAS(c.out, "profiling_cpu_sampling_frequency: 19  # default\n");
	CHECK_HAS(c.out, "metadata_external_labels: [\"a=b\", \"c=d\"]  # line 3 of the file\n");
	CHECK_HAS(c.out, "include_env_var: [\"X\", \"Y\"]  # line 4 of the file\n");
	CHECK_HAS(c.out, "bpf_table_memory: 64MiB  # line 7 of the file\n");
	CHECK_HAS(c.out, "wall_clock: true  # line 9 of the file\n");
	CHECK(!strstr(c.out, "secret-1") && !strstr(c.out, "cache_path"));
	CHECK_HAS(c.out, "remote_store_bearer_token: (secret)  # line 8 of the file\n");
	put("scrape_configs:\n- job_name: a\n  scheme: https\n  basic_auth: {username: u, "
	    "password: "
	    "hidden-1}\n  proxy_url: http://u:hidden-2@proxy:3128/\n"
	    "  http_headers: {X-Key: {values: [hidden-3]}}\n  consul_sd_configs:\n"
	    "  - {server: 'c:8500', token: hidden-4, tags: []}\n  static_configs:\n"
	    "  - targets: [h:1, h:2, 'u:hidden-5@h:3']\n"
	    "- job_name: b\n  oauth2:\n    client_id: c\n    token_url: https://h/t\n"
	    "    endpoint_params: {assertion: hidden-6}\n"
	    "debuginfod_upstream_servers: 'https://u:hidden-7@h'\n");
	run(&c, cli_config, "config show server --config-path", "");
	CHECK_STR(str_of(c.err), "");
	CHECK_HAS(c.out, "# line 2 of the file\nscrape_configs:\n  -\n    job_name: \"a\"\n");
	CHECK_HAS(c.out, "      username: \"u\"\n      password: (secret)\n");
	CHECK_HAS(c.out, "    proxy_url: \"http://(secret)@proxy:3128/\"\n");
	CHECK_HAS(c.out, "        server: \"c:8500\"\n        token: (secret)\n        tags: []\n");
	CHECK_HAS(c.out, "        targets:\n          - \"h:1\"\n          - \"h:2\"\n");
	CHECK_HAS(c.out, "          - \"(secret)@h:3\"\n");
	CHECK(!strstr(c.out, "hidden"));
	/* What is printed is a file again, but for secrets. */
	run(&c, cli_config, "config show nothing --config-path", "");
	assert_int_equal(c.code, CLI_USAGE);
}

static void checks_either_file(void **state)
{
	(void)state;
	struct capture c;
	put("tokens:\n- {name: a, token: 0123456789abcdef0123, scopes: [read]}\n");
	run(&c, cli_config, "config check", "");
	CHECK_HAS(c.out, "a web-config file (--web-config-file), without TLS\n");
	assert_int_equal(c.code, CLI_OK);
	put("basic_auth_users: {a: secret}\n");
	run(&c, cli_config, "config check", "");
	CHECK_HAS(c.err, "line 1, column 23: the password of a is not bcrypt's text");
	assert_int_equal(c.code, CLI_FAILED);
	put("tls_server_confi: {}\n");
	run(&c, cli_config, "config check", "");
	CHECK_HAS(c.err, "line 1, column 1: ");
	assert_int_equal(c.code, CLI_FAILED);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(shows_what_wins),
		cmocka_unit_test(checks_either_file) };
	return cmocka_run_group_tests(tests, make, drop);
}
