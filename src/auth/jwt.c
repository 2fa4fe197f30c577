/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signed tokens of issuers: JWS in its compact form (RFC 7515) with RS256, ES256 and EdDSA (RFC
 * 7518, RFC 8037), and keys as JWK (RFC 7517). JSON is read by conf, since YAML includes it. That
 * conf accepts more than JSON does no harm, as only signed text is trusted.
 *
 * The type of a key determines its algorithm: a token cannot choose another.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include "auth/internal.h"
#include "http/http.h"
#include "ingest/ingest.h"

#define JWT_ARENA_BYTES ((size_t)1 << 20)
#define JWK_ARENA_BYTES ((size_t)8 << 20)
#define KEY_BYTES_MAX 2048 /* of one number of a key */
#define RSA_BITS_MIN 2048
#define RSA_BITS_MAX 8192
#define ES256_BYTES 64
#define ED25519_BYTES 32
#define LEEWAY_S 60

static const char *const algorithms[] = {
	[AUTH_RS256] = "RS256", [AUTH_ES256] = "ES256", [AUTH_EDDSA] = "EdDSA"
};

/* Decodes base64url without padding. */
static bool decode_url(struct str text, struct buf *out)
{
	char padded[4096 * 2];
	if (text.len > sizeof(padded) - 4 || text.len % 4 == 1)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.p[i];
		if (c == '+' || c == '/' || c == '=')
			return false;
		padded[i] = (char)(c == '-' ? '+' : c == '_' ? '/' : c);
	}
	size_t len = text.len;
	while (len % 4)
		padded[len++] = '=';
	return http_base64_decode(out, str_make(padded, len));
}

static struct str text_at(const struct conf_node *n, const char *key)
{
	const struct conf_node *v = conf_find(n, key);
	return v && v->kind == CONF_TEXT && v->quoted ? v->text : STR("");
}

/* ---- keys ---- */

void auth_keys_free(struct auth_keys *k)
{
	for (size_t i = 0; i < k->v.len; i++)
		EVP_PKEY_free(k->v.v[i].key);
	VEC_FREE(&k->v);
}

/* Adds a number of a key. */
static bool push_number(OSSL_PARAM_BLD *b, const char *name, struct str text, BIGNUM **out)
{
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, KEY_BYTES_MAX);
	if (!text.len || !decode_url(text, &bytes))
		return false;
	*out = BN_bin2bn(bytes.data, (int)bytes.len, NULL);
	return *out && OSSL_PARAM_BLD_push_BN(b, name, *out) == 1;
}

