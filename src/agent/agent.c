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

#include "agent/broker/broker.h"
#include "agent/own_http.h"
#include "agent/parts.h"
#include "agent/sample/sample.h"
#include "agent/tables/tables.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/net.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#define POLL_MS 250
#define LARGE_BLOCK_BYTES (256 << 10)
/* The first batch is sent early, so that a page that waits fills at once. */
#define FIRST_INTERVAL_NS NS_PER_SEC
#define STOP_TIMEOUT_NS (10 * NS_PER_SEC)
/* How long samples wait in the end for tables that are being built: of an agent, of a recording. */
#define LAST_TABLES_NS (500 * NS_PER_MS)
#define RECORDING_TABLES_NS (8 * NS_PER_SEC)
#define LAST_TABLES_NAP_US 5000
/* How long the first pass over all files waits for the server to take them. */
#define HANDOVER_PATIENCE_NS (2 * NS_PER_SEC)
/* A server that is started again and again is offered all files no more often. */
#define OFFER_INTERVAL_NS (30 * NS_PER_SEC)
/* How long sampling waits for the first pass. */
#define PRELOAD_PATIENCE_NS (20 * NS_PER_SEC)
/* How long it waits for what engines say of the containers there are. */
#define CONTAINERS_PATIENCE_NS (2 * NS_PER_SEC)
/* The kernel may fail for a while (no memory, a CPU on its way out). */
#define POLL_FAILURES_NS (60 * NS_PER_SEC)
/* How often the server gets the status page. */
#define PAGE_INTERVAL_NS (4 * NS_PER_SEC) /* less than an interval, which is not exact */
#define DESCRIPTORS_WANTED 65536
/* Share of one CPU for building tables once sampling has begun. */
#define FILES_CPU_PERCENT 5

void agent_config_default(struct agent_config *c)
{
	*c = (struct agent_config){
		.node = "",
		.config_path = "",
		.remote_store_address = "127.0.0.1:7070",
		.http_address = "",
		.cache_dir = "",
		.spool_dir = "",
		.debuginfo_parallel_max = 25,
		.debuginfo_queue_max = 4096,
		.remote_store_call_ns = 300 * NS_PER_SEC,
		.spool_bytes_max = 256u << 20,
		.frequency_hz = 19,
		.flush_interval_ns = 5 * NS_PER_SEC,
		.chance_ns = 60 * NS_PER_SEC,
		.chance_percent = 100,
		.label_ttl_ns = 600 * NS_PER_SEC,
		.handover_fd = -1,
		.ready_fd = -1,
	};
}

