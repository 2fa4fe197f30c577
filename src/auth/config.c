/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The web-config file: a reader for each key, from a table for each mapping. Texts stay in the
 * tree, which is in the configuration's arena. Only digests of tokens are kept. Keys of Prometheus
 * that firn does not support are refused with an error: ignoring them would give less security than
 * the file asks for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <openssl/sha.h>

#include "auth/internal.h"
#include "ingest/ingest.h"

#define TOKEN_FILE_BYTES_MAX (AUTH_TOKEN_MAX + 256)

struct reading {
	struct auth_config *c;
	const char *path;
	struct err *e;
};

typedef enum status read_fn(struct reading *r, const struct conf_node *n, void *base);
struct key {
	const char *name;
	read_fn *read;
	/* Why a value is refused: any value if there is no reader, else an empty one. NULL: an
	 * empty value is as if the key were absent. */
	const char *why;
};
/* "tenant:" without a name would let a user see all tenants. */
#define NOT_EMPTY "is empty: say what it is, or leave the key out"

static enum status read_map(
	struct reading *r, const struct conf_node *n, const struct key *keys, void *base)
{
	if (n->kind != CONF_MAP)
		return conf_is_empty(n) ? OK : conf_wrong(r->e, n, "a mapping is expected");
	for (uint32_t i = 0; i < n->count; i++) {
		const struct conf_entry *x = &n->v[i];
		const struct key *k = keys;
		const char *names[32];
		size_t count = 0;
		while (k->name && !str_eq(x->key, str_of(k->name))) {
			names[count++] = k->name;
			k++;
		}
		names[count] = NULL;
		if (!k->name)
			return conf_unknown(r->e, x, names);
		bool empty = conf_is_empty(x->value);
		if (!k->read || (empty && k->why))
			return err_set(r->e, E_INVALID, "line %u, column %u: %s: %s", x->line,
				x->column, k->name, k->why);
		enum status s = empty ? OK : k->read(r, x->value, base);
		if (s != OK)
			return s;
	}
	return OK;
}

static enum status ignore(struct reading *r, const struct conf_node *n, void *base)
{
	(void)r;
	(void)n;
	(void)base;
	return OK;
}

/* ---- texts and files ---- */

static enum status text_of(
	struct reading *r, const struct conf_node *n, const char *what, const char **out)
{
	struct str s;
	enum status st = conf_text(n, what, &s, r->e);
	if (st == OK && strlen(s.p) != s.len)
		st = conf_wrong(r->e, n, "%s holds a NUL", what);
	if (st == OK)
		*out = s.p;
	return st;
}

/* A file name, relative to the directory of the web-config file. */
static enum status file_of(
	struct reading *r, const struct conf_node *n, const char *what, const char **out)
{
	const char *name = "";
	enum status s = text_of(r, n, what, &name);
	if (s != OK)
		return s;
	const char *slash = strrchr(r->path, '/');
	if (name[0] != '/' && slash)
		name = arena_printf(
			&r->c->arena, "%.*s%s", (int)(slash - r->path + 1), r->path, name);
	if (!name)
		return err_set(r->e, E_NOMEM, "%s", what);
	*out = name;
	return OK;
}

static enum status add_file(
	struct reading *r, const struct conf_node *n, const char *path, struct os_stamp stamp)
{
	struct auth_config *c = r->c;
	if (c->file_count == AUTH_FILES_MAX)
		return conf_wrong(r->e, n, "more than %d files", AUTH_FILES_MAX - 1);
	c->files[c->file_count++] = (struct auth_file){ path, stamp };
	return OK;
}

/* ---- tls_server_config ---- */

static enum status cert_file(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_web *w = base;
	return file_of(r, n, "cert_file", &w->cert_file);
}

static enum status key_file(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_web *w = base;
	return file_of(r, n, "key_file", &w->key_file);
}

static enum status client_ca_file(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_web *w = base;
	return file_of(r, n, "client_ca_file", &w->client_ca_file);
}

