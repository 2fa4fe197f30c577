/* SPDX-License-Identifier: Apache-2.0 */
#include "answers.h"
#include "container/decode.h"
#include "container/labels.h"

static struct container_labels l;

static void reads_an_answer(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	struct err e;
	arena_init(&a, 1 << 20);
	container_labels_init(&l, &a);
	CHECK_OK(container_docker_decode(STR(DOCKER_INSPECT), "docker", &l, &e), &e);
	CHECK_STR(str_of(labels_text(l.v, l.count)),
		"docker_container_id=" ID "\ndocker_container_name=web\n"
		"docker_container_image=nginx:1.27\n"
		"docker_container_label_com_docker_compose_service=front-end\n"
		"docker_container_labelpresent_com_docker_compose_service=true\n"
		"docker_container_labelpresent_empty=true\n");
	container_labels_init(&l, &a);
	CHECK_OK(container_docker_decode(
			 STR("{\"Id\":\"x\",\"Name\":\"y\",\"Config\":{\"Labels\":null}}"),
			 "podman", &l, &e),
		&e);
	CHECK_STR(str_of(labels_text(l.v, l.count)),
		"podman_container_id=x\npodman_container_name=y\n");
}

static void refuses_others(void **state)
{
	(void)state;
	static const char *const bad[] = { "", "{}", "[]", "{\"Id\":\"\"}", "{\"Id\":7}",
		"{\"Id\":\"x\",\"Config\":{\"Labels\":{\"a\":1}}}", "{\"Id\":\"x\"",
		"{\"Id\":\"x\"} {}" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++) {
		CLEANUP(arena_deinit) struct arena a;
		struct err e = { 0 };
		arena_init(&a, 1 << 20);
		container_labels_init(&l, &a);
		enum status s = container_docker_decode(str_of(bad[i]), "docker", &l, &e);
		CHECK(s == E_INVALID && e.text[0]);
	}
}

TEST_MAIN(cmocka_unit_test(reads_an_answer), cmocka_unit_test(refuses_others))
