/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/process/metadata.h"
#include "base/buf.h"
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

static const struct event_header header = { .pid = 42, .tid = 43 };
static const char command_line[] = "serve\0--token\0abc\0--shard=7";
static const char environment[] = "A=1\0TEAM=search\0PATH=/bin";
static const struct metadata_process process = {
	.h = &header,
	.ppid = 41,
	.comm = { "main", 4 },
	.executable = { "serve", 5 },
	.cgroup = { "/system.slice/web.service", 25 },
	.command_line = { command_line, sizeof(command_line) },
	.environment = { environment, sizeof(environment) },
};

static char path[64];

static void write_rules(const char *text)
{
	char fresh[80];
	snprintf(fresh, sizeof(fresh), "%s.new", path);
	int fd = open(fresh, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
	CHECK(rename(fresh, path) == 0);
}

static int setup(void **state)
{
	(void)state;
	strcpy(path, "/tmp/firn-test-metadata-XXXXXX");
	int fd = mkstemp(path);
	close(fd);
	return fd < 0;
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

static struct metadata *with(const char *rules, const char *const *env_vars)
{
	static const char *const external[] = { "region=eu", NULL };
	struct metadata *m = NULL;
	struct err e;
	if (rules)
		write_rules(rules);
	const struct metadata_config c = { .node = "n",
		.external_labels = external,
		.env_vars = env_vars,
		.config_path = rules ? path : "" };
	CHECK_OK(metadata_new(&c, &m, &e), &e);
	return m;
}

/* "name=value …", or "dropped". */
static const char *labels_of_process(struct metadata *m, const struct metadata_process *x)
{
	static char text[4096];
	static struct relabel_set set;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	relabel_set_init(&set, &a);
	text[0] = 0;
	if (!metadata_label(m, x, &set))
		return "dropped";
	for (uint32_t i = 0; i < set.count; i++) {
		size_t at = strlen(text);
		snprintf(text + at, sizeof(text) - at, "%s%.*s=%.*s", i ? " " : "",
			STR_ARG(set.v[i].name), STR_ARG(set.v[i].value));
	}
	return text;
}

static const char *labels_of(struct metadata *m)
{
	return labels_of_process(m, &process);
}

#define PLAIN                                                                 \
	"node=n comm=main executable=serve cgroup=/system.slice/web.service " \
	"systemd_unit=web.service region=eu"

static void labels_without_rules(void **state)
{
	(void)state;
	struct metadata *m = with(NULL, NULL);
	CHECK(!metadata_wants_command_line(m) && !metadata_wants_environment(m));
	CHECK_STR(str_of(labels_of(m)), PLAIN);
	CHECK(!metadata_reload(m, NULL));
	metadata_free(m);
	m = with("", NULL); /* an empty file */
	CHECK_STR(str_of(labels_of(m)), PLAIN);
	metadata_free(m);
}

static void labels_by_rules(void **state)
{
	(void)state;
	static const char *const vars[] = { "TEAM", "NOT_SET", NULL };
	struct metadata *m = with(
		"relabel_configs:\n"
		"- {source_labels: [__meta_process_cmdline], regex: '.*--shard=(\\d+).*', "
		"target_label: shard}\n"
		"- {source_labels: [__meta_process_cmdline], target_label: cmdline}\n"
		"- {regex: __meta_env_var_(.*), replacement: env_$1, action: labelmap}\n"
		"- {source_labels: [__meta_process_pid, __meta_process_ppid], target_label: pids}\n"
		"- {source_labels: [__meta_systemd_unit], target_label: unit}\n"
		"- {regex: 'node|comm|executable|cgroup|region|systemd_unit', action: labeldrop}\n",
		vars);
	CHECK(metadata_wants_command_line(m) && metadata_wants_environment(m));
	CHECK_STR(str_of(labels_of(m)),
		"shard=7 cmdline=serve --token [redacted] --shard=7 env_TEAM=search pids=42;41 "
		"unit=web.service");
	metadata_free(m);
}

/* Some names for people, the rest for the rules. */
static void labels_of_contexts(void **state)
{
	(void)state;
	static const struct relabel_label context[] = {
		{ STR("service.name"), STR("orders") },
		{ STR("service.version"), STR("1.2") },
		{ STR("deployment.environment"), STR("test") },
		{ STR("service.instance.id"), STR("0b1c") },
		{ STR("pod"), STR("forged") },
	};
	struct metadata_process x = process;
	x.context = context;
	x.context_count = ARRAY_COUNT(context);
	struct metadata *m = with(NULL, NULL);
	CHECK_STR(str_of(labels_of_process(m, &x)),
		"node=n comm=main executable=serve cgroup=/system.slice/web.service "
		"systemd_unit=web.service service_name=orders service_version=1.2 "
		"deployment_environment=test region=eu");
	metadata_free(m);
	m = with("relabel_configs:\n"
		 "- {source_labels: [__meta_process_context_service_instance_id], "
		 "target_label: instance}\n"
		 "- {regex: 'instance|service_name', action: labelkeep}\n",
		NULL);
	CHECK_STR(str_of(labels_of_process(m, &x)), "service_name=orders instance=0b1c");
	metadata_free(m);
}

/* Names for people from whoever knows the container; the rest for the rules. */
static void labels_of_containers(void **state)
{
	(void)state;
	static const struct container_label pod[] = {
		{ STR("__meta_kubernetes_namespace"), STR("shop") },
		{ STR("__meta_kubernetes_pod_name"), STR("web-1") },
		{ STR("__meta_kubernetes_pod_container_name"), STR("app") },
		{ STR("__meta_kubernetes_pod_label_team"), STR("search") },
	};
	static const struct container_label docker[] = {
		{ STR("__meta_docker_container_id"), STR("12") },
		{ STR("__meta_docker_container_name"), STR("db") },
	};
	struct metadata_process x = process;
	x.cgroup = STR("/system.slice/x.scope");
	x.container_id = STR("12");
	x.container = pod;
	x.container_count = ARRAY_COUNT(pod);
	struct metadata *m = with(NULL, NULL);
	CHECK_STR(str_of(labels_of_process(m, &x)),
		"node=n comm=main executable=serve cgroup=/system.slice/x.scope container_id=12 "
		"namespace=shop pod=web-1 container=app region=eu");
	x.container = docker;
	x.container_count = ARRAY_COUNT(docker);
	CHECK_STR(str_of(labels_of_process(m, &x)),
		"node=n comm=main executable=serve cgroup=/system.slice/x.scope container_id=12 "
		"container=db region=eu");
	metadata_free(m);
	x.container = pod;
	x.container_count = ARRAY_COUNT(pod);
	m = with("relabel_configs:\n"
		 "- {regex: __meta_kubernetes_pod_label_(.+), action: labelmap}\n"
		 "- {source_labels: [__meta_systemd_slice], target_label: slice}\n"
		 "- {regex: 'node|comm|executable|cgroup.*|region|container.*', action: "
		 "labeldrop}\n",
		NULL);
	CHECK_STR(str_of(labels_of_process(m, &x)),
		"namespace=shop pod=web-1 team=search slice=system.slice");
	metadata_free(m);
	m = with("relabel_configs:\n"
		 "- {source_labels: [__meta_kubernetes_namespace], regex: kube-system, action: "
		 "keep}\n",
		NULL);
	CHECK_STR(str_of(labels_of_process(m, &x)), "dropped");
	metadata_free(m);
}

static void reads_changed_rules(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct metadata *m = with("relabel_configs: []\n", NULL);
	CHECK(!metadata_reload(m, &e));
	write_rules("relabel_configs:\n- {source_labels: [comm], regex: main, action: drop}\n");
	CHECK(metadata_reload(m, &e));
	CHECK_STR(str_of(labels_of(m)), "dropped");
	CHECK(!metadata_reload(m, &e));
	write_rules("relabel_configs:\n- nonsense\n");
	CHECK(!metadata_reload(m, &e)); /* the old ones stay */
	CHECK(strstr(e.text, "line 2, column 3: a rule must be a mapping") && strstr(e.text, path));
	CHECK_STR(str_of(labels_of(m)), "dropped");
	e.text[0] = 0;
	CHECK(!metadata_reload(m, &e) && !e.text[0]); /* told once */
	metadata_free(m);
}

static uint64_t reloads_failed(const struct metadata *m)
{
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1 << 16);
	metadata_write_metrics(m, &text);
	buf_u8(&text, 0);
	const char *name = "\nfirn_agent_config_reload_failures_total ";
	const char *at = strstr((const char *)text.data, name);
	CHECK(at);
	return strtoull(at + strlen(name), NULL, 10);
}

/* For a moment it may be absent; for longer that is told, once. */
static void says_when_the_rules_are_gone(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct metadata *m = with("relabel_configs: []\n", NULL);
	for (uint64_t round = 1; round < 3; round++) {
		CHECK(unlink(path) == 0);
		CHECK(!metadata_reload(m, &e) && !e.text[0] && reloads_failed(m) == round - 1);
		CHECK(!metadata_reload(m, &e) && strstr(e.text, path));
		e.text[0] = 0;
		CHECK(!metadata_reload(m, &e) && !e.text[0] && reloads_failed(m) == round);
		/* Of another size than before: inode and time may be the same. */
		write_rules(round == 1 ? "relabel_configs: [ ]\n" : "relabel_configs: [  ]\n");
		CHECK(metadata_reload(m, &e));
	}
	metadata_free(m);
}

/* As the broker does for an agent that may not. */
static int open_for_us(const char *wanted)
{
	CHECK_STR(str_of(wanted), path);
	CHECK(seteuid(0) == 0);
	int fd = open(wanted, O_RDONLY | O_CLOEXEC);
	CHECK(seteuid(1234) == 0);
	return fd;
}

static void reads_changed_rules_in_a_closed_folder(void **state)
{
	(void)state;
	struct err e = { 0 };
	char closed[] = "/tmp/firn-test-metadata-XXXXXX", was[sizeof(path)];
	if (geteuid() != 0)
		SKIP("needs root: a folder that is closed to this user");
	CHECK(mkdtemp(closed));
	snprintf(was, sizeof(was), "%s", path);
	snprintf(path, sizeof(path), "%s/rules", closed);
	write_rules("relabel_configs: []\n");
	os_set_broker(open_for_us, NULL);
	CHECK(seteuid(1234) == 0);
	struct metadata *m = NULL;
	const struct metadata_config c = { .node = "n", .config_path = path };
	CHECK_OK(metadata_new(&c, &m, &e), &e);
	CHECK(!metadata_reload(m, &e));
	CHECK(seteuid(0) == 0);
	write_rules("relabel_configs:\n- {source_labels: [comm], regex: main, action: drop}\n");
	CHECK(seteuid(1234) == 0);
	CHECK(metadata_reload(m, &e) && !metadata_reload(m, &e));
	CHECK_STR(str_of(labels_of(m)), "dropped");
	CHECK(reloads_failed(m) == 0);
	os_set_broker(NULL, NULL); /* nobody can look there any more */
	CHECK(!metadata_reload(m, &e) && !metadata_reload(m, &e) && reloads_failed(m) == 1);
	CHECK(seteuid(0) == 0);
	metadata_free(m);
	CHECK(unlink(path) == 0 && rmdir(closed) == 0);
	snprintf(path, sizeof(path), "%s", was);
}

static void falls_back_to_plain_labels(void **state)
{
	(void)state;
	char rules[32768] = "relabel_configs:\n";
	for (int i = 0; i < 200; i++)
		snprintf(rules + strlen(rules), sizeof(rules) - strlen(rules),
			"- {target_label: l%d, replacement: x}\n", i);
	struct metadata *m = with(rules, NULL);
	CHECK_STR(str_of(labels_of(m)), PLAIN);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, 1 << 16);
	metadata_write_metrics(m, &text);
	buf_u8(&text, 0);
	CHECK(strstr((const char *)text.data, "\nfirn_agent_relabel_failures_total 1\n"));
	CHECK(strstr((const char *)text.data, "\nfirn_agent_relabel_rules 200\n"));
	metadata_free(m);
}