/* The value is checked after the whole mapping was read. */
static enum status client_auth_type(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_web *w = base;
	const char *type = "";
	enum status s = text_of(r, n, "client_auth_type", &type);
	if (s != OK)
		return s;
	if (strcmp(type, "VerifyClientCertIfGiven") == 0)
		w->client_cert_optional = true;
	else if (strcmp(type, "RequestClientCert") == 0 ||
		 strcmp(type, "RequireAnyClientCert") == 0)
		return conf_wrong(r->e, n,
			"%s asks for certificates that are not checked: use "
			"RequireAndVerifyClientCert or VerifyClientCertIfGiven",
			type);
	else if (strcmp(type, "NoClientCert") != 0 &&
		 strcmp(type, "RequireAndVerifyClientCert") != 0)
		return conf_wrong(r->e, n,
			"client_auth_type must be NoClientCert, VerifyClientCertIfGiven or "
			"RequireAndVerifyClientCert");
	return OK;
}

static enum status min_version(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_web *w = base;
	const char *version = "";
	enum status s = text_of(r, n, "min_version", &version);
	if (s != OK)
		return s;
	w->tls13_only = strcmp(version, "TLS13") == 0;
	if (w->tls13_only || strcmp(version, "TLS12") == 0)
		return OK;
	return conf_wrong(r->e, n, "min_version must be TLS12 or TLS13; what is older is broken");
}

static enum status max_version(struct reading *r, const struct conf_node *n, void *base)
{
	const char *version = "";
	(void)base;
	enum status s = text_of(r, n, "max_version", &version);
	if (s != OK || strcmp(version, "TLS13") == 0)
		return s;
	return conf_wrong(r->e, n, "max_version must be TLS13: firn always speaks the latest, too");
}

static enum status tls(struct reading *r, const struct conf_node *n, void *base)
{
	static const struct key keys[] = {
		{ "cert_file", cert_file, NULL },
		{ "key_file", key_file, NULL },
		{ "client_ca_file", client_ca_file, NULL },
		{ "client_auth_type", client_auth_type, NULL },
		{ "min_version", min_version, NULL },
		{ "max_version", max_version, NULL },
		{ "prefer_server_cipher_suites", ignore, NULL },
		{ "cert", NULL, "only cert_file is taken" },
		{ "key", NULL, "only key_file is taken" },
		{ "client_ca", NULL, "only client_ca_file is taken" },
		{ "client_allowed_sans", NULL,
			"any certificate that client_ca_file has signed is accepted" },
		{ "cipher_suites", NULL, "OpenSSL's defaults are used" },
		{ "curve_preferences", NULL, "OpenSSL's defaults are used" },
		{ 0 },
	};
	struct auth_web *w = base;
	enum status s = read_map(r, n, keys, w);
	if (s != OK)
		return s;
	const struct conf_node *type = conf_find(n, "client_auth_type");
	bool none = !type || str_eq(type->text, STR("NoClientCert")) || conf_is_empty(type);
	if (!w->cert_file != !w->key_file)
		return conf_wrong(r->e, n, "cert_file and key_file belong together");
	if (w->client_ca_file && !w->cert_file)
		return conf_wrong(r->e, n, "client_ca_file needs cert_file");
	if (w->client_ca_file && none)
		return conf_wrong(r->e, n,
			"client_ca_file needs client_auth_type: "
			"RequireAndVerifyClientCert or VerifyClientCertIfGiven");
	if (!w->client_ca_file && !none)
		return conf_wrong(r->e, n, "client_auth_type needs client_ca_file");
	return OK;
}

/* ---- http_server_config ---- */

static enum status http2(struct reading *r, const struct conf_node *n, void *base)
{
	bool yes = false;
	(void)base;
	enum status s = conf_bool(n, "http2", &yes, r->e);
	if (s != OK || yes)
		return s;
	return conf_wrong(r->e, n, "http2 cannot be switched off: gRPC needs it");
}

