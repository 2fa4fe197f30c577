/* SPDX-License-Identifier: Apache-2.0 */
/* container's own: what is asked, the engines, and their answers. Private to container/. */
#pragma once

#include "base/clock.h"
#include "container/container.h"
#include "fetch/fetch.h"
#include "net/net.h"
#include "procfs/procfs.h"

#define CONTAINER_ID_MAX 128
#define CONTAINER_SOCKET_MAX 108

/* ---- labels.c: labels on their way from an answer into the cache ---- */

struct container_labels {
	struct arena *arena;
	struct container_label v[CONTAINER_LABELS_MAX];
	uint32_t count;
	bool cut; /* something did not fit */
};

void container_labels_init(struct container_labels *l, struct arena *a);
/* An empty value is none. The texts are copied. */
void container_put(struct container_labels *l, const char *name, struct str value);
/* "__meta_x_label_KEY" = value and "__meta_x_labelpresent_KEY" = "true", of what =
 * "__meta_x_label". */
void container_put_pair(
	struct container_labels *l, const char *what, struct str key, struct str value);
/* The pairs of a map<string, string>, one entry's bytes at a time. */
void container_put_entry(struct container_labels *l, const char *what, struct str entry);
/* Removes what the kubelet and engines add to a pod's own labels and annotations. So the result is
 * the same from each source: Kubernetes' API does not have these, and one of them is a time. */
void container_drop_kubelets(struct container_labels *l);
/* "" when absent. */
struct str container_get(const struct container_labels *l, const char *name);

/* ---- the parsers of answers: docker.c, cri.c, containerd.c, kubernetes.c ---- */

/* Each record of an answer: a container by its id, or a pod by "pod/" and its uid. */
struct container_sink {
	void (*fn)(void *ctx, struct str key, const struct container_labels *l);
	void *ctx;
};

/* Docker's answer to /containers/ID/json; `engine` is "docker" or "podman". */
NODISCARD enum status container_docker_decode(
	struct str json, const char *engine, struct container_labels *out, struct err *e);

/* The parts of CRI's answers that are looked at. Texts lie in the bytes. */
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

/* A node's labels; then the pods of it, with them. */
NODISCARD enum status container_node_decode(
	struct str json, struct container_labels *out, struct err *e);
#define CONTAINER_VERSION_MAX 64 /* of Kubernetes' resourceVersion, which is any text */
/* `out_version` (NULL: not asked for) is "" where the list has none that is fit for a URL. */
NODISCARD enum status container_pods_decode(struct str json, const struct container_labels *node,
	const struct container_sink *sink, char out_version[CONTAINER_VERSION_MAX], struct err *e);

