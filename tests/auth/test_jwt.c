/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens, made by another library (jwt_maker.py): right, and wrong in each way. */
#include "test.h"

#include "auth/internal.h"
#include "jwt_vectors.h"

#define NOW_S 1800000000

static const struct auth_issuer plain = { .issuer = "https://issuer.example",
	.audience = "firn",
	.roles_claim = "groups",
	.roles = { { "profilers", AUTH_WRITE }, { "admins", AUTH_ALL } },
	.role_count = 2,
	.caller = { .scopes = AUTH_READ } };

static void checks_tokens(void **state)
{
	(void)state;
	static const struct {
		const char *name, *token, *says; /* NULL: good */
	} cases[] = {
		{ "RS256", JWT_RS256, NULL },
		{ "ES256", JWT_ES256, NULL },
		{ "EdDSA", JWT_EDDSA, NULL },
		{ "no kid", JWT_NO_KID, NULL },
		{ "none", JWT_NONE, "does not have" },
		{ "HS256", JWT_HS256, "does not have" },
		{ "another key", JWT_OTHER_KEY, "does not have" },
		{ "another kind", JWT_SWAPPED, "does not have" },
		{ "crit", JWT_CRIT, "asks for extensions" },
		{ "expired", JWT_EXPIRED, "has expired" },
		{ "early", JWT_EARLY, "is not valid yet" },
		{ "no end", JWT_NO_EXP, "does not say when it ends" },
		{ "end as a text", JWT_EXP_TEXT, "does not say when it ends" },
		{ "issuer", JWT_ISSUER, "is of another issuer" },
		{ "audience", JWT_AUDIENCE, "is for another audience" },
		{ "no audience", JWT_NO_AUD, "is for another audience" },
		{ "no JWT", "abc", "is not known here" },
		{ "one dot", "abc.def", "is not known here" },
		{ "no JSON", "abcd.abcd.abcd", "is malformed" },
		{ "no base64", "e30.e30.!!!!", "is malformed" },
	};
	struct auth_keys keys = { 0 };
	struct err e = { 0 };
	CHECK_OK(auth_keys_parse(STR(JWT_KEYS), &keys, &e), &e);
	CHECK(keys.v.len == 3);
	FOR_EACH_CASE (c, cases) {
		struct auth_caller caller = { 0 };
		int64_t until = 0;
		enum status s =
			auth_jwt_check(&plain, &keys, str_of(c->token), NOW_S, &caller, &until, &e);
		CHECK_CASE(c, (s == OK) == !c->says);
		CHECK_CASE(c, s == OK || strstr(e.text, c->says));
		CHECK_CASE(c, s != OK || until == NOW_S + 86400);
		CHECK_CASE(c, s != OK || caller.scopes == (AUTH_READ | AUTH_WRITE));
		CHECK_CASE(c, s != OK || strcmp(caller.name, "alice") == 0);
	}
	auth_keys_free(&keys);
}

/* Each byte of a good token, changed, makes a bad one. */
static void every_byte_counts(void **state)
{
	(void)state;
	struct auth_keys keys = { 0 };
	struct err e = { 0 };
	char token[] = JWT_ES256;
	CHECK_OK(auth_keys_parse(STR(JWT_KEYS), &keys, &e), &e);
	for (size_t i = 0; i + 2 < sizeof(token); i++) {
		struct auth_caller caller;
		int64_t until;
		char old = token[i];
		token[i] = old == 'A' ? 'B' : 'A';
		CHECK(auth_jwt_check(&plain, &keys, str_of(token), NOW_S, &caller, &until, &e) !=
			OK);
		token[i] = old;
	}
	auth_keys_free(&keys);
}

static void takes_tenant_and_roles(void **state)
{
	(void)state;
	struct auth_issuer i = plain;
	struct auth_keys keys = { 0 };
	struct auth_caller caller;
	int64_t until;
	struct err e = { 0 };
	CHECK_OK(auth_keys_parse(STR(JWT_KEYS), &keys, &e), &e);
	i.tenant_claim = "org";
	CHECK_OK(auth_jwt_check(&i, &keys, STR(JWT_RS256), NOW_S, &caller, &until, &e), &e);
	CHECK(caller.has_tenant && strcmp(caller.tenant, "shop") == 0);
	CHECK(auth_jwt_check(&i, &keys, STR(JWT_NO_ORG), NOW_S, &caller, &until, &e) ==
		E_UNAUTHENTICATED);
	i.roles_claim = "scope"; /* words of a text */
	CHECK_OK(auth_jwt_check(&i, &keys, STR(JWT_SCOPE), NOW_S, &caller, &until, &e), &e);
	CHECK(caller.scopes == (AUTH_READ | AUTH_WRITE));
	CHECK_OK(auth_jwt_check(&i, &keys, STR(JWT_RS256), NOW_S, &caller, &until, &e), &e);
	CHECK(caller.scopes == AUTH_READ);
	auth_keys_free(&keys);
}

static void refuses_keys(void **state)
{
	(void)state;
	static const struct {
		const char *name, *json;
	} cases[] = {
		{ "empty", "" },
		{ "no list", "{\"keys\": 1}" },
		{ "none", "{\"keys\": []}" },
		{ "short RSA",
			"{\"keys\": [{\"kty\": \"RSA\", \"n\": \"AQAB\", \"e\": \"AQAB\"}]}" },
		{ "not on the curve", "{\"keys\": [{\"kty\": \"EC\", \"crv\": \"P-256\", \"x\": "
				      "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\", \"y\": "
				      "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}]}" },
		{ "other curve",
			"{\"keys\": [{\"kty\": \"OKP\", \"crv\": \"X25519\", \"x\": \"AAAA\"}]}" },
		{ "shared secret", "{\"keys\": [{\"kty\": \"oct\", \"k\": \"AAAA\"}]}" },
	};
	FOR_EACH_CASE (c, cases) {
		struct auth_keys keys = { 0 };
		struct err e;
		CHECK_CASE(c, auth_keys_parse(str_of(c->json), &keys, &e) == E_INVALID);
	}
}

TEST_MAIN(cmocka_unit_test(checks_tokens), cmocka_unit_test(every_byte_counts),
	cmocka_unit_test(takes_tenant_and_roles), cmocka_unit_test(refuses_keys))
