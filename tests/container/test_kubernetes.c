/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"
#include "container/decode.h"
#include "container/kubernetes.h"
#include "container/labels.h"

#include <stdio.h>
#include <stdlib.h>

static char keys[1024];
static char texts[8][8192];
static int count;

static void take(void *ctx, struct str key, const struct container_labels *l)
{
	(void)ctx;
	size_t at = strlen(keys);
	snprintf(keys + at, sizeof(keys) - at, "%.*s ", STR_ARG(key));
	CHECK(count < 8);
	snprintf(texts[count++], sizeof(texts[0]), "%s", labels_text(l->v, l->count));
}

static const struct container_sink sink = { take, NULL };

static int named;

static void take_named(void *ctx, struct str key, const struct container_labels *l)
{
	(void)ctx;
	bool pod = str_starts(key, STR("pod/"));
	CHECK(l->cut && l->count <= CONTAINER_LABELS_MAX);
	CHECK_STR(container_get(l, "__meta_kubernetes_pod_name"), "p");
	CHECK_STR(container_get(l, "__meta_kubernetes_pod_container_name"), pod ? "" : "app");
	CHECK_STR(container_get(l, "__meta_kubernetes_pod_label_l0"), "");
	CHECK_STR(container_get(l, "__meta_kubernetes_pod_labelpresent_l0"), "true");
	named++;
}

static const struct container_sink named_sink = { take_named, NULL };

#define POD_TEXT                                                                            \
	"kubernetes_namespace=shop\nkubernetes_pod_name=web-6f-x1\nkubernetes_pod_uid=" UID \
	"\nkubernetes_pod_node_name=node-1\nkubernetes_pod_ip=10.1.0.7\n"                   \
	"kubernetes_pod_host_ip=10.0.0.1\nkubernetes_pod_phase=Running\n"                   \
	"kubernetes_pod_ready=true\nkubernetes_pod_label_app=web\n"                         \
	"kubernetes_pod_labelpresent_app=true\nkubernetes_pod_label_pod_template_hash=6f\n" \
	"kubernetes_pod_labelpresent_pod_template_hash=true\n"                              \
	"kubernetes_pod_annotation_example_com_team=x\n"                                    \
	"kubernetes_pod_annotationpresent_example_com_team=true\n"                          \
	"kubernetes_pod_controller_kind=ReplicaSet\nkubernetes_pod_controller_name=web-6f\n"
#define CONTAINER_TEXT(name, id, image, init)                                     \
	"kubernetes_pod_container_name=" name "\nkubernetes_pod_container_id=" id \
	"\nkubernetes_pod_container_image=" image "\nkubernetes_pod_container_init=" init "\n"

static void reads_pods(void **state)
{
	(void)state;
	struct err e;
	char version[CONTAINER_VERSION_MAX];
	keys[0] = 0;
	count = 0;
	CHECK_OK(container_pods_decode(STR(PODS), NULL, &sink, version, &e), &e);
	CHECK_STR(str_of(version), "77");
	CHECK_STR(str_of(keys), ID " " INIT_ID " " DEBUG_ID " pod/" UID " pod/u2 ");
	CHECK_STR(str_of(texts[0]), POD_TEXT CONTAINER_TEXT("app", ID, "shop/web:2", "false"));
	CHECK_STR(str_of(texts[1]),
		POD_TEXT CONTAINER_TEXT("migrate", INIT_ID, "shop/migrate:1", "true"));
	CHECK_STR(str_of(texts[2]),
		POD_TEXT CONTAINER_TEXT("debugger", DEBUG_ID, "busybox", "false"));
	CHECK_STR(str_of(texts[3]), POD_TEXT);
	/* One that has not begun: the pod alone. */
	CHECK(strstr(texts[4], "kubernetes_pod_ready=unknown\n"));
	CHECK(strstr(texts[4], "kubernetes_pod_phase=Pending\n"));
	CHECK(!strstr(texts[4], "container"));
}

static void adds_the_node(void **state)
{
	(void)state;
	static struct container_labels node;
	CLEANUP(arena_deinit) struct arena a;
	struct err e;
	arena_init(&a, 65536);
	container_labels_init(&node, &a);
	CHECK_OK(container_node_decode(STR(NODE), &node, &e), &e);
	static const char want[] = "kubernetes_node_name=node-1\n"
				   "kubernetes_node_label_topology_kubernetes_io_zone=eu-1\n"
				   "kubernetes_node_labelpresent_topology_kubernetes_io_zone=true\n"
				   "kubernetes_node_annotation_a=b\n"
				   "kubernetes_node_annotationpresent_a=true\n";
	CHECK_STR(str_of(labels_text(node.v, node.count)), want);
	keys[0] = 0;
	count = 0;
	CHECK_OK(container_pods_decode(STR(PODS), &node, &sink, NULL, &e), &e);
	for (int i = 0; i < count; i++)
		CHECK(strncmp(texts[i], want, sizeof(want) - 1) == 0);
}

