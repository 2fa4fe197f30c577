/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container: meta labels of a process' container from container engines and Kubernetes, found by
 * the path of its control group.
 *
 * Layer 4 (may use base, pb, procfs, fetch, net). Sources are, where they exist: the Kubernetes API
 * or the kubelet (the pods of this node), CRI sockets (containerd, CRI-O, cri-dockerd), Docker's
 * and podman's API, containerd's own. One thread asks them and keeps the answers. Another watches
 * the Kubernetes API for changes. containers_find() never waits: a container that is not known yet
 * has the labels of its path alone, and a version that changes when there is more.
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
/* Bytes of all their texts. At three quarters of it, unused texts are removed. If more than half is
 * still used then, values over 128 bytes are left out from then on, and counted. If that does not
 * help either, everything is forgotten and asked again. */
#define CONTAINERS_TEXT_BYTES_MAX ((size_t)8 << 20)
/* Labels of one container; more are cut off and counted. */
#define CONTAINER_LABELS_MAX 400
/* A longer value is left out, and counted. */
#define CONTAINER_VALUE_BYTES_MAX ((size_t)16 << 10)
/* Bytes of an engine's answer to one request or of an event of a watch, and of Kubernetes' list of
 * this node's pods. */
#define CONTAINER_ANSWER_BYTES_MAX ((size_t)4 << 20)
#define CONTAINER_PODS_BYTES_MAX ((size_t)32 << 20)

struct container_label {
	struct str name, value;
};

struct containers_config {
	const char *node; /* this host's name in Kubernetes */
	/* The socket of an engine, in place of the usual ones; "" or NULL: the usual ones. */
	const char *socket_path;
	/* A folder put before the paths of the usual places; "" or NULL: none. */
	const char *root;
	/* "https://HOST:PORT" of the API; "" or NULL: as a pod finds it (KUBERNETES_SERVICE_HOST),
	 * or none. */
	const char *kubernetes_address;
	/* "https://HOST:PORT" of the kubelet, which is asked in place of the API; "" or NULL: none.
	 */
	const char *kubelet_address;
	const char *token_file; /* "" or NULL: a pod's */
	const char *ca_file;    /* "" or NULL: a pod's */
	bool insecure;          /* accept any certificate */
	int64_t ttl_ns;         /* an answer this old is asked for again; 0: ten minutes */
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
/* Waits until the labels of all containers that exist at the start have been asked for, at most so
 * long. */
void containers_settle(struct containers *c, int64_t timeout_ns);
/* The labels known of the container at that path, in the arena; none if it is no container's path.
 * `c` NULL: only the labels that the path itself gives. E_NOMEM, E_LIMIT: the arena. */
NODISCARD enum status containers_find(struct containers *c, struct str cgroup_path, struct arena *a,
	struct container_label **out, uint32_t *out_count);
/* A number that changes whenever anything changes; cheap. */
uint64_t containers_generation(struct containers *c);
/* A number that changes when containers_find() of that path would give other labels. */
uint64_t containers_version(struct containers *c, struct str cgroup_path);
/* The last failure of each engine in plain lines; "" when all is well. For people. */
void containers_write_problems(struct containers *c, struct buf *out);
void containers_write_metrics(struct containers *c, struct buf *out);
