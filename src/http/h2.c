/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP/2, server side, over libnghttp2 (RFC 9113). Memory is bounded by the number of streams, the
 * size of a header list (checked as headers come), windows that are opened only by http_consume(),
 * frames that are serialised only while less than HTTP_OUT_HIGH_MAX is unsent, and nghttp2's own
 * limits on resets, continuations and acknowledgements.
 */
#include "http/head.h"
#include "http/queue.h"
#include "http/stream.h"

#include <stdio.h>

#define RESETS_BURST 200
#define LINGER_BYTES ((size_t)1 << 20) /* of a request's body that may come after its answer */
#define RESETS_PER_SECOND 30
/* Higher than needed: nghttp2 1.52 counts a frame once for each piece in which its header
 * arrives. */
#define CONTINUATIONS_MAX 32
#define OUTBOUND_ACKS_MAX 100
#define FIELD_OVERHEAD 32 /* RFC 9113 10.5.1: a field counts name + value + 32 */

static struct http_stream *find(nghttp2_session *h2, int32_t id)
{
	return (struct http_stream *)nghttp2_session_get_stream_user_data(h2, id);
}

/* ---- requests ---- */

static int on_begin_headers(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
	struct http_conn *c = (struct http_conn *)user;
	if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	struct http_stream *s = http_stream_new(c);
	if (!s)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	s->id = f->hd.stream_id;
	s->request.version = HTTP_2;
	buf_init(&s->text, HTTP_HEAD_BYTES_MAX + 1);
	c->fresh = false;
	return nghttp2_session_set_stream_user_data(h2, s->id, s);
}

/* Names and values lie in s->text while it grows, so fields have no pointers until the head is
 * whole. */
static int add_field(struct http_stream *s, struct str name, struct str value)
{
	buf_str(&s->text, name);
	buf_str(&s->text, value);
	struct http_header field = { { NULL, name.len }, { NULL, value.len } };
	if (s->text.failed || !VEC_PUSH(&s->fields, field))
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	return 0;
}

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
	(void)flags;
	(void)user;
	struct http_stream *s = find(h2, f->hd.stream_id);
	if (!s || s->announced || s->too_large)
		return 0;
	s->head_bytes += name_len + value_len + FIELD_OVERHEAD;
	if (s->head_bytes > HTTP_HEAD_BYTES_MAX || s->fields.len == HTTP_HEADERS_MAX) {
		s->too_large = true;
		return 0;
	}
	return add_field(s, str_make(name, name_len), str_make(value, value_len));
}

/* nghttp2 has checked that pseudo headers come first, once each, with :method, :path, :scheme. */
static void settle_head(struct http_stream *s)
{
	struct http_request *r = &s->request;
	const char *at = (const char *)s->text.data;
	size_t pseudo = 0;
	for (size_t i = 0; i < s->fields.len; i++) {
		struct http_header *h = &s->fields.v[i];
		h->name.p = at;
		h->value.p = at += h->name.len;
		at += h->value.len;
		if (h->name.len == 0 || h->name.p[0] != ':')
			continue;
		pseudo = i + 1;
		if (str_eq(h->name, STR(":method")))
			r->method = h->value;
		else if (str_eq(h->name, STR(":path")))
			r->target = h->value;
		else if (str_eq(h->name, STR(":authority")))
			r->authority = h->value;
	}
	r->headers = s->fields.v + pseudo;
	r->header_count = (uint32_t)(s->fields.len - pseudo);
	uint64_t n;
	if (str_parse_u64(http_request_header(r, "content-length"), 10, &n) && n <= INT64_MAX)
		r->content_length = (int64_t)n;
}

