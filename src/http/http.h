/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: HTTP/1.1, HTTP/2 and gRPC framing without sockets: bytes in, events out, bytes out.
 *
 * Layer 2 (may use base, codec). Runs on any thread and under any fuzzer. HTTP/1 is a strict parser
 * of our own (RFC 9112: CRLF only, Host required, no obs-fold, no smuggling through
 * Content-Length and Transfer-Encoding); HTTP/2 is libnghttp2 with limits.
 *
 * Thread safety: a connection, with its streams, is one thread's at a time; only a stream's request
 * (immutable) and its references may be used from others.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

#include <stdlib.h>

/* Request line and headers; over HTTP/2 name + value + 32 each. */
#define HTTP_HEAD_BYTES_MAX 32768
#define HTTP_HEADERS_MAX 100
#define HTTP_STREAMS_MAX 128    /* at a time, HTTP/2 */
#define HTTP_FEED_MAX 65536     /* bytes of one http_conn_feed() */
#define HTTP_OUT_HIGH_MAX 65536 /* unsent bytes above which no further input is looked at */

struct http_header {
	struct str name; /* lower case */
	struct str value;
};

/* ---- server side ---- */

enum http_version { HTTP_1_0, HTTP_1_1, HTTP_2 };

struct http_request {
	enum http_version version;
	struct str method;
	struct str target; /* origin form ("/path?query") or "*"; absolute form is cut to this */
	struct str authority;
	const struct http_header *headers;
	uint32_t header_count;
	int64_t content_length; /* -1: not given */
};

struct http_conn;
struct http_stream; /* one request and its answer */

/* Called from http_conn_feed(), http_conn_output() and http_conn_free() only. The answer may be
 * given inside the callback or at any time until on_close. */
struct http_events {
	void (*on_head)(void *ctx, struct http_stream *s);
	/* Bytes of the body. Call http_consume() for each byte once it was taken, or the peer stops
	 * sending. Not called any more once the answer is finished. */
	void (*on_data)(void *ctx, struct http_stream *s, const void *bytes, size_t len);
	void (*on_end)(void *ctx, struct http_stream *s); /* the request is whole */
	/* The stream is over: answered, reset by the peer, or its connection is going. Exactly once
	 * for every on_head. From here on no http_ function may be called with it but
	 * http_stream_request() and http_stream_unref(), by holders of a reference. */
	void (*on_close)(void *ctx, struct http_stream *s, bool answered);
	/* The connection is about to end with this HTTP status (400, 431, …), or 0: a protocol
	 * error of HTTP/2. */
	void (*on_refuse)(void *ctx, int http_status);
};

struct http_config {
	uint32_t streams_max;
	uint32_t stream_window_bytes;
	uint32_t conn_window_bytes;
};
void http_config_default(struct http_config *c);

/* For a connection that was just accepted; its first bytes decide between HTTP/1 and HTTP/2. NULL:
 * no memory. */
NODISCARD struct http_conn *http_conn_new(
	const struct http_config *config, const struct http_events *events, void *ctx);
void http_conn_free(struct http_conn *c);

/* Takes bytes of the peer, at most HTTP_FEED_MAX. Call it with len 0 to go on after an answer was
 * finished outside of a callback, or after output was sent. If it is fed while
 * http_conn_wants_input() is false, the connection ends after a while. */
void http_conn_feed(struct http_conn *c, const void *bytes, size_t len);
/* False: reading further would only fill memory; call it again after output and answers. */
bool http_conn_wants_input(const struct http_conn *c);
/* Up to `max` pieces of output, valid until the next call on this connection. */
NODISCARD size_t http_conn_output(struct http_conn *c, struct str *pieces, size_t max);
/* Says that this many bytes of the output went out. */
void http_conn_sent(struct http_conn *c, size_t len);
/* Bytes waiting in this connection and all its streams. */
size_t http_conn_unsent(const struct http_conn *c);
/* Takes no requests after those under way: sends GOAWAY, or "Connection: close". */
void http_conn_drain(struct http_conn *c);
/* The connection is over: close it once the output is empty. */
bool http_conn_done(const struct http_conn *c);
/* True if input is unread when the connection is closed: then shut down writing, and read and drop
 * input for a moment, so that the answer reaches the peer before a reset does. */
