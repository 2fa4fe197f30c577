/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The poll loop. One thread reads the ring four times a second, gives each sample its labels and
 * puts it into the batch; at the end of an interval the batch goes to the sender's thread. The
 * files' worker thread builds unwind tables; the HTTP threads read counters only.
 *
 * Order of start: what needs privileges, while there is one thread: the broker, folders, the eBPF
 * programs and their events, paused; then without privileges all the rest that may fail, then the
 * files of all processes there are, then the first sample: so every process is in the picture from
 * the first batch on. Order of end: no more samples, read what the ring holds, send the last
 * batch.
 */
#include "agent/agent.h"

#include "agent/batch.h"
#include "agent/broker.h"
#include "agent/deferred.h"
#include "agent/files.h"
#include "agent/governor.h"
#include "agent/handover.h"
#include "agent/kallsyms.h"
#include "agent/metadata.h"
#include "agent/offcpu.h"
#include "agent/privilege.h"
#include "agent/problems.h"
#include "agent/process.h"
#include "agent/sampler.h"
#include "agent/send.h"
#include "agent/status.h"
#include "agent/tables.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/net.h"

#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define POLL_MS 250
/* The first batch is sent early, so that a page that waits fills at once. */
#define FIRST_INTERVAL_NS NS_PER_SEC
#define STOP_TIMEOUT_NS (10 * NS_PER_SEC)
/* How long the first pass over all files waits for the server to take them. */
#define HANDOVER_PATIENCE_NS (2 * NS_PER_SEC)
/* How long sampling waits for the first pass. */
#define PRELOAD_PATIENCE_NS (20 * NS_PER_SEC)
/* How long it waits for what engines say of the containers there are. */
#define CONTAINERS_PATIENCE_NS (2 * NS_PER_SEC)
/* The kernel may fail for a while (no memory, a CPU on its way out). */
#define POLL_FAILURES_NS (60 * NS_PER_SEC)
/* Share of one CPU for building tables once sampling has begun. */
#define FILES_CPU_PERCENT 5
#define HTTP_BODY_MAX 4096
#define HTTP_CONNECTIONS_MAX 64

struct agent {
	struct agent_config config;
	char node[HOST_NAME_MAX + 1];
	struct kallsyms *kallsyms;
	struct metadata *metadata;
	struct containers *containers;
	struct processes *processes;
	struct handover *handover;
	struct sampler *sampler;
	struct files *files;
	struct problems *problems;
	struct sender *sender;
	struct batch *batch;
	struct deferred *deferred;
	struct offcpu *offcpu;
	int64_t failing_since_ns; /* 0: sampling works */
	struct net_server *http;
	struct governor governor;
	_Atomic bool is_sampling;
	uint32_t frequency_hz; /* at present */
	bool paused;
	struct privilege_dir spool_dir;
	struct privilege_dir cache_dir;
	struct privilege_dir http_dir;
	_Atomic int64_t
		patience_ns; /* left for waiting in the first pass over all files; after it 0 */
};

void agent_config_default(struct agent_config *c)
{
	*c = (struct agent_config){
		.node = "",
		.config_path = "",
		.remote_store_address = "127.0.0.1:7070",
		.http_address = "",
		.cache_dir = "",
		.spool_dir = "",
		.spool_bytes_max = 256u << 20,
		.frequency_hz = 19,
		.flush_interval_ns = 5 * NS_PER_SEC,
		.table_bytes_max = 32u << 20,
		.chance_ns = 60 * NS_PER_SEC,
		.chance_percent = 100,
		.label_ttl_ns = 600 * NS_PER_SEC,
		.handover_fd = -1,
		.ready_fd = -1,
	};
}

enum status agent_probe(struct err *e)
{
	return sampler_probe(e);
}

/* ---- events ---- */

/* As whole as it gets. */
static void on_finished(void *ctx, const struct event_sample *s)
{
	struct agent *a = ctx;
	if (event_state(&s->h) == THREAD_ON_CPU)
		batch_add(a->batch, s);
	else
		offcpu_left(a->offcpu, s);
}

static void on_sample(void *ctx, const struct event_sample *s)
{
	struct agent *a = ctx;
	if (s->notice.key.inode)
		files_notice(a->files, &s->notice, (int)s->h.pid);
	if (!deferred_add(a->deferred, s, clock_monotonic_ns()))
		on_finished(a, s);
}

