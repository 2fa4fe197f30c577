/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server without a store: it scrapes and hands on. Threads of targets share a few connections to
 * the other side; each call takes one that is free, or waits for one. A call that failed because
 * nobody was there is tried once more; then the profile is lost, counted, and the target bad. At
 * the end all calls are broken off: hundreds of them would last for minutes where nobody answers.
 *
 * The routes are those of the whole server that ask for no samples.
 */
#include "base/clock.h"
#include "base/log.h"
#include "os/os.h"
#include "pb/pb.h"
#include "schema/schema.h"
#include "server/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define CLIENTS 4
#define SEND_TIMEOUT_NS (30 * NS_PER_SEC)
#define AGAIN_NS (500 * NS_PER_MS)
#define MESSAGE_MAX (SCRAPE_ANSWER_MAX + ((size_t)1 << 20))
#define ANSWER_MAX ((size_t)1 << 20)
#define TOKEN_MAX ((size_t)64 << 10)
#define PATH "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"

#define FORWARD_METRICS(X)                                                               \
	X(sent, COUNTER, "firn_forward_profiles_total", "Profiles that the store took.") \
	X(bytes, COUNTER, "firn_forward_bytes_total", "Bytes of these.")                 \
	X(lost, COUNTER, "firn_forward_profiles_lost_total",                             \
		"Profiles that the store did not take, or that found nobody.")
struct forward_metrics {
	FORWARD_METRICS(METRIC_FIELD)
};

struct scraper {
	struct server server; /* config, scrape, guard: what its handlers look at */
	const struct server_forward *to;
	struct forward_metrics metrics;
	pthread_mutex_t lock;
	pthread_cond_t one_is_free;
	struct net_client *free[CLIENTS];
	uint32_t free_count;
	int stop_fd; /* can be read at the end; -1 */
	bool stopping;
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

/* NULL: it is the end. */
static struct net_client *take_client(struct scraper *x)
{
	pthread_mutex_lock(&x->lock);
	while (!x->free_count && !x->stopping)
		pthread_cond_wait(&x->one_is_free, &x->lock);
	struct net_client *c = x->stopping ? NULL : x->free[--x->free_count];
	pthread_mutex_unlock(&x->lock);
	return c;
}

static void give_client(struct scraper *x, struct net_client *c)
{
	pthread_mutex_lock(&x->lock);
	x->free[x->free_count++] = c;
	pthread_cond_signal(&x->one_is_free);
	pthread_mutex_unlock(&x->lock);
}

static void break_off(struct scraper *x)
{
	uint64_t one = 1;
	pthread_mutex_lock(&x->lock);
	x->stopping = true;
	pthread_cond_broadcast(&x->one_is_free);
	pthread_mutex_unlock(&x->lock);
	if (x->stop_fd >= 0)
		(void)!write(x->stop_fd, &one, sizeof(one));
}

static enum status send_once(
	struct scraper *x, struct net_client *c, struct str message, struct err *e)
{
	CLEANUP(buf_deinit) struct buf answer;
	bool retry = false;
	buf_init(&answer, ANSWER_MAX);
	enum status s = present(x->to, c, e);
	return s == OK ? net_client_rpc(c, PATH, message, SEND_TIMEOUT_NS, &answer, &retry, e) : s;
}

static enum status forward(void *ctx, const struct scrape_label *labels, size_t count,
	const char *name, struct str pprof, struct err *e)
{
	struct scraper *x = ctx;
	CLEANUP(buf_deinit) struct buf message;
	buf_init(&message, MESSAGE_MAX);
	put_request(&message, x->to, labels, count, name, pprof);
	enum status s = buf_status(&message);
	struct net_client *c = take_client(x);
	if (!c)
		return err_set(e, E_CANCELED, "the scraper ends");
	if (s == OK)
		s = send_once(x, c, buf_view(&message), e);
	if (s == E_UNAVAILABLE) {
		nanosleep(&(struct timespec){ .tv_nsec = AGAIN_NS }, NULL);
		s = send_once(x, c, buf_view(&message), e);
	}
	give_client(x, c);
	metric_add(s == OK ? &x->metrics.sent : &x->metrics.lost, 1);
	if (s == OK)
		metric_add(&x->metrics.bytes, pprof.len);
	return s == OK || s == E_CANCELED ? s : err_prefix(e, s, "the store at %s", x->to->address);
}

static enum status open_client(
	const struct server_forward *to, int stop_fd, struct net_client **out, struct err *e)
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
	net_client_interrupt(*out, stop_fd, 0);
	return OK;
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
}

static enum status listen_now(struct scraper *x, struct err *e)
{
	struct server *s = &x->server;
	const struct pb_method *targets = pb_service_find(&schema_parca_scrape, "Targets");
	const struct net_route routes[] = {
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
	};
	struct net_server_config c;
	net_server_config_default(&c);
	c.address = s->config->http_address;
	c.listen_fd = s->config->listen_fd;
	c.path_prefix = s->config->path_prefix;
	c.check_host = true;
	c.hosts = s->config->http_hosts;
	c.tls_cert_file = s->config->tls_cert_file;
	c.tls_key_file = s->config->tls_key_file;
	c.tls_client_ca_file = s->config->tls_client_ca_file;
	server_guard_config(s, &c);
	enum status st = net_server_start(&c, routes, ARRAY_COUNT(routes), &s->net, e);
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
	for (; st == OK && x->free_count < CLIENTS; x->free_count += st == OK)
		st = open_client(x->to, x->stop_fd, &x->free[x->free_count], e);
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
	x.stop_fd = -1;
	pthread_mutex_init(&x.lock, NULL);
	pthread_cond_init(&x.one_is_free, NULL);
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
	net_server_stop(x.server.net);
	break_off(&x);
	scrape_stop(x.server.scrape);
	while (x.free_count)
		net_client_free(x.free[--x.free_count]);
	fd_cleanup(&x.stop_fd);
	auth_close(x.server.auth);
	pthread_cond_destroy(&x.one_is_free);
	pthread_mutex_destroy(&x.lock);
	log_info("stopped", "status=%s", status_name(st));
	return st;
}
