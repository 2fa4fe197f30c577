/* SPDX-License-Identifier: Apache-2.0 */
/*
 * upload: parca.debuginfo.v1alpha1.DebuginfoService from the client's side: ask whether the server
 * wants a file, announce it, send its bytes, say that it is whole.
 *
 * Layer 4 (may use base, pb, fetch, net, debuginfo). Blocking, one file and one client at a time;
 * not thread safe. After a failure behind upload_begin() the server counts the upload as broken.
 * Source: Parca's debuginfo.proto and its pkg/debuginfo/store.go.
 */
#pragma once

#include "base/err.h"
#include "debuginfo/debuginfo.h"
#include "net/net.h"

/* Bytes of the file that are in memory at a time. */
#define UPLOAD_CHUNK_BYTES ((size_t)64 << 10)
#define UPLOAD_REASON_MAX 1023
#define UPLOAD_URL_MAX 8191
/* Bytes of an answer. */
#define UPLOAD_ANSWER_BYTES_MAX ((size_t)64 << 10)

/* Numbers are those of parca.debuginfo.v1alpha1.BuildIDType. */
enum upload_id_type {
	UPLOAD_ID_UNKNOWN = 0,
	UPLOAD_ID_GNU = 1,
	UPLOAD_ID_HASH = 2, /* of the content, since the file has no other */
	UPLOAD_ID_GO = 3,
};

/* Reads exactly `len` bytes at `at`; calls go from the first byte to the last. */
typedef enum status upload_read_fn(void *ctx, uint64_t at, void *out, size_t len, struct err *e);

/* The file to send. Texts must outlive the calls. */
struct upload_file {
	const char *build_id;
	enum upload_id_type id_type;
	enum debuginfo_type type;
	const char *hash; /* of upload_ask(): NULL: not known yet */
	bool force;       /* even if the server has the file, or waits for it */
	uint64_t bytes;   /* as read and ctx of upload_begin() and upload_send() only */
	upload_read_fn *read;
	void *ctx;
};

struct upload_limits {
	int64_t call_ns;  /* of each call but the one with the bytes */
	int64_t bytes_ns; /* of the call with the bytes */
	/* A signed address may be without TLS, since the server itself is without TLS. */
	bool clear_text;
	/* As net_client_interrupt(), for the host of a signed address. */
	int wake_fd;
	int64_t patience_ns;
};

struct upload_answer {
	bool wanted;
	bool in_progress;                   /* another client's upload goes on: ask later */
	char reason[UPLOAD_REASON_MAX + 1]; /* the server's; bytes as they came, end cut */
};
/* *out_retry of these functions: it makes sense to try again later. */
NODISCARD enum status upload_ask(struct net_client *c, const struct upload_limits *limits,
	const struct upload_file *f, struct upload_answer *out, bool *out_retry, struct err *e);

struct upload_ticket {
	char id[DEBUGINFO_ID_MAX + 1];
	char url[UPLOAD_URL_MAX + 1]; /* signed, to be PUT to; "": the bytes go to the server */
};
/* E_EXISTS: the server has this very file already, and calls it invalid. E_INVALID: it does not
 * want it. E_UNSUPPORTED: it wants the bytes in a way that is not known. */
NODISCARD enum status upload_begin(struct net_client *c, const struct upload_limits *limits,
	const struct upload_file *f, struct upload_ticket *out, bool *out_retry, struct err *e);
/* If `read` fails, its status is returned. */
NODISCARD enum status upload_send(struct net_client *c, const struct upload_limits *limits,
	const struct upload_file *f, const struct upload_ticket *t, bool *out_retry, struct err *e);
/* Says that the file is whole: from now on the server uses it. */
NODISCARD enum status upload_finish(struct net_client *c, const struct upload_limits *limits,
	const struct upload_file *f, const struct upload_ticket *t, bool *out_retry, struct err *e);
