/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auth: who may do what, as a web-config file says. Its format is Prometheus' (tls_server_config,
 * http_server_config, basic_auth_users with bcrypt), with keys of our own for scopes, tenants,
 * bearer tokens and OIDC: docs/authentication.md.
 *
 * Layer 6 (may use base, os, conf, http, fetch, samples, ingest). Thread safe. Passwords are
 * checked by libcrypt, tokens of others by OpenSSL. A checked credential is remembered for
 * AUTH_REMEMBER_NS, a password for that long after its last use, so that most requests need only a
 * hash, and no bcrypt.
 */
#pragma once

#include "base/err.h"
#include "base/metrics.h"
#include "base/str.h"
#include "samples/sink.h"

#define AUTH_READ 1u
#define AUTH_WRITE 2u
#define AUTH_ADMIN 4u
#define AUTH_ALL (AUTH_READ | AUTH_WRITE | AUTH_ADMIN)

#define AUTH_PRINCIPALS_MAX 1024 /* users, and tokens */
#define AUTH_NAME_MAX 128
#define AUTH_CREDENTIAL_MAX 8192 /* bytes of an authorization header */
#define AUTH_TOKEN_MIN 16        /* shorter ones can be guessed */
#define AUTH_TOKEN_MAX 4096
#define AUTH_COST_MAX 16 /* of bcrypt: some seconds */
#define AUTH_HEADERS_MAX 5
#define AUTH_REMEMBER_NS ((int64_t)300 * 1000000000)
#define AUTH_REMEMBERED_MAX 256 /* credentials; the least recently used gives way */
/* Wrong credentials from one source (an IPv4 address, an IPv6 network of 64 bits) in a minute.
 * After that no password or signed token from it is checked until the minute is over. */
#define AUTH_GUESSES_MAX 10
#define AUTH_SOURCES_MAX 1024
/* Requests that wait for a password check. They are more than a Pyroscope client sends at once (5),
 * since it loses messages that are refused, and fewer than the lane of writes has workers. */
#define AUTH_WAITING_MAX 7
#define AUTH_SESSIONS_MAX 256
#define AUTH_SESSION_NS ((int64_t)12 * 3600 * 1000000000)

#define AUTH_METRICS(X)                                                                       \
	X(accepted, COUNTER, "firn_auth_accepted_total", "Requests with good credentials.")   \
	X(missing, COUNTER, "firn_auth_refused_total{reason=\"missing\"}",                    \
		"Requests refused by authentication.")                                        \
	X(wrong, COUNTER, "firn_auth_refused_total{reason=\"wrong\"}",                        \
		"Requests refused by authentication.")                                        \
	X(scope, COUNTER, "firn_auth_refused_total{reason=\"scope\"}",                        \
		"Requests refused by authentication.")                                        \
	X(guesses, COUNTER, "firn_auth_refused_total{reason=\"guesses\"}",                    \
		"Requests refused by authentication.")                                        \
	X(busy, COUNTER, "firn_auth_refused_total{reason=\"busy\"}",                          \
		"Requests refused by authentication.")                                        \
	X(passwords, COUNTER, "firn_auth_passwords_checked_total", "Times that bcrypt ran.")  \
	X(reloads, COUNTER, "firn_auth_reloads_total", "Times that the file was read again.") \
	X(reload_failed, COUNTER, "firn_auth_reload_failures_total",                          \
		"Times that a changed file was wrong; the old one stays.")
struct auth_metrics {
	AUTH_METRICS(METRIC_FIELD)
};

struct auth_caller {
	uint32_t scopes;
	bool has_tenant; /* it may speak for `tenant` only */
	char tenant[SAMPLES_TENANT_MAX + 1];
	char name[AUTH_NAME_MAX + 1];
	int64_t until_ns; /* monotonic: when its token or session ends; 0: never */
};

/* tls_server_config and http_server_config, from the file as it was at the start. Texts live as
 * long as the auth. */
struct auth_web {
	const char *cert_file, *key_file, *client_ca_file; /* NULL: none */
	bool client_cert_optional;
	bool tls13_only;
	const char *headers[AUTH_HEADERS_MAX][2];
	uint32_t header_count;
};

/* Called at most once a minute for each source: `source` was refused `count` times since the last
 * call. Count 0: the keys of the issuer `source` could not be fetched. */
typedef void auth_told_fn(const char *source, uint64_t count, const char *why);

struct auth;
/* `path` NULL or "": no file. `own_token`: a token with which the agent in the same program may
 * write; NULL: none. E_INVALID: what is wrong with the file, and where. */
NODISCARD enum status auth_open(const char *path, const char *own_token, auth_told_fn *told,
	struct auth **out, struct err *e);
void auth_close(struct auth *a);
/* Whether clients have to authenticate. */
bool auth_is_required(struct auth *a);
/* From now on a file that requires no authentication is an error. False: the present file requires
 * none. */
bool auth_require(struct auth *a);
const struct auth_web *auth_web(const struct auth *a);
/* Reads the file again if it, or a file that it names, has changed (*out_changed). A wrong file
 * changes nothing; its error is returned once. */
NODISCARD enum status auth_look(struct auth *a, bool *out_changed, struct err *e);
/* Checks such a file without using it. *out_cert_file: its TLS certificate; "" for none. */
#define AUTH_PATH_BYTES 4096
NODISCARD enum status auth_check_file(
	const char *path, char out_cert_file[AUTH_PATH_BYTES], struct err *e);

/* Whether such files may have this key at the top. */
bool auth_is_key(struct str key);

/* What a request says about its sender. */
struct auth_claim {
	struct str authorization; /* the header's value */
	struct str session;       /* of auth_session_new(); "" */
	const char *source;       /* "192.0.2.1:4711" */
	uint32_t scope;           /* scope that the request needs; 0: any */
};
enum auth_verdict {
	AUTH_YES,
	AUTH_NO,    /* the error says why: E_UNAUTHENTICATED, E_DENIED, E_QUOTA, E_UNAVAILABLE */
	AUTH_BLOCKS /* only with `may_block` */
};
enum auth_verdict auth_judge(struct auth *a, const struct auth_claim *c, bool may_block,
	struct auth_caller *out, struct err *e);

/* Makes a session for this caller, which its browser sends by itself; 64 hexadecimal digits. It
 * ends after AUTH_SESSION_NS, when the caller's own token or session ends, when the file changes,
 * and when there are too many. */
#define AUTH_SESSION_TEXT 65
NODISCARD enum status auth_session_new(struct auth *a, const struct auth_caller *caller,
	char out[AUTH_SESSION_TEXT], struct err *e);
/* A random text as long as a session's, and as hard to guess. */
NODISCARD enum status auth_random_text(char out[AUTH_SESSION_TEXT], struct err *e);
void auth_session_end(struct auth *a, struct str session);

void auth_write_metrics(struct auth *a, struct buf *out);
