/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One request at a time. HTTP/1: the answer is whole by length, by chunks, or when the peer closes.
 * HTTP/2: the session lives on between requests. Everything the peer sends is bounded by the head's
 * limits and body_max.
 */
#include "base/vec.h"
#include "http/internal.h"

#define CLIENT_WINDOW_BYTES (1 << 20)

enum answer_state { ANSWER_HEAD, ANSWER_BODY, ANSWER_DONE };

struct http_client {
	bool http2;
	bool usable; /* for another request */
	bool head_request;
	enum answer_state state;
	struct http_queue out;
	int http_status;
	size_t body_max;
	struct buf body;
	struct buf text; /* of fields, which have pointers only when asked for */
	VEC(struct http_header) fields;
	struct str upload[2]; /* prefix and body not sent yet */
	http_more_fn *more;   /* gives the next ones; NULL: these are the last */
	void *more_ctx;
	/* HTTP/1 */
	struct buf in;
	size_t scanned;
	bool is_chunked;
	bool until_close;
	struct http_chunked chunked;
	uint64_t body_left;
	/* HTTP/2 */
	nghttp2_session *h2;
	int32_t stream;
	uint32_t error_code;
	size_t head_bytes;
};

static void reset_answer(struct http_client *c)
{
	c->state = ANSWER_HEAD;
	c->http_status = 0;
	buf_clear(&c->body);
	buf_clear(&c->text);
	VEC_CLEAR(&c->fields);
	c->scanned = 0;
	c->is_chunked = c->until_close = false;
	c->chunked = (struct http_chunked){ 0 };
	c->body_left = 0;
	c->error_code = 0;
	c->head_bytes = 0;
}

static bool add_field(struct http_client *c, struct str name, struct str value)
{
	for (size_t i = 0; i < name.len; i++) {
		char b = name.p[i];
		buf_u8(&c->text, (uint8_t)(b >= 'A' && b <= 'Z' ? b | 0x20 : b));
	}
	buf_str(&c->text, value);
	struct http_header h = { { NULL, name.len }, { NULL, value.len } };
	return !c->text.failed && VEC_PUSH(&c->fields, h);
}

/* ---- HTTP/2 ---- */

static int on_header(nghttp2_session *h2, const nghttp2_frame *f, const uint8_t *name,
	size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *user)
{
	(void)h2;
	(void)flags;
	struct http_client *c = (struct http_client *)user;
	if (f->hd.type != NGHTTP2_HEADERS || f->hd.stream_id != c->stream)
		return 0;
	c->head_bytes += name_len + value_len + 32;
	if (c->head_bytes > HTTP_HEAD_BYTES_MAX || c->fields.len == HTTP_HEADERS_MAX)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	struct str n = str_make(name, name_len), v = str_make(value, value_len);
	uint64_t code;
	if (str_eq(n, STR(":status")) && str_parse_u64(v, 10, &code) && code < 1000)
		c->http_status = (int)code;
	return add_field(c, n, v) ? 0 : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int on_data(
	nghttp2_session *h2, uint8_t flags, int32_t id, const uint8_t *p, size_t len, void *user)
{
	(void)h2;
	(void)flags;
	struct http_client *c = (struct http_client *)user;
	if (id == c->stream)
		buf_put(&c->body, p, len);
	return c->body.failed ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}

static int on_frame_recv(nghttp2_session *h2, const nghttp2_frame *f, void *user)
{
	(void)h2;
	struct http_client *c = (struct http_client *)user;
	if (f->hd.type == NGHTTP2_GOAWAY)
		c->usable = false;
	if (f->hd.stream_id == c->stream && c->stream > 0 &&
		(f->hd.type == NGHTTP2_DATA || f->hd.type == NGHTTP2_HEADERS) &&
		(f->hd.flags & NGHTTP2_FLAG_END_STREAM))
		c->state = ANSWER_DONE;
	return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t code, void *user)
{
	(void)h2;
	struct http_client *c = (struct http_client *)user;
	if (id != c->stream)
		return 0;
	if (c->state != ANSWER_DONE)
		c->error_code = code ? code : NGHTTP2_INTERNAL_ERROR;
	c->stream = 0;
	c->state = ANSWER_DONE;
	return 0;
}

static size_t upload_left(const struct http_client *c)
{
	return c->upload[0].len + c->upload[1].len;
}

static size_t take_upload(struct http_client *c, uint8_t *out, size_t max)
{
	size_t done = 0;
	for (size_t i = 0; i < ARRAY_COUNT(c->upload); i++) {
		size_t n = MIN(max - done, c->upload[i].len);
		if (n)
			memcpy(out + done, c->upload[i].p, n);
		c->upload[i] = str_sub(c->upload[i], n, c->upload[i].len);
		done += n;
	}
	return done;
}

static ssize_t read_upload(nghttp2_session *h2, int32_t id, uint8_t *out, size_t max,
	uint32_t *flags, nghttp2_data_source *source, void *user)
{
	(void)h2;
	(void)id;
	(void)source;
	struct http_client *c = (struct http_client *)user;
	size_t done = take_upload(c, out, max);
	while (c->more && upload_left(c) == 0 && done < max) {
		bool end = false;
		if (c->more(c->more_ctx, &c->upload[0], &c->upload[1], &end) != OK)
			return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		if (end)
			c->more = NULL;
		done += take_upload(c, out + done, max - done);
	}
	if (upload_left(c) == 0 && !c->more)
		*flags |= NGHTTP2_DATA_FLAG_EOF;
	return (ssize_t)done;
}

static enum status start_session(struct http_client *c)
{
	nghttp2_session_callbacks *cb;
	if (nghttp2_session_callbacks_new(&cb) != 0)
		return E_NOMEM;
	nghttp2_session_callbacks_set_on_header_callback(cb, on_header);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(cb, on_data);
	nghttp2_session_callbacks_set_on_frame_recv_callback(cb, on_frame_recv);
	nghttp2_session_callbacks_set_on_stream_close_callback(cb, on_stream_close);
	int failed = nghttp2_session_client_new(&c->h2, cb, c);
	nghttp2_session_callbacks_del(cb);
	if (failed)
		return E_NOMEM;
	const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 1 },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, CLIENT_WINDOW_BYTES },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_HEAD_BYTES_MAX },
	};
	if (nghttp2_submit_settings(c->h2, NGHTTP2_FLAG_NONE, settings, ARRAY_COUNT(settings)) ||
		nghttp2_session_set_local_window_size(
			c->h2, NGHTTP2_FLAG_NONE, 0, CLIENT_WINDOW_BYTES))
		return E_NOMEM;
	return OK;
}

