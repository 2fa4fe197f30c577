/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pods of this node, from the API server (as the service account of the agent's pod) or from
 * the kubelet's /pods: the same list in JSON. Only the fields below are read. Source:
 * kubernetes.io/docs/reference/using-api/api-concepts.
 *
 * A record is made for each container with an id (init and ephemeral ones too), and one for each
 * pod, which is used for its other processes and for containers too new for the list.
 *
 * watch.c lists once and then receives changes. From the kubelet, and from an API server that
 * allows to list but not to watch, a list is requested when an unknown container is found; a list
 * without news doubles the time until the next. The token is read for each request, since the
 * kubelet replaces it within the hour. If a token was refused, a new one is tried at once.
 */
#include "container/kubernetes.h"
#include "base/hash.h"
#include "container/decode.h"
#include "container/labels.h"
#include "container/peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/"
#define TOKEN_BYTES_MAX 16384
#define PAUSE_MAX_NS (60 * NS_PER_SEC)
#define KEY_MAX (CONTAINER_ID_MAX + 8)
#define POD "__meta_kubernetes_pod"
#define STATIC_UID_LEN 32
#define NODE_LABELS_MAX (CONTAINER_LABELS_MAX / 2u) /* the rest is for the pod's labels */

/* ---- the messages ---- */

enum {
	META_NAME = 1,
	META_NAMESPACE,
	META_UID,
	META_LABEL,
	META_ANNOTATION,
	META_OWNER,
	META_VERSION
};
enum { OWNER_KIND = 1, OWNER_NAME, OWNER_CONTROLLER };
enum { SPEC_NODE = 1, SPEC_CONTAINER, SPEC_INIT, SPEC_EPHEMERAL };
enum { CONTAINER_NAME = 1, CONTAINER_IMAGE, CONTAINER_CONTAINER_ID };
enum { CONDITION_TYPE = 1, CONDITION_STATUS };
enum {
	STATUS_PHASE = 1,
	STATUS_HOST_IP,
	STATUS_POD_IP,
	STATUS_CONDITION,
	STATUS_CONTAINER,
	STATUS_INIT,
	STATUS_EPHEMERAL
};
enum { POD_METADATA = 1, POD_SPEC, POD_STATUS };
enum { LIST_ITEM = 1, LIST_METADATA };
enum { EVENT_TYPE = 1, EVENT_OBJECT };
enum { FAILURE_CODE = 1, FAILURE_MESSAGE };

/* clang-format off */
static const struct pb_member entry_members[] = {
	PB_FIELD("key", 1, STRING), PB_FIELD("value", 2, STRING) };
static const struct pb_desc entry = PB_DESC("entry", entry_members);
static const struct pb_member owner_members[] = {
	PB_FIELD("kind", OWNER_KIND, STRING), PB_FIELD("name", OWNER_NAME, STRING),
	PB_FIELD("controller", OWNER_CONTROLLER, BOOL) };
static const struct pb_desc owner = PB_DESC("OwnerReference", owner_members);
static const struct pb_member meta_members[] = {
	PB_FIELD("name", META_NAME, STRING), PB_FIELD("namespace", META_NAMESPACE, STRING),
	PB_FIELD("uid", META_UID, STRING), PB_MAP_OF("labels", META_LABEL, entry),
	PB_MAP_OF("annotations", META_ANNOTATION, entry),
	PB_MSGS("ownerReferences", META_OWNER, owner),
	PB_FIELD("resourceVersion", META_VERSION, STRING) };
static const struct pb_desc meta = PB_DESC("ObjectMeta", meta_members);
static const struct pb_member container_members[] = {
	PB_FIELD("name", CONTAINER_NAME, STRING), PB_FIELD("image", CONTAINER_IMAGE, STRING),
	PB_FIELD("containerID", CONTAINER_CONTAINER_ID, STRING) };
static const struct pb_desc container = PB_DESC("Container", container_members);
static const struct pb_member spec_members[] = {
	PB_FIELD("nodeName", SPEC_NODE, STRING), PB_MSGS("containers", SPEC_CONTAINER, container),
	PB_MSGS("initContainers", SPEC_INIT, container),
	PB_MSGS("ephemeralContainers", SPEC_EPHEMERAL, container) };
static const struct pb_desc spec = PB_DESC("PodSpec", spec_members);
static const struct pb_member condition_members[] = {
	PB_FIELD("type", CONDITION_TYPE, STRING), PB_FIELD("status", CONDITION_STATUS, STRING) };
static const struct pb_desc condition = PB_DESC("PodCondition", condition_members);
static const struct pb_member status_members[] = {
	PB_FIELD("phase", STATUS_PHASE, STRING), PB_FIELD("hostIP", STATUS_HOST_IP, STRING),
	PB_FIELD("podIP", STATUS_POD_IP, STRING), PB_MSGS("conditions", STATUS_CONDITION, condition),
	PB_MSGS("containerStatuses", STATUS_CONTAINER, container),
	PB_MSGS("initContainerStatuses", STATUS_INIT, container),
	PB_MSGS("ephemeralContainerStatuses", STATUS_EPHEMERAL, container) };
static const struct pb_desc status = PB_DESC("PodStatus", status_members);
static const struct pb_member pod_members[] = {
	PB_MSG("metadata", POD_METADATA, meta), PB_MSG("spec", POD_SPEC, spec),
	PB_MSG("status", POD_STATUS, status) };
static const struct pb_desc pod_desc = PB_DESC("Pod", pod_members);
static const struct pb_member list_members[] = { PB_MSGS("items", LIST_ITEM, pod_desc),
	PB_MSG("metadata", LIST_METADATA, meta) };
static const struct pb_desc list_desc = PB_DESC("PodList", list_members);
static const struct pb_member node_members[] = { PB_MSG("metadata", POD_METADATA, meta) };
static const struct pb_desc node_desc = PB_DESC("Node", node_members);
/* The type of an event determines what its object is, so an event is decoded twice. */
static const struct pb_member type_members[] = { PB_FIELD("type", EVENT_TYPE, STRING) };
static const struct pb_desc type_desc = PB_DESC("WatchEvent", type_members);
static const struct pb_member event_members[] = { PB_MSG("object", EVENT_OBJECT, pod_desc) };
static const struct pb_desc event_desc = PB_DESC("WatchEvent", event_members);
static const struct pb_member failure_members[] = {
	PB_FIELD("code", FAILURE_CODE, INT32), PB_FIELD("message", FAILURE_MESSAGE, STRING) };
static const struct pb_desc failure = PB_DESC("Status", failure_members);
static const struct pb_member failed_members[] = { PB_MSG("object", EVENT_OBJECT, failure) };
static const struct pb_desc failed_desc = PB_DESC("WatchEvent", failed_members);
/* clang-format on */

/* The bytes come from pb_json_decode(): they are well formed. */
static struct str text_of(struct str message, uint32_t number)
{
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == number)
			return f.bytes;
	return STR("");
}