/* A pod that the kubelet found in a file, as its API and its own list have it: what it runs goes by
 * the kubelet's uid. */
#define STATIC_UID "b31445b43eab7944d0bca4748a83aa36"
#define STATIC(uid, mirror) OWNED(uid, mirror, "Node")
#define OWNED(uid, mirror, owner)                                                                 \
	"{\"items\":[{\"metadata\":{\"name\":\"fixed-node-1\",\"namespace\":\"shop\",\"uid\":"    \
	"\"" uid "\",\"annotations\":{\"kubernetes.io/config.hash\":\"" STATIC_UID "\"," mirror   \
	"\"kubernetes.io/config.seen\":\"2026-11-22T15:00:25.002496552Z\","                       \
	"\"kubernetes.io/config.source\":\"file\"},\"ownerReferences\":[{\"kind\":\"" owner "\"," \
	"\"name\":\"node-1\",\"controller\":true}]},\"status\":{\"containerStatuses\":[{"         \
	"\"name\":\"s\",\"containerID\":\"cri-o://" ID "\"}]}}]}"
#define MIRROR(uid) "\"kubernetes.io/config.mirror\":\"" uid "\","

static void knows_static_pods(void **state)
{
	(void)state;
	static const struct {
		const char *name, *json, *keys;
	} cases[] = {
		{ "the API", STATIC(UID, MIRROR(STATIC_UID)),
			ID " pod/" UID " pod/" STATIC_UID " " },
		{ "the kubelet", STATIC(STATIC_UID, ""), ID " pod/" STATIC_UID " " },
		{ "a pod of somebody's that says so", OWNED(UID, MIRROR(STATIC_UID), "Job"),
			ID " pod/" UID " " },
		{ "another's uid", STATIC(UID, MIRROR("8cb56e4c-0000-4abc-9def-001122334455")),
			ID " pod/" UID " " },
		{ "32 others", STATIC(UID, MIRROR("8cb56e4c-0000-4abc-9def-00112233")),
			ID " pod/" UID " " },
	};
	FOR_EACH_CASE (c, cases) {
		struct err e;
		keys[0] = 0;
		count = 0;
		CHECK_OK(container_pods_decode(str_of(c->json), NULL, &sink, NULL, &e), &e);
		CHECK_CASE(c, strcmp(keys, c->keys) == 0);
		CHECK_CASE(c, strstr(texts[0], "pod_controller_kind="));
		CHECK_CASE(c, strstr(texts[0], "kubernetes_io_config_source=file\n"));
	}
}

/* More labels of the node's than fit, and more of the pod's: its name is told. */
static void is_named_among_many_labels(void **state)
{
	(void)state;
	static struct container_labels node;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf json;
	struct err e;
	arena_init(&a, 1 << 20);
	buf_init(&json, 1 << 20);
	container_labels_init(&node, &a);
	for (int i = 0; i < CONTAINER_LABELS_MAX; i++)
		container_put(&node, "__meta_kubernetes_node_x", STR("y"));
	buf_cstr(&json, "{\"items\":[{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"labels\":{");
	for (int i = 0; i < CONTAINER_LABELS_MAX; i++)
		buf_printf(&json, "%s\"l%d\":\"\"", i ? "," : "", i);
	buf_cstr(&json, "}},\"status\":{\"containerStatuses\":[{\"name\":\"app\",\"containerID\":"
			"\"containerd://" ID "\"}]}}]}");
	CHECK_OK(container_pods_decode(buf_view(&json), &node, &named_sink, NULL, &e), &e);
	CHECK(named == 2); /* container and pod */
}

static void refuses_others(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "[]", "{\"items\":7}", "{\"items\":[7]}",
		"{\"items\":[{\"metadata\":\"x\"}]}", "{\"items\":[", "<html>",
		"{\"items\":[{\"status\":{\"containerStatuses\":[{\"containerID\":7}]}}]}" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		struct err e = { 0 };
		count = 0;
		CHECK(container_pods_decode(str_of(bad[i]), NULL, &sink, NULL, &e) == E_INVALID);
		CHECK(strstr(e.text, "list of pods") && count == 0);
	}
	static struct container_labels node;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 65536);
	container_labels_init(&node, &a);
	CHECK(container_node_decode(STR("[]"), &node, NULL) == E_INVALID);
	/* A Status, as the API answers to who may not: no pods. */
	count = 0;
	CHECK(container_pods_decode(STR("{\"kind\":\"Status\",\"status\":\"Failure\"}"), NULL,
		      &sink, NULL, NULL) == OK);
	CHECK(count == 0);
}

