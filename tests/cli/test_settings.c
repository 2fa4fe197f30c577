/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "capture.h"
#include "cli/flags/flags.h"
#include "fakes.h"
#include "os/os.h"

#include <sys/stat.h>
#include <sys/wait.h>

struct flags {
	struct cli_server_flags server;
	struct cli_profiling_flags profiling;
	struct cli_log_flags log;
};

static struct flags got;
static struct server_config server;
static struct agent_config agent;

/* Exit code 99: all applied. */
static int verb(int argc, char **argv)
{
	struct cli_command c = { .name = "verb", .summary = "", .args = "", .text = "" };
	c.groups[0] = cli_server_group;
	c.groups[1] = cli_profiling_group;
	c.groups[1].at = offsetof(struct flags, profiling);
	c.groups[2] = cli_log_group;
	c.groups[2].at = offsetof(struct flags, log);
	c.group_count = 3;
	int at = 0, code = 0;
	got = (struct flags){ 0 };
	if (!cli_parse(&c, argc, argv, &got, &at, &code))
		return code;
	return cli_log_apply(&got.log) && cli_server_apply(&got.server, &server) &&
			       cli_profiling_apply(&got.profiling, &agent)
		       ? 99
		       : CLI_USAGE;
}

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/firn-test-flags-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static void applies(void **state)
{
	(void)state;
	struct capture c;
	char line[1024], path[128];
	snprintf(line, sizeof(line),
		"verb --storage-path %s/a/b --cache-path %s/c --storage-memory 1GiB "
		"--storage-retention-time 2d --storage-retention-size 5GB --http-address :1 "
		"--profiling-cpu-sampling-frequency 99 --profiling-duration 1s --node n "
		"--off-cpu-threshold 0.5 --off-cpu-min-duration 1ms --wall-clock "
		"--metadata-external-labels a=1;b=x=y --metadata-external-labels c= "
		"--bpf-table-memory 64MiB --debug-directories /x:/y --enable-admin-api "
		"--local-files-disable "
		"--storage-retention type=\"a:*\"=7d/1GB;tenant=\"t\"=2d --storage-retention "
		"tenant=\"u\"=1MB --storage-thin 7d=5m/cpu",
		dir, dir);
	capture_run(&c, verb, line);
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, 99);
	snprintf(path, sizeof(path), "%s/a/b", dir);
	CHECK_STR(str_of(server.storage_path), path);
	struct stat st;
	CHECK(stat(path, &st) == 0 && S_ISDIR(st.st_mode));
	CHECK_STR(str_of(server.http_address), ":1");
	CHECK_STR(str_of(server.debug_dirs), "/x:/y");
	CHECK(server.storage_memory_bytes == 1 << 30 && server.retention_bytes == 5000000000);
	CHECK(server.retention_ns == 2 * 86400 * NS_PER_SEC && !server.local_files);
	CHECK(server.handover_fd == -1 && server.ready_fd == -1 && server.admin_api);
	CHECK(server.retention_rule_count == 3 && server.thin_rule_count == 1);
	CHECK(server.retention_rules[0].bytes == 1000000000 && server.retention_rules[0].has_type);
	CHECK_STR(server.retention_rules[1].tenant, "t");
	CHECK(server.retention_rules[2].bytes == 1000000);
	CHECK(server.thin_rules[0].name_count == 1);
	snprintf(path, sizeof(path), "%s/c", dir);
	CHECK_STR(str_of(agent.cache_dir), path);
	CHECK_STR(str_of(agent.node), "n");
	CHECK(agent.frequency_hz == 99 && agent.flush_interval_ns == NS_PER_SEC);
	CHECK(agent.off_cpu_probability == 0.5 && agent.off_cpu_min_ns == NS_PER_MS);
	CHECK(agent.wall_clock);
	CHECK(agent.table_bytes_max == 64 << 20 && agent.handover_fd == -1 && agent.ready_fd == -1);
	CHECK_STR(str_of(agent.external_labels[0]), "a=1");
	CHECK_STR(str_of(agent.external_labels[1]), "b=x=y");
	CHECK_STR(str_of(agent.external_labels[2]), "c=");
	CHECK(!agent.external_labels[3]);
}