/* Reads response headers; only those that exporter-toolkit supports. */
static enum status headers(struct reading *r, const struct conf_node *n, void *base)
{
	static const char *const known[] = { "Content-Security-Policy", "Strict-Transport-Security",
		"X-Content-Type-Options", "X-Frame-Options", "X-XSS-Protection", NULL };
	struct auth_web *w = base;
	if (n->kind != CONF_MAP)
		return conf_wrong(r->e, n, "headers must be a mapping");
	for (uint32_t i = 0; i < n->count; i++) {
		const char *value = "";
		size_t k = 0;
		while (known[k] && !str_eq_nocase(n->v[i].key, str_of(known[k])))
			k++;
		if (!known[k])
			return conf_unknown(r->e, &n->v[i], known);
		enum status s = text_of(r, n->v[i].value, known[k], &value);
		if (s != OK)
			return s;
		for (const char *p = value; *p; p++)
			if (*p < ' ' || *p > '~')
				return conf_wrong(r->e, n->v[i].value, "%s must be printable ASCII",
					known[k]);
		if (w->header_count == AUTH_HEADERS_MAX)
			return conf_wrong(r->e, n, "a header twice");
		w->headers[w->header_count][0] = known[k];
		w->headers[w->header_count++][1] = value;
	}
	return OK;
}

static enum status http(struct reading *r, const struct conf_node *n, void *base)
{
	static const struct key keys[] = { { "http2", http2, NULL }, { "headers", headers, NULL },
		{ 0 } };
	return read_map(r, n, keys, base);
}

/* ---- scopes and tenants ---- */

static enum status scopes(struct reading *r, const struct conf_node *n, void *base)
{
	static const struct {
		const char *name;
		uint32_t scope;
	} known[] = { { "read", AUTH_READ }, { "write", AUTH_WRITE }, { "admin", AUTH_ALL } };
	struct auth_caller *caller = base;
	caller->scopes = 0;
	if (n->kind != CONF_LIST || n->count == 0)
		return conf_wrong(r->e, n, "scopes must be a list of read, write, admin");
	for (uint32_t i = 0; i < n->count; i++) {
		const struct conf_node *x = n->v[i].value;
		size_t k = 0;
		while (k < ARRAY_COUNT(known) &&
			(x->kind != CONF_TEXT || !str_eq(x->text, str_of(known[k].name))))
			k++;
		if (k == ARRAY_COUNT(known))
			return conf_wrong(r->e, x, "a scope is read, write or admin");
		caller->scopes |= known[k].scope;
	}
	return OK;
}

static enum status tenant(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_caller *caller = base;
	const char *name = "";
	enum status s = text_of(r, n, "tenant", &name);
	if (s != OK)
		return s;
	if (name[0] && !ingest_is_tenant(str_of(name)))
		return conf_wrong(r->e, n,
			"a tenant's name has 1 to %d letters, digits and !-_.*'()",
			SAMPLES_TENANT_MAX);
	caller->has_tenant = true;
	snprintf(caller->tenant, sizeof(caller->tenant), "%s", name);
	return OK;
}

static enum status name_of(
	struct reading *r, const struct conf_node *n, struct str name, struct auth_caller *out)
{
	if (name.len == 0 || name.len > AUTH_NAME_MAX || !str_is_utf8(name) ||
		strlen(name.p) != name.len || str_index(name, ':') < name.len)
		return conf_wrong(
			r->e, n, "a name has 1 to %d characters and no colon", AUTH_NAME_MAX);
	snprintf(out->name, sizeof(out->name), "%s", name.p);
	return OK;
}

/* ---- users ---- */

