/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking calls over a non-blocking socket and poll(), so that one timeout covers the whole call.
 * A connection is kept as long as the peer allows it; a request that fails on a kept connection
 * before its answer began is tried once more on a new one, as the server may just have closed it.
 */
#include "base/clock.h"
#include "net/address.h"
#include "net/tls.h"

#include <ctype.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include <errno.h>

#define ADDRESSES_MAX 8
#define OWN_HEADERS_MAX 8 /* of one call */
#define SEND_ONCE_BYTES ((size_t)64 << 10)

struct kept_header {
	char *name, *value;
};

struct net_client {
	char *address;
	char authority[256];
	char host[256]; /* host of the address, as in certificates */
	int fd;
	bool used;   /* a request was answered on this connection */
	bool secure; /* https */
	struct net_tls_trust trust;
	struct net_tls_identity identity;
	struct kept_header headers[NET_CLIENT_HEADERS_MAX];
	size_t header_count;
	size_t answer_max;
	int wake_fd;         /* -1: none */
	int64_t patience_ns; /* 0: none */
	uint64_t connects;
	struct net_tls_conn *tls; /* with `secure`, while connected */
	struct http_client *http;
	uint8_t scratch[HTTP_FEED_MAX];
};

enum status net_client_new(const char *address, struct net_client **out, struct err *e)
{
	struct str host = str_of(address);
	enum status s = net_address_check(address, e);
	if (s != OK)
		return s;
	if (str_starts(host, STR("unix:")))
		host = STR("localhost");
	bool secure = str_starts(host, STR("https://"));
	if (secure || str_starts(host, STR("http://")))
		host = str_sub(host, secure ? 8 : 7, host.len);
	host = str_sub(host, 0, str_index(host, '/'));
	struct net_client *c = calloc(1, sizeof(*c));
	char *copy = strdup(address);
	if (!c || !copy) {
		free(c);
		free(copy);
		return err_set(e, E_NOMEM, "client");
	}
	c->fd = -1;
	c->wake_fd = -1;
	c->answer_max = NET_ANSWER_MAX;
	c->secure = secure;
	c->address = copy;
	snprintf(c->authority, sizeof(c->authority), "%.*s", STR_ARG(host));
	struct str name = str_sub(host, 0, str_rindex(host, ':'));
	if (name.len > 2 && name.p[0] == '[')
		name = str_sub(name, 1, name.len - 2);
	snprintf(c->host, sizeof(c->host), "%.*s", STR_ARG(name));
	*out = c;
	return OK;
}

static void disconnect(struct net_client *c)
{
	http_client_free(c->http);
	net_tls_conn_free(c->tls);
	c->http = NULL;
	c->tls = NULL;
	fd_cleanup(&c->fd);
	c->fd = -1;
	c->used = false;
}

void net_client_pin(struct net_client *c, const char *cert_file)
{
	c->trust = (struct net_tls_trust){ .ca_file = cert_file, .any_name = true };
}

void net_client_trust(struct net_client *c, const char *ca_file)
{
	c->trust = (struct net_tls_trust){ .ca_file = ca_file };
}

void net_client_trust_anybody(struct net_client *c)
{
	c->trust = (struct net_tls_trust){ .anybody = true };
}

void net_client_identity(struct net_client *c, const char *cert_file, const char *key_file)
{
	c->identity = (struct net_tls_identity){ cert_file, key_file };
}

void net_client_limit(struct net_client *c, size_t answer_bytes_max)
{
	size_t max = MIN(answer_bytes_max, NET_ANSWER_MAX);
	if (c->answer_max != max)
		disconnect(c);
	c->answer_max = max;
}

void net_client_interrupt(struct net_client *c, int wake_fd, int64_t patience_ns)
{
	c->wake_fd = wake_fd;
	c->patience_ns = patience_ns;
}

uint64_t net_client_connects(const struct net_client *c)
{
	return c->connects;
}

static void drop_header(struct net_client *c, size_t i)
{
	free(c->headers[i].name);
	free(c->headers[i].value);
	c->headers[i] = c->headers[--c->header_count];
}

