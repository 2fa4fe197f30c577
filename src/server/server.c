/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start: listen (so that /healthy answers while the server starts), then symbolizer and store, then
 * ready. Stop, in reverse order: no more requests, no more files, flush, close.
 */
#include "base/clock.h"
#include "base/log.h"
#include "os/os.h"
#include "server/admin/admin.h"
#include "server/api/api.h"
#include "server/guard.h"
#include "server/request/request.h"
#include "server/start.h"
#include "trace/trace.h"

#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* A connection has its own descriptor, and one for a file that its request opens. */
#define DESCRIPTORS_OF_CONNECTION 2
#define DESCRIPTORS_MIN 16384
#define WORKERS_MIN 8
#define WORKERS_MAX 32
#define LOOKUP_WORKERS 4
#define REPORT_WORKERS_MIN 4
#define REPORT_WORKERS_MAX 16
/* Bodies take a share of --storage-memory; a single one may be larger, up to a quarter and what
 * gRPC's clients of Parca send (NET_BODY_MAX), but then it is the only one. */
#define BODY_BYTES_MIN ((size_t)4 << 20)
#define HANDSHAKES_MIN 64
/* The program, and the buffers that writing parts takes, however small the budget. */
#define FIXED_BYTES ((uint64_t)36 << 20)

void server_config_default(struct server_config *c)
{
	struct store_config store;
	store_config_default(&store);
	*c = (struct server_config){
		.http_address = "127.0.0.1:7070",
		.listen_fd = -1,
		.storage_path = "data",
		.storage_memory_bytes = store.memory_bytes,
		.retention_ns = store.retention_ns,
		.retention_bytes = store.retention_bytes,
		.resolution_ns = store.resolution_ns,
		.debug_dirs = "/usr/lib/debug",
		.debuginfod_bytes = (uint64_t)2 << 30,
		.debuginfod_timeout_ns = 300 * NS_PER_SEC,
		.limits = { .labels = PROFILE_LABELS_MAX,
			.label_name_bytes = 256,
			.label_value_bytes = 4096,
			.stack_frames = PROFILE_STACK_MAX,
			.series = 1000000,
			.message_bytes = NET_BODY_MAX },
		.connections = 8192,
		.debuginfo_bytes = (uint64_t)4 << 30,
		.debuginfo_upload_bytes = 1000000000,
		.symbols_bytes = (uint64_t)8 << 30,
		.debuginfo_upload_ns = 15 * 60 * NS_PER_SEC,
		.local_files = true,
		.handover_fd = -1,
		.ready_fd = -1,
	};
}

/* ---- the port ---- */

void server_port_config(struct server *s, struct net_server_config *c)
{
	net_server_config_default(c);
	c->address = s->config->http_address;
	c->listen_fd = s->config->listen_fd;
	c->path_prefix = s->config->path_prefix;
	c->check_host = true;
	c->hosts = s->config->http_hosts;
	c->tls_cert_file = s->config->tls_cert_file;
	c->tls_key_file = s->config->tls_key_file;
	c->tls_client_ca_file = s->config->tls_client_ca_file;
	server_guard_config(s, c);
}

static enum status listen_now(struct server *s, struct err *e)
{
	size_t count;
	enum status st = server_make_routes(s, &count, e);
	if (st != OK)
		return st;
	struct net_server_config c;
	server_port_config(s, &c);
	c.cors_origins = s->config->cors_origins;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	c.workers = WORKERS_MIN;
	c.lane_workers[SERVER_LANE_WRITES] =
		(uint32_t)MIN(MAX(2 * cpus, (long)WORKERS_MIN), (long)WORKERS_MAX);
	c.lane_workers[SERVER_LANE_LOOKUPS] = LOOKUP_WORKERS;
	c.lane_workers[SERVER_LANE_REPORTS] =
		(uint32_t)MIN(MAX(2 * cpus, (long)REPORT_WORKERS_MIN), (long)REPORT_WORKERS_MAX);
	c.turn_timeout_ns = SERVER_TURN_MAX_NS;
	c.share_header = s->config->tenant_header;
	size_t memory = s->config->storage_memory_bytes;
	c.memory_max = MAX(memory / 8, BODY_BYTES_MIN);
	c.handshakes_max = (uint32_t)MAX(memory / 8 / NET_HANDSHAKE_BYTES, (size_t)HANDSHAKES_MIN);
	c.body_max = MIN(MAX(memory / 4, BODY_BYTES_MIN), NET_BODY_MAX);
	c.body_max = MIN(c.body_max, (size_t)s->config->limits.message_bytes);
	c.connections_max = s->config->connections;
	st = server_traces_open(s, &c, e);
	if (st != OK)
		return st;
	return net_server_start(&c, s->routes, count, &s->net, e);
}