/* ---- labels ---- */

static void put_owner(struct container_labels *l, struct str reference)
{
	struct reader r = reader_over(reference.p, reference.len);
	struct pb_field f;
	bool controls = false;
	while (pb_next(&r, &f))
		controls |= f.number == OWNER_CONTROLLER && f.u64;
	if (!controls)
		return;
	container_put(l, POD "_controller_kind", text_of(reference, OWNER_KIND));
	container_put(l, POD "_controller_name", text_of(reference, OWNER_NAME));
}

/* Adds the name, labels and annotations of a pod ("__meta_kubernetes_pod…") or a node. */
static void put_object(
	struct container_labels *l, struct str metadata, const char *label, const char *annotation)
{
	struct reader r = reader_over(metadata.p, metadata.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number == META_LABEL)
			container_put_entry(l, label, f.bytes);
		else if (f.number == META_ANNOTATION)
			container_put_entry(l, annotation, f.bytes);
		else if (f.number == META_OWNER)
			put_owner(l, f.bytes);
	}
}

/* The uid that a static pod, which the kubelet found in a file, has on its node. In the API it is a
 * mirror pod, owned by the node, with another uid. The first has 32 digits without dashes, so no
 * pod of the API can have it. */
static struct str static_uid(const struct container_labels *l)
{
	struct str uid = container_get(l, POD "_annotation_kubernetes_io_config_mirror");
	bool good = uid.len == STATIC_UID_LEN &&
		    str_eq(container_get(l, POD "_controller_kind"), STR("Node"));
	for (size_t i = 0; good && i < uid.len; i++)
		good = (uid.p[i] >= '0' && uid.p[i] <= '9') || (uid.p[i] >= 'a' && uid.p[i] <= 'f');
	return good ? uid : STR("");
}