bool http_conn_lingers(const struct http_conn *c);

enum http_phase {
	HTTP_IDLE, /* no request */
	HTTP_HEAD, /* the first bytes of a connection, or a part of a request's head, or nothing yet
		    */
	HTTP_BUSY, /* at least one stream, and no part of a head */
	HTTP_CLOSING,
};
enum http_phase http_conn_phase(const struct http_conn *c);

const struct http_request *http_stream_request(const struct http_stream *s);
/* "" when absent. The name in lower case. */
struct str http_request_header(const struct http_request *r, const char *name);
void *http_stream_user(const struct http_stream *s);
void http_stream_set_user(struct http_stream *s, void *user);
/* References keep the request's memory; any thread. The connection holds one itself. */
void http_stream_ref(struct http_stream *s);
void http_stream_unref(struct http_stream *s);
void http_consume(struct http_stream *s, size_t len);
/* http_consume() in two steps, so that a stream that must wait does not stop the others of its
 * connection: the first call opens the connection's window, the second one the stream's own. */
void http_consume_held(struct http_stream *s, size_t len);
void http_open_window(struct http_stream *s, size_t len);
/* Bytes given to http_write() that still wait for the stream's turn. */
size_t http_stream_unsent(const struct http_stream *s);

/* The answer. If there is no memory the connection ends; the caller has nothing to check. */
#define HTTP_LENGTH_UNKNOWN ((int64_t)-1) /* a body of any length */
#define HTTP_NO_BODY ((int64_t)-2)        /* not even a Content-Length: gRPC trailers only, 304 */
void http_respond(struct http_stream *s, int http_status, const struct http_header *headers,
	size_t header_count, int64_t content_length);
void http_write(struct http_stream *s, const void *bytes, size_t len);
/* The same without a copy: it takes the buffer's memory over, and leaves the buffer empty. */
void http_write_buf(struct http_stream *s, struct buf *b);
/* Trailers follow a body of unknown length, but not over HTTP/1.0. If the request is not whole yet,
 * its rest is dropped, and a connection of HTTP/1 ends. */
void http_finish(struct http_stream *s, const struct http_header *trailers, size_t trailer_count);
/* Ends the stream without an answer: resets it (HTTP/1: ends the connection). If it is answered
 * already, over HTTP/2: no longer waits for the rest of the request. */
void http_abort(struct http_stream *s);

/* ---- client side: HTTP/2, one request at a time ---- */

struct http_client;
NODISCARD enum status http_client_new(size_t body_max, struct http_client **out);
void http_client_free(struct http_client *c);
/* `prefix` and `body` together are the body; they stay the caller's and must live until
 * http_client_done(). */
NODISCARD enum status http_client_start(struct http_client *c, const char *method,
	struct str authority, struct str target, const struct http_header *headers,
	size_t header_count, struct str prefix, struct str body, struct err *e);
/* Gives the next pieces of a body that comes piece by piece; they must live until the next call. If
 * it fails the request is reset. */
typedef enum status http_more_fn(void *ctx, struct str *prefix, struct str *body, bool *out_end);
/* The body of the next request goes on, behind prefix and body, until `more` says that it
 * ends. */
void http_client_continue(struct http_client *c, http_more_fn *more, void *ctx);
/* E_INVALID: the peer broke the protocol; E_LIMIT: the body is longer than body_max. */
NODISCARD enum status http_client_feed(
	struct http_client *c, const void *bytes, size_t len, struct err *e);