/* ---- store and symbols ---- */

static void notice(void *ctx, const char *sentence)
{
	(void)ctx;
	char quoted[1024];
	log_warn("store", "notice=%s", log_quote(str_of(sentence), quoted, sizeof(quoted)));
}

/* An agent waits a little longer than it gives an upload. */
#define STALE_AFTER_NS (120 * NS_PER_SEC)

static enum status open_uploads(struct server *s, struct err *e)
{
	char dir[4096];
	if (snprintf(dir, sizeof(dir), "%s/debuginfo", s->config->storage_path) >= (int)sizeof(dir))
		return err_set(e, E_INVALID, "the storage path is too long");
	struct debuginfo_uploads_config c = { .dir = dir,
		.bytes_max = s->config->debuginfo_bytes,
		.upload_bytes_max = s->config->debuginfo_upload_bytes,
		.stale_ns = s->config->debuginfo_upload_ns + STALE_AFTER_NS };
	return debuginfo_uploads_open(&c, &s->uploads, e);
}

static void debug_file_missing(void *ctx, const char *build_id, const char *wanted)
{
	struct server *s = ctx;
	debuginfod_want(s->debuginfod, build_id, wanted);
}

/* Nothing can have been missing before the symbolizer was there. */
static void debug_file_found(void *ctx, const char *build_id, const char *wanted)
{
	struct server *s = ctx;
	struct err e = { 0 };
	enum status st = symbolizer_look_again(
		s->engine.symbolizer, build_id, strcmp(build_id, wanted) != 0, &e);
	log_info("debug file fetched", "build_id=%s file=%s status=%s", build_id, wanted,
		status_name(st));
}

/* `out_dirs`: the debug directories, with that of fetched files. */
static enum status open_debuginfod(struct server *s, char out_dirs[8192], struct err *e)
{
	char dir[4096];
	const struct server_config *c = s->config;
	if (!c->debuginfod_servers || !c->debuginfod_servers[0])
		return OK;
	int n = snprintf(dir, sizeof(dir), "%s/debuginfod", c->storage_path);
	int m = snprintf(out_dirs, 8192, "%s:%s", c->debug_dirs, dir);
	if (n >= (int)sizeof(dir) || m >= 8192)
		return err_set(e, E_INVALID, "the storage path is too long");
	const struct debuginfod_config d = { .servers = c->debuginfod_servers,
		.dir = dir,
		.bytes_max = c->debuginfod_bytes,
		.timeout_ns = c->debuginfod_timeout_ns,
		.found = debug_file_found,
		.ctx = s };
	return debuginfod_open(&d, &s->debuginfod, e);
}