enum status agent_probe(struct err *e)
{
	return probe_sampling(e);
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

static bool is_loaded(struct agent *a, const struct file_key *key)
{
	return files_find(a->files, key) != 0 && sampler_knows(a->sampler, key);
}

/* The files that the rest of the walk may lead through, too. */
static void on_stack(void *ctx, const struct event_stack *s)
{
	struct agent *a = ctx;
	for (uint32_t i = 0; i < s->mapping_count && i < STACK_MAPPINGS_MAX; i++) {
		const struct stack_mapping *m = &s->mappings[i];
		const struct file_notice n = { m->key, m->start, m->end, m->offset };
		if (m->key.inode && !is_loaded(a, &m->key))
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
	enum tables_found found = TABLES_NOT_FOUND;
	if (state == FILES_KNOWN)
		found = sampler_find_rule(a->sampler, key, offset, out_rule);
	if (found != TABLES_NOT_FOUND)
		return found == TABLES_FOUND ? DEFERRED_KNOWN : DEFERRED_NO_ROOM;
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
	if (a->uploader)
		uploader_seen(a->uploader, build_id, path, fd);
}

/* By the batch. */
static void on_met(void *ctx, uint32_t file_id, const struct file_info *file, int pid)
{
	struct agent *a = ctx;
	uploader_met(a->uploader, file_id, file->build_id, file->path, pid);
}

/* By the sender's thread. */
static void on_connected(void *ctx)
{
	struct agent *a = ctx;
	uploader_reconnected(a->uploader);
}

static bool find_key(void *ctx, uint32_t file_id, struct file_key *out)
{
	const struct agent *a = ctx;
	return files_key(a->files, file_id, out);
}

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

/* ---- life ---- */

static void agent_close(struct agent *a)
{
	if (a->http)
		net_server_stop(a->http);
	broker_hang_up(); /* the files' thread may wait for it */
	uploader_stop(a->uploader);
	/* The files' worker publishes to the sampler and hands over: it ends first. */
	files_free(a->files);
	sampler_close(a->sampler);
	oom_close(a->oom);
	deferred_free(a->deferred);
	offcpu_free(a->offcpu);
	batch_free(a->batch);
	sender_free(a->sender);
	uploader_free(a->uploader);
	handover_free(a->handover);
	processes_free(a->processes);
	containers_free(a->containers);
	metadata_free(a->metadata);
	kallsyms_free(a->kallsyms);
	ksymbols_close(a->ksymbols);
	problems_free(a->problems);
	fd_cleanup(&a->spool_dir.fd);
	fd_cleanup(&a->cache_dir.fd);
	fd_cleanup(&a->http_dir.fd);
	fd_cleanup(&a->http_fd);
	broker_stop();
}

/* From the files' worker. */
static void on_known_file(void *ctx, const struct file_key *key, const struct objfile *obj,
	const char *build_id, const char *path)
{
	struct agent *a = ctx;
	oom_know(a->oom, key, obj, build_id, path);
}

/* Names of kernel functions are worth having, but not worth failing for. */
static void open_kallsyms(struct agent *a)
{
	struct err e;
	char text[2 * ERR_TEXT_MAX];
	enum status s = kallsyms_new(&a->kallsyms, &e);
	if (s == OK) {
		kallsyms_watch(a->kallsyms, a->ksymbols);
		return;
	}
	snprintf(a->kallsyms_error, sizeof(a->kallsyms_error), "%s", err_text(&e, s));
	log_warn("no names of kernel functions", "err=%s",
		log_quote(str_of(a->kallsyms_error), text, sizeof(text)));
}

static struct remote_config remote_of(const struct agent *a)
{
	return (struct remote_config){
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
}

static enum status open_sender(struct agent *a, struct err *e)
{
	struct sender_config c;
	sender_config_default(&c);
	c.remote = remote_of(a);
	c.connected = on_connected;
	c.ctx = a;
	c.offline = a->config.offline;
	c.spool_dir = a->spool_dir.path;
	c.spool_bytes_max = a->config.spool_bytes_max;
	enum status s = sender_new(&c, &a->sender, e);
	return s == OK ? OK : err_prefix(e, s, "sending (spool %s)", a->config.spool_dir);
}

/* A server that is handed the executables themselves needs none. */
static enum status open_uploader(struct agent *a, struct err *e)
{
	struct uploader_config c;
	if (!a->config.debuginfo_upload || a->config.offline || a->config.handover_fd >= 0)
		return OK;
	uploader_config_default(&c);
	c.remote = remote_of(a);
	c.source.strip = !a->config.debuginfo_no_strip;
	c.source.debug_folders = a->config.debuginfo_folders;
	c.parallel_max = a->config.debuginfo_parallel_max;
	c.queue_max = a->config.debuginfo_queue_max;
	c.call_ns = a->config.remote_store_call_ns;
	c.find_key = find_key;
	c.ctx = a;
	c.problems = a->problems;
	return uploader_new(&c, &a->uploader, e);
}

static struct sampler_config sampler_config_of(const struct agent *a)
{
	return (struct sampler_config){
		.frequency_hz = a->config.frequency_hz,
		.table_bytes_max = a->config.table_bytes_max,
		.only_pid = a->config.only_pid,
		.off_cpu_probability = a->config.off_cpu_probability,
	};
}

/* Before anybody is told of it. */
static void settle_table_bytes(struct agent *a)
{
	uint64_t bytes = a->config.table_bytes_max;
	if (bytes == 0)
		bytes = mapsizes_table_bytes(os_host_memory_bytes(), os_cgroup_memory_bytes(""));
	bytes <<= a->config.table_doublings;
	a->config.table_bytes_max = (uint32_t)MIN(bytes, (uint64_t)AGENT_TABLE_BYTES_MAX);
}

static enum status open_sampler(struct agent *a, struct err *e)
{
	const struct sampler_config c = sampler_config_of(a);
	const struct sampler_events events = { a, on_sample, on_process, on_stack, on_resume };
	return sampler_open(&c, &events, &a->sampler, e);
}

static enum status open_files(struct agent *a, struct err *e)
{
	const struct files_config c = {
		.cache_dir = a->cache_dir.path,
		.cpu_percent = a->config.is_recording ? 0 : FILES_CPU_PERCENT,
		.build_bytes_max = MIN(a->config.memory_bytes / 2, UNWIND_BUILD_BYTES_MAX),
		.table_bytes_max = (uint64_t)slabs_of_bytes(a->config.table_bytes_max) * SLAB_BYTES,
		.problems = a->problems,
		.only_pid = a->config.only_pid,
		.seen = a->uploader || a->config.handover_fd >= 0 ? on_new_file : NULL,
		.seen_ctx = a,
		.no_copies = a->config.handover_fd < 0,
		.known = a->oom ? on_known_file : NULL,
		.known_ctx = a,
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
		.wall_clock = a->config.wall_clock,
		.files = a->files,
		.kallsyms = a->kallsyms,
		.processes = a->processes,
		.problems = a->problems,
		.emit = on_message,
		.met = a->uploader ? on_met : NULL,
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
	if (s == OK)
		s = processes_new(&c, &a->processes, e);
	const struct oom_config oom = { a->config.oom_allocs, a->processes, on_message, a };
	if (s == OK && a->oom)
		oom_configure(a->oom, &oom);
	return s;
}

static struct optout_config optout_of(const struct agent *a)
{
	return (struct optout_config){ a->config.opt_out_env_vars, a->config.opt_in_env_vars,
		a->config.opt_out_labels, a->config.opt_in_labels };
}

static enum status open_metadata(struct agent *a, struct err *e)
{
	const struct metadata_config c = {
		.node = a->config.node,
		.external_labels = a->config.external_labels,
		.env_vars = a->config.env_vars,
		.config_path = a->config.config_path,
		.optout = optout_of(a),
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

static bool needs_nothing(void *ctx)
{
	(void)ctx;
	return true;
}

static struct broker_config broker_for(const struct agent *a)
{
	const struct optout_config optout = optout_of(a);
	return (struct broker_config){
		.own_files = { a->config.config_path, a->config.remote_store_cert,
			a->config.remote_store_ca_file, a->config.remote_store_client_cert,
			a->config.remote_store_client_key, a->config.remote_store_token_file,
			a->config.kubernetes_token_file, a->config.kubernetes_ca_file },
		.environment = a->config.env_vars || optout_wants_environment(&optout),
		.slabs_max = slabs_of_bytes(a->config.table_bytes_max),
	};
}

/* A port below 1024 wants a capability; a socket in the file system is made later, in its folder.
 */
static enum status listen_early(struct agent *a, struct err *e)
{
	const char *address = a->config.http_address;
	if (!address || !address[0] || strncmp(address, "unix:", 5) == 0)
		return OK;
	return net_listen(address, &a->http_fd, a->http_text, sizeof(a->http_text), e);
}

/* What needs privileges, and then nothing any more. No thread is started here: it would keep them.
 */
/* Two for each CPU, and 1,024 are what most sessions begin with. */
static void raise_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS_WANTED)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)DESCRIPTORS_WANTED);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

static enum status open_privileged(struct agent *a, struct err *e)
{
	raise_descriptors(); /* before the broker is forked */
	settle_table_bytes(a);
	if (a->config.oom)
		oom_protect(); /* likewise */
	const struct broker_config broker = broker_for(a);
	struct privilege_dir *dirs[] = { &a->spool_dir, &a->cache_dir, &a->http_dir, NULL };
	enum status s = OK;
	a->missing = privilege_missing(a->config.keep_privileges);
	privilege_log_missing(a->missing);
	if (!a->config.keep_privileges)
		s = privilege_split(&broker, e);
	if (s == OK)
		s = privilege_dir_open(a->config.spool_dir, &a->spool_dir, e);
	/* Without a cache it runs too, and says so later. */
	if (s == OK && privilege_dir_open(a->config.cache_dir, &a->cache_dir, NULL) != OK)
		snprintf(a->cache_dir.path, sizeof(a->cache_dir.path), "%s", a->config.cache_dir);
	privilege_socket_dir(a->config.http_address, &a->http_dir);
	if (s == OK)
		s = listen_early(a, e);
	if (s == OK)
		s = open_sampler(a, e);
	if (s == OK && a->config.oom)
		s = oom_open(a->sampler, a->config.oom_allocs, &a->oom, e);
	if (s != OK)
		return s;
	struct err symbols = { 0 };
	if (ksymbols_open(&a->ksymbols, &symbols) != OK) {
		snprintf(a->ksymbols_error, sizeof(a->ksymbols_error), "%s", symbols.text);
		log_warn("BPF programs loaded later have wrong names", "reason=%s",
			LOG_QUOTED(symbols.text));
	}
	sampler_pause(a->sampler, true);
	s = sampler_start(a->sampler, e);
	if (s == OK && !a->config.keep_privileges)
		s = privilege_drop(sampler_still_works, a->sampler, dirs, e);
	return s;
}

/* As the agent itself, with less to open: the spool, and files of other users by the broker. */
static enum status open_upload(struct agent *a, struct err *e)
{
	const struct broker_config broker = broker_for(a);
	struct privilege_dir *dirs[] = { &a->spool_dir, NULL };
	enum status s = OK;
	bool drops = !a->config.keep_privileges && os_capabilities();
	if (drops)
		s = privilege_start_broker(&broker, e);
	if (s == OK)
		s = privilege_dir_open(a->config.spool_dir, &a->spool_dir, e);
	if (s == OK && drops)
		s = privilege_drop(needs_nothing, NULL, dirs, e);
	return s == OK ? open_sender(a, e) : s;
}

static enum status open_deferred(struct agent *a, struct err *e)
{
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	const struct deferred_config c = { find_deferred, on_finished, a,
		a->config.frequency_hz * MAX(stats.cpus, 1u),
		deferred_bytes(MIN(os_host_memory_bytes(), os_cgroup_memory_bytes("")),
			a->config.memory_bytes) };
	return deferred_new(&c, &a->deferred, e);
}

static enum status agent_open(struct agent *a, struct err *e)
{
	const struct offcpu_config offcpu = { a->config.off_cpu_min_ns,
		a->config.off_cpu_probability, on_away, a };
	enum status s = check_config(a, e);
	a->problems = problems_new(); /* without them it runs, too */
	if (s == OK)
		s = open_privileged(a, e);
	if (s == OK)
		s = open_metadata(a, e);
	if (s == OK)
		s = open_processes(a, e);
	if (s == OK)
		s = open_deferred(a, e);
	if (s == OK)
		s = offcpu_new(&offcpu, &a->offcpu, e);
	if (s == OK)
		s = handover_new(a->config.handover_fd, &a->handover, e);
	if (s == OK)
		s = open_uploader(a, e);
	if (s == OK)
		s = open_sender(a, e);
	if (s == OK) {
		open_kallsyms(a); /* after the sampler, so that its programs have names too */
		s = open_files(a, e);
	}
	if (s == OK)
		s = open_batch(a, e);
	if (s == OK)
		s = own_http_start(a, e);
	return s;
}

/* What is in the ring was sampled at the rate before. */
static void change_frequency(struct agent *a, const struct governor_decision *d)
{
	struct err e = { 0 };
	enum status s = sampler_set_frequency(a->sampler, d->frequency_hz, &e);
	if (s != OK) {
		log_warn("the rate of sampling stays", "err=%s", LOG_QUOTED(err_text(&e, s)));
		return;
	}
	s = sampler_poll(a->sampler, 0, &e);
	if (s != OK)
		log_warn("sampling fails", "err=%s", LOG_QUOTED(err_text(&e, s)));
	(void)batch_finish(a->batch);
	batch_set_frequency(a->batch, d->frequency_hz);
	log_warn(d->frequency_hz < a->frequency_hz ? "sampling less often" : "sampling more often",
		"frequency_hz=%u wanted_hz=%u reason=%s", d->frequency_hz, a->config.frequency_hz,
		LOG_QUOTED(d->why));
	a->frequency_hz = d->frequency_hz;
}

/* What left before is told apart by its time. */
static void change_off_cpu(struct agent *a, const struct governor_decision *d)
{
	double share = a->config.off_cpu_probability / (1 << d->off_cpu_halvings);
	sampler_set_off_cpu(a->sampler, share);
	offcpu_set_probability(a->offcpu, share, clock_monotonic_ns());
	log_warn(d->off_cpu_halvings > a->off_cpu_halvings
			 ? "sampling less of the time off the CPU"
			 : "sampling more of the time off the CPU",
		"probability=%g wanted=%g reason=%s", share, a->config.off_cpu_probability,
		LOG_QUOTED(d->why));
	a->off_cpu_halvings = d->off_cpu_halvings;
}

/* They have a budget of their own, and sampling less would not make them cheaper. */
static int64_t tables_cpu_ns(const struct agent *a)
{
	return (int64_t)metric_get(&files_metrics(a->files)->work_ns);
}

static void govern(struct agent *a)
{
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	const struct governor_usage usage = {
		.now_ns = clock_monotonic_ns(),
		.cpu_ns = os_self_cpu_ns() - tables_cpu_ns(a) + broker_cpu_ns() +
			  (int64_t)stats.bpf.run_ns,
		.resident_bytes = os_self_rss_bytes(),
		.samples = stats.bpf.samples,
		.off_cpu_samples = stats.bpf.off_cpu,
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
	if (d.off_cpu_halvings != a->off_cpu_halvings)
		change_off_cpu(a, &d);
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
		log_warn("sampling begins before every executable is read", "reason=%s",
			LOG_QUOTED(err_text(e, s)));
	if (a->containers)
		containers_settle(a->containers, CONTAINERS_PATIENCE_NS);
	malloc_trim(0);
	sampler_pause(a->sampler, false);
	start_governor(a);
	atomic_store(&a->is_sampling, true);
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	char node[2 * HOST_NAME_MAX], server[2 * ERR_TEXT_MAX];
	log_info("sampling",
		"cpus=%u frequency_hz=%u files=%u table_bytes=%llu preload_ms=%lld node=%s "
		"server=%s version=" FIRN_VERSION,
		stats.cpus, a->config.frequency_hz, stats.files,
		(unsigned long long)stats.table_bytes,
		(long long)((clock_monotonic_ns() - begin) / NS_PER_MS),
		log_quote(str_of(a->config.node), node, sizeof(node)),
		log_quote(str_of(a->config.offline ? "none" : a->config.remote_store_address),
			server, sizeof(server)));
	a->sampling_since_ns = clock_monotonic_ns();
	/* Nobody may be listening any more, which is their affair. */
	if (a->config.ready_fd >= 0 && write(a->config.ready_fd, "\n", 1) < 0)
		log_debug("nobody waits for the agent", "%s", "");
	return OK;
}

static void run_deferred(struct agent *a, bool all)
{
	const metric_value *waiting = &deferred_metrics(a->deferred)->waiting;
	bool were_many = metric_get(waiting) > DEFERRED_LEAST;
	deferred_run(a->deferred, clock_monotonic_ns(), all);
	sampler_rest(a->sampler);
	if (were_many && metric_get(waiting) <= DEFERRED_LEAST)
		malloc_trim(0);
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

/* Those who stay off their CPUs long are told of in pieces. */
static void run_off_cpu(struct agent *a)
{
	struct sampler_stats s;
	if (a->config.off_cpu_probability <= 0)
		return;
	sampler_read_stats(a->sampler, &s);
	offcpu_tick(a->offcpu, clock_monotonic_ns(), s.bpf.resumed_lost);
}

/* A program that was begun unseen would have the labels of the one before it. */
static void look_for_lost_execs(struct agent *a, int64_t now_ns)
{
	struct sampler_stats s;
	if (now_ns < a->execs_at_ns)
		return;
	a->execs_at_ns = now_ns + POLL_MS * NS_PER_MS;
	sampler_read_stats(a->sampler, &s);
	if (s.bpf.notices_lost != a->execs_lost)
		processes_doubt(a->processes);
	a->execs_lost = s.bpf.notices_lost;
}

/* What a server had taken and not read when it died is gone, so the next one is offered all. */
static void offer_files_again(struct agent *a, int64_t now_ns)
{
	a->is_offer_due |= handover_server_is_new(a->handover);
	if (!a->is_offer_due || now_ns < a->offer_at_ns)
		return;
	a->patience_ns = HANDOVER_PATIENCE_NS;
	a->offer_at_ns = now_ns + OFFER_INTERVAL_NS;
	a->is_offer_due = !files_offer(a->files);
	log_info("a server was started again, and is offered all executables", "%s", "");
}

static void end_interval(struct agent *a)
{
	run_off_cpu(a);
	sampler_next_epoch(a->sampler);
	bool missed = batch_finish(a->batch);
	processes_tick(a->processes);
	reload_rules(a);
	tell_of_containers(a);
	tell_of_room(a);
	watch_symbols(a);
	if (a->kallsyms)
		kallsyms_refresh(a->kallsyms, clock_monotonic_ns(), missed);
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
		log_warn("sampling fails", "err=%s", LOG_QUOTED(err_text(e, s)));
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
		processes_settle(a->processes);
		batch_look_at_clocks(a->batch);
		if (a->oom)
			oom_tick(a->oom, clock_monotonic_ns());
		handover_retry(a->handover);
		uploader_tick(a->uploader);
		if (a->kallsyms)
			kallsyms_take(a->kallsyms);
		if (s == OK && broker_is_gone())
			s = err_set(
				e, E_UNAVAILABLE, "the broker, which opens executables, has ended");
		now = clock_monotonic_ns();
		look_for_lost_execs(a, now);
		offer_files_again(a, now);
		if (now < end)
			continue;
		end_interval(a);
		/* After a long pause (suspend) not every missed interval is made up for. */
		end = MAX(end + a->config.flush_interval_ns, now);
	}
	return s;
}

/* The last samples of a program that was never met before are as whole as the first. */
static void finish_deferred(struct agent *a)
{
	const metric_value *waiting = &deferred_metrics(a->deferred)->waiting;
	int64_t patience = a->config.is_recording ? RECORDING_TABLES_NS : LAST_TABLES_NS;
	int64_t end = clock_monotonic_ns() + patience;
	while (metric_get(waiting) && clock_monotonic_ns() < end) {
		run_deferred(a, false);
		usleep(LAST_TABLES_NAP_US);
	}
	run_deferred(a, true);
}

static void agent_stop(struct agent *a)
{
	sampler_stop(a->sampler);
	struct err e;
	if (sampler_poll(a->sampler, 0, &e) != OK)
		log_warn("the last samples could not be read", "err=%s", LOG_QUOTED(e.text));
	finish_deferred(a);
	offcpu_finish(a->offcpu, clock_monotonic_ns());
	if (a->oom)
		oom_finish(a->oom);
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
	/* What a large table is built in goes back to the system at once. */
	mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK_BYTES);
	CLEANUP(agent_close)
	struct agent a = { .config = *c,
		.spool_dir.fd = -1,
		.cache_dir.fd = -1,
		.http_dir.fd = -1,
		.http_fd = -1 };
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
	struct agent a = { .config = *c,
		.spool_dir.fd = -1,
		.cache_dir.fd = -1,
		.http_dir.fd = -1,
		.http_fd = -1 };
	a.config.offline = false;
	enum status s = open_upload(&a, e);
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
