/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers run on the server's threads: they read counters, and lists under their own locks. */
#include "agent/own_http.h"

#include "agent/broker/broker.h"
#include "agent/send/send.h"
#include "agent/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "net/net.h"
#include "os/os.h"

#include <inttypes.h>
#include <stdio.h>

#define HTTP_BODY_MAX 4096
#define HTTP_CONNECTIONS_MAX 64

/* Counters that the sampler and its BPF program keep themselves: copied when they are asked for. */
#define SAMPLER_METRICS(X)                                                                    \
	X(taken, COUNTER, "firn_agent_samples_taken_total",                                   \
		"Timer interrupts in a task, and threads sampled when they left a CPU.")      \
	X(off_cpu, COUNTER, "firn_agent_off_cpu_taken_total",                                 \
		"Threads sampled when they left a CPU.")                                      \
	X(idle, COUNTER, "firn_agent_idle_ticks_total", "Timer interrupts in the idle task.") \
	X(user_frames, COUNTER, "firn_agent_user_frames_total", "User frames walked.")        \
	X(kernel_frames, COUNTER, "firn_agent_kernel_frames_total", "Kernel frames walked.")  \
	X(notices_lost, COUNTER, "firn_agent_process_events_lost_total",                      \
		"Execs and exits lost: the ring was full.")                                   \
	X(stacks, COUNTER, "firn_agent_stacks_copied_total",                                  \
		"Stacks copied to finish a walk later.")                                      \
	X(stacks_lost, COUNTER, "firn_agent_stacks_not_copied_total",                         \
		"Stacks not copied: the ring was too full.")                                  \
	X(stacks_refused, COUNTER, "firn_agent_stacks_refused_total",                         \
		"Stacks not copied: too many in a short time.")                               \
	X(run_ns, SECONDS, "firn_agent_bpf_seconds_total",                                    \
		"Time in the eBPF program that takes samples.")                               \
	X(cpus, GAUGE, "firn_agent_cpus", "CPUs that are sampled.")                           \
	X(cpus_renewed, COUNTER, "firn_agent_cpu_events_renewed_total",                       \
		"Events of CPUs that fired no more, and were made anew: the CPU was away, "   \
		"or the host slept.")                                                         \
	X(table_bytes, GAUGE, "firn_agent_unwind_table_bytes",                                \
		"Kernel memory that unwind tables use.")                                      \
	X(table_bytes_max, GAUGE, "firn_agent_unwind_table_bytes_max",                        \
		"What they may use: --bpf-table-memory.")                                     \
	X(without_room, GAUGE, "firn_agent_unwind_tables_without_room",                       \
		"Files whose unwind tables have no room: stacks end in them.")                \
	X(kernel_bytes, GAUGE, "firn_agent_kernel_bytes",                                     \
		"Kernel memory of all maps and programs.")                                    \
	X(evicted, COUNTER, "firn_agent_unwind_tables_evicted_total",                         \
		"Files evicted for room, with their unwind tables.")                          \
	X(lost_ring, COUNTER, "firn_agent_samples_lost_total{reason=\"ring\"}",               \
		"Samples lost in the agent.")                                                 \
	X(lost_busy, COUNTER, "firn_agent_samples_lost_total{reason=\"busy\"}",               \
		"Samples lost in the agent.")                                                 \
	X(lost_excluded, COUNTER, "firn_agent_samples_lost_total{reason=\"excluded\"}",       \
		"Samples lost in the agent.")                                                 \
	X(lost_off_cpu, COUNTER, "firn_agent_samples_lost_total{reason=\"off_cpu\"}",         \
		"Samples lost in the agent.")                                                 \
	X(lost_seen, COUNTER, "firn_agent_samples_lost_total{reason=\"seen\"}",               \
		"Samples lost in the agent.")                                                 \
	X(lost_batch, COUNTER, "firn_agent_samples_lost_total{reason=\"batch\"}",             \
		"Samples lost in the agent.")                                                 \
	X(lost_relabel, COUNTER, "firn_agent_samples_lost_total{reason=\"relabel\"}",         \
		"Samples lost in the agent.")