/* As parca-agent's podReady(): the condition's status in small letters. */
static struct str readiness(struct str pod_status)
{
	struct reader r = reader_over(pod_status.p, pod_status.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number != STATUS_CONDITION ||
			!str_eq(text_of(f.bytes, CONDITION_TYPE), STR("Ready")))
			continue;
		struct str is = text_of(f.bytes, CONDITION_STATUS);
		return str_eq(is, STR("True"))    ? STR("true")
		       : str_eq(is, STR("False")) ? STR("false")
						  : STR("unknown");
	}
	return STR("unknown");
}

static void put_pod(struct container_labels *l, struct str pod)
{
	struct str metadata = text_of(pod, POD_METADATA), pod_status = text_of(pod, POD_STATUS);
	container_put(l, "__meta_kubernetes_namespace", text_of(metadata, META_NAMESPACE));
	container_put(l, POD "_name", text_of(metadata, META_NAME));
	container_put(l, POD "_uid", text_of(metadata, META_UID));
	container_put(l, POD "_node_name", text_of(text_of(pod, POD_SPEC), SPEC_NODE));
	container_put(l, POD "_ip", text_of(pod_status, STATUS_POD_IP));
	container_put(l, POD "_host_ip", text_of(pod_status, STATUS_HOST_IP));
	container_put(l, POD "_phase", text_of(pod_status, STATUS_PHASE));
	container_put(l, POD "_ready", readiness(pod_status));
	put_object(l, metadata, POD "_label", POD "_annotation");
}

/* ---- containers ---- */

/* "containerd://0123…" */
static struct str id_of(struct str container_status)
{
	struct str id = text_of(container_status, CONTAINER_CONTAINER_ID);
	size_t slash = str_rindex(id, '/');
	id = slash < id.len ? str_sub(id, slash + 1, id.len) : id;
	return id.len < CONTAINER_ID_MAX ? id : STR("");
}

/* The image as the pod's spec names it, not as the engine does. */
static struct str image_of(struct str pod_spec, uint32_t list, struct str name)
{
	struct reader r = reader_over(pod_spec.p, pod_spec.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == list && str_eq(text_of(f.bytes, CONTAINER_NAME), name))
			return text_of(f.bytes, CONTAINER_IMAGE);
	return STR("");
}

/* Gives a container's record. `l` has the pod's labels, and only these again afterwards. */
static void give_container(struct container_labels *l, struct str container_status,
	struct str pod_spec, uint32_t list, const struct container_sink *sink)
{
	uint32_t pods_own = l->count;
	struct str id = id_of(container_status), name = text_of(container_status, CONTAINER_NAME);
	if (!id.len)
		return; /* not started yet */
	struct str image = image_of(pod_spec, list, name);
	if (!image.len)
		image = text_of(container_status, CONTAINER_IMAGE);
	container_put(l, POD "_container_name", name);
	container_put(l, POD "_container_id", id);
	container_put(l, POD "_container_image", image);
	container_put(l, POD "_container_init", list == SPEC_INIT ? STR("true") : STR("false"));
	sink->fn(sink->ctx, id, l);
	l->count = pods_own;
}

