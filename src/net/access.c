/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of a request's head: the host name in it, the origin of the page that a browser sends it
 * for (CORS), and the prefix of its path.
 *
 * A page of another site can make a browser send requests to 127.0.0.1. CORS keeps the page from
 * reading the answer, unless the site's name is made to resolve to 127.0.0.1 (DNS rebinding). So a
 * server on a loopback address, or with --http-allowed-hosts, accepts only requests for its own
 * names. A request that changes something is refused when it comes from a page of an origin that is
 * not allowed.
 */
#include "net/access.h"
#include "net/state.h"

#include <arpa/inet.h>
#include <stdio.h>

/* ---- names ---- */

/* "localhost:7070" without its port, "[::1]:7070" without brackets. */
static struct str host_of(struct str authority)
{
	if (authority.len && authority.p[0] == '[')
		return str_sub(authority, 1, str_index(authority, ']') - 1);
	return str_sub(authority, 0, str_index(authority, ':'));
}

static bool is_ip(struct str host)
{
	char text[INET6_ADDRSTRLEN + 1];
	unsigned char bytes[16];
	if (host.len >= sizeof(text) || str_index(host, 0) < host.len)
		return false;
	memcpy(text, host.p ? host.p : "", host.len);
	text[host.len] = 0;
	return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

static bool listed(const char *const *list, struct str name)
{
	for (; list && *list; list++)
		if (str_eq_nocase(name, str_of(*list)))
			return true;
	return false;
}

static bool name_is_ours(const struct net_server *s, struct str authority)
{
	struct str host = host_of(authority), dot = STR("."), local = STR(".localhost");
	if (str_ends(host, dot))
		host.len--;
	if (host.len == 0 || is_ip(host) || str_eq_nocase(host, STR("localhost")))
		return true;
	if (host.len > local.len &&
		str_eq_nocase(str_sub(host, host.len - local.len, local.len), local))
		return true;
	return listed(s->config.hosts, host) || listed(s->config.hosts, authority);
}

/* A server with configured names accepts no others. One without them checks names only on a
 * loopback address: it does not know the names by which other hosts reach it. */
static bool checks_names(const struct net_server *s)
{
	const char *const *names = s->config.hosts;
	struct str a = str_of(s->address);
	return s->config.check_host &&
	       ((names && names[0]) || str_starts(a, STR("127.")) || str_starts(a, STR("[::1]")));
}

/* ---- origins ---- */

/* Whether a page of this origin may read answers; *out_any: a page of any origin may. */
static bool origin_allowed(const struct net_server *s, struct str origin, bool *out_any)
{
	*out_any = listed(s->config.cors_origins, STR("*"));
	return *out_any || listed(s->config.cors_origins, origin);
}

/* Sec-Fetch-Site, which the browser sets, comes first: behind a proxy this server's name may differ
 * from the page's. */
static bool same_origin(const struct net_exchange *x, struct str origin, struct str authority)
{
	struct str site = net_header_find(&x->request, "sec-fetch-site");
	if (site.len)
		return str_eq(site, STR("same-origin")) || str_eq(site, STR("none"));
	size_t scheme = str_index(origin, ':');
	return str_eq_nocase(str_sub(origin, scheme + 3, origin.len), authority);
}

static bool changes_nothing(struct str method)
{
	return str_eq(method, STR("GET")) || str_eq(method, STR("HEAD")) ||
	       str_eq(method, STR("OPTIONS"));
}

enum status net_access_check(
	const struct net_exchange *x, const struct http_request *h, struct err *e)
{
	const struct net_server *s = x->server;
	bool any;
	struct str origin = net_header_find(&x->request, "origin");
	if (checks_names(s) && !name_is_ours(s, h->authority))
		return err_set(e, E_DENIED,
			"this server is not called \"%.*s\"; --http-allowed-hosts names more",
			STR_ARG(str_sub(h->authority, 0, 80)));
	if (origin.len && !changes_nothing(h->method) && !same_origin(x, origin, h->authority) &&
		!origin_allowed(s, origin, &any))
		return err_set(e, E_DENIED,
			"pages of %.*s may not send here; --cors-allowed-origins names the origins "
			"that may",
			STR_ARG(str_sub(origin, 0, 80)));
	return OK;
}

/* ---- the guard ---- */

bool net_access_guard(struct net_exchange *x)
{
	const struct net_server_config *c = &x->server->config;
	char challenge[NET_CHALLENGE_BYTES] = "";
	struct err e = { 0 };
	if (!x->unguarded)
		return true;
	if (c->guard(c->guard_ctx, &x->request, x->route->scope, true, &x->request.caller,
		    challenge, &e) == NET_GUARD_YES)
		return true;
	snprintf(x->response.headers, sizeof(x->response.headers), "%s", challenge);
	net_fail(&x->response, e.status, &e);
	return false;
}

/* ---- headers of all answers, and CORS ---- */

void net_access_put(struct net_exchange *x)
{
	struct net_answer *a = &x->answer;
	bool any;
	struct str origin = net_header_find(&x->request, "origin");
	const struct net_server_config *c = &x->server->config;
	for (size_t i = 0; i < c->header_count; i++)
		net_answer_add(a, c->headers[i].name, c->headers[i].value);
	if (!x->server->config.cors_origins || !x->server->config.cors_origins[0])
		return;
	net_answer_add(a, STR("vary"), STR("origin"));
	if (!origin.len || !origin_allowed(x->server, origin, &any))
		return;
	net_answer_add(a, STR("access-control-allow-origin"), any ? STR("*") : origin);
	if (!any)
		net_answer_add(a, STR("access-control-allow-credentials"), STR("true"));
	net_answer_add(a, STR("access-control-expose-headers"),
		STR("grpc-status, grpc-message, grpc-encoding, grpc-status-details-bin, "
		    "content-encoding, content-disposition, date, etag"));
}

bool net_access_is_preflight(const struct net_exchange *x)
{
	return x->server->config.cors_origins && str_eq(x->request.method, STR("OPTIONS")) &&
	       net_header_find(&x->request, "origin").len &&
	       net_header_find(&x->request, "access-control-request-method").len;
}

void net_access_preflight(struct net_exchange *x)
{
	struct net_answer *a = &x->answer;
	struct str wanted = net_header_find(&x->request, "access-control-request-headers");
	bool any;
	net_answer_add(a, STR("vary"),
		STR("access-control-request-method, access-control-request-headers"));
	if (!origin_allowed(x->server, net_header_find(&x->request, "origin"), &any))
		return;
	net_answer_add(
		a, STR("access-control-allow-methods"), STR("GET, HEAD, POST, PUT, PATCH, DELETE"));
	if (wanted.len)
		net_answer_add(a, STR("access-control-allow-headers"), wanted);
	net_answer_add(a, STR("access-control-max-age"), STR("600"));
}

/* ---- prefix ---- */

enum net_prefix net_access_prefix(const struct net_exchange *x, struct str path, struct str *out)
{
	struct str prefix = str_of(x->server->config.path_prefix);
	*out = path;
	if (prefix.len == 0)
		return NET_PREFIX_FITS;
	if (str_starts(path, prefix) && path.len > prefix.len && path.p[prefix.len] == '/') {
		*out = str_sub(path, prefix.len, path.len);
		return NET_PREFIX_FITS;
	}
	if (str_eq(path, prefix) || str_eq(path, STR("/")))
		return NET_PREFIX_REDIRECT;
	return NET_PREFIX_OTHER;
}
