/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server without a store. It scrapes targets and sends their profiles on, and it passes on what
 * agents and other senders send by gRPC. All calls share a few connections to the other side; a
 * call waits for a free one (`free_fd` counts them). If a scraped profile cannot be sent because
 * the other side is not there, it is tried once more. Then it is lost and counted, and the target
 * is bad. What is passed on is not tried again, because its sender does that. A reload that ends a
 * target, and the end of the server, break calls off: without an answer hundreds of calls would
 * last for minutes.
 *
 * Its routes are the whole server's routes that need no samples, and those of passed_on[].
 */
#include "base/clock.h"
#include "base/log.h"
#include "os/os.h"
#include "pb/pb.h"
#include "schema/schema.h"
#include "server/admin/admin.h"
#include "server/guard.h"
#include "server/receive/receive.h"
#include "server/request/request.h"
#include "server/start.h"
#include "trace/trace.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CLIENTS 8
#define UPLOADS_MAX 8 /* streams; each has a connection of its own */
#define SEND_TIMEOUT_NS (30 * NS_PER_SEC)
#define AGAIN_MS 500
#define UPLOAD_TIMEOUT_NS (15 * 60 * NS_PER_SEC)
#define MESSAGE_MAX (SCRAPE_ANSWER_MAX + ((size_t)1 << 20))
#define ANSWER_MAX ((size_t)1 << 20)
#define TOKEN_MAX ((size_t)64 << 10)
#define LANE_PASSED 1
#define PASSED_COUNT 7
#define RAW "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"

#define FORWARD_METRICS(X)                                                               \
	X(sent, COUNTER, "firn_forward_profiles_total", "Profiles that the store took.") \
	X(bytes, COUNTER, "firn_forward_bytes_total", "Bytes of these.")                 \
	X(lost, COUNTER, "firn_forward_profiles_lost_total",                             \
		"Profiles that the store did not take, or did not answer.")              \
	X(passed, COUNTER, "firn_forward_calls_total",                                   \
		"Calls of agents and other senders that the store answered.")            \
	X(failed, COUNTER, "firn_forward_calls_failed_total",                            \
		"Such calls that the store refused, or did not answer.")
struct forward_metrics {
	FORWARD_METRICS(METRIC_FIELD)
};

struct scraper {
	struct server server; /* config, scrape, guard: the parts that its handlers use */
	const struct server_forward *to;
	struct forward_metrics metrics;
	struct lock lock; /* of `free` */
	struct net_client *free[CLIENTS];
	uint32_t free_count;
	int free_fd; /* a semaphore that counts the free clients; -1: none */
	int stop_fd; /* can be read when the server ends; -1: none */
	atomic_int uploads;
	char paths[PASSED_COUNT][SERVER_PATH_BYTES];
};

/* ---- sending ---- */

static void put_label(struct buf *b, const char *name, const char *value)
{
	size_t label = pb_begin(b, 1);
	pb_put_str(b, 1, str_of(name));
	pb_put_str(b, 2, str_of(value));
	pb_end(b, label);
}

static bool has_label(const struct scrape_label *labels, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(labels[i].name, name) == 0)
			return true;
	return false;
}

/* WriteRawRequest: one series with one profile. */
static void put_request(struct buf *b, const struct server_forward *to,
	const struct scrape_label *labels, size_t count, const char *name, struct str pprof)
{
	size_t series = pb_begin(b, 2), set = pb_begin(b, 1);
	put_label(b, "__name__", name);
	for (size_t i = 0; i < count; i++)
		put_label(b, labels[i].name, labels[i].value);
	for (size_t i = 0; i < to->label_count; i++)
		if (!has_label(labels, count, to->labels[i].name))
			put_label(b, to->labels[i].name, to->labels[i].value);
	pb_end(b, set);
	size_t sample = pb_begin(b, 2);
	pb_put_str(b, 1, pprof);
	pb_end(b, sample);
	pb_end(b, series);
}

static enum status present(const struct server_forward *to, struct net_client *c, struct err *e)
{
	CLEANUP(buf_deinit) struct buf value;
	buf_init(&value, TOKEN_MAX);
	if (!to->token && !to->token_file)
		return OK;
	buf_cstr(&value, "Bearer ");
	enum status s = OK;
	if (to->token_file)
		s = os_read_own(to->token_file, &value, NULL, e);
	else
		buf_cstr(&value, to->token);
	while (value.len && strchr(" \t\r\n", value.data[value.len - 1]))
		value.len--;
	buf_u8(&value, 0);
	if (s == OK && buf_status(&value) != OK)
		s = err_set(e, E_LIMIT, "the token is too long");
	return s == OK ? net_client_header(c, "authorization", (const char *)value.data, e) : s;
}

