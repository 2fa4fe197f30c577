/* SPDX-License-Identifier: Apache-2.0 */
/* kubernetes: the pods of this node, by the API server or the kubelet. */
#pragma once

#include "base/clock.h"
#include "container/container.h"
#include "container/decode.h"
#include "container/labels.h"
#include "container/peer.h"

#define CONTAINER_KUBERNETES_PAUSE_MIN_NS NS_PER_SEC
struct container_kubernetes {
	struct container_peer peer; /* address "": there is none */
	bool kubelet;
	const char *node;
	const char *token_file, *ca_file;
	bool token_needed, ca_needed; /* else they may be absent */
	bool insecure;
	int64_t listed_ns;    /* when the pods were last listed; 0: never */
	int64_t pause_ns;     /* how long until they may be listed again */
	uint64_t token_hash;  /* of the token of the last request; 0: none */
	bool node_is_unknown; /* the API says that it knows no node of this name */
};
/* Sets it up from flags and the environment. */
void container_kubernetes_init(struct container_kubernetes *k, const struct containers_config *c);
/* All pods of this node, if the pause is over (else E_UNAVAILABLE). */
NODISCARD enum status container_kubernetes_list(
	struct container_kubernetes *k, const struct container_sink *sink, struct err *e);
/* Sets the token and the trusted certificates for the next requests; to be called after
 * container_peer_ready(). */
NODISCARD enum status container_kubernetes_ready(struct container_kubernetes *k, struct err *e);
/* The token was refused (401), and another is in its file by now. */
bool container_kubernetes_has_new_token(struct container_kubernetes *k);
/* The node's labels; only its name if the API refuses them or does not answer. */
enum status container_kubernetes_node(struct container_kubernetes *k, struct container_labels *out);
/* `newest`: the state of the database now, not that of the API server's cache. */
NODISCARD enum status container_kubernetes_pods(struct container_kubernetes *k, bool newest,
	const struct container_labels *node, const struct container_sink *sink,
	char out_version[CONTAINER_VERSION_MAX], struct err *e);
