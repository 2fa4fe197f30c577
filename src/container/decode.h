/* SPDX-License-Identifier: Apache-2.0 */
/* decode: parsers of the answers that docker.c, cri.c, containerd.c and kubernetes.c get. */
#pragma once

#include "container/container.h"
#include "container/labels.h"

/* Each record of an answer: a container by its id, or a pod by "pod/" and its uid. */
struct container_sink {
	void (*fn)(void *ctx, struct str key, const struct container_labels *l);
	void *ctx;
};

/* Docker's answer to /containers/ID/json; `engine` is "docker" or "podman". */
NODISCARD enum status container_docker_decode(
	struct str json, const char *engine, struct container_labels *out, struct err *e);

/* The fields of CRI's answers that are used. Texts lie in the bytes. */
struct container_cri {
	struct str name, image, sandbox; /* of a container */
};
NODISCARD enum status container_cri_container_decode(
	struct str bytes, struct str id, struct container_cri *out, struct err *e);
NODISCARD enum status container_cri_image_decode(
	struct str bytes, struct container_cri *out, struct err *e);
NODISCARD enum status container_cri_sandbox_decode(
	struct str bytes, struct str id, struct container_labels *out, struct err *e);
NODISCARD enum status container_cri_address_decode(
	struct str bytes, struct container_labels *out, struct err *e);

NODISCARD enum status container_containerd_decode(
	struct str bytes, struct str space, struct container_labels *out, struct err *e);
/* The n-th of the namespaces' names; "" behind the last. */
NODISCARD enum status container_spaces_decode(
	struct str bytes, uint32_t n, struct str *out, struct err *e);

/* Reads a node's labels. container_pods_decode() then reads its pods, and adds these labels to
 * each. */
NODISCARD enum status container_node_decode(
	struct str json, struct container_labels *out, struct err *e);
#define CONTAINER_VERSION_MAX 64 /* of Kubernetes' resourceVersion, which is any text */
/* `out_version` (NULL: not asked for) is "" where the list has none that is fit for a URL. */
NODISCARD enum status container_pods_decode(struct str json, const struct container_labels *node,
	const struct container_sink *sink, char out_version[CONTAINER_VERSION_MAX], struct err *e);

enum container_event_kind {
	CONTAINER_EVENT_OTHER, /* DELETED, and types that do not exist yet */
	CONTAINER_EVENT_POD,   /* a pod was added or changed */
	CONTAINER_EVENT_BOOKMARK,
	CONTAINER_EVENT_ERROR
};
struct container_event {
	enum container_event_kind kind;
	char version[CONTAINER_VERSION_MAX]; /* "": none */
	int code;                            /* of an error: as HTTP's */
	char message[160];
};
/* One event of a watch. */
NODISCARD enum status container_event_decode(struct str json, const struct container_labels *node,
	const struct container_sink *sink, struct container_event *out, struct err *e);
/* Cuts JSON objects out of a stream that has nothing but blanks between them. */
struct container_frames {
	size_t scanned;
	uint32_t depth;
	bool in_string, escaped;
};
/* The length of the first object in `bytes`, with the blanks before it; 0: it is not whole yet, and
 * more bytes may be appended. E_INVALID: no object begins there. */
NODISCARD enum status container_frame_next(
	struct container_frames *f, struct str bytes, size_t *out_len, struct err *e);
