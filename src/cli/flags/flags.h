/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/flags/flags: groups of flags that several verbs share, and the configurations made from them.
 *
 * Private to cli/. The functions that return bool say on standard error what is wrong.
 */
#pragma once

#include <limits.h>
#include <signal.h>

#include "agent/agent.h"
#include "auth/auth.h"
#include "cli/flags/sending.h"
#include "cli/flags/verify.h"
#include "cli/options/options.h"
#include "server/server.h"
#include "store/store.h"

struct cli_log_flags {
	const char *level;
	const char *format;
};
extern const struct cli_group cli_log_group;
extern const struct cli_group cli_quiet_log_group; /* warnings and errors unless asked for more */
bool cli_log_apply(const struct cli_log_flags *f);

struct cli_server_flags {
	const char *http_address;
	const char *path_prefix;
	struct cli_list cors_origins;
	struct cli_list http_hosts;
	const char *tls_cert_file;
	const char *tls_key_file;
	const char *tls_client_ca_file;
	const char *web_config_file;
	bool allow_unauthenticated;
	const char *storage_path; /* NULL: cli_storage_path() */
	uint64_t storage_memory_bytes;
	int64_t retention_ns;
	uint64_t retention_bytes;
	int64_t resolution_ns;
	struct cli_list retention_rules;
	struct cli_list thin_rules;
	struct store_retention_rule retention[STORE_RULES_MAX]; /* the two lists, understood */
	struct store_thin_rule thin[STORE_RULES_MAX];
	const char *debug_dirs;
	struct cli_list debuginfod;
	int64_t debuginfod_timeout_ns;
	uint64_t debuginfod_bytes;
	const char *otlp_address, *otlp_exporter;
	bool otlp_insecure;
	bool admin_api, local_files_disable;
	const char *tenant_header;
	const char *tenant_limits;
	struct ingest_limits limits;
	uint32_t connections;
	int64_t shutdown_delay_ns;
	uint64_t debuginfo_bytes;
	uint64_t symbols_bytes;
	uint64_t debuginfo_upload_bytes;
	int64_t debuginfo_upload_ns;
	char tenant[64];                /* the header, in lower case */
	char path[PATH_MAX];            /* where the data lies */
	char web_cert[AUTH_PATH_BYTES]; /* certificate that the web-config file names; "" */
};
extern const struct cli_group cli_server_group;
/* Makes the storage directory. *out points into *f. */
bool cli_server_apply(struct cli_server_flags *f, struct server_config *out);

struct cli_profiling_flags {
	const char *node;
	uint32_t frequency_hz;
	double off_cpu_probability;
	int64_t off_cpu_min_ns;
	bool wall_clock;
	struct cli_list tracers;
	bool no_python, no_jit_names, keep_interpreters;
	bool no_java, no_perl, no_php, no_ruby, no_lua;
	bool no_v8;
	bool oom, oom_allocs;
	int64_t duration_ns;
	struct cli_list labels;
	const char *environment_type, *machine_id; /* two labels more */
	struct cli_list env_vars;
	struct cli_list opt_out_env, opt_in_env, opt_out_labels, opt_in_labels;
	const char *config_path;
	int64_t label_ttl_ns;
	const char *container_socket, *kubernetes_address, *kubelet_address;
	const char *kubernetes_token, *kubernetes_ca;
	bool kubernetes_insecure, no_containers;
	bool no_cpu, no_thread_id, no_thread_name;
	bool keep_privileges;
	double cpu_share;
	uint64_t memory_bytes;
	int64_t chance_ns;
	uint32_t chance_percent;
	uint64_t table_bytes;   /* 0: by the memory of the host */
	uint32_t table_scale;   /* doublings of it */
	const char *cache_path; /* NULL: by user */
	char cache[PATH_MAX];
};
extern const struct cli_group cli_profiling_group;
/* *out points into *f. */
bool cli_profiling_apply(struct cli_profiling_flags *f, struct agent_config *out);

/* parca-agent's flags that do nothing here, and say so; they set no field. */
extern const struct cli_group cli_parca_group;

/* The default places: under /var for root, else under the user's XDG directories. False: there is
 * no home directory. */
bool cli_state_path(char out[PATH_MAX], const char *below);
bool cli_cache_path(char out[PATH_MAX], const char *below);

/* Set by SIGTERM and SIGINT once cli_stop_on_signals() was called; a second signal ends the process
 * at once. */
extern volatile sig_atomic_t cli_stop;
void cli_stop_on_signals(void);
