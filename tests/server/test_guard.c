/* SPDX-License-Identifier: Apache-2.0 */
/* In front of every route, in every framing: right, wrong, of another scope, of another tenant. */
#include "test.h"

#include "serve.h"

#include "fetch/fetch.h"
#include "os/os.h"
#include "server/guard.h"
#include "server/request/state.h"
#include "server/request/tenant.h"
#include "server/start.h"

#include <stdio.h>
#include <unistd.h>

#define HASH "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW" /* of "secret" */
#define BASIC_RIGHT "Basic YWxpY2U6c2VjcmV0"
#define BASIC_WRONG "Basic YWxpY2U6U2VjcmV0"
#define READER "Bearer 0123456789reader"
#define WRITER "Bearer 0123456789writer"
#define TYPES "/parca.query.v1alpha1.QueryService/ProfileTypes"
#define WRITE_RAW "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw"

static char path[64];

static void guarded_start(struct serve *v)
{
	static const char yaml[] =
		"basic_auth_users: {alice: " HASH "}\n"
		"http_server_config: {headers: {X-Frame-Options: deny}}\n"
		"tokens:\n"
		"- {name: reader, token: 0123456789reader, scopes: [read], tenant: a}\n"
		"- {name: writer, token: 0123456789writer, scopes: [write]}\n";
	size_t count;
	struct net_server_config c;
	memset(v, 0, sizeof(*v));
	snprintf(path, sizeof(path), "/tmp/firn-test-guard-%d.yml", (int)getpid());
	CHECK_OK(os_replace_file(path, yaml, sizeof(yaml) - 1, 0600, &v->e), &v->e);
	server_config_default(&v->config);
	v->config.http_address = "127.0.0.1:0";
	v->config.web_config_file = path;
	v->config.tenant_header = "x-scope-orgid";
	v->s.config = &v->config;
	CHECK_OK(server_guard_open(&v->s, &v->e), &v->e);
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	server_guard_config(&v->s, &c);
	CHECK_OK(server_make_routes(&v->s, &count, &v->e), &v->e);
	CHECK_OK(net_server_start(&c, v->s.routes, count, &v->s.net, &v->e), &v->e);
	CHECK_OK(net_client_new(net_server_address(v->s.net), &v->client, &v->e), &v->e);
	buf_init(&v->out, 64 << 20);
}

static void guarded_stop(struct serve *v)
{
	struct auth *a = v->s.auth;
	serve_stop(v);
	auth_close(a);
	unlink(path);
}

/* Behind the guard a server whose store is not open yet answers 503. */
static int ask(struct serve *v, const char *method, const char *target, const char *type,
	const char *authorization, const char *tenant)
{
	struct fetch *f = NULL;
	int status = 0;
	CHECK_OK(fetch_new(&(struct fetch_config){ .address = net_server_address(v->s.net) }, &f,
			 &v->e),
		&v->e);
	CHECK_OK(fetch_header(f, "authorization", authorization, &v->e), &v->e);
	CHECK_OK(fetch_header(f, "x-scope-orgid", tenant, &v->e), &v->e);
	buf_clear(&v->out);
	if (strcmp(method, "GET") == 0)
		CHECK_OK(fetch_get(f, target, 20 * NS_PER_SEC, &status, &v->out, &v->e), &v->e);
	else
		CHECK_OK(fetch_post(f, target, type, STR("{}"), 20 * NS_PER_SEC, &status, &v->out,
				 &v->e),
			&v->e);
	fetch_free(f);
	return status;
}

