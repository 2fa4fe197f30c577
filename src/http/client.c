/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An HTTP/2 client that sends one request at a time; its session is kept between requests.
 * Everything the peer sends is bounded by the limits of heads and by body_max.
 */
#include "base/vec.h"
#include "http/head.h"
#include "http/queue.h"

#include <nghttp2/nghttp2.h>

#define CLIENT_WINDOW_BYTES (1 << 20)

struct http_client {
	bool usable; /* can take another request */
	bool done;   /* no answer is outstanding */
	struct http_queue out;
	int http_status;
	size_t body_max;
	struct buf body;
	struct buf text; /* the texts of `fields`, which get their pointers only when asked for */
	VEC(struct http_header) fields;
	struct str upload[2]; /* prefix and body not sent yet */
	http_more_fn *more;   /* gives the next pieces; NULL: these are the last */
	void *more_ctx;
	nghttp2_session *h2;
	int32_t stream;
	uint32_t error_code;
	size_t head_bytes;
};

static void reset_answer(struct http_client *c)
{
	c->done = false;
	c->http_status = 0;
	buf_clear(&c->body);
	buf_clear(&c->text);
	VEC_CLEAR(&c->fields);
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

/* ---- the session ---- */

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
		c->done = true;
	return 0;
}

static int on_stream_close(nghttp2_session *h2, int32_t id, uint32_t code, void *user)
{
	(void)h2;
	struct http_client *c = (struct http_client *)user;
	if (id != c->stream)
		return 0;
	if (!c->done)
		c->error_code = code ? code : NGHTTP2_INTERNAL_ERROR;
	c->stream = 0;
	c->done = true;
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

static enum status submit(struct http_client *c, struct str method, struct str authority,
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

/* ---- requests ---- */

enum status http_client_new(size_t body_max, struct http_client **out)
{
	struct http_client *c = calloc(1, sizeof(*c));
	if (!c)
		return E_NOMEM;
	c->usable = true;
	c->body_max = body_max;
	c->done = true;
	buf_init(&c->body, body_max);
	buf_init(&c->text, 2 * HTTP_HEAD_BYTES_MAX);
	if (start_session(c) != OK) {
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
	VEC_FREE(&c->fields);
	free(c);
}

enum status http_client_start(struct http_client *c, const char *method, struct str authority,
	struct str target, const struct http_header *headers, size_t header_count,
	struct str prefix, struct str body, struct err *e)
{
	assert(c->done);
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
	return submit(c, str_of(method), authority, target, headers, header_count, e);
}

void http_client_continue(struct http_client *c, http_more_fn *more, void *ctx)
{
	assert(c->done);
	c->more = more;
	c->more_ctx = ctx;
}

enum status http_client_feed(struct http_client *c, const void *bytes, size_t len, struct err *e)
{
	assert(len <= HTTP_FEED_MAX);
	ssize_t n = nghttp2_session_mem_recv(c->h2, bytes, len);
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

enum status http_client_eof(struct http_client *c, struct err *e)
{
	c->usable = false;
	if (c->done)
		return OK;
	return err_set(e, E_UNAVAILABLE, "the server closed the connection before its answer");
}

size_t http_client_output(struct http_client *c, struct str *pieces, size_t max)
{
	while (c->out.bytes < HTTP_OUT_HIGH_MAX) {
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
	return c->done;
}

bool http_client_reusable(const struct http_client *c)
{
	return c->usable && c->done && !c->more && upload_left(c) == 0;
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
