/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: what container engines and Kubernetes say of a process' container: meta labels, found
 * by the path of its control group.
 *
 * Layer 4 (may use base, pb, procfs, fetch, net). Sources are, where they exist: the Kubernetes API
 * or the kubelet (the pods of this node), CRI sockets (containerd, CRI-O, cri-dockerd), Docker's
 *and podman's API, containerd's own. One thread asks them and keeps the answers. Another watches
 *the Kubernetes API for changes. containers_find() never waits: a container that is not known yet
 *has the labels of its path alone, and a version that changes when there is more.
 *
 * Labels, by parca-agent's names where it has one:
 *	__meta_kubernetes_{namespace, pod_name, pod_uid, pod_ip, pod_ready, pod_phase,
 *		pod_node_name, pod_host_ip, pod_container_{name,id,image,init},
 *		pod_controller_{kind,name}, pod_label_NAME, pod_labelpresent_NAME,
 *		pod_annotation_NAME, pod_annotationpresent_NAME, node_name, node_label_NAME, …}
 *	__meta_docker_container_{id, name, image, label_NAME, labelpresent_NAME}
 *	__meta_podman_container_…       likewise
 *	__meta_containerd_{namespace, container_id, container_name, pod_name, container_image,
 *		container_label_NAME, container_labelpresent_NAME}
 *	__meta_docker_build_kit_container_id, __meta_lxc_container_id
 * NAME: what is no letter, digit or '_' in it is '_'.
 *
 * Thread safety: all functions from any thread.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/metrics.h"
#include "base/str.h"

/* Containers and pods remembered; beyond that the least recently used are removed. */
#define CONTAINERS_MAX 4096
/* Bytes of all their texts. At three quarters those go that are no longer in use; if half is left,
 * values over 128 bytes are left out from then on, and counted; if that does not help either,
 * everything is forgotten and asked again. */
#define CONTAINERS_TEXT_BYTES_MAX ((size_t)8 << 20)
/* Of one container; more are cut off and counted. */
#define CONTAINER_LABELS_MAX 400
/* A longer value is left out, and counted. */
#define CONTAINER_VALUE_BYTES_MAX ((size_t)16 << 10)
/* An engine's answer to one request, an event of a watch; Kubernetes' list of this node's pods. */
#define CONTAINER_ANSWER_BYTES_MAX ((size_t)4 << 20)
#define CONTAINER_PODS_BYTES_MAX ((size_t)32 << 20)

struct container_label {
	struct str name, value;
};

struct containers_config {
	const char *node; /* this host's name in Kubernetes */
	/* The socket of an engine, instead of those at the usual places; "" or NULL: those. */
	const char *socket_path;
	/* Before the usual places; "" or NULL: none. */
	const char *root;
	/* "https://HOST:PORT" of the API; "" or NULL: as a pod finds it (KUBERNETES_SERVICE_HOST),
	 * or none. */
	const char *kubernetes_address;
	/* "https://HOST:PORT" of the kubelet, which is asked instead; "" or NULL: none. */
	const char *kubelet_address;
	const char *token_file; /* "" or NULL: a pod's */
	const char *ca_file;    /* "" or NULL: a pod's */
	bool insecure;          /* accept any certificate */
	int64_t ttl_ns;         /* asked again when the answer is as old; 0: ten minutes */
};

#define CONTAINERS_METRICS(X)                                                                   \
	X(known, GAUGE, "firn_agent_containers", "Containers and pods remembered.")             \
	X(asked, COUNTER, "firn_agent_container_questions_total",                               \
		"Questions to container engines and Kubernetes.")                               \
	X(answered, COUNTER, "firn_agent_container_answers_total",                              \
		"Questions that were answered, be it by \"no such container\".")                \
	X(failed, COUNTER, "firn_agent_container_failures_total",                               \
		"Questions without an answer, or with an answer that makes no sense.")          \
	X(unknown, GAUGE, "firn_agent_containers_unknown", "Containers that no engine knows.")  \
	X(evicted, COUNTER, "firn_agent_containers_evicted_total", "Forgotten for room.")       \
	X(cut, COUNTER, "firn_agent_container_labels_cut_total",                                \
		"Containers with more labels, or longer ones, than are kept.")                  \
	X(watching, GAUGE, "firn_agent_kubernetes_watching",                                    \
		"1 while the Kubernetes API tells of every change of this node's pods.")        \
	X(lists, COUNTER, "firn_agent_kubernetes_lists_total",                                  \
		"Times that all pods of this node were asked for, to watch them from then on.") \
	X(watches, COUNTER, "firn_agent_kubernetes_watches_total", "Watches begun.")            \
	X(events, COUNTER, "firn_agent_kubernetes_events_total",                                \
		"Changes that the Kubernetes API told of.")
struct containers_metrics {
	CONTAINERS_METRICS(METRIC_FIELD)
};

struct containers;

/* The configuration's texts must outlive it. */
NODISCARD enum status containers_new(
	const struct containers_config *c, struct containers **out, struct err *e);
void containers_free(struct containers *c);
/* Waits until all containers there are at the start have been asked for, at most so long. */
void containers_settle(struct containers *c, int64_t timeout_ns);
/* What is known of the container at that path: labels in the arena, none when it is no container's.
 * `c` NULL: what the path itself says. E_NOMEM, E_LIMIT: the arena. */
NODISCARD enum status containers_find(struct containers *c, struct str cgroup_path, struct arena *a,
	struct container_label **out, uint32_t *out_count);
/* Changes whenever anything changes; cheap. */
uint64_t containers_generation(struct containers *c);
/* Changes when containers_find() of that path would say something else. */
uint64_t containers_version(struct containers *c, struct str cgroup_path);
/* The last failure of each engine in plain lines; "" when all is well. For people. */
void containers_write_problems(struct containers *c, struct buf *out);
void containers_write_metrics(struct containers *c, struct buf *out);
