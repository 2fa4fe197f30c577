/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/1, server side. States: HEAD (collecting), BODY (by length or chunks), WAIT (the request is
 * complete, its answer is not). Pipelined requests wait in `in` until the answer before is
 * finished, so there is at most one stream at a time.
 */
#include "http/chunked.h"
#include "http/head.h"
#include "http/queue.h"
#include "http/stream.h"

#include <stdio.h>

#define CONTINUE "HTTP/1.1 100 Continue\r\n\r\n"

static void put(struct http_conn *c, const void *bytes, size_t len)
{
	if (!http_queue_put(&c->out, bytes, len))
		http_conn_break(c);
}

static void put_str(struct http_conn *c, struct str s)
{
	put(c, s.p, s.len);
}

/* The peer's bytes cannot be parsed from here on: says why and closes. */
static void refuse(struct http_conn *c, int http_status, const char *why)
{
	c->closing = c->linger = true;
	if (c->events->on_refuse)
		c->events->on_refuse(c->ctx, http_status);
	char body[160], head[256];
	int body_len =
		snprintf(body, sizeof(body), "{\"error\":\"%s\",\"code\":\"INVALID\"}\n", why);
	assert(body_len > 0 && (size_t)body_len < sizeof(body));
	int head_len = snprintf(head, sizeof(head),
		"HTTP/1.1 %d %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n"
		"connection: close\r\n\r\n",
		http_status, http_status_text(http_status), body_len);
	put(c, head, (size_t)head_len);
	put(c, body, (size_t)body_len);
}

/* Copies a text of the head into the stream's memory, which has room for all of them. */
static struct str keep(struct http_stream *s, struct str text, bool lower)
{
	char *p = (char *)s->text.data + s->text.len;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.p[i];
		p[i] = lower && c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
	}
	s->text.len += text.len;
	return str_make(p, text.len);
}

static bool fill_request(struct http_stream *s, const struct http_head *h)
{
	size_t bytes = h->method.len + h->target.len + h->authority.len;
	for (uint32_t i = 0; i < h->header_count; i++)
		bytes += h->headers[i].name.len + h->headers[i].value.len;
	buf_init(&s->text, HTTP_HEAD_BYTES_MAX);
	if (!buf_reserve(&s->text, bytes) || !VEC_RESERVE(&s->fields, h->header_count))
		return false;
	struct http_request *r = &s->request;
	r->version = h->minor ? HTTP_1_1 : HTTP_1_0;
	r->method = keep(s, h->method, false);
	r->target = keep(s, h->target, false);
	r->authority = keep(s, h->authority, false);
	for (uint32_t i = 0; i < h->header_count; i++)
		s->fields.v[i] = (struct http_header){ keep(s, h->headers[i].name, true),
			keep(s, h->headers[i].value, false) };
	r->headers = s->fields.v;
	r->header_count = h->header_count;
	r->content_length = h->content_length;
	return true;
}

static void request_ends(struct http_conn *c, struct http_stream *s)
{
	s->whole = true;
	c->h1_state = HTTP_H1_WAIT;
	if (s->state != HTTP_STREAM_FINISHED)
		c->events->on_end(c->ctx, s);
}

static void begin(struct http_conn *c, const struct http_head *h)
{
	struct http_stream *s = http_stream_new(c);
	if (!s || !fill_request(s, h)) {
		http_conn_break(c);
		return;
	}
	c->fresh = false;
	c->keep_alive = h->keep_alive;
	c->is_chunked = h->chunked;
	c->chunked = (struct http_chunked){ 0 };
	c->body_left = h->content_length > 0 ? (uint64_t)h->content_length : 0;
	c->h1_state = HTTP_H1_BODY;
	s->whole = !h->chunked && c->body_left == 0;
	s->announced = true;
	c->events->on_head(c->ctx, s);
	if (c->closing)
		return;
	if (s->whole)
		request_ends(c, s);
	else if (h->expect_continue && s->state == HTTP_STREAM_OPEN)
		put_str(c, STR(CONTINUE));
}

/* Returns the bytes used; 0: the head is not complete yet. */
static size_t run_head(struct http_conn *c, const uint8_t *p, size_t len)
{
	if (!c->blank_seen && c->scanned == 0 && p[0] == '\r') {
		if (len < 2)
			return 0;
		if (p[1] == '\n') {
			c->blank_seen = true;
			return 2;
		}
	}
	int refused = 0;
	const char *why = "malformed head, or a line that does not end in CRLF";
	size_t end = http_head_find_end(p, len, &c->scanned, &refused);
	if (refused) {
		refuse(c, refused, refused == 431 ? "the head is too long" : why);
		return len;
	}
	if (end == 0)
		return 0;
	c->scanned = 0;
	c->blank_seen = false;
	struct http_head h;
	refused = http_head_parse_request(p, end, &h, &why);
	if (refused)
		refuse(c, refused, why);
	else
		begin(c, &h);
	return end;
}

