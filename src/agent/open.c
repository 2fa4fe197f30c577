/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of opening: what needs privileges, while there is one thread: the broker, folders, the eBPF
 * programs and their events, paused; then without privileges all the rest that may fail. Closing
 * ends threads before what they use.
 */
#include "agent/open.h"

#include "agent/events.h"
#include "agent/own_http.h"
#include "agent/tables/tables.h"
#include "base/log.h"
#include "net/net.h"

#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#define DESCRIPTORS_WANTED 65536
/* Share of one CPU for building tables once sampling has begun. */
#define FILES_CPU_PERCENT 5

void agent_close(struct agent *a)
{
	if (a->http)
		net_server_stop(a->http);
	broker_hang_up(); /* the files' thread may wait for it */
	uploader_stop(a->uploader);
	/* The files' worker publishes to the sampler and hands over: it ends first. */
	files_free(a->files);
	contexts_free(a->contexts);
	sampler_close(a->sampler);
	oom_close(a->oom);
	deferred_free(a->deferred);
	offcpu_free(a->offcpu);
	batch_free(a->batch);
	jitnames_free(a->jitnames);
	codes_free(a->codes);
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

/* Starts the search for contexts that processes and their threads publish. */
static enum status open_contexts(struct agent *a, struct err *e)
{
	bool is_wanted = a->codes && (a->config.runtimes & AGENT_RUNTIME_GO);
	return is_wanted ? contexts_new(&a->contexts, e) : OK;
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
	c.connected = events_connected;
	c.ctx = a;
	c.offline = a->config.offline;
	c.spool_dir = a->spool_dir.path;
	c.spool_bytes_max = a->config.spool_bytes_max;
	enum status s = sender_new(&c, &a->sender, e);
	return s == OK ? OK : err_prefix(e, s, "sending (spool %s)", a->config.spool_dir);
}

/* A server that gets the executables themselves (`firn up`) needs no uploader. */
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
	c.find_key = events_find_key;
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
		.keep_interpreters = a->config.keep_interpreters,
	};
}

/* Before any callback. */
static void settle_table_bytes(struct agent *a)
{
	uint64_t bytes = a->config.table_bytes_max;
	if (bytes == 0)
		bytes = mapsizes_table_bytes(os_host_memory_bytes(), os_cgroup_memory_bytes(""));
	bytes <<= a->config.table_doublings;
	a->config.table_bytes_max = (uint32_t)MIN(bytes, (uint64_t)AGENT_TABLE_BYTES_MAX);
}

static_assert(AGENT_RUNTIME_PYTHON == 1u << RUNTIME_CPYTHON, "as records have it");
static_assert(AGENT_RUNTIME_HOTSPOT == 1u << RUNTIME_HOTSPOT, "as records have it");
static_assert(AGENT_RUNTIME_PERL == 1u << RUNTIME_PERL, "as records have it");
static_assert(AGENT_RUNTIME_V8 == 1u << RUNTIME_V8, "as records have it");
static_assert(AGENT_RUNTIME_GO == 1u << RUNTIME_GO, "as records have it");
static_assert(AGENT_RUNTIME_LUAJIT == 1u << RUNTIME_LUAJIT, "as records have it");
static_assert(AGENT_RUNTIME_BEAM == 1u << RUNTIME_BEAM, "as records have it");
static_assert(AGENT_RUNTIME_DOTNET == 1u << RUNTIME_DOTNET, "as records have it");
static_assert(AGENT_RUNTIME_LUA == 1u << RUNTIME_LUA, "as records have it");
static_assert(AGENT_RUNTIME_RUBY == 1u << RUNTIME_RUBY, "as records have it");
static_assert(AGENT_RUNTIME_PHP == 1u << RUNTIME_PHP, "as records have it");

static enum status open_sampler(struct agent *a, struct err *e)
{
	const struct sampler_config c = sampler_config_of(a);
	const struct sampler_events events = { a, events_sample, events_process, events_stack,
		events_resume, a->codes ? events_code : NULL };
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
		.seen = a->uploader || a->config.handover_fd >= 0 ? events_new_file : NULL,
		.seen_ctx = a,
		.no_copies = a->config.handover_fd < 0,
		.runtimes = sampler_walks_runtimes(a->sampler) ? a->config.runtimes : 0,
		.known = a->oom ? events_known_file : NULL,
		.known_ctx = a,
	};
	return files_new(&c, a->sampler, &a->files, e);
}

static enum status open_batch(struct agent *a, struct err *e)
{
	enum status s = a->config.no_jit_names ? OK : jitnames_new(&a->jitnames, e);
	if (s != OK)
		return s;
	const struct batch_config c = {
		.no_thread_id = a->config.no_thread_id,
		.no_thread_name = a->config.no_thread_name,
		.no_cpu = a->config.no_cpu,
		.frequency_hz = a->config.frequency_hz,
		.wall_clock = a->config.wall_clock,
		.files = a->files,
		.kallsyms = a->kallsyms,
		.codes = a->codes,
		.keep_interpreters = a->config.keep_interpreters,
		.jitnames = a->jitnames,
		.processes = a->processes,
		.problems = a->problems,
		.emit = events_message,
		.met = a->uploader ? events_met : NULL,
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
	const struct oom_config oom = { a->config.oom_allocs, a->processes, events_message, a };
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

/* Two descriptors for each CPU are needed; most sessions begin with a limit of 1,024. */
static void raise_descriptors(void)
{
	struct rlimit limit;
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= DESCRIPTORS_WANTED)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, (rlim_t)DESCRIPTORS_WANTED);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
}

/* Opens all that needs privileges, then drops them. No thread is started here: it would keep them.
 */
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

/* Opens less than the agent itself does: the spool, and by the broker files of other users. */
enum status agent_open_upload(struct agent *a, struct err *e)
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
	const struct deferred_config c = { events_find_rule, events_finished, a,
		a->config.frequency_hz * MAX(stats.cpus, 1u),
		deferred_bytes(MIN(os_host_memory_bytes(), os_cgroup_memory_bytes("")),
			a->config.memory_bytes),
		a->config.is_recording ? DEFERRED_RECORDING_WAIT_NS : DEFERRED_WAIT_NS };
	return deferred_new(&c, &a->deferred, e);
}

enum status agent_open(struct agent *a, struct err *e)
{
	const struct offcpu_config offcpu = { a->config.off_cpu_min_ns,
		a->config.off_cpu_probability, events_away, a };
	enum status s = check_config(a, e);
	a->problems = problems_new(); /* without them it runs, too */
	if (s == OK && a->config.runtimes)
		s = codes_new(CODES_BYTES_MAX, &a->codes, e);
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
		s = open_contexts(a, e);
	if (s == OK)
		s = open_batch(a, e);
	if (s == OK)
		s = own_http_start(a, e);
	return s;
}