static void give_pod(struct container_labels *l, struct str pod, const struct container_sink *sink)
{
	/* clang-format off */
	static const struct { uint32_t status, spec; } lists[] = {
		{ STATUS_CONTAINER, SPEC_CONTAINER },
		{ STATUS_INIT, SPEC_INIT },
		{ STATUS_EPHEMERAL, SPEC_EPHEMERAL },
	};
	/* clang-format on */
	struct str pod_status = text_of(pod, POD_STATUS), pod_spec = text_of(pod, POD_SPEC);
	put_pod(l, pod);
	container_drop_kubelets(l);
	for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
		struct reader r = reader_over(pod_status.p, pod_status.len);
		struct pb_field f;
		while (pb_next(&r, &f))
			if (f.number == lists[i].status)
				give_container(l, f.bytes, pod_spec, lists[i].spec, sink);
	}
	const struct str uids[] = { container_get(l, POD "_uid"), static_uid(l) };
	for (size_t i = 0; i < ARRAY_COUNT(uids); i++) {
		char key[KEY_MAX];
		int len = snprintf(key, sizeof(key), "pod/%.*s", STR_ARG(uids[i]));
		if (uids[i].len && len < KEY_MAX)
			sink->fn(sink->ctx, str_make(key, (size_t)len), l);
	}
}

/* Takes the version; only characters that may be in a URL. */
static void take_version(struct str metadata, char out[CONTAINER_VERSION_MAX])
{
	struct str version = text_of(metadata, META_VERSION);
	bool good = version.len < CONTAINER_VERSION_MAX;
	for (size_t i = 0; good && i < version.len; i++)
		good = (version.p[i] >= '0' && version.p[i] <= '9') ||
		       ((version.p[i] | 32) >= 'a' && (version.p[i] | 32) <= 'z');
	snprintf(out, CONTAINER_VERSION_MAX, "%.*s", good ? (int)version.len : 0, version.p);
}

/* Gives the pods among the fields of a message, each with the node's labels. */
static enum status give_pods(struct str message, uint32_t field,
	const struct container_labels *node, const struct container_sink *sink, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, CONTAINER_PODS_BYTES_MAX);
	struct container_labels *l = malloc(sizeof(*l));
	if (!l)
		return err_set(e, E_NOMEM, "pods");
	struct reader r = reader_over(message.p, message.len);
	struct pb_field f;
	while (pb_next(&r, &f)) {
		if (f.number != field)
			continue;
		arena_clear(&a);
		container_labels_init(l, &a);
		for (uint32_t i = 0; node && i < MIN(node->count, NODE_LABELS_MAX); i++)
			l->v[l->count++] = node->v[i];
		l->cut = node && (node->cut || node->count > NODE_LABELS_MAX);
		give_pod(l, f.bytes, sink);
	}
	free(l);
	return r.failed ? err_set(e, E_INVALID, "pods: damaged") : OK;
}

enum status container_pods_decode(struct str json, const struct container_labels *node,
	const struct container_sink *sink, char out_version[CONTAINER_VERSION_MAX], struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, CONTAINER_PODS_BYTES_MAX);
	enum status s = pb_json_decode(&list_desc, json, PB_IGNORE_UNKNOWN, &bytes, e);
	if (s != OK)
		return err_prefix(e, s, "list of pods");
	if (out_version)
		take_version(text_of(buf_view(&bytes), LIST_METADATA), out_version);
	return give_pods(buf_view(&bytes), LIST_ITEM, node, sink, e);
}

static enum status read_failure(struct str json, struct container_event *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, CONTAINER_ANSWER_BYTES_MAX);
	enum status s = pb_json_decode(&failed_desc, json, PB_IGNORE_UNKNOWN, &bytes, e);
	if (s != OK)
		return err_prefix(e, s, "event");
	struct str object = text_of(buf_view(&bytes), EVENT_OBJECT);
	struct str message = text_of(object, FAILURE_MESSAGE);
	struct reader r = reader_over(object.p, object.len);
	struct pb_field f;
	while (pb_next(&r, &f))
		if (f.number == FAILURE_CODE)
			out->code = (int)MIN(f.u64, (uint64_t)999);
	snprintf(out->message, sizeof(out->message), "%.*s", STR_ARG(message));
	return OK;
}

static enum container_event_kind event_kind(struct str type)
{
	return str_eq(type, STR("ADDED")) || str_eq(type, STR("MODIFIED")) ? CONTAINER_EVENT_POD
	       : str_eq(type, STR("BOOKMARK")) ? CONTAINER_EVENT_BOOKMARK
	       : str_eq(type, STR("ERROR"))    ? CONTAINER_EVENT_ERROR
					       : CONTAINER_EVENT_OTHER;
}