static void on_resume(void *ctx, const struct event_resume *r)
{
	struct agent *a = ctx;
	offcpu_resume(a->offcpu, r);
}

static void on_away(void *ctx, const struct event_sample *s, int64_t away_ns)
{
	struct agent *a = ctx;
	batch_add_off_cpu(a->batch, s, away_ns);
}

/* The files that the rest of the walk may lead through, too. */
static void on_stack(void *ctx, const struct event_stack *s)
{
	struct agent *a = ctx;
	for (uint32_t i = 0; i < s->mapping_count && i < STACK_MAPPINGS_MAX; i++) {
		const struct stack_mapping *m = &s->mappings[i];
		const struct file_notice n = { m->key, m->start, m->end, m->offset };
		if (m->key.inode && files_find(a->files, &m->key) == 0)
			files_notice(a->files, &n, (int)s->h.pid);
	}
	deferred_stack(a->deferred, s);
}

static enum deferred_file find_deferred(void *ctx, const struct file_key *key, uint64_t offset,
	uint32_t *out_file_id, struct unwind_rule *out_rule)
{
	struct agent *a = ctx;
	enum files_state state = FILES_KNOWN;
	*out_file_id = FRAME_FILE_VDSO;
	if (key->inode)
		state = files_look_up(a->files, key, out_file_id);
	if (state == FILES_KNOWN && sampler_find_rule(a->sampler, key, offset, out_rule))
		return DEFERRED_KNOWN;
	return state == FILES_FAILED || !key->inode ? DEFERRED_NEVER : DEFERRED_NOT_YET;
}

static void on_process(void *ctx, const struct event_process *p)
{
	struct agent *a = ctx;
	if (p->h.type == EVENT_EXIT) {
		processes_exit(a->processes, &p->h);
		return;
	}
	processes_exec(a->processes, &p->h);
	if (p->notice.key.inode)
		files_notice(a->files, &p->notice, (int)p->h.pid);
}

static void on_message(void *ctx, struct buf *message, uint32_t sample_count)
{
	struct agent *a = ctx;
	sender_push(a->sender, message, sample_count);
}

/* From the files' worker; and in the first pass, when hundreds come at once, from the poll thread,
 * which then has time to wait for room in the socket. */
static void on_new_file(void *ctx, const char *build_id, const char *path, int fd)
{
	struct agent *a = ctx;
	while (a->patience_ns > 0 && handover_retry(a->handover)) {
		usleep(1000);
		a->patience_ns -= NS_PER_MS;
	}
	handover_send(a->handover, build_id, path, fd);
}

/* ---- its own HTTP ---- */

static void write_sampler_metrics(struct agent *a, struct buf *out)
{
	struct sampler_stats s;
	sampler_read_stats(a->sampler, &s);
	static const char *const reasons[] = { "ring", "busy", "excluded", "off_cpu", "seen",
		"batch", "relabel" };
	uint64_t lost[] = { s.bpf.lost_ring, s.bpf.lost_busy, s.bpf.lost_excluded,
		s.bpf.lost_off_cpu, s.lost_seen, metric_get(&batch_metrics(a->batch)->lost),
		metric_get(&batch_metrics(a->batch)->dropped) };
	const struct {
		const char *name;
		const char *help;
		const char *type;
		uint64_t value;
	} rows[] = {
		{ "firn_agent_samples_taken_total",
			"Timer interrupts in a task, and threads sampled when they left a CPU.",
			"counter", s.bpf.samples },
		{ "firn_agent_off_cpu_taken_total", "Threads sampled when they left a CPU.",
			"counter", s.bpf.off_cpu },
		{ "firn_agent_idle_ticks_total", "Timer interrupts in the idle task.", "counter",
			s.bpf.idle },
		{ "firn_agent_user_frames_total", "User frames walked.", "counter",
			s.bpf.user_frames },
		{ "firn_agent_kernel_frames_total", "Kernel frames walked.", "counter",
			s.bpf.kernel_frames },
		{ "firn_agent_process_events_lost_total",
			"Execs and exits lost: the ring was full.", "counter", s.bpf.notices_lost },
		{ "firn_agent_stacks_copied_total", "Stacks copied to finish a walk later.",
			"counter", s.bpf.stacks },
		{ "firn_agent_stacks_not_copied_total", "Stacks not copied: the ring was too full.",
			"counter", s.bpf.stacks_lost },
		{ "firn_agent_bpf_nanoseconds_total",
			"Time in the eBPF program that takes samples.", "counter", s.bpf.run_ns },
		{ "firn_agent_cpus", "CPUs that are sampled.", "gauge", s.cpus },
		{ "firn_agent_unwind_table_bytes", "Kernel memory that unwind tables use.", "gauge",
			s.table_bytes },
		{ "firn_agent_kernel_bytes", "Kernel memory of all maps and programs.", "gauge",
			s.kernel_bytes },
		{ "firn_agent_unwind_tables_evicted_total", "Unwind tables evicted for room.",
			"counter", s.evicted_tables },
	};
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", rows[i].name, rows[i].help,
			rows[i].name, rows[i].type, rows[i].name,
			(unsigned long long)rows[i].value);
	buf_cstr(out, "# HELP firn_agent_samples_lost_total Samples lost in the agent.\n"
		      "# TYPE firn_agent_samples_lost_total counter\n");
	for (size_t i = 0; i < ARRAY_COUNT(lost); i++)
		buf_printf(out, "firn_agent_samples_lost_total{reason=\"%s\"} %llu\n", reasons[i],
			(unsigned long long)lost[i]);
}