enum container_event_kind {
	CONTAINER_EVENT_OTHER, /* DELETED, and what is yet to be thought of */
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
/* The length of the first object in `bytes`, blanks in front of it among it; 0: it is not whole
 * yet, and more may be appended to the same bytes. E_INVALID: no object begins there. */
NODISCARD enum status container_frame_next(
	struct container_frames *f, struct str bytes, size_t *out_len, struct err *e);

/* ---- engines: each asks for one container, or for all ---- */

struct container_query {
	enum procfs_container_kind kind; /* PROCFS_CONTAINER or _MAYBE */
	char id[CONTAINER_ID_MAX];
	char space[CONTAINER_ID_MAX];     /* of PROCFS_CONTAINER_MAYBE */
	char pod_uid[PROCFS_POD_UID_MAX]; /* "" */
	uint32_t user; /* whose group it is: engines of that user are asked, and no others;
			  0: root's */
	bool is_pod;   /* the pod is asked for; id is "" */
};

/* A socket or a server that answers. The thread's alone. */
struct container_peer {
	char address[256]; /* as fetch_new(); of gRPC as net_client_new() */
	/* Of an address "unix:…" in a user's folder: as much of it as is no user's; 0: all. */
	size_t trusted_len;
	bool has_socket;
	int socket; /* named by a descriptor, where it is a user's */
	bool speaks_grpc;
	struct fetch *http; /* one of both, once it is ready */
	struct net_client *grpc;
	int64_t rest_until_ns; /* it failed: left alone until then */
	int64_t rest_ns;
	int code;                   /* the status of its last answer by HTTP; 0: none came */
	char problem[ERR_TEXT_MAX]; /* its last failure; "" */
};

/* Is it worth asking: a socket is there, and it has not just failed. */
bool container_peer_ready(struct container_peer *p, int64_t now_ns);
/* Notes how a request ended: a peer that does not answer is left alone for a while. */
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

/* E_NOTFOUND: the engine does not know it. */
NODISCARD enum status container_docker_ask(struct container_peer *p, const char *engine,
	const struct container_query *q, struct container_labels *out, struct err *e);
NODISCARD enum status container_cri_ask(struct container_peer *p, const char *node,
	const struct container_query *q, struct container_labels *out, struct err *e);
NODISCARD enum status container_containerd_ask(struct container_peer *p,
	const struct container_query *q, struct container_labels *out, struct err *e);

#define CONTAINER_KUBERNETES_PAUSE_MIN_NS NS_PER_SEC
struct container_kubernetes {
	struct container_peer peer; /* address "": there is none */
	bool kubelet;
	const char *node;
	const char *token_file, *ca_file;
	bool token_needed, ca_needed; /* else they may be absent */
	bool insecure;
	int64_t listed_ns;    /* when it was last asked; 0: never */
	int64_t pause_ns;     /* until it is asked again */
	uint64_t token_hash;  /* of the token of the last request; 0: none */
	bool node_is_unknown; /* so says the API */
};
/* By flags and the environment. */
void container_kubernetes_init(struct container_kubernetes *k, const struct containers_config *c);
/* All pods of this node, if the pause is over (else E_UNAVAILABLE). */
NODISCARD enum status container_kubernetes_list(
	struct container_kubernetes *k, const struct container_sink *sink, struct err *e);
/* Token and trust for the requests that follow; container_peer_ready() comes before. */
NODISCARD enum status container_kubernetes_ready(struct container_kubernetes *k, struct err *e);
/* The token was refused (401), and another is in its file by now. */
bool container_kubernetes_has_new_token(struct container_kubernetes *k);
/* The node's labels; only its name if the API refuses them or does not answer. */
enum status container_kubernetes_node(struct container_kubernetes *k, struct container_labels *out);
/* `newest`: what has been written by now, and not what the API server remembers. */
NODISCARD enum status container_kubernetes_pods(struct container_kubernetes *k, bool newest,
	const struct container_labels *node, const struct container_sink *sink,
	char out_version[CONTAINER_VERSION_MAX], struct err *e);

/* ---- watch.c: the pods of this node by the API server's watch, in a thread of its own ---- */

enum container_watch_state {
	CONTAINER_WATCH_BEGINS,  /* nothing is known yet */
	CONTAINER_WATCH_GOES_ON, /* what changes is told */
	CONTAINER_WATCH_AWAY,    /* the API does not answer: tried again */
	CONTAINER_WATCH_REFUSED  /* we may list, but not watch: tried again ever less often */
};

struct container_watch_config {
	const struct containers_config *containers;
	struct container_sink sink; /* called by the thread */
	void (*changed)(
		void *ctx); /* the state, or the problem; by the thread. `ctx`: the sink's */
	struct containers_metrics *metrics;
	int64_t backoff_min_ns; /* 0: a second */
	int64_t refused_min_ns; /* 0: 30 s */
};

struct container_watch;
/* `c` is copied; what it points to is not. */
NODISCARD enum status container_watch_start(
	const struct container_watch_config *c, struct container_watch **out, struct err *e);
void container_watch_stop(struct container_watch *w); /* NULL is fine */
enum container_watch_state container_watch_state(struct container_watch *w);
/* Lets the watch report all pods again, at most once a minute, since some were forgotten. Any
 * thread. */
void container_watch_again(struct container_watch *w);
/* Whether the API knows no node of our name. */
bool container_watch_node_is_unknown(struct container_watch *w);
/* "" when all is well. */
void container_watch_problem(struct container_watch *w, char out[ERR_TEXT_MAX]);

/* ---- owner.c: the user that may have made a control group and named it ---- */

/* "/user.slice/user-1000.slice/…": 1000; 0: no user's. */
uint32_t container_owner_by_name(struct str path);
/* The owner of the group above that one, below `root`/sys/fs/cgroup; 0: root, or not known. */
uint32_t container_owner(const char *root, struct str group);

/* ---- usersocket.c: sockets that a user put there ---- */

/* The socket `below` (a path without empty parts) a folder that is no user's, as a descriptor that
 * only names it (O_PATH); -1: there is none, or it is reached by a link, or over a file system that
 * may hang. */
int container_user_socket(const char *trusted, const char *below);

/* ---- places.c: where engines listen ---- */

/* Places that the fixed ones leave free are for engines of users, which come and go. */
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
/* `out` has the labels of the first that knows it; E_NOTFOUND: none does. */
NODISCARD enum status container_places_ask(struct container_places *c,
	const struct container_query *q, struct container_labels *out,
	struct containers_metrics *metrics);
