/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the configurations of server and agent from the values of flags (flags.c). It checks what a
 * table of flags cannot: values that depend on each other, on files or on this host.
 */
#include "cli/flags/flags.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "cli/cli.h"
#include "os/os.h"

#define TABLE_BYTES_LEAST ((uint64_t)4 << 20)
#define STORAGE_MEMORY_MOST ((uint64_t)16 << 40)
#define MESSAGE_LEAST ((uint64_t)64 << 10)
#define MESSAGE_MOST ((uint64_t)64 << 20)

/* ---- places ---- */

static bool join(char out[PATH_MAX], const char *dir, const char *middle, const char *below)
{
	int len = snprintf(out, PATH_MAX, "%s%s%s%s", dir, middle, below[0] ? "/" : "", below);
	if (len > 0 && len < PATH_MAX)
		return true;
	cli_complain("the path %s%s is too long", dir, middle);
	return false;
}

static bool user_path(char out[PATH_MAX], const char *root_dir, const char *xdg,
	const char *in_home, const char *below)
{
	const char *dir = getenv(xdg), *home = getenv("HOME");
	if (geteuid() == 0)
		return join(out, root_dir, "", below);
	if (dir && dir[0] == '/')
		return join(out, dir, "/firn", below);
	if (home && home[0] == '/')
		return join(out, home, in_home, below);
	cli_complain("neither %s nor HOME is set: name a directory with --storage-path and "
		     "--cache-path",
		xdg);
	return false;
}

bool cli_state_path(char out[PATH_MAX], const char *below)
{
	return user_path(out, "/var/lib/firn", "XDG_STATE_HOME", "/.local/state/firn", below);
}

bool cli_cache_path(char out[PATH_MAX], const char *below)
{
	return user_path(out, "/var/cache/firn", "XDG_CACHE_HOME", "/.cache/firn", below);
}

/* The directory `given`, or the one that `otherwise` finds, as an absolute path; makes it if it is
 * missing. */
static bool settle_dir(const char *flag, const char *given, bool (*otherwise)(char *, const char *),
	char out[PATH_MAX])
{
	char cwd[PATH_MAX] = "";
	struct err e = { 0 };
	if (!given || !given[0]) {
		if (!otherwise(out, ""))
			return false;
	} else if (given[0] == '/') {
		if (!join(out, given, "", ""))
			return false;
	} else if (!getcwd(cwd, sizeof(cwd)) || !join(out, cwd, "/", given)) {
		cli_complain("--%s %s: the current directory is not known", flag, given);
		return false;
	}
	enum status s = os_make_dirs(out, &e);
	if (s == OK)
		return true;
	cli_complain("--%s: %s", flag, err_text(&e, s));
	return false;
}

/* ---- from flags to configurations ---- */

static bool check_http(const struct cli_server_flags *f)
{
	const char *prefix = f->path_prefix ? f->path_prefix : "";
	size_t len = strlen(prefix);
	if (len && (prefix[0] != '/' || prefix[len - 1] == '/' || strpbrk(prefix, " %?#"))) {
		cli_complain("--path-prefix: '%s' is not a path such as /firn", prefix);
		return false;
	}
	if (!f->tls_cert_file != !f->tls_key_file) {
		cli_complain("--tls-cert-file and --tls-key-file belong together");
		return false;
	}
	if (f->tls_client_ca_file && !f->tls_cert_file) {
		cli_complain("--tls-client-ca-file needs --tls-cert-file");
		return false;
	}
	return true;
}

/* Takes the header's name, in lower case as in requests. An empty name, which may come from an
 * unset variable, is an error: else all tenants would be one. */
