/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: spans of fixed size in a ring, with a lock that is held for a copy. The thread takes all of
 * them, encodes them as one ExportTraceServiceRequest, and sends that over gRPC or HTTP. Ids are
 * random, unless a request names its trace.
 */
#include "trace/trace.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/lock.h"
#include "fetch/fetch.h"
#include "net/net.h"
#include "os/os.h"
#include "pb/pb.h"

#define ID_BYTES 8
#define TRACE_ID_BYTES 16
#define METHOD_MAX 16
#define ANSWER_MAX ((size_t)1 << 20)
#define GRPC_PATH "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
#define KIND_SERVER 2
#define STATUS_ERROR 2

struct span {
	uint8_t trace_id[TRACE_ID_BYTES], id[ID_BYTES], parent[ID_BYTES];
	bool has_parent, failed;
	char method[METHOD_MAX], route[TRACE_NAME_MAX];
	int http_status;
	int64_t begun_ns, ended_ns;
};

struct trace {
	struct trace_config config;
	trace_told_fn *told;
	struct fetch *fetch; /* one of these two */
	struct net_client *client;
	char host[256];
	pthread_t thread;
	bool runs, fails;
	int wake_fd;
	struct trace_metrics metrics;
	struct lock lock; /* protects the waiting spans */
	struct span *waiting, *sending;
	uint32_t count;
};

/* ---- adding ---- */

static bool unhex(struct str s, uint8_t *out, size_t bytes)
{
	bool any = false;
	for (size_t i = 0; i < bytes; i++) {
		uint64_t v;
		if (!str_parse_u64(str_sub(s, 2 * i, 2), 16, &v))
			return false;
		out[i] = (uint8_t)v;
		any |= v != 0;
	}
	return any;
}

/* Parses "00-TRACE-PARENT-FLAGS", which in later versions may be longer. False: it is malformed. */
static bool read_parent(struct str text, struct span *s, bool *out_sampled)
{
	uint64_t version, flags;
	if (text.len < 55 || text.p[2] != '-' || text.p[35] != '-' || text.p[52] != '-' ||
		!str_parse_u64(str_sub(text, 0, 2), 16, &version) || version == 255 ||
		(version == 0 && text.len != 55) ||
		!str_parse_u64(str_sub(text, 53, 2), 16, &flags))
		return false;
	if (!unhex(str_sub(text, 3, 32), s->trace_id, TRACE_ID_BYTES) ||
		!unhex(str_sub(text, 36, 16), s->parent, ID_BYTES))
		return false;
	*out_sampled = flags & 1;
	return true;
}

void trace_add(struct trace *t, const struct trace_span *span)
{
	struct span s = { .http_status = span->http_status,
		.failed = span->failed,
		.begun_ns = span->begun_ns,
		.ended_ns = span->ended_ns };
	bool sampled = true;
	s.has_parent = read_parent(span->parent, &s, &sampled);
	if (!sampled)
		return;
	if (!s.has_parent)
		(void)!getrandom(s.trace_id, sizeof(s.trace_id), GRND_NONBLOCK);
	(void)!getrandom(s.id, sizeof(s.id), GRND_NONBLOCK);
	snprintf(s.method, sizeof(s.method), "%.*s", STR_ARG(span->method));
	snprintf(s.route, sizeof(s.route), "%.*s", STR_ARG(span->route));
	lock_take(&t->lock);
	bool fits = t->count < TRACE_WAITING_MAX;
	if (fits)
		t->waiting[t->count++] = s;
	lock_release(&t->lock);
	if (!fits)
		metric_add(&t->metrics.full, 1);
}

/* ---- sending ---- */

static void put_text(struct buf *b, uint32_t field, const char *key, const char *value)
{
	size_t pair = pb_begin(b, field);
	pb_put_str(b, 1, str_of(key));
	size_t any = pb_begin(b, 2);
	pb_put_str_always(b, 1, str_of(value));
	pb_end(b, any);
	pb_end(b, pair);
}

static void put_number(struct buf *b, uint32_t field, const char *key, uint64_t value)
{
	size_t pair = pb_begin(b, field);
	pb_put_str(b, 1, str_of(key));
	size_t any = pb_begin(b, 2);
	pb_put_u64_always(b, 3, value);
	pb_end(b, any);
	pb_end(b, pair);
}

static void put_span(struct buf *b, const struct span *s)
{
	char name[METHOD_MAX + TRACE_NAME_MAX + 2];
	snprintf(name, sizeof(name), "%s %s", s->method, s->route);
	size_t at = pb_begin(b, 2);
	pb_put_str(b, 1, str_make(s->trace_id, TRACE_ID_BYTES));
	pb_put_str(b, 2, str_make(s->id, ID_BYTES));
	if (s->has_parent)
		pb_put_str(b, 4, str_make(s->parent, ID_BYTES));
	pb_put_str(b, 5, str_of(name));
	pb_put_u64(b, 6, KIND_SERVER);
	pb_put_fixed64(b, 7, (uint64_t)s->begun_ns);
	pb_put_fixed64(b, 8, (uint64_t)s->ended_ns);
	put_text(b, 9, "http.request.method", s->method);
	put_text(b, 9, "http.route", s->route);
	put_number(b, 9, "http.response.status_code", (uint64_t)s->http_status);
	if (s->failed) {
		size_t status = pb_begin(b, 15);
		pb_put_u64(b, 3, STATUS_ERROR);
		pb_end(b, status);
	}
	pb_end(b, at);
}