static void write_metrics(struct agent *a, struct buf *out)
{
	write_sampler_metrics(a, out);
	batch_write_metrics(a->batch, out);
	processes_write_metrics(a->processes, out);
	metadata_write_metrics(a->metadata, out);
	if (a->containers)
		containers_write_metrics(a->containers, out);
	files_write_metrics(a->files, out);
	deferred_write_metrics(a->deferred, out);
	offcpu_write_metrics(a->offcpu, out);
	handover_write_metrics(a->handover, out);
	sender_write_metrics(a->sender, out);
	broker_write_metrics(out);
	governor_write_metrics(&a->governor, out);
	buf_printf(out,
		"# HELP firn_agent_resident_bytes Resident memory of the agent.\n"
		"# TYPE firn_agent_resident_bytes gauge\nfirn_agent_resident_bytes %llu\n"
		"# HELP firn_agent_cpu_seconds_total CPU time that the agent used.\n"
		"# TYPE firn_agent_cpu_seconds_total counter\nfirn_agent_cpu_seconds_total %.3f\n",
		(unsigned long long)os_self_rss_bytes(), (double)os_self_cpu_ns() / NS_PER_SEC);
}

static void serve_metrics(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)r;
	out->content_type = "text/plain; version=0.0.4; charset=utf-8";
	write_metrics(ctx, &out->body);
}

/* `firn up`: the server shows them in its own /metrics. */
static void hand_over_figures(struct agent *a)
{
	if (!handover_is_connected(a->handover))
		return;
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, HANDOVER_FIGURES_MAX);
	write_metrics(a, &text);
	if (buf_status(&text) == OK)
		handover_send_figures(a->handover, buf_view(&text));
}

static void serve_healthy(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "text/plain";
	buf_cstr(&out->body, "ok\n");
}

static void serve_ready(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct agent *a = ctx;
	(void)r;
	struct err e;
	out->content_type = "text/plain";
	if (atomic_load(&a->is_sampling))
		buf_cstr(&out->body, "ok\n");
	else
		net_fail(out, err_set(&e, E_UNAVAILABLE, "sampling has not begun"), &e);
}

#define STATUS_ROWS_MAX 32

struct status_table {
	struct status_row rows[STATUS_ROWS_MAX];
	char values[STATUS_ROWS_MAX][48];
	size_t count;
};

static void status_number(struct status_table *t, const char *name, uint64_t value, const char *why)
{
	assert(t->count < STATUS_ROWS_MAX);
	snprintf(t->values[t->count], sizeof(t->values[0]), "%llu", (unsigned long long)value);
	t->rows[t->count] = (struct status_row){ name, t->values[t->count], why };
	t->count++;
}

