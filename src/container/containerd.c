/* SPDX-License-Identifier: Apache-2.0 */
/*
 * containerd's own API: containers by namespace and id. Source: containerd's
 * api/services/containers/v1/containers.proto and namespaces/v1/namespace.proto; the namespace goes
 * in the header "containerd-namespace".
 *
 * parca-agent takes the namespace for the pod's name; here that is done only without a label of the
 * kubelet.
 */
#include "container/decode.h"
#include "container/engine.h"
#include "container/labels.h"
#include "container/peer.h"

#include <stdio.h>

#define SPACES_MAX 16 /* namespaces searched for a container whose namespace is unknown */
#define SERVICES "/containerd.services."

enum { GET_CONTAINER = 1, CONTAINER_ID = 1, CONTAINER_LABEL = 2, CONTAINER_IMAGE = 3 };
enum { LIST_NAMESPACE = 1, NAMESPACE_NAME = 1 };

static bool read_container(struct str bytes, struct container_labels *out)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number == CONTAINER_ID) {
			container_put(out, "__meta_containerd_container_id", f.bytes);
		} else if (f.number == CONTAINER_LABEL) {
			container_put_entry(out, "__meta_containerd_container_label", f.bytes);
		} else if (f.number == CONTAINER_IMAGE) {
			container_put(out, "__meta_containerd_container_image", f.bytes);
		}
	}
	return !r.failed;
}

enum status container_containerd_decode(
	struct str bytes, struct str space, struct container_labels *out, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	struct pb_field f;
	bool good = true;
	while (good && pb_next(&r, &f))
		if (f.number == GET_CONTAINER)
			good = read_container(f.bytes, out);
	if (!good || r.failed || !container_get(out, "__meta_containerd_container_id").len)
		return err_set(e, E_INVALID, "the answer names no container");
	struct str pod =
		container_get(out, "__meta_containerd_container_label_io_kubernetes_pod_name");
	/* nerdctl names containers by a label; other containers have only an id. */
	struct str name = container_get(out, "__meta_containerd_container_label_nerdctl_name");
	container_put(out, "__meta_containerd_container_name",
		name.len ? name : container_get(out, "__meta_containerd_container_id"));
	container_put(out, "__meta_containerd_namespace", space);
	container_put(out, "__meta_containerd_pod_name", pod.len ? pod : space);
	return OK;
}

enum status container_spaces_decode(struct str bytes, uint32_t n, struct str *out, struct err *e)
{
	struct reader r = reader_over(bytes.p, bytes.len), space;
	struct pb_field f, name;
	struct str found = STR("");
	for (uint32_t i = 0; pb_next(&r, &f);) {
		if (f.number != LIST_NAMESPACE || i++ != n)
			continue;
		space = pb_message(&f);
		while (pb_next(&space, &name))
			if (name.number == NAMESPACE_NAME)
				found = name.bytes;
		if (space.failed)
			return err_set(e, E_INVALID, "the list of namespaces is damaged");
	}
	if (r.failed)
		return err_set(e, E_INVALID, "the list of namespaces is damaged");
	*out = found;
	return OK;
}

static enum status ask_in(struct container_peer *p, struct str space, const char *id,
	struct container_labels *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf request, answer;
	char name[CONTAINER_ID_MAX];
	snprintf(name, sizeof(name), "%.*s", STR_ARG(space));
	buf_init(&request, 1024);
	buf_init(&answer, CONTAINER_ANSWER_BYTES_MAX);
	pb_put_str(&request, 1, str_of(id));
	enum status s = net_client_header(p->grpc, "containerd-namespace", name, e);
	if (s == OK)
		s = container_peer_rpc(
			p, SERVICES "containers.v1.Containers/Get", buf_view(&request), &answer, e);
	if (s == OK)
		s = container_containerd_decode(buf_view(&answer), space, out, e);
	if (s == OK && !str_eq(container_get(out, "__meta_containerd_container_id"), str_of(id)))
		return err_set(e, E_INVALID, "the answer is of another container");
	return s;
}

enum status container_containerd_ask(struct container_peer *p, const struct container_query *q,
	struct container_labels *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf spaces;
	buf_init(&spaces, CONTAINER_ANSWER_BYTES_MAX);
	if (q->is_pod)
		return err_set(e, E_NOTFOUND, "it has no pods");
	enum status s = net_client_header(p->grpc, "containerd-namespace", NULL, e);
	if (s == OK)
		s = container_peer_rpc(
			p, SERVICES "namespaces.v1.Namespaces/List", STR(""), &spaces, e);
	for (uint32_t n = 0; s == OK && n < SPACES_MAX; n++) {
		struct str space;
		s = container_spaces_decode(buf_view(&spaces), n, &space, e);
		if (s != OK || !space.len)
			break;
		if (q->kind == PROCFS_CONTAINER_MAYBE && !str_eq(space, str_of(q->space)))
			continue;
		enum status found = ask_in(p, space, q->id, out, e);
		if (found != E_NOTFOUND)
			return found;
	}
	return s == OK ? err_set(e, E_NOTFOUND, "in none of its namespaces") : s;
}
