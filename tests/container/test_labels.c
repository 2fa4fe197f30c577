/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"
#include "container/labels.h"

#include <stdio.h>

static struct container_labels l;

static void keeps_what_fits(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 8 << 20);
	container_labels_init(&l, &a);
	container_put(&l, "__meta_a", STR("1"));
	container_put(&l, "__meta_none", STR(""));
	container_put_pair(&l, "__meta_x_label", STR("app.kubernetes.io/na-me"), STR("v"));
	container_put_pair(&l, "__meta_x_label", STR("bare"), STR(""));
	CHECK_STR(str_of(labels_text(l.v, l.count)),
		"a=1\nx_label_app_kubernetes_io_na_me=v\n"
		"x_labelpresent_app_kubernetes_io_na_me=true\nx_labelpresent_bare=true\n");
	CHECK_STR(container_get(&l, "__meta_a"), "1");
	CHECK(container_get(&l, "__meta_b").len == 0 && !l.cut);
	char *large = calloc(1, CONTAINER_VALUE_BYTES_MAX + 2);
	memset(large, 'x', CONTAINER_VALUE_BYTES_MAX + 1);
	container_put(&l, "__meta_large", str_make(large, CONTAINER_VALUE_BYTES_MAX));
	CHECK(l.count == 5 && !l.cut);
	container_put(&l, "__meta_large", str_make(large, CONTAINER_VALUE_BYTES_MAX + 1));
	CHECK(l.count == 5 && l.cut);
	l.cut = false;
	container_put_pair(&l, "__meta_x_label", str_make(large, 600), STR("v"));
	CHECK(l.count == 5 && l.cut);
	l.cut = false;
	for (int i = 0; i < CONTAINER_LABELS_MAX; i++)
		container_put(&l, "__meta_many", STR("x"));
	CHECK(l.count == CONTAINER_LABELS_MAX && l.cut);
	free(large);
}

/* However many labels somebody gave it: its name is told. */
static void leaves_room_for_the_name(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	container_labels_init(&l, &a);
	for (int i = 0; i < 2 * CONTAINER_LABELS_MAX; i++)
		container_put_pair(&l, "__meta_x_label", STR("k"), STR("v"));
	CHECK(l.cut && l.count < CONTAINER_LABELS_MAX);
	container_put(&l, "__meta_name", STR("web"));
	CHECK_STR(container_get(&l, "__meta_name"), "web");
}

static void put_pods(const char *kind, const char *key, const char *value)
{
	char what[64];
	snprintf(what, sizeof(what), "__meta_kubernetes_pod_%s", kind);
	container_put_pair(&l, what, str_of(key), str_of(value));
}

static const char *without_kubelets(struct arena *a, const char *source)
{
	container_labels_init(&l, a);
	container_put(&l, "__meta_kubernetes_pod_name", STR("web"));
	put_pods("label", "io.kubernetes.pod.name", "web");
	put_pods("label", "io.kubernetes.pod.namespace", "shop");
	put_pods("label", "io.kubernetes.pod.uid", UID);
	put_pods("label", "io.kubernetes.container.name", "POD");
	put_pods("label", "io.kubernetes.pod.name.x", "its own");
	put_pods("annotation", "kubernetes.io/config.seen", "now");
	put_pods("annotation", "kubernetes.io/config.source", source);
	container_drop_kubelets(&l);
	return labels_text(l.v, l.count);
}

static void drops_what_the_kubelet_adds(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 65536);
#define OWN                                                                       \
	"kubernetes_pod_name=web\nkubernetes_pod_label_io_kubernetes_pod_name_x=" \
	"its own\nkubernetes_pod_labelpresent_io_kubernetes_pod_name_x=true\n"
	CHECK_STR(str_of(without_kubelets(&a, "api")), OWN);
	CHECK_STR(str_of(without_kubelets(&a, "file")),
		OWN "kubernetes_pod_annotation_kubernetes_io_config_seen=now\n"
		    "kubernetes_pod_annotationpresent_kubernetes_io_config_seen=true\n"
		    "kubernetes_pod_annotation_kubernetes_io_config_source=file\n"
		    "kubernetes_pod_annotationpresent_kubernetes_io_config_source=true\n");
}

static void survives_a_full_arena(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 64);
	container_labels_init(&l, &a);
	for (int i = 0; i < 20; i++)
		container_put(&l, "__meta_text", STR("some text"));
	CHECK(l.cut && l.count < 5);
}

static void reads_entries_of_maps(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf b;
	arena_init(&a, 4096);
	buf_init(&b, 4096);
	container_labels_init(&l, &a);
	pb_put_str(&b, 2, STR("value first"));
	pb_put_str(&b, 1, STR("k"));
	container_put_entry(&l, "__meta_label", buf_view(&b));
	container_put_entry(&l, "__meta_label", str_sub(buf_view(&b), 0, b.len - 1)); /* torn */
	container_put_entry(&l, "__meta_label", STR(""));
	CHECK_STR(str_of(labels_text(l.v, l.count)), "label_k=value first\nlabelpresent_k=true\n");
}

TEST_MAIN(cmocka_unit_test(keeps_what_fits), cmocka_unit_test(survives_a_full_arena),
	cmocka_unit_test(leaves_room_for_the_name), cmocka_unit_test(drops_what_the_kubelet_adds),
	cmocka_unit_test(reads_entries_of_maps))
