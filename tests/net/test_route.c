/* SPDX-License-Identifier: Apache-2.0 */
/* Which route and framing a path, a method and a content type lead to, and what a path takes. */
#include "test.h"

#include "net/route.h"
#include "net/state.h"

static const struct pb_method echo;
static struct net_route routes[] = {
	{ .method = "GET", .path = "/fast" },
	{ .method = "POST", .path = "/fast" },
	{ .method = "GET", .path = "/show/*" },
	{ .path = "/any" },
	{ .method = "POST", .path = "/t.Test/Echo", .is_rpc = true, .rpc = &echo },
	{ .method = "GET", .path = "/api/{name}/echo", .rpc = &echo, .rest = true },
};

/* clang-format off */
static const struct { const char *name, *method, *path, *type; int route; enum net_framing framing; } cases[] = {
	{ "exact", "GET", "/fast", "", 0, NET_PLAIN },
	{ "HEAD is GET", "HEAD", "/fast", "", 0, NET_PLAIN },
	{ "by its method", "POST", "/fast", "", 1, NET_PLAIN },
	{ "another method", "PUT", "/fast", "", -1, NET_PLAIN },
	{ "prefix", "GET", "/show/a/b", "", 2, NET_PLAIN },
	{ "less than the prefix", "GET", "/show", "", -1, NET_PLAIN },
	{ "any method", "BREW", "/any", "", 3, NET_PLAIN },
	{ "gRPC", "POST", "/t.Test/Echo", "application/grpc", 4, NET_GRPC },
	{ "gRPC at a plain path", "POST", "/fast", "application/grpc", -1, NET_GRPC },
	{ "gRPC-Web below a prefix", "POST", "/firn/t.Test/Echo", "application/grpc-web", 4, NET_GRPC_WEB },
	{ "gRPC below a prefix", "POST", "/firn/t.Test/Echo", "application/grpc", -1, NET_GRPC },
	{ "JSON of Connect", "POST", "/t.Test/Echo", "application/json", 4, NET_CONNECT_JSON },
	{ "JSON at a plain path", "POST", "/fast", "application/json", 1, NET_PLAIN },
	{ "REST", "GET", "/api/x/echo", "", 5, NET_REST },
};
/* clang-format on */

static struct net_server server;

static void begin(struct net_exchange *x, const char *method, const char *path)
{
	memset(x, 0, sizeof(*x));
	server.routes = routes;
	server.route_count = ARRAY_COUNT(routes);
	x->server = &server;
	x->request.method = str_of(method);
	x->request.path = str_of(path);
}

static void are_chosen(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		static struct net_exchange x;
		struct http_header type = { STR("content-type"), str_of(c->type) };
		struct http_request h = { .headers = &type, .header_count = 1 };
		begin(&x, c->method, c->path);
		net_route_choose(&x, &h);
		CHECK_CASE(c, x.route == (c->route < 0 ? NULL : &routes[c->route]));
		CHECK_CASE(c, x.framing == c->framing);
	}
}

static void say_what_a_path_takes(void **state)
{
	(void)state;
	static struct net_exchange x;
	begin(&x, "PUT", "/fast");
	CHECK(net_route_put_allow(&x));
	assert_string_equal(x.response.headers, "allow: GET, HEAD, POST, OPTIONS\r\n");
	begin(&x, "PUT", "/nothing");
	CHECK(!net_route_put_allow(&x));
}

TEST_MAIN(cmocka_unit_test(are_chosen), cmocka_unit_test(say_what_a_path_takes))
