/* SPDX-License-Identifier: Apache-2.0 */
/* places: where engines listen. */
#pragma once

#include "container/container.h"
#include "container/labels.h"
#include "container/peer.h"

/* The fixed places come first; the others are for engines of users, which come and go. */
#define CONTAINER_PLACES_MAX 16

enum container_engine {
	CONTAINER_ENGINE_CRI,
	CONTAINER_ENGINE_DOCKER,
	CONTAINER_ENGINE_PODMAN,
	CONTAINER_ENGINE_CONTAINERD
};

struct container_place {
	enum container_engine engine;
	uint32_t user; /* the user that runs it; 0: root */
	struct container_peer peer;
};

struct container_places {
	const char *node, *root;
	bool only; /* the one socket that a flag names */
	struct container_place v[CONTAINER_PLACES_MAX];
	uint32_t count, fixed; /* behind `fixed`: of users */
};

void container_places_init(struct container_places *c, const struct containers_config *config);
void container_places_deinit(struct container_places *c);
/* Asks one engine after another; `out` gets the labels of the first that knows the container.
 * E_NOTFOUND: none does. */
NODISCARD enum status container_places_ask(struct container_places *c,
	const struct container_query *q, struct container_labels *out,
	struct containers_metrics *metrics);