static bool header_name_ok(const char *name)
{
	for (const char *p = name; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr("-_.", *p))
			return false;
	return name[0] != 0;
}

static bool header_value_ok(const char *value)
{
	for (const char *p = value; *p; p++)
		if ((unsigned char)*p < 0x20 || *p == 0x7F)
			return false;
	return true;
}

enum status net_client_header(
	struct net_client *c, const char *name, const char *value, struct err *e)
{
	for (size_t i = 0; i < c->header_count; i++)
		if (strcasecmp(c->headers[i].name, name) == 0)
			drop_header(c, i--);
	if (!value)
		return OK;
	if (!header_name_ok(name) || !header_value_ok(value))
		return err_set(e, E_INVALID, "\"%s\" is no header", name);
	if (c->header_count == NET_CLIENT_HEADERS_MAX)
		return err_set(e, E_LIMIT, "more than %d headers", NET_CLIENT_HEADERS_MAX);
	struct kept_header h = { strdup(name), strdup(value) };
	if (!h.name || !h.value) {
		free(h.name);
		free(h.value);
		return err_set(e, E_NOMEM, "header");
	}
	for (char *p = h.name; *p; p++) /* HTTP/2 has only lower case */
		*p = (char)tolower((unsigned char)*p);
	c->headers[c->header_count++] = h;
	return OK;
}

void net_client_free(struct net_client *c)
{
	if (!c)
		return;
	disconnect(c);
	while (c->header_count)
		drop_header(c, 0);
	free(c->address);
	free(c);
}

/* Waits for one of `events` or an error on `fd`. E_TIMEOUT: the deadline, or the client's patience,
 * is over. E_CANCELED: its wake_fd became readable. */
static enum status wait_for(
	const struct net_client *c, int fd, short events, int64_t deadline_ns, struct err *e)
{
	int64_t patient_ns = c->patience_ns ? clock_monotonic_ns() + c->patience_ns : INT64_MAX;
	int64_t until_ns = MIN(deadline_ns, patient_ns);
	for (;;) {
		int64_t left = until_ns == INT64_MAX ? INT64_MAX : until_ns - clock_monotonic_ns();
		if (left <= 0)
			return err_set(e, E_TIMEOUT, "no answer in time");
		int ms = (int)MIN(left / NS_PER_MS + 1, (int64_t)3600000);
		struct pollfd p[] = { { .fd = fd, .events = events },
			{ .fd = c->wake_fd, .events = POLLIN } };
		int n = poll(p, ARRAY_COUNT(p), ms);
		if (n > 0 && p[1].revents)
			return err_set(e, E_CANCELED, "woken");
		if (n > 0)
			return OK;
		if (n < 0 && errno != EINTR)
			return err_os(e, "poll");
	}
}

