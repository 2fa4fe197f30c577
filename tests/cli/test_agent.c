/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "fakes.h"

static char seen_address[64];

static enum status sample(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	snprintf(seen_address, sizeof(seen_address), "%s",
		c->remote_store_address ? c->remote_store_address : "");
	(void)stop;
	(void)e;
	return OK;
}

static void runs(void **state)
{
	(void)state;
	struct capture c;
	fake_agent_run = sample;
	capture_run(&c, cli_agent,
		"agent --remote-store-address here:1 --remote-store-insecure --cache-path /tmp "
		"--spool-path /tmp/s --spool-size 1MiB --node x");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_agent.remote_store_address), "here:1");
	CHECK_STR(str_of(fake_agent.http_address), "127.0.0.1:7071");
	CHECK(fake_agent.spool_bytes_max == 1 << 20 && fake_agent.frequency_hz == 19);
}

static void says_what_is_missing(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_agent, "agent --cache-path /tmp");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "agent needs --remote-store-address HOST:PORT");
	fake_probe = E_DENIED;
	capture_run(&c, cli_agent, "agent --cache-path /tmp --remote-store-address x:1");
	fake_probe = OK;
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_STR(str_of(c.err), "firn: CAP_BPF is missing: use sudo\n");
}

static void comes_with_credentials(void **state)
{
	(void)state;
	struct capture c;
	static const struct {
		const char *name;
		const char *flags;
		const char *address;
	} cases[] = {
		{ "plain", "", "here:1" },
		{ "token", "--remote-store-bearer-token t", "https://here:1" },
		{ "token file", "--remote-store-bearer-token-file /t", "https://here:1" },
		{ "authorities", "--remote-store-ca-file /c", "https://here:1" },
		{ "anybody", "--remote-store-insecure-skip-verify", "https://here:1" },
		{ "header", "--remote-store-grpc-headers a=b;Authorization=c", "https://here:1" },
		{ "any header", "--remote-store-grpc-headers a=b", "here:1" },
		{ "name and password", "--remote-store-basic-auth me:pass", "https://here:1" },
		{ "in clear", "--remote-store-insecure --remote-store-bearer-token t", "here:1" },
	};
	fake_agent_run = sample;
	FOR_EACH_CASE (t, cases) {
		char line[300];
		snprintf(line, sizeof(line),
			"agent --cache-path /tmp --spool-path /tmp/s "
			"--remote-store-address here:1 %s",
			t->flags);
		capture_run(&c, cli_agent, line);
		CHECK_CASE(t, c.code == CLI_OK);
		CHECK_CASE(t, strcmp(seen_address, t->address) == 0);
	}
	capture_run(&c, cli_agent,
		"agent --cache-path /tmp --spool-path /tmp/s --remote-store-address here:1 "
		"--remote-store-client-cert /c --remote-store-client-key /k "
		"--remote-store-grpc-headers a=b;c=d");
	assert_int_equal(c.code, CLI_OK);
	capture_run(&c, cli_agent,
		"agent --cache-path /tmp --spool-path /tmp/s --remote-store-address here:1 "
		"--remote-store-client-cert /c");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "belong together");
	capture_run(&c, cli_agent,
		"agent --cache-path /tmp --spool-path /tmp/s --remote-store-insecure "
		"--remote-store-address https://here:1");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "spoken to with TLS");
}

static void works_without_a_server(void **state)
{
	(void)state;
	struct capture c;
	fake_agent_run = sample;
	capture_run(&c, cli_agent, "agent --cache-path /tmp --offline-mode-storage-path /tmp/o");
	assert_int_equal(c.code, CLI_OK);
	CHECK(fake_agent.offline && fake_uploads == 0);
	capture_run(&c, cli_agent,
		"agent --cache-path /tmp --offline-mode-storage-path /tmp/o "
		"--offline-mode-upload --remote-store-address here:1");
	assert_int_equal(c.code, CLI_OK);
	CHECK(!fake_agent.offline && fake_uploads == 1);
	static const struct {
		const char *name;
		const char *flags;
		const char *said;
	} bad[] = {
		{ "both", "--offline-mode-storage-path /tmp/o --remote-store-address a:1",
			"sends nothing" },
		{ "no folder", "--offline-mode-upload --remote-store-address a:1",
			"needs --offline-mode-storage-path" },
		{ "no server", "--offline-mode-upload --offline-mode-storage-path /tmp/o",
			"needs --remote-store-address" },
	};
	FOR_EACH_CASE (b, bad) {
		char line[300];
		snprintf(line, sizeof(line), "agent --cache-path /tmp %s", b->flags);
		capture_run(&c, cli_agent, line);
		CHECK_CASE(b, c.code == CLI_USAGE && strstr(c.err, b->said));
	}
}

static char seen_opting[200];

static enum status look_at_opting(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)stop;
	(void)e;
	snprintf(seen_opting, sizeof(seen_opting), "%s %s %s %s %s", c->opt_out_env_vars[0],
		c->opt_out_env_vars[1], c->opt_in_env_vars[0], c->opt_out_labels[1],
		c->opt_in_labels ? "in" : "none");
	return OK;
}

static void lets_processes_opt_out(void **state)
{
	(void)state;
	struct capture c;
	fake_agent_run = look_at_opting;
	capture_run(&c, cli_agent,
		"agent --remote-store-address here:1 --cache-path /tmp "
		"--profiling-opt-out-env-var A,B --profiling-opt-in-env-var C "
		"--profiling-opt-out-label comm=x;namespace=");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(seen_opting), "A B C namespace= none");
	capture_run(&c, cli_agent,
		"agent --remote-store-address here:1 --cache-path /tmp --profiling-opt-in-label x");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "--profiling-opt-in-label: 'x' is not NAME=VALUE");
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_agent, "agent --help");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "--remote-store-address HOST:PORT");
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(runs), cmocka_unit_test(says_what_is_missing),
	cmocka_unit_test(comes_with_credentials), cmocka_unit_test(works_without_a_server),
	cmocka_unit_test(lets_processes_opt_out), cmocka_unit_test(helps))