/* Waits for one until `wake_fd` can be read, as long as a call may take. */
static enum status take_client(
	struct scraper *x, int wake_fd, struct net_client **out, struct err *e)
{
	int64_t end_ns = clock_monotonic_ns() + SEND_TIMEOUT_NS;
	for (;;) {
		struct pollfd p[] = { { .fd = wake_fd, .events = POLLIN },
			{ .fd = x->free_fd, .events = POLLIN } };
		uint64_t one;
		int64_t left_ns = end_ns - clock_monotonic_ns();
		if (left_ns <= 0)
			return err_set(e, E_UNAVAILABLE, "other calls wait for the store");
		(void)poll(p, ARRAY_COUNT(p), (int)(left_ns / NS_PER_MS + 1));
		if (p[0].revents)
			return err_set(e, E_CANCELED, "the call is not wanted any more");
		if (read(x->free_fd, &one, sizeof(one)) == sizeof(one))
			break;
	}
	lock_take(&x->lock);
	*out = x->free[--x->free_count];
	lock_release(&x->lock);
	net_client_interrupt(*out, wake_fd, 0);
	return OK;
}

static void give_client(struct scraper *x, struct net_client *c)
{
	uint64_t one = 1;
	lock_take(&x->lock);
	x->free[x->free_count++] = c;
	lock_release(&x->lock);
	(void)!write(x->free_fd, &one, sizeof(one));
}

static enum status call(struct scraper *x, struct net_client *c, const char *path,
	struct str message, struct buf *answer, struct err *e)
{
	bool retry = false;
	enum status s = present(x->to, c, e);
	return s == OK ? net_client_rpc(c, path, message, SEND_TIMEOUT_NS, answer, &retry, e) : s;
}

static enum status send_profile(
	struct scraper *x, struct net_client *c, struct str message, int wake_fd, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	struct pollfd wake = { .fd = wake_fd, .events = POLLIN };
	buf_init(&answer, ANSWER_MAX);
	enum status s = call(x, c, RAW, message, &answer, e);
	if (s == E_UNAVAILABLE && poll(&wake, 1, AGAIN_MS) == 0)
		s = call(x, c, RAW, message, &answer, e);
	return s;
}

static enum status forward(void *ctx, const struct scrape_label *labels, size_t count,
	const char *name, struct str pprof, int wake_fd, struct err *e)
{
	struct scraper *x = ctx;
	struct net_client *c = NULL;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, MESSAGE_MAX);
	put_request(&message, x->to, labels, count, name, pprof);
	enum status s = buf_status(&message);
	if (s == OK)
		s = take_client(x, wake_fd, &c, e);
	if (s == OK) {
		s = send_profile(x, c, buf_view(&message), wake_fd, e);
		give_client(x, c);
	}
	metric_add(s == OK ? &x->metrics.sent : &x->metrics.lost, 1);
	if (s == OK)
		metric_add(&x->metrics.bytes, pprof.len);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "the store at %s", x->to->address);
}

static enum status open_client(
	const struct server_forward *to, struct net_client **out, struct err *e)
{
	char address[512];
	bool whole = strstr(to->address, "://");
	snprintf(address, sizeof(address), "%s%s",
		whole          ? ""
		: to->insecure ? "http://"
			       : "https://",
		to->address);
	enum status s = net_client_new(address, out, e);
	if (s == OK && to->trust_anybody)
		net_client_trust_anybody(*out);
	for (size_t i = 0; s == OK && i < to->header_count; i++)
		s = net_client_header(*out, to->headers[i].name, to->headers[i].value, e);
	if (s != OK)
		return s;
	net_client_limit(*out, ANSWER_MAX);
	return OK;
}

/* ---- what agents and other senders bring ---- */

/* Counts a passed call. If the server's end breaks it off, its sender must try again. */
static void passed(struct scraper *x, enum status s, struct err *e, struct net_response *out)
{
	metric_add(s == OK ? &x->metrics.passed : &x->metrics.failed, 1);
	if (s == E_CANCELED)
		s = err_set(e, E_UNAVAILABLE, "the scraper ends");
	if (s != OK)
		net_fail(out, err_prefix(e, s, "the store at %s", x->to->address), e);
}

static void path_of(const struct net_request *r, char out[SERVER_PATH_BYTES])
{
	snprintf(out, SERVER_PATH_BYTES, "%.*s", STR_ARG(r->path));
}

static void pass_call(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct scraper *x = ctx;
	struct net_client *c = NULL;
	struct err e = { 0 };
	char path[SERVER_PATH_BYTES];
	path_of(r, path);
	enum status s = take_client(x, x->stop_fd, &c, &e);
	if (s == OK) {
		s = call(x, c, path, r->body, &out->body, &e);
		give_client(x, c);
	}
	passed(x, s, &e, out);
}

