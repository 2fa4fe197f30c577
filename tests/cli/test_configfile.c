/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "capture.h"
#include "cli/cli.h"
#include "fakes.h"

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

static void checks_files(void **state)
{
	(void)state;
	static const struct {
		const char *name, *text, *says;
	} cases[] = {
		{ "unknown key", "log_level: info\nhtp_address: a\n",
			": line 2, column 1: there is no key \"htp_address\" here; did you mean "
			"\"http_address\"?" },
		{ "wrong value", "storage_retention_time: soon\n",
			": line 1, column 25: storage_retention_time: 'soon' is not a duration" },
		{ "not one value", "log_level: [a]\n",
			": line 1, column 12: log_level: one value is expected" },
		{ "choice", "log_level: loud\n", "'loud' is not one of: error warn info debug" },
		{ "port", "http_address: 127.0.0.1:99999\n",
			": line 1, column 15: http_address: '99999' is not a port (0 to 65535)" },
		{ "rules", "relabel_configs: [{action: x}]\n", "there is no action \"x\"" },
		{ "not YAML", "a: [", "did not find expected" },
		{ "no keys", "- a\n", "expected lines of the form" },
		{ "own path", "config_path: x\n", "there is no key \"config_path\" here" },
	};
	struct capture c;
	FOR_EACH_CASE (x, cases) {
		put(x->text);
		run(&c, cli_config, "config check", "");
		CHECK_CASE(x, c.code == CLI_FAILED && strstr(c.err, x->says));
		CHECK_CASE(x, strstr(c.err, path));
		run(&c, cli_server, "server --config-path", "");
		CHECK_CASE(x, c.code == CLI_USAGE && strstr(c.err, x->says));
	}
	put("log_level: info\nnode: a\nremote_store_address: b:1\nobject_storage: {}\n"
	    "scrape_configs: []\nmetadata_external_labels: {a: b}\n");
	run(&c, cli_config, "config check", "");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "6 keys");
	capture_run(&c, cli_config, "config check /nowhere");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_HAS(c.err, "/nowhere: No such file");
}

static void starts_with_it(void **state)
{
	(void)state;
	struct capture c;
	put("remote_store_address: there:1\nnode: of-file\nhttp_address: ''\n");
	fake_agent_run = NULL;
	setenv("FIRN_CONFIG_PATH", path, 1);
	setenv("FIRN_PROFILING_DURATION", "never", 1);
	capture_run(&c, cli_agent, "agent");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(
		c.err, "FIRN_PROFILING_DURATION, the environment's --profiling-duration: 'never'");
	unsetenv("FIRN_PROFILING_DURATION");
	unsetenv("FIRN_CONFIG_PATH");
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(checks_files),
		cmocka_unit_test(starts_with_it) };
	return cmocka_run_group_tests(tests, make, drop);
}