static void guards_http(void **state)
{
	(void)state;
	static const struct {
		const char *name, *method, *target, *type, *authorization, *tenant;
		int status;
	} cases[] = {
		{ "nobody", "GET", "/api/types", NULL, NULL, NULL, 401 },
		{ "wrong password", "GET", "/api/types", NULL, BASIC_WRONG, NULL, 401 },
		{ "password", "GET", "/api/types", NULL, BASIC_RIGHT, NULL, 503 },
		{ "token", "GET", "/api/types", NULL, READER, NULL, 503 },
		{ "own tenant", "GET", "/api/types", NULL, READER, "a", 503 },
		{ "scope", "GET", "/api/types", NULL, WRITER, NULL, 403 },
		{ "writing", "POST", "/api/push", "application/octet-stream", READER, NULL, 403 },
		{ "admin", "POST", "/-/reload", "text/plain", READER, NULL, 403 },
		{ "admin by password", "POST", "/-/reload", "text/plain", BASIC_RIGHT, NULL, 503 },
		{ "metrics", "GET", "/metrics", NULL, NULL, NULL, 401 },
		{ "open", "GET", "/healthy", NULL, NULL, NULL, 200 },
		{ "REST", "GET", "/api/profiles/types", NULL, NULL, NULL, 401 },
		{ "REST by token", "GET", "/api/profiles/types", NULL, READER, NULL, 503 },
		{ "Connect", "POST", TYPES, "application/json", NULL, NULL, 401 },
		{ "Connect by token", "POST", TYPES, "application/json", READER, NULL, 503 },
		{ "Connect by password", "POST", TYPES, "application/json", BASIC_RIGHT, NULL,
			503 },
		{ "Connect, scope", "POST", WRITE_RAW, "application/json", READER, NULL, 403 },
		/* 0: gRPC's status in the answer, read below. */
		{ "gRPC-Web", "POST", TYPES, "application/grpc-web", NULL, NULL, 200 },
		{ "nothing there", "GET", "/nothing", NULL, NULL, NULL, 404 },
	};
	struct serve v;
	guarded_start(&v);
	FOR_EACH_CASE (c, cases) {
		int got = ask(&v, c->method, c->target, c->type, c->authorization, c->tenant);
		if (got != c->status)
			print_error("%d %.*s\n", got, STR_ARG(buf_view(&v.out)));
		CHECK_CASE(c, got == c->status);
	}
	CHECK(ask(&v, "POST", TYPES, "application/grpc-web", NULL, NULL) == 200);
	CHECK(v.out.len > 5 &&
		str_starts(str_sub(buf_view(&v.out), 5, 99), STR("grpc-status: 16")));
	guarded_stop(&v);
}

/* A page: in by its password, then by the cookie alone, until it logs out. */
static void keeps_a_session(void **state)
{
	(void)state;
	struct serve v;
	guarded_start(&v);
	CHECK(ask(&v, "POST", "/api/login", "text/plain", BASIC_WRONG, NULL) == 401);
	CHECK(ask(&v, "POST", "/api/login", "text/plain", BASIC_RIGHT, NULL) == 200);
	CHECK_STR(buf_view(&v.out), "{\"name\":\"alice\"}\n");
	struct net_response out = { 0 };
	struct net_request r = { .caller = { .scopes = AUTH_READ, .name = "alice" } };
	buf_init(&out.body, 1000);
	server_handle_login(&v.s, &r, &out);
	char cookie[100];
	const char *set = strstr(out.headers, "firn_session=");
	CHECK(set && strstr(out.headers, "; HttpOnly; SameSite=Strict\r\n"));
	snprintf(cookie, sizeof(cookie), "a=b; %.*s", (int)strcspn(set, ";"), set);
	struct net_server_config c;
	net_server_config_default(&c);
	server_guard_config(&v.s, &c);
	struct http_header header = { STR("cookie"), str_of(cookie) };
	struct net_caller caller = { 0 };
	char challenge[NET_CHALLENGE_BYTES] = "";
	r = (struct net_request){ .headers = &header, .header_count = 1, .peer = "unix" };
	CHECK(c.guard(c.guard_ctx, &r, AUTH_READ, false, &caller, challenge, &v.e) ==
		NET_GUARD_YES);
	CHECK(strcmp(caller.name, "alice") == 0);
	buf_clear(&out.body);
	server_handle_logout(&v.s, &r, &out);
	CHECK(c.guard(c.guard_ctx, &r, AUTH_READ, false, &caller, challenge, &v.e) == NET_GUARD_NO);
	CHECK(strstr(challenge, "Basic"));
	/* The browser of a page that asks is not made to open a window of its own. */
	header = (struct http_header){ STR("sec-fetch-mode"), STR("cors") };
	CHECK(c.guard(c.guard_ctx, &r, AUTH_READ, false, &caller, challenge, &v.e) == NET_GUARD_NO);
	CHECK(strstr(challenge, "Bearer"));
	buf_deinit(&out.body);
	guarded_stop(&v);
}