static void put_request(const struct trace *t, uint32_t count, struct buf *b)
{
	size_t of_resource = pb_begin(b, 1), resource = pb_begin(b, 1);
	put_text(b, 1, "service.name", "firn");
	put_text(b, 1, "service.version", FIRN_VERSION);
	put_text(b, 1, "host.name", t->host);
	pb_end(b, resource);
	size_t of_scope = pb_begin(b, 2), scope = pb_begin(b, 1);
	pb_put_str(b, 1, STR("firn"));
	pb_put_str(b, 2, STR(FIRN_VERSION));
	pb_end(b, scope);
	for (uint32_t i = 0; i < count; i++)
		put_span(b, &t->sending[i]);
	pb_end(b, of_scope);
	pb_end(b, of_resource);
}

static enum status send_http(
	struct trace *t, struct str message, int64_t timeout_ns, struct buf *answer, struct err *e)
{
	int code = 0;
	enum status s = fetch_post(t->fetch, "/v1/traces", "application/x-protobuf", message,
		timeout_ns, &code, answer, e);
	return s == OK && code != 200 ? err_set(e, E_UNAVAILABLE, "HTTP status %d", code) : s;
}

static enum status send_batch(struct trace *t, uint32_t count, int64_t timeout_ns, struct err *e)
{
	CLEANUP(buf_deinit) struct buf message, answer;
	bool retry;
	buf_init(&message, TRACE_BATCH_BYTES_MAX);
	buf_init(&answer, ANSWER_MAX);
	put_request(t, count, &message);
	enum status s = buf_status(&message);
	if (s != OK)
		return err_set(e, s, "a batch of spans");
	if (t->fetch)
		return send_http(t, buf_view(&message), timeout_ns, &answer, e);
	return net_client_rpc(
		t->client, GRPC_PATH, buf_view(&message), timeout_ns, &answer, &retry, e);
}

static void send_waiting(struct trace *t, int64_t timeout_ns)
{
	struct err e = { 0 };
	lock_take(&t->lock);
	uint32_t count = t->count;
	struct span *taken = t->waiting;
	t->waiting = t->sending;
	t->sending = taken;
	t->count = 0;
	lock_release(&t->lock);
	if (!count)
		return;
	enum status s = send_batch(t, count, timeout_ns, &e);
	metric_add(s == OK ? &t->metrics.sent : &t->metrics.failed, count);
	if (s == E_CANCELED) /* by the end */
		return;
	if (t->told && (s != OK) != t->fails)
		t->told(s, &e);
	t->fails = s != OK;
}

/* Calls end when `wake_fd` can be read; -1: never. */
static void interrupt_by(struct trace *t, int wake_fd)
{
	if (t->fetch)
		fetch_interrupt(t->fetch, wake_fd, 0);
	else
		net_client_interrupt(t->client, wake_fd, 0);
}

static void *run(void *ctx)
{
	struct trace *t = ctx;
	struct pollfd p = { .fd = t->wake_fd, .events = POLLIN };
	interrupt_by(t, t->wake_fd);
	while (poll(&p, 1, (int)(TRACE_EVERY_NS / NS_PER_MS)) <= 0)
		send_waiting(t, TRACE_SEND_TIMEOUT_NS);
	interrupt_by(t, -1);
	send_waiting(t, TRACE_LAST_TIMEOUT_NS);
	return NULL;
}

/* ---- up and down ---- */

static enum status open_way(struct trace *t, struct err *e)
{
	const struct trace_config *c = &t->config;
	char address[512];
	bool whole = strstr(c->address, "://");
	int n = snprintf(address, sizeof(address), "%s%s",
		whole       ? ""
		: c->secure ? "https://"
			    : "http://",
		c->address);
	if (n < 0 || n >= (int)sizeof(address))
		return err_set(e, E_INVALID, "the address of the collector is too long");
	const struct fetch_config fetch = { .address = address };
	return c->http ? fetch_new(&fetch, &t->fetch, e) : net_client_new(address, &t->client, e);
}

enum status trace_open(
	const struct trace_config *c, trace_told_fn *told, struct trace **out, struct err *e)
{
	struct trace *t = calloc(1, sizeof(*t));
	if (!t)
		return err_set(e, E_NOMEM, "traces");
	t->config = *c;
	t->told = told;
	lock_init(&t->lock, LOCK_TRACE);
	t->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	t->waiting = calloc(TRACE_WAITING_MAX, sizeof(*t->waiting));
	t->sending = calloc(TRACE_WAITING_MAX, sizeof(*t->sending));
	(void)gethostname(t->host, sizeof(t->host) - 1);
	enum status s = t->wake_fd < 0 ? err_os(e, "eventfd") : OK;
	if (s == OK && (!t->waiting || !t->sending))
		s = err_set(e, E_NOMEM, "traces");
	if (s == OK)
		s = open_way(t, e);
	if (s == OK)
		s = os_thread_start(&t->thread, "traces", run, t, e);
	t->runs = s == OK;
	if (s == OK)
		*out = t;
	else
		trace_close(t);
	return s;
}

void trace_close(struct trace *t)
{
	uint64_t one = 1;
	if (!t)
		return;
	if (t->runs) {
		(void)!write(t->wake_fd, &one, sizeof(one));
		pthread_join(t->thread, NULL);
	}
	fetch_free(t->fetch);
	net_client_free(t->client);
	free(t->waiting);
	free(t->sending);
	fd_cleanup(&t->wake_fd);
	lock_destroy(&t->lock);
	free(t);
}

void trace_write_metrics(struct trace *t, struct buf *out)
{
	static const struct metric_def defs[] = { TRACE_METRICS(METRIC_DEF) };
	if (t)
		metrics_write(out, defs, (const metric_value *)&t->metrics, ARRAY_COUNT(defs));
}