static enum status next_message(void *ctx, struct str *out, bool *out_end, struct err *e)
{
	return net_stream_receive(ctx, out, out_end, e);
}

static enum status pass_messages(struct scraper *x, const char *path, struct net_stream *stream,
	struct buf *answer, struct err *e)
{
	struct net_client *c = NULL;
	bool retry = false;
	enum status s = open_client(x->to, &c, e);
	if (s == OK) {
		net_client_interrupt(c, x->stop_fd, SEND_TIMEOUT_NS);
		s = present(x->to, c, e);
	}
	if (s == OK)
		s = net_client_send(
			c, path, next_message, stream, UPLOAD_TIMEOUT_NS, answer, &retry, e);
	net_client_free(c);
	return s;
}

static void pass_stream(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct scraper *x = ctx;
	struct err e = { 0 };
	char path[SERVER_PATH_BYTES];
	path_of(r, path);
	enum status s;
	if (atomic_fetch_add(&x->uploads, 1) >= UPLOADS_MAX)
		s = err_set(&e, E_UNAVAILABLE, "%d uploads are under way: try again", UPLOADS_MAX);
	else
		s = pass_messages(x, path, stream, &out->body, &e);
	atomic_fetch_sub(&x->uploads, 1);
	passed(x, s, &e, out);
}

/* Refuses calls that would need each message in another form. */
static void refuse_call(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct err e;
	(void)ctx;
	(void)r;
	net_fail(out,
		err_set(&e, E_UNSUPPORTED,
			"this server keeps nothing (--mode scraper-only), and passes on OTLP over "
			"gRPC, WriteRaw and WriteArrow: send this to the server that keeps the "
			"samples"),
		&e);
}

static void refuse_stream(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	(void)stream;
	refuse_call(ctx, r, out);
}

static const struct {
	const struct pb_service *service;
	const char *method;
	bool streams;
} passed_on[PASSED_COUNT] = {
	{ &schema_parca_profilestore, "WriteRaw", false },
	{ &schema_parca_profilestore, "WriteArrow", false },
	{ &schema_otlp_profiles_service, "Export", false },
	{ &schema_parca_debuginfo, "ShouldInitiateUpload", false },
	{ &schema_parca_debuginfo, "InitiateUpload", false },
	{ &schema_parca_debuginfo, "MarkUploadFinished", false },
	{ &schema_parca_debuginfo, "Upload", true },
};

static void put_passed(struct scraper *x, struct net_route *out)
{
	for (size_t i = 0; i < ARRAY_COUNT(passed_on); i++) {
		snprintf(x->paths[i], SERVER_PATH_BYTES, "/%s/%s", passed_on[i].service->name,
			passed_on[i].method);
		out[i] = (struct net_route){ .method = "POST",
			.path = x->paths[i],
			.fn = passed_on[i].streams ? NULL : pass_call,
			.stream_fn = passed_on[i].streams ? pass_stream : NULL,
			.ctx = x,
			.is_rpc = true,
			.lane = LANE_PASSED,
			.rpc = pb_service_find(passed_on[i].service, passed_on[i].method),
			.scope = AUTH_WRITE };
	}
}

/* ---- the port ---- */

static void handle_ready(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct scraper *x = ctx;
	(void)r;
	struct err e;
	if (!atomic_load_explicit(&x->server.ready, memory_order_acquire))
		net_fail(out, err_set(&e, E_UNAVAILABLE, "it is starting"), &e);
	else
		buf_cstr(&out->body, "ready\n");
}

static void handle_metrics(void *ctx, const struct net_request *r, struct net_response *out)
{
	static const struct metric_def defs[] = { FORWARD_METRICS(METRIC_DEF) };
	struct scraper *x = ctx;
	(void)r;
	out->content_type = "text/plain; version=0.0.4; charset=utf-8";
	metrics_write(&out->body, defs, (const metric_value *)&x->metrics, ARRAY_COUNT(defs));
	net_server_write_metrics(x->server.net, &out->body);
	if (atomic_load_explicit(&x->server.ready, memory_order_acquire))
		scrape_write_metrics(x->server.scrape, &out->body);
	trace_write_metrics(x->server.trace, &out->body);
}