static void body_bytes(struct http_conn *c, struct http_stream *s, struct str bytes)
{
	if (bytes.len && s->state != HTTP_STREAM_FINISHED)
		c->events->on_data(c->ctx, s, bytes.p, bytes.len);
}

static size_t run_body(struct http_conn *c, const uint8_t *p, size_t len)
{
	struct http_stream *s = c->streams;
	size_t used;
	if (c->is_chunked) {
		struct str data;
		used = http_chunked_feed(&c->chunked, p, len, &data);
		body_bytes(c, s, data);
		if (c->chunked.state == HTTP_CHUNK_BAD && !c->closing) {
			/* If an answer has begun, no other can be sent. */
			if (s->state == HTTP_STREAM_OPEN)
				refuse(c, 400, "malformed chunk");
			else
				http_conn_break(c);
		} else if (c->chunked.state == HTTP_CHUNK_DONE && !c->closing) {
			request_ends(c, s);
		}
		return used;
	}
	used = (size_t)MIN((uint64_t)len, c->body_left);
	c->body_left -= used;
	body_bytes(c, s, str_make(p, used));
	if (c->body_left == 0 && !c->closing)
		request_ends(c, s);
	return used;
}

size_t http_h1_run(struct http_conn *c, const uint8_t *p, size_t len)
{
	size_t used = 0;
	for (;;) {
		if (c->streams && c->streams->state == HTTP_STREAM_FINISHED) {
			http_stream_close(c->streams);
			c->h1_state = HTTP_H1_HEAD;
		}
		if (c->closing)
			return len;
		if (used == len || c->h1_state == HTTP_H1_WAIT)
			return used;
		if (c->h1_state == HTTP_H1_BODY) {
			used += run_body(c, p + used, len - used);
		} else {
			if (c->out.bytes >= HTTP_OUT_HIGH_MAX)
				return used;
			size_t n = run_head(c, p + used, len - used);
			if (n == 0)
				return used;
			used += n;
		}
	}
}

/* ---- answers ---- */

static void put_header(struct http_conn *c, const struct http_header *h)
{
	/* A line break in a value would begin another header. */
	if (!http_value_ok(h->value) || !http_value_ok(h->name))
		return;
	put_str(c, h->name);
	put_str(c, STR(": "));
	put_str(c, h->value);
	put_str(c, STR("\r\n"));
}

void http_h1_respond(struct http_stream *s, int http_status, const struct http_header *headers,
	size_t header_count, int64_t content_length)
{
	struct http_conn *c = s->conn;
	char line[96];
	int n = snprintf(line, sizeof(line), "HTTP/1.1 %d %s\r\n", http_status,
		http_status_text(http_status));
	put(c, line, (size_t)n);
	for (size_t i = 0; i < header_count; i++)
		put_header(c, &headers[i]);
	/* Some statuses imply that there is no body; other answers without one state length 0. */
	if (content_length == HTTP_NO_BODY && http_status != 204 && http_status != 304)
		content_length = 0;
	if (content_length >= 0 && http_status != 204) {
		n = snprintf(
			line, sizeof(line), "content-length: %lld\r\n", (long long)content_length);
		put(c, line, (size_t)n);
	} else if (content_length == HTTP_LENGTH_UNKNOWN && !s->head_only) {
		s->chunked_out = s->request.version != HTTP_1_0;
		if (s->chunked_out)
			put_str(c, STR("transfer-encoding: chunked\r\n"));
		else
			c->keep_alive = false;
	}
	if (c->draining || !s->whole)
		c->keep_alive = false;
	if (!c->keep_alive)
		put_str(c, STR("connection: close\r\n"));
	else if (s->request.version == HTTP_1_0)
		put_str(c, STR("connection: keep-alive\r\n"));
	put_str(c, STR("\r\n"));
}

void http_h1_write(struct http_stream *s, const void *bytes, size_t len, struct buf *take)
{
	struct http_conn *c = s->conn;
	if (s->chunked_out) {
		char size[24];
		int n = snprintf(size, sizeof(size), "%zx\r\n", len);
		put(c, size, (size_t)n);
	}
	if (take && len >= HTTP_TAKE_MIN) {
		size_t stolen;
		uint8_t *data = buf_steal(take, &stolen);
		if (!http_queue_take(&c->out, data, stolen))
			http_conn_break(c);
	} else {
		put(c, bytes, len);
	}
	if (s->chunked_out)
		put_str(c, STR("\r\n"));
}

void http_h1_finish(struct http_stream *s, const struct http_header *trailers, size_t count)
{
	struct http_conn *c = s->conn;
	if (s->chunked_out) {
		put_str(c, STR("0\r\n"));
		for (size_t i = 0; i < count; i++)
			put_header(c, &trailers[i]);
		put_str(c, STR("\r\n"));
	}
	if (!s->whole)
		c->closing = c->linger = true;
	else if (!c->keep_alive || c->draining)
		c->closing = true;
}
