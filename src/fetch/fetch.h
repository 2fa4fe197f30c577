/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fetch: plain HTTP/1.1 requests to servers that are not ours: GET, POST, PUT, and answers without
 * an end. libcurl does HTTP, TLS, proxies and redirects; here are limits, time-outs, cancelling and
 * errors. (gRPC is net's.)
 *
 * Layer 3 (may use base, os). One fetch is one connection that is kept, and one request at a time;
 * blocking; not thread safe, but each thread may have its own. libcurl is loaded by the first
 * fetch_new() of the process: programs that fetch nothing neither pay for it nor need it installed.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* Bytes of an answer, unless fetch_limit() says less. */
#define FETCH_ANSWER_MAX ((size_t)256 << 20)
#define FETCH_PIECE_MAX ((size_t)64 << 10) /* bytes of one fetch_more() */
#define FETCH_HEADERS_MAX 16
#define FETCH_URL_MAX ((size_t)16 << 10)
#define FETCH_HEAD_BYTES_MAX ((size_t)64 << 10) /* of all heads of an answer, redirects' too */
#define FETCH_REDIRECTS_MAX 10

/* Texts but the address must outlive the fetch. Proxies come from the environment (http_proxy,
 * https_proxy, no_proxy), except for Unix sockets and this host itself, which are always asked
 * directly. */
struct fetch_config {
	/* "HOST:PORT", "http://HOST[:PORT]", "https://HOST[:PORT]", "unix:/path"; what follows a
	 * '/' is left out. NULL: each call names its whole URL instead of a target. */
	const char *address;
	/* https: PEM files, read for each call. */
	const char *ca_file;              /* NULL: SSL_CERT_FILE, or else what this host trusts */
	const char *cert_file, *key_file; /* the client's certificate; NULL: none */
	const char *ca, *cert, *key;      /* the same three as PEM texts, which come first */
	bool trust_anybody;               /* https: nothing is checked */
	const char *proxy_url;            /* NULL: of the environment; "": none */
	const char *no_proxy;             /* NULL: of the environment */
	bool follow_redirects;
};

struct fetch;
/* E_INVALID: no such address; E_UNSUPPORTED: libcurl is not installed. */
NODISCARD enum status fetch_new(const struct fetch_config *c, struct fetch **out, struct err *e);
void fetch_free(struct fetch *f);
/* Sets which certificates the next calls trust, as in fetch_config. */
void fetch_trust(struct fetch *f, const char *ca_file, bool anybody);
/* Adds a header to each request from now on; it replaces one of the same name, and NULL removes it.
 * Both texts are copied. Redirects to another host do not get `authorization`. E_LIMIT: more than
 * FETCH_HEADERS_MAX; E_INVALID: not a header. */
NODISCARD enum status fetch_header(
	struct fetch *f, const char *name, const char *value, struct err *e);
/* Signs each request from now on as Amazon's services want it (AWS Signature Version 4); NULL:
 * signs no more. The texts must outlive the fetch. Calls end with E_UNSUPPORTED if libcurl cannot
 * sign.
 * Source: docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html. */
struct fetch_signature {
	const char *scope; /* "aws:amz:REGION:SERVICE" */
	const char *key_id, *secret;
};
void fetch_sign(struct fetch *f, const struct fetch_signature *signature);
/* Longer answers are refused with E_LIMIT. */
void fetch_limit(struct fetch *f, size_t answer_bytes_max);
/* A call ends with E_CANCELED once `wake_fd` can be read (-1: none), and with E_TIMEOUT when
 * nothing has come or gone for patience_ns (0: as long as the call itself may take). */
void fetch_interrupt(struct fetch *f, int wake_fd, int64_t patience_ns);

/* ---- calls: OK whatever the HTTP status is ----
 *
 * The answer is appended to `out`. E_UNAVAILABLE: no server there, or a broken or untrusted
 * connection; E_TIMEOUT; E_LIMIT: the answer is too long; E_INVALID: no URL, or the answer is not
 * HTTP. Errors name the server, but not the rest of the URL. timeout_ns: 0: none. */

NODISCARD enum status fetch_get(struct fetch *f, const char *target, int64_t timeout_ns,
	int *out_http_status, struct buf *out, struct err *e);
/* content_type: NULL: application/octet-stream. */
NODISCARD enum status fetch_post(struct fetch *f, const char *target, const char *content_type,
	struct str body, int64_t timeout_ns, int *out_http_status, struct buf *out, struct err *e);
/* Gives the next piece of a body, which must live until the next call; OK with *out_end: there is
 * none. */
typedef enum status fetch_piece_fn(void *ctx, struct str *out, bool *out_end, struct err *e);
/* Sends a body of `bytes` bytes, which `next` gives in pieces. It has a connection of its own and
 * is not tried again; if `next` fails, its status is returned. */
NODISCARD enum status fetch_put(struct fetch *f, const char *target, uint64_t bytes,
	fetch_piece_fn *next, void *ctx, int64_t timeout_ns, int *out_http_status, struct buf *out,
	struct err *e);

/* GET of an answer without an end: returns when its head has come. The next call of another kind
 * ends it. */
NODISCARD enum status fetch_begin(struct fetch *f, const char *target, int64_t timeout_ns,
	int *out_http_status, struct err *e);
/* Waits for more of that answer and appends it; *out_end: that was the last. E_TIMEOUT: nothing
 * came; E_CANCELED: `wake_fd` (-1: none) can be read; after these two it may be called again. Any
 * other status: the connection is lost. */
NODISCARD enum status fetch_more(struct fetch *f, int wake_fd, int64_t timeout_ns, struct buf *out,
	bool *out_end, struct err *e);

/* Content-Type of the last answer; "" where it has none. Valid until the next call. */
const char *fetch_content_type(const struct fetch *f);