/* Whether the text is a bcrypt hash: "$2y$10$" and 53 characters. */
static bool is_bcrypt(struct str hash, uint64_t *out_cost)
{
	if (hash.len != 60 || hash.p[0] != '$' || hash.p[1] != '2' || hash.p[3] != '$' ||
		hash.p[6] != '$' || !memchr("aby", hash.p[2], 3) ||
		!str_parse_u64(str_sub(hash, 4, 2), 10, out_cost))
		return false;
	for (size_t i = 7; i < hash.len; i++)
		if (!strchr("./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz",
			    hash.p[i]) ||
			!hash.p[i])
			return false;
	return *out_cost >= 4;
}

static enum status basic_users(struct reading *r, const struct conf_node *n, void *base)
{
	(void)base;
	if (n->kind != CONF_MAP || n->count > AUTH_PRINCIPALS_MAX)
		return conf_wrong(r->e, n, "basic_auth_users must be a mapping of at most %d",
			AUTH_PRINCIPALS_MAX);
	for (uint32_t i = 0; i < n->count; i++) {
		struct auth_user u = { .caller = { .scopes = AUTH_ALL } };
		uint64_t cost = 0;
		enum status s = name_of(r, n->v[i].value, n->v[i].key, &u.caller);
		if (s == OK)
			s = text_of(r, n->v[i].value, "a password", &u.hash);
		if (s != OK)
			return s;
		if (!is_bcrypt(str_of(u.hash), &cost))
			return conf_wrong(r->e, n->v[i].value,
				"the password of %s is not bcrypt's text ($2y$…); `htpasswd -nB` "
				"makes one",
				u.caller.name);
		if (cost > AUTH_COST_MAX)
			return conf_wrong(r->e, n->v[i].value,
				"bcrypt with a cost above %d takes too long", AUTH_COST_MAX);
		u.name = n->v[i].key;
		if (!VEC_PUSH(&r->c->users, u))
			return err_set(r->e, E_NOMEM, "users");
	}
	return OK;
}

/* The rights of the users in basic_auth_users; read after that section. */
static enum status users(struct reading *r, const struct conf_node *n)
{
	static const struct key keys[] = { { "scopes", scopes, NOT_EMPTY },
		{ "tenant", tenant, NOT_EMPTY }, { 0 } };
	if (n->kind != CONF_MAP)
		return conf_wrong(r->e, n, "users must be a mapping");
	for (uint32_t i = 0; i < n->count; i++) {
		size_t k = 0;
		while (k < r->c->users.len && !str_eq(r->c->users.v[k].name, n->v[i].key))
			k++;
		if (k == r->c->users.len)
			return err_set(r->e, E_INVALID,
				"line %u, column %u: \"%.*s\" is none of basic_auth_users",
				n->v[i].line, n->v[i].column, STR_ARG(n->v[i].key));
		enum status s = read_map(r, n->v[i].value, keys, &r->c->users.v[k].caller);
		if (s != OK)
			return s;
	}
	return OK;
}

/* ---- tokens ---- */

struct token_row {
	struct auth_caller
		caller; /* first member: the readers of scopes and tenants get a pointer to it */
	const char *token, *file, *digest;
};

static enum status token_name(struct reading *r, const struct conf_node *n, void *base)
{
	struct token_row *t = base;
	struct str name;
	enum status s = conf_text(n, "name", &name, r->e);
	return s == OK ? name_of(r, n, name, &t->caller) : s;
}

static enum status token_text(struct reading *r, const struct conf_node *n, void *base)
{
	struct token_row *t = base;
	return text_of(r, n, "token", &t->token);
}

static enum status token_file(struct reading *r, const struct conf_node *n, void *base)
{
	struct token_row *t = base;
	return file_of(r, n, "token_file", &t->file);
}

static enum status token_digest(struct reading *r, const struct conf_node *n, void *base)
{
	struct token_row *t = base;
	return text_of(r, n, "token_sha256", &t->digest);
}

void auth_digest(struct str text, uint8_t out[AUTH_HASH_BYTES])
{
	SHA256((const unsigned char *)(text.p ? text.p : ""), text.len, out);
}

