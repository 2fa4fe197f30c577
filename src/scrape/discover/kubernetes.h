/* SPDX-License-Identifier: Apache-2.0 */
/* kubernetes' own: access to the API server, and labels of its objects. */
#pragma once

#include "scrape/discover/discover.h"

#define KUBERNETES_PAGE 500       /* objects of one answer */
#define KUBERNETES_PAGES_MAX 2000 /* of one list */
#define KUBERNETES_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

enum kubernetes_role {
	KUBERNETES_NODE,
	KUBERNETES_POD,
	KUBERNETES_SERVICE,
	KUBERNETES_ENDPOINTS,
	KUBERNETES_ENDPOINTSLICE,
	KUBERNETES_INGRESS,
	KUBERNETES_NAMESPACE, /* only looked up; not a role of targets */
	KUBERNETES_ROLES
};

struct kubernetes {
	struct discover base;
	const char *api_server, *role_name, *kubeconfig_file;
	bool own_namespace, attach_node, attach_namespace;
	const struct conf_node *namespaces, *selectors; /* lists; NULL */
	enum kubernetes_role role;
	const char *account; /* folder of the service account; tests have another */
};

/* ---- access.c ---- */

struct kubernetes_access {
	const char *server; /* "https://10.96.0.1:443" */
	struct discover as; /* whose client is used */
};
/* From api_server, the kubeconfig file or the pod's service account. Texts lie in `a`. */
NODISCARD enum status kubernetes_access_find(
	const struct kubernetes *k, struct arena *a, struct kubernetes_access *out, struct err *e);

/* ---- objects.c: labels of objects, as Prometheus has them ---- */

#define KUBERNETES "__meta_kubernetes_"
/* Name, labels and annotations. */
void kubernetes_put_meta(
	struct discover_draft *d, enum kubernetes_role role, const struct conf_node *object);
void kubernetes_put_pod(struct discover_draft *d, const struct conf_node *pod);
/* The container's own labels; `port` of it, or NULL. */
void kubernetes_put_container(struct discover_draft *d, const struct conf_node *pod,
	const struct conf_node *container, bool init, const struct conf_node *port);
/* Calls fn for each container of a pod, init ones last. */
typedef enum status kubernetes_container_fn(
	void *ctx, const struct conf_node *container, bool init, struct err *e);
NODISCARD enum status kubernetes_each_container(
	const struct conf_node *pod, kubernetes_container_fn *fn, void *ctx, struct err *e);
/* "endpoint_hostname" of a member where it is there. */
void kubernetes_put_member(
	struct discover_draft *d, const char *label, const struct conf_node *n, const char *path);
