/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of issuers: from a file, a URL, and by discovery; kept where fetching fails; a token through
 * all of it. */
#include "test.h"

#include "auth/internal.h"
#include "jwt_vectors.h"
#include "net/net.h"

#include <time.h>
#include <unistd.h>

static char said[512];
static char issuer[64]; /* of the made server */
static bool breaks;

static void told(const char *source, uint64_t count, const char *why)
{
	(void)count;
	snprintf(said, sizeof(said), "%s: %s", source, why);
}

static void serve_document(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "application/json";
	buf_printf(&out->body, "{\"issuer\":\"%s\",\"jwks_uri\":\"%s/keys\"}", issuer, issuer);
}

static void serve_keys(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "application/json";
	buf_cstr(&out->body, breaks ? "<html>" : JWT_KEYS);
}

static const struct net_route routes[] = {
	{ .method = "GET", .path = "/.well-known/openid-configuration", .fn = serve_document },
	{ .method = "GET", .path = "/keys", .fn = serve_keys },
};

static void fetches_keys(void **state)
{
	(void)state;
	struct net_server *s = NULL;
	struct net_server_config c;
	struct err e = { 0 };
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, ARRAY_COUNT(routes), &s, &e), &e);
	snprintf(issuer, sizeof(issuer), "http://%s", net_server_address(s));
	struct auth_issuer i = { .issuer = issuer, .audience = "firn" };
	lock_init(&i.lock, LOCK_AUTH_ISSUER);
	auth_issuer_refresh(&i, -1, told);
	CHECK(i.keys.v.len == 3 && !i.failed);
	/* Not due: nobody is asked. What cannot be read changes nothing, and is told of once. */
	breaks = true;
	auth_issuer_refresh(&i, -1, told);
	CHECK(!i.failed);
	i.tried_ns = 0;
	auth_issuer_refresh(&i, -1, told);
	CHECK(i.failed && i.keys.v.len == 3 && str_starts(str_of(said), str_of(issuer)));
	breaks = false;
	/* Another issuer's document is not believed. */
	struct auth_issuer other = { .issuer = "x", .audience = "firn" };
	char slash[80];
	snprintf(slash, sizeof(slash), "%s/", issuer);
	other.issuer = slash;
	lock_init(&other.lock, LOCK_AUTH_ISSUER);
	auth_issuer_refresh(&other, -1, told);
	CHECK(other.failed && strstr(said, "is another issuer's"));
	char url[80];
	snprintf(url, sizeof(url), "%s/keys", issuer);
	other.jwks_url = url;
	other.tried_ns = 0;
	auth_issuer_refresh(&other, -1, told);
	CHECK(!other.failed && other.keys.v.len == 3);
	auth_keys_free(&i.keys);
	auth_keys_free(&other.keys);
	net_server_stop(s);
}

/* From the file to the verdict. */
static void lets_a_token_in(void **state)
{
	(void)state;
	char keys[64], path[64];
	struct auth *a = NULL;
	struct err e = { 0 };
	char text[512];
	snprintf(keys, sizeof(keys), "/tmp/firn-test-issuers-%d.json", (int)getpid());
	snprintf(path, sizeof(path), "/tmp/firn-test-issuers-%d.yml", (int)getpid());
	snprintf(text, sizeof(text),
		"oidc:\n- issuer: https://issuer.example\n  audience: firn\n"
		"  jwks_file: %s\n  scopes: [read]\n  tenant_claim: org\n"
		"  roles_claim: groups\n  roles: {profilers: [write]}\n",
		keys);
	CHECK_OK(os_replace_file(keys, JWT_KEYS, sizeof(JWT_KEYS) - 1, 0600, &e), &e);
	CHECK_OK(os_replace_file(path, text, strlen(text), 0600, &e), &e);
	CHECK_OK(auth_open(path, NULL, told, &a, &e), &e);
	CHECK(auth_is_required(a));
	struct auth_claim claim = {
		.authorization = STR("Bearer " JWT_EDDSA), .source = "unix", .scope = AUTH_WRITE
	};
	struct auth_caller caller = { 0 };
	CHECK(auth_judge(a, &claim, false, &caller, &e) == AUTH_BLOCKS);
	/* Its thread has the keys soon; until then nobody guesses. */
	enum auth_verdict v = AUTH_NO;
	for (int i = 0; i < 9 && v != AUTH_YES; i++) {
		CHECK(e.status != E_UNAUTHENTICATED);
		v = auth_judge(a, &claim, true, &caller, &e);
		if (v != AUTH_YES)
			nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL);
	}
	CHECK(v == AUTH_YES && strcmp(caller.name, "alice") == 0);
	CHECK(caller.has_tenant && strcmp(caller.tenant, "shop") == 0);
	CHECK(caller.until_ns > clock_monotonic_ns());
	CHECK(auth_judge(a, &claim, false, &caller, &e) == AUTH_YES); /* remembered */
	/* A file that is read again keeps them, also where they cannot be had any more. */
	bool changed = false;
	unlink(keys);
	strcat(text, "tokens: [{name: a, token: 0123456789abcdef, scopes: [read]}]\n");
	CHECK_OK(os_replace_file(path, text, strlen(text), 0600, &e), &e);
	CHECK_OK(auth_look(a, &changed, &e), &e);
	CHECK(changed && auth_judge(a, &claim, true, &caller, &e) == AUTH_YES);
	claim.scope = AUTH_ADMIN;
	CHECK(auth_judge(a, &claim, false, &caller, &e) == AUTH_NO && e.status == E_DENIED);
	claim.authorization = STR("Bearer " JWT_EXPIRED);
	CHECK(auth_judge(a, &claim, true, &caller, &e) == AUTH_NO);
	CHECK(e.status == E_UNAUTHENTICATED && strstr(e.text, "has expired"));
	auth_close(a);
	unlink(path);
	unlink(keys);
}

TEST_MAIN(cmocka_unit_test(fetches_keys), cmocka_unit_test(lets_a_token_in))