static bool settle_tenant(struct cli_server_flags *f)
{
	const char *name = f->tenant_header ? f->tenant_header : "";
	size_t len = strlen(name);
	bool good = len < sizeof(f->tenant) && (len > 0 || !f->tenant_header);
	for (size_t i = 0; good && i < len; i++) {
		char c = name[i];
		char lower = (c >= 'A' && c <= 'Z') ? (char)(c | 32) : c;
		good = (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
		       c == '_';
		f->tenant[i] = lower;
	}
	if (!good) {
		cli_complain("--tenant-header: '%s' is not a header's name", name);
		return false;
	}
	f->tenant[len] = 0;
	return true;
}

static bool check_limits(const struct cli_server_flags *f)
{
	if (f->limits.message_bytes < MESSAGE_LEAST || f->limits.message_bytes > MESSAGE_MOST) {
		cli_complain("--max-profile-size: expected 64KiB to 64MiB");
		return false;
	}
	if (f->debuginfo_upload_ns < 1000 * NS_PER_MS) {
		cli_complain("--debuginfo-upload-max-duration: expected 1s or more");
		return false;
	}
	return true;
}

/* Checks the rules of both lists. */
static bool settle_rules(struct cli_server_flags *f)
{
	struct err e = { 0 };
	enum status s = OK;
	if (f->retention_rules.count > STORE_RULES_MAX || f->thin_rules.count > STORE_RULES_MAX) {
		cli_complain("--storage-retention and --storage-thin: at most %d rules each",
			STORE_RULES_MAX);
		return false;
	}
	for (uint32_t i = 0; i < f->retention_rules.count && s == OK; i++) {
		s = store_retention_parse(str_of(f->retention_rules.v[i]), &f->retention[i], &e);
		if (s != OK)
			cli_complain("--storage-retention: %s", err_text(&e, s));
	}
	for (uint32_t i = 0; i < f->thin_rules.count && s == OK; i++) {
		s = store_thin_parse(str_of(f->thin_rules.v[i]), &f->thin[i], &e);
		if (s != OK)
			cli_complain("--storage-thin: %s", err_text(&e, s));
	}
	return s == OK;
}

/* Takes TLS from the web-config file: the agent of `firn up` needs it. */
static bool settle_web(struct cli_server_flags *f)
{
	struct err e = { 0 };
	if (!f->web_config_file || !f->web_config_file[0])
		return true;
	enum status s = auth_check_file(f->web_config_file, f->web_cert, &e);
	if (s != OK)
		cli_complain("--web-config-file: %s", err_text(&e, s));
	else if (f->web_cert[0] && f->tls_cert_file)
		cli_complain("--tls-cert-file, and tls_server_config in --web-config-file: one of "
			     "them is enough");
	return s == OK && !(f->web_cert[0] && f->tls_cert_file);
}

bool cli_server_apply(struct cli_server_flags *f, struct server_config *out)
{
	if (!settle_dir("storage-path", f->storage_path, cli_state_path, f->path) ||
		!settle_rules(f))
		return false;
	if (f->storage_memory_bytes == 0) /* not given */
		f->storage_memory_bytes =
			server_memory_default(os_host_memory_bytes(), os_cgroup_memory_bytes(""));
	if (f->storage_memory_bytes < SERVER_MEMORY_LEAST ||
		f->storage_memory_bytes > STORAGE_MEMORY_MOST) {
		cli_complain("--storage-memory: expected 128MiB to 16TiB");
		return false;
	}
	if (!check_http(f) || !check_limits(f) || !settle_tenant(f) || !settle_web(f))
		return false;
	server_config_default(out);
	out->path_prefix = f->path_prefix;
	out->cors_origins = f->cors_origins.count ? f->cors_origins.v : NULL;
	out->http_hosts = f->http_hosts.count ? f->http_hosts.v : NULL;
	out->tls_cert_file = f->web_cert[0] ? f->web_cert : f->tls_cert_file;
	out->tls_key_file = f->tls_key_file;
	out->tls_client_ca_file = f->tls_client_ca_file;
	out->web_config_file = f->web_config_file;
	out->allow_unauthenticated = f->allow_unauthenticated;
	out->http_address = f->http_address;
	out->storage_path = f->path;
	out->storage_memory_bytes = f->storage_memory_bytes;
	out->retention_ns = f->retention_ns;
	out->retention_bytes = f->retention_bytes;
	out->resolution_ns = f->resolution_ns;
	out->retention_rules = f->retention;
	out->retention_rule_count = f->retention_rules.count;
	out->thin_rules = f->thin;
	out->thin_rule_count = f->thin_rules.count;
	out->debug_dirs = f->debug_dirs;
	out->debuginfod_servers = f->debuginfod.count ? f->debuginfod.v : NULL;
	out->debuginfod_timeout_ns = f->debuginfod_timeout_ns;
	out->debuginfod_bytes = f->debuginfod_bytes;
	out->otlp_address = f->otlp_address;
	out->otlp_http = strcmp(f->otlp_exporter, "http") == 0;
	out->otlp_secure = !f->otlp_insecure;
	out->admin_api = f->admin_api;
	out->tenant_header = f->tenant[0] ? f->tenant : NULL;
	out->tenant_limits_file = f->tenant_limits;
	out->limits = f->limits;
	out->connections = f->connections;
	out->shutdown_delay_ns = f->shutdown_delay_ns;
	out->debuginfo_bytes = f->debuginfo_bytes;
	out->symbols_bytes = f->symbols_bytes;
	out->debuginfo_upload_bytes = f->debuginfo_upload_bytes;
	out->debuginfo_upload_ns = f->debuginfo_upload_ns;
	out->local_files = !f->local_files_disable;
	out->handover_fd = -1;
	out->ready_fd = -1;
	return true;
}

/* Whether the text is "name=value" with a name that selectors accept. */
static bool is_label(const char *text)
{
	size_t len = strcspn(text, "=");
	if (len == 0 || text[len] != '=' || (text[0] >= '0' && text[0] <= '9'))
		return false;
	for (size_t i = 0; i < len; i++) {
		char c = text[i];
		if (!((c | 32) >= 'a' && (c | 32) <= 'z') && !(c >= '0' && c <= '9') && c != '_')
			return false;
	}
	return true;
}

static bool check_labels(const char *flag, const struct cli_list *list)
{
	for (uint32_t i = 0; i < list->count; i++) {
		if (is_label(list->v[i]))
			continue;
		cli_complain("--%s: '%s' is not NAME=VALUE with a name of letters, digits and _",
			flag, list->v[i]);
		return false;
	}
	return true;
}

/* Appends a label that has a flag of its own to those of --metadata-external-labels. */
static bool add_label(const char *flag, const char *name, const char *value, struct cli_list *list)
{
	char *at = list->text + list->used;
	size_t room = sizeof(list->text) - list->used;
	if (!value || !value[0])
		return true;
	size_t len = (size_t)snprintf(at, room, "%s=%s", name, value);
	if (len >= room || list->count == CLI_LIST_MAX) {
		cli_complain("--%s: there are too many external labels", flag);
		return false;
	}
	list->used += len + 1;
	list->v[list->count++] = at;
	return true;
}

static void apply_opting(struct cli_profiling_flags *f, struct agent_config *out)
{
	out->opt_out_env_vars = f->opt_out_env.count ? f->opt_out_env.v : NULL;
	out->opt_in_env_vars = f->opt_in_env.count ? f->opt_in_env.v : NULL;
	out->opt_out_labels = f->opt_out_labels.count ? f->opt_out_labels.v : NULL;
	out->opt_in_labels = f->opt_in_labels.count ? f->opt_in_labels.v : NULL;
}

/* The names of tracers: parca-agent's, and firn's own. */
static const struct {
	const char *name;
	uint32_t runtimes;
} tracers[] = { { "all", AGENT_RUNTIMES_ALL }, { "none", 0 }, { "native", 0 },
	{ "python", AGENT_RUNTIME_PYTHON }, { "perl", AGENT_RUNTIME_PERL },
	{ "php", AGENT_RUNTIME_PHP }, { "hotspot", AGENT_RUNTIME_HOTSPOT },
	{ "ruby", AGENT_RUNTIME_RUBY }, { "v8", AGENT_RUNTIME_V8 },
	{ "dotnet", AGENT_RUNTIME_DOTNET }, { "lua", AGENT_RUNTIME_LUA },
	{ "go", AGENT_RUNTIME_GO }, { "labels", AGENT_RUNTIME_GO }, { "beam", AGENT_RUNTIME_BEAM },
	{ "luajit", AGENT_RUNTIME_LUAJIT } };

static bool apply_tracers(const struct cli_profiling_flags *f, struct agent_config *out)
{
	uint32_t runtimes = f->tracers.count ? 0 : AGENT_RUNTIMES_ALL;
	out->no_jit_names = f->tracers.count > 0;
	for (size_t i = 0; i < f->tracers.count; i++) {
		size_t k = 0;
		while (k < ARRAY_COUNT(tracers) && strcmp(f->tracers.v[i], tracers[k].name) != 0)
			k++;
		if (k == ARRAY_COUNT(tracers)) {
			cli_complain("--tracers: %s is none that is known", f->tracers.v[i]);
			return false;
		}
		runtimes |= tracers[k].runtimes;
		out->no_jit_names &= strcmp(tracers[k].name, "none") == 0;
	}
	out->no_jit_names |= f->no_jit_names;
	runtimes &= f->no_python ? ~AGENT_RUNTIME_PYTHON : UINT32_MAX;
	runtimes &= f->no_perl ? ~AGENT_RUNTIME_PERL : UINT32_MAX;
	runtimes &= f->no_php ? ~AGENT_RUNTIME_PHP : UINT32_MAX;
	runtimes &= f->no_v8 ? ~AGENT_RUNTIME_V8 : UINT32_MAX;
	runtimes &= f->no_ruby ? ~AGENT_RUNTIME_RUBY : UINT32_MAX;
	runtimes &= f->no_lua ? ~(AGENT_RUNTIME_LUA | AGENT_RUNTIME_LUAJIT) : UINT32_MAX;
	runtimes &= f->no_java ? ~AGENT_RUNTIME_HOTSPOT : UINT32_MAX;
	out->runtimes = runtimes;
	return true;
}

bool cli_profiling_apply(struct cli_profiling_flags *f, struct agent_config *out)
{
	if (!check_labels("metadata-external-labels", &f->labels) ||
		!check_labels("profiling-opt-out-label", &f->opt_out_labels) ||
		!check_labels("profiling-opt-in-label", &f->opt_in_labels) ||
		!add_label(
			"environment-type", "environment_type", f->environment_type, &f->labels) ||
		!add_label("machine-id", "machine_id", f->machine_id, &f->labels))
		return false;
	if (f->table_bytes != 0 &&
		(f->table_bytes < TABLE_BYTES_LEAST || f->table_bytes > AGENT_TABLE_BYTES_MAX)) {
		cli_complain("--bpf-table-memory: expected 4MiB to 2GiB");
		return false;
	}
	if (f->duration_ns < 100 * NS_PER_MS || f->duration_ns > 600 * NS_PER_SEC) {
		cli_complain("--profiling-duration: expected 100ms to 10m");
		return false;
	}
	if (f->wall_clock && f->off_cpu_probability <= 0) {
		cli_complain("--wall-clock: needs --off-cpu-threshold above 0");
		return false;
	}
	if (f->chance_ns < 60 * NS_PER_SEC || f->chance_ns > 300 * NS_PER_SEC) {
		cli_complain("--profiling-probabilistic-interval: expected 1m to 5m");
		return false;
	}
	if (!settle_dir("cache-path", f->cache_path, cli_cache_path, f->cache))
		return false;
	agent_config_default(out);
	out->node = f->node ? f->node : "";
	out->cache_dir = f->cache;
	out->frequency_hz = f->frequency_hz;
	out->off_cpu_probability = f->off_cpu_probability;
	out->off_cpu_min_ns = f->off_cpu_min_ns;
	out->wall_clock = f->wall_clock;
	out->keep_interpreters = f->keep_interpreters;
	if (!apply_tracers(f, out))
		return false;
	out->oom = f->oom;
	out->oom_allocs = f->oom_allocs;
	out->flush_interval_ns = f->duration_ns;
	out->table_bytes_max = (uint32_t)f->table_bytes;
	out->table_doublings = f->table_scale;
	out->external_labels = f->labels.count ? f->labels.v : NULL;
	out->env_vars = f->env_vars.count ? f->env_vars.v : NULL;
	apply_opting(f, out);
	out->config_path = f->config_path ? f->config_path : "";
	out->label_ttl_ns = f->label_ttl_ns;
	out->container_socket_path = f->container_socket;
	out->kubernetes_address = f->kubernetes_address;
	out->kubelet_address = f->kubelet_address;
	out->kubernetes_token_file = f->kubernetes_token;
	out->kubernetes_ca_file = f->kubernetes_ca;
	out->kubernetes_insecure = f->kubernetes_insecure;
	out->no_containers = f->no_containers;
	out->keep_privileges = f->keep_privileges;
	out->cpu_share = f->cpu_share;
	out->memory_bytes = f->memory_bytes;
	out->chance_ns = f->chance_ns;
	out->chance_percent = f->chance_percent;
	out->no_cpu = f->no_cpu;
	out->no_thread_id = f->no_thread_id;
	out->no_thread_name = f->no_thread_name;
	out->handover_fd = -1;
	out->ready_fd = -1;
	return true;
}
