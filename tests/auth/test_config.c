/* SPDX-License-Identifier: Apache-2.0 */
/* The web-config file: what it takes, and what is wrong with it, and where. */
#include "test.h"

#include "auth/internal.h"

#include <unistd.h>

#define HASH "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW"

static void reads_all(void **state)
{
	(void)state;
	struct auth_config *c = NULL;
	struct err e = { 0 };
	/* The first two mappings as Prometheus' documentation has them. */
	struct str yaml =
		STR("tls_server_config:\n  cert_file: a.crt\n  key_file: /k/a.key\n"
		    "  client_ca_file: ca.pem\n  client_auth_type: VerifyClientCertIfGiven\n"
		    "  min_version: TLS13\n  prefer_server_cipher_suites: true\n"
		    "http_server_config:\n  http2: true\n  headers:\n    X-Frame-Options: deny\n"
		    "basic_auth_users:\n  alice: " HASH "\n  bob: " HASH "\n"
		    "users:\n  bob: {scopes: [read], tenant: b}\n"
		    "tokens:\n- name: agents\n  token: 0123456789abcdef\n  scopes: [write]\n"
		    "  tenant: ''\n- name: hashed\n  scopes: [read, admin]\n  token_sha256: "
		    "9f9f5111f7b27a781f1f1ddde5ebc2dd2b796bfc7365c9c28b548e564176929f\n");
	CHECK_OK(auth_config_read(yaml, "/etc/firn/web.yml", &c, &e), &e);
	CHECK_STR(str_of(c->web.cert_file), "/etc/firn/a.crt");
	CHECK_STR(str_of(c->web.key_file), "/k/a.key");
	CHECK(c->web.client_cert_optional && c->web.tls13_only && c->web.header_count == 1);
	CHECK_STR(str_of(c->web.headers[0][0]), "X-Frame-Options");
	CHECK(c->users.len == 2 && c->users.v[0].caller.scopes == AUTH_ALL);
	CHECK(!c->users.v[0].caller.has_tenant);
	CHECK(c->users.v[1].caller.scopes == AUTH_READ && c->users.v[1].caller.has_tenant);
	CHECK_STR(str_of(c->users.v[1].caller.tenant), "b");
	CHECK(c->tokens.len == 2 && c->tokens.v[0].caller.scopes == AUTH_WRITE);
	CHECK(c->tokens.v[0].caller.has_tenant && c->tokens.v[1].caller.scopes == AUTH_ALL);
	/* The digest of the first is the second's. */
	CHECK(memcmp(c->tokens.v[0].digest, c->tokens.v[1].digest, AUTH_HASH_BYTES) == 0);
	auth_config_unref(c);
	CHECK_OK(auth_config_read(STR(""), "web.yml", &c, &e), &e);
	CHECK(c->users.len == 0 && c->tokens.len == 0);
	auth_config_unref(c);
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	static const struct {
		const char *name, *yaml, *says;
	} cases[] = {
		{ "no such key", "basic_auth_user: {}\n",
			"line 1, column 1: there is no key \"basic_auth_user\" here; did you mean "
			"\"basic_auth_users\"?" },
		{ "a password", "basic_auth_users: {a: secret}\n", "`htpasswd -nB`" },
		{ "md5", "basic_auth_users: {a: $apr1$x}\n", "is not bcrypt's" },
		{ "cost",
			"basic_auth_users: {a: $2y$31$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4"
			"UpFFP8WIrW}\n",
			"cost above 16" },
		{ "colon", "basic_auth_users: {'a:b': " HASH "}\n", "no colon" },
		{ "stranger", "basic_auth_users: {a: " HASH "}\nusers: {b: {}}\n",
			"line 2, column 9: \"b\" is none of basic_auth_users" },
		{ "scope", "tokens: [{name: a, token: 0123456789abcdef, scopes: [reed]}]\n",
			"line 1, column 54: a scope is read, write or admin" },
		{ "no scope", "tokens: [{name: a, token: 0123456789abcdef}]\n",
			"scopes are missing" },
		{ "short", "tokens: [{name: a, token: abc, scopes: [read]}]\n",
			"16 to 4096 characters" },
		{ "two", "tokens: [{name: a, token: abc, token_file: x, scopes: [read]}]\n",
			"one of token_file, token_sha256 and token" },
		{ "digest", "tokens: [{name: a, token_sha256: abc, scopes: [read]}]\n",
			"64 hexadecimal digits" },
		{ "no file", "tokens: [{name: a, token_file: /nowhere/x, scopes: [read]}]\n",
			"/nowhere/x" },
		{ "tenant", "tokens: [{name: a, tenant: a/b, scopes: [read]}]\n",
			"a tenant's name" },
		{ "empty tenant", "basic_auth_users: {a: " HASH "}\nusers: {a: {tenant: }}\n",
			"line 2, column 13: tenant: is empty" },
		{ "empty scopes", "basic_auth_users: {a: " HASH "}\nusers:\n  a:\n    scopes:\n",
			"scopes: is empty" },
		{ "empty claim",
			"oidc: [{issuer: https://a, audience: b, scopes: [read], tenant_claim: "
			"}]\n",
			"tenant_claim: is empty" },
		{ "half", "tls_server_config: {cert_file: a}\n", "belong together" },
		{ "unchecked",
			"tls_server_config: {cert_file: a, key_file: b, client_auth_type: "
			"RequireAnyClientCert}\n",
			"not checked" },
		{ "CA unused",
			"tls_server_config: {cert_file: a, key_file: b, client_ca_file: c}\n",
			"client_ca_file needs client_auth_type" },
		{ "CA missing",
			"tls_server_config: {cert_file: a, key_file: b, client_auth_type: "
			"RequireAndVerifyClientCert}\n",
			"needs client_ca_file" },
		{ "old TLS", "tls_server_config: {min_version: TLS10}\n", "TLS12 or TLS13" },
		{ "ciphers", "tls_server_config: {cipher_suites: [X]}\n", "OpenSSL's defaults" },
		{ "http2", "http_server_config: {http2: false}\n", "gRPC needs it" },
		{ "header", "http_server_config: {headers: {X-Frame-Option: a}}\n",
			"did you mean \"X-Frame-Options\"?" },
		{ "split header",
			"http_server_config: {headers: {X-Frame-Options: \"a\\r\\nb: c\"}}\n",
			"printable" },
	};
	FOR_EACH_CASE (c, cases) {
		struct auth_config *got = NULL;
		struct err e = { 0 };
		CHECK_CASE(c, auth_config_read(str_of(c->yaml), "web.yml", &got, &e) == E_INVALID);
		if (!strstr(e.text, c->says))
			print_error("%s\n", e.text);
		CHECK_CASE(c, strstr(e.text, c->says));
		CHECK_CASE(c, !strstr(e.text, "secret"));
	}
}

TEST_MAIN(cmocka_unit_test(reads_all), cmocka_unit_test(says_what_is_wrong))