static void has_defaults(void **state)
{
	(void)state;
	struct capture c;
	char line[256];
	snprintf(line, sizeof(line), "verb --storage-path %s --cache-path %s", dir, dir);
	capture_run(&c, verb, line);
	assert_int_equal(c.code, 99);
	CHECK_STR(str_of(server.http_address), "127.0.0.1:7070");
	CHECK(server.storage_memory_bytes ==
		server_memory_default(os_host_memory_bytes(), os_cgroup_memory_bytes("")));
	CHECK(server.retention_ns == 14 * 86400 * NS_PER_SEC && !server.admin_api);
	CHECK(server.local_files);
	CHECK(server.retention_rule_count == 0 && server.thin_rule_count == 0);
	CHECK(server.retention_bytes == 10ULL << 30 && server.resolution_ns == 10 * NS_PER_SEC);
	CHECK_STR(str_of(server.debug_dirs), "/usr/lib/debug");
	CHECK(agent.frequency_hz == 19 && agent.flush_interval_ns == 5 * NS_PER_SEC);
	CHECK(agent.table_bytes_max == 0 && !agent.external_labels); /* by the number of CPUs */
	CHECK_STR(str_of(agent.node), "");
}

#define ALL                                                                                      \
	(AGENT_RUNTIME_PYTHON | AGENT_RUNTIME_HOTSPOT | AGENT_RUNTIME_PERL | AGENT_RUNTIME_PHP | \
		AGENT_RUNTIME_V8 | AGENT_RUNTIME_RUBY | AGENT_RUNTIME_GO | AGENT_RUNTIME_LUA |   \
		AGENT_RUNTIME_LUAJIT | AGENT_RUNTIME_BEAM | AGENT_RUNTIME_DOTNET)

static const struct {
	const char *name, *flags;
	uint32_t runtimes; /* of ALL */
	bool no_jit_names;
} tracers[] = {
	{ "names of JIT code switched off", "--symbolizer-jit-disable", ALL, true },
	{ "the same with a tracer", "--symbolizer-jit-disable --tracers python",
		AGENT_RUNTIME_PYTHON, true },
	{ "by default", "", ALL, false },
	{ "all", "--tracers all", ALL, false },
	{ "none", "--tracers none", 0, true },
	{ "one of parca-agent's", "--tracers dotnet", AGENT_RUNTIME_DOTNET, false },
	{ "Node.js", "--tracers v8", AGENT_RUNTIME_V8, false },
	{ "Java", "--tracers hotspot", AGENT_RUNTIME_HOTSPOT, false },
	{ "some", "--tracers none,python,php", AGENT_RUNTIME_PYTHON | AGENT_RUNTIME_PHP, false },
	{ "Python switched off", "--python-unwinding-disable", ALL & ~AGENT_RUNTIME_PYTHON, false },
	{ "Java switched off", "--java-unwinding-disable", ALL & ~AGENT_RUNTIME_HOTSPOT, false },
	{ "Perl switched off", "--perl-unwinding-disable", ALL & ~AGENT_RUNTIME_PERL, false },
	{ "labels of goroutines", "--tracers labels", AGENT_RUNTIME_GO, false },
	{ "Ruby", "--tracers ruby", AGENT_RUNTIME_RUBY, false },
	{ "Ruby switched off", "--ruby-unwinding-disable", ALL & ~AGENT_RUNTIME_RUBY, false },
	{ "Lua", "--tracers lua", AGENT_RUNTIME_LUA, false },
	{ "LuaJIT", "--tracers luajit", AGENT_RUNTIME_LUAJIT, false },
	{ "Erlang", "--tracers beam", AGENT_RUNTIME_BEAM, false },
	{ "Lua switched off", "--lua-unwinding-disable",
		ALL & ~(AGENT_RUNTIME_LUA | AGENT_RUNTIME_LUAJIT), false },
	{ "PHP switched off", "--php-unwinding-disable", ALL & ~AGENT_RUNTIME_PHP, false },
	{ "Node.js switched off", "--v8-unwinding-disable", ALL & ~AGENT_RUNTIME_V8, false },
};

static void chooses_tracers(void **state)
{
	(void)state;
	FOR_EACH_CASE (t, tracers) {
		struct capture c;
		char line[256];
		snprintf(line, sizeof(line), "verb --storage-path %s --cache-path %s %s", dir, dir,
			t->flags);
		capture_run(&c, verb, line);
		CHECK_CASE(t, c.code == 99);
		CHECK_CASE(t, (agent.runtimes & ALL) == t->runtimes);
		CHECK_CASE(t, agent.no_jit_names == t->no_jit_names);
	}
}

