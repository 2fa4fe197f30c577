/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Authorization: auth's verdict in net's words. A browser sends the cookie of a session by itself.
 * Other sites cannot make it do so (SameSite), and requests that change something must also come
 * from our own page (net/access.c). The answer to a page's request for data does not offer Basic,
 * or its browser would ask for a password in a window of its own.
 */
#include "server/guard.h"
#include "base/clock.h"
#include "base/log.h"
#include "server/request/request.h"

#include <stdio.h>

#define COOKIE "firn_session"
static_assert(NET_TENANT_BYTES == sizeof(((struct auth_caller *)0)->tenant), "tenant");
static_assert(NET_NAME_BYTES == sizeof(((struct auth_caller *)0)->name), "name");

static void told(const char *source, uint64_t count, const char *why)
{
	if (count == 0)
		log_warn("keys of an issuer stay as they were", "issuer=%s err=%s",
			LOG_QUOTED(source), LOG_QUOTED(why));
	else
		log_warn("requests refused", "source=%s count=%llu err=%s", source,
			(unsigned long long)count, LOG_QUOTED(why));
}

static struct str session_of(const struct net_request *r)
{
	struct str cookies = net_header_find(r, "cookie"), part;
	while (str_split(&cookies, ';', &part)) {
		part = str_trim(part);
		if (str_starts(part, STR(COOKIE "=")))
			return str_sub(part, sizeof(COOKIE), part.len);
	}
	return STR("");
}

static void put_challenge(const struct net_request *r, char out[NET_CHALLENGE_BYTES])
{
	struct str mode = net_header_find(r, "sec-fetch-mode");
	bool page = mode.len && !str_eq(mode, STR("navigate"));
	snprintf(out, NET_CHALLENGE_BYTES, "www-authenticate: %s realm=\"firn\"\r\n",
		page ? "Bearer" : "Basic");
}

static enum net_verdict guard(void *ctx, const struct net_request *r, uint32_t scope,
	bool may_block, struct net_caller *out, char challenge[NET_CHALLENGE_BYTES], struct err *e)
{
	struct server *s = ctx;
	struct auth_caller caller = { 0 };
	if (scope & SERVER_SCOPE_OPEN)
		return NET_GUARD_YES;
	const struct auth_claim claim = { .authorization = net_header_find(r, "authorization"),
		.session = session_of(r),
		.source = r->peer,
		.scope = scope };
	enum auth_verdict v = auth_judge(s->auth, &claim, may_block, &caller, e);
	if (v == AUTH_BLOCKS)
		return NET_GUARD_BLOCKS;
	if (v == AUTH_NO && e->status == E_UNAUTHENTICATED)
		put_challenge(r, challenge);
	if (v == AUTH_NO)
		return NET_GUARD_NO;
	out->scopes = caller.scopes;
	out->has_tenant = caller.has_tenant;
	out->until_ns = caller.until_ns;
	memcpy(out->tenant, caller.tenant, sizeof(out->tenant));
	memcpy(out->name, caller.name, sizeof(out->name));
	return NET_GUARD_YES;
}

void server_guard_config(struct server *s, struct net_server_config *c)
{
	const struct auth_web *w = auth_web(s->auth);
	c->guard = guard;
	c->guard_ctx = s;
	if (w->cert_file) {
		c->tls_cert_file = w->cert_file;
		c->tls_key_file = w->key_file;
		c->tls_client_ca_file = w->client_ca_file;
		c->tls_client_optional = w->client_cert_optional;
		c->tls13_only = w->tls13_only;
	}
	for (uint32_t i = 0; i < w->header_count; i++)
		s->headers[i] =
			(struct http_header){ str_of(w->headers[i][0]), str_of(w->headers[i][1]) };
	c->headers = s->headers;
	c->header_count = w->header_count;
}

void server_guard_look(struct server *s)
{
	struct err e = { 0 };
	bool changed = false;
	enum status st = auth_look(s->auth, &changed, &e);
	if (st != OK)
		log_warn("web-config file stays as it was", "err=%s", LOG_QUOTED(err_text(&e, st)));
	else if (changed)
		log_info("web-config file read again", "authentication=%s",
			auth_is_required(s->auth) ? "yes" : "no");
}

/* E_DENIED: other hosts can reach the address, and there is no authentication. */
static enum status check_address(const struct server *s, const char *address, struct err *e)
{
	const struct auth_web *w = auth_web(s->auth);
	const char *ca = w->cert_file ? w->client_ca_file : s->config->tls_client_ca_file;
	bool certificates = ca && !(w->cert_file && w->client_cert_optional);
	if (!net_address_is_public(address) || s->config->allow_unauthenticated || certificates)
		return OK;
	if (auth_require(s->auth))
		return OK;
	return err_set(e, E_DENIED,
		"--http-address %.60s: others reach it, and could read and write without saying "
		"who they are. --web-config-file names users and tokens; "
		"--http-allow-unauthenticated leaves it open",
		address);
}

enum status server_guard_open(struct server *s, struct err *e)
{
	const struct server_config *c = s->config;
	enum status st = auth_open(c->web_config_file, c->own_token, told, &s->auth, e);
	return st == OK ? check_address(s, c->http_address, e) : st;
}

/* ---- sessions ---- */

static void put_cookie(
	const struct server *s, const char *value, long seconds, struct net_response *out)
{
	const char *prefix = s->config->path_prefix ? s->config->path_prefix : "";
	bool tls = s->config->tls_cert_file || auth_web(s->auth)->cert_file;
	snprintf(out->headers, sizeof(out->headers),
		"set-cookie: " COOKIE "=%s; Path=%s/; Max-Age=%ld; HttpOnly; SameSite=Strict%s\r\n"
		"cache-control: no-store\r\n",
		value, prefix, seconds, tls ? "; Secure" : "");
	out->content_type = "application/json";
}

void server_handle_login(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	char session[AUTH_SESSION_TEXT];
	struct err e = { 0 };
	struct auth_caller caller = { .scopes = r->caller.scopes,
		.has_tenant = r->caller.has_tenant,
		.until_ns = r->caller.until_ns };
	memcpy(caller.tenant, r->caller.tenant, sizeof(caller.tenant));
	memcpy(caller.name, r->caller.name, sizeof(caller.name));
	enum status st = auth_session_new(s->auth, &caller, session, &e);
	if (st != OK) {
		net_fail(out, st, &e);
		return;
	}
	put_cookie(s, session, (long)(AUTH_SESSION_NS / NS_PER_SEC), out);
	buf_cstr(&out->body, "{\"name\":");
	buf_json_str(&out->body, str_of(caller.name));
	buf_cstr(&out->body, "}\n");
}

void server_handle_logout(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	struct str session = session_of(r);
	if (session.len)
		auth_session_end(s->auth, session);
	put_cookie(s, "", 0, out);
	buf_cstr(&out->body, "{}\n");
}