static void write_seen(struct agent *a, struct buf *out, const struct sampler_stats *s)
{
	struct status_table t = { .count = 0 };
	const struct files_metrics *f = files_metrics(a->files);
	const struct send_metrics *m = sender_metrics(a->sender);
	status_number(&t, "CPUs sampled", s->cpus, "");
	status_number(&t, "samples a second and CPU", metric_get(&a->governor.metrics.frequency_hz),
		metric_get(&a->governor.metrics.frequency_hz) < a->config.frequency_hz
			? "fewer than asked for: --agent-cpu-limit or --agent-memory-limit"
			: "");
	status_number(&t, "left out now", metric_get(&a->governor.metrics.paused),
		"1: --profiling-probabilistic-threshold");
	status_number(&t, "samples taken", s->bpf.samples, "");
	status_number(&t, "samples the server took", metric_get(&m->sent), "");
	status_number(&t, "samples that wait", metric_get(&m->waiting) + metric_get(&m->spooled),
		a->config.offline           ? "--offline-mode-storage-path: nothing is sent"
		: metric_get(&m->reachable) ? ""
					    : "the server does not answer");
	status_number(
		&t, "processes known", metric_get(&processes_metrics(a->processes)->known), "");
	status_number(&t, "executables known", metric_get(&f->known), "");
	status_number(&t, "of these with unwind tables", metric_get(&f->tables), "");
	status_number(&t, "KiB of unwind tables in the kernel", s->table_bytes >> 10, "");
	status_number(&t, "KiB of the agent", os_self_rss_bytes() >> 10, "");
	status_number(&t, "its CPU time in ms", (uint64_t)(os_self_cpu_ns() / NS_PER_MS), "");
	status_number(&t, "and of its eBPF program", s->bpf.run_ns / NS_PER_MS, "");
	status_number(&t, "its broker's process id", (uint64_t)broker_pid(),
		broker_pid() ? "" : "none: --keep-privileges, or started with none");
	status_section(out, "What it sees", "");
	status_rows(out, t.rows, t.count);
}

static void write_lost(struct agent *a, struct buf *out, const struct sampler_stats *s)
{
	struct status_table t = { .count = 0 };
	const struct send_metrics *m = sender_metrics(a->sender);
	const struct batch_metrics *b = batch_metrics(a->batch);
	status_number(&t, "the ring was full", s->bpf.lost_ring, "the agent came too late");
	status_number(&t, "the CPU was in the program already", s->bpf.lost_busy, "");
	status_number(&t, "frames of a known stack were gone", s->lost_seen, "");
	if (a->config.only_pid)
		status_number(&t, "of others than the one profiled", s->bpf.lost_excluded, "");
	if (a->config.off_cpu_probability > 0) {
		const struct offcpu_metrics *off = offcpu_metrics(a->offcpu);
		status_number(&t, "too many threads were off their CPUs",
			s->bpf.lost_off_cpu + metric_get(&off->lost), "");
		status_number(&t, "off their CPUs for too short", metric_get(&off->too_short),
			"--off-cpu-min-duration");
	}
	status_number(&t, "left out of a batch", metric_get(&b->lost), "memory, or a limit");
	status_number(&t, "dropped by a rule", metric_get(&b->dropped), "--config-path");
	status_number(&t, "dropped from memory", metric_get(&m->lost_queue), "the server was away");
	status_number(&t, "dropped from disk", metric_get(&m->lost_spool), "--spool-size");
	status_number(&t, "damaged on disk", metric_get(&m->lost_damaged), "");
	status_number(
		&t, "refused by the server", metric_get(&m->lost_refused), "its log says why");
	status_section(out, "Samples lost", "Every sample taken is delivered, or counted here.");
	status_rows(out, t.rows, t.count);
}

static void serve_status(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct agent *a = ctx;
	struct sampler_stats s;
	(void)r;
	sampler_read_stats(a->sampler, &s);
	out->content_type = "text/html; charset=utf-8";
	snprintf(out->headers, sizeof(out->headers), "%s", STATUS_HEADERS);
	struct buf *page = &out->body;
	status_begin(page, a->config.node);
	write_seen(a, page, &s);
	write_lost(a, page, &s);
	status_section(page, "Stacks that do not reach their root", "The latest, by process.");
	status_problems(page, a->problems, PROBLEM_STACK, "process", "why");
	status_section(page, "Executables that could not be read", "The latest.");
	status_problems(page, a->problems, PROBLEM_FILE, "file", "why");
	status_section(page, "Executables without an unwind table",
		"Their frames are walked by frame pointers.");
	status_problems(page, a->problems, PROBLEM_TABLE, "file", "why");
	if (a->containers) {
		CLEANUP(buf_deinit) struct buf lines;
		buf_init(&lines, 64 << 10);
		containers_write_problems(a->containers, &lines);
		status_lines(page, "Container engines", buf_view(&lines));
	}
	status_end(page);
}