static void refuses_what_is_wrong(void **state)
{
	(void)state;
	static const char *const no_equals[] = { "noequals", NULL }, *const no_name[] = { "a-b",
		NULL };
	struct metadata *m = NULL;
	struct err e = { 0 };
	struct metadata_config c = { .node = "n", .config_path = "", .external_labels = no_equals };
	CHECK(metadata_new(&c, &m, &e) == E_INVALID && strstr(e.text, "noequals"));
	c = (struct metadata_config){ .node = "n", .config_path = "", .env_vars = no_name };
	CHECK(metadata_new(&c, &m, &e) == E_INVALID && strstr(e.text, "a-b"));
	c = (struct metadata_config){ .node = "n", .config_path = "/nonexistent/rules" };
	CHECK(metadata_new(&c, &m, &e) == E_NOTFOUND && strstr(e.text, "/nonexistent/rules"));
	write_rules("relabel_configs: x\n");
	c = (struct metadata_config){ .node = "n", .config_path = path };
	CHECK(metadata_new(&c, &m, &e) == E_INVALID && strstr(e.text, path));
	CHECK(!m);
}

/* Before the rules, which may make other labels of what it goes by; and without any. */
static void lets_processes_opt_out(void **state)
{
	(void)state;
	static const char *const names[] = { "PROFILE", NULL }, *const of_web[] = {
		"__meta_systemd_unit=web.service", NULL
	};
	static const char off[] = "A=1\0PROFILE=off";
	struct metadata_process leaves = process;
	struct err e;
	leaves.environment = str_make(off, sizeof(off));
	write_rules("relabel_configs:\n- {action: labeldrop, regex: comm}\n");
	for (int with_rules = 0; with_rules < 2; with_rules++) {
		struct metadata *m = NULL;
		struct metadata_config c = { .node = "n",
			.config_path = with_rules ? path : "",
			.optout = { .out_env = names } };
		CHECK_OK(metadata_new(&c, &m, &e), &e);
		CHECK(metadata_wants_environment(m));
		CHECK_STR(str_of(labels_of_process(m, &leaves)), "dropped");
		const char *stays = labels_of_process(m, &process);
		CHECK(strstr(stays, "executable=serve") && !strstr(stays, "__meta"));
		CHECK((strstr(stays, "comm=") == NULL) == with_rules);
		metadata_free(m);
		c.optout = (struct optout_config){ .out_labels = of_web };
		CHECK_OK(metadata_new(&c, &m, &e), &e);
		CHECK(!metadata_wants_environment(m));
		CHECK_STR(str_of(labels_of_process(m, &process)), "dropped");
		metadata_free(m);
	}
	struct metadata *m = NULL;
	const struct metadata_config bad = {
		.node = "n", .config_path = "", .optout = { .in_labels = names }
	};
	CHECK(metadata_new(&bad, &m, &e) == E_INVALID && strstr(e.text, "PROFILE") && !m);
}

#define ON_FILE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

TEST_MAIN(cmocka_unit_test_setup_teardown(labels_of_contexts, setup, teardown),
	ON_FILE(labels_without_rules), ON_FILE(labels_by_rules), ON_FILE(labels_of_containers),
	ON_FILE(reads_changed_rules), ON_FILE(says_when_the_rules_are_gone),
	ON_FILE(reads_changed_rules_in_a_closed_folder), ON_FILE(falls_back_to_plain_labels),
	ON_FILE(refuses_what_is_wrong), ON_FILE(lets_processes_opt_out))