static enum status open_symbolizer(struct server *s, struct err *e)
{
	char dir[4096], dirs[8192];
	if (snprintf(dir, sizeof(dir), "%s/symbols", s->config->storage_path) >= (int)sizeof(dir))
		return err_set(e, E_INVALID, "the storage path is too long");
	enum status st = os_make_dirs(dir, e);
	if (st == OK)
		st = open_debuginfod(s, dirs, e);
	if (st != OK)
		return st;
	struct symbolizer_config c;
	symbolizer_config_default(&c);
	c.dir = dir;
	c.debug_dirs = s->debuginfod ? dirs : s->config->debug_dirs;
	c.missing = s->debuginfod ? debug_file_missing : NULL;
	c.missing_ctx = s;
	c.local_files = s->config->local_files;
	c.on_demand = s->config->symbols_on_demand;
	c.wants_min = MAX(s->config->symbols_wants_min, 1u);
	c.uploads = s->uploads;
	c.pool = s->engine.pool;
	c.disk_bytes = s->config->symbols_bytes;
	if (s->config->retention_bytes)
		c.disk_bytes = MIN(c.disk_bytes, s->config->retention_bytes / 4);
	return symbolizer_new(&c, &s->engine.symbolizer, e);
}

static uint64_t part_bytes(void *ctx)
{
	return store_part_bytes(ctx);
}

static enum status locations(void *ctx, const struct profile_locations *to, void *of, struct err *e)
{
	return store_locations(ctx, to, of, e);
}

static enum status open_store(struct server *s, struct err *e)
{
	struct store_config c;
	store_config_default(&c);
	c.path = s->config->storage_path;
	/* The rest is for memory without a counter: bodies, pieces of the heap that are free and
	 * not the system's, tables that a query began with. */
	uint64_t memory = s->config->storage_memory_bytes;
	c.memory_bytes = (memory - MIN(memory / 2, FIXED_BYTES)) / 16 * 11;
	c.resident_bytes = memory;
	c.pool = s->engine.pool;
	c.retention_ns = s->config->retention_ns;
	c.retention_bytes = s->config->retention_bytes;
	c.resolution_ns = s->config->resolution_ns;
	c.rules = s->config->retention_rules;
	c.rule_count = s->config->retention_rule_count;
	c.thin = s->config->thin_rules;
	c.thin_count = s->config->thin_rule_count;
	int64_t begun = clock_monotonic_ns();
	enum status st = store_open(&c, notice, NULL, &s->store, e);
	if (st != OK)
		return st;
	s->engine.samples = store_samples(s->store);
	symbolizer_set_samples(s->engine.symbolizer,
		&(struct symbolizer_samples){ part_bytes, locations, s->store });
	char path[1024];
	log_info("store open", "path=%s ms=%lld", log_quote(str_of(c.path), path, sizeof(path)),
		(long long)((clock_monotonic_ns() - begun) / NS_PER_MS));
	return OK;
}

/* ---- up and down ---- */

volatile sig_atomic_t server_reload_wanted;

static enum status start_scraping(struct server *s, struct err *e)
{
	struct ingest_inlet *inlet = NULL;
	if (!s->config->config_path || !s->config->config_path[0])
		return OK;
	enum status st = ingest_inlet(&s->ingest, &scrape_protocol, &inlet, e);
	if (st == OK)
		st = scrape_start(s->config->config_path, inlet, server_scrape_told, &s->scrape, e);
	if (st == OK && s->config->check_config)
		scrape_check_by(s->scrape, s->config->check_config);
	return st;
}

void server_reload_if_wanted(struct server *s)
{
	struct err e = { 0 };
	if (!server_reload_wanted)
		return;
	server_reload_wanted = 0;
	if (s->scrape)
		server_reloaded(scrape_reload(s->scrape, &e), &e);
}

