/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing here fails: an error is logged, and the step is tried again in the next interval. The
 * status page shows the present state; the log has each sentence once.
 */
#include "agent/interval.h"

#include "agent/own_http.h"
#include "agent/pace.h"
#include "base/clock.h"
#include "base/log.h"

#include <stdlib.h>

/* A server that is started again and again is offered all files no more often. */
#define OFFER_INTERVAL_NS (30 * NS_PER_SEC)
/* How often the server gets the status page. */
#define PAGE_INTERVAL_NS (4 * NS_PER_SEC) /* less than an interval, which is not exact */

/* `firn up`: the server shows them in its own /metrics, and the status page at /agent. */
static void hand_over_figures(struct agent *a)
{
	if (!handover_is_connected(a->handover))
		return;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, HANDOVER_FIGURES_MAX);
	own_http_metrics(a, &text);
	if (buf_status(&text) == OK)
		handover_send_figures(a->handover, buf_view(&text));
	if (clock_monotonic_ns() < a->page_at_ns)
		return;
	a->page_at_ns = clock_monotonic_ns() + PAGE_INTERVAL_NS;
	CLEANUP(buf_deinit) struct buf page;
	buf_init(&page, HANDOVER_PAGE_MAX);
	own_http_page(a, HANDOVER_PAGE_MAX, &page);
	handover_send_page(a->handover, buf_view(&page));
}

static void reload_rules(struct agent *a)
{
	struct err e = { 0 };
	char text[2 * ERR_TEXT_MAX];
	if (metadata_reload(a->metadata, &e)) {
		processes_forget(a->processes);
		log_info("relabelling rules changed", "path=%s", a->config.config_path);
	} else if (e.text[0]) {
		log_warn("relabelling rules stay as they were", "err=%s",
			log_quote(str_of(e.text), text, sizeof(text)));
	}
}

/* The status page says what holds now; the log each sentence once. */
static void tell_of_containers(struct agent *a)
{
	char text[2 * ERR_TEXT_MAX + 600];
	struct str rest, line;
	CLEANUP(buf_deinit) struct buf lines;
	buf_init(&lines, 64 << 10);
	if (a->containers)
		containers_write_problems(a->containers, &lines);
	rest = buf_view(&lines);
	while (str_split(&rest, '\n', &line))
		if (log_once_is_new(&a->containers_logged, line))
			log_warn("labels of containers may be missing", "reason=%s",
				log_quote(line, text, sizeof(text)));
}

/* Once: from then on the status page says how it goes on. */
static void tell_of_room(struct agent *a)
{
	const struct batch_metrics *b = batch_metrics(a->batch);
	if (a->is_room_told || !metric_get(&b->stack_end[STACK_END_NO_ROOM]))
		return;
	a->is_room_told = true;
	log_warn("stacks are cut: the unwind tables of the programs in use have no room",
		"room_mib=%u more_by=--bpf-table-memory", a->config.table_bytes_max >> 20);
}

/* CPUs come and go; programs may be loaded on any. */
static void watch_symbols(struct agent *a)
{
	struct err e = { 0 };
	char text[2 * ERR_TEXT_MAX];
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	enum status s = OK;
	if (a->ksymbols)
		s = ksymbols_update(a->ksymbols, &e);
	if (s == OK && a->ksymbols && stats.cpus_renewed != a->cpus_renewed)
		s = ksymbols_renew(a->ksymbols, &e);
	a->cpus_renewed = stats.cpus_renewed;
	if (s != OK)
		log_warn("BPF programs loaded on a new CPU have wrong names", "reason=%s",
			log_quote(str_of(e.text), text, sizeof(text)));
}

/* Emits pieces of the time of threads that stay off their CPUs for long. */
static void run_off_cpu(struct agent *a)
{
	struct sampler_stats s;
	if (a->config.off_cpu_probability <= 0)
		return;
	sampler_read_stats(a->sampler, &s);
	offcpu_tick(a->offcpu, clock_monotonic_ns(), s.bpf.resumed_lost);
}

/* A program whose start was missed would have the labels of the one before it. */
void interval_look_for_lost_execs(struct agent *a, int64_t now_ns)
{
	struct sampler_stats s;
	if (now_ns < a->execs_at_ns)
		return;
	a->execs_at_ns = now_ns + AGENT_POLL_MS * NS_PER_MS;
	sampler_read_stats(a->sampler, &s);
	if (s.bpf.notices_lost != a->execs_lost)
		processes_doubt(a->processes);
	a->execs_lost = s.bpf.notices_lost;
}

/* A server that died may have taken files without reading them, so the next one is offered all. */
void interval_offer_files(struct agent *a, int64_t now_ns)
{
	a->is_offer_due |= handover_server_is_new(a->handover);
	if (!a->is_offer_due || now_ns < a->offer_at_ns)
		return;
	a->patience_ns = AGENT_HANDOVER_PATIENCE_NS;
	a->offer_at_ns = now_ns + OFFER_INTERVAL_NS;
	a->is_offer_due = !files_offer(a->files);
	log_info("a server was started again, and is offered all executables", "%s", "");
}

static void follow_codes(struct agent *a)
{
	if (!a->codes)
		return;
	codes_next_epoch(a->codes);
	if (codes_missed(a->codes))
		sampler_ask_codes(a->sampler);
}

static void look_at_process(void *ctx, uint32_t pid, uint64_t start_ns)
{
	struct agent *a = ctx;
	/* Without memory it is looked at another time. */
	(void)!contexts_ask(a->contexts, pid, start_ns);
}

static void look_for_contexts(struct agent *a)
{
	if (a->contexts)
		processes_look(a->processes, contexts_room(a->contexts), look_at_process, a);
}

/* Of a process that has ended since, no event would take the place out again. One that has a
 * context and no variable has it perhaps in a file that could not be opened this time: the place
 * stays. */
static void take_context(struct agent *a, const struct contexts_answer *x)
{
	if (!processes_look_holds(a->processes, x->pid, x->place.process_start_ns))
		return;
	bool has_variable = x->place.form != THREAD_CONTEXT_NONE;
	const struct thread_context_place *place = has_variable ? &x->place : NULL;
	if ((has_variable || (x->is_known && !x->bytes)) &&
		sampler_set_thread_context(a->sampler, x->pid, place) != OK && has_variable)
		log_warn("too many processes have trace contexts: samples go without",
			"pid=%u processes=%d", x->pid, THREAD_CONTEXTS_MAX);
	if (x->is_known)
		processes_set_context(a->processes, x->pid, x->place.process_start_ns,
			str_make(x->context, x->bytes));
}

void interval_take_contexts(struct agent *a)
{
	struct contexts_answer *x;
	while (a->contexts && (x = contexts_take(a->contexts))) {
		take_context(a, x);
		free(x);
	}
}

void interval_end(struct agent *a)
{
	look_for_contexts(a);
	run_off_cpu(a);
	sampler_next_epoch(a->sampler);
	bool missed = batch_finish(a->batch);
	processes_tick(a->processes);
	if (a->jitnames)
		jitnames_tick(a->jitnames);
	follow_codes(a);
	reload_rules(a);
	tell_of_containers(a);
	tell_of_room(a);
	watch_symbols(a);
	if (a->kallsyms)
		kallsyms_refresh(a->kallsyms, clock_monotonic_ns(), missed);
	pace_step(a);
	hand_over_figures(a);
}