static enum status start_http(struct agent *a, struct err *e)
{
	if (!a->config.http_address || !a->config.http_address[0])
		return OK;
	struct net_server_config c;
	net_server_config_default(&c);
	c.address = a->config.http_address;
	c.workers = 1;
	c.body_max = HTTP_BODY_MAX;
	c.connections_max = HTTP_CONNECTIONS_MAX;
	const struct net_route routes[] = {
		{ .method = "GET", .path = "/metrics", .fn = serve_metrics, .ctx = a },
		{ .method = "GET", .path = "/healthy", .fn = serve_healthy, .ctx = a },
		{ .method = "GET", .path = "/ready", .fn = serve_ready, .ctx = a },
		{ .method = "GET", .path = "/", .fn = serve_status, .ctx = a },
	};
	enum status s = net_server_start(&c, routes, ARRAY_COUNT(routes), &a->http, e);
	if (s == OK)
		log_info("agent listens", "address=%s", net_server_address(a->http));
	return s;
}

/* ---- life ---- */

static void agent_close(struct agent *a)
{
	if (a->http)
		net_server_stop(a->http);
	broker_hang_up(); /* the files' thread may wait for it */
	/* The files' worker publishes to the sampler and hands over: it ends first. */
	files_free(a->files);
	sampler_close(a->sampler);
	deferred_free(a->deferred);
	offcpu_free(a->offcpu);
	batch_free(a->batch);
	sender_free(a->sender);
	handover_free(a->handover);
	processes_free(a->processes);
	containers_free(a->containers);
	metadata_free(a->metadata);
	kallsyms_free(a->kallsyms);
	problems_free(a->problems);
	fd_cleanup(&a->spool_dir.fd);
	fd_cleanup(&a->cache_dir.fd);
	fd_cleanup(&a->http_dir.fd);
	broker_stop();
}

/* Names of kernel functions are worth having, but not worth failing for. */
static void open_kallsyms(struct agent *a)
{
	struct err e;
	char text[2 * ERR_TEXT_MAX];
	enum status s = kallsyms_new(&a->kallsyms, &e);
	if (s != OK)
		log_warn("no names of kernel functions", "err=%s",
			log_quote(str_of(err_text(&e, s)), text, sizeof(text)));
}

static enum status open_sender(struct agent *a, struct err *e)
{
	struct sender_config c;
	sender_config_default(&c);
	c.remote = (struct remote_config){
		.address = a->config.remote_store_address,
		.pinned_cert = a->config.remote_store_cert,
		.ca_file = a->config.remote_store_ca_file,
		.trust_anybody = a->config.remote_store_trust_anybody,
		.client_cert = a->config.remote_store_client_cert,
		.client_key = a->config.remote_store_client_key,
		.token = a->config.remote_store_token,
		.token_file = a->config.remote_store_token_file,
		.headers = a->config.remote_store_headers,
	};
	c.offline = a->config.offline;
	c.spool_dir = a->spool_dir.path;
	c.spool_bytes_max = a->config.spool_bytes_max;
	enum status s = sender_new(&c, &a->sender, e);
	return s == OK ? OK : err_prefix(e, s, "sending (spool %s)", a->config.spool_dir);
}

static enum status open_sampler(struct agent *a, struct err *e)
{
	const struct sampler_config c = {
		.frequency_hz = a->config.frequency_hz,
		.table_bytes_max = a->config.table_bytes_max,
		.only_pid = a->config.only_pid,
		.off_cpu_probability = a->config.off_cpu_probability,
	};
	const struct sampler_events events = { a, on_sample, on_process, on_stack, on_resume };
	return sampler_open(&c, &events, &a->sampler, e);
}

static enum status open_files(struct agent *a, struct err *e)
{
	const struct files_config c = {
		.cache_dir = a->cache_dir.path,
		.cpu_percent = FILES_CPU_PERCENT,
		.problems = a->problems,
		.seen = on_new_file,
		.seen_ctx = a,
	};
	return files_new(&c, a->sampler, &a->files, e);
}

static enum status open_batch(struct agent *a, struct err *e)
{
	const struct batch_config c = {
		.no_thread_id = a->config.no_thread_id,
		.no_thread_name = a->config.no_thread_name,
		.no_cpu = a->config.no_cpu,
		.frequency_hz = a->config.frequency_hz,
		.off_cpu_probability = a->config.off_cpu_probability,
		.wall_clock = a->config.wall_clock,
		.files = a->files,
		.kallsyms = a->kallsyms,
		.processes = a->processes,
		.problems = a->problems,
		.emit = on_message,
		.ctx = a,
	};
	return batch_new(&c, &a->batch, e);
}