enum status auth_add_token(
	struct auth_config *c, struct str token, const struct auth_caller *caller, struct err *e)
{
	struct auth_token t = { .caller = *caller };
	if (token.len < AUTH_TOKEN_MIN || token.len > AUTH_TOKEN_MAX)
		return err_set(e, E_INVALID, "a token has %d to %d characters", AUTH_TOKEN_MIN,
			AUTH_TOKEN_MAX);
	for (size_t i = 0; i < token.len; i++)
		if (token.p[i] <= ' ' || token.p[i] > '~')
			return err_set(e, E_INVALID, "a token has visible ASCII characters only");
	auth_digest(token, t.digest);
	return VEC_PUSH(&c->tokens, t) ? OK : err_set(e, E_NOMEM, "tokens");
}

static enum status add_digest(struct reading *r, const struct conf_node *n, struct token_row *row)
{
	struct auth_token t = { .caller = row->caller };
	struct str hex = str_of(row->digest);
	for (size_t i = 0; i < AUTH_HASH_BYTES; i++) {
		uint64_t byte;
		if (hex.len != 2 * sizeof(t.digest) ||
			!str_parse_u64(str_sub(hex, 2 * i, 2), 16, &byte))
			return conf_wrong(r->e, n, "token_sha256 must be 64 hexadecimal digits");
		t.digest[i] = (uint8_t)byte;
	}
	return VEC_PUSH(&r->c->tokens, t) ? OK : err_set(r->e, E_NOMEM, "tokens");
}

static enum status add_token_file(
	struct reading *r, const struct conf_node *n, const struct token_row *row)
{
	CLEANUP(buf_deinit) struct buf bytes = { 0 };
	struct os_stamp stamp = { 0 };
	struct err why = { 0 };
	buf_init(&bytes, TOKEN_FILE_BYTES_MAX);
	enum status s = os_read_own(row->file, &bytes, &stamp, &why);
	if (s == OK)
		s = auth_add_token(r->c, str_trim(buf_view(&bytes)), &row->caller, &why);
	if (s != OK)
		return conf_wrong(r->e, n, "%s: %s", row->file, err_text(&why, s));
	if (bytes.len)
		explicit_bzero(bytes.data, bytes.len);
	return add_file(r, n, row->file, stamp);
}

static enum status add_row(struct reading *r, const struct conf_node *n, struct token_row *row)
{
	struct err why = { 0 };
	if (!row->caller.name[0])
		return conf_wrong(r->e, n, "name is missing");
	if (!row->caller.scopes)
		return conf_wrong(r->e, n, "scopes are missing");
	if (!!row->token + !!row->file + !!row->digest != 1)
		return conf_wrong(r->e, n, "one of token_file, token_sha256 and token is needed");
	if (row->digest)
		return add_digest(r, n, row);
	if (row->file)
		return add_token_file(r, n, row);
	enum status s = auth_add_token(r->c, str_of(row->token), &row->caller, &why);
	return s == OK ? OK : conf_wrong(r->e, n, "%s", err_text(&why, s));
}

static enum status tokens(struct reading *r, const struct conf_node *n, void *base)
{
	static const struct key keys[] = { { "name", token_name, NULL },
		{ "token", token_text, NULL }, { "token_file", token_file, NULL },
		{ "token_sha256", token_digest, NULL }, { "scopes", scopes, NOT_EMPTY },
		{ "tenant", tenant, NOT_EMPTY }, { 0 } };
	(void)base;
	if (n->kind != CONF_LIST || n->count > AUTH_PRINCIPALS_MAX)
		return conf_wrong(
			r->e, n, "tokens must be a list of at most %d", AUTH_PRINCIPALS_MAX);
	for (uint32_t i = 0; i < n->count; i++) {
		struct token_row row = { 0 };
		const struct conf_node *x = n->v[i].value;
		enum status s = x->kind == CONF_MAP ? read_map(r, x, keys, &row)
						    : conf_wrong(r->e, x, "a mapping is expected");
		if (s == OK)
			s = add_row(r, x, &row);
		if (s != OK)
			return s;
	}
	return OK;
}