struct sampler_metrics {
	SAMPLER_METRICS(METRIC_FIELD)
};

static void write_sampler_metrics(struct agent *a, struct buf *out)
{
	static const struct metric_def defs[] = { SAMPLER_METRICS(METRIC_DEF) };
	struct sampler_stats s;
	sampler_read_stats(a->sampler, &s);
	const struct sampler_metrics m = {
		.taken = s.bpf.samples,
		.off_cpu = s.bpf.off_cpu,
		.idle = s.bpf.idle,
		.user_frames = s.bpf.user_frames,
		.kernel_frames = s.bpf.kernel_frames,
		.notices_lost = s.bpf.notices_lost,
		.stacks = s.bpf.stacks,
		.stacks_lost = s.bpf.stacks_lost,
		.stacks_refused = s.bpf.stacks_refused,
		.run_ns = s.bpf.run_ns,
		.cpus = s.cpus,
		.cpus_renewed = s.cpus_renewed,
		.table_bytes = s.table_bytes,
		.table_bytes_max = a->config.table_bytes_max,
		.without_room = s.without_room,
		.kernel_bytes = s.kernel_bytes + oom_kernel_bytes(a->oom),
		.evicted = s.evicted_tables,
		.lost_ring = s.bpf.lost_ring,
		.lost_busy = s.bpf.lost_busy,
		.lost_excluded = s.bpf.lost_excluded,
		.lost_off_cpu = s.bpf.lost_off_cpu,
		.lost_seen = s.lost_seen,
		.lost_batch = metric_get(&batch_metrics(a->batch)->lost),
		.lost_relabel = metric_get(&batch_metrics(a->batch)->dropped),
	};
	metrics_write(out, defs, (const metric_value *)&m, ARRAY_COUNT(defs));
}

static void write_missing_metrics(const struct agent *a, struct buf *out)
{
	buf_cstr(out,
		"# HELP firn_agent_capability_missing 1: neither the agent nor its broker has "
		"this capability; the status page says what is not seen without.\n"
		"# TYPE firn_agent_capability_missing gauge\n");
	for (size_t i = 0; i < PRIVILEGE_WANTS; i++)
		buf_printf(out, "firn_agent_capability_missing{capability=\"%s\"} %u\n",
			privilege_wants[i].name, a->missing >> i & 1);
	buf_printf(out,
		"# HELP firn_agent_kernel_names_missing 1: kernel functions have no names; the "
		"status page says why.\n"
		"# TYPE firn_agent_kernel_names_missing gauge\n"
		"firn_agent_kernel_names_missing %d\n",
		a->kallsyms == NULL);
}