static enum status open_processes(struct agent *a, struct err *e)
{
	const struct containers_config containers = {
		.node = a->config.node,
		.socket_path = a->config.container_socket_path,
		.kubernetes_address = a->config.kubernetes_address,
		.kubelet_address = a->config.kubelet_address,
		.token_file = a->config.kubernetes_token_file,
		.ca_file = a->config.kubernetes_ca_file,
		.insecure = a->config.kubernetes_insecure,
		.ttl_ns = a->config.label_ttl_ns,
	};
	enum status s = OK;
	if (!a->config.no_containers)
		s = containers_new(&containers, &a->containers, e);
	const struct processes_config c = { a->metadata, a->containers, a->config.label_ttl_ns };
	return s == OK ? processes_new(&c, &a->processes, e) : s;
}

static enum status open_metadata(struct agent *a, struct err *e)
{
	const struct metadata_config c = {
		.node = a->config.node,
		.external_labels = a->config.external_labels,
		.env_vars = a->config.env_vars,
		.config_path = a->config.config_path,
	};
	return metadata_new(&c, &a->metadata, e);
}

static enum status check_config(struct agent *a, struct err *e)
{
	if (!a->config.node || !a->config.node[0]) {
		if (gethostname(a->node, sizeof(a->node) - 1) < 0)
			return err_os(e, "host name");
		a->config.node = a->node;
	}
	if (a->config.frequency_hz == 0 || a->config.flush_interval_ns <= 0)
		return err_set(e, E_INVALID, "frequency and interval must be above zero");
	return OK;
}

static bool sampler_still_works(void *ctx)
{
	return sampler_works(ctx);
}

/* What needs privileges, and then nothing any more. No thread is started here: it would keep them.
 */
static enum status open_privileged(struct agent *a, struct err *e)
{
	const struct broker_config broker = {
		.own_files = { a->config.config_path, a->config.remote_store_cert,
			a->config.remote_store_ca_file, a->config.remote_store_client_cert,
			a->config.remote_store_client_key, a->config.remote_store_token_file,
			a->config.kubernetes_token_file, a->config.kubernetes_ca_file },
		.environment = a->config.env_vars != NULL,
		.slabs_max = tables_slabs_max(a->config.table_bytes_max),
	};
	struct privilege_dir *dirs[] = { &a->spool_dir, &a->cache_dir, &a->http_dir, NULL };
	enum status s = OK;
	if (!a->config.keep_privileges)
		s = privilege_split(&broker, e);
	if (s == OK)
		s = privilege_dir_open(a->config.spool_dir, &a->spool_dir, e);
	/* Without a cache it runs too, and says so later. */
	if (s == OK && privilege_dir_open(a->config.cache_dir, &a->cache_dir, NULL) != OK)
		snprintf(a->cache_dir.path, sizeof(a->cache_dir.path), "%s", a->config.cache_dir);
	privilege_socket_dir(a->config.http_address, &a->http_dir);
	if (s == OK)
		s = open_sampler(a, e);
	if (s != OK)
		return s;
	sampler_pause(a->sampler, true);
	s = sampler_start(a->sampler, e);
	if (s == OK && !a->config.keep_privileges)
		s = privilege_drop(sampler_still_works, a->sampler, dirs, e);
	return s;
}

static enum status agent_open(struct agent *a, struct err *e)
{
	const struct deferred_config deferred = { find_deferred, on_finished, a };
	const struct offcpu_config offcpu = { a->config.off_cpu_min_ns, on_away, a };
	enum status s = check_config(a, e);
	a->problems = problems_new(); /* without them it runs, too */
	if (s == OK)
		s = open_privileged(a, e);
	if (s == OK)
		s = open_metadata(a, e);
	if (s == OK)
		s = open_processes(a, e);
	if (s == OK)
		s = deferred_new(&deferred, &a->deferred, e);
	if (s == OK)
		s = offcpu_new(&offcpu, &a->offcpu, e);
	if (s == OK)
		s = handover_new(a->config.handover_fd, &a->handover, e);
	if (s == OK)
		s = open_sender(a, e);
	if (s == OK) {
		open_kallsyms(a); /* after the sampler, so that its programs have names too */
		s = open_files(a, e);
	}
	if (s == OK)
		s = open_batch(a, e);
	if (s == OK)
		s = start_http(a, e);
	return s;
}