static nghttp2_nv make_nv(struct str name, struct str value)
{
	return (nghttp2_nv){ (uint8_t *)(uintptr_t)name.p, (uint8_t *)(uintptr_t)value.p, name.len,
		value.len, NGHTTP2_NV_FLAG_NONE };
}

static enum status start_h2(struct http_client *c, struct str method, struct str authority,
	struct str target, const struct http_header *headers, size_t count, struct err *e)
{
	nghttp2_nv nv[HTTP_HEADERS_MAX];
	size_t n = 0;
	nv[n++] = make_nv(STR(":method"), method);
	nv[n++] = make_nv(STR(":scheme"), STR("http"));
	nv[n++] = make_nv(STR(":path"), target);
	nv[n++] = make_nv(STR(":authority"), authority);
	for (size_t i = 0; i < count; i++)
		nv[n++] = make_nv(headers[i].name, headers[i].value);
	nghttp2_data_provider body = { .read_callback = read_upload };
	bool has_body = c->more || upload_left(c) > 0;
	int32_t id = nghttp2_submit_request(c->h2, NULL, nv, n, has_body ? &body : NULL, NULL);
	if (id < 0)
		return err_set(e, id == NGHTTP2_ERR_NOMEM ? E_NOMEM : E_UNAVAILABLE, "%s",
			nghttp2_strerror(id));
	c->stream = id;
	return OK;
}

static enum status feed_h2(struct http_client *c, const uint8_t *p, size_t len, struct err *e)
{
	ssize_t n = nghttp2_session_mem_recv(c->h2, p, len);
	if (n >= 0 && c->error_code == 0)
		return OK;
	c->usable = false;
	if (c->body.failed)
		return err_set(e, E_LIMIT, "the answer is longer than %zu bytes", c->body_max);
	if (n < 0)
		return err_set(e, E_INVALID, "HTTP/2: %s", nghttp2_strerror((int)n));
	return err_set(e, E_UNAVAILABLE, "HTTP/2: the server reset the request: %s",
		nghttp2_http2_strerror(c->error_code));
}

/* ---- HTTP/1 ---- */

