/* SPDX-License-Identifier: Apache-2.0 */
/* A server on a free port with a few handlers, and raw sockets that talk to it. */
#pragma once

#include "base/clock.h"
#include "net/net.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_int peer_calls;    /* of any handler */
static atomic_int peer_canceled; /* of peer_wait, by gone() */
static atomic_bool peer_release; /* lets peer_wait go on */

static void peer_echo(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&peer_calls, 1);
	buf_str(&out->body, r->body);
	out->content_type = "text/plain";
}

static void peer_own(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	buf_str(&out->body, net_header_find(r, "x-own"));
}

static void peer_show(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&peer_calls, 1);
	buf_printf(&out->body, "%.*s %.*s?%.*s", STR_ARG(r->method), STR_ARG(r->path),
		STR_ARG(r->query));
	struct str own = net_header_find(r, "x-own");
	if (own.len)
		buf_printf(&out->body, " %.*s", STR_ARG(own));
	out->content_type = "text/plain";
	snprintf(out->headers, sizeof(out->headers), "X-Shown: yes\r\nX-Two: 2\r\n");
}

/* "12 bytes, last 65" */
static void peer_put(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&peer_calls, 1);
	buf_printf(&out->body, "%zu bytes, last %d", r->body.len,
		r->body.len ? r->body.p[r->body.len - 1] : -1);
	out->content_type = "text/plain";
}

/* Until peer_release, or until the client is gone. */
static void peer_wait(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	atomic_fetch_add(&peer_calls, 1);
	while (!atomic_load(&peer_release)) {
		if (r->gone(r)) {
			struct err e;
			atomic_fetch_add(&peer_canceled, 1);
			err_set(&e, E_CANCELED, "gone");
			net_fail(out, E_CANCELED, &e);
			return;
		}
		usleep(1000);
	}
	buf_cstr(&out->body, "waited");
}

static void peer_large(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	uint8_t *p = buf_extend(&out->body, 8 << 20);
	for (size_t i = 0; p && i < 8 << 20; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 11));
}

/* More than the sockets' buffers hold, however they grow (tcp_wmem and tcp_rmem: 10 MiB). */
static void peer_larger(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	buf_zero(&out->body, 32 << 20);
}

static void peer_text(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	for (int i = 0; i < 1000; i++)
		buf_cstr(&out->body, "{\"same\":1},\n");
	out->content_type = "application/json";
}

static void peer_fail(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	struct err e;
	buf_cstr(&out->body, "half an answer");
	err_set(&e, E_QUOTA, "too much of \"it\" \xC3\xA9");
	net_fail(out, E_QUOTA, &e);
}

static const struct pb_member peer_pair_members[] = { PB_FIELD("label_name", 1, STRING),
	PB_FIELD("count", 2, INT64), PB_LIST("match", 3, STRING) };
static const struct pb_desc peer_pair = PB_DESC("t.Pair", peer_pair_members);
static const struct pb_method peer_unary = { "Echo", &peer_pair, &peer_pair, false, false };
static const struct pb_method peer_client = { "Sum", &peer_pair, &peer_pair, true, false };
static const struct pb_method peer_both = { "Chat", &peer_pair, &peer_pair, true, true };

static enum status peer_stream_status; /* of the last net_stream_ call that failed */
static atomic_bool peer_hold;          /* peer_sum and peer_chat do not receive */

/* Adds lengths; the answer is their sum as text. */
static void peer_sum(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	size_t bytes = 0, count = 0;
	bool end = false;
	(void)ctx;
	(void)r;
	atomic_fetch_add(&peer_calls, 1);
	for (;;) {
		struct str message;
		struct err e;
		while (atomic_load(&peer_hold))
			usleep(1000);
		enum status s = net_stream_receive(stream, &message, &end, &e);
		if (s != OK) {
			peer_stream_status = s;
			atomic_fetch_add(&peer_canceled, 1);
			net_fail(out, s, &e);
			return;
		}
		if (end)
			break;
		bytes += message.len;
		count++;
	}
	buf_printf(&out->body, "%zu in %zu", bytes, count);
}

