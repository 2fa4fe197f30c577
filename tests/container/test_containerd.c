/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"
#include "container/decode.h"
#include "container/labels.h"

static struct container_labels l;

static void reads_a_container(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf b;
	struct err e;
	arena_init(&a, 65536);
	buf_init(&b, 65536);
	container_labels_init(&l, &a);
	containerd_container(&b, "web-1");
	CHECK_OK(container_containerd_decode(buf_view(&b), STR("default"), &l, &e), &e);
	CHECK_STR(str_of(labels_text(l.v, l.count)),
		"containerd_container_id=web-1\n"
		"containerd_container_label_nerdctl_name=web\n"
		"containerd_container_labelpresent_nerdctl_name=true\n"
		"containerd_container_image=docker.io/library/nginx:1.27\n"
		"containerd_container_name=web\ncontainerd_namespace=default\ncontainerd_pod_name="
		"default\n");
	container_labels_init(&l, &a);
	CHECK(container_containerd_decode(STR(""), STR("default"), &l, &e) == E_INVALID);
	struct str torn = str_sub(buf_view(&b), 0, b.len - 1);
	CHECK(container_containerd_decode(torn, STR("default"), &l, &e) == E_INVALID);
	/* The kubelet's label names the pod. */
	buf_clear(&b);
	size_t begun = pb_begin(&b, 1);
	pb_put_str(&b, 1, STR(ID));
	put_pair(&b, 2, "io.kubernetes.pod.name", "web-6f-x1");
	pb_end(&b, begun);
	container_labels_init(&l, &a);
	CHECK_OK(container_containerd_decode(buf_view(&b), STR("k8s.io"), &l, &e), &e);
	CHECK_STR(container_get(&l, "__meta_containerd_pod_name"), "web-6f-x1");
	CHECK_STR(container_get(&l, "__meta_containerd_container_name"), ID);
}

static void reads_namespaces(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct err e;
	struct str name;
	buf_init(&b, 65536);
	put_one(&b, 1, 1, "default");
	put_one(&b, 1, 1, "k8s.io");
	CHECK_OK(container_spaces_decode(buf_view(&b), 0, &name, &e), &e);
	CHECK_STR(name, "default");
	CHECK_OK(container_spaces_decode(buf_view(&b), 1, &name, &e), &e);
	CHECK_STR(name, "k8s.io");
	CHECK_OK(container_spaces_decode(buf_view(&b), 2, &name, &e), &e);
	CHECK_STR(name, "");
	struct str torn = str_sub(buf_view(&b), 0, b.len - 1);
	CHECK(container_spaces_decode(torn, 0, &name, &e) == E_INVALID);
}

TEST_MAIN(cmocka_unit_test(reads_a_container), cmocka_unit_test(reads_namespaces))
