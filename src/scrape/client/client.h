/* SPDX-License-Identifier: Apache-2.0 */
/*
 * client: how to talk to a server that is scraped or that lists targets: the keys of Prometheus'
 * HTTP client (basic_auth, authorization, oauth2, tls_config, proxies, headers), and a fetch made
 * from them.
 *
 * Layer 6. A configuration is read once and then used by any number of threads; each has a fetch of
 * its own. Source: https://prometheus.io/docs/prometheus/latest/configuration/configuration/
 * #http_config; RFC 6749, 4.4 (client credentials).
 */
#pragma once

#include "conf/conf.h"
#include "fetch/fetch.h"

#define CLIENT_HEADERS_MAX (FETCH_HEADERS_MAX - 2)
#define CLIENT_SECRET_BYTES_MAX ((size_t)64 << 10) /* of a secret or token */
#define CLIENT_TOKEN_ANSWER_MAX ((size_t)256 << 10)
#define CLIENT_TOKEN_TIMEOUT_NS ((int64_t)30 * 1000000000)
#define CLIENT_TOKEN_EARLY_NS ((int64_t)10 * 1000000000) /* a token is replaced so long before */
#define CLIENT_TOKEN_RETRY_NS ((int64_t)5 * 1000000000)  /* how long a refusal is remembered */

struct client_tls {
	const char *ca_file, *cert_file, *key_file;
	const char *ca, *cert, *key; /* PEM */
	bool insecure;
};
struct client_proxy {
	bool from_environment;
	const char *url, *no_proxy;
};
struct client_oauth2;
/* Texts are the document's, which must outlive it. */
struct client_config {
	const char *username, *username_file, *password, *password_file;
	const char *auth_type, *credentials, *credentials_file;
	struct client_oauth2 *oauth2; /* owned; NULL: none */
	struct client_tls tls;
	struct client_proxy proxy;
	bool follow; /* redirects */
	struct {
		const char *name, *value;
	} headers[CLIENT_HEADERS_MAX];
	uint32_t header_count;
};

/* Rows of a table for a struct that has a client_config at `base`. */
#define CLIENT_FIELDS(base)                                                                    \
	{ "basic_auth", client_read_basic, (base), NULL },                                     \
		{ "authorization", client_read_authorization, (base), NULL },                  \
		{ "bearer_token", conf_field_text,                                             \
			(base) + offsetof(struct client_config, credentials), NULL },          \
		{ "bearer_token_file", conf_field_text,                                        \
			(base) + offsetof(struct client_config, credentials_file), NULL },     \
		{ "oauth2", client_read_oauth2, (base), NULL },                                \
		{ "tls_config", client_read_tls, (base) + offsetof(struct client_config, tls), \
			NULL },                                                                \
		{ "follow_redirects", conf_field_bool,                                         \
			(base) + offsetof(struct client_config, follow), NULL },               \
		{ "enable_http2", conf_field_ignore, 0, NULL },                                \
		{ "http_headers", client_read_headers, (base), NULL },                         \
		CLIENT_PROXY_FIELDS((base) + offsetof(struct client_config, proxy))
#define CLIENT_PROXY_FIELDS(base)                                                                \
	{ "proxy_url", client_read_proxy, (base) + offsetof(struct client_proxy, url), NULL },   \
		{ "no_proxy", conf_field_text, (base) + offsetof(struct client_proxy, no_proxy), \
			NULL },                                                                  \
		{ "proxy_from_environment", conf_field_bool,                                     \
			(base) + offsetof(struct client_proxy, from_environment), NULL },        \
	{                                                                                        \
		"proxy_connect_header", conf_field_refuse, 0, NULL                               \
	}
conf_field_fn client_read_basic, client_read_authorization, client_read_oauth2, client_read_tls,
	client_read_headers, client_read_proxy;
/* Checks the configuration as a whole; `n` is its place for errors. */
NODISCARD enum status client_check(
	const struct client_config *c, const struct conf_node *n, struct err *e);
void client_deinit(struct client_config *c);

/* address: NULL: each call names its whole URL. */
NODISCARD enum status client_open(
	const struct client_config *c, const char *address, struct fetch **out, struct err *e);
/* Sets the current headers in `f`: files are read again, and a token that ends soon is replaced
 * (E_CANCELED once `wake_fd` can be read meanwhile; -1: none). */
NODISCARD enum status client_present(
	const struct client_config *c, struct fetch *f, int wake_fd, struct err *e);
/* To be called when the server answered 401: the next client_present() gets another token. */
void client_refused(const struct client_config *c);

/* ---- oauth2.c ---- */

void client_oauth2_free(struct client_oauth2 *o); /* NULL is fine */
NODISCARD enum status client_oauth2_check(
	const struct client_oauth2 *o, const struct conf_node *n, struct err *e);
/* Appends the token, "Bearer" before it. */
NODISCARD enum status client_oauth2_token(
	struct client_oauth2 *o, int wake_fd, struct buf *out, struct err *e);
void client_oauth2_forget(struct client_oauth2 *o);

/* ---- reach.c ---- */

/* A secret, from its file when there is one. */
NODISCARD enum status client_secret(
	const char *given, const char *file, struct buf *out, struct err *e);
/* A fetch with this TLS and proxy. */
NODISCARD enum status client_fetch(const struct client_tls *tls, const struct client_proxy *proxy,
	bool follow, const char *address, struct fetch **out, struct err *e);