void own_http_metrics(struct agent *a, struct buf *out)
{
	write_sampler_metrics(a, out);
	batch_write_metrics(a->batch, out);
	if (a->codes)
		codes_write_metrics(a->codes, out);
	processes_write_metrics(a->processes, out);
	if (a->contexts)
		contexts_write_metrics(a->contexts, out);
	if (a->jitnames)
		jitnames_write_metrics(a->jitnames, out);
	metadata_write_metrics(a->metadata, out);
	if (a->containers)
		containers_write_metrics(a->containers, out);
	files_write_metrics(a->files, out);
	deferred_write_metrics(a->deferred, out);
	offcpu_write_metrics(a->offcpu, out);
	if (a->oom)
		oom_write_metrics(a->oom, out);
	handover_write_metrics(a->handover, out);
	sender_write_metrics(a->sender, out);
	uploader_write_metrics(a->uploader, out);
	broker_write_metrics(out);
	write_missing_metrics(a, out);
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
	own_http_metrics(ctx, &out->body);
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

/* A value of a unit for people: "6.7min", "118MiB". */
static void status_figure(
	struct status_table *t, const char *name, uint64_t value, const char *unit, const char *why)
{
	char *text = t->values[t->count];
	static_assert(sizeof(t->values[0]) >= UNITS_TEXT_MAX, "a text of units_format()");
	status_number(t, name, 0, why);
	units_format((int64_t)value, str_of(unit), text);
}

static void write_seen(struct agent *a, struct buf *out, const struct sampler_stats *s)
{
	struct status_table t = { .count = 0 };
	const struct files_metrics *f = files_metrics(a->files);
	const struct send_metrics *m = sender_metrics(a->sender);
	int64_t since = atomic_load(&a->sampling_since_ns);
	status_figure(&t, "has sampled for", since ? (uint64_t)(clock_monotonic_ns() - since) : 0,
		"nanoseconds", since ? "" : "the executables of what runs are read first");
	status_number(&t, "CPUs sampled", s->cpus, "");
	status_number(&t, "samples a second and CPU", metric_get(&a->governor.metrics.frequency_hz),
		metric_get(&a->governor.metrics.frequency_hz) < a->config.frequency_hz
			? "fewer than asked for: --agent-cpu-limit or --agent-memory-limit"
			: "");
	if (a->config.off_cpu_probability > 0)
		status_number(&t, "halvings of --off-cpu-threshold",
			metric_get(&a->governor.metrics.off_cpu_halvings),
			metric_get(&a->governor.metrics.off_cpu_halvings)
				? "less than asked for: --agent-cpu-limit or --agent-memory-limit"
				: "");
	if (metric_get(&a->governor.metrics.paused))
		t.rows[t.count++] = (struct status_row){ "this interval", "not sampled",
			"--profiling-probabilistic-threshold" };
	status_number(&t, "samples taken", s->bpf.samples, "");
	status_number(&t, "samples the server took", metric_get(&m->sent),
		a->config.offline ? "" : a->config.remote_store_address);
	status_number(&t, "samples that wait", metric_get(&m->waiting) + metric_get(&m->spooled),
		a->config.offline           ? "--offline-mode-storage-path: nothing is sent"
		: metric_get(&m->reachable) ? ""
					    : "the server does not answer");
	status_number(
		&t, "processes known", metric_get(&processes_metrics(a->processes)->known), "");
	status_number(&t, "executables known", metric_get(&f->known), "");
	status_number(&t, "of these with unwind tables", metric_get(&f->tables), "");
	status_figure(
		&t, "unwind tables in the kernel", s->table_bytes, "bytes", "--bpf-table-memory");
	status_figure(&t, "kernel memory, with these", s->kernel_bytes + oom_kernel_bytes(a->oom),
		"bytes",
		a->oom ? "maps and programs; --enable-oom-prof among it" : "maps and programs");
	status_figure(&t, "memory of the agent", os_self_rss_bytes(), "bytes", "");
	status_figure(&t, "its CPU time", (uint64_t)os_self_cpu_ns(), "nanoseconds", "");
	status_figure(&t, "and of its eBPF program", s->bpf.run_ns, "nanoseconds", "");
	status_number(&t, "its broker's process id", (uint64_t)broker_pid(),
		broker_pid() ? "" : "none: --keep-privileges, or started with none");
	status_section(out, "What it sees", "");
	status_rows(out, t.rows, t.count);
}

static void write_runtimes(struct agent *a, struct buf *out)
{
	const struct runtimes_met *m = batch_runtimes_met(a->batch);
	struct status_row rows[RUNTIMES_MET_MAX] = { { "None.", "", "" } };
	struct {
		char name[RUNTIMES_MET_NAME_BYTES], samples[40], share[32];
	} texts[RUNTIMES_MET_MAX];
	size_t n = 0;
	for (uint32_t i = 0; i < RUNTIMES_MET_MAX; i++) {
		uint64_t samples = metric_get(&m->v[i].samples);
		uint64_t whole = metric_get(&m->v[i].whole);
		if (!samples)
			continue;
		runtimes_met_name((uint32_t)metric_get(&m->v[i].what), texts[n].name);
		snprintf(texts[n].samples, sizeof(texts[n].samples), "%" PRIu64, samples);
		snprintf(texts[n].share, sizeof(texts[n].share), "%.2f %% whole",
			100.0 * (double)MIN(whole, samples) / (double)samples);
		rows[n] = (struct status_row){ texts[n].name, texts[n].samples, texts[n].share };
		n++;
	}
	status_section(out, "Language runtimes",
		"Samples with their frames. Whole: to the outermost one, and none is missing.");
	status_rows(out, rows, MAX(n, (size_t)1));
}

static void write_lost(struct agent *a, struct buf *out, const struct sampler_stats *s)
{
	struct status_table t = { .count = 0 };
	const struct send_metrics *m = sender_metrics(a->sender);
	const struct batch_metrics *b = batch_metrics(a->batch);
	status_number(&t, "no room on their way from the kernel", s->bpf.lost_ring,
		"the agent did not read them in time");
	status_number(&t, "taken while another was taken on the same CPU", s->bpf.lost_busy, "");
	status_number(&t, "of a stack whose frames the agent no longer had", s->lost_seen, "");
	if (a->config.only_pid)
		status_number(&t, "of other processes than the one that is recorded",
			s->bpf.lost_excluded, "");
	if (a->config.off_cpu_probability > 0) {
		const struct offcpu_metrics *off = offcpu_metrics(a->offcpu);
		status_number(&t, "too many threads were off their CPUs",
			s->bpf.lost_off_cpu + metric_get(&off->lost), "");
		status_number(&t, "off their CPUs for too short", metric_get(&off->too_short),
			"--off-cpu-min-duration");
	}
	status_number(&t, "no room in a message", metric_get(&b->lost),
		"a limit of memory, or of the size of messages");
	status_number(&t, "left out by a rule or by opting out", metric_get(&b->dropped),
		"--config-path, --profiling-opt-…");
	status_number(&t, "dropped from memory", metric_get(&m->lost_queue),
		"the server did not answer for too long");
	status_number(&t, "dropped from disk", metric_get(&m->lost_spool),
		"more waited than --spool-size allows");
	status_number(&t, "damaged on disk", metric_get(&m->lost_damaged), "");
	status_number(&t, "refused by the server", metric_get(&m->lost_refused),
		"the server's log says why");
	status_section(out, "Samples lost", "Every sample taken is delivered, or counted here.");
	status_rows(out, t.rows, t.count);
}

/* Of the whole host, from the start on. */
static void write_missing(const struct agent *a, struct buf *out, const struct sampler_stats *s)
{
	struct status_row rows[PRIVILEGE_WANTS + 3];
	char why[PRIVILEGE_WANTS][64], stacks[128], room[128];
	size_t count = 0;
	uint64_t cut = metric_get(&batch_metrics(a->batch)->stack_end[STACK_END_NO_ROOM]);
	if (cut) {
		snprintf(stacks, sizeof(stacks), "the callers in %llu stacks, and now in %u files",
			(unsigned long long)cut, s->without_room);
		snprintf(room, sizeof(room),
			"their unwind tables had no room in %u MiB: give more by "
			"--bpf-table-memory",
			a->config.table_bytes_max >> 20);
		rows[count++] = (struct status_row){ stacks, room, "" };
	}
	for (size_t i = 0; i < PRIVILEGE_WANTS; i++) {
		if (!(a->missing >> i & 1))
			continue;
		snprintf(why[i], sizeof(why[i]), "%s is missing", privilege_wants[i].name);
		rows[count++] = (struct status_row){ privilege_wants[i].without, why[i], "" };
	}
	if (!a->kallsyms)
		rows[count++] =
			(struct status_row){ "names of kernel functions", a->kallsyms_error, "" };
	if (!a->ksymbols)
		rows[count++] = (struct status_row){ "names of BPF programs loaded later",
			a->ksymbols_error, "" };
	status_section(out, "What it does not see, and why", count ? "" : "None.");
	if (count)
		status_rows(out, rows, count);
}

/* To a server that has not the executables of this host. */
static void write_names(struct agent *a, struct buf *page, uint32_t rows_max)
{
	struct status_table t = { .count = 0 };
	char why[ERR_TEXT_MAX];
	if (!a->uploader)
		return;
	const struct uploader_metrics *m = uploader_metrics(a->uploader);
	uint64_t waiting = uploader_waiting(a->uploader, why, sizeof(why));
	status_number(&t, "executables whose names were sent", metric_get(&m->sent), "");
	status_figure(&t, "bytes of these", metric_get(&m->bytes), "bytes", "");
	status_number(&t, "that the server has, or gets elsewhere", metric_get(&m->there), "");
	status_number(&t, "without anything that gives names", metric_get(&m->nothing), "");
	status_number(&t, "that wait", waiting, why);
	status_section(page, "Names of functions sent to the server", "");
	status_rows(page, t.rows, t.count);
	status_section(page, "Executables whose names could not be sent", "The latest.");
	status_problems(page, a->problems, PROBLEM_NAMES, "file", "why", rows_max);
}

static void write_page(struct agent *a, struct buf *page, uint32_t rows_max)
{
	struct sampler_stats s;
	sampler_read_stats(a->sampler, &s);
	status_begin(page, a->config.node);
	write_seen(a, page, &s);
	write_missing(a, page, &s);
	write_runtimes(a, page);
	write_lost(a, page, &s);
	status_section(page, "Stacks that do not reach their root", "The latest, by process.");
	status_problems(page, a->problems, PROBLEM_STACK, "process", "why", rows_max);
	status_section(page, "Executables that could not be read",
		a->missing ? "The latest. Where permission is denied, a capability named above "
			     "would give it."
			   : "The latest.");
	status_problems(page, a->problems, PROBLEM_FILE, "file", "why", rows_max);
	status_section(page, "Executables without an unwind table",
		"Their frames are walked by frame pointers.");
	status_problems(page, a->problems, PROBLEM_TABLE, "file", "why", rows_max);
	status_section(page, "Executables with a language runtime that cannot be walked",
		"Their frames are those of the interpreter.");
	status_problems(page, a->problems, PROBLEM_RUNTIME, "file", "why", rows_max);
	write_names(a, page, rows_max);
	if (a->containers) {
		CLEANUP(buf_deinit) struct buf lines;
		buf_init(&lines, 64 << 10);
		containers_write_problems(a->containers, &lines);
		status_lines(page, "Container engines", buf_view(&lines));
	}
	status_foot(page);
}

static void serve_status(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)r;
	out->content_type = "text/html; charset=utf-8";
	snprintf(out->headers, sizeof(out->headers), "%s", STATUS_HEADERS);
	write_page(ctx, &out->body, PROBLEMS_MAX);
	status_end(&out->body);
}

void own_http_page(struct agent *a, size_t bytes_max, struct buf *out)
{
	for (uint32_t rows = PROBLEMS_MAX; rows; rows /= 4) {
		CLEANUP(buf_deinit) struct buf page;
		buf_init(&page, bytes_max);
		write_page(a, &page, rows);
		if (buf_status(&page) != OK)
			continue;
		buf_str(out, buf_view(&page));
		return;
	}
}

enum status own_http_start(struct agent *a, struct err *e)
{
	if (!a->config.http_address || !a->config.http_address[0])
		return OK;
	struct net_server_config c;
	net_server_config_default(&c);
	c.address = a->http_fd >= 0 ? a->http_text : a->config.http_address;
	c.listen_fd = a->http_fd;
	a->http_fd = -1; /* the server's, also if it does not start */
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
