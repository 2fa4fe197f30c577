/* SPDX-License-Identifier: Apache-2.0 */
/* engine: asks a container engine for one container. */
#pragma once

#include "container/container.h"
#include "container/labels.h"
#include "container/peer.h"

/* E_NOTFOUND: the engine does not know it. */
NODISCARD enum status container_docker_ask(struct container_peer *p, const char *engine,
	const struct container_query *q, struct container_labels *out, struct err *e);
NODISCARD enum status container_cri_ask(struct container_peer *p, const char *node,
	const struct container_query *q, struct container_labels *out, struct err *e);
NODISCARD enum status container_containerd_ask(struct container_peer *p,
	const struct container_query *q, struct container_labels *out, struct err *e);