enum status container_event_decode(struct str json, const struct container_labels *node,
	const struct container_sink *sink, struct container_event *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf type, bytes;
	*out = (struct container_event){ 0 };
	buf_init(&type, CONTAINER_ANSWER_BYTES_MAX);
	buf_init(&bytes, CONTAINER_ANSWER_BYTES_MAX);
	enum status s = pb_json_decode(&type_desc, json, PB_IGNORE_UNKNOWN, &type, e);
	if (s != OK)
		return err_prefix(e, s, "event");
	out->kind = event_kind(text_of(buf_view(&type), EVENT_TYPE));
	if (out->kind == CONTAINER_EVENT_ERROR)
		return read_failure(json, out, e);
	s = pb_json_decode(&event_desc, json, PB_IGNORE_UNKNOWN, &bytes, e);
	if (s != OK)
		return err_prefix(e, s, "event");
	struct str pod = text_of(buf_view(&bytes), EVENT_OBJECT);
	take_version(text_of(pod, POD_METADATA), out->version);
	return out->kind == CONTAINER_EVENT_POD
		       ? give_pods(buf_view(&bytes), EVENT_OBJECT, node, sink, e)
		       : OK;
}

enum status container_node_decode(struct str json, struct container_labels *out, struct err *e)
{
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, CONTAINER_ANSWER_BYTES_MAX);
	enum status s = pb_json_decode(&node_desc, json, PB_IGNORE_UNKNOWN, &bytes, e);
	if (s != OK)
		return err_prefix(e, s, "node");
	struct str metadata = text_of(buf_view(&bytes), POD_METADATA);
	container_put(out, "__meta_kubernetes_node_name", text_of(metadata, META_NAME));
	put_object(
		out, metadata, "__meta_kubernetes_node_label", "__meta_kubernetes_node_annotation");
	return OK;
}

/* ---- asking ---- */

static bool given(const char *text)
{
	return text && text[0];
}

void container_kubernetes_init(struct container_kubernetes *k, const struct containers_config *c)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");
	bool in_pod = given(host) && given(port);
	*k = (struct container_kubernetes){ .node = c->node,
		.kubelet = given(c->kubelet_address),
		.token_file = given(c->token_file) ? c->token_file : ACCOUNT "token",
		.token_needed = given(c->token_file) || in_pod,
		.ca_file = given(c->ca_file) ? c->ca_file : ACCOUNT "ca.crt",
		.insecure = c->insecure };
	/* Outside of a pod and without the flag, the host's authorities are used. */
	k->ca_needed = given(c->ca_file) || in_pod || access(k->ca_file, F_OK) == 0;
	char *to = k->peer.address;
	size_t size = sizeof(k->peer.address);
	if (k->kubelet)
		snprintf(to, size, "%s", c->kubelet_address);
	else if (given(c->kubernetes_address))
		snprintf(to, size, "%s", c->kubernetes_address);
	else if (in_pod)
		snprintf(to, size, strchr(host, ':') ? "https://[%s]:%s" : "https://%s:%s", host,
			port);
}

/* The token's hash; never 0, which means none. */
static uint64_t hash_of(struct str token)
{
	return hash64(token.p, token.len) | 1;
}

bool container_kubernetes_has_new_token(struct container_kubernetes *k)
{
	CLEANUP(buf_deinit) struct buf token;
	buf_init(&token, TOKEN_BYTES_MAX);
	if (k->peer.code != 401 || os_read_own(k->token_file, &token, NULL, NULL) != OK)
		return false;
	bool is_new = hash_of(str_trim(buf_view(&token))) != k->token_hash;
	explicit_bzero(token.data, token.len);
	return is_new;
}

/* Reads the token and sets it for the request. */
static enum status present_token(struct container_kubernetes *k, struct err *e)
{
	CLEANUP(buf_deinit) struct buf token;
	buf_init(&token, TOKEN_BYTES_MAX);
	struct err why = { 0 };
	k->token_hash = 0;
	enum status s = os_read_own(k->token_file, &token, NULL, &why);
	if (s != OK) /* whatever the error, the token may be there the next time */
		return k->token_needed ? err_set(e, E_UNAVAILABLE, "token: %s", err_text(&why, s))
				       : OK;
	struct str text = str_trim(buf_view(&token));
	k->token_hash = hash_of(text);
	char *header = malloc(text.len + 16);
	if (!header)
		return err_set(e, E_NOMEM, "token");
	snprintf(header, text.len + 16, "Bearer %.*s", STR_ARG(text));
	s = fetch_header(k->peer.http, "authorization", header, e);
	explicit_bzero(header, text.len + 16);
	explicit_bzero(token.data, token.len);
	free(header);
	return s;
}

