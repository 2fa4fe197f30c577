/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Property: whatever path, query and body a REST request has, the message made of it can be written
 * as JSON, or the refusal has a sentence; who may ask is decided without a fault, and a name that
 * is let in on a loopback address is an address or one that means it. The first byte chooses the
 * method, the route, the framing and who may ask; then lines: path, query, host, origin, what the
 * browser says of the site, body.
 */
#include "fuzz/fuzz.h"

#include <ctype.h>

#include "net/access.h"
#include "net/state.h"
#include "net/transcode.h"
#include "tests/pb/sample.h"

#define MESSAGE_MAX ((size_t)1 << 20)

static const char *const ours[] = { "firn.example", NULL };

static struct str line(struct str *in)
{
	size_t n = str_index(*in, '\n');
	struct str out = str_sub(*in, 0, n);
	*in = str_sub(*in, n + 1, in->len);
	return out;
}

/* The message as an answer, and as one of a stream's. */
static void check_answer(struct net_exchange *x, struct str message)
{
	struct buf piece;
	net_response_init(&x->response);
	buf_str(&x->response.body, message);
	net_json_answer(x);
	FUZZ_CHECK(x->response.status != OK || str_is_utf8(buf_view(&x->response.body)));
	buf_deinit(&x->response.body);
	buf_init(&piece, MESSAGE_MAX);
	if (net_json_piece(x, message, &piece, NULL) == OK)
		FUZZ_CHECK(piece.len > 0 && str_is_utf8(buf_view(&piece)));
	buf_deinit(&piece);
}

static void check_message(struct net_exchange *x, struct str body, bool thorough)
{
	struct buf message, json;
	struct pb_param v[NET_REST_FIELDS_MAX];
	struct err e = { 0 };
	size_t count;
	if (!net_rest_fits(x->route->path, x->request.path, v, &count))
		return;
	buf_init(&message, MESSAGE_MAX);
	buf_init(&json, MESSAGE_MAX);
	if (net_json_message(x, body, &message, &e) != OK) {
		FUZZ_CHECK(e.text[0]);
	} else if (pb_json_encode(x->route->rpc->input, buf_view(&message), 0, &json, NULL) == OK) {
		FUZZ_CHECK(str_is_utf8(buf_view(&json)));
		if (thorough)
			check_answer(x, buf_view(&message));
	} else {
		FUZZ_CHECK(json.failed);
	}
	buf_deinit(&message);
	buf_deinit(&json);
}

/* What has letters beyond those of an address must name this host, or be one of `ours`. */
static bool means_us(struct str host)
{
	char name[8192];
	bool bracket = host.len && host.p[0] == '[';
	struct str part = bracket ? str_sub(host, 1, str_index(host, ']') - 1)
				  : str_sub(host, 0, str_index(host, ':'));
	bool letters = false;
	for (size_t i = 0; i < part.len; i++) {
		name[i] = (char)tolower((unsigned char)part.p[i]);
		letters |= name[i] >= 'g' && name[i] <= 'z';
	}
	return !letters || memmem(name, part.len, "localhost", 9) ||
	       memmem(name, part.len, ours[0], strlen(ours[0]));
}

static void check_access(struct net_exchange *x, struct str host)
{
	struct http_request h = { .method = x->request.method, .authority = host };
	struct err e = { 0 };
	struct str rest;
	if (net_access_check(x, &h, &e) != OK)
		FUZZ_CHECK(e.text[0]);
	else
		FUZZ_CHECK(means_us(host));
	if (net_access_prefix(x, x->request.path, &rest) == NET_PREFIX_FITS)
		FUZZ_CHECK(rest.len <= x->request.path.len);
	if (net_access_is_preflight(x))
		net_access_preflight(x);
	net_access_put(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const methods[] = { "GET", "POST", "HEAD", "OPTIONS" };
	static const char *const patterns[] = { "/a/{name}/b", "/a", "/{name}/{text}" };
	static const struct pb_method unary = { "M", &sample_desc, &sample_desc, false, false };
	static const struct pb_method streams = { "M", &sample_desc, &sample_desc, false, true };
	static const char *const anybody[] = { "*", NULL };
	static struct net_server server;
	static struct net_exchange x;
	if (size < 1 || size > 8192)
		return 0;
	struct str rest = str_make(data + 1, size - 1);
	struct net_route route = { .path = patterns[data[0] / 4 % ARRAY_COUNT(patterns)],
		.rpc = data[0] & 0x80 ? &streams : &unary,
		.rest = true };
	memcpy(server.address, "127.0.0.1:7070", 15);
	server.config = (struct net_server_config){ .check_host = true,
		.hosts = ours,
		.cors_origins = data[0] & 0x10 ? anybody : ours,
		.path_prefix = data[0] & 0x20 ? "" : "/a" };
	x = (struct net_exchange){ .server = &server,
		.route = &route,
		.framing = data[0] & 0x40 ? NET_CONNECT_JSON : NET_REST };
	buf_init(&x.answer.body, 1);
	x.request.method = str_of(methods[data[0] % ARRAY_COUNT(methods)]);
	x.request.path = line(&rest);
	x.request.query = line(&rest);
	struct str host = line(&rest);
	struct str origin = line(&rest), site = line(&rest);
	struct http_header headers[] = { { STR("origin"), origin }, { STR("sec-fetch-site"), site },
		{ STR("access-control-request-headers"), site },
		{ STR("access-control-request-method"), STR("GET") } };
	x.request.headers = headers;
	x.request.header_count = ARRAY_COUNT(headers);
	check_message(&x, rest, fuzz_thorough(data, size));
	check_access(&x, host);
	return 0;
}