/* What is in the ring was sampled at the rate before. */
static void change_frequency(struct agent *a, const struct governor_decision *d)
{
	struct err e = { 0 };
	enum status s = sampler_set_frequency(a->sampler, d->frequency_hz, &e);
	if (s == OK)
		s = sampler_poll(a->sampler, 0, &e);
	if (s != OK) {
		log_warn("the rate of sampling stays", "err=\"%s\"", err_text(&e, s));
		return;
	}
	(void)batch_finish(a->batch);
	batch_set_frequency(a->batch, d->frequency_hz);
	log_warn(d->frequency_hz < a->frequency_hz ? "sampling less often" : "sampling more often",
		"frequency_hz=%u wanted_hz=%u reason=\"%s\"", d->frequency_hz,
		a->config.frequency_hz, d->why);
	a->frequency_hz = d->frequency_hz;
}

static void govern(struct agent *a)
{
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	const struct governor_usage usage = {
		.now_ns = clock_monotonic_ns(),
		.cpu_ns = os_self_cpu_ns() + broker_cpu_ns() + (int64_t)stats.bpf.run_ns,
		.resident_bytes = os_self_rss_bytes(),
	};
	struct governor_decision d = governor_step(&a->governor, &usage);
	if (d.drop_caches) {
		processes_forget(a->processes);
		malloc_trim(0);
	}
	if (d.paused != a->paused) {
		sampler_pause(a->sampler, d.paused);
		log_info(d.paused ? "this interval is left out" : "this interval is sampled",
			"probability_percent=%u", a->config.chance_percent);
		a->paused = d.paused;
	}
	if (d.frequency_hz != a->frequency_hz)
		change_frequency(a, &d);
}

static void start_governor(struct agent *a)
{
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	const struct governor_config c = {
		.frequency_hz = a->config.frequency_hz,
		.cpus = MAX(stats.cpus, 1u),
		.cpu_share = a->config.cpu_share,
		.memory_bytes = a->config.memory_bytes,
		.chance_ns = a->config.chance_ns,
		.chance_threshold = a->config.chance_percent,
	};
	governor_init(&a->governor, &c);
	a->frequency_hz = c.frequency_hz;
	govern(a);
}

static enum status agent_start(struct agent *a, struct err *e)
{
	int64_t begin = clock_monotonic_ns();
	a->patience_ns = HANDOVER_PATIENCE_NS;
	enum status s = files_preload(a->files, PRELOAD_PATIENCE_NS, e);
	a->patience_ns = 0;
	if (s != OK) /* what is not known yet becomes known later */
		log_warn("sampling begins before every executable is read", "reason=\"%s\"",
			err_text(e, s));
	if (a->containers)
		containers_settle(a->containers, CONTAINERS_PATIENCE_NS);
	malloc_trim(0);
	sampler_pause(a->sampler, false);
	start_governor(a);
	atomic_store(&a->is_sampling, true);
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	log_info("sampling", "cpus=%u frequency_hz=%u files=%u table_bytes=%llu preload_ms=%lld",
		stats.cpus, a->config.frequency_hz, stats.files,
		(unsigned long long)stats.table_bytes,
		(long long)((clock_monotonic_ns() - begin) / NS_PER_MS));
	/* Nobody may be listening any more, which is their affair. */
	if (a->config.ready_fd >= 0 && write(a->config.ready_fd, "\n", 1) < 0)
		log_debug("nobody waits for the agent", "%s", "");
	return OK;
}