static void guards_grpc(void **state)
{
	(void)state;
	static const struct {
		const char *name, *path, *authorization, *says;
	} cases[] = {
		{ "nobody", TYPES, NULL, "asks for a password or a bearer token" },
		{ "wrong", TYPES, BASIC_WRONG, "the name or the password is wrong" },
		{ "password", TYPES, BASIC_RIGHT, "the store is being opened" },
		{ "token", TYPES, READER, "the store is being opened" },
		{ "scope", WRITE_RAW, READER, "needs the scope \"write\"" },
		{ "writes", WRITE_RAW, WRITER, "the store is being opened" },
		{ "stream", "/parca.debuginfo.v1alpha1.DebuginfoService/Upload", NULL,
			"asks for a password" },
		{ "stream, wrong", "/parca.debuginfo.v1alpha1.DebuginfoService/Upload",
			"Basic YWxpY2U6dGhpcmQ=", "the name or the password is wrong" },
	};
	struct serve v;
	guarded_start(&v);
	FOR_EACH_CASE (c, cases) {
		CHECK_OK(
			net_client_header(v.client, "authorization", c->authorization, &v.e), &v.e);
		CHECK_CASE(c, serve_call(&v, c->path, STR("")) != OK);
		if (!strstr(v.e.text, c->says))
			print_error("%s\n", v.e.text);
		CHECK_CASE(c, strstr(v.e.text, c->says));
	}
	CHECK_OK(net_client_header(v.client, "authorization", NULL, &v.e), &v.e);
	CHECK_OK(serve_call(&v, "/grpc.health.v1.Health/Check", STR("")), &v.e);
	guarded_stop(&v);
}

static void binds_to_a_tenant(void **state)
{
	(void)state;
	const struct http_header other = { STR("x-scope-orgid"), STR("b") };
	struct server_config config = { .tenant_header = "x-scope-orgid" };
	struct server s = { .config = &config };
	struct net_request r = { .headers = &other,
		.header_count = 1,
		.caller = { .has_tenant = true, .tenant = "a", .name = "reader" } };
	struct str tenant;
	struct err e;
	CHECK(server_tenant(&s, &r, &tenant, &e) == E_DENIED);
	CHECK_STR(str_of(e.text), "x-scope-orgid: reader is of another tenant");
	r.header_count = 0;
	CHECK_OK(server_tenant(&s, &r, &tenant, &e), &e);
	CHECK_STR(tenant, "a");
	config.tenant_header = NULL;
	CHECK_OK(server_tenant(&s, &r, &tenant, &e), &e);
	CHECK_STR(tenant, "a");
}

static void refuses_an_open_address(void **state)
{
	(void)state;
	static const struct {
		const char *name, *address;
		bool open, certificates;
		enum status status;
	} cases[] = {
		{ "loopback", "127.0.0.1:0", false, false, OK },
		{ "the other one", "127.5.0.1:0", false, false, OK },
		{ "IPv6", "[::1]:0", false, false, OK },
		{ "socket", "unix:/tmp/x", false, false, OK },
		{ "all", ":0", false, false, E_DENIED },
		{ "IPv4", "0.0.0.0:7070", false, false, E_DENIED },
		{ "another", "192.0.2.1:7070", false, false, E_DENIED },
		{ "unknown name", "no-such-host.invalid:7070", false, false, E_DENIED },
		{ "no address", "127.0.0.1:port", false, false, OK }, /* listening says so */
		{ "said so", "0.0.0.0:7070", true, false, OK },
		{ "certificates", "0.0.0.0:7070", false, true, OK },
	};
	FOR_EACH_CASE (c, cases) {
		struct server_config config = { .http_address = c->address,
			.allow_unauthenticated = c->open,
			.tls_client_ca_file = c->certificates ? "ca.pem" : NULL };
		struct server s = { .config = &config };
		struct err e = { 0 };
		CHECK_CASE(c, server_guard_open(&s, &e) == c->status);
		CHECK_CASE(c, c->status == OK || (strstr(e.text, "--web-config-file") &&
							 strstr(e.text, "--http-allow-unauth")));
		auth_close(s.auth);
	}
}

TEST_MAIN(cmocka_unit_test(guards_http), cmocka_unit_test(guards_grpc),
	cmocka_unit_test(keeps_a_session), cmocka_unit_test(binds_to_a_tenant),
	cmocka_unit_test(refuses_an_open_address))
