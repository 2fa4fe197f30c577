/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which route a request takes: the first whose path and method fit. Framing and route are chosen
 * together: JSON on the path of an RPC is Connect, elsewhere REST or plain.
 */
#include "net/route.h"
#include "net/state.h"
#include "net/transcode.h"

#include <stdio.h>

static bool route_path_fits(const struct net_route *route, struct str path, bool any_prefix)
{
	struct str want = str_of(route->path);
	struct pb_param fields[NET_REST_FIELDS_MAX];
	size_t count;
	if (route->rest)
		return net_rest_fits(route->path, path, fields, &count);
	if (want.len && want.p[want.len - 1] == '*')
		return str_starts(path, str_sub(want, 0, want.len - 1));
	return str_eq(path, want) || (any_prefix && route->is_rpc && str_ends(path, want));
}

static bool route_method_fits(const struct net_route *route, struct str method)
{
	if (!route->method)
		return true;
	struct str want = str_of(route->method);
	return str_eq(method, want) || (str_eq(method, STR("HEAD")) && str_eq(want, STR("GET")));
}

bool net_route_put_allow(struct net_exchange *x)
{
	char *out = x->response.headers;
	size_t size = sizeof(x->response.headers), n = 0;
	for (size_t i = 0; i < x->server->route_count; i++) {
		const struct net_route *r = &x->server->routes[i];
		if (!r->method || !route_path_fits(r, x->request.path, false))
			continue;
		int more = snprintf(out + n, size - n, "%s%s%s", n ? ", " : "allow: ", r->method,
			strcmp(r->method, "GET") == 0 ? ", HEAD" : "");
		n = MIN(n + (size_t)more, size - 16);
	}
	if (n)
		snprintf(out + n, size - n, ", OPTIONS\r\n");
	return n > 0;
}

static const struct net_route *find_route(const struct net_exchange *x)
{
	bool web = x->framing == NET_GRPC_WEB || x->framing == NET_GRPC_WEB_TEXT;
	for (size_t i = 0; i < x->server->route_count; i++) {
		const struct net_route *r = &x->server->routes[i];
		if (x->framing != NET_PLAIN && !r->is_rpc)
			continue;
		if (route_path_fits(r, x->request.path, web) &&
			route_method_fits(r, x->request.method))
			return r;
	}
	return NULL;
}

void net_route_choose(struct net_exchange *x, const struct http_request *h)
{
	x->framing = net_framing_of(http_request_header(h, "content-type"));
	x->route = find_route(x);
	bool connect = http_request_header(h, "connect-protocol-version").len > 0;
	if (x->framing == NET_CONNECT_JSON && !x->route && !connect) {
		x->framing = NET_PLAIN;
		x->route = find_route(x);
	}
	if (x->framing == NET_PLAIN && x->route && x->route->rest)
		x->framing = NET_REST;
	x->request.is_rpc = x->framing != NET_PLAIN;
}