static enum status connect_to(const struct net_client *c, const struct net_address *a,
	int64_t deadline_ns, int *out_fd, struct err *e)
{
	int one = 1;
	CLEANUP(fd_cleanup)
	int fd = socket(a->storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_os(e, "socket");
	if (a->storage.ss_family != AF_UNIX)
		(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	if (connect(fd, (const struct sockaddr *)&a->storage, a->len) != 0) {
		if (errno != EINPROGRESS && errno != EAGAIN) {
			return err_set(e, E_UNAVAILABLE, "connect: %m");
		}
		enum status s = wait_for(c, fd, POLLOUT, deadline_ns, e);
		if (s != OK)
			return s;
		int failed = 0;
		socklen_t len = sizeof(failed);
		if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0)
			failed = errno;
		if (failed) {
			errno = failed;
			return err_set(e, E_UNAVAILABLE, "connect: %m");
		}
	}
	*out_fd = STEAL_FD(fd);
	return OK;
}

static enum status ensure_connected(struct net_client *c, int64_t deadline_ns, struct err *e)
{
	if (c->http && !http_client_reusable(c->http))
		disconnect(c);
	if (c->http)
		return OK;
	struct net_address found[ADDRESSES_MAX];
	size_t count;
	enum status s = net_address_parse(c->address, false, found, ARRAY_COUNT(found), &count, e);
	if (s != OK)
		return s;
	for (size_t i = 0; i < count; i++) {
		s = connect_to(c, &found[i], deadline_ns, &c->fd, e);
		if (s == OK || s == E_TIMEOUT || s == E_CANCELED)
			break;
	}
	if (s != OK)
		return err_prefix(e, s, "%s", c->address);
	c->connects++;
	c->used = false;
	if (c->secure)
		s = net_tls_connect(&c->trust, &c->identity, c->host, &c->tls, e);
	/* The fault is in files on this host, not in the request: it may succeed once they are
	 * mended. */
	if (s == E_INVALID) {
		s = E_UNAVAILABLE;
		if (e)
			e->status = s;
		s = err_prefix(e, s, "%s", c->address);
	}
	if (s == OK)
		s = http_client_new(c->answer_max, &c->http);
	if (s != OK)
		disconnect(c);
	return s;
}

/* The bytes to send next, encrypted under TLS. */
static bool next_piece(struct net_client *c, struct str *out)
{
	struct str piece;
	if (!c->tls)
		return http_client_output(c->http, out, 1) > 0;
	/* The first read makes OpenSSL send the client's hello; later ones do no harm. */
	if (!net_tls_ready(c->tls))
		(void)net_tls_read(c->tls, c->scratch, sizeof(c->scratch));
	while (net_tls_ready(c->tls) && http_client_output(c->http, &piece, 1)) {
		size_t n = net_tls_write(c->tls, piece.p, piece.len);
		if (n == 0)
			break;
		http_client_sent(c->http, n);
	}
	*out = net_tls_output(c->tls);
	return out->len > 0;
}

/* Sends queued bytes as far as the socket takes them, SEND_ONCE_BYTES at most, so that the caller
 * of a long send checks its deadline in between. *out_left: some are left. */
static enum status send_some(struct net_client *c, bool *out_left, struct err *e)
{
	struct str piece;
	size_t sent = 0;
	*out_left = false;
	while (next_piece(c, &piece)) {
		ssize_t n = send(c->fd, piece.p, piece.len, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			*out_left = true;
			return OK;
		}
		if (n < 0) {
			return err_set(e, E_UNAVAILABLE, "send to %s: %m", c->address);
		}
		if (c->tls)
			net_tls_sent(c->tls, (size_t)n);
		else
			http_client_sent(c->http, (size_t)n);
		sent += (size_t)n;
		if (sent >= SEND_ONCE_BYTES) {
			*out_left = true;
			break;
		}
	}
	return OK;
}

/* Passes on everything that TLS has decrypted. */
static enum status take_plain(struct net_client *c, struct err *e)
{
	enum status s = OK;
	while (s == OK && net_tls_pending(c->tls)) {
		size_t n = net_tls_read(c->tls, c->scratch, sizeof(c->scratch));
		if (n)
			s = http_client_feed(c->http, c->scratch, n, e);
	}
	if (s != OK || http_client_done(c->http) || !net_tls_ended(c->tls))
		return s;
	if (net_tls_failed(c->tls))
		return err_set(
			e, E_UNAVAILABLE, "TLS with %s: %s", c->address, net_tls_why(c->tls));
	return http_client_eof(c->http, e);
}

static enum status receive_some(struct net_client *c, struct err *e)
{
	ssize_t n = recv(c->fd, c->scratch, sizeof(c->scratch), 0);
	if (n > 0 && c->tls) {
		(void)net_tls_put(c->tls, c->scratch, (size_t)n);
		return take_plain(c, e);
	}
	if (n > 0)
		return http_client_feed(c->http, c->scratch, (size_t)n, e);
	if (n == 0)
		return http_client_eof(c->http, e);
	if (errno == EAGAIN || errno == EINTR)
		return OK;
	return err_set(e, E_UNAVAILABLE, "receive from %s: %m", c->address);
}

/* Sends and receives until the answer is complete. */
static enum status exchange(struct net_client *c, int64_t deadline_ns, struct err *e)
{
	for (;;) {
		bool left;
		enum status s = send_some(c, &left, e);
		/* Sending fails if a server refuses a request in the middle of its body; its answer
		 * may have come already. */
		if (s != OK) {
			enum status received = receive_some(c, NULL);
			return received == OK && http_client_done(c->http) ? OK : s;
		}
		if (http_client_done(c->http))
			return OK;
		s = wait_for(c, c->fd, left ? POLLIN | POLLOUT : POLLIN, deadline_ns, e);
		if (s == OK)
			s = receive_some(c, e);
		if (s != OK)
			return s;
	}
}

struct call {
	struct str target;
	const struct http_header *headers;
	size_t header_count;
	struct str prefix, body;
	http_more_fn *more; /* gives the bytes that follow `body`; NULL: none */
	void *more_ctx;
};

static enum status run_call(
	struct net_client *c, const struct call *call, int64_t deadline_ns, struct err *e)
{
	struct http_header headers[OWN_HEADERS_MAX + NET_CLIENT_HEADERS_MAX];
	size_t count = 0;
	assert(call->header_count <= OWN_HEADERS_MAX);
	for (size_t i = 0; i < call->header_count; i++)
		headers[count++] = call->headers[i];
	for (size_t i = 0; i < c->header_count; i++)
		headers[count++] = (struct http_header){ str_of(c->headers[i].name),
			str_of(c->headers[i].value) };
	for (int attempt = 0;; attempt++) {
		enum status s = ensure_connected(c, deadline_ns, e);
		if (s != OK)
			return s;
		bool kept = c->used;
		if (call->more)
			http_client_continue(c->http, call->more, call->more_ctx);
		s = http_client_start(c->http, "POST", str_of(c->authority), call->target, headers,
			count, call->prefix, call->body, e);
		if (s == OK)
			s = exchange(c, deadline_ns, e);
		if (s == OK) {
			c->used = true;
			return OK;
		}
		bool begun = c->http && http_client_status(c->http) != 0;
		disconnect(c);
		if (s != E_UNAVAILABLE || !kept || begun || attempt > 0)
			return s;
	}
}

static int64_t deadline_of(int64_t timeout_ns)
{
	int64_t at;
	return timeout_ns <= 0 || __builtin_add_overflow(clock_monotonic_ns(), timeout_ns, &at)
		       ? INT64_MAX
		       : at;
}

/* ---- gRPC ---- */

static enum status status_of_grpc(int code)
{
	/* Several values of enum status have the same gRPC code; this takes the one that a caller
	 * can act on. */
	switch (code) {
	case 0:
		return OK;
	case 1:
		return E_CANCELED;
	case 3:
	case 9:
	case 11:
		return E_INVALID;
	case 4:
		return E_TIMEOUT;
	case 5:
		return E_NOTFOUND;
	case 6:
		return E_EXISTS;
	case 7:
	case 16:
		return E_DENIED;
	case 8:
		return E_QUOTA;
	case 12:
		return E_UNSUPPORTED;
	case 15:
		return E_CORRUPT;
	case 2:
	case 10:
	case 14:
		return E_UNAVAILABLE;
	default:
		return E_IO;
	}
}

static bool worth_retrying(enum status s)
{
	return s == E_UNAVAILABLE || s == E_TIMEOUT || s == E_QUOTA || s == E_IO || s == E_CANCELED;
}

static enum status no_grpc_status(int http_status, struct err *e)
{
	enum status s = http_status == 404                         ? E_UNSUPPORTED
			: http_status == 401 || http_status == 403 ? E_DENIED
			: http_status == 400                       ? E_INVALID
								   : E_UNAVAILABLE;
	return err_set(e, s, "HTTP status %d without a grpc-status", http_status);
}

static enum status take_answer(struct net_client *c, struct buf *out, struct err *e)
{
	struct str code_text = http_client_header(c->http, "grpc-status");
	uint64_t code;
	if (!str_parse_u64(code_text, 10, &code) || code > 16)
		return no_grpc_status(http_client_status(c->http), e);
	enum status s = status_of_grpc((int)code);
	if (s != OK) {
		CLEANUP(buf_deinit) struct buf text;
		buf_init(&text, 4096);
		http_grpc_get_text(&text, http_client_header(c->http, "grpc-message"));
		return err_set(e, s, "%.*s", STR_ARG(buf_view(&text)));
	}
	struct str body = http_client_body(c->http), message;
	struct http_grpc_frame f;
	s = http_grpc_next(&body, c->answer_max, &f, e);
	if (s == E_UNAVAILABLE || (s == OK && body.len))
		return err_set(e, E_IO, "the answer is not one whole message");
	CLEANUP(buf_deinit) struct buf scratch;
	buf_init(&scratch, c->answer_max);
	if (s == OK)
		s = http_grpc_message(
			&f, http_client_header(c->http, "grpc-encoding"), &scratch, &message, e);
	if (s != OK)
		return s;
	buf_str(out, message);
	return buf_status(out);
}

/* The part common to all calls; `call` has the body. */
static enum status run_grpc(struct net_client *c, const char *path, struct call call,
	int64_t timeout_ns, struct buf *out, struct err *e)
{
	char timeout[16];
	struct http_header headers[5] = {
		{ STR("content-type"), STR("application/grpc") },
		{ STR("te"), STR("trailers") },
		{ STR("user-agent"), STR("firn/" FIRN_VERSION) },
		{ STR("grpc-accept-encoding"), STR("identity,gzip") },
	};
	size_t count = 4;
	if (timeout_ns > 0 && timeout_ns != INT64_MAX) {
		int64_t ms = MIN(timeout_ns / NS_PER_MS + 1, (int64_t)99999999);
		snprintf(timeout, sizeof(timeout), "%lldm", (long long)ms);
		headers[count++] = (struct http_header){ STR("grpc-timeout"), str_of(timeout) };
	}
	call.target = str_of(path);
	call.headers = headers;
	call.header_count = count;
	enum status s = run_call(c, &call, deadline_of(timeout_ns), e);
	return s == OK ? take_answer(c, out, e) : s;
}

static enum status put_prefix(struct buf *prefix, struct str message, struct err *e)
{
	if (message.len > NET_BODY_MAX)
		return err_set(e, E_LIMIT, "message of %zu bytes; the limit is %zu", message.len,
			NET_BODY_MAX);
	buf_clear(prefix);
	http_grpc_put_prefix(prefix, 0, message.len);
	return buf_status(prefix);
}

enum status net_client_rpc(struct net_client *c, const char *path, struct str message,
	int64_t timeout_ns, struct buf *out, bool *out_retry, struct err *e)
{
	CLEANUP(buf_deinit) struct buf prefix;
	buf_init(&prefix, HTTP_GRPC_PREFIX_BYTES);
	*out_retry = false;
	enum status s = put_prefix(&prefix, message, e);
	if (s != OK)
		return s;
	s = run_grpc(c, path, (struct call){ .prefix = buf_view(&prefix), .body = message },
		timeout_ns, out, e);
	*out_retry = worth_retrying(s);
	return s;
}

struct sending {
	net_message_fn *next;
	void *ctx;
	struct buf prefix;
	enum status status; /* the result of `next`, and its error */
	struct err err;
};

static enum status more_messages(void *ctx, struct str *prefix, struct str *body, bool *out_end)
{
	struct sending *x = ctx;
	struct str message = STR("");
	x->status = x->next(x->ctx, &message, out_end, &x->err);
	if (x->status == OK && !*out_end)
		x->status = put_prefix(&x->prefix, message, &x->err);
	*prefix = *out_end ? STR("") : buf_view(&x->prefix);
	*body = *out_end ? STR("") : message;
	return x->status;
}

enum status net_client_send(struct net_client *c, const char *path, net_message_fn *next, void *ctx,
	int64_t timeout_ns, struct buf *out, bool *out_retry, struct err *e)
{
	struct sending x = { .next = next, .ctx = ctx };
	buf_init(&x.prefix, HTTP_GRPC_PREFIX_BYTES);
	disconnect(c); /* a kept connection may be gone, and the messages of `next` cannot be sent
			  again */
	enum status s = run_grpc(c, path, (struct call){ .more = more_messages, .more_ctx = &x },
		timeout_ns, out, e);
	if (x.status != OK)
		s = err_set(e, x.status, "%s", x.err.text);
	buf_deinit(&x.prefix);
	disconnect(c);
	*out_retry = worth_retrying(s);
	return s;
}
