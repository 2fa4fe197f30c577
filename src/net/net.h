/* SPDX-License-Identifier: Apache-2.0 */
/*
 * net: sockets, a loop and workers around http: a server of handlers on one port (HTTP/1.1, HTTP/2;
 * gRPC, gRPC-Web, Connect and REST in JSON), and a
 * client of gRPC.
 *
 * Layer 3 (may use base, os, codec, http, pb). Handlers run on worker threads and see whole,
 * already decompressed messages in protobuf, whatever framing they came in; the loop's thread does
 * all I/O.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"
#include "http/http.h"
#include "os/os.h"
#include "pb/pb.h"

#define NET_BODY_MAX ((size_t)64 << 20)
#define NET_ANSWER_MAX ((size_t)256 << 20)
/* What OpenSSL holds for a connection before its handshake is over. */
#define NET_HANDSHAKE_BYTES ((size_t)48 << 10)
#define NET_COMPRESS_MIN 1024 /* answers shorter than this are not compressed */

/* The sender of a request, as the guard found it. */
#define NET_TENANT_BYTES 65
#define NET_NAME_BYTES 129
struct net_caller {
	uint32_t scopes;
	bool has_tenant; /* it may speak for `tenant` only */
	char tenant[NET_TENANT_BYTES];
	char name[NET_NAME_BYTES];
	int64_t until_ns; /* monotonic: when its credentials expire; 0: never */
};

struct net_request {
	struct str method;
	struct str path;                   /* percent-decoded, without the query */
	struct str query;                  /* raw, after '?' */
	const struct http_header *headers; /* names in lower case */
	size_t header_count;
	struct str body;          /* RPC: the message alone, decompressed */
	bool is_rpc;              /* came as gRPC, gRPC-Web or Connect */
	int64_t deadline_ns;      /* monotonic; INT64_MAX: none */
	const char *peer;         /* "127.0.0.1:1234" */
	struct net_caller caller; /* all 0 without a guard */
	/* True once the client has gone or the deadline has passed. A handler that runs long calls
	 * it now and then, and ends with E_CANCELED. A client that only shut down its sending side
	 * counts as gone, as in most servers. */
	bool (*gone)(const struct net_request *r);
	void *conn; /* net's own */
};

struct net_response {
	int http_status;          /* 200 unless set */
	const char *content_type; /* NULL for RPC: net knows */
	struct buf body;          /* ready to be written; HTTP body or RPC message */
	char headers[1024]; /* further lines "name: value\r\n", "" for none; cut when too long */
	/* RPC: anything but OK makes this the status, with `message` as its text. For plain HTTP
	 * net_fail() writes the same as a JSON body. */
	enum status status;
	char message[ERR_TEXT_MAX];
	bool no_compress; /* the body is compressed already */
	/* For a stream over plain HTTP, to be set before its first piece: the bytes of all pieces;
	 * 0: not known. */
	uint64_t stream_bytes;
};

/* A request whose handler has returned; called by its thread, before the answer is sent. Not for
 * routes that are `on_loop`, nor where the guard refused. */
struct net_handled {
	const struct net_request *request;
	const char *route; /* its path, with {fields} and '*' */
	int http_status;
	enum status status;
	int64_t begun_ns; /* monotonic: when its head came */
};
typedef void net_handled_fn(void *ctx, const struct net_handled *h);

typedef void net_handler_fn(void *ctx, const struct net_request *r, struct net_response *out);

/* ---- streams: RPCs with more than one message on either side ----
 *
 * The handler of a stream has a thread of its own until it returns, and may block in the functions
 * below. What it leaves in `out` ends the stream: its status, and where the client alone streams,
 * `body` as the one answer. Messages of the peer are read ahead up to NET_STREAM_AHEAD_MAX; beyond
 * that the peer's window stays closed. */

#define NET_STREAM_AHEAD_MAX ((size_t)256 << 10)  /* whole messages that wait for the handler */
#define NET_STREAM_UNSENT_MAX ((size_t)256 << 10) /* beyond that net_stream_send() waits */

struct net_stream;
typedef void net_stream_fn(void *ctx, const struct net_request *r, struct net_stream *stream,
	struct net_response *out);

/* The next message, valid until the next call. OK with *out_end: the client has sent its last.
 * E_CANCELED: it has gone; E_TIMEOUT: nothing came within the route's patience, or the deadline
 * passed; E_UNAVAILABLE: the server stops; E_INVALID, E_LIMIT, E_UNSUPPORTED: a bad frame. To be
 * handed on with net_fail(). */
