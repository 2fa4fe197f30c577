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

#include "agent/interval.h"
#include "agent/open.h"
#include "agent/pace.h"
#include "agent/parts.h"
#include "base/clock.h"
#include "base/log.h"
#include "os/os.h"

#include <malloc.h>
#include <unistd.h>

#define LARGE_BLOCK_BYTES (256 << 10)
/* The first batch is sent early, so that a page that waits fills at once. */
#define FIRST_INTERVAL_NS NS_PER_SEC
#define STOP_TIMEOUT_NS (10 * NS_PER_SEC)
/* How long samples wait in the end for tables that are being built; those of a recording wait for
 * all of their time. */
#define LAST_TABLES_NS (500 * NS_PER_MS)
#define LAST_TABLES_TELL_NS (3 * NS_PER_SEC) /* a person at a terminal is told then */
#define LAST_TABLES_NAP_US 5000
/* How long sampling waits for the first pass. */
#define PRELOAD_PATIENCE_NS (20 * NS_PER_SEC)
/* How long it waits for the engines to list the running containers. */
#define CONTAINERS_PATIENCE_NS (2 * NS_PER_SEC)
/* The kernel may fail for a while (no memory, a CPU on its way out). */
#define POLL_FAILURES_NS (60 * NS_PER_SEC)

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
		.runtimes = AGENT_RUNTIMES_ALL,
		.handover_fd = -1,
		.ready_fd = -1,
	};
}

enum status agent_probe(struct err *e)
{
	return probe_sampling(e);
}

enum status agent_probe_pids(struct err *e)
{
	return probe_pid_namespace(e);
}

static enum status agent_start(struct agent *a, struct err *e)
{
	int64_t begin = clock_monotonic_ns();
	if (agent_probe_pids(e) != OK)
		log_warn("processes stay without names", "reason=%s", LOG_QUOTED(e->text));
	a->patience_ns = AGENT_HANDOVER_PATIENCE_NS;
	enum status s = files_preload(a->files, PRELOAD_PATIENCE_NS, e);
	a->patience_ns = 0;
	if (s != OK) /* files that are not loaded yet are loaded later */
		log_info("sampling begins before every executable is read", "reason=%s",
			LOG_QUOTED(err_text(e, s)));
	if (a->containers)
		containers_settle(a->containers, CONTAINERS_PATIENCE_NS);
	malloc_trim(0);
	sampler_pause(a->sampler, false);
	pace_start(a);
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
	os_notify("READY=1");
	/* The service manager may not listen any more; that is no error. */
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

/* An error is logged once. When it lasts for a minute the agent ends, and the supervisor starts it
 * anew. */
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
	usleep(AGENT_POLL_MS * 1000);
	return OK;
}

static enum status agent_loop(struct agent *a, const volatile sig_atomic_t *stop, struct err *e)
{
	int64_t now = clock_monotonic_ns();
	int64_t end = now + MIN(FIRST_INTERVAL_NS, a->config.flush_interval_ns);
	enum status s = OK;
	while (!*stop && s == OK) {
		int64_t left_ms = MAX((end - now) / NS_PER_MS, (int64_t)0) + 1;
		s = poll_patiently(a, (int)MIN(left_ms, (int64_t)AGENT_POLL_MS), e);
		(void)os_notify_alive();
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
		interval_look_for_lost_execs(a, now);
		interval_offer_files(a, now);
		interval_take_contexts(a);
		if (now < end)
			continue;
		interval_end(a);
		/* After a long pause (suspend) not every missed interval is made up for. */
		end = MAX(end + a->config.flush_interval_ns, now);
	}
	return s;
}

/* Waits for tables, so that the last samples of a new program are as complete as others. */
static void finish_deferred(struct agent *a, const volatile sig_atomic_t *stop)
{
	const metric_value *waiting = &deferred_metrics(a->deferred)->waiting;
	int64_t patience = a->config.is_recording ? DEFERRED_RECORDING_WAIT_NS : LAST_TABLES_NS;
	int64_t begin = clock_monotonic_ns(), waited = 0;
	bool is_told = false;
	while (metric_get(waiting) && waited < patience && *stop != AGENT_STOP_NOW) {
		if (waited > LAST_TABLES_TELL_NS && !is_told) {
			is_told = true;
			log_warn("waiting for unwind tables of the last samples, for a minute at "
				 "most; Ctrl-C ends the wait",
				"samples=%llu", (unsigned long long)metric_get(waiting));
		}
		run_deferred(a, false);
		usleep(LAST_TABLES_NAP_US);
		waited = clock_monotonic_ns() - begin;
	}
	run_deferred(a, true);
}

static void agent_stop(struct agent *a, const volatile sig_atomic_t *stop)
{
	os_notify("STOPPING=1");
	sampler_stop(a->sampler);
	struct err e;
	if (sampler_poll(a->sampler, 0, &e) != OK)
		log_warn("the last samples could not be read", "err=%s", LOG_QUOTED(e.text));
	finish_deferred(a, stop);
	offcpu_finish(a->offcpu, clock_monotonic_ns());
	if (a->oom)
		oom_finish(a->oom);
	interval_end(a);
	sender_stop(a->sender, STOP_TIMEOUT_NS);
	struct sampler_stats stats;
	sampler_read_stats(a->sampler, &stats);
	const struct send_metrics *m = sender_metrics(a->sender);
	log_info("agent stopped", "samples=%llu sent=%llu spooled=%llu",
		/* A recording of one process leaves out the samples of all others. */
		(unsigned long long)(stats.bpf.samples - stats.bpf.lost_excluded),
		(unsigned long long)metric_get(&m->sent),
		(unsigned long long)metric_get(&m->spooled));
}

enum status agent_run(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	/* Few threads that allocate little: arenas of their own would only cost memory. */
	mallopt(M_ARENA_MAX, 1);
	/* The memory in which a large table is built goes back to the system at once. */
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
		agent_stop(&a, stop);
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
	enum status s = agent_open_upload(&a, e);
	if (s != OK)
		return s;
	while (!*stop && !sender_is_done(a.sender))
		usleep(AGENT_POLL_MS * 1000);
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
