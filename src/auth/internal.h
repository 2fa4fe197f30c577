/* SPDX-License-Identifier: Apache-2.0 */
/* auth's own. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "auth/auth.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/lock.h"
#include "base/vec.h"
#include "conf/conf.h"
#include "os/os.h"

#define AUTH_FILES_MAX 64 /* files named by one web-config file, and itself */
#define AUTH_HASH_BYTES 32

/* ---- config.c: the file ---- */

struct auth_user {
	struct str name;
	const char *hash; /* bcrypt's text */
	struct auth_caller caller;
};

struct auth_token {
	uint8_t digest[AUTH_HASH_BYTES]; /* SHA-256 */
	struct auth_caller caller;
};

struct auth_file {
	const char *path;
	struct os_stamp stamp;
};

/* ---- jwt.c: signed tokens of others ---- */

#define AUTH_KEYS_MAX 64  /* of an issuer */
#define AUTH_ROLES_MAX 64 /* of an issuer, in the file */
#define AUTH_ISSUERS_MAX 16

typedef struct evp_pkey_st EVP_PKEY;

enum auth_key_kind { AUTH_RS256, AUTH_ES256, AUTH_EDDSA };
struct auth_key {
	enum auth_key_kind kind;
	char id[256]; /* "" for none */
	EVP_PKEY *key;
};
struct auth_keys {
	VEC(struct auth_key) v;
};
/* A JWK set. E_INVALID: it is no JWK set, or has no key of a kind that we know. */
NODISCARD enum status auth_keys_parse(struct str json, struct auth_keys *out, struct err *e);
void auth_keys_free(struct auth_keys *k);

struct auth_role {
	const char *role;
	uint32_t scopes;
};
struct auth_issuer {
	const char *issuer, *audience;
	const char *jwks_file, *jwks_url; /* NULL, both: by discovery */
	const char *roles_claim, *tenant_claim;
	struct auth_role roles[AUTH_ROLES_MAX];
	uint32_t role_count;
	struct auth_caller caller; /* scopes and tenant of all its tokens */
	struct lock lock;
	struct auth_keys keys; /* guarded by the lock, as the fields below */
	int64_t tried_ns;
	bool wanted, failed;
};
/* Checks signature, issuer, audience and time (seconds since 1970) of a token, and gives its user.
 * E_UNAUTHENTICATED; E_NOTFOUND: it is signed with an unknown key. */
NODISCARD enum status auth_jwt_check(const struct auth_issuer *i, const struct auth_keys *keys,
	struct str token, int64_t now_s, struct auth_caller *out, int64_t *out_until_s,
	struct err *e);

/* ---- issuers.c: their keys ---- */

/* Fetches keys if it is time to; blocks. */
void auth_issuer_refresh(struct auth_issuer *i, int wake_fd, auth_told_fn *told);
/* E_UNAVAILABLE: there are no keys yet. */
NODISCARD enum status auth_issuer_check(struct auth_issuer *i, struct str token,
	struct auth_caller *out, int64_t *out_until_ns, struct err *e);

/* Immutable once it is read, except for the keys of issuers; reference counted. */
struct auth_config {
	atomic_uint refs;
	struct arena arena;
	VEC(struct auth_user) users;
	VEC(struct auth_token) tokens;
	struct auth_issuer *issuers[AUTH_ISSUERS_MAX];
	uint32_t issuer_count;
	struct auth_file files[AUTH_FILES_MAX]; /* the first is the web-config file itself */
	uint32_t file_count;
	struct auth_web web;
};

NODISCARD enum status auth_config_load(const char *path, struct auth_config **out, struct err *e);
/* `path` is for error messages, and for files in the same folder. */
NODISCARD enum status auth_config_read(
	struct str yaml, const char *path, struct auth_config **out, struct err *e);
void auth_config_unref(struct auth_config *c);
/* Copies the keys that were fetched for the same issuers from the previous configuration. */
void auth_issuers_inherit(struct auth_config *to, const struct auth_config *from);
void auth_digest(struct str text, uint8_t out[AUTH_HASH_BYTES]);
NODISCARD enum status auth_add_token(
	struct auth_config *c, struct str token, const struct auth_caller *caller, struct err *e);

/* ---- sources.c: how often each address was refused ---- */

struct auth_source {
	char name[48];
	int64_t minute_ns; /* when its present minute began */
	uint32_t guesses;  /* in it */
	uint64_t refused;  /* not reported yet */
	int64_t told_ns;
};

struct auth_sources {
	struct lock lock;
	struct auth_source v[AUTH_SOURCES_MAX];
	uint32_t count;
};

/* The source of "192.0.2.1:4711" or "[2001:db8::1]:4711", without the parts that one sender can
 * choose. */
void auth_source_name(const char *peer, char *out, size_t out_size);
bool auth_sources_over(struct auth_sources *s, const char *peer, int64_t now_ns);
/* Counts a refusal; `guess`: credentials were wrong. Returns how many to report now; 0: none, since
 * some were reported within the last minute. */
uint64_t auth_sources_add(struct auth_sources *s, const char *peer, bool guess, int64_t now_ns);
