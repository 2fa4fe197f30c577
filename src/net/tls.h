/* SPDX-License-Identifier: Apache-2.0 */
/* tls: one connection's TLS, apart from its socket: bytes go in and come out. For the server and
 * the client. */
#pragma once

#include "net/net.h"

struct net_tls;
struct net_tls_conn;
NODISCARD enum status net_tls_new(
	const struct net_server_config *c, struct net_tls **out, struct err *e);
void net_tls_free(struct net_tls *t);
/* NULL: no memory. */
struct net_tls_conn *net_tls_accept(struct net_tls *t, struct net_metrics *metrics);
/* Whom a client trusts. */
struct net_tls_trust {
	const char *ca_file; /* PEM; NULL: what this host trusts */
	bool any_name;       /* the server's certificate may be for another name */
	bool anybody;        /* nothing is checked */
};
/* The client's certificate and key: PEM; NULL: none. */
struct net_tls_identity {
	const char *cert_file;
	const char *key_file;
};
/* The client's side. */
NODISCARD enum status net_tls_connect(const struct net_tls_trust *t,
	const struct net_tls_identity *i, const char *host, struct net_tls_conn **out,
	struct err *e);
/* Why net_tls_failed(). */
const char *net_tls_why(const struct net_tls_conn *c);
bool net_tls_ready(const struct net_tls_conn *c); /* the handshake is over */
void net_tls_conn_free(struct net_tls_conn *c);
/* Ciphertext of the peer. False: it is none. */
bool net_tls_put(struct net_tls_conn *c, const void *bytes, size_t len);
/* Plain bytes, 0 when there are none now. */
size_t net_tls_read(struct net_tls_conn *c, void *out, size_t max);
/* net_tls_read() may have more without another net_tls_put(). */
bool net_tls_pending(const struct net_tls_conn *c);
bool net_tls_failed(const struct net_tls_conn *c);
bool net_tls_ended(const struct net_tls_conn *c); /* the peer has ended it, or it has failed */
/* Returns how many bytes it took: 0 in the handshake, and while much waits to be sent. */
size_t net_tls_write(struct net_tls_conn *c, const void *bytes, size_t len);
/* Say goodbye. */
void net_tls_close(struct net_tls_conn *c);
struct str net_tls_output(const struct net_tls_conn *c);
void net_tls_sent(struct net_tls_conn *c, size_t len);