static EVP_PKEY *from_params(const char *type, OSSL_PARAM_BLD *b)
{
	EVP_PKEY *key = NULL;
	OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(b);
	EVP_PKEY_CTX *c = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	if (!params || !c || EVP_PKEY_fromdata_init(c) != 1 ||
		EVP_PKEY_fromdata(c, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(c);
	OSSL_PARAM_free(params);
	return key;
}

static EVP_PKEY *rsa_key(const struct conf_node *n)
{
	BIGNUM *modulus = NULL, *exponent = NULL;
	OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
	EVP_PKEY *key = NULL;
	if (b && push_number(b, OSSL_PKEY_PARAM_RSA_N, text_at(n, "n"), &modulus) &&
		push_number(b, OSSL_PKEY_PARAM_RSA_E, text_at(n, "e"), &exponent) &&
		BN_num_bits(modulus) >= RSA_BITS_MIN && BN_num_bits(modulus) <= RSA_BITS_MAX &&
		BN_num_bits(exponent) <= 64)
		key = from_params("RSA", b);
	OSSL_PARAM_BLD_free(b);
	BN_free(modulus);
	BN_free(exponent);
	return key;
}

static EVP_PKEY *p256_key(const struct conf_node *n)
{
	uint8_t point[1 + ES256_BYTES] = { 4 }; /* 4: an uncompressed point */
	CLEANUP(buf_deinit) struct buf x;
	CLEANUP(buf_deinit) struct buf y;
	buf_init(&x, ES256_BYTES);
	buf_init(&y, ES256_BYTES);
	if (!str_eq(text_at(n, "crv"), STR("P-256")) || !decode_url(text_at(n, "x"), &x) ||
		!decode_url(text_at(n, "y"), &y) || x.len != ES256_BYTES / 2 ||
		y.len != ES256_BYTES / 2)
		return NULL;
	memcpy(point + 1, x.data, x.len);
	memcpy(point + 1 + x.len, y.data, y.len);
	OSSL_PARAM_BLD *b = OSSL_PARAM_BLD_new();
	EVP_PKEY *key = NULL;
	if (b && OSSL_PARAM_BLD_push_utf8_string(b, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1 &&
		OSSL_PARAM_BLD_push_octet_string(
			b, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) == 1)
		key = from_params("EC", b);
	OSSL_PARAM_BLD_free(b);
	return key;
}

static EVP_PKEY *ed25519_key(const struct conf_node *n)
{
	CLEANUP(buf_deinit) struct buf x;
	buf_init(&x, ED25519_BYTES + 3);
	if (!str_eq(text_at(n, "crv"), STR("Ed25519")) || !decode_url(text_at(n, "x"), &x) ||
		x.len != ED25519_BYTES)
		return NULL;
	return EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, x.data, x.len);
}

/* Adds a key. Keys of other types and uses are skipped, as an issuer may have more than those
 * supported here. */
static enum status add_key(struct auth_keys *out, const struct conf_node *n, struct err *e)
{
	struct auth_key k = { 0 };
	struct str type = text_at(n, "kty"), use = text_at(n, "use"), alg = text_at(n, "alg");
	struct str id = text_at(n, "kid");
	if ((use.len && !str_eq(use, STR("sig"))) || id.len >= sizeof(k.id))
		return OK;
	if (str_eq(type, STR("RSA")))
		k = (struct auth_key){ .kind = AUTH_RS256, .key = rsa_key(n) };
	else if (str_eq(type, STR("EC")))
		k = (struct auth_key){ .kind = AUTH_ES256, .key = p256_key(n) };
	else if (str_eq(type, STR("OKP")))
		k = (struct auth_key){ .kind = AUTH_EDDSA, .key = ed25519_key(n) };
	ERR_clear_error();
	if (!k.key)
		return OK;
	memcpy(k.id, id.p ? id.p : "", id.len);
	if ((alg.len && !str_eq(alg, str_of(algorithms[k.kind]))) || out->v.len == AUTH_KEYS_MAX) {
		EVP_PKEY_free(k.key);
		return OK;
	}
	if (VEC_PUSH(&out->v, k))
		return OK;
	EVP_PKEY_free(k.key);
	return err_set(e, E_NOMEM, "keys");
}

enum status auth_keys_parse(struct str json, struct auth_keys *out, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	const struct conf_node *root = NULL;
	struct auth_keys made = { 0 };
	arena_init(&a, JWK_ARENA_BYTES);
	enum status s = conf_parse(json, &a, &root, e);
	if (s != OK)
		return s;
	const struct conf_node *keys = conf_find(root, "keys");
	if (!keys || keys->kind != CONF_LIST)
		return err_set(e, E_INVALID, "there is no list \"keys\"");
	for (uint32_t i = 0; s == OK && i < keys->count; i++)
		s = add_key(&made, keys->v[i].value, e);
	if (s == OK && made.v.len == 0)
		s = err_set(e, E_INVALID, "no key for RS256, ES256 or EdDSA");
	if (s != OK) {
		auth_keys_free(&made);
		return s;
	}
	*out = made;
	return OK;
}

/* ---- signatures ---- */

/* Converts a signature: JWS has two numbers one after the other, OpenSSL needs them in DER. */
static bool es256_to_der(struct str signature, struct buf *out)
{
	if (signature.len != ES256_BYTES)
		return false;
	const unsigned char *p = (const unsigned char *)signature.p;
	ECDSA_SIG *sig = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(p, ES256_BYTES / 2, NULL);
	BIGNUM *s = BN_bin2bn(p + ES256_BYTES / 2, ES256_BYTES / 2, NULL);
	if (!sig || !r || !s || ECDSA_SIG_set0(sig, r, s) != 1) {
		ECDSA_SIG_free(sig);
		BN_free(r);
		BN_free(s);
		return false;
	}
	unsigned char *der = NULL;
	int len = i2d_ECDSA_SIG(sig, &der);
	if (len > 0)
		buf_put(out, der, (size_t)len);
	OPENSSL_free(der);
	ECDSA_SIG_free(sig);
	return len > 0;
}

static bool signature_is_good(const struct auth_key *k, struct str text, struct str signature)
{
	CLEANUP(buf_deinit) struct buf der;
	buf_init(&der, 256);
	if (k->kind == AUTH_ES256) {
		if (!es256_to_der(signature, &der))
			return false;
		signature = buf_view(&der);
	}
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	const EVP_MD *md = k->kind == AUTH_EDDSA ? NULL : EVP_sha256();
	bool good = c && EVP_DigestVerifyInit(c, NULL, md, NULL, k->key) == 1 &&
		    EVP_DigestVerify(c, (const unsigned char *)signature.p, signature.len,
			    (const unsigned char *)text.p, text.len) == 1;
	EVP_MD_CTX_free(c);
	ERR_clear_error();
	return good;
}

/* ---- the token ---- */

static enum status bad(struct err *e, const char *why)
{
	return err_set(e, E_UNAUTHENTICATED, "the token %s", why);
}

/* Decodes a part of the token; its JSON tree is in the arena. */
static const struct conf_node *part_of(struct str text, struct arena *a)
{
	CLEANUP(buf_deinit) struct buf bytes;
	const struct conf_node *root = NULL;
	buf_init(&bytes, AUTH_CREDENTIAL_MAX);
	if (!decode_url(text, &bytes) || bytes.len == 0 || bytes.data[0] != '{')
		return NULL;
	return conf_parse(buf_view(&bytes), a, &root, NULL) == OK && root && root->kind == CONF_MAP
		       ? root
		       : NULL;
}

/* Tries each key with the token's algorithm and, if both have a key id, its key id. */
static enum status check_signature(const struct auth_keys *keys, const struct conf_node *header,
	struct str text, struct str signature, struct err *e)
{
	struct str alg = text_at(header, "alg"), id = text_at(header, "kid");
	bool known = false;
	if (conf_find(header, "crit"))
		return bad(e, "asks for extensions");
	for (size_t i = 0; i < keys->v.len; i++) {
		const struct auth_key *k = &keys->v.v[i];
		if (!str_eq(alg, str_of(algorithms[k->kind])) ||
			(id.len && k->id[0] && !str_eq(id, str_of(k->id))))
			continue;
		known = true;
		if (signature_is_good(k, text, signature))
			return OK;
	}
	return known ? bad(e, "has a wrong signature")
		     : err_set(e, E_NOTFOUND,
			       "the token is signed with a key (%.8s) that its "
			       "issuer does not have",
			       alg.p ? alg.p : "");
}

static bool seconds_at(const struct conf_node *claims, const char *key, double *out)
{
	const struct conf_node *n = conf_find(claims, key);
	return n && n->kind == CONF_TEXT && !n->quoted && str_parse_double(n->text, out);
}

/* Whether `n` is the text `want` or a list that contains it. */
static bool holds(const struct conf_node *n, struct str want)
{
	if (!n)
		return false;
	if (n->kind == CONF_TEXT)
		return str_eq(n->text, want);
	for (uint32_t i = 0; n->kind == CONF_LIST && i < n->count; i++)
		if (n->v[i].value->kind == CONF_TEXT && str_eq(n->v[i].value->text, want))
			return true;
	return false;
}

static enum status check_claims(const struct auth_issuer *i, const struct conf_node *claims,
	int64_t now_s, int64_t *out_until_s, struct err *e)
{
	double expires, from;
	if (!str_eq(text_at(claims, "iss"), str_of(i->issuer)))
		return bad(e, "is of another issuer");
	if (!holds(conf_find(claims, "aud"), str_of(i->audience)))
		return bad(e, "is for another audience");
	if (!seconds_at(claims, "exp", &expires))
		return bad(e, "does not say when it ends");
	if (!(expires + LEEWAY_S > (double)now_s))
		return bad(e, "has expired");
	if (conf_find(claims, "nbf") &&
		(!seconds_at(claims, "nbf", &from) || from > (double)now_s + LEEWAY_S))
		return bad(e, "is not valid yet");
	*out_until_s = (int64_t)MIN(expires + LEEWAY_S, (double)now_s + 86400);
	return OK;
}

/* The scopes of the claim's values: words of a text ("scope"), or texts of a list ("groups"). */
static uint32_t scopes_of(const struct auth_issuer *i, const struct conf_node *claims)
{
	const struct conf_node *n = i->roles_claim ? conf_find(claims, i->roles_claim) : NULL;
	uint32_t scopes = i->caller.scopes;
	for (size_t k = 0; n && k < i->role_count; k++) {
		struct str role = str_of(i->roles[k].role), words, word;
		bool has = holds(n, role);
		words = n->kind == CONF_TEXT ? n->text : STR("");
		while (!has && str_split(&words, ' ', &word))
			has = str_eq(word, role);
		if (has)
			scopes |= i->roles[k].scopes;
	}
	return scopes;
}

static enum status make_caller(const struct auth_issuer *i, const struct conf_node *claims,
	struct auth_caller *out, struct err *e)
{
	struct str name = text_at(claims, "sub");
	struct auth_caller made = i->caller;
	if (i->tenant_claim) {
		struct str tenant = text_at(claims, i->tenant_claim);
		if (!ingest_is_tenant(tenant))
			return bad(e, "names no tenant");
		made.has_tenant = true;
		snprintf(made.tenant, sizeof(made.tenant), "%.*s", STR_ARG(tenant));
	}
	made.scopes = scopes_of(i, claims);
	for (size_t k = 0; k < name.len; k++)
		if ((unsigned char)name.p[k] < ' ')
			return bad(e, "has control characters in its sub");
	snprintf(made.name, sizeof(made.name), "%.*s", STR_ARG(str_sub(name, 0, AUTH_NAME_MAX)));
	*out = made;
	return OK;
}

enum status auth_jwt_check(const struct auth_issuer *i, const struct auth_keys *keys,
	struct str token, int64_t now_s, struct auth_caller *out, int64_t *out_until_s,
	struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf signature;
	size_t first = str_index(token, '.'), last = str_rindex(token, '.');
	arena_init(&a, JWT_ARENA_BYTES);
	buf_init(&signature, 2 * KEY_BYTES_MAX);
	if (first == token.len || first == last)
		return bad(e, "is not known here");
	struct str text = str_sub(token, 0, last);
	const struct conf_node *header = part_of(str_sub(token, 0, first), &a);
	if (!header || !decode_url(str_sub(token, last + 1, token.len), &signature))
		return bad(e, "is malformed");
	enum status s = check_signature(keys, header, text, buf_view(&signature), e);
	if (s != OK)
		return s;
	const struct conf_node *claims = part_of(str_sub(token, first + 1, last - first - 1), &a);
	if (!claims)
		return bad(e, "is malformed");
	s = check_claims(i, claims, now_s, out_until_s, e);
	return s == OK ? make_caller(i, claims, out, e) : s;
}