/* To be called when the peer has closed. OK: the answer was whole before. */
NODISCARD enum status http_client_eof(struct http_client *c, struct err *e);
NODISCARD size_t http_client_output(struct http_client *c, struct str *pieces, size_t max);
void http_client_sent(struct http_client *c, size_t len);
bool http_client_done(const struct http_client *c);
/* May another request follow on this connection? */
bool http_client_reusable(const struct http_client *c);
int http_client_status(const struct http_client *c); /* 0: no answer yet */
/* A header or trailer; "" when absent. Valid until the next http_client_start(). */
struct str http_client_header(const struct http_client *c, const char *name);
struct str http_client_body(const struct http_client *c);

/* ---- gRPC and gRPC-Web framing ---- */

#define HTTP_GRPC_PREFIX_BYTES 5
#define HTTP_GRPC_COMPRESSED 0x01
#define HTTP_GRPC_TRAILER 0x80 /* gRPC-Web: the frame holds the trailers */

struct http_grpc_frame {
	uint8_t flags;
	struct str bytes;
};
/* Cut the next frame off the front of *in. E_UNAVAILABLE: it is not whole yet. E_LIMIT: longer than
 * `max`. */
NODISCARD enum status http_grpc_next(
	struct str *in, size_t max, struct http_grpc_frame *out, struct err *e);
/* The message of a frame: in place, or decompressed into `scratch` (whose max is the limit).
 * `encoding` is the grpc-encoding header, "" for none. E_UNSUPPORTED: unknown encoding. */
NODISCARD enum status http_grpc_message(const struct http_grpc_frame *f, struct str encoding,
	struct buf *scratch, struct str *out, struct err *e);
void http_grpc_put_prefix(struct buf *out, uint8_t flags, size_t len);
void http_grpc_put(struct buf *out, uint8_t flags, struct str message);
/* gRPC-Web's last frame. `grpc_status` 0 to 16. */
void http_grpc_put_trailers(struct buf *out, int grpc_status, struct str message);
/* grpc-message's percent-encoding: everything but printable ASCII without '%'. */
void http_grpc_put_text(struct buf *out, struct str text);
/* Decodes it; malformed escapes are kept as they are. */
void http_grpc_get_text(struct buf *out, struct str encoded);
/* "10S", "250m" (milliseconds), …: at most 8 digits. */
NODISCARD bool http_grpc_parse_timeout(struct str s, int64_t *out_ns);

void http_base64_encode(struct buf *out, struct str bytes);
/* Standard alphabet; padding may stand between concatenated pieces, as gRPC-Web-text sends them. */
NODISCARD bool http_base64_decode(struct buf *out, struct str text);

/* ---- URLs ---- */

/* Percent-decoded path of a target in origin form; its query as it is. Refused with E_INVALID: bad
 * escapes, control bytes, "." and ".." as segments, a path that does not begin with '/'. `out`
 * receives at most target.len bytes. */
NODISCARD enum status http_target_parse(
	struct str target, char *out, struct str *out_path, struct str *out_query, struct err *e);
/* The n-th value (from 0) of `key` in a query, '+' and escapes decoded. False: absent, malformed or
 * no memory. */
NODISCARD bool http_query_find(
	struct str query, const char *key, size_t n, struct arena *a, struct str *out);
/* Cut the next pair off the front of *query, decoded into `a`; E_INVALID names the key that has a
 * bad escape. An empty key is possible. Call while query->len. */
NODISCARD enum status http_query_next(struct str *query, struct arena *a, struct str *out_key,
	struct str *out_value, struct err *e);
/* E_INVALID when any escape of a query is bad: the sentence names the parameter. */
NODISCARD enum status http_query_check(struct str query, struct err *e);
/* Does a comma separated list, as of Connection or Accept-Encoding, name this token with a weight
 * that is not zero? No case. */
bool http_list_has(struct str list, const char *token);
/* The reason phrase, "" for unknown ones. */
const char *http_status_text(int http_status);