/* Answers without a handler. */
static void refuse_large_head(struct http_stream *s)
{
	static const char body[] = "{\"error\":\"the head is too long\",\"code\":\"LIMIT\"}\n";
	struct http_conn *c = s->conn;
	struct http_header type = { STR("content-type"), STR("application/json") };
	if (c->events->on_refuse)
		c->events->on_refuse(c->ctx, 431);
	s->head_only = str_eq(s->request.method, STR("HEAD"));
	http_h2_respond(s, 431, &type, 1, sizeof(body) - 1);
	if (!s->head_only)
		http_h2_write(s, body, sizeof(body) - 1, NULL);
	s->state = HTTP_STREAM_FINISHED;
	http_h2_finish(s, NULL, 0);
}

static void head_is_whole(struct http_conn *c, struct http_stream *s)
{
	settle_head(s);
	if (s->too_large) {
		refuse_large_head(s);
		return;
	}
	s->announced = true;
	c->events->on_head(c->ctx, s);
}

static int on_frame_recv(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
	struct http_conn *c = (struct http_conn *)user;
	struct http_stream *s = f->hd.stream_id ? find(h2, f->hd.stream_id) : NULL;
	if (!s || (f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
		return 0;
	if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST)
		head_is_whole(c, s);
	if (f->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		s->whole = true;
		if (s->state != HTTP_STREAM_FINISHED && s->announced)
			c->events->on_end(c->ctx, s);
	}
	return c->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

/* Drops bytes of a request after its answer has ended. Many clients stop sending when they have
 * read the answer. Others are told to stop after LINGER_BYTES, not at once: libcurl 7.88 drops an
 * answer that comes together with a reset of its stream. */
static int discard(nghttp2_session *h2, struct http_stream *s, int32_t id, size_t len)
{
	if (s && s->state == HTTP_STREAM_FINISHED) {
		bool told = s->after_answer > LINGER_BYTES;
		s->after_answer += len;
		if (!told && s->after_answer > LINGER_BYTES &&
			nghttp2_submit_rst_stream(h2, NGHTTP2_FLAG_NONE, id, NGHTTP2_NO_ERROR) != 0)
			return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	return nghttp2_session_consume(h2, id, len);
}

static int on_data(
	nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t len, void *user)
{
	(void)flags;
	struct http_conn *c = (struct http_conn *)user;
	struct http_stream *s = find(h2, id);
	if (!s || s->state == HTTP_STREAM_FINISHED || !s->announced)
		return discard(h2, s, id, len);
	s->unconsumed += len;
	c->events->on_data(c->ctx, s, p, len);
	return c->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

void http_h2_consume(struct http_stream *s, size_t len)
{
	assert(len <= s->unconsumed);
	s->unconsumed -= len;
	if (nghttp2_session_consume(s->conn->h2, s->id, len) != 0)
		http_conn_break(s->conn);
}

void http_h2_consume_held(struct http_stream *s, size_t len)
{
	assert(len <= s->unconsumed);
	s->unconsumed -= len;
	s->held += len;
	if (nghttp2_session_consume_connection(s->conn->h2, len) != 0)
		http_conn_break(s->conn);
}

void http_h2_open_window(struct http_stream *s, size_t len)
{
	assert(len <= s->held);
	s->held -= len;
	if (nghttp2_session_consume_stream(s->conn->h2, s->id, len) != 0)
		http_conn_break(s->conn);
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t code, void *user)
{
	(void)code;
	(void)user;
	struct http_stream *s = find(h2, id);
	if (!s)
		return 0;
	nghttp2_session_set_stream_user_data(h2, id, NULL);
	size_t left = s->unconsumed;
	s->unconsumed = 0;
	http_stream_close(s);
	return left ? nghttp2_session_consume_connection(h2, left) : 0;
}

/* After an answer that ended before its request: if the request has no length (a stream of
 * messages), the client is told at once to stop sending. */
static int on_frame_send(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
	(void)user;
	if (!(f->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
		(f->hd.type != NGHTTP2_HEADERS && f->hd.type != NGHTTP2_DATA))
		return 0;
	struct http_stream *s = find(h2, f->hd.stream_id);
	if (s && !s->whole && s->request.content_length < 0)
		return nghttp2_submit_rst_stream(
			h2, NGHTTP2_FLAG_NONE, f->hd.stream_id, NGHTTP2_NO_ERROR);
	return 0;
}

/* ---- the session ---- */

static enum status new_session(struct http_conn *c)
{
	nghttp2_session_callbacks *cb;
	nghttp2_option *opt;
	if (nghttp2_session_callbacks_new(&cb) != 0)
		return E_NOMEM;
	if (nghttp2_option_new(&opt) != 0) {
		nghttp2_session_callbacks_del(cb);
		return E_NOMEM;
	}
	nghttp2_session_callbacks_set_on_begin_headers_callback(cb, on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(cb, on_frame_send);
	nghttp2_option_set_no_auto_window_update(opt, 1);
	nghttp2_option_set_stream_reset_rate_limit(opt, RESETS_BURST, RESETS_PER_SECOND);
	nghttp2_option_set_max_continuations(opt, CONTINUATIONS_MAX);
	nghttp2_option_set_max_outbound_ack(opt, OUTBOUND_ACKS_MAX);
	int failed = nghttp2_session_server_new2(&c->h2, cb, c, opt);
	nghttp2_option_del(opt);
	nghttp2_session_callbacks_del(cb);
	return failed ? E_NOMEM : OK;
}

enum status http_h2_start(struct http_conn *c)
{
	enum status st = new_session(c);
	if (st != OK)
		return st;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, c->config.streams_max },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, c->config.stream_window_bytes },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_BYTES_MAX },
	};
	if (nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, settings, ARRAY_COUNT(settings)))
		return E_NOMEM;
	if (nghttp2_session_set_local_window_size(
		    c->h2, NGHTTP2_FLAG_NONE, 0, (int32_t)c->config.conn_window_bytes))
		return E_NOMEM;
	return c->draining ? (http_h2_drain(c), OK) : OK;
}

void http_h2_feed(struct http_conn *c, const uint8_t *p, size_t len)
{
	if (len == 0)
		return;
	ssize_t n = nghttp2_session_mem_recv(c->h2, p, len);
	if (n >= 0)
		return;
	/* nghttp2 itself sends GOAWAY for errors of the peer; after these errors it cannot. */
	if (c->events->on_refuse)
		c->events->on_refuse(c->ctx, 0);
	http_conn_break(c);
}

void http_h2_pump(struct http_conn *c)
{
	while (c->out.bytes < HTTP_OUT_HIGH_MAX) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(c->h2, &p);
		if (n == 0)
			return;
		if (n < 0 || !http_queue_put(&c->out, p, (size_t)n)) {
			http_conn_break(c);
			return;
		}
	}
}

