/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CRI, the interface of the kubelet to container engines: containerd, CRI-O, cri-dockerd. It gives
 * what it got from the kubelet: a pod's name, namespace, uid, labels and annotations, and a
 * container's name and image. It does not say whether a container is an init container.
 * Source: kubernetes/cri-api, pkg/apis/runtime/v1/api.proto.
 */
#include "container/decode.h"
#include "container/engine.h"
#include "container/labels.h"
#include "container/peer.h"

#define SERVICE "/runtime.v1.RuntimeService/"

enum { LIST_ITEM = 1, STATUS = 1, FILTER = 1, FILTER_ID = 1 };
enum {
	CONTAINER_ID = 1,
	CONTAINER_SANDBOX = 2,
	CONTAINER_METADATA = 3,
	CONTAINER_IMAGE = 4,
};
enum { STATUS_IMAGE = 8 };
enum { METADATA_NAME = 1, IMAGE_NAME = 1 };
enum { SANDBOX_ID = 1, SANDBOX_METADATA = 2, SANDBOX_LABEL = 5, SANDBOX_ANNOTATION = 6 };
enum { SANDBOX_METADATA_NAME = 1, SANDBOX_METADATA_UID = 2, SANDBOX_METADATA_NAMESPACE = 3 };
enum { SANDBOX_NETWORK = 5, NETWORK_IP = 1 };

/* The text of one field of a message; "" when absent or damaged. */
static struct str text_of(struct str message, uint32_t number)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	struct str found = STR("");
	while (pb_next(&r, &f))
		if (f.number == number && f.wire == PB_BYTES)
			found = f.bytes;
	return r.failed ? STR("") : found;
}

/* The item of a list whose field 1 is this id; "": none. */
static enum status find_item(struct str bytes, struct str id, struct str *out, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	struct str found = STR("");
	while (pb_next(&r, &f))
		if (f.number == LIST_ITEM && f.wire == PB_BYTES &&
			str_eq(text_of(f.bytes, CONTAINER_ID), id))
			found = f.bytes;
	if (r.failed)
		return err_set(e, E_INVALID, "the list is damaged");
	if (!found.len)
		return err_set(e, E_NOTFOUND, "it is not in the list");
	*out = found;
	return OK;
}

enum status container_cri_container_decode(
	struct str bytes, struct str id, struct container_cri *out, struct err *e)
{
	struct str item;
	enum status s = find_item(bytes, id, &item, e);
	if (s != OK)
		return s;
	*out = (struct container_cri){
		.name = text_of(text_of(item, CONTAINER_METADATA), METADATA_NAME),
		.image = text_of(text_of(item, CONTAINER_IMAGE), IMAGE_NAME),
		.sandbox = text_of(item, CONTAINER_SANDBOX),
	};
	return OK;
}

enum status container_cri_image_decode(struct str bytes, struct container_cri *out, struct err *e)
{
	struct str image = text_of(text_of(text_of(bytes, STATUS), STATUS_IMAGE), IMAGE_NAME);
	if (!image.len)
		return err_set(e, E_NOTFOUND, "no image");
	out->image = image;
	return OK;
}

enum status container_cri_sandbox_decode(
	struct str bytes, struct str id, struct container_labels *out, struct err *e)
{
	struct str item;
	enum status s = find_item(bytes, id, &item, e);
	if (s != OK)
		return s;
	struct str metadata = text_of(item, SANDBOX_METADATA);
	struct str space = text_of(metadata, SANDBOX_METADATA_NAMESPACE);
	container_put(out, "__meta_kubernetes_pod_name", text_of(metadata, SANDBOX_METADATA_NAME));
	container_put(out, "__meta_kubernetes_pod_uid", text_of(metadata, SANDBOX_METADATA_UID));
	container_put(out, "__meta_kubernetes_namespace", space);
	struct reader r = reader_over(item.p, item.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number == SANDBOX_LABEL)
			container_put_entry(out, "__meta_kubernetes_pod_label", f.bytes);
		else if (f.number == SANDBOX_ANNOTATION)
			container_put_entry(out, "__meta_kubernetes_pod_annotation", f.bytes);
	}
	container_drop_kubelets(out);
	return r.failed ? err_set(e, E_INVALID, "the pod is damaged") : OK;
}

enum status container_cri_address_decode(
	struct str bytes, struct container_labels *out, struct err *e)
{
	struct str status = text_of(bytes, STATUS);
	if (!status.len)
		return err_set(e, E_INVALID, "no status");
	container_put(out, "__meta_kubernetes_pod_ip",
		text_of(text_of(status, SANDBOX_NETWORK), NETWORK_IP));
	return OK;
}

/* ---- asking ---- */

/* Sends a request with the id in a filter (for lists), or as field 1. */
static enum status call(struct container_peer *p, const char *method, struct str id, bool filter,
	struct buf *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf request;
	buf_init(&request, 1024);
	size_t begun = filter ? pb_begin(&request, FILTER) : 0;
	pb_put_str(&request, FILTER_ID, id);
	if (filter)
		pb_end(&request, begun);
	buf_init(out, CONTAINER_ANSWER_BYTES_MAX);
	return container_peer_rpc(p, method, buf_view(&request), out, e);
}

static enum status ask_pod(
	struct container_peer *p, struct str id, struct container_labels *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf pods = { 0 }, status = { 0 };
	enum status s = call(p, SERVICE "ListPodSandbox", id, true, &pods, e);
	if (s == OK)
		s = container_cri_sandbox_decode(buf_view(&pods), id, out, e);
	/* Pods in the host's network have no address of their own, which is no error. */
	if (s == OK && call(p, SERVICE "PodSandboxStatus", id, false, &status, NULL) == OK)
		(void)!container_cri_address_decode(buf_view(&status), out, NULL);
	return s;
}

enum status container_cri_ask(struct container_peer *p, const char *node,
	const struct container_query *q, struct container_labels *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf list = { 0 }, status = { 0 };
	struct container_cri c = { 0 };
	struct str id = str_of(q->id);
	if (q->kind != PROCFS_CONTAINER || q->is_pod)
		return err_set(e, E_NOTFOUND, "not one of its containers");
	enum status s = call(p, SERVICE "ListContainers", id, true, &list, e);
	if (s == OK)
		s = container_cri_container_decode(buf_view(&list), id, &c, e);
	if (s == E_NOTFOUND)
		return ask_pod(p, id, out, e); /* the id is of the pod's own container ("pause") */
	if (s != OK)
		return s;
	/* The list has the image's digest, the status its name as in the pod. */
	if (call(p, SERVICE "ContainerStatus", id, false, &status, NULL) == OK)
		(void)!container_cri_image_decode(buf_view(&status), &c, NULL);
	s = ask_pod(p, c.sandbox, out, e);
	if (s != OK)
		return s;
	container_put(out, "__meta_kubernetes_pod_container_name", c.name);
	container_put(out, "__meta_kubernetes_pod_container_id", id);
	container_put(out, "__meta_kubernetes_pod_container_image", c.image);
	container_put(out, "__meta_kubernetes_pod_node_name", str_of(node));
	container_put(out, "__meta_kubernetes_node_name", str_of(node));
	return OK;
}