static enum status start_h1(struct http_client *c, struct str method, struct str authority,
	struct str target, const struct http_header *headers, size_t count)
{
	CLEANUP(buf_deinit) struct buf head;
	buf_init(&head, HTTP_HEAD_BYTES_MAX);
	buf_printf(&head, "%.*s %.*s HTTP/1.1\r\nhost: %.*s\r\n", STR_ARG(method), STR_ARG(target),
		STR_ARG(authority));
	for (size_t i = 0; i < count; i++)
		buf_printf(&head, "%.*s: %.*s\r\n", STR_ARG(headers[i].name),
			STR_ARG(headers[i].value));
	size_t body_len = upload_left(c);
	if (body_len)
		buf_printf(&head, "content-length: %zu\r\n", body_len);
	buf_cstr(&head, "\r\n");
	enum status s = buf_status(&head);
	if (s != OK)
		return s;
	bool ok = http_queue_put(&c->out, head.data, head.len);
	for (size_t i = 0; i < ARRAY_COUNT(c->upload); i++) {
		ok = ok && http_queue_put(&c->out, c->upload[i].p, c->upload[i].len);
		c->upload[i].len = 0;
	}
	return ok ? OK : E_NOMEM;
}

static enum status take_head(struct http_client *c, const struct http_head *h, struct err *e)
{
	c->http_status = h->http_status;
	for (uint32_t i = 0; i < h->header_count; i++)
		if (!add_field(c, h->headers[i].name, h->headers[i].value))
			return err_set(e, E_NOMEM, "header of the answer");
	c->usable = h->keep_alive;
	c->is_chunked = h->chunked;
	c->state = ANSWER_BODY;
	if (c->head_request || h->http_status == 204 || h->http_status == 304) {
		c->state = ANSWER_DONE;
	} else if (h->content_length >= 0) {
		c->body_left = (uint64_t)h->content_length;
		if (c->body_left > c->body_max)
			return err_set(
				e, E_LIMIT, "the answer is longer than %zu bytes", c->body_max);
		if (c->body_left == 0)
			c->state = ANSWER_DONE;
	} else if (!h->chunked) {
		c->until_close = true;
		c->usable = false;
	}
	return OK;
}

static enum status run_head(struct http_client *c, size_t *used, struct err *e)
{
	const uint8_t *p = c->in.data + *used;
	int refused = 0;
	const char *why = "malformed head of the answer";
	size_t end = http_head_find_end(p, c->in.len - *used, &c->scanned, &refused);
	if (end == 0 && !refused)
		return OK;
	struct http_head h;
	if (!refused)
		refused = http_head_parse_answer(p, end, &h, &why);
	if (refused)
		return err_set(e, E_INVALID, "HTTP/1: %s", why);
	*used += end;
	c->scanned = 0;
	if (h.http_status < 200)
		return OK; /* 100 Continue and its like: the real one follows */
	return take_head(c, &h, e);
}

static enum status run_body(struct http_client *c, size_t *used, struct err *e)
{
	const uint8_t *p = c->in.data + *used;
	size_t left = c->in.len - *used;
	struct str data = str_make(p, left);
	if (c->is_chunked) {
		*used += http_chunked_feed(&c->chunked, p, left, &data);
		if (c->chunked.state == HTTP_CHUNK_BAD)
			return err_set(e, E_INVALID, "HTTP/1: malformed chunk");
		if (c->chunked.state == HTTP_CHUNK_DONE)
			c->state = ANSWER_DONE;
	} else {
		if (!c->until_close) {
			data.len = (size_t)MIN((uint64_t)left, c->body_left);
			c->body_left -= data.len;
			if (c->body_left == 0)
				c->state = ANSWER_DONE;
		}
		*used += data.len;
	}
	buf_str(&c->body, data);
	if (c->body.failed)
		return err_set(e, E_LIMIT, "the answer is longer than %zu bytes", c->body_max);
	return OK;
}

static enum status feed_h1(struct http_client *c, const uint8_t *p, size_t len, struct err *e)
{
	buf_put(&c->in, p, len);
	if (c->in.failed)
		return err_set(e, E_NOMEM, "answer");
	size_t used = 0;
	enum status s = OK;
	while (s == OK && used < c->in.len && c->state != ANSWER_DONE) {
		size_t before = used;
		enum answer_state state = c->state;
		s = c->state == ANSWER_HEAD ? run_head(c, &used, e) : run_body(c, &used, e);
		if (used == before && state == c->state)
			break;
	}
	if (used < c->in.len)
		memmove(c->in.data, c->in.data + used, c->in.len - used);
	c->in.len -= used;
	if (c->state == ANSWER_DONE && c->in.len)
		c->usable = false; /* bytes nobody asked for */
	if (s != OK)
		c->usable = false;
	return s;
}