static enum status listen_now(struct scraper *x, struct err *e)
{
	struct server *s = &x->server;
	const struct pb_method *targets = pb_service_find(&schema_parca_scrape, "Targets");
	const struct pb_method *write = pb_service_find(&schema_parca_profilestore, "Write");
	const struct net_route own[] = {
		{ "POST", SERVER_OTLP_HTTP, refuse_call, .scope = AUTH_WRITE },
		{ "POST", "/parca.profilestore.v1alpha1.ProfileStoreService/Write",
			.stream_fn = refuse_stream, .is_rpc = true, .rpc = write,
			.scope = AUTH_WRITE },
		{ "GET", "/healthy", server_handle_healthy, s, .on_loop = true,
			.scope = SERVER_SCOPE_OPEN },
		{ "GET", "/-/healthy", server_handle_healthy, s, .on_loop = true,
			.scope = SERVER_SCOPE_OPEN },
		{ "GET", "/ready", handle_ready, x, .on_loop = true, .scope = SERVER_SCOPE_OPEN },
		{ "GET", "/-/ready", handle_ready, x, .on_loop = true, .scope = SERVER_SCOPE_OPEN },
		{ "GET", "/metrics", handle_metrics, x, .scope = AUTH_READ },
		{ "GET", "/api/targets", server_targets, s, .rest = true, .rpc = targets,
			.scope = AUTH_READ },
		{ "POST", "/parca.scrape.v1alpha1.ScrapeService/Targets", server_targets, s,
			.is_rpc = true, .rpc = targets, .scope = AUTH_READ },
		{ "POST", "/-/reload", server_handle_reload, s, .scope = AUTH_ADMIN },
		{ "GET", "/debug/pprof/profile", .stream_fn = server_self_cpu, .ctx = s,
			.scope = AUTH_ADMIN },
		{ "GET", "/debug/pprof/heap", server_handle_self_heap, s, .scope = AUTH_ADMIN },
		{ "GET", "/debug/pprof/", server_handle_self_list, s, .scope = AUTH_ADMIN },
		{ "GET", "/debug/pprof/symbol", server_handle_self_symbol, s, .scope = AUTH_ADMIN },
		{ "POST", "/debug/pprof/symbol", server_handle_self_symbol, s,
			.scope = AUTH_ADMIN },
	};
	struct net_route routes[ARRAY_COUNT(own) + PASSED_COUNT];
	struct net_server_config c;
	memcpy(routes, own, sizeof(own));
	put_passed(x, routes + ARRAY_COUNT(own));
	server_port_config(s, &c);
	c.lane_workers[LANE_PASSED] = CLIENTS;
	enum status st = server_traces_open(s, &c, e);
	if (st != OK)
		return st;
	st = net_server_start(&c, routes, ARRAY_COUNT(routes), &s->net, e);
	if (st == OK)
		log_info("listening", "address=%s", net_server_address(s->net));
	return st;
}

/* ---- up and down ---- */

static enum status start(struct scraper *x, struct err *e)
{
	struct server *s = &x->server;
	enum status st = server_guard_open(s, e);
	x->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (st == OK && x->stop_fd < 0)
		st = err_os(e, "eventfd");
	x->free_fd = eventfd(CLIENTS, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE);
	if (st == OK && x->free_fd < 0)
		st = err_os(e, "eventfd");
	for (; st == OK && x->free_count < CLIENTS; x->free_count += st == OK)
		st = open_client(x->to, &x->free[x->free_count], e);
	if (st == OK)
		st = listen_now(x, e);
	if (st == OK)
		st = scrape_start_forwarding(
			s->config->config_path, forward, x, server_scrape_told, &s->scrape, e);
	if (st != OK)
		return st;
	if (s->config->check_config)
		scrape_check_by(s->scrape, s->config->check_config);
	atomic_store_explicit(&s->ready, true, memory_order_release);
	if (s->config->ready_fd >= 0) {
		char line[256];
		int n = snprintf(line, sizeof(line), "%s\n", net_server_address(s->net));
		st = os_write_full(s->config->ready_fd, line, (size_t)n, "ready_fd", e);
	}
	return st;
}

enum status server_run_scraper(const struct server_config *c, const struct server_forward *to,
	const volatile sig_atomic_t *stop, struct err *e)
{
	static struct scraper x;
	memset(&x, 0, sizeof(x));
	x.server.config = c;
	x.to = to;
	x.stop_fd = x.free_fd = -1;
	lock_init(&x.lock, LOCK_SCRAPER);
	log_info("starting", "version=" FIRN_VERSION " mode=scraper-only");
	enum status st = start(&x, e);
	if (st == OK)
		os_notify("READY=1");
	while (st == OK && !*stop) {
		server_reload_if_wanted(&x.server);
		server_guard_look(&x.server);
		if (net_server_turns(x.server.net))
			(void)os_notify_alive();
		nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
	os_notify("STOPPING=1");
	if (x.stop_fd >= 0)
		(void)!write(x.stop_fd, &(uint64_t){ 1 }, sizeof(uint64_t));
	net_server_stop(x.server.net);
	trace_close(x.server.trace);
	scrape_stop(x.server.scrape);
	while (x.free_count)
		net_client_free(x.free[--x.free_count]);
	fd_cleanup(&x.stop_fd);
	fd_cleanup(&x.free_fd);
	auth_close(x.server.auth);
	lock_destroy(&x.lock);
	log_info("stopped", "status=%s", status_name(st));
	return st;
}