/* Sends back what comes; "fail" ends it, "many" is answered with 10,000 messages. */
static void peer_chat(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	(void)ctx;
	(void)r;
	atomic_fetch_add(&peer_calls, 1);
	for (;;) {
		struct str message;
		struct err e;
		bool end = false;
		while (atomic_load(&peer_hold))
			usleep(1000);
		enum status s = net_stream_receive(stream, &message, &end, &e);
		if (s == OK && end)
			return;
		if (s == OK && str_eq(message, STR("fail")))
			s = err_set(&e, E_INVALID, "as you wish");
		size_t times = str_eq(message, STR("many")) ? 10000 : 1;
		for (size_t i = 0; s == OK && i < times; i++)
			s = net_stream_send(stream, message, &e);
		if (s != OK) {
			peer_stream_status = s;
			atomic_fetch_add(&peer_canceled, 1);
			net_fail(out, s, &e);
			return;
		}
	}
}

/* Answers t.Pair with the number of messages in `count`; fails where there are none. */
static void peer_count(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct err e;
	struct str message;
	bool end = false;
	uint64_t count = 0;
	enum status s;
	(void)ctx;
	(void)r;
	while ((s = net_stream_receive(stream, &message, &end, &e)) == OK && !end)
		count++;
	if (s == OK && count == 0)
		s = err_set(&e, E_NOTFOUND, "no message");
	if (s != OK)
		net_fail(out, s, &e);
	else
		pb_put_u64(&out->body, 2, count);
}

/* A body in three pieces: "?known" says its length before, "?fail" fails behind the first, "?whole"
 * answers without a piece. */
static void peer_pieces(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	static char piece[100000];
	struct err e;
	enum status s = OK;
	(void)ctx;
	out->content_type = "text/plain";
	memset(piece, 'x', sizeof(piece));
	if (str_eq(r->query, STR("whole"))) {
		buf_cstr(&out->body, "whole");
		return;
	}
	if (!str_eq(r->query, STR("unknown")))
		out->stream_bytes = 3 * sizeof(piece);
	for (int i = 0; i < 3 && s == OK; i++) {
		if (i == 1 && str_eq(r->query, STR("fail")))
			s = err_set(&e, E_IO, "the second piece cannot be read");
		else
			s = net_stream_send(stream, str_make(piece, sizeof(piece)), &e);
	}
	net_fail(out, s, &e);
}

static const struct net_route peer_routes[] = {
	{ .method = "GET", .path = "/pieces", .stream_fn = peer_pieces },
	{ .method = "POST", .path = "/echo", .fn = peer_echo },
	{ .method = "PUT", .path = "/put", .fn = peer_put },
	{ .method = "GET", .path = "/show/*", .fn = peer_show },
	{ .method = "GET", .path = "/fast", .fn = peer_show, .on_loop = true },
	{ .method = "GET", .path = "/wait", .fn = peer_wait },
	{ .method = "GET", .path = "/large", .fn = peer_large },
	{ .method = "GET", .path = "/larger", .fn = peer_larger },
	{ .method = "GET", .path = "/text", .fn = peer_text },
	{ .method = "GET", .path = "/fail", .fn = peer_fail },
	{ .method = "POST", .path = "/t.Test/Own", .fn = peer_own, .is_rpc = true },
	{ .method = "POST", .path = "/t.Test/Echo", .fn = peer_echo, .is_rpc = true },
	{ .method = "POST", .path = "/t.Test/Large", .fn = peer_large, .is_rpc = true },
	{ .method = "POST", .path = "/t.Test/Text", .fn = peer_text, .is_rpc = true },
	{ .method = "POST", .path = "/t.Test/Fail", .fn = peer_fail, .is_rpc = true },
	{ .method = "POST", .path = "/t.Test/Wait", .fn = peer_wait, .is_rpc = true },
	{ .method = "POST",
		.path = "/t.Test/Json",
		.fn = peer_echo,
		.is_rpc = true,
		.rpc = &peer_unary },
	{ .method = "GET",
		.path = "/rest/{label_name}/values",
		.fn = peer_echo,
		.rest = true,
		.rpc = &peer_unary },
	{ .method = "POST",
		.path = "/rest/json",
		.fn = peer_echo,
		.rest = true,
		.rpc = &peer_unary },
	{ .method = "GET",
		.path = "/rest/fail",
		.fn = peer_fail,
		.rest = true,
		.rpc = &peer_unary },
	{ .method = "GET",
		.path = "/rest/torn",
		.fn = peer_text,
		.rest = true,
		.rpc = &peer_unary },
	{ .method = "POST",
		.path = "/rest/count",
		.stream_fn = peer_count,
		.rest = true,
		.rpc = &peer_client },
	{ .method = "POST",
		.path = "/rest/chat",
		.stream_fn = peer_chat,
		.rest = true,
		.rpc = &peer_both },
	{ .method = "POST",
		.path = "/t.Test/Sum",
		.stream_fn = peer_sum,
		.is_rpc = true,
		.rpc = &peer_client },
	{ .method = "POST",
		.path = "/t.Test/Chat",
		.stream_fn = peer_chat,
		.is_rpc = true,
		.rpc = &peer_both },
};

