/* SPDX-License-Identifier: Apache-2.0 */
#include "container/labels.h"
#include "container/peer.h"
#include "container/places.h"
#include "engines.h"

#include <stdio.h>

static struct container_labels l;
static struct containers_metrics metrics;
static struct container_places places;

static enum status ask(const char *id, const char *space, uint32_t user, struct arena *a)
{
	struct container_query q = { .kind = space ? PROCFS_CONTAINER_MAYBE : PROCFS_CONTAINER,
		.user = user };
	snprintf(q.id, sizeof(q.id), "%s", id);
	snprintf(q.space, sizeof(q.space), "%s", space ? space : "");
	container_labels_init(&l, a);
	return container_places_ask(&places, &q, &l, &metrics);
}

static struct containers_config config(void)
{
	return (struct containers_config){ .node = "node-1", .root = engines_dir };
}

static void asks_in_turn(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	struct containers_config c = config();
	container_places_init(&places, &c);
	CHECK(ask(ID, NULL, 0, &a) == E_NOTFOUND); /* nobody is there */
	CHECK(metric_get(&metrics.asked) == 0);
	struct net_server *docker = engine_at("/run/docker.sock", serve_docker, false);
	struct net_server *containerd =
		engine_at("/run/containerd/containerd.sock", serve_containerd, true);
	atomic_store(&docker_knows, true);
	CHECK(ask(ID, NULL, 0, &a) == OK);
	CHECK_STR(container_get(&l, "__meta_docker_container_name"), "web");
	CHECK(ask("web-1", "default", 0, &a) == OK);
	CHECK_STR(container_get(&l, "__meta_containerd_namespace"), "default");
	CHECK_STR(container_get(&l, "__meta_containerd_container_id"), "web-1");
	CHECK(ask("web-1", "system", 0, &a) == E_NOTFOUND);
	CHECK(ask("web-2", "default", 0, &a) == E_NOTFOUND);
	CHECK(ask(INIT_ID, NULL, 0, &a) == E_NOTFOUND);
	CHECK(metric_get(&metrics.failed) == 0);
	net_server_stop(docker);
	net_server_stop(containerd);
	container_places_deinit(&places);
}

static void cri_knows_pods(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	struct containers_config c = config();
	struct net_server *cri = engine_at("/run/crio/crio.sock", serve_cri, true);
	container_places_init(&places, &c);
	CHECK(ask(ID, NULL, 0, &a) == OK);
	CHECK_STR(container_get(&l, "__meta_kubernetes_pod_name"), "web-6f-x1");
	CHECK_STR(container_get(&l, "__meta_kubernetes_pod_container_name"), "app");
	CHECK_STR(
		container_get(&l, "__meta_kubernetes_pod_container_image"), "docker.io/shop/web:2");
	CHECK_STR(container_get(&l, "__meta_kubernetes_pod_ip"), "10.1.0.7");
	CHECK_STR(container_get(&l, "__meta_kubernetes_node_name"), "node-1");
	CHECK(ask(SANDBOX_ID, NULL, 0, &a) == OK); /* the pod's own process */
	CHECK_STR(container_get(&l, "__meta_kubernetes_pod_name"), "web-6f-x1");
	CHECK(!container_get(&l, "__meta_kubernetes_pod_container_name").len);
	CHECK(ask(INIT_ID, NULL, 0, &a) == E_NOTFOUND);
	net_server_stop(cri);
	container_places_deinit(&places);
}

static void finds_engines_of_users(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	struct containers_config c = config();
	container_places_init(&places, &c);
	struct net_server *podman =
		engine_at("/run/user/1234/podman/podman.sock", serve_docker, false);
	atomic_store(&docker_knows, true);
	CHECK(ask(ID, NULL, 0, &a) == E_NOTFOUND);
	CHECK(ask(ID, NULL, 1234, &a) == OK);
	CHECK_STR(container_get(&l, "__meta_podman_container_name"), "web");
	/* Of others' containers, and root's, he has nothing to say. */
	CHECK(ask(ID, NULL, 0, &a) == E_NOTFOUND);
	CHECK(ask(ID, NULL, 1235, &a) == E_NOTFOUND);
	/* More users than places: those of before give way, and come back. */
	for (uint32_t user = 2000; user < 2020; user++)
		CHECK(ask(ID, NULL, user, &a) == E_NOTFOUND);
	CHECK(ask(ID, NULL, 1234, &a) == OK);
	CHECK(places.count <= CONTAINER_PLACES_MAX && places.fixed == 9);
	net_server_stop(podman);
	container_places_deinit(&places);
}

/* An engine that answers with the container of its choice. */
static void serve_any(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "application/json";
	buf_cstr(&out->body, DOCKER_INSPECT);
}

static void wants_the_one_asked_for(void **state)
{
	(void)state;
	CLEANUP(arena_deinit) struct arena a;
	arena_init(&a, 1 << 20);
	struct containers_config c = config();
	container_places_init(&places, &c);
	struct net_server *docker = engine_at("/run/docker.sock", serve_any, false);
	CHECK(ask(ID, NULL, 0, &a) == OK);
	CHECK(ask(INIT_ID, NULL, 0, &a) == E_NOTFOUND);
	CHECK(places.v[4].engine == CONTAINER_ENGINE_DOCKER);
	CHECK(strstr(places.v[4].peer.problem, "another container"));
	net_server_stop(docker);
	container_places_deinit(&places);
}

static void one_by_flag(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *path;
		int engines;
	} cases[] = {
		{ "docker", "/x/docker.sock", 1 },
		{ "podman", "unix:///x/podman.sock", 1 },
		{ "CRI-O", "/var/run/crio/crio.sock", 1 },
		{ "cri-dockerd", "/run/cri-dockerd.sock", 1 },
		{ "containerd", "/x/containerd.sock", 3 },
	};
	FOR_EACH_CASE (k, cases) {
		struct containers_config c = config();
		c.socket_path = k->path;
		container_places_init(&places, &c);
		CHECK_CASE(k, (int)places.count == k->engines);
		CHECK_CASE(k, !strstr(places.v[0].peer.address, "unix://"));
		container_places_deinit(&places);
	}
}

TEST_MAIN(cmocka_unit_test_setup_teardown(asks_in_turn, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(cri_knows_pods, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(finds_engines_of_users, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(wants_the_one_asked_for, engines_setup, engines_teardown),
	cmocka_unit_test(one_by_flag))
