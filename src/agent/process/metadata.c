/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file is looked at by size, times and inode: cheap enough for once an interval, and it works
 * for files that are replaced, rewritten or mounted (a Kubernetes config map is a link to another
 * directory after each change). On a file system that hangs it is the broker that waits, and the
 * rules stay as they are.
 */
#include "agent/process/metadata.h"

#include "agent/process/redact.h"
#include "os/os.h"
#include "procfs/procfs.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>

#define COMMAND_LINE_BYTES_MAX ((size_t)32 << 10)
/* Failures in a row before one is reported: a file that is being replaced may be absent for a
 * moment. */
#define LOOKS_FAILED_TOLD 2

struct metadata {
	struct metadata_config config;
	struct relabel *rules; /* NULL: none */
	struct os_stamp seen;  /* the file when it was last read */
	uint32_t looks_failed; /* since it could be looked at */
	struct utsname system;
	struct metadata_metrics metrics;
};

/* ---- the configuration ---- */

static enum status check_external_labels(const char *const *labels, struct err *e)
{
	uint32_t count = 0;
	for (const char *const *p = labels; p && *p; p++) {
		struct str text = str_of(*p);
		size_t at = str_index(text, '=');
		if (at == 0 || at == text.len)
			return err_set(e, E_INVALID,
				"external label \"%s\": not of the form name=value", *p);
		if (++count > METADATA_EXTERNAL_LABELS_MAX)
			return err_set(e, E_LIMIT, "more than %d external labels",
				METADATA_EXTERNAL_LABELS_MAX);
	}
	return OK;
}

static enum status check_env_vars(const char *const *names, struct err *e)
{
	uint32_t count = 0;
	for (const char *const *p = names; p && *p; p++) {
		if (!relabel_name_ok(str_of(*p)))
			return err_set(e, E_INVALID,
				"environment variable \"%s\": not a name of letters, digits and _",
				*p);
		if (++count > METADATA_ENV_VARS_MAX)
			return err_set(e, E_LIMIT, "more than %d environment variables",
				METADATA_ENV_VARS_MAX);
	}
	return OK;
}

static enum status read_rules(struct metadata *m, struct err *e)
{
	CLEANUP(buf_deinit) struct buf text;
	struct relabel *fresh = NULL;
	buf_init(&text, RELABEL_CONFIG_BYTES_MAX + 1);
	enum status s = os_read_own(m->config.config_path, &text, &m->seen, e);
	if (s != OK)
		return s;
	s = relabel_parse(buf_view(&text), &fresh, e);
	if (s != OK)
		return err_prefix(e, s, "%s", m->config.config_path);
	relabel_free(m->rules);
	m->rules = fresh;
	metric_set(&m->metrics.rules, relabel_count(fresh));
	return OK;
}

enum status metadata_new(const struct metadata_config *c, struct metadata **out, struct err *e)
{
	enum status s = check_external_labels(c->external_labels, e);
	if (s == OK)
		s = check_env_vars(c->env_vars, e);
	if (s == OK)
		s = optout_check(&c->optout, e);
	if (s != OK)
		return s;
	struct metadata *m = calloc(1, sizeof(*m));
	if (!m)
		return err_set(e, E_NOMEM, "metadata");
	m->config = *c;
	(void)uname(&m->system);
	if (c->config_path && c->config_path[0])
		s = read_rules(m, e);
	if (s != OK) {
		metadata_free(m);
		return s;
	}
	*out = m;
	return OK;
}

void metadata_free(struct metadata *m)
{
	if (!m)
		return;
	relabel_free(m->rules);
	free(m);
}

bool metadata_reload(struct metadata *m, struct err *e)
{
	struct os_stamp now;
	struct err why = { 0 };
	if (!m->config.config_path || !m->config.config_path[0])
		return false;
	if (os_read_own(m->config.config_path, NULL, &now, &why) != OK) {
		if (++m->looks_failed == LOOKS_FAILED_TOLD) {
			metric_add(&m->metrics.reload_failed, 1);
			err_set(e, why.status, "%s", why.text);
		}
		return false;
	}
	m->looks_failed = 0;
	if (os_stamp_is_same(&now, &m->seen))
		return false;
	m->seen = now;
	if (read_rules(m, e) != OK) {
		metric_add(&m->metrics.reload_failed, 1);
		return false;
	}
	metric_add(&m->metrics.reloads, 1);
	return true;
}

