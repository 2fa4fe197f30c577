/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remote: a client of the server that gets the samples: how the server is trusted, and how the
 * agent authenticates. Private to agent/ (send.c). Not thread safe: the sender's thread.
 */
#pragma once

#include "base/err.h"
#include "net/net.h"

/* Bytes of a token, without the white space around it. */
#define REMOTE_TOKEN_BYTES_MAX ((size_t)8 << 10)

/* Texts may be NULL or ""; all must outlive the client. */
struct remote_config {
	const char *address;     /* as net_client_new() */
	const char *pinned_cert; /* https: the server's own */
	const char *ca_file;     /* https: instead of this host's authorities */
	bool trust_anybody;
	const char *client_cert, *client_key; /* PEM */
	const char *token;
	const char *token_file;     /* read again for each request */
	const char *const *headers; /* "name=value", NULL at the end; or NULL */
};

/* E_INVALID: what is no address or no header. Files are looked at when they are needed. */
NODISCARD enum status remote_open(
	const struct remote_config *c, struct net_client **out, struct err *e);
/* To be called before each request. Takes the token from its file. E_INVALID: the file has no
 * token, or more than one line. Other errors are those of reading the file. */
NODISCARD enum status remote_refresh(
	const struct remote_config *c, struct net_client *client, struct err *e);
