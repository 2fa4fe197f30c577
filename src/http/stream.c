/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of either protocol: a stream is made when a request's head begins, and lives until
 * on_close was called and the last reference is gone. This file calls neither the protocols nor the
 * connection.
 */
#include "http/stream.h"
#include "http/queue.h"

void http_conn_break(struct http_conn *c)
{
	c->broken = c->closing = true;
}

struct http_stream *http_stream_new(struct http_conn *c)
{
	struct http_stream *s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	atomic_init(&s->refs, 1);
	s->conn = c;
	s->request.content_length = -1;
	s->next = c->streams;
	s->link = &c->streams;
	if (s->next)
		s->next->link = &s->next;
	c->streams = s;
	c->stream_count++;
	return s;
}

void http_stream_close(struct http_stream *s)
{
	struct http_conn *c = s->conn;
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	c->stream_count--;
	c->body_bytes -= s->body.bytes;
	bool answered = s->state == HTTP_STREAM_FINISHED && s->body.bytes == 0;
	http_queue_deinit(&s->body);
	if (s->announced)
		c->events->on_close(c->ctx, s, answered);
	s->conn = NULL;
	http_stream_unref(s);
}

void http_stream_ref(struct http_stream *s)
{
	atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void http_stream_unref(struct http_stream *s)
{
	if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (size_t i = 0; i < s->trailer_count; i++)
		free((void *)(uintptr_t)s->trailers[i].name.p);
	free(s->trailers);
	VEC_FREE(&s->fields);
	buf_deinit(&s->text);
	free(s);
}

const struct http_request *http_stream_request(const struct http_stream *s)
{
	return &s->request;
}

struct str http_request_header(const struct http_request *r, const char *name)
{
	struct str want = str_of(name);
	for (uint32_t i = 0; i < r->header_count; i++)
		if (str_eq(r->headers[i].name, want))
			return r->headers[i].value;
	return STR("");
}

void *http_stream_user(const struct http_stream *s)
{
	return s->user;
}

void http_stream_set_user(struct http_stream *s, void *user)
{
	s->user = user;
}
