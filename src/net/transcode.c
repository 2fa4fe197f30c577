/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RPCs in JSON: as Connect sends them (the body is the message), and as REST (grpc-gateway's
 * mapping: fields in the path, the rest in the query of a GET or in the body of a POST). Handlers
 * get and return protobuf; the tables of the method translate it.
 *
 * Unknown fields are ignored, as in grpc-gateway.
 */
#include "net/transcode.h"
#include "net/state.h"

#define PARAMS_MAX 1000
#define PARAMS_BYTES_MAX ((size_t)4 << 20)

bool net_rest_fits(const char *pattern, struct str path, struct pb_param *out, size_t *out_count)
{
	struct str want = str_of(pattern), wanted, part;
	size_t n = 0;
	/* The loop below does not notice a trailing slash. */
	if (str_ends(want, STR("/")) != str_ends(path, STR("/")))
		return false;
	for (;;) {
		bool more = str_split(&want, '/', &wanted), has = str_split(&path, '/', &part);
		if (!more || !has)
			break;
		if (wanted.len > 2 && wanted.p[0] == '{' && part.len && n < NET_REST_FIELDS_MAX)
			out[n++] = (struct pb_param){ str_sub(wanted, 1, wanted.len - 2), part };
		else if (!str_eq(wanted, part))
			return false;
		if (!want.len || !path.len)
			break;
	}
	*out_count = n;
	return !want.len && !path.len;
}

/* Appends the query's parameters to those of the path. */
static enum status gather(
	struct str query, struct arena *a, struct pb_param *v, size_t *count, struct err *e)
{
	while (query.len) {
		if (*count == PARAMS_MAX)
			return err_set(e, E_LIMIT, "more than %d parameters", PARAMS_MAX);
		enum status s = http_query_next(&query, a, &v[*count].key, &v[*count].value, e);
		if (s != OK)
			return s;
		(*count)++;
	}
	return OK;
}

static enum status from_query(
	const struct net_exchange *x, bool with_query, struct buf *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, PARAMS_BYTES_MAX);
	struct pb_param *v = ARENA_ARRAY(&a, struct pb_param, PARAMS_MAX);
	size_t count = 0;
	if (!v)
		return err_set(e, arena_status(&a), "parameters");
	bool fits = net_rest_fits(x->route->path, x->request.path, v, &count);
	assert(fits);
	enum status s = with_query ? gather(x->request.query, &a, v, &count, e) : OK;
	if (s != OK)
		return s;
	return pb_params_decode(x->route->rpc->input, v, count, PB_IGNORE_UNKNOWN, out, e);
}

enum status net_json_message(
	const struct net_exchange *x, struct str text, struct buf *out, struct err *e)
{
	const struct pb_desc *input = x->route->rpc->input;
	if (x->framing == NET_CONNECT_JSON)
		return pb_json_decode(input, text, PB_IGNORE_UNKNOWN, out, e);
	if (str_eq(x->request.method, STR("GET")) || str_eq(x->request.method, STR("HEAD")))
		return from_query(x, true, out, e);
	enum status s = OK;
	if (str_trim(text).len)
		s = pb_json_decode(input, text, PB_IGNORE_UNKNOWN, out, e);
	return s == OK ? from_query(x, false, out, e) : s;
}

void net_json_answer(struct net_exchange *x)
{
	struct net_response *r = &x->response;
	if (r->status != OK)
		return;
	struct buf json;
	struct err e = { 0 };
	buf_init(&json, NET_ANSWER_MAX);
	enum status s = buf_status(&r->body);
	if (s == OK)
		s = pb_json_encode(x->route->rpc->output, buf_view(&r->body),
			x->framing == NET_REST ? PB_EMIT_ZERO : 0, &json, &e);
	if (s != OK) {
		net_fail(r, s == E_INVALID ? E_IO : s, &e);
		buf_deinit(&json);
		return;
	}
	buf_deinit(&r->body);
	r->body = json;
}

/* ---- streams: objects one behind the other ---- */

/* Cuts the next object off the front, up to its closing brace; braces in strings do not count. */
static bool cut_object(struct str *in, struct str *out)
{
	size_t depth = 0, i = 0;
	bool quoted = false;
	for (; i < in->len; i++) {
		char c = in->p[i];
		if (quoted && c == '\\')
			i++;
		else if (c == '"')
			quoted = !quoted;
		else if (!quoted && c == '{')
			depth++;
		else if (!quoted && c == '}' && depth > 0 && --depth == 0)
			break;
	}
	i = MIN(i + 1, in->len);
	*out = str_sub(*in, 0, i);
	*in = str_sub(*in, i, in->len);
	return str_trim(*out).len > 0;
}

enum status net_json_frames(struct net_exchange *x, struct str text, struct buf *out, struct err *e)
{
	struct str object;
	for (size_t n = 1; cut_object(&text, &object); n++) {
		buf_clear(&x->message);
		enum status s = pb_json_decode(
			x->route->rpc->input, object, PB_IGNORE_UNKNOWN, &x->message, e);
		if (s != OK)
			return err_prefix(e, s, "object %zu", n);
		http_grpc_put(out, 0, buf_view(&x->message));
		if (out->failed)
			return err_set(e, buf_status(out), "object %zu", n);
	}
	return OK;
}

enum status net_json_piece(
	const struct net_exchange *x, struct str message, struct buf *out, struct err *e)
{
	bool many = x->route->rpc->server_streams;
	buf_cstr(out, many ? "{\"result\":" : "");
	enum status s = pb_json_encode(x->route->rpc->output, message, PB_EMIT_ZERO, out, e);
	buf_cstr(out, many ? "}\n" : "");
	return s == OK ? buf_status(out) : s == E_INVALID ? E_IO : s;
}

enum status net_body_frames(struct net_exchange *x, struct buf *out, struct err *e)
{
	struct str body = buf_view(&x->body), text;
	if (x->framing == NET_GRPC_WEB_TEXT) {
		if (!http_base64_decode(out, body)) {
			enum status s = buf_status(out);
			return s != OK ? s : err_set(e, E_INVALID, "the body is not base64");
		}
		return OK;
	}
	if (x->framing == NET_REST) {
		enum status s = net_rpc_decode(
			x->framing, http_stream_request(x->stream), body, 0, &x->scratch, &text, e);
		return s != OK ? s : net_json_frames(x, text, out, e);
	}
	buf_str(out, body);
	return buf_status(out);
}