/* clang-format off */
static const struct {
	const char *name, *flags, *want;
} bad[] = {
	{ "label without a value", "--metadata-external-labels a", "'a' is not NAME=VALUE" },
	{ "label without a name", "--metadata-external-labels =a", "'=a' is not NAME=VALUE" },
	{ "label that begins with a digit", "--metadata-external-labels 1a=b", "'1a=b' is not" },
	{ "label with a dash", "--metadata-external-labels a-b=c", "'a-b=c' is not" },
	{ "rule", "--storage-retention node=\"a\"=7d", "--storage-retention: 'node=" },
	{ "thin rule", "--storage-thin 7d", "--storage-thin: '7d': expected AGE=RESOLUTION" },
	{ "memory too small", "--storage-memory 127MiB", "--storage-memory: expected 128MiB to 16TiB" },
	{ "memory too large", "--storage-memory 18446744073709551615",
		"--storage-memory: expected 128MiB to 16TiB" },
	{ "no tenant header", "--tenant-header=", "--tenant-header: '' is not a header's name" },
	{ "tables too small", "--bpf-table-memory 1MiB", "--bpf-table-memory: expected 4MiB to 2GiB" },
	{ "tables too large", "--bpf-table-memory 1TiB", "--bpf-table-memory: expected" },
	{ "duration too short", "--profiling-duration 1ms", "--profiling-duration: expected 100ms to 10m" },
	{ "wall clock alone", "--wall-clock", "--wall-clock: needs --off-cpu-threshold" },
	{ "storage that cannot be", "--storage-path /proc/no/such", "--storage-path: " },
	{ "cache that cannot be", "--cache-path /proc/no/such", "--cache-path: " },
};
/* clang-format on */

static void refuses(void **state)
{
	(void)state;
	FOR_EACH_CASE (b, bad) {
		struct capture c;
		char line[512];
		snprintf(line, sizeof(line), "verb --storage-path %s --cache-path %s %s", dir, dir,
			b->flags);
		capture_run(&c, verb, line);
		if (!strstr(c.err, b->want))
			print_error("[%s] got: %s\n", b->name, c.err);
		CHECK_CASE(b, strstr(c.err, b->want));
		CHECK_CASE(b, c.code == CLI_USAGE);
	}
}

static void finds_places(void **state)
{
	(void)state;
	char path[PATH_MAX];
	if (geteuid() == 0) {
		CHECK(cli_state_path(path, "") && strcmp(path, "/var/lib/firn") == 0);
		CHECK(cli_cache_path(path, "x") && strcmp(path, "/var/cache/firn/x") == 0);
	}
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		if (geteuid() == 0 && seteuid(65534) != 0)
			_exit(1);
		setenv("XDG_STATE_HOME", "/xdg", 1);
		setenv("HOME", "/home/x", 1);
		if (!cli_state_path(path, "spool") || strcmp(path, "/xdg/firn/spool") != 0)
			_exit(2);
		unsetenv("XDG_STATE_HOME");
		if (!cli_state_path(path, "") || strcmp(path, "/home/x/.local/state/firn") != 0)
			_exit(3);
		unsetenv("XDG_CACHE_HOME");
		if (!cli_cache_path(path, "") || strcmp(path, "/home/x/.cache/firn") != 0)
			_exit(4);
		unsetenv("HOME");
		if (!freopen("/dev/null", "w", stderr) || cli_cache_path(path, ""))
			_exit(5);
		_exit(0);
	}
	int wait_status = -1;
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	assert_int_equal(wait_status, 0);
}

static void stops_on_signals(void **state)
{
	(void)state;
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		cli_stop_on_signals();
		raise(SIGPIPE);
		if (cli_stop)
			_exit(91);
		raise(SIGINT);
		if (!cli_stop)
			_exit(92);
		raise(SIGTERM);
		_exit(93);
	}
	int wait_status = -1;
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	CHECK(WIFEXITED(wait_status));
	assert_int_equal(WEXITSTATUS(wait_status), CLI_FAILED);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(applies, setup, teardown),
	cmocka_unit_test_setup_teardown(has_defaults, setup, teardown),
	cmocka_unit_test_setup_teardown(chooses_tracers, setup, teardown),
	cmocka_unit_test_setup_teardown(refuses, setup, teardown), cmocka_unit_test(finds_places),
	cmocka_unit_test(stops_on_signals))