NODISCARD enum status net_stream_receive(
	struct net_stream *stream, struct str *out, bool *out_end, struct err *e);
/* Waits while too much is unsent; fails as above. */
NODISCARD enum status net_stream_send(struct net_stream *stream, struct str message, struct err *e);
/* Waits that long (monotonic) for the client to go or the server to stop: E_CANCELED,
 * E_UNAVAILABLE; OK: neither has happened. If a client of HTTP/1.1 hangs up, the wait goes on to
 * its end, and then tells. */
NODISCARD enum status net_stream_wait(struct net_stream *stream, int64_t until_ns, struct err *e);

/* Each lane has workers of its own, so that requests of one do not wait for those of another. */
#define NET_LANES 4

struct net_route {
	const char *method; /* "GET", "POST", …; NULL: any */
	/* Exact, or a prefix that ends in '*'. With `rest`: segments "{name}" are fields. */
	const char *path;
	net_handler_fn *fn;
	void *ctx;
	bool is_rpc;  /* /package.Service/Method: body is the message in every framing */
	uint8_t lane; /* below NET_LANES: whose workers it waits for */
	bool on_loop; /* cheap and never blocks: runs on the loop's thread itself */
	/* RPC: its messages; NULL: no JSON. With `rest` required. */
	const struct pb_method *rpc;
	/* The body, or for GET the query, is the RPC's message in JSON (grpc-gateway's mapping). */
	bool rest;
	/* In place of `fn` if either side streams. Over plain HTTP each message is a piece of the
	 * body. A handler that sends no message answers as `fn` does. If it fails after the first
	 * message, the answer breaks off. */
	net_stream_fn *stream_fn;
	int64_t patience_ns; /* of a stream without a message; 0: config.stream_idle_ns */
	uint32_t scope;      /* the guard's */
};

/* Authorization, in front of every route. First on the loop, by the head alone, where it must not
 * block and may say NET_GUARD_BLOCKS; then it is asked again with `may_block` on a worker's thread,
 * and nothing more of the body is read until it has answered; of a stream whose handler runs while
 * messages come, on the handler's own. NET_GUARD_NO: the error says why, `challenge` (of so many
 * bytes) may get further header lines "name: value\r\n". */
enum net_verdict { NET_GUARD_YES, NET_GUARD_NO, NET_GUARD_BLOCKS };
#define NET_CHALLENGE_BYTES 128
typedef enum net_verdict net_guard_fn(void *ctx, const struct net_request *r, uint32_t scope,
	bool may_block, struct net_caller *out, char challenge[NET_CHALLENGE_BYTES], struct err *e);

/* First header of that (lower-case) name; "" when absent. */
struct str net_header_find(const struct net_request *r, const char *name);
/* First value of `key` in the query string, percent-decoded into `a`; false when absent. The n-th
 * with `n` counting from 0. */
struct arena;
bool net_query_param(
	const struct net_request *r, const char *key, size_t n, struct arena *a, struct str *out);
/* Answer with status and sentence: JSON {"error":…,"code":…} for plain HTTP, grpc-status for RPC.
 */
void net_fail(struct net_response *out, enum status s, const struct err *e);