void http_h2_drain(struct http_conn *c)
{
	if (nghttp2_submit_goaway(c->h2, NGHTTP2_FLAG_NONE,
		    nghttp2_session_get_last_proc_stream_id(c->h2), NGHTTP2_NO_ERROR, NULL, 0))
		http_conn_break(c);
}

/* ---- answers ---- */

static ssize_t read_body(nghttp2_session *h2, int32_t id, uint8_t *out, size_t max, uint32_t *flags,
	nghttp2_data_source *source, void *user)
{
	struct http_conn *c = (struct http_conn *)user;
	struct http_stream *s = (struct http_stream *)source->ptr;
	size_t n = http_queue_read(&s->body, out, max);
	c->body_bytes -= n;
	if (s->body.bytes)
		return (ssize_t)n;
	if (s->state != HTTP_STREAM_FINISHED) {
		s->deferred = n == 0;
		return n ? (ssize_t)n : NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_EOF;
	if (s->trailer_count == 0)
		return (ssize_t)n;
	nghttp2_nv nv[HTTP_HEADERS_MAX];
	for (size_t i = 0; i < s->trailer_count; i++)
		nv[i] = (nghttp2_nv){ (uint8_t *)(uintptr_t)s->trailers[i].name.p,
			(uint8_t *)(uintptr_t)s->trailers[i].value.p, s->trailers[i].name.len,
			s->trailers[i].value.len, NGHTTP2_NV_FLAG_NONE };
	*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
	if (nghttp2_submit_trailer(h2, id, nv, s->trailer_count) != 0)
		return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
	return (ssize_t)n;
}

static nghttp2_nv make_nv(struct str name, struct str value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.len,
		value.len, NGHTTP2_NV_FLAG_NONE };
}

