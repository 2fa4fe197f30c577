/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metadata: the labels of a process, from what is known of it, by relabelling rules. Private to
 * agent/. Not thread safe: the poll thread's.
 *
 * Without rules a process has the labels node, comm, executable, cgroup, container_id, the external
 * ones, and where they are known namespace, pod and container (Kubernetes', Docker's and others'
 * names), or else systemd_unit; and service_name and others that it publishes itself. The rules
 * see these and, when they ask for them, the meta labels of parca-agent by their names:
 *
 *	__meta_process_pid, _ppid, _cmdline (secrets taken out), _cgroup
 *	__meta_process_executable_name, _file_id, _build_id, _compiler, _static, _stripped
 *	__meta_env_var_NAME              for each name given to --include-env-var
 *	__meta_system_kernel_machine, _release
 *	__meta_agent_revision
 *	__meta_systemd_unit, _slice      "nginx.service", "system.slice"
 *	__meta_process_context_NAME      OpenTelemetry's process context, published by itself
 *	__meta_kubernetes_…, __meta_docker_…, __meta_podman_…, __meta_containerd_…, __meta_lxc_…
 *	                                 container/container.h
 *
 * What begins with "__" afterwards is not kept. The command line and the environment of a process
 * are read only if a rule, or the flag, names them.
 */
#pragma once

#include "agent/bpf/shared.h"
#include "agent/process/executable.h"
#include "agent/process/optout.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"
#include "container/container.h"
#include "relabel/relabel.h"

#define METADATA_EXTERNAL_LABELS_MAX 64
#define METADATA_ENV_VARS_MAX 64
#define METADATA_LABELS_MAX 96 /* of one process, after the rules */
static_assert(CONTAINER_LABELS_MAX + METADATA_LABELS_MAX <= RELABEL_LABELS_MAX,
	"a container's labels leave room for the others");

struct metadata_config {
	const char *node;
	const char *const *external_labels; /* "name=value", NULL at the end; or NULL */
	const char *const *env_vars;        /* names, NULL at the end; or NULL */
	const char *config_path;            /* YAML with relabel_configs; "": none */
	struct optout_config optout;        /* before the rules */
};

/* What is known of a process; texts may be "". */
struct metadata_process {
	const struct event_header *h;
	uint32_t ppid;
	struct str comm, executable, cgroup, container_id;
	struct str command_line; /* as in /proc: a NUL after each argument */
	struct str environment;
	const struct container_label *container; /* what is known of its container */
	uint32_t container_count;
	const struct executable *program;    /* NULL: not asked for, or not readable */
	const struct relabel_label *context; /* what it publishes: keys are OpenTelemetry's */
	uint32_t context_count;
};

#define METADATA_METRICS(X)                                                                       \
	X(rules, GAUGE, "firn_agent_relabel_rules", "Relabelling rules in force.")                \
	X(reloads, COUNTER, "firn_agent_config_reloads_total", "Times that the rules changed.")   \
	X(reload_failed, COUNTER, "firn_agent_config_reload_failures_total",                      \
		"Times that the configuration file could not be read, or not be found any more: " \
		"the old rules stay.")                                                            \
	X(failed, COUNTER, "firn_agent_relabel_failures_total",                                   \
		"Processes whose labels passed a limit: they keep the plain ones.")
struct metadata_metrics {
	METADATA_METRICS(METRIC_FIELD)
};

struct metadata;

/* E_INVALID: a label or a rule is wrong; `e` says where. */
NODISCARD enum status metadata_new(
	const struct metadata_config *c, struct metadata **out, struct err *e);
void metadata_free(struct metadata *m);
/* Is the command line, the environment, or the program's file worth reading? */
bool metadata_wants_command_line(const struct metadata *m);
bool metadata_wants_environment(const struct metadata *m);
/* Names of the variables that are read, a NUL after each. */
void metadata_write_variables(const struct metadata *m, struct buf *out);
bool metadata_wants_program(const struct metadata *m);
/* The labels of a process, in `out`, texts in its arena or those of `p`. False: it opted out, or
 * the rules drop it. */
bool metadata_label(struct metadata *m, const struct metadata_process *p, struct relabel_set *out);
/* Looks whether the configuration file changed. True: there are other rules now. A sentence in `e`
 * when it cannot be read, or is not found twice in a row: once for each change of the file. */
bool metadata_reload(struct metadata *m, struct err *e);
void metadata_write_metrics(const struct metadata *m, struct buf *out);