static void run_deferred(struct agent *a, bool all)
{
	deferred_run(a->deferred, clock_monotonic_ns(), all);
	sampler_rest(a->sampler);
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

/* Those who stay off their CPUs long are told of in pieces. */
static void run_off_cpu(struct agent *a)
{
	struct sampler_stats s;
	if (a->config.off_cpu_probability <= 0)
		return;
	sampler_read_stats(a->sampler, &s);
	offcpu_tick(a->offcpu, clock_monotonic_ns(), s.bpf.resumed_lost);
}

static void end_interval(struct agent *a)
{
	run_off_cpu(a);
	sampler_next_epoch(a->sampler);
	bool missed = batch_finish(a->batch);
	processes_tick(a->processes);
	reload_rules(a);
	if (a->kallsyms)
		kallsyms_refresh(a->kallsyms, missed);
	govern(a);
	hand_over_figures(a);
}

/* An error is said once, and forgiven for a minute; after that the supervisor starts us anew. */
static enum status poll_patiently(struct agent *a, int timeout_ms, struct err *e)
{
	enum status s = sampler_poll(a->sampler, timeout_ms, e);
	if (s == OK) {
		a->failing_since_ns = 0;
		return OK;
	}
	int64_t now = clock_monotonic_ns();
	if (a->failing_since_ns == 0) {
		a->failing_since_ns = now;
		log_warn("sampling fails", "err=\"%s\"", err_text(e, s));
	}
	if (now - a->failing_since_ns >= POLL_FAILURES_NS)
		return s;
	usleep(POLL_MS * 1000);
	return OK;
}

static enum status agent_loop(struct agent *a, const volatile sig_atomic_t *stop, struct err *e)
{
	int64_t now = clock_monotonic_ns();
	int64_t end = now + MIN(FIRST_INTERVAL_NS, a->config.flush_interval_ns);
	enum status s = OK;
	while (!*stop && s == OK) {
		int64_t left_ms = MAX((end - now) / NS_PER_MS, (int64_t)0) + 1;
		s = poll_patiently(a, (int)MIN(left_ms, (int64_t)POLL_MS), e);
		run_deferred(a, false);
		batch_look_at_clocks(a->batch);
		handover_retry(a->handover);
		if (s == OK && broker_is_gone())
			s = err_set(
				e, E_UNAVAILABLE, "the broker, which opens executables, has ended");
		now = clock_monotonic_ns();
		if (now < end)
			continue;
		end_interval(a);
		/* After a long pause (suspend) not every missed interval is made up for. */
		end = MAX(end + a->config.flush_interval_ns, now);
	}
	return s;
}

static void agent_stop(struct agent *a)
{
	sampler_stop(a->sampler);
	struct err e;
	if (sampler_poll(a->sampler, 0, &e) != OK)
		log_warn("the last samples could not be read", "err=\"%s\"", e.text);
	run_deferred(a, true);
	offcpu_finish(a->offcpu, clock_monotonic_ns());
	end_interval(a);
	sender_stop(a->sender, STOP_TIMEOUT_NS);
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	const struct send_metrics *m = sender_metrics(a->sender);
	log_info("agent stopped", "samples=%llu sent=%llu spooled=%llu",
		(unsigned long long)stats.bpf.samples, (unsigned long long)metric_get(&m->sent),
		(unsigned long long)metric_get(&m->spooled));
}

enum status agent_run(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	/* Few threads that allocate little: arenas of their own would only cost memory. */
	mallopt(M_ARENA_MAX, 1);
	CLEANUP(agent_close)
	struct agent a = {
		.config = *c, .spool_dir.fd = -1, .cache_dir.fd = -1, .http_dir.fd = -1
	};
	enum status s = agent_open(&a, e);
	if (s == OK)
		s = agent_start(&a, e);
	if (s == OK)
		s = agent_loop(&a, stop, e);
	if (a.batch && a.sampler)
		agent_stop(&a);
	return s;
}

enum status agent_upload(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	CLEANUP(agent_close)
	struct agent a = {
		.config = *c, .spool_dir.fd = -1, .cache_dir.fd = -1, .http_dir.fd = -1
	};
	a.config.offline = false;
	enum status s = privilege_dir_open(c->spool_dir, &a.spool_dir, e);
	if (s == OK)
		s = open_sender(&a, e);
	if (s != OK)
		return s;
	while (!*stop && !sender_is_done(a.sender))
		usleep(POLL_MS * 1000);
	sender_stop(a.sender, 0);
	const struct send_metrics *m = sender_metrics(a.sender);
	uint64_t lost = metric_get(&m->lost_refused) + metric_get(&m->lost_damaged);
	log_info("uploaded", "samples=%llu lost=%llu left_batches=%llu",
		(unsigned long long)metric_get(&m->sent), (unsigned long long)lost,
		(unsigned long long)metric_get(&m->spool_batches));
	if (lost)
		return err_set(e, E_INVALID,
			"%llu samples were damaged, or the server refused them",
			(unsigned long long)lost);
	return OK;
}