/* ---- issuers ---- */

static enum status issuer_name(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	return text_of(r, n, "issuer", &i->issuer);
}

static enum status audience(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	return text_of(r, n, "audience", &i->audience);
}

static enum status jwks_file(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	return file_of(r, n, "jwks_file", &i->jwks_file);
}

static enum status jwks_url(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	return text_of(r, n, "jwks_url", &i->jwks_url);
}

static enum status roles_claim(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	return text_of(r, n, "roles_claim", &i->roles_claim);
}

static enum status tenant_claim(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	return text_of(r, n, "tenant_claim", &i->tenant_claim);
}

static enum status issuer_scopes(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	return scopes(r, n, &i->caller);
}

static enum status issuer_tenant(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	return tenant(r, n, &i->caller);
}

static enum status roles(struct reading *r, const struct conf_node *n, void *base)
{
	struct auth_issuer *i = base;
	if (n->kind != CONF_MAP || n->count > AUTH_ROLES_MAX)
		return conf_wrong(r->e, n, "roles must be a mapping of at most %d", AUTH_ROLES_MAX);
	for (uint32_t k = 0; k < n->count; k++) {
		struct auth_caller caller = { 0 };
		enum status s = scopes(r, n->v[k].value, &caller);
		if (s != OK)
			return s;
		i->roles[i->role_count++] = (struct auth_role){ n->v[k].key.p, caller.scopes };
	}
	return OK;
}

static bool is_url(const char *text)
{
	return strncmp(text, "https://", 8) == 0 || strncmp(text, "http://", 7) == 0;
}

static enum status check_issuer(
	struct reading *r, const struct conf_node *n, const struct auth_issuer *i)
{
	if (!i->issuer || !i->audience)
		return conf_wrong(r->e, n, "issuer and audience are needed");
	if (i->jwks_file && i->jwks_url)
		return conf_wrong(r->e, n, "jwks_file and jwks_url: one of them is enough");
	if (!i->jwks_file && !is_url(i->jwks_url ? i->jwks_url : i->issuer))
		return conf_wrong(r->e, n, "%s must begin with https:// or http://",
			i->jwks_url ? "jwks_url" : "issuer");
	if (!i->roles_claim != !i->role_count)
		return conf_wrong(r->e, n, "roles and roles_claim belong together");
	if (!i->caller.scopes && !i->role_count)
		return conf_wrong(r->e, n, "scopes are missing, or roles and roles_claim");
	if (i->caller.has_tenant && i->tenant_claim)
		return conf_wrong(r->e, n, "tenant and tenant_claim: one of them is enough");
	return OK;
}

static enum status oidc(struct reading *r, const struct conf_node *n, void *base)
{
	static const struct key keys[] = { { "issuer", issuer_name, NULL },
		{ "audience", audience, NULL }, { "jwks_file", jwks_file, NULL },
		{ "jwks_url", jwks_url, NULL }, { "scopes", issuer_scopes, NULL },
		{ "roles_claim", roles_claim, NULL }, { "roles", roles, NULL },
		{ "tenant", issuer_tenant, NOT_EMPTY }, { "tenant_claim", tenant_claim, NOT_EMPTY },
		{ 0 } };
	(void)base;
	if (n->kind != CONF_LIST || n->count > AUTH_ISSUERS_MAX)
		return conf_wrong(r->e, n, "oidc must be a list of at most %d", AUTH_ISSUERS_MAX);
	for (uint32_t k = 0; k < n->count; k++) {
		const struct conf_node *x = n->v[k].value;
		struct auth_issuer *i = calloc(1, sizeof(*i));
		if (!i)
			return err_set(r->e, E_NOMEM, "oidc");
		lock_init(&i->lock, LOCK_AUTH_ISSUER);
		r->c->issuers[r->c->issuer_count++] = i;
		enum status s = x->kind == CONF_MAP ? read_map(r, x, keys, i)
						    : conf_wrong(r->e, x, "a mapping is expected");
		if (s == OK)
			s = check_issuer(r, x, i);
		if (s != OK)
			return s;
	}
	return OK;
}

