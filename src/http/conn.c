/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection begins as HTTP_SNIFF: as long as its bytes agree with the preface of HTTP/2 they are
 * only counted ('P' also begins POST, PUT and PATCH); once the protocol is clear, they are replayed
 * into it.
 */
#include "http/queue.h"
#include "http/stream.h"

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE_BYTES (sizeof(preface) - 1)

void http_config_default(struct http_config *c)
{
	*c = (struct http_config){
		.streams_max = HTTP_STREAMS_MAX,
		.stream_window_bytes = 256u << 10,
		.conn_window_bytes = 1u << 20,
	};
}

struct http_conn *http_conn_new(
	const struct http_config *config, const struct http_events *events, void *ctx)
{
	struct http_conn *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->config = *config;
	c->events = events;
	c->ctx = ctx;
	c->fresh = true;
	buf_init(&c->in, HTTP_HEAD_BYTES_MAX + 2 * HTTP_FEED_MAX + HTTP_OUT_HIGH_MAX);
	return c;
}

void http_conn_free(struct http_conn *c)
{
	if (!c)
		return;
	while (c->streams)
		http_stream_close(c->streams);
	nghttp2_session_del(c->h2);
	http_queue_deinit(&c->out);
	buf_deinit(&c->in);
	free(c);
}

/* ---- input ---- */

static void run_h1(struct http_conn *c, const uint8_t *p, size_t len)
{
	if (c->in.len == 0) {
		size_t used = http_h1_run(c, p, len);
		if (used < len)
			buf_put(&c->in, p + used, len - used);
	} else {
		buf_put(&c->in, p, len);
		size_t used = c->in.failed ? 0 : http_h1_run(c, c->in.data, c->in.len);
		if (used == c->in.len) {
			buf_deinit(&c->in);
			buf_init(&c->in,
				HTTP_HEAD_BYTES_MAX + 2 * HTTP_FEED_MAX + HTTP_OUT_HIGH_MAX);
		} else if (used) {
			memmove(c->in.data, c->in.data + used, c->in.len - used);
			c->in.len -= used;
		}
	}
	if (c->in.failed)
		http_conn_break(c);
}

static void run(struct http_conn *c, const uint8_t *p, size_t len)
{
	if (c->protocol == HTTP_ONE)
		run_h1(c, p, len);
	else
		http_h2_feed(c, p, len);
}

void http_conn_feed(struct http_conn *c, const void *bytes, size_t len)
{
	static const uint8_t nothing[1];
	const uint8_t *p = len ? (const uint8_t *)bytes : nothing;
	assert(len <= HTTP_FEED_MAX);
	if (c->broken || (c->protocol == HTTP_SNIFF && len == 0))
		return;
	if (c->protocol == HTTP_SNIFF) {
		while (len && c->sniffed < PREFACE_BYTES && *p == (uint8_t)preface[c->sniffed]) {
			c->sniffed++;
			p++;
			len--;
		}
		if (c->sniffed < PREFACE_BYTES && len == 0)
			return;
		c->protocol = c->sniffed == PREFACE_BYTES ? HTTP_TWO : HTTP_ONE;
		if (c->protocol == HTTP_TWO && http_h2_start(c) != OK) {
			http_conn_break(c);
			return;
		}
		if (c->sniffed)
			run(c, (const uint8_t *)preface, c->sniffed);
		if (c->broken || len == 0)
			return;
	}
	run(c, p, len);
}

bool http_conn_wants_input(const struct http_conn *c)
{
	if (c->closing)
		return c->linger && !c->broken;
	if (c->out.bytes >= HTTP_OUT_HIGH_MAX)
		return false;
	return c->protocol != HTTP_ONE || c->h1_state != HTTP_H1_WAIT;
}

/* ---- output ---- */

size_t http_conn_output(struct http_conn *c, struct str *pieces, size_t max)
{
	if (c->h2 && !c->broken)
		http_h2_pump(c);
	return http_queue_pieces(&c->out, pieces, max);
}

void http_conn_sent(struct http_conn *c, size_t len)
{
	http_queue_drop(&c->out, len);
}