struct net_server_config {
	const char *address; /* "HOST:PORT", ":PORT", "unix:/path"; port 0: any free one */
	int listen_fd; /* net_listen() has been there already; taken over, `address` is its text; -1
			*/
	uint32_t workers;                 /* handler threads of lane 0, */
	uint32_t lane_workers[NET_LANES]; /* and of the others; 0: its routes are lane 0's */
	/* A request waits so long for a worker (or until its deadline), then it is answered with
	 * 503. */
	int64_t turn_timeout_ns;
	/* Of the requests that wait in a lane, those of the tenant with the fewest running go
	 * first. The tenant is that to which the guard binds the sender, else the value of this
	 * header (in lower case; NULL: none). */
	const char *share_header;
	uint32_t connections_max;
	/* TLS: connections whose handshake is not over, each NET_HANDSHAKE_BYTES. If there are
	 * more, the oldest is closed once it is a second old; until then no more are accepted. */
	uint32_t handshakes_max;
	size_t body_max;
	/* Bodies of requests and answers in memory, all together. Above it, requests without a
	 * worker wait, and go on one at a time. After turn_timeout_ns, or above twice this size,
	 * they are answered with 503. */
	size_t memory_max;
	int64_t idle_timeout_ns;
	int64_t header_timeout_ns;
	/* How long a body or an answer may make no progress, and over HTTP/2 how long a request may
	 * go on after its answer. */
	int64_t stall_timeout_ns;
	int64_t drain_timeout_ns;
	uint32_t streams_max; /* threads of streaming RPCs; more are refused */
	int64_t stream_idle_ns;
	/* If a certificate is named, only TLS 1.2 and 1.3 with ALPN are spoken. The files are PEM
	 * and are read again when they change. If a CA is named, clients must have a certificate
	 * from it. The texts must outlive the server. */
	const char *tls_cert_file;
	const char *tls_key_file;
	const char *tls_client_ca_file;
	bool tls_client_optional; /* they need not have one */
	bool tls13_only;
	net_guard_fn *guard; /* NULL: no authentication */
	void *guard_ctx;
	/* Names and values that each answer gets; they outlive the server. */
	const struct http_header *headers;
	size_t header_count;
	/* "/firn": only paths below it are served, but gRPC at the root too. "" or NULL: none. */
	const char *path_prefix;
	/* Origins of other pages that may use this server, "*" for all; NULL at the end. */
	const char *const *cors_origins;
	/* On a loopback address: refuse requests for a host that is neither localhost, nor an
	 * address, nor one of these (NULL at the end). */
	bool check_host;
	const char *const *hosts;
	net_handled_fn *handled; /* NULL: no callback */
	void *handled_ctx;
};
void net_server_config_default(struct net_server_config *c);

/* Whether other hosts can reach a server at this address. No: a socket file, a loopback address, or
 * a text that is no address. Yes: also a name that does not resolve now, since it may a moment
 * later. */
bool net_address_is_public(const char *text);
/* Only binds and listens: for a port that needs privileges which are given up later. *out_text: the
 * address, as net_server_address() gives it. */
NODISCARD enum status net_listen(
	const char *text, int *out_fd, char *out_text, size_t out_size, struct err *e);

struct net_server;
/* Binds, listens and serves until net_server_stop(). The routes are copied; their texts are not.
 * The first route that fits is taken. */
NODISCARD enum status net_server_start(const struct net_server_config *c,
	const struct net_route *routes, size_t route_count, struct net_server **out, struct err *e);
/* "127.0.0.1:7070": where it really listens. */
const char *net_server_address(const struct net_server *s);
/* True: the loop, which all connections need, has run since the last call. It also wakes the loop,
 * so that a healthy one will have run before the next call. To be called by one thread. */
bool net_server_turns(struct net_server *s);
/* Accepts no new connections, answers the running requests (for drain_timeout_ns at most), then
 * closes everything. */
void net_server_stop(struct net_server *s);

#define NET_METRICS(X)                                                                            \
	X(connections, GAUGE, "firn_net_connections", "Open connections.")                        \
	X(accepted, COUNTER, "firn_net_connections_accepted_total", "Connections accepted.")      \
	X(accept_failed, COUNTER, "firn_net_accept_failures_total",                               \
		"Times that accepting failed (descriptors, memory).")                             \
	X(accept_paused, COUNTER, "firn_net_accept_pauses_total",                                 \
		"Times that the limit of connections was reached.")                               \
	X(requests, COUNTER, "firn_net_requests_total", "Requests.")                              \
	X(answers_ok, COUNTER, "firn_net_answers_total{class=\"ok\"}",                            \
		"Answers: ok, the client's fault, the server's fault.")                           \
	X(answers_client, COUNTER, "firn_net_answers_total{class=\"client\"}",                    \
		"Answers: ok, the client's fault, the server's fault.")                           \
	X(answers_server, COUNTER, "firn_net_answers_total{class=\"server\"}",                    \
		"Answers: ok, the client's fault, the server's fault.")                           \
	X(canceled, COUNTER, "firn_net_requests_canceled_total",                                  \
		"Requests whose client went away before the answer.")                             \
	X(malformed, COUNTER, "firn_net_malformed_total",                                         \
		"Connections ended for what is not HTTP.")                                        \
	X(too_large, COUNTER, "firn_net_too_large_total",                                         \
		"Requests whose body is longer than the limit.")                                  \
	X(overloaded, COUNTER, "firn_net_overloaded_total",                                       \
		"Requests refused because queue or memory were full.")                            \
	X(paused, COUNTER, "firn_net_paused_total",                                               \
		"Times that a request was slowed down because bodies took too much memory.")      \
	X(turns_late, COUNTER, "firn_net_turns_late_total",                                       \
		"Requests refused because they had waited too long for their turn.")              \
	X(timeouts, COUNTER, "firn_net_timeouts_total", "Connections ended for being too slow.")  \
	X(idle_closed, COUNTER, "firn_net_idle_closed_total", "Idle connections closed.")         \
	X(streams, GAUGE, "firn_net_streams", "Streaming calls under way.")                       \
	X(streams_refused, COUNTER, "firn_net_streams_refused_total",                             \
		"Streaming calls refused because there were too many.")                           \
	X(tls_failed, COUNTER, "firn_net_tls_failures_total",                                     \
		"Connections ended for failures of TLS, most of them in the handshake.")          \
	X(handshakes, GAUGE, "firn_net_tls_handshakes", "Connections in TLS' handshake.")         \
	X(handshakes_dropped, COUNTER, "firn_net_tls_handshakes_dropped_total",                   \
		"Unfinished handshakes that gave way to younger ones.")                           \
	X(tls_reloads, COUNTER, "firn_net_tls_reloads_total", "Times that certificates changed.") \
	X(tls_reload_failed, COUNTER, "firn_net_tls_reload_failures_total",                       \
		"Times that changed certificates could not be used; the old ones still are.")     \
	X(bytes_in, COUNTER, "firn_net_received_bytes_total", "Bytes received.")                  \
	X(bytes_out, COUNTER, "firn_net_sent_bytes_total", "Bytes sent.")                         \
	X(memory, GAUGE, "firn_net_body_bytes", "Bytes of bodies in memory.")