static inline struct net_server_config peer_config(void)
{
	struct net_server_config c;
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	c.workers = 3;
	return c;
}

static inline struct net_server *peer_start(const struct net_server_config *c)
{
	struct net_server *s = NULL;
	struct err e;
	atomic_store(&peer_calls, 0);
	atomic_store(&peer_canceled, 0);
	atomic_store(&peer_release, false);
	CHECK_OK(net_server_start(c, peer_routes, ARRAY_COUNT(peer_routes), &s, &e), &e);
	return s;
}

/* A value of the server's metrics; -1: no such line. */
static inline int64_t peer_metric(struct net_server *s, const char *name)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 20);
	net_server_write_metrics(s, &b);
	struct str rest = buf_view(&b), line;
	while (str_split(&rest, '\n', &line)) {
		int64_t v;
		size_t space = str_rindex(line, ' ');
		if (str_eq(str_sub(line, 0, space), str_of(name)) &&
			str_parse_i64(str_sub(line, space + 1, line.len), &v))
			return v;
	}
	return -1;
}

/* Waits up to two minutes for something that another thread brings about. */
#define PEER_UNTIL(x)                                                   \
	do {                                                            \
		int64_t end_ = clock_monotonic_ns() + 120 * NS_PER_SEC; \
		while (!(x) && clock_monotonic_ns() < end_)             \
			usleep(2000);                                   \
		CHECK(x);                                               \
	} while (0)

/* ---- raw sockets ---- */

static inline int peer_connect(const struct net_server *s)
{
	struct str port = str_of(net_server_address(s));
	uint64_t n = 0;
	CHECK(str_parse_u64(str_sub(port, str_rindex(port, ':') + 1, port.len), 10, &n));
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)n),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	return fd;
}

/* False: the server has closed. */
static inline bool peer_send(int fd, const void *bytes, size_t len)
{
	const char *p = (const char *)bytes;
	while (len) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL);
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static inline bool peer_send_text(int fd, const char *text)
{
	return peer_send(fd, text, strlen(text));
}

/* Everything up to the end of the connection, or until `until` is in it, or until half a minute
 * without a byte. True: the end. */
static inline bool peer_receive(int fd, struct buf *out, const char *until)
{
	char chunk[65536];
	for (;;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		if (poll(&p, 1, 30000) <= 0)
			return false;
		ssize_t n = recv(fd, chunk, sizeof(chunk), 0);
		if (n <= 0)
			return true;
		buf_put(out, chunk, (size_t)n);
		if (until && memmem(out->data, out->len, until, strlen(until)))
			return false;
	}
}

/* One exchange on a connection of its own, with "connection: close" expected in `request`. */
static inline void peer_exchange(
	const struct net_server *s, const void *request, size_t len, struct buf *out)
{
	int fd = peer_connect(s);
	(void)peer_send(fd, request, len);
	CHECK(peer_receive(fd, out, NULL));
	close(fd);
}