size_t http_conn_unsent(const struct http_conn *c)
{
	return c->out.bytes + c->body_bytes;
}

void http_conn_drain(struct http_conn *c)
{
	if (c->draining)
		return;
	c->draining = true;
	if (c->h2)
		http_h2_drain(c);
	else if (!c->streams)
		c->closing = true;
}

bool http_conn_done(const struct http_conn *c)
{
	if (c->broken)
		return true;
	if (c->out.bytes)
		return false;
	if (c->h2)
		return !nghttp2_session_want_read(c->h2) && !nghttp2_session_want_write(c->h2);
	return c->closing;
}

bool http_conn_lingers(const struct http_conn *c)
{
	return c->linger && !c->broken;
}

/* HTTP/2: a head is incomplete; until it ends, no other frame may come. */
static bool awaits_head(const struct http_conn *c)
{
	for (const struct http_stream *s = c->streams; s; s = s->next)
		if (!s->announced && s->state == HTTP_STREAM_OPEN)
			return true;
	return false;
}

enum http_phase http_conn_phase(const struct http_conn *c)
{
	if (c->closing)
		return HTTP_CLOSING;
	if (awaits_head(c))
		return HTTP_HEAD;
	if (c->streams)
		return HTTP_BUSY;
	if (c->protocol == HTTP_TWO)
		return HTTP_IDLE;
	return c->fresh || c->in.len ? HTTP_HEAD : HTTP_IDLE;
}

/* ---- answers ---- */

void http_consume(struct http_stream *s, size_t len)
{
	if (s->conn->h2 && !s->conn->broken)
		http_h2_consume(s, len);
}

void http_consume_held(struct http_stream *s, size_t len)
{
	if (s->conn->h2 && !s->conn->broken)
		http_h2_consume_held(s, len);
}

void http_open_window(struct http_stream *s, size_t len)
{
	if (s->conn->h2 && !s->conn->broken && s->state != HTTP_STREAM_FINISHED)
		http_h2_open_window(s, len);
}

size_t http_stream_unsent(const struct http_stream *s)
{
	return s->conn->h2 ? s->body.bytes : s->conn->out.bytes;
}

void http_respond(struct http_stream *s, int http_status, const struct http_header *headers,
	size_t header_count, int64_t content_length)
{
	assert(s->conn && s->state == HTTP_STREAM_OPEN);
	assert(http_status >= 200 && http_status <= 599);
	s->state = HTTP_STREAM_ANSWERING;
	if (s->conn->broken)
		return;
	s->head_only = str_eq(s->request.method, STR("HEAD")) || http_status == 204 ||
		       http_status == 304 || content_length == HTTP_NO_BODY;
	if (s->conn->h2)
		http_h2_respond(s, http_status, headers, header_count, content_length);
	else
		http_h1_respond(s, http_status, headers, header_count, content_length);
}

static void write_any(struct http_stream *s, const void *bytes, size_t len, struct buf *take)
{
	assert(s->conn && s->state == HTTP_STREAM_ANSWERING);
	if (len == 0 || s->head_only || s->conn->broken)
		return;
	if (s->conn->h2)
		http_h2_write(s, bytes, len, take);
	else
		http_h1_write(s, bytes, len, take);
}

void http_write(struct http_stream *s, const void *bytes, size_t len)
{
	write_any(s, bytes, len, NULL);
}

void http_write_buf(struct http_stream *s, struct buf *b)
{
	write_any(s, b->data, b->len, b);
}

void http_finish(struct http_stream *s, const struct http_header *trailers, size_t trailer_count)
{
	assert(s->conn && s->state == HTTP_STREAM_ANSWERING);
	s->state = HTTP_STREAM_FINISHED;
	if (s->conn->broken)
		return;
	if (s->conn->h2)
		http_h2_finish(s, trailers, trailer_count);
	else
		http_h1_finish(s, trailers, trailer_count);
}

void http_abort(struct http_stream *s)
{
	assert(s->conn);
	if (s->conn->h2 && !s->conn->broken)
		http_h2_abort(s);
	else
		http_conn_break(s->conn);
	s->state = HTTP_STREAM_FINISHED;
}
