/* SPDX-License-Identifier: Apache-2.0 */
/* peer: a query to engines, and a socket or server that answers. */
#pragma once

#include "container/container.h"
#include "fetch/fetch.h"
#include "net/net.h"
#include "procfs/procfs.h"

#define CONTAINER_ID_MAX 128
#define CONTAINER_SOCKET_MAX 108

struct container_query {
	enum procfs_container_kind kind; /* PROCFS_CONTAINER or _MAYBE */
	char id[CONTAINER_ID_MAX];
	char space[CONTAINER_ID_MAX];     /* of PROCFS_CONTAINER_MAYBE */
	char pod_uid[PROCFS_POD_UID_MAX]; /* "" */
	uint32_t user; /* owner of the group: only engines of that user are asked; 0: root's */
	bool is_pod;   /* the pod is asked for; id is "" */
};

/* A socket or a server that answers. Used by one thread only. */
struct container_peer {
	char address[256]; /* as fetch_new(); of gRPC as net_client_new() */
	/* For an address "unix:…" in a user's folder: how many bytes of the path belong to no user;
	 * 0: all. */
	size_t trusted_len;
	bool has_socket;
	int socket; /* a descriptor that names the socket, if it is a user's */
	bool speaks_grpc;
	struct fetch *http; /* one of both, once it is ready */
	struct net_client *grpc;
	int64_t rest_until_ns; /* it failed, and is not asked until then */
	int64_t rest_ns;
	int code;                   /* the status of its last answer by HTTP; 0: none came */
	char problem[ERR_TEXT_MAX]; /* its last failure; "" */
};

/* Whether to ask it: its socket exists, and it has not just failed. */
bool container_peer_ready(struct container_peer *p, int64_t now_ns);
/* Notes how a request ended: a peer that does not answer is not asked for a while. */
void container_peer_note(struct container_peer *p, enum status s, const struct err *e);
void container_peer_close(struct container_peer *p);
/* GET with a bounded answer; E_NOTFOUND for 404, E_DENIED for 401 and 403, E_IO for others, with
 * the server's own sentence where it has one. */
NODISCARD enum status container_peer_get(struct container_peer *p, const char *path,
	size_t answer_max, struct buf *out, struct err *e);
/* The sentence of an HTTP error for people: the "message" of its JSON, in one line; "" when it has
 * none. */
#define CONTAINER_SENTENCE_MAX 192
void container_sentence(struct str json, char out[CONTAINER_SENTENCE_MAX]);
NODISCARD enum status container_peer_rpc(struct container_peer *p, const char *path,
	struct str message, struct buf *out, struct err *e);
