/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The framings of one unary call. gRPC: length-prefixed message, status in trailers, or in the
 * headers alone when there is no message. gRPC-Web: the same, but the trailers are a last frame;
 * the text form is all of it in base64. Connect: the bare message; errors are HTTP errors with a
 * JSON body; streams have gRPC's frames, in protobuf or JSON, and end with a frame in JSON.
 * Source: grpc/doc/PROTOCOL-HTTP2.md, PROTOCOL-WEB.md, connectrpc.com/docs/protocol.
 */
#include "net/rpc.h"
#include "base/clock.h"
#include "codec/codec.h"

#include <stdio.h>
#include <time.h>

/* The most that deflate needs for the compressed form of bytes that do not compress. */
#define NET_COMPRESSED_MAX(len) ((len) + (len) / 8 + 1024)

/* Flag of the last frame in a stream of Connect. */
#define CONNECT_END 0x02

/* ---- requests ---- */

static bool type_is(struct str content_type, const char *type)
{
	struct str t = str_trim(str_sub(content_type, 0, str_index(content_type, ';')));
	return str_eq_nocase(t, str_of(type));
}

enum net_framing net_framing_of(struct str content_type)
{
	if (type_is(content_type, "application/grpc") ||
		type_is(content_type, "application/grpc+proto"))
		return NET_GRPC;
	if (type_is(content_type, "application/grpc-web") ||
		type_is(content_type, "application/grpc-web+proto"))
		return NET_GRPC_WEB;
	if (type_is(content_type, "application/grpc-web-text") ||
		type_is(content_type, "application/grpc-web-text+proto"))
		return NET_GRPC_WEB_TEXT;
	if (type_is(content_type, "application/connect+proto"))
		return NET_CONNECT_STREAM;
	if (type_is(content_type, "application/connect+json"))
		return NET_CONNECT_STREAM_JSON;
	if (type_is(content_type, "application/proto"))
		return NET_CONNECT;
	if (type_is(content_type, "application/json"))
		return NET_CONNECT_JSON;
	return NET_PLAIN;
}

/* Decompresses an HTTP body as its Content-Encoding says. */
static enum status decode_body(const struct http_request *r, struct str body, struct buf *scratch,
	struct str *out, struct err *e)
{
	struct str encoding = http_request_header(r, "content-encoding");
	*out = body;
	if (encoding.len == 0 || str_eq_nocase(encoding, STR("identity")) || body.len == 0)
		return OK;
	if (!str_eq_nocase(encoding, STR("gzip")))
		return err_set(e, E_UNSUPPORTED, "content-encoding \"%.*s\"; gzip is known",
			STR_ARG(str_sub(encoding, 0, 32)));
	enum status s = codec_gunzip(body.p, body.len, scratch, e);
	if (s != OK)
		return s == E_CORRUPT ? err_prefix(e, E_INVALID, "body") : s;
	*out = buf_view(scratch);
	return OK;
}

static enum status decode_grpc(const struct http_request *r, struct str body, size_t message_max,
	struct buf *scratch, struct str *out, struct err *e)
{
	struct http_grpc_frame f;
	enum status s = http_grpc_next(&body, message_max, &f, e);
	if (s == E_UNAVAILABLE)
		return err_set(e, E_INVALID, "the request has no whole message");
	if (s != OK)
		return s;
	if (body.len)
		return err_set(e, E_INVALID, "more than one message in a unary call");
	return http_grpc_message(&f, http_request_header(r, "grpc-encoding"), scratch, out, e);
}

enum status net_rpc_decode(enum net_framing f, const struct http_request *r, struct str body,
	size_t message_max, struct buf *scratch, struct str *out, struct err *e)
{
	if (f == NET_PLAIN || f >= NET_CONNECT)
		return decode_body(r, body, scratch, out, e);
	if (f != NET_GRPC_WEB_TEXT)
		return decode_grpc(r, body, message_max, scratch, out, e);
	CLEANUP(buf_deinit) struct buf binary;
	buf_init(&binary, body.len + 4);
	if (!http_base64_decode(&binary, body)) {
		enum status s = buf_status(&binary);
		return s == E_NOMEM ? s : err_set(e, E_INVALID, "the body is not base64");
	}
	struct str message;
	enum status s = decode_grpc(r, buf_view(&binary), message_max, scratch, &message, e);
	if (s != OK)
		return s;
	if (scratch->len == 0) {
		/* The message lies in `binary`, which is freed. */
		buf_str(scratch, message);
		s = buf_status(scratch);
		if (s != OK)
			return s;
	}
	*out = buf_view(scratch);
	return OK;
}

