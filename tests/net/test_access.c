/* SPDX-License-Identifier: Apache-2.0 */
/* By the head alone: host, origin, preflight, prefix. */
#include "test.h"

#include "net/access.h"
#include "net/state.h"

#include "peer.h"

#include <stdio.h>

struct access_case {
	const char *name, *request;
	const char *status;
	const char *has;
	const char *lacks;
};

static void ask(struct net_server *s, const struct access_case *c)
{
	CLEANUP(buf_deinit) struct buf request;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&request, 1 << 20);
	buf_init(&out, 1 << 20);
	buf_printf(&request, "%sconnection: close\r\ncontent-length: 0\r\n\r\n", c->request);
	peer_exchange(s, request.data, request.len, &out);
	buf_u8(&out, 0);
	const char *text = (const char *)out.data;
	bool fits = strncmp(text + 9, c->status, 3) == 0 && (!c->has || strstr(text, c->has)) &&
		    (!c->lacks || !strstr(text, c->lacks));
	if (!fits)
		print_error("%s\n", text);
	CHECK_CASE(c, fits);
}

/* One that listens on all addresses has any name, unless it is told which. */
static void knows_its_names_on_any_address(void **state)
{
	(void)state;
	static const char *const hosts[] = { "firn.example", NULL };
	struct net_server *s = calloc(1, sizeof(*s));
	struct net_exchange *x = calloc(1, sizeof(*x));
	CHECK(s && x);
	snprintf(s->address, sizeof(s->address), "0.0.0.0:7070");
	s->config.check_host = true;
	x->server = s;
	struct err e = { 0 };
	struct http_request h = { .method = STR("GET"), .authority = STR("evil.example") };
	CHECK(net_access_check(x, &h, &e) == OK);
	s->config.hosts = hosts;
	CHECK(net_access_check(x, &h, &e) == E_DENIED);
	h.authority = STR("firn.example:7070");
	CHECK(net_access_check(x, &h, &e) == OK);
	free(x);
	free(s);
}

static void answers_to_its_names_only(void **state)
{
	(void)state;
	static const char *const hosts[] = { "firn.example", NULL };
	/* clang-format off */
	static const struct access_case cases[] = {
		{ "localhost", "GET /show/x HTTP/1.1\r\nhost: localhost:7070\r\n", "200", NULL, NULL },
		{ "case and dot", "GET /show/x HTTP/1.1\r\nhost: LocalHost.\r\n", "200", NULL, NULL },
		{ "below localhost", "GET /show/x HTTP/1.1\r\nhost: a.localhost:1\r\n", "200", NULL, NULL },
		{ "address", "GET /show/x HTTP/1.1\r\nhost: 192.168.1.2:80\r\n", "200", NULL, NULL },
		{ "address of six", "GET /show/x HTTP/1.1\r\nhost: [::1]:80\r\n", "200", NULL, NULL },
		{ "named", "GET /show/x HTTP/1.1\r\nhost: firn.example:80\r\n", "200", NULL, NULL },
		{ "no host", "GET /show/x HTTP/1.0\r\n", "200", NULL, NULL },
		{ "another", "GET /show/x HTTP/1.1\r\nhost: evil.example\r\n", "403", "this server is not called \\\"evil.example\\\"", NULL },
		{ "ends like it", "GET /show/x HTTP/1.1\r\nhost: evillocalhost\r\n", "403", NULL, NULL },
		{ "begins like it", "GET /show/x HTTP/1.1\r\nhost: localhost.evil.example\r\n", "403", NULL, NULL },
		{ "begins like an address", "GET /show/x HTTP/1.1\r\nhost: 127.0.0.1.evil.example\r\n", "403", NULL, NULL },
	};
	/* clang-format on */
	struct net_server_config config = peer_config();
	config.check_host = true;
	config.hosts = hosts;
	struct net_server *s = peer_start(&config);
	FOR_EACH_CASE (c, cases)
		ask(s, c);
	net_server_stop(s);
}

