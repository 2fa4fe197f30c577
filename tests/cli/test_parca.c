/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "cli/flags/flags.h"
#include "fakes.h"
#include "os/os.h"

static enum status sample(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)c;
	(void)stop;
	(void)e;
	return OK;
}

#define START "agent --remote-store-address x:1 --cache-path /tmp --spool-path /tmp/s "

/* Each flag that does nothing says so, in each of its forms, and nothing else changes. */
static void says_why_nothing_happens(void **state)
{
	(void)state;
	static struct capture c;
	fake_agent_run = sample;
	for (size_t i = 0; i < cli_parca_group.count; i++) {
		const struct cli_option *o = &cli_parca_group.options[i];
		char line[256], want[256];
		snprintf(line, sizeof(line), START "--%s%s", o->name,
			o->kind == CLI_BOOL ? "=false" : " 17");
		capture_run(&c, cli_agent, line);
		assert_int_equal(c.code, CLI_OK);
		int n = snprintf(want, sizeof(want), "firn: --%s does nothing: ", o->name);
		CHECK(n > 0 && strncmp(c.err, want, (size_t)n) == 0);
		CHECK(strlen(c.err) > (size_t)n + 10);
		snprintf(line, sizeof(line), START "--%s%s", o->name,
			o->kind == CLI_BOOL ? "" : "=17");
		capture_run(&c, cli_agent, line);
		assert_int_equal(c.code, CLI_OK);
	}
	capture_run(&c, cli_agent, START "--debuginfo-temp-dir=/tmp");
	CHECK_HAS(c.err, "no temporary file");
	capture_run(&c, cli_agent, "agent --help");
	CHECK(!strstr(c.out, "--memlock-rlimit"));
	CHECK_HAS(c.out, "why they do nothing");
}

/* docs/agent.md has a table of them: no other way to see them before they are tried. */
static void each_is_in_the_docs(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf docs;
	struct err e;
	buf_init(&docs, 1 << 20);
	CHECK_OK(os_read_file(TESTS_DIR "/../docs/agent.md", &docs, &e), &e);
	buf_u8(&docs, 0);
	for (size_t i = 0; i < cli_parca_group.count; i++) {
		char name[128];
		snprintf(name, sizeof(name), "`--%s`", cli_parca_group.options[i].name);
		CHECK_HAS((const char *)docs.data, name);
	}
}

/* parca-agent 0.49's flags that do something here, as its users write them. */
static void takes_what_it_does(void **state)
{
	(void)state;
	static struct capture c;
	fake_agent_run = sample;
	capture_run(&c, cli_agent,
		START "--log-level=debug --log-format json --http-address=127.0.0.1:7071 --node=n "
		      "--include-env-var=A,B --profiling-duration=5s --profiling-label-ttl=1m "
		      "--profiling-cpu-sampling-frequency=97 --metadata-external-labels=a=b;c=d "
		      "--metadata-container-runtime-socket-path=/run/x.sock "
		      "--metadata-disable-cpu-label --metadata-disable-thread-id-label=true "
		      "--metadata-disable-thread-comm-label --remote-store-insecure "
		      "--bpf-map-scale-factor=1 --off-cpu-threshold=0.5 --environment-type=prod "
		      "--machine-id m1");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK(fake_agent.table_bytes_max == 0 && fake_agent.table_doublings == 1);
	CHECK(fake_agent.label_ttl_ns == INT64_C(60000000000));
	CHECK_STR(str_of(fake_agent.container_socket_path), "/run/x.sock");
	CHECK_STR(str_of(fake_agent.external_labels[1]), "c=d");
	CHECK_STR(str_of(fake_agent.external_labels[2]), "environment_type=prod");
	CHECK_STR(str_of(fake_agent.external_labels[3]), "machine_id=m1");
	CHECK(!fake_agent.external_labels[4]);
	CHECK_STR(str_of(fake_agent.env_vars[1]), "B");
	CHECK(fake_agent.no_cpu && fake_agent.no_thread_id && fake_agent.no_thread_name);
	CHECK(fake_agent.debuginfo_upload && !fake_agent.debuginfo_no_strip);
	CHECK(fake_agent.debuginfo_parallel_max == 25 && fake_agent.debuginfo_queue_max == 4096);
	CHECK_STR(str_of(fake_agent.debuginfo_folders[0]), "/usr/lib/debug");
	CHECK(!fake_agent.debuginfo_folders[1]);
	CHECK(fake_agent.remote_store_call_ns == INT64_C(300000000000));
	capture_run(&c, cli_agent,
		START "--debuginfo-strip=false --debuginfo-upload-max-parallel=2 "
		      "--debuginfo-upload-queue-size 77 --remote-store-rpc-unary-timeout=9s");
	CHECK_STR(str_of(c.err), "");
	CHECK(fake_agent.debuginfo_upload && fake_agent.debuginfo_no_strip);
	CHECK(fake_agent.debuginfo_parallel_max == 2 && fake_agent.debuginfo_queue_max == 77);
	CHECK(fake_agent.remote_store_call_ns == INT64_C(9000000000));
	capture_run(&c, cli_agent,
		START
		"--debuginfo-directories=/mnt/debug,/usr/lib/debug --debuginfo-directories /d");
	CHECK_STR(str_of(c.err), "");
	CHECK_STR(str_of(fake_agent.debuginfo_folders[0]), "/mnt/debug");
	CHECK_STR(str_of(fake_agent.debuginfo_folders[1]), "/usr/lib/debug");
	CHECK_STR(str_of(fake_agent.debuginfo_folders[2]), "/d");
	CHECK(!fake_agent.debuginfo_folders[3]);
	capture_run(&c, cli_agent, START "--debuginfo-upload-disable --debuginfo-strip");
	CHECK_STR(str_of(c.err), "");
	CHECK(!fake_agent.debuginfo_upload && !fake_agent.debuginfo_no_strip);
	capture_run(&c, cli_agent, START "--debuginfo-upload-max-parallel=0");
	assert_int_equal(c.code, CLI_USAGE);
	capture_run(&c, cli_agent, "agent --version");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.out), "firn " FIRN_VERSION "\n");
	capture_run(&c, cli_agent, START "--bpf-map-scale-factor=9");
	assert_int_equal(c.code, CLI_USAGE);
	capture_run(&c, cli_agent, START "--machine-id=m1 --environment-type=");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(fake_agent.external_labels[0]), "machine_id=m1");
	CHECK(!fake_agent.external_labels[1]);
}

TEST_MAIN(cmocka_unit_test(says_why_nothing_happens), cmocka_unit_test(each_is_in_the_docs),
	cmocka_unit_test(takes_what_it_does))