enum status container_kubernetes_ready(struct container_kubernetes *k, struct err *e)
{
	if (k->insecure)
		fetch_trust(k->peer.http, NULL, true);
	else if (k->ca_needed)
		fetch_trust(k->peer.http, k->ca_file, false);
	fetch_limit(k->peer.http, CONTAINER_PODS_BYTES_MAX);
	return present_token(k, e);
}

enum status container_kubernetes_node(struct container_kubernetes *k, struct container_labels *out)
{
	CLEANUP(buf_deinit) struct buf json;
	char path[320];
	enum status s = E_DENIED; /* the kubelet has no nodes */
	buf_init(&json, CONTAINER_ANSWER_BYTES_MAX);
	snprintf(path, sizeof(path), "/api/v1/nodes/%s", k->node);
	if (!k->kubelet)
		s = container_peer_get(&k->peer, path, CONTAINER_PODS_BYTES_MAX, &json, NULL);
	if (s == OK || s == E_NOTFOUND)
		k->node_is_unknown = s == E_NOTFOUND;
	if (s == OK)
		s = container_node_decode(buf_view(&json), out, NULL);
	if (s != OK)
		container_put(out, "__meta_kubernetes_node_name", str_of(k->node));
	return s;
}

enum status container_kubernetes_pods(struct container_kubernetes *k, bool newest,
	const struct container_labels *node, const struct container_sink *sink,
	char out_version[CONTAINER_VERSION_MAX], struct err *e)
{
	CLEANUP(buf_deinit) struct buf json;
	char path[400] = "/pods";
	buf_init(&json, CONTAINER_PODS_BYTES_MAX);
	if (!k->kubelet)
		snprintf(path, sizeof(path), "/api/v1/pods?fieldSelector=spec.nodeName%%3D%s%s",
			k->node, newest ? "" : "&resourceVersion=0");
	enum status s = container_peer_get(&k->peer, path, CONTAINER_PODS_BYTES_MAX, &json, e);
	return s == OK ? container_pods_decode(buf_view(&json), node, sink, out_version, e) : s;
}

static enum status ask_pods(
	struct container_kubernetes *k, const struct container_sink *sink, struct err *e)
{
	CLEANUP(arena_deinit) struct arena a = { 0 };
	struct container_labels *node = malloc(sizeof(*node));
	if (!node)
		return err_set(e, E_NOMEM, "list of pods");
	arena_init(&a, CONTAINER_ANSWER_BYTES_MAX);
	container_labels_init(node, &a);
	enum status s = container_kubernetes_ready(k, e);
	if (s == OK) {
		(void)!container_kubernetes_node(k, node);
		s = container_kubernetes_pods(k, false, node, sink, NULL, e);
	}
	free(node);
	return s;
}

enum status container_kubernetes_list(
	struct container_kubernetes *k, const struct container_sink *sink, struct err *e)
{
	int64_t now = clock_monotonic_ns();
	if (container_kubernetes_has_new_token(k))
		k->pause_ns = k->peer.rest_until_ns = k->peer.rest_ns = 0;
	if (!k->peer.address[0] || (k->listed_ns && now < k->listed_ns + k->pause_ns) ||
		!container_peer_ready(&k->peer, now))
		return err_set(e, E_UNAVAILABLE, "not now");
	k->pause_ns = MIN(MAX(2 * k->pause_ns, CONTAINER_KUBERNETES_PAUSE_MIN_NS), PAUSE_MAX_NS);
	struct err why = { 0 };
	enum status s = ask_pods(k, sink, &why);
	k->listed_ns = clock_monotonic_ns();
	container_peer_note(&k->peer, s, &why);
	return s == OK ? OK : err_set(e, s, "%s", why.text);
}
