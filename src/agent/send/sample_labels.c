/* SPDX-License-Identifier: Apache-2.0 */
/* Labels are gathered in an array and added as one set; the first of a name wins, so that what the
 * agent says comes before what a program says of itself. */
#include "agent/send/sample_labels.h"

#include "base/log.h"
#include "runtimes/runtimes.h"

#include <stdio.h>

struct labels {
	struct profile_label v[METADATA_LABELS_MAX];
	uint32_t count;
	enum status status;
};

static void label(struct profile *p, struct labels *l, struct str name, struct str value)
{
	if (l->status != OK || value.len == 0 || l->count == ARRAY_COUNT(l->v))
		return;
	struct profile_label x;
	l->status = profile_add_string(p, name, &x.name);
	if (l->status == OK)
		l->status = profile_add_string(p, value, &x.value);
	if (l->status == OK)
		l->v[l->count++] = x;
}

static enum status labels_finish(struct profile *p, struct labels *l, uint32_t *out)
{
	if (l->status != OK)
		return l->status;
	return profile_add_labels(p, l->v, l->count, out);
}

enum status sample_labels_of_process(struct profile *p, const struct process *x, uint32_t *out)
{
	struct labels l = { .status = OK };
	for (uint32_t i = 0; i < x->label_count; i++)
		label(p, &l, x->labels[i].name, x->labels[i].value);
	return labels_finish(p, &l, out);
}

/* Whether the agent itself gives this label to any process. A goroutine's label may not have such a
 * name, so no program can claim to belong to a pod. */
static bool is_taken(const struct process *x, struct str name)
{
	static const char *const own[] = { "pid", "thread_id", "thread_name", "cpu", "state",
		"node", "comm", "executable", "cgroup", "container_id", "container", "namespace",
		"pod", "systemd_unit" };
	for (size_t i = 0; i < ARRAY_COUNT(own); i++) {
		if (str_eq(name, str_of(own[i])))
			return true;
	}
	for (uint32_t i = 0; i < x->label_count; i++) {
		if (str_eq(name, x->labels[i].name))
			return true;
	}
	return str_starts(name, STR("__"));
}

/* Is it a label of a span, or one with few values? */
static bool has_few_values(
	struct sample_labels *l, const struct process *x, struct str name, struct str value)
{
	if (str_eq(name, STR("span_id")) || str_eq(name, STR("trace_id")))
		return true;
	bool first;
	if (label_values_admit(&l->values, x->pid, x->start_ns, name, value, &first))
		return true;
	if (first) {
		char quoted[100];
		log_warn("a goroutines' label has too many values and is left out",
			"pid=%u label=%s values=%d", x->pid,
			log_quote(name, quoted, sizeof(quoted)), LABEL_VALUES_MAX);
	}
	metric_add(l->left_out, 1);
	return false;
}

static void id_label(
	struct profile *p, struct labels *l, const char *name, const char *id, size_t bytes)
{
	char text[33];
	bool any = false;
	for (size_t i = 0; i < bytes; i++) {
		snprintf(text + 2 * i, 3, "%02x", (unsigned char)id[i]);
		any |= id[i] != 0;
	}
	if (any)
		label(p, l, str_of(name), str_of(text));
}

/* Of OpenTelemetry's thread context: 16 bytes of trace id, then 8 of span id. */
static void context_labels(struct profile *p, struct str context, struct labels *out)
{
	if (context.len < THREAD_CONTEXT_BYTES)
		return;
	id_label(p, out, "trace_id", context.p, 16);
	id_label(p, out, "span_id", context.p + 16, 8);
}

/* What the program says of what it does: the labels of its goroutine, or its trace and span. */
static void program_labels(struct sample_labels *l, struct profile *p, const struct process *x,
	const struct event_sample *s, struct labels *out)
{
	const struct code *c =
		s->labels && l->codes ? codes_find(l->codes, s->h.pid, s->labels) : NULL;
	if (c && c->form == RUNTIME_FORM_CONTEXT) {
		context_labels(p, c->lines, out);
		return;
	}
	for (uint32_t i = 0; c && i < RUNTIME_LABELS_MAX; i++) {
		CLEANUP(buf_deinit) struct buf name;
		CLEANUP(buf_deinit) struct buf value;
		buf_init(&name, 3 * sizeof(struct runtime_label));
		buf_init(&value, 3 * sizeof(struct runtime_label));
		if (!runtimes_label(c->lines, i, &name, &value))
			return;
		if (name.len && !is_taken(x, buf_view(&name)) &&
			has_few_values(l, x, buf_view(&name), buf_view(&value)))
			label(p, out, buf_view(&name), buf_view(&value));
	}
}

enum status sample_labels_own(struct sample_labels *l, struct profile *p, const struct process *x,
	const struct event_sample *s, struct str state, uint32_t *out)
{
	const struct event_header *h = &s->h;
	struct labels own = { .status = OK };
	char pid[16], tid[16], cpu[16];
	snprintf(pid, sizeof(pid), "%u", h->pid);
	snprintf(tid, sizeof(tid), "%u", h->tid);
	snprintf(cpu, sizeof(cpu), "%u", h->cpu);
	label(p, &own, STR("pid"), str_of(pid));
	if (!l->no_thread_id)
		label(p, &own, STR("thread_id"), str_of(tid));
	if (!l->no_thread_name)
		label(p, &own, STR("thread_name"),
			str_make(h->comm, strnlen(h->comm, sizeof(h->comm))));
	if (!l->no_cpu)
		label(p, &own, STR("cpu"), str_of(cpu));
	label(p, &own, STR("state"), state);
	program_labels(l, p, x, s, &own);
	return labels_finish(p, &own, out);
}