/* ---- both ---- */

enum status http_client_new(bool http2, size_t body_max, struct http_client **out)
{
	struct http_client *c = calloc(1, sizeof(*c));
	if (!c)
		return E_NOMEM;
	c->http2 = http2;
	c->usable = true;
	c->body_max = body_max;
	c->state = ANSWER_DONE;
	buf_init(&c->body, body_max);
	buf_init(&c->text, 2 * HTTP_HEAD_BYTES_MAX);
	buf_init(&c->in, HTTP_HEAD_BYTES_MAX + 2 * HTTP_FEED_MAX);
	if (http2 && start_session(c) != OK) {
		http_client_free(c);
		return E_NOMEM;
	}
	*out = c;
	return OK;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	nghttp2_session_del(c->h2);
	http_queue_deinit(&c->out);
	buf_deinit(&c->body);
	buf_deinit(&c->text);
	buf_deinit(&c->in);
	VEC_FREE(&c->fields);
	free(c);
}

enum status http_client_start(struct http_client *c, const char *method, struct str authority,
	struct str target, const struct http_header *headers, size_t header_count,
	struct str prefix, struct str body, struct err *e)
{
	assert(c->state == ANSWER_DONE);
	if (header_count > HTTP_HEADERS_MAX - 4)
		return err_set(e, E_INVALID, "too many headers");
	if (!http_value_ok(authority) || !http_value_ok(target) ||
		str_index(target, ' ') < target.len)
		return err_set(e, E_INVALID, "malformed request target");
	for (size_t i = 0; i < header_count; i++)
		if (!http_value_ok(headers[i].value))
			return err_set(e, E_INVALID, "control byte in a header");
	reset_answer(c);
	c->upload[0] = prefix;
	c->upload[1] = body;
	c->head_request = strcmp(method, "HEAD") == 0;
	struct str m = str_of(method);
	return c->http2 ? start_h2(c, m, authority, target, headers, header_count, e)
			: start_h1(c, m, authority, target, headers, header_count);
}

void http_client_continue(struct http_client *c, http_more_fn *more, void *ctx)
{
	assert(c->http2 && c->state == ANSWER_DONE);
	c->more = more;
	c->more_ctx = ctx;
}

enum status http_client_feed(struct http_client *c, const void *bytes, size_t len, struct err *e)
{
	assert(len <= HTTP_FEED_MAX);
	return c->http2 ? feed_h2(c, (const uint8_t *)bytes, len, e)
			: feed_h1(c, (const uint8_t *)bytes, len, e);
}

enum status http_client_eof(struct http_client *c, struct err *e)
{
	c->usable = false;
	if (c->state == ANSWER_DONE)
		return OK;
	if (!c->http2 && c->state == ANSWER_BODY && c->until_close) {
		c->state = ANSWER_DONE;
		return OK;
	}
	return err_set(e, E_UNAVAILABLE, "the server closed the connection before its answer");
}

size_t http_client_output(struct http_client *c, struct str *pieces, size_t max)
{
	while (c->h2 && c->out.bytes < HTTP_OUT_HIGH_MAX) {
		const uint8_t *p;
		ssize_t n = nghttp2_session_mem_send(c->h2, &p);
		if (n <= 0 || !http_queue_put(&c->out, p, (size_t)n)) {
			c->usable = c->usable && n == 0;
			break;
		}
	}
	return http_queue_pieces(&c->out, pieces, max);
}

void http_client_sent(struct http_client *c, size_t len)
{
	http_queue_drop(&c->out, len);
}

bool http_client_done(const struct http_client *c)
{
	return c->state == ANSWER_DONE;
}

bool http_client_reusable(const struct http_client *c)
{
	return c->usable && c->state == ANSWER_DONE && !c->more && upload_left(c) == 0;
}

int http_client_status(const struct http_client *c)
{
	return c->http_status;
}

struct str http_client_header(const struct http_client *c, const char *name)
{
	struct str want = str_of(name), found = STR("");
	const char *at = (const char *)c->text.data;
	for (size_t i = 0; i < c->fields.len; i++) {
		struct str n = str_make(at, c->fields.v[i].name.len);
		struct str v = str_make(at + n.len, c->fields.v[i].value.len);
		at += n.len + v.len;
		if (str_eq(n, want))
			found = v; /* a trailer wins over a header */
	}
	return found;
}

struct str http_client_body(const struct http_client *c)
{
	return buf_view(&c->body);
}

void http_client_drop_body(struct http_client *c)
{
	buf_clear(&c->body);
}
