/* SPDX-License-Identifier: Apache-2.0 */
/* How: one table of label names for metadata of all kinds of objects, and a function for each
 * kind. */
#include "scrape/discover/kubernetes.h"

#include <ctype.h>
#include <stdio.h>

#define META(role)                                                                        \
	{                                                                                 \
		KUBERNETES role "_name", KUBERNETES role "_label_",                       \
			KUBERNETES role "_labelpresent_", KUBERNETES role "_annotation_", \
			KUBERNETES role "_annotationpresent_"                             \
	}
static const struct {
	const char *name, *label, *label_is, *annotation, *annotation_is;
} meta_names[KUBERNETES_ROLES] = {
	[KUBERNETES_NODE] = META("node"),
	[KUBERNETES_POD] = META("pod"),
	[KUBERNETES_SERVICE] = META("service"),
	[KUBERNETES_ENDPOINTS] = META("endpoints"),
	[KUBERNETES_ENDPOINTSLICE] = META("endpointslice"),
	[KUBERNETES_INGRESS] = META("ingress"),
	[KUBERNETES_NAMESPACE] = META("namespace"),
};

static void put_map(struct discover_draft *d, const struct conf_node *map, const char *value,
	const char *present)
{
	for (uint32_t i = 0; map && map->kind == CONF_MAP && i < map->count; i++) {
		discover_put_key(d, value, map->v[i].key, map->v[i].value->text);
		discover_put_key(d, present, map->v[i].key, STR("true"));
	}
}

void kubernetes_put_meta(
	struct discover_draft *d, enum kubernetes_role role, const struct conf_node *object)
{
	const struct conf_node *meta = conf_find(object, "metadata");
	/* A namespace's name is a label of everything in it already. */
	if (role != KUBERNETES_NAMESPACE)
		discover_put(d, meta_names[role].name, conf_text_at(meta, "name"));
	put_map(d, conf_find(meta, "labels"), meta_names[role].label, meta_names[role].label_is);
	put_map(d, conf_find(meta, "annotations"), meta_names[role].annotation,
		meta_names[role].annotation_is);
}

void kubernetes_put_member(
	struct discover_draft *d, const char *label, const struct conf_node *n, const char *path)
{
	discover_put(d, label, conf_text_at(n, path));
}

/* ---- pods ---- */

static void put_ready(struct discover_draft *d, const struct conf_node *pod)
{
	char lower[16] = "unknown";
	const struct conf_node *list = conf_node_at(pod, "status.conditions");
	for (uint32_t i = 0; list && i < list->count; i++) {
		struct str is = conf_text_at(list->v[i].value, "status");
		if (!str_eq(conf_text_at(list->v[i].value, "type"), STR("Ready")))
			continue;
		snprintf(lower, sizeof(lower), "%.*s", STR_ARG(is));
		for (char *p = lower; *p; p++)
			*p = (char)tolower((unsigned char)*p);
	}
	discover_put(d, KUBERNETES "pod_ready", str_of(lower));
}

void kubernetes_put_pod(struct discover_draft *d, const struct conf_node *pod)
{
	const struct conf_node *owners = conf_node_at(pod, "metadata.ownerReferences");
	kubernetes_put_member(d, KUBERNETES "pod_ip", pod, "status.podIP");
	put_ready(d, pod);
	kubernetes_put_member(d, KUBERNETES "pod_phase", pod, "status.phase");
	kubernetes_put_member(d, KUBERNETES "pod_node_name", pod, "spec.nodeName");
	kubernetes_put_member(d, KUBERNETES "pod_host_ip", pod, "status.hostIP");
	kubernetes_put_member(d, KUBERNETES "pod_uid", pod, "metadata.uid");
	for (uint32_t i = 0; owners && i < owners->count; i++) {
		const struct conf_node *o = owners->v[i].value;
		if (!str_eq(conf_text_at(o, "controller"), STR("true")))
			continue;
		kubernetes_put_member(d, KUBERNETES "pod_controller_kind", o, "kind");
		kubernetes_put_member(d, KUBERNETES "pod_controller_name", o, "name");
		break;
	}
	kubernetes_put_meta(d, KUBERNETES_POD, pod);
}

/* ---- containers ---- */

static struct str id_of(const struct conf_node *pod, struct str name, bool init)
{
	const struct conf_node *list = conf_node_at(
		pod, init ? "status.initContainerStatuses" : "status.containerStatuses");
	for (uint32_t i = 0; list && i < list->count; i++)
		if (str_eq(conf_text_at(list->v[i].value, "name"), name))
			return conf_text_at(list->v[i].value, "containerID");
	return STR("");
}

void kubernetes_put_container(struct discover_draft *d, const struct conf_node *pod,
	const struct conf_node *container, bool init, const struct conf_node *port)
{
	struct str name = conf_text_at(container, "name");
	discover_put(d, KUBERNETES "pod_container_name", name);
	discover_put(d, KUBERNETES "pod_container_id", id_of(pod, name, init));
	kubernetes_put_member(d, KUBERNETES "pod_container_image", container, "image");
	discover_put(d, KUBERNETES "pod_container_init", init ? STR("true") : STR("false"));
	if (!port)
		return;
	kubernetes_put_member(d, KUBERNETES "pod_container_port_name", port, "name");
	kubernetes_put_member(d, KUBERNETES "pod_container_port_number", port, "containerPort");
	kubernetes_put_member(d, KUBERNETES "pod_container_port_protocol", port, "protocol");
}

enum status kubernetes_each_container(
	const struct conf_node *pod, kubernetes_container_fn *fn, void *ctx, struct err *e)
{
	enum status s = OK;
	for (int init = 0; init < 2; init++) {
		const struct conf_node *list =
			conf_node_at(pod, init ? "spec.initContainers" : "spec.containers");
		for (uint32_t i = 0; s == OK && list && i < list->count; i++)
			s = fn(ctx, list->v[i].value, init, e);
	}
	return s;
}