void http_h2_respond(struct http_stream *s, int http_status, const struct http_header *headers,
	size_t header_count, int64_t content_length)
{
	nghttp2_nv nv[HTTP_HEADERS_MAX];
	char status_text[8], length_text[24];
	size_t n = 0;
	snprintf(status_text, sizeof(status_text), "%d", http_status);
	nv[n++] = make_nv(STR(":status"), str_of(status_text));
	assert(header_count <= HTTP_HEADERS_MAX - 2);
	for (size_t i = 0; i < header_count; i++)
		if (http_value_ok(headers[i].value) && http_value_ok(headers[i].name))
			nv[n++] = make_nv(headers[i].name, headers[i].value);
	if (content_length >= 0 && http_status != 204) {
		snprintf(length_text, sizeof(length_text), "%lld", (long long)content_length);
		nv[n++] = make_nv(STR("content-length"), str_of(length_text));
	}
	bool has_body = !s->head_only && content_length != 0;
	nghttp2_data_provider body = { .source.ptr = s, .read_callback = read_body };
	if (nghttp2_submit_response(s->conn->h2, s->id, nv, n, has_body ? &body : NULL) != 0)
		http_conn_break(s->conn);
}

static void resume(struct http_stream *s)
{
	if (!s->deferred)
		return;
	s->deferred = false;
	if (nghttp2_session_resume_data(s->conn->h2, s->id) != 0)
		http_conn_break(s->conn);
}

void http_h2_write(struct http_stream *s, const void *bytes, size_t len, struct buf *take)
{
	bool ok;
	if (take && len >= HTTP_TAKE_MIN) {
		size_t stolen;
		uint8_t *data = buf_steal(take, &stolen);
		ok = http_queue_take(&s->body, data, stolen);
	} else {
		ok = http_queue_put(&s->body, bytes, len);
	}
	if (!ok) {
		http_conn_break(s->conn);
		return;
	}
	s->conn->body_bytes += len;
	resume(s);
}

static bool copy_trailers(struct http_stream *s, const struct http_header *trailers, size_t count)
{
	s->trailers = calloc(count, sizeof(*s->trailers));
	if (!s->trailers)
		return false;
	for (size_t i = 0; i < count; i++) {
		struct str name = trailers[i].name, value = trailers[i].value;
		if (!http_value_ok(name) || !http_value_ok(value))
			continue;
		char *p = malloc(name.len + value.len + 1);
		if (!p)
			return false;
		memcpy(p, name.p, name.len);
		if (value.len)
			memcpy(p + name.len, value.p, value.len);
		s->trailers[s->trailer_count++] = (struct http_header){ str_make(p, name.len),
			str_make(p + name.len, value.len) };
	}
	return true;
}

void http_h2_finish(struct http_stream *s, const struct http_header *trailers, size_t count)
{
	assert(count <= HTTP_HEADERS_MAX);
	if (count && !s->head_only && !copy_trailers(s, trailers, count))
		http_conn_break(s->conn);
	if (s->unconsumed && !s->conn->broken)
		http_h2_consume(s, s->unconsumed);
	if (s->held && !s->conn->broken)
		http_h2_open_window(s, s->held);
	resume(s);
}

void http_h2_abort(struct http_stream *s)
{
	bool answered = s->state == HTTP_STREAM_FINISHED && s->body.bytes == 0;
	uint32_t code = answered ? NGHTTP2_NO_ERROR : NGHTTP2_INTERNAL_ERROR;
	if (nghttp2_submit_rst_stream(s->conn->h2, NGHTTP2_FLAG_NONE, s->id, code) != 0)
		http_conn_break(s->conn);
}