/* ---- answers ---- */

void net_answer_add(struct net_answer *a, struct str name, struct str value)
{
	if (a->header_count < NET_ANSWER_HEADERS_MAX)
		a->headers[a->header_count++] = (struct http_header){ name, value };
}

/* Adds a header like "Sun, 06 Nov 1994 08:49:37 GMT"; each thread makes the text once a second. */
static void put_date(struct net_answer *a)
{
	static __thread time_t made_for;
	static __thread char made[sizeof(a->date)];
	time_t now = (time_t)(clock_realtime_ns() / NS_PER_SEC);
	if (now != made_for) {
		struct tm t;
		gmtime_r(&now, &t);
		strftime(made, sizeof(made), "%a, %d %b %Y %H:%M:%S GMT", &t);
		made_for = now;
	}
	memcpy(a->date, made, sizeof(made));
	net_answer_add(a, STR("date"), str_of(a->date));
}

/* Adds the handler's header lines; their names become lower case in place. A truncated or malformed
 * line ends them. */
static void put_lines(struct net_answer *a, char *lines)
{
	char *p = lines;
	for (;;) {
		char *end = strstr(p, "\r\n");
		char *colon = end ? memchr(p, ':', (size_t)(end - p)) : NULL;
		if (!colon || colon == p)
			return;
		for (char *c = p; c < colon; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c = (char)(*c | 0x20);
		struct str value = str_make(colon + 1, (size_t)(end - colon - 1));
		net_answer_add(a, str_make(p, (size_t)(colon - p)), str_trim(value));
		p = end + 2;
	}
}

static bool compressible(const char *type)
{
	struct str t = str_of(type);
	return str_starts(t, STR("text/")) || str_starts(t, STR("application/json")) ||
	       str_starts(t, STR("application/javascript")) ||
	       str_starts(t, STR("image/svg+xml")) || str_starts(t, STR("application/x-protobuf"));
}

static void compress_body(struct net_answer *a, const struct http_request *r)
{
	net_answer_add(a, STR("vary"), STR("accept-encoding"));
	if (!http_list_has(http_request_header(r, "accept-encoding"), "gzip"))
		return;
	struct buf small;
	buf_init(&small, NET_COMPRESSED_MAX(a->body.len));
	/* The compressed form is longer, or memory ran out: the body stays as it is. */
	if (codec_gzip(a->body.data, a->body.len, NET_COMPRESS_LEVEL, &small) != OK ||
		small.len >= a->body.len) {
		buf_deinit(&small);
		return;
	}
	buf_deinit(&a->body);
	a->body = small;
	net_answer_add(a, STR("content-encoding"), STR("gzip"));
}

static void make_plain(
	struct net_answer *a, const struct http_request *r, struct net_response *response)
{
	if (response->status != OK && response->body.len == 0 && response->http_status == 0)
		net_fail(response, response->status, NULL);
	if (buf_status(&response->body) != OK) {
		struct err e;
		net_fail(response, err_set(&e, buf_status(&response->body), "the answer"), &e);
	}
	a->http_status = response->http_status ? response->http_status : 200;
	a->body = response->body;
	buf_init(&response->body, NET_ANSWER_MAX);
	const char *type = response->content_type;
	type = type ? type : "application/octet-stream";
	a->no_body = a->http_status == 204 || a->http_status == 304;
	if (!a->no_body)
		net_answer_add(a, STR("content-type"), str_of(type));
	net_answer_add(a, STR("x-content-type-options"), STR("nosniff"));
	put_lines(a, response->headers);
	if (a->http_status == 503 || a->http_status == 429)
		net_answer_add(a, STR("retry-after"), STR("5"));
	if (!response->no_compress && a->body.len >= NET_COMPRESS_MIN && compressible(type))
		compress_body(a, r);
}

/* The error message of a failure. */
static struct str message_of(const struct net_response *response)
{
	return str_of(response->message[0] ? response->message : status_text(response->status));
}

static void put_status(struct net_answer *a, const struct net_response *response)
{
	int code = status_grpc(response->status);
	snprintf(a->grpc_status, sizeof(a->grpc_status), "%d", code);
	CLEANUP(buf_deinit) struct buf text;
	buf_init(&text, sizeof(a->grpc_message) - 1);
	if (response->status != OK)
		http_grpc_put_text(&text, message_of(response));
	memcpy(a->grpc_message, text.len ? text.data : (const uint8_t *)"", text.len);
	a->grpc_message[text.len] = 0;
}

static void make_grpc(
	struct net_answer *a, const struct http_request *r, struct net_response *response)
{
	net_answer_add(a, STR("content-type"), STR("application/grpc"));
	put_status(a, response);
	struct http_header status = { STR("grpc-status"), str_of(a->grpc_status) };
	struct http_header message = { STR("grpc-message"), str_of(a->grpc_message) };
	if (response->status != OK) {
		net_answer_add(a, status.name, status.value);
		net_answer_add(a, message.name, message.value);
		net_answer_add(a, STR("grpc-accept-encoding"), STR("identity,gzip"));
		a->no_body = true;
		return;
	}
	uint8_t flags = 0;
	struct str encodings = http_request_header(r, "grpc-accept-encoding");
	CLEANUP(buf_deinit) struct buf small;
	buf_init(&small, NET_COMPRESSED_MAX(response->body.len));
	struct str body = buf_view(&response->body);
	if (body.len >= NET_COMPRESS_MIN && !response->no_compress &&
		http_list_has(encodings, "gzip") &&
		codec_gzip(body.p, body.len, NET_COMPRESS_LEVEL, &small) == OK &&
		small.len < body.len) {
		flags = HTTP_GRPC_COMPRESSED;
		body = buf_view(&small);
		net_answer_add(a, STR("grpc-encoding"), STR("gzip"));
	}
	http_grpc_put(&a->body, flags, body);
	a->trailers[a->trailer_count++] = status;
}

static void make_web(struct net_answer *a, bool text, struct net_response *response)
{
	CLEANUP(buf_deinit) struct buf binary;
	buf_init(&binary, NET_ANSWER_MAX + 4096);
	net_answer_add(a, STR("content-type"),
		text ? STR("application/grpc-web-text+proto") : STR("application/grpc-web+proto"));
	if (response->status == OK)
		http_grpc_put(&binary, 0, buf_view(&response->body));
	struct str message = STR("");
	if (response->status != OK)
		message = message_of(response);
	http_grpc_put_trailers(&binary, status_grpc(response->status), message);
	if (text) {
		http_base64_encode(&a->body, buf_view(&binary));
	} else {
		struct buf empty = a->body;
		a->body = binary;
		binary = empty;
	}
}

/* Writes an error in the form of grpc-gateway. */
static void put_rest_error(struct buf *out, const struct net_response *response)
{
	buf_printf(out, "{\"code\":%d,\"message\":", status_grpc(response->status));
	buf_json_str(out, message_of(response));
	buf_cstr(out, ",\"details\":[]}");
}

/* Connect's clients retry after resource_exhausted. A retry does not help a request that is over a
 * limit. */
static enum status connect_status(enum status s)
{
	return s == E_LIMIT ? E_INVALID : s == E_NOMEM ? E_QUOTA : s;
}

static const char *connect_code(enum status s)
{
	int grpc_status = status_grpc(connect_status(s));
	static const char *const names[] = { "ok", "canceled", "unknown", "invalid_argument",
		"deadline_exceeded", "not_found", "already_exists", "permission_denied",
		"resource_exhausted", "failed_precondition", "aborted", "out_of_range",
		"unimplemented", "internal", "unavailable", "data_loss", "unauthenticated" };
	return grpc_status >= 0 && (size_t)grpc_status < ARRAY_COUNT(names) ? names[grpc_status]
									    : "unknown";
}

static void put_connect_error(struct buf *out, const struct net_response *response)
{
	buf_printf(out, "{\"code\":\"%s\",\"message\":", connect_code(response->status));
	buf_json_str(out, message_of(response));
	buf_cstr(out, "}");
}

/* Writes the EndStreamResponse, which ends every stream. */
static void put_connect_end(struct buf *out, const struct net_response *response)
{
	CLEANUP(buf_deinit) struct buf end;
	buf_init(&end, 8 * ERR_TEXT_MAX);
	buf_cstr(&end, response->status == OK ? "{" : "{\"error\":");
	if (response->status != OK)
		put_connect_error(&end, response);
	buf_cstr(&end, "}");
	http_grpc_put(out, CONNECT_END, buf_view(&end));
}

static struct str connect_type(enum net_framing f)
{
	return f == NET_CONNECT_STREAM ? STR("application/connect+proto")
				       : STR("application/connect+json");
}

void net_answer_begin_plain(struct net_answer *a, struct net_plain_head *head)
{
	const char *type = head->content_type;
	*a = (struct net_answer){ .http_status = 200, .framing = NET_PLAIN };
	buf_init(&a->body, 4096);
	put_date(a);
	net_answer_add(a, STR("content-type"), str_of(type ? type : "application/octet-stream"));
	net_answer_add(a, STR("x-content-type-options"), STR("nosniff"));
	put_lines(a, head->lines);
}

void net_answer_begin(struct net_answer *a, enum net_framing f, bool compressed)
{
	*a = (struct net_answer){ .http_status = 200, .framing = f };
	buf_init(&a->body, 4096);
	put_date(a);
	if (f == NET_GRPC)
		net_answer_add(a, STR("content-type"), STR("application/grpc"));
	else if (f == NET_REST)
		net_answer_add(a, STR("content-type"), STR("application/json"));
	else if (net_is_connect_stream(f))
		net_answer_add(a, STR("content-type"), connect_type(f));
	else if (f == NET_GRPC_WEB)
		net_answer_add(a, STR("content-type"), STR("application/grpc-web+proto"));
	else
		net_answer_add(a, STR("content-type"), STR("application/grpc-web-text+proto"));
	if (compressed)
		net_answer_add(a, STR("grpc-encoding"), STR("gzip"));
}

void net_answer_end(struct net_answer *a, const struct net_response *response)
{
	a->trailer_count = 0;
	if (a->framing == NET_GRPC) {
		put_status(a, response);
		a->trailers[a->trailer_count++] =
			(struct http_header){ STR("grpc-status"), str_of(a->grpc_status) };
		if (response->status != OK)
			a->trailers[a->trailer_count++] = (struct http_header){ STR("grpc-message"),
				str_of(a->grpc_message) };
		return;
	}
	if (a->framing == NET_REST) {
		if (response->status == OK)
			return;
		buf_cstr(&a->body, "{\"error\":");
		put_rest_error(&a->body, response);
		buf_cstr(&a->body, "}\n");
		return;
	}
	if (net_is_connect_stream(a->framing)) {
		put_connect_end(&a->body, response);
		return;
	}
	CLEANUP(buf_deinit) struct buf last;
	buf_init(&last, 4096);
	http_grpc_put_trailers(&last, status_grpc(response->status),
		response->status == OK ? STR("") : message_of(response));
	if (a->framing == NET_GRPC_WEB_TEXT)
		http_base64_encode(&a->body, buf_view(&last));
	else
		buf_str(&a->body, buf_view(&last));
}

/* Errors have the code's name in Connect, and its number in REST (grpc-gateway). */
static void make_unary(
	struct net_answer *a, const struct http_request *r, struct net_response *response)
{
	struct buf *body = &response->body;
	bool binary = a->framing == NET_CONNECT && response->status == OK;
	response->content_type = binary ? "application/proto" : "application/json";
	if (response->status == OK) {
		response->http_status = 0;
		make_plain(a, r, response);
		return;
	}
	bool own = a->framing == NET_REST && response->http_status;
	buf_clear(body);
	if (a->framing == NET_REST) {
		put_rest_error(body, response);
	} else {
		put_connect_error(body, response);
	}
	if (!own)
		response->http_status =
			status_http(a->framing == NET_REST ? response->status
							   : connect_status(response->status));
	make_plain(a, r, response);
}

void net_answer_make(struct net_answer *a, enum net_framing f, const struct http_request *r,
	struct net_response *response)
{
	*a = (struct net_answer){ .http_status = 200, .framing = f };
	buf_init(&a->body, 2 * NET_ANSWER_MAX);
	put_date(a);
	if (f != NET_PLAIN && response->status == OK && buf_status(&response->body) != OK) {
		response->status = buf_status(&response->body);
		response->message[0] = 0;
	}
	switch (f) {
	case NET_PLAIN:
		make_plain(a, r, response);
		break;
	case NET_GRPC:
		make_grpc(a, r, response);
		break;
	case NET_GRPC_WEB:
	case NET_GRPC_WEB_TEXT:
		make_web(a, f == NET_GRPC_WEB_TEXT, response);
		break;
	case NET_CONNECT_STREAM:
	case NET_CONNECT_STREAM_JSON:
		/* The stream was refused before it began. */
		net_answer_add(a, STR("content-type"), connect_type(f));
		put_connect_end(&a->body, response);
		break;
	case NET_CONNECT:
	case NET_CONNECT_JSON:
	case NET_REST:
		make_unary(a, r, response);
		break;
	}
	buf_deinit(&response->body);
	if (buf_status(&a->body) == OK)
		return;
	/* No memory for the framing: answer without a body. */
	buf_deinit(&a->body);
	a->http_status = f == NET_PLAIN || f >= NET_CONNECT ? 500 : 200;
	a->header_count = a->trailer_count = 0;
	a->no_body = true;
	net_answer_add(a, STR("grpc-status"), STR("8"));
}
