/* SPDX-License-Identifier: Apache-2.0 */
/* stream: requests and their answers. h1.c and h2.c use them, and conn.c uses those two. */
#pragma once

#include "base/vec.h"
#include "http/chunked.h"
#include "http/http.h"
#include "http/queue.h"

#include <nghttp2/nghttp2.h>
#include <stdatomic.h>

enum http_stream_state {
	HTTP_STREAM_OPEN,      /* no answer yet */
	HTTP_STREAM_ANSWERING, /* http_respond() was called */
	HTTP_STREAM_FINISHED,
};

struct http_stream {
	atomic_uint refs;
	struct http_conn *conn;   /* NULL after on_close */
	struct http_stream *next; /* of the connection's */
	struct http_stream **link;
	void *user;
	struct http_request request;
	enum http_stream_state state;
	bool announced; /* on_head was called */
	bool whole;     /* the request has ended */
	bool head_only; /* answer to HEAD */
	/* HTTP/1 */
	bool chunked_out;
	/* HTTP/2 */
	int32_t id;
	bool deferred;
	bool too_large; /* the head */
	size_t unconsumed;
	size_t held;         /* bytes that only the stream's window still waits for */
	size_t after_answer; /* bytes of the body that came after the whole answer */
	struct http_queue body;
	struct http_header *trailers; /* malloc's */
	size_t trailer_count;
	size_t head_bytes;
	/* The request's memory. HTTP/2: pseudo headers stand first in `fields`. */
	VEC(struct http_header) fields;
	struct buf text;
};

enum http_protocol { HTTP_SNIFF, HTTP_ONE, HTTP_TWO };
enum http_h1_state { HTTP_H1_HEAD, HTTP_H1_BODY, HTTP_H1_WAIT };

struct http_conn {
	struct http_config config;
	const struct http_events *events;
	void *ctx;
	enum http_protocol protocol;
	struct http_queue out;
	size_t body_bytes; /* in all streams' queues */
	struct http_stream *streams;
	uint32_t stream_count;
	bool fresh; /* not one request yet */
	bool draining;
	bool closing; /* input is dropped, close when the output is empty */
	bool linger;
	bool broken; /* no memory, or a fatal error of HTTP/2: close now */
	/* HTTP/1 */
	enum http_h1_state h1_state;
	struct buf in;   /* bytes not looked at yet */
	size_t scanned;  /* of a head in `in` */
	bool blank_seen; /* the one CRLF that may stand before a request */
	bool keep_alive;
	bool is_chunked;
	struct http_chunked chunked;
	uint64_t body_left;
	/* HTTP/2 */
	nghttp2_session *h2;
	size_t sniffed; /* bytes of the preface so far */
};

struct http_stream *http_stream_new(struct http_conn *c);
/* Calls on_close, and drops the connection's reference. */
void http_stream_close(struct http_stream *s);
/* For no memory, or a fatal error: the connection is closed without sending another byte. */
void http_conn_break(struct http_conn *c);

size_t http_h1_run(struct http_conn *c, const uint8_t *p, size_t len);
void http_h1_respond(struct http_stream *s, int http_status, const struct http_header *headers,
	size_t header_count, int64_t content_length);
void http_h1_write(struct http_stream *s, const void *bytes, size_t len, struct buf *take);
void http_h1_finish(struct http_stream *s, const struct http_header *trailers, size_t count);

NODISCARD enum status http_h2_start(struct http_conn *c);
void http_h2_feed(struct http_conn *c, const uint8_t *p, size_t len);
/* Move frames to the output queue. */
void http_h2_pump(struct http_conn *c);
void http_h2_respond(struct http_stream *s, int http_status, const struct http_header *headers,
	size_t header_count, int64_t content_length);
void http_h2_write(struct http_stream *s, const void *bytes, size_t len, struct buf *take);
void http_h2_finish(struct http_stream *s, const struct http_header *trailers, size_t count);
void http_h2_abort(struct http_stream *s);
void http_h2_consume(struct http_stream *s, size_t len);
void http_h2_consume_held(struct http_stream *s, size_t len);
void http_h2_open_window(struct http_stream *s, size_t len);
void http_h2_drain(struct http_conn *c);