/* ---- the labels of a process ---- */

bool metadata_wants_command_line(const struct metadata *m)
{
	return relabel_reads(m->rules, STR("__meta_process_cmdline"));
}

bool metadata_wants_environment(const struct metadata *m)
{
	return (m->rules && m->config.env_vars && m->config.env_vars[0]) ||
	       optout_wants_environment(&m->config.optout);
}

void metadata_write_variables(const struct metadata *m, struct buf *out)
{
	for (const char *const *v = m->config.env_vars; v && *v; v++)
		buf_cstr(out, *v);
	optout_write_variables(&m->config.optout, out);
}

bool metadata_wants_program(const struct metadata *m)
{
	static const char *const names[] = { "file_id", "build_id", "compiler", "static",
		"stripped" };
	char name[64];
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		snprintf(name, sizeof(name), "__meta_process_executable_%s", names[i]);
		if (relabel_reads(m->rules, str_of(name)))
			return true;
	}
	return false;
}

static void put_number(struct relabel_set *s, struct str name, uint32_t number)
{
	char *text = arena_printf(s->arena, "%u", number);
	s->failed = s->failed || !text;
	relabel_set_put(s, name, str_of(text));
}

static void put_environment(
	const struct metadata *m, const struct metadata_process *p, struct relabel_set *s)
{
	for (const char *const *v = m->config.env_vars; v && *v; v++) {
		char *name = arena_printf(s->arena, "__meta_env_var_%s", *v);
		s->failed = s->failed || !name;
		relabel_set_put(s, str_of(name), optout_find_variable(p->environment, str_of(*v)));
	}
}

static void put_command_line(const struct metadata_process *p, struct relabel_set *s)
{
	CLEANUP(buf_deinit) struct buf line;
	buf_init(&line, 2 * COMMAND_LINE_BYTES_MAX);
	redact_command_line(str_sub(p->command_line, 0, COMMAND_LINE_BYTES_MAX), &line);
	char *text = buf_status(&line) == OK ? arena_copy(s->arena, line.data, line.len) : NULL;
	s->failed = s->failed || !text;
	relabel_set_put(s, STR("__meta_process_cmdline"), str_make(text, text ? line.len : 0));
}

static struct str container_value(const struct metadata_process *p, const char *name)
{
	for (uint32_t i = 0; i < p->container_count; i++)
		if (str_eq(p->container[i].name, str_of(name)))
			return p->container[i].value;
	return STR("");
}

/* The labels that people use, from whichever engine gave them. */
static void put_container(const struct metadata_process *p, struct relabel_set *s)
{
	static const char *const names[] = { "__meta_kubernetes_pod_container_name",
		"__meta_docker_container_name", "__meta_podman_container_name",
		"__meta_containerd_container_name", "__meta_lxc_container_id" };
	relabel_set_put(s, STR("namespace"), container_value(p, "__meta_kubernetes_namespace"));
	relabel_set_put(s, STR("pod"), container_value(p, "__meta_kubernetes_pod_name"));
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct str name = container_value(p, names[i]);
		if (!name.len)
			continue;
		relabel_set_put(s, STR("container"), name);
		break;
	}
	/* The name of a container's scope has only its id. */
	if (!p->container_id.len)
		relabel_set_put(s, STR("systemd_unit"), procfs_systemd_unit(p->cgroup));
}

static bool is_name_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static struct str context_value(const struct metadata_process *p, struct str key)
{
	for (uint32_t i = 0; i < p->context_count; i++)
		if (str_eq(p->context[i].name, key))
			return p->context[i].value;
	return STR("");
}

/* Of the labels that a process publishes only these are taken, since no other label has their
 * names. */
static void put_context(const struct metadata_process *p, struct relabel_set *s)
{
	relabel_set_put(s, STR("service_name"), context_value(p, STR("service.name")));
	relabel_set_put(s, STR("service_namespace"), context_value(p, STR("service.namespace")));
	relabel_set_put(s, STR("service_version"), context_value(p, STR("service.version")));
	struct str environment = context_value(p, STR("deployment.environment.name"));
	if (!environment.len) /* as it was called before */
		environment = context_value(p, STR("deployment.environment"));
	relabel_set_put(s, STR("deployment_environment"), environment);
}