static void reads_events(void **state)
{
	(void)state;
#define OBJECT(type, object) "{\"type\":\"" type "\",\"object\":" object "}"
#define SMALL_POD                                                                                  \
	"{\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"uid\":\"u1\",\"resourceVersion\":\"9\"}" \
	"}"
	static const struct {
		const char *name, *json;
		enum container_event_kind kind;
		const char *version, *keys, *message;
		int code;
	} cases[] = {
		{ "new", OBJECT("ADDED", SMALL_POD), CONTAINER_EVENT_POD, "9", "pod/u1 ", "", 0 },
		{ "other", OBJECT("MODIFIED", SMALL_POD), CONTAINER_EVENT_POD, "9", "pod/u1 ", "",
			0 },
		{ "the object first", "{\"object\":" SMALL_POD ",\"type\":\"ADDED\"}",
			CONTAINER_EVENT_POD, "9", "pod/u1 ", "", 0 },
		{ "gone", OBJECT("DELETED", SMALL_POD), CONTAINER_EVENT_OTHER, "9", "", "", 0 },
		{ "bookmark",
			OBJECT("BOOKMARK", "{\"kind\":\"Pod\",\"metadata\":{\"resourceVersion\":"
					   "\"12\",\"creationTimestamp\":null},\"spec\":{"
					   "\"containers\":null},\"status\":{}}"),
			CONTAINER_EVENT_BOOKMARK, "12", "", "", 0 },
		{ "error",
			OBJECT("ERROR",
				"{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{},"
				"\"status\":\"Failure\",\"message\":\"too old\",\"reason\":"
				"\"Expired\",\"code\":410}"),
			CONTAINER_EVENT_ERROR, "", "", "too old", 410 },
		{ "a version for no URL",
			OBJECT("BOOKMARK", "{\"metadata\":{\"resourceVersion\":\"1&x=2\"}}"),
			CONTAINER_EVENT_BOOKMARK, "", "", "", 0 },
	};
	FOR_EACH_CASE (c, cases) {
		struct container_event event;
		struct err e;
		keys[0] = 0;
		count = 0;
		CHECK_OK(container_event_decode(str_of(c->json), NULL, &sink, &event, &e), &e);
		CHECK_CASE(c, event.kind == c->kind && event.code == c->code);
		CHECK_CASE(c, strcmp(event.version, c->version) == 0);
		CHECK_CASE(c, strcmp(event.message, c->message) == 0);
		CHECK_CASE(c, strcmp(keys, c->keys) == 0);
	}
	static const char *const bad[] = { "", "[]", OBJECT("ADDED", "7"), "{\"type\":7}",
		OBJECT("ERROR", "[]") };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		struct container_event event;
		struct err e = { 0 };
		CHECK(container_event_decode(str_of(bad[i]), NULL, &sink, &event, &e) == E_INVALID);
		CHECK(strstr(e.text, "event"));
	}
}

static void finds_the_server(void **state)
{
	(void)state;
	struct container_kubernetes k;
	struct containers_config c = { .node = "n" };
	unsetenv("KUBERNETES_SERVICE_HOST");
	container_kubernetes_init(&k, &c);
	CHECK_STR(str_of(k.peer.address), "");
	setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	container_kubernetes_init(&k, &c);
	CHECK_STR(str_of(k.peer.address), "https://10.96.0.1:443");
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	container_kubernetes_init(&k, &c);
	CHECK_STR(str_of(k.peer.address), "https://[fd00::1]:443");
	c.kubernetes_address = "https://k:6443";
	container_kubernetes_init(&k, &c);
	CHECK_STR(str_of(k.peer.address), "https://k:6443");
	c.kubelet_address = "https://127.0.0.1:10250";
	container_kubernetes_init(&k, &c);
	CHECK(k.kubelet);
	CHECK_STR(str_of(k.peer.address), "https://127.0.0.1:10250");
	CHECK(strstr(k.token_file, "serviceaccount/token"));
	/* A pod trusts its own authorities alone; so does whoever is told of some. */
	CHECK(k.token_needed && k.ca_needed);
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("KUBERNETES_SERVICE_PORT");
	container_kubernetes_init(&k, &c);
	CHECK(!k.token_needed && !k.ca_needed);
	c.ca_file = "/none/ca.crt";
	c.token_file = "/none/token";
	container_kubernetes_init(&k, &c);
	CHECK(k.token_needed && k.ca_needed);
}

TEST_MAIN(cmocka_unit_test(reads_pods), cmocka_unit_test(adds_the_node),
	cmocka_unit_test(reads_events), cmocka_unit_test(refuses_others),
	cmocka_unit_test(knows_static_pods), cmocka_unit_test(is_named_among_many_labels),
	cmocka_unit_test(finds_the_server))