struct net_metrics {
	NET_METRICS(METRIC_FIELD)
};
void net_server_write_metrics(struct net_server *s, struct buf *out);

/* ---- client of gRPC: one connection, one request at a time; blocking; not thread safe ---- */

struct net_client;
/* "HOST:PORT", "http://HOST:PORT", "https://HOST:PORT", "unix:/path". Connects lazily, again after
 * an error. The server of https:// must be trusted by this host (SSL_CERT_FILE names other
 * authorities). */
NODISCARD enum status net_client_new(const char *address, struct net_client **out, struct err *e);
/* https: trust this certificate, or what it has signed, under whatever name. The text is kept. */
void net_client_pin(struct net_client *c, const char *cert_file);
/* https: trust what the authorities in this file (PEM) have signed, and not the host's; the name is
 * checked. The text is kept. */
void net_client_trust(struct net_client *c, const char *ca_file);
/* https: accept any certificate. */
void net_client_trust_anybody(struct net_client *c);
/* https: the certificate (chain) and key that we show to a server that asks; PEM, read for each
 * connection. The texts are kept. */
void net_client_identity(struct net_client *c, const char *cert_file, const char *key_file);
/* Sent with each request from now on; a header of that name is replaced, NULL takes it out. Both
 * are copied. E_LIMIT: more than NET_CLIENT_HEADERS_MAX; E_INVALID: not a header. */
#define NET_CLIENT_HEADERS_MAX 16
NODISCARD enum status net_client_header(
	struct net_client *c, const char *name, const char *value, struct err *e);
/* Longer answers are refused with E_LIMIT; NET_ANSWER_MAX unless said. */
void net_client_limit(struct net_client *c, size_t answer_bytes_max);
/* A call ends with E_CANCELED once `wake_fd` can be read (-1: none), and with E_TIMEOUT when
 * nothing has come or gone for patience_ns (0: as long as the call itself may take). */
void net_client_interrupt(struct net_client *c, int wake_fd, int64_t patience_ns);
/* How often it has connected so far. */
uint64_t net_client_connects(const struct net_client *c);
void net_client_free(struct net_client *c);
/* gRPC unary over HTTP/2 (cleartext, prior knowledge). `path` is "/package.Service/Method". OK when
 * grpc-status is 0; else the status of the answer (E_UNAVAILABLE when there was none) and its text
 * in `e`. *out_retry: it makes sense to try again later. */
NODISCARD enum status net_client_rpc(struct net_client *c, const char *path, struct str message,
	int64_t timeout_ns, struct buf *out, bool *out_retry, struct err *e);
/* The next message of a call: OK with *out_end: there is none. It lives until the next call. */
typedef enum status net_message_fn(void *ctx, struct str *out, bool *out_end, struct err *e);
/* The same for a method that takes a stream of messages and gives one answer. It has a connection
 * of its own and is not tried again; where `next` fails, its status is that of the call. */
NODISCARD enum status net_client_send(struct net_client *c, const char *path, net_message_fn *next,
	void *ctx, int64_t timeout_ns, struct buf *out, bool *out_retry, struct err *e);