/* ---- the whole ---- */

static const struct key root_keys[] = { { "tls_server_config", tls, NULL },
	{ "http_server_config", http, NULL }, { "basic_auth_users", basic_users, NULL },
	{ "users", ignore, NULL }, { "tokens", tokens, NULL }, { "oidc", oidc, NULL },
	{ "rate_limit", NULL, "firn has limits of its own (docs/authentication.md)" }, { 0 } };

bool auth_is_key(struct str key)
{
	for (size_t i = 0; root_keys[i].name; i++)
		if (str_eq(key, str_of(root_keys[i].name)))
			return true;
	return false;
}

static enum status read_root(struct reading *r, const struct conf_node *root)
{
	if (!root)
		return OK;
	enum status s = read_map(r, root, root_keys, &r->c->web);
	const struct conf_node *n = conf_find(root, "users");
	return s == OK && n && !conf_is_empty(n) ? users(r, n) : s;
}

static struct auth_config *config_new(void)
{
	struct auth_config *c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	atomic_store(&c->refs, 1);
	arena_init(&c->arena, CONF_ARENA_BYTES);
	return c;
}

enum status auth_config_read(
	struct str yaml, const char *path, struct auth_config **out, struct err *e)
{
	const struct conf_node *root = NULL;
	struct auth_config *c = config_new();
	if (!c)
		return err_set(e, E_NOMEM, "web-config file");
	struct reading r = { c, path, e };
	enum status s = conf_parse(yaml, &c->arena, &root, e);
	if (s == OK) {
		c->file_count = 1;
		s = read_root(&r, root);
	}
	if (s != OK) {
		auth_config_unref(c);
		return s;
	}
	*out = c;
	return OK;
}

enum status auth_config_load(const char *path, struct auth_config **out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes = { 0 };
	struct os_stamp stamp = { 0 };
	struct err why = { 0 };
	struct auth_config *c = NULL;
	buf_init(&bytes, CONF_BYTES_MAX);
	if (!path || !path[0]) {
		*out = config_new();
		return *out ? OK : err_set(e, E_NOMEM, "authentication");
	}
	enum status s = os_read_own(path, &bytes, &stamp, &why);
	if (s != OK)
		return err_set(e, s, "%s", err_text(&why, s));
	s = auth_config_read(buf_view(&bytes), path, &c, &why);
	if (s != OK)
		return err_set(e, s, "%s: %s", path, err_text(&why, s));
	c->files[0] = (struct auth_file){ path, stamp };
	*out = c;
	return OK;
}

void auth_config_unref(struct auth_config *c)
{
	if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	VEC_FREE(&c->users);
	VEC_FREE(&c->tokens);
	for (uint32_t i = 0; i < c->issuer_count; i++) {
		auth_keys_free(&c->issuers[i]->keys);
		lock_destroy(&c->issuers[i]->lock);
		free(c->issuers[i]);
	}
	arena_deinit(&c->arena);
	free(c);
}

enum status auth_check_file(const char *path, char out_cert_file[AUTH_PATH_BYTES], struct err *e)
{
	struct auth_config *c = NULL;
	enum status s = auth_config_load(path, &c, e);
	if (s != OK)
		return s;
	const char *cert = c->web.cert_file ? c->web.cert_file : "";
	if (strlen(cert) >= AUTH_PATH_BYTES)
		s = err_set(e, E_LIMIT, "%s: cert_file is too long", path);
	else
		memcpy(out_cert_file, cert, strlen(cert) + 1);
	auth_config_unref(c);
	return s;
}