static enum status start(struct server *s, struct err *e)
{
	const struct ingest_config c = { .limits = s->config->limits,
		.tenant_limits_file = s->config->tenant_limits_file,
		.retention_ns = store_retention_longest(s->config->retention_ns,
			s->config->retention_rules, s->config->retention_rule_count) };
	enum status st = ingest_init(&s->ingest, &c, e);
	if (st == OK)
		st = server_guard_open(s, e);
	if (st == OK)
		st = listen_now(s, e);
	if (st == OK)
		st = open_uploads(s, e);
	/* The thread of a query works too, so one fewer than CPUs. */
	if (st == OK)
		st = os_pool_new(os_cpus() - 1, "query", &s->engine.pool, e);
	if (st == OK)
		st = open_symbolizer(s, e);
	if (st == OK)
		st = open_store(s, e);
	if (st != OK)
		return st;
	/* Logged only now: if the start fails, only the error is printed, without lines of a
	 * log. */
	log_info("started", "version=" FIRN_VERSION " pid=%d address=%s page=%s", (int)getpid(),
		net_server_address(s->net), server_assets[0].path ? "yes" : "no");
	ingest_open(&s->ingest, store_sink(s->store),
		s->config->symbols_on_demand ? s->engine.symbolizer : NULL);
	st = start_scraping(s, e);
	if (st != OK)
		return st;
	atomic_store_explicit(&s->ready, true, memory_order_release);
	st = server_handover_start(s, e);
	if (st == OK && s->config->ready_fd >= 0) {
		char line[256];
		int n = snprintf(line, sizeof(line), "%s\n", net_server_address(s->net));
		st = os_write_full(s->config->ready_fd, line, (size_t)n, "ready_fd", e);
	}
	return st;
}

/* Stays for shutdown_delay, so that a load balancer notices that the server is not ready before
 * connections fail. */
static void leave(struct server *s)
{
	int64_t now = clock_monotonic_ns(), end = now + s->config->shutdown_delay_ns;
	if (end <= now)
		return;
	atomic_store(&s->leaving, true);
	log_info("not ready any more", "stops_in_ms=%lld", (long long)((end - now) / NS_PER_MS));
	for (; now < end; now = clock_monotonic_ns()) {
		int64_t left = MIN(end - now, NS_PER_SEC);
		nanosleep(&(struct timespec){ .tv_sec = left / NS_PER_SEC,
				  .tv_nsec = left % NS_PER_SEC },
			NULL);
	}
}

static void stop_all(struct server *s)
{
	net_server_stop(s->net);
	trace_close(s->trace);
	server_handover_stop(s);
	scrape_stop(s->scrape);
	debuginfod_stop(s->debuginfod);
	symbolizer_free(s->engine.symbolizer);
	if (s->store)
		store_close(s->store);
	os_pool_free(s->engine.pool);
	debuginfod_close(s->debuginfod);
	debuginfo_uploads_close(s->uploads);
	server_inlets_close(s);
	ingest_deinit(&s->ingest);
	auth_close(s->auth);
	free(s->routes);
	free(s->paths);
}

/* Connections and parts need descriptors: 1,024, with which most sessions begin, are few. */
static void raise_descriptors(const struct server_config *c)
{
	struct rlimit limit;
	rlim_t wanted =
		MAX((rlim_t)c->connections * DESCRIPTORS_OF_CONNECTION, (rlim_t)DESCRIPTORS_MIN);
	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted)
		return;
	limit.rlim_cur = MIN(limit.rlim_max, wanted);
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	if (limit.rlim_cur < wanted)
		log_warn("few descriptors", "limit=%llu wanted=%llu",
			(unsigned long long)limit.rlim_cur, (unsigned long long)wanted);
}

enum status server_run(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	struct server s = { .config = c, .handover_fd = c->handover_fd };
	server_init_locks(&s);
	os_malloc_for_server(c->storage_memory_bytes);
	raise_descriptors(c);
	enum status st = start(&s, e);
	/* Signals come to this thread only, and end its sleep. The sleep is one second at most, for
	 * a signal that comes just before it. */
	if (st == OK)
		os_notify("READY=1");
	while (st == OK && !*stop) {
		server_reload_if_wanted(&s);
		server_guard_look(&s);
		if (net_server_turns(s.net))
			(void)os_notify_alive();
		nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
	os_notify("STOPPING=1");
	if (st == OK) {
		leave(&s);
		log_info("stopping", "%s", "");
	}
	stop_all(&s);
	if (st == OK)
		log_info("stopped", "cpu_ms=%lld", (long long)(os_self_cpu_ns() / NS_PER_MS));
	return st;
}