static void lets_named_origins_in(void **state)
{
	(void)state;
	static const char *const origins[] = { "https://a.example", NULL };
	static const char *const any[] = { "*", NULL };
	/* clang-format off */
	static const struct access_case named[] = {
		{ "no origin", "GET /show/x HTTP/1.1\r\nhost: h\r\n", "200", "vary: origin", "access-control" },
		{ "named", "GET /show/x HTTP/1.1\r\nhost: h\r\norigin: https://a.example\r\n", "200", "access-control-allow-origin: https://a.example\r\n", NULL },
		{ "exposes status", "GET /show/x HTTP/1.1\r\nhost: h\r\norigin: https://a.example\r\n", "200", "access-control-expose-headers: grpc-status, grpc-message", NULL },
		{ "errors too", "GET /none HTTP/1.1\r\nhost: h\r\norigin: https://a.example\r\n", "404", "access-control-allow-origin: https://a.example\r\n", NULL },
		{ "another may read nothing", "GET /show/x HTTP/1.1\r\nhost: h\r\norigin: https://b.example\r\n", "200", "vary: origin", "access-control" },
		{ "another may not write", "POST /echo HTTP/1.1\r\nhost: h\r\norigin: https://b.example\r\n", "403", "pages of https://b.example may not send here", NULL },
		{ "named may write", "POST /echo HTTP/1.1\r\nhost: h\r\norigin: https://a.example\r\n", "200", "access-control-allow-origin", NULL },
		{ "own page", "POST /echo HTTP/1.1\r\nhost: h:1\r\norigin: http://h:1\r\n", "200", NULL, "access-control" },
		{ "own page behind a proxy", "POST /echo HTTP/1.1\r\nhost: h\r\norigin: http://p\r\nsec-fetch-site: same-origin\r\n", "200", NULL, NULL },
		{ "the browser knows better", "POST /echo HTTP/1.1\r\nhost: h\r\norigin: http://h\r\nsec-fetch-site: cross-site\r\n", "403", NULL, NULL },
		{ "sandboxed", "POST /echo HTTP/1.1\r\nhost: h\r\norigin: null\r\n", "403", NULL, NULL },
		{ "preflight", "OPTIONS /t.Test/Echo HTTP/1.1\r\nhost: h\r\norigin: https://a.example\r\naccess-control-request-method: POST\r\naccess-control-request-headers: x-grpc-web\r\n", "204", "access-control-allow-headers: x-grpc-web\r\n", NULL },
		{ "preflight of another", "OPTIONS /t.Test/Echo HTTP/1.1\r\nhost: h\r\norigin: https://b.example\r\naccess-control-request-method: POST\r\n", "204", NULL, "access-control-allow" },
		{ "no preflight", "OPTIONS /echo HTTP/1.1\r\nhost: h\r\norigin: https://a.example\r\n", "204", "allow: POST, OPTIONS", "access-control-allow-methods" },
	};
	static const struct access_case all[] = {
		{ "any", "POST /echo HTTP/1.1\r\nhost: h\r\norigin: https://b.example\r\n", "200", "access-control-allow-origin: *\r\n", "credentials" },
	};
	static const struct access_case none[] = {
		{ "not asked for", "GET /show/x HTTP/1.1\r\nhost: h\r\norigin: https://b.example\r\n", "200", NULL, "access-control" },
		{ "no preflight at all", "OPTIONS /none HTTP/1.1\r\nhost: h\r\norigin: https://a.example\r\naccess-control-request-method: POST\r\n", "404", NULL, "access-control" },
	};
	/* clang-format on */
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	FOR_EACH_CASE (c, none)
		ask(s, c);
	net_server_stop(s);
	config.cors_origins = origins;
	s = peer_start(&config);
	FOR_EACH_CASE (c, named)
		ask(s, c);
	net_server_stop(s);
	config.cors_origins = any;
	s = peer_start(&config);
	FOR_EACH_CASE (c, all)
		ask(s, c);
	net_server_stop(s);
}

static void serves_below_a_prefix(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct access_case cases[] = {
		{ "below", "GET /firn/show/x HTTP/1.1\r\nhost: h\r\n", "200", "GET /show/x?", NULL },
		{ "beside", "GET /show/x HTTP/1.1\r\nhost: h\r\n", "404", "nothing at /show/x; all is below /firn/", NULL },
		{ "longer name", "GET /firnx/show/x HTTP/1.1\r\nhost: h\r\n", "404", NULL, NULL },
		{ "root", "GET / HTTP/1.1\r\nhost: h\r\n", "302", "location: /firn/\r\n", NULL },
		{ "without a slash", "GET /firn HTTP/1.1\r\nhost: h\r\n", "302", "location: /firn/\r\n", NULL },
		{ "nothing there", "GET /firn/none HTTP/1.1\r\nhost: h\r\n", "404", "nothing at /none\"", NULL },
		{ "web at any prefix", "POST /x/t.Test/Echo HTTP/1.1\r\nhost: h\r\ncontent-type: application/grpc-web\r\n", "200", "application/grpc-web+proto", NULL },
		{ "connect below", "POST /firn/t.Test/Json HTTP/1.1\r\nhost: h\r\ncontent-type: application/proto\r\n", "200", NULL, NULL },
		{ "connect beside", "POST /t.Test/Json HTTP/1.1\r\nhost: h\r\ncontent-type: application/proto\r\n", "404", NULL, NULL },
	};
	/* clang-format on */
	struct net_server_config config = peer_config();
	config.path_prefix = "/firn";
	struct net_server *s = peer_start(&config);
	FOR_EACH_CASE (c, cases)
		ask(s, c);
	/* gRPC at the root and below. */
	struct net_client *client;
	struct err e;
	bool retry;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	CHECK_OK(net_client_new(net_server_address(s), &client, &e), &e);
	CHECK_OK(
		net_client_rpc(client, "/t.Test/Echo", STR("a"), 60 * NS_PER_SEC, &out, &retry, &e),
		&e);
	CHECK_OK(net_client_rpc(
			 client, "/firn/t.Test/Echo", STR("b"), 60 * NS_PER_SEC, &out, &retry, &e),
		&e);
	CHECK_STR(buf_view(&out), "ab");
	net_client_free(client);
	net_server_stop(s);
}

/* No parser of heads lets such a name through. */
static void takes_no_zero_byte(void **state)
{
	(void)state;
	struct net_server s = { .address = "127.0.0.1:1", .config.check_host = true };
	struct net_exchange x = { .server = &s };
	struct http_request h = { .method = STR("GET"), .authority = str_make("127.0.0.1\0x", 11) };
	struct err e = { 0 };
	CHECK(net_access_check(&x, &h, &e) == E_DENIED);
	h.authority = STR("127.0.0.1");
	CHECK_OK(net_access_check(&x, &h, &e), &e);
}

TEST_MAIN(cmocka_unit_test(knows_its_names_on_any_address), cmocka_unit_test(takes_no_zero_byte),
	cmocka_unit_test(answers_to_its_names_only), cmocka_unit_test(lets_named_origins_in),
	cmocka_unit_test(serves_below_a_prefix))
