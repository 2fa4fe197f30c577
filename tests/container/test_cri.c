/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"
#include "container/decode.h"
#include "container/labels.h"

static struct container_labels l;

static void reads_containers(void **state)
{
	(void)state;
	CLEANUP(buf_deinit) struct buf b;
	struct container_cri c;
	struct err e;
	buf_init(&b, 65536);
	cri_containers(&b);
	CHECK_OK(container_cri_container_decode(buf_view(&b), STR(ID), &c, &e), &e);
	CHECK_STR(c.name, "app");
	CHECK_STR(c.image, "sha256:22");
	CHECK_STR(c.sandbox, SANDBOX_ID);
	CHECK(container_cri_container_decode(buf_view(&b), STR("x"), &c, &e) == E_NOTFOUND);
	CHECK(container_cri_container_decode(STR(""), STR(ID), &c, &e) == E_NOTFOUND);
	struct str torn = str_sub(buf_view(&b), 0, b.len - 1);
	CHECK(container_cri_container_decode(torn, STR(ID), &c, &e) == E_INVALID);
	buf_clear(&b);
	cri_image(&b);
	CHECK_OK(container_cri_image_decode(buf_view(&b), &c, &e), &e);
	CHECK_STR(c.image, "docker.io/shop/web:2");
	CHECK(container_cri_image_decode(STR(""), &c, &e) == E_NOTFOUND);
}

static void reads_pods(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	CLEANUP(buf_deinit) struct buf b;
	struct err e;
	arena_init(&a, 65536);
	buf_init(&b, 65536);
	container_labels_init(&l, &a);
	cri_sandboxes(&b);
	CHECK_OK(container_cri_sandbox_decode(buf_view(&b), STR(SANDBOX_ID), &l, &e), &e);
	CHECK(container_cri_sandbox_decode(buf_view(&b), STR(ID), &l, &e) == E_NOTFOUND);
	buf_clear(&b);
	cri_address(&b);
	CHECK_OK(container_cri_address_decode(buf_view(&b), &l, &e), &e);
	CHECK_STR(str_of(labels_text(l.v, l.count)),
		"kubernetes_pod_name=web-6f-x1\nkubernetes_pod_uid=" UID
		"\nkubernetes_namespace=shop\nkubernetes_pod_label_app=web\n"
		"kubernetes_pod_labelpresent_app=true\n"
		"kubernetes_pod_annotation_example_com_team=x\n"
		"kubernetes_pod_annotationpresent_example_com_team=true\n"
		"kubernetes_pod_ip=10.1.0.7\n");
	CHECK(container_cri_address_decode(STR(""), &l, &e) == E_INVALID);
}

TEST_MAIN(cmocka_unit_test(reads_containers), cmocka_unit_test(reads_pods))