/* Labels that need no rule. */
static void put_plain(
	const struct metadata *m, const struct metadata_process *p, struct relabel_set *s)
{
	relabel_set_put(s, STR("node"), str_of(m->config.node));
	relabel_set_put(s, STR("comm"), p->comm);
	relabel_set_put(s, STR("executable"), p->executable);
	relabel_set_put(s, STR("cgroup"), p->cgroup);
	relabel_set_put(s, STR("container_id"), p->container_id);
	put_container(p, s);
	put_context(p, s);
	for (const char *const *l = m->config.external_labels; l && *l; l++) {
		struct str value = str_of(*l), name;
		/* Labels of the process win over those of the host. */
		if (str_split(&value, '=', &name) && !relabel_set_get(s, name).len)
			relabel_set_put(s, name, value);
	}
}

static void put_program(const struct executable *x, struct relabel_set *s)
{
#define PROGRAM(what) STR("__meta_process_executable_" what)
	relabel_set_put(s, PROGRAM("file_id"), str_of(x->file_id));
	relabel_set_put(s, PROGRAM("build_id"), str_of(x->build_id));
	relabel_set_put(s, PROGRAM("compiler"), str_of(x->compiler));
	relabel_set_put(s, PROGRAM("static"), x->is_static ? STR("true") : STR("false"));
	relabel_set_put(s, PROGRAM("stripped"), x->is_stripped ? STR("true") : STR("false"));
#undef PROGRAM
}

static void put_context_meta(const struct metadata_process *p, struct relabel_set *s)
{
	for (uint32_t i = 0; i < p->context_count; i++) {
		struct str key = p->context[i].name;
		char *name = arena_printf(s->arena, "__meta_process_context_%.*s", STR_ARG(key));
		s->failed = s->failed || !name;
		for (char *c = name; c && *c; c++)
			if (!is_name_byte(*c))
				*c = '_';
		relabel_set_put(s, str_of(name), p->context[i].value);
	}
}

static void put_meta(
	const struct metadata *m, const struct metadata_process *p, struct relabel_set *s)
{
	put_number(s, STR("__meta_process_pid"), p->h->pid);
	if (p->ppid)
		put_number(s, STR("__meta_process_ppid"), p->ppid);
	relabel_set_put(s, STR("__meta_process_cgroup"), p->cgroup);
	relabel_set_put(s, STR("__meta_process_executable_name"), p->executable);
	relabel_set_put(s, STR("__meta_systemd_unit"), procfs_systemd_unit(p->cgroup));
	relabel_set_put(s, STR("__meta_systemd_slice"), procfs_systemd_slice(p->cgroup));
	for (uint32_t i = 0; i < p->container_count; i++)
		relabel_set_put(s, p->container[i].name, p->container[i].value);
	relabel_set_put(s, STR("__meta_system_kernel_machine"), str_of(m->system.machine));
	relabel_set_put(s, STR("__meta_system_kernel_release"), str_of(m->system.release));
	relabel_set_put(s, STR("__meta_agent_revision"), STR(FIRN_VERSION));
	if (p->program)
		put_program(p->program, s);
	if (p->command_line.len)
		put_command_line(p, s);
	put_environment(m, p, s);
	put_context_meta(p, s);
}

static void drop_meta(struct relabel_set *s)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < s->count; i++)
		if (!str_starts(s->v[i].name, STR(RELABEL_META_PREFIX)))
			s->v[kept++] = s->v[i];
	s->count = kept;
}

bool metadata_label(struct metadata *m, const struct metadata_process *p, struct relabel_set *out)
{
	bool keep = true, has_rules = relabel_count(m->rules) > 0;
	put_plain(m, p, out);
	if (!has_rules && optout_is_empty(&m->config.optout))
		return true;
	put_meta(m, p, out);
	if (!optout_allows(&m->config.optout, p->environment, out))
		return false;
	if (!has_rules) {
		drop_meta(out);
		return true;
	}
	if (relabel_apply(m->rules, out, &keep, NULL) == OK) {
		drop_meta(out);
		if (out->count <= METADATA_LABELS_MAX)
			return keep;
	}
	metric_add(&m->metrics.failed, 1);
	relabel_set_init(out, out->arena);
	put_plain(m, p, out);
	return true;
}

void metadata_write_metrics(const struct metadata *m, struct buf *out)
{
	static const struct metric_def defs[] = { METADATA_METRICS(METRIC_DEF) };
	metrics_write(out, defs, &m->metrics.rules, ARRAY_COUNT(defs));
}
