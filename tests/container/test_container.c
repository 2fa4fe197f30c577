/* SPDX-License-Identifier: Apache-2.0 */
#include "api.h"
#include "engines.h"

#define DOCKER_PATH "/system.slice/docker-" ID ".scope"
#define POD_SLICE "/kubepods.slice/kubepods-pod8cb56e4c_1234_4abc_9def_001122334455.slice"
#define POD_PATH POD_SLICE "/cri-containerd-" ID ".scope"

/* Longer than any test may take; what is waited for comes in milliseconds. */
#define PATIENCE_NS (60 * NS_PER_SEC)

static char text[65536];

static const char *find(struct containers *c, const char *path)
{
	CLEANUP(arena_deinit) struct arena a;
	struct container_label *v;
	uint32_t count;
	struct err e = { 0 };
	arena_init(&a, 1 << 20);
	CHECK_OK(containers_find(c, str_of(path), &a, &v, &count), &e);
	snprintf(text, sizeof(text), "%s", labels_text(v, count));
	return text;
}

static bool has(struct containers *c, const char *path, const char *what)
{
	return strstr(find(c, path), what) != NULL;
}

/* Until the labels of the path say so. */
static void wait_for(struct containers *c, const char *path, const char *what)
{
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	while (!has(c, path, what) && clock_monotonic_ns() < until)
		usleep(2000);
	CHECK(has(c, path, what));
}

static struct containers *start(struct containers_config c)
{
	struct containers *out;
	struct err e;
	c.node = "node-1";
	c.root = engines_dir;
	CHECK_OK(containers_new(&c, &out, &e), &e);
	containers_settle(out, PATIENCE_NS);
	return out;
}

static void knows_paths(void **state)
{
	(void)state;
	CHECK_STR(str_of(find(NULL, "/system.slice/ssh.service")), "");
	CHECK_STR(str_of(find(NULL, DOCKER_PATH)), "docker_container_id=" ID "\n");
	CHECK_STR(str_of(find(NULL, "/docker/" ID)), "docker_container_id=" ID "\n");
	CHECK_STR(str_of(find(NULL, "/machine.slice/libpod-" ID ".scope/container")),
		"podman_container_id=" ID "\n");
	CHECK_STR(str_of(find(NULL, POD_PATH)),
		"kubernetes_pod_uid=" UID "\nkubernetes_pod_container_id=" ID "\n");
	CHECK_STR(str_of(find(NULL, "/lxc.payload.web/x")), "lxc_container_id=web\n");
	CHECK_STR(
		str_of(find(NULL, "/docker/buildkit/abc")), "docker_build_kit_container_id=abc\n");
	CHECK_STR(str_of(find(NULL, "/default/web-1")), "");
	CHECK(containers_version(NULL, STR(DOCKER_PATH)) == 0 && containers_generation(NULL) == 0);
}

static void asks_and_remembers(void **state)
{
	(void)state;
	atomic_store(&docker_knows, true);
	struct net_server *s = engine_at("/run/docker.sock", serve_docker, false);
	struct containers *c = start((struct containers_config){ 0 });
	atomic_store(&docker_asked, 0);
	uint64_t generation = containers_generation(c);
	CHECK(containers_version(c, STR(DOCKER_PATH)) == 0);
	wait_for(c, DOCKER_PATH, "docker_container_name=web\n");
	CHECK(containers_version(c, STR(DOCKER_PATH)) != 0);
	CHECK(containers_generation(c) > generation);
	for (int i = 0; i < 100; i++)
		find(c, DOCKER_PATH);
	CHECK(atomic_load(&docker_asked) == 1);
	/* The engine goes: what is known stays. */
	net_server_stop(s);
	CHECK(has(c, DOCKER_PATH, "docker_container_name=web\n"));
	containers_free(c);
}

static void asks_again(void **state)
{
	(void)state;
	atomic_store(&docker_knows, false);
	struct net_server *s = engine_at("/run/docker.sock", serve_docker, false);
	struct containers *c = start((struct containers_config){ .ttl_ns = 50 * NS_PER_MS });
	CHECK_STR(str_of(find(c, DOCKER_PATH)), "docker_container_id=" ID "\n");
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	while (containers_version(c, STR(DOCKER_PATH)) == 0 && clock_monotonic_ns() < until)
		usleep(2000);
	uint64_t nobody = containers_version(c, STR(DOCKER_PATH));
	CHECK(nobody != 0);
	/* It was asked for before the engine knew it. */
	atomic_store(&docker_knows, true);
	wait_for(c, DOCKER_PATH, "docker_container_name=web\n");
	CHECK(containers_version(c, STR(DOCKER_PATH)) != nobody);
	/* Old answers are refreshed; the same answer is no change. */
	uint64_t version = containers_version(c, STR(DOCKER_PATH));
	int asked = atomic_load(&docker_asked);
	while (atomic_load(&docker_asked) < asked + 3 && clock_monotonic_ns() < until) {
		find(c, DOCKER_PATH);
		usleep(2000);
	}
	CHECK(containers_version(c, STR(DOCKER_PATH)) == version);
	net_server_stop(s);
	containers_free(c);
}

/* What a container calls the groups inside of it is its own affair. */
static void takes_the_outermost_known(void **state)
{
	(void)state;
	atomic_store(&docker_knows, true);
	struct net_server *s = engine_at("/run/docker.sock", serve_docker, false);
	struct containers *c = start((struct containers_config){ 0 });
	/* Another that Docker knows as little as it knows a node of kind's pods. */
	wait_for(c, "/docker/" INIT_ID "/x", "docker_container_id=" INIT_ID "\n");
	wait_for(c, "/docker/" INIT_ID "/kubelet.slice/docker-" ID ".scope",
		"docker_container_name=web\n");
	wait_for(c, "/docker/" ID "/kubelet.slice/docker-" INIT_ID ".scope",
		"docker_container_name=web\n");
	/* Nobody is asked about what an LXC container says. */
	CHECK_STR(str_of(find(c, "/lxc.payload.guest/docker/" ID)), "lxc_container_id=guest\n");
	containers_settle(c, PATIENCE_NS);
	CHECK_STR(str_of(find(c, "/lxc.payload.guest/docker/" ID)), "lxc_container_id=guest\n");
	net_server_stop(s);
	containers_free(c);
}

/* A pod's uid inside of a container, too. */
static void believes_no_pod_in_a_container(void **state)
{
	(void)state;
	static struct api api;
	api_start(&api, PODS);
	char token[128];
	snprintf(token, sizeof(token), "%s/token", engines_dir);
	FILE *f = fopen(token, "we");
	CHECK(f && fputs("secret-1\n", f) >= 0 && fclose(f) == 0);
	struct containers *c = start((struct containers_config){
		.token_file = token, .kubernetes_address = api.address });
	wait_for(c, POD_PATH, "kubernetes_pod_name=web-6f-x1\n");
	/* A container of the pod that nobody knows has the pod's labels; another's has not. */
	wait_for(c, POD_SLICE "/cri-containerd-" SANDBOX_ID ".scope/a",
		"kubernetes_pod_name=web-6f-x1\n");
	static const char other[] = "/docker/" SANDBOX_ID POD_SLICE "/a";
	wait_for(c, other, "docker_container_id=" SANDBOX_ID "\n");
	CHECK(!has(c, other, "kubernetes"));
	containers_free(c);
	api_stop(&api);
}

/* A service may have been given a group of its own, to make others in. */
static void believes_owners_of_groups(void **state)
{
	(void)state;
	static const char his[] = "/system.slice/app.service/docker-" ID ".scope";
	char path[160], command[400];
	if (geteuid() != 0)
		SKIP("only root may give groups away");
	snprintf(path, sizeof(path), "%s/sys/fs/cgroup/system.slice/app.service", engines_dir);
	snprintf(command, sizeof(command), "mkdir -p %s && chown 1234 %s", path, path);
	CHECK(system(command) == 0);
	atomic_store(&docker_knows, true);
	struct net_server *docker = engine_at("/run/docker.sock", serve_docker, false);
	struct containers *c = start((struct containers_config){ 0 });
	wait_for(c, DOCKER_PATH, "docker_container_name=web\n");
	CHECK_STR(str_of(find(c, his)), "docker_container_id=" ID "\n");
	containers_settle(c, PATIENCE_NS);
	CHECK(!has(c, his, "container_name"));
	containers_free(c);
	net_server_stop(docker);
}

/* A user makes what groups he likes below his own, and listens where his engine would: neither
 * says anything of what others run. */
static void believes_users_of_their_own(void **state)
{
	(void)state;
	static const char his[] =
		"/user.slice/user-1234.slice/user@1234.service/docker-" ID ".scope";
	static const char deeper[] = "/docker/" ID "/user.slice/user-1234.slice/x";
	atomic_store(&docker_knows, true);
	struct net_server *docker = engine_at("/run/docker.sock", serve_docker, false);
	struct containers *c = start((struct containers_config){ 0 });
	wait_for(c, DOCKER_PATH, "docker_container_name=web\n");
	CHECK_STR(str_of(find(c, his)), "docker_container_id=" ID "\n");
	containers_settle(c, PATIENCE_NS);
	CHECK(!has(c, his, "container_name"));
	CHECK(has(c, deeper, "docker_container_name=web\n"));
	containers_free(c);
	net_server_stop(docker);
	struct net_server *fake =
		engine_at("/run/user/1234/podman/podman.sock", serve_docker, false);
	c = start((struct containers_config){ 0 });
	wait_for(c, his, "podman_container_name=web\n");
	wait_for(c, "/../../user.slice/user-1234.slice/docker-" ID ".scope",
		"podman_container_name=web\n");
	CHECK(!has(c, DOCKER_PATH, "container_name"));
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	while (containers_version(c, STR(DOCKER_PATH)) == 0 && clock_monotonic_ns() < until)
		usleep(2000);
	CHECK(containers_version(c, STR(DOCKER_PATH)) != 0);
	CHECK(!has(c, DOCKER_PATH, "container_name"));
	containers_free(c);
	net_server_stop(fake);
}

static struct containers_config with_kubernetes(struct net_server *s, char address[200])
{
	static char token[128];
	snprintf(address, 200, "http://%s", net_server_address(s));
	snprintf(token, sizeof(token), "%s/token", engines_dir);
	FILE *f = fopen(token, "we");
	CHECK(f && fputs("secret-1\n", f) >= 0 && fclose(f) == 0);
	return (struct containers_config){ .token_file = token };
}

static void lists_pods(void **state)
{
	(void)state;
	char address[200];
	for (int kubelet = 0; kubelet < 2; kubelet++) {
		atomic_store(&pods_known, true);
		atomic_store(&pods_asked, 0);
		struct net_server *s = engine_start("127.0.0.1:0", serve_pods, false);
		struct containers_config config = with_kubernetes(s, address);
		*(kubelet ? &config.kubelet_address : &config.kubernetes_address) = address;
		struct containers *c = start(config);
		/* Known before anybody asked. */
		CHECK(has(c, POD_PATH, "kubernetes_pod_name=web-6f-x1\n"));
		CHECK(has(c, POD_PATH, "kubernetes_pod_container_name=app\n"));
		CHECK(has(c, POD_PATH, "kubernetes_node_name=node-1\n"));
		CHECK(has(c, POD_SLICE "/cri-containerd-" INIT_ID ".scope",
			"kubernetes_pod_container_init=true\n"));
		CHECK(has(c, POD_PATH, "zone=eu-1\n") == !kubelet);
		/* The pod's own container stands in no list, but the pod does. */
		CHECK(has(c, POD_SLICE "/cri-containerd-" SANDBOX_ID ".scope",
			"kubernetes_pod_name=web-6f-x1\n"));
		CHECK(has(c, POD_SLICE "/cri-containerd-" SANDBOX_ID ".scope",
			"kubernetes_pod_container_id=" SANDBOX_ID "\n"));
		containers_free(c);
		net_server_stop(s);
	}
}

static void prefers_the_list(void **state)
{
	(void)state;
	char address[200];
	atomic_store(&pods_known, false);
	struct net_server *s = engine_start("127.0.0.1:0", serve_pods, false);
	struct net_server *cri = engine_at("/run/containerd/containerd.sock", serve_cri, true);
	struct containers_config config = with_kubernetes(s, address);
	config.kubernetes_address = address;
	struct containers *c = start(config);
	/* Too new for the list: the engine says what it knows. */
	wait_for(c, POD_PATH, "kubernetes_pod_container_image=docker.io/shop/web:2\n");
	CHECK(!has(c, POD_PATH, "kubernetes_pod_phase"));
	atomic_store(&pods_known, true);
	wait_for(c, POD_PATH, "kubernetes_pod_phase=Running\n");
	net_server_stop(s);
	net_server_stop(cri);
	containers_free(c);
}

/* Ten minutes would be long for the phase and the address of a pod that has just come. */
static void looks_again_at_new_pods(void **state)
{
	(void)state;
	char address[200];
	atomic_store(&pods_known, true);
	atomic_store(&pods_pending, true);
	struct net_server *s = engine_start("127.0.0.1:0", serve_pods, false);
	struct containers_config config = with_kubernetes(s, address);
	config.kubernetes_address = address;
	struct containers *c = start(config);
	CHECK(has(c, POD_PATH, "kubernetes_pod_phase=Pending\n"));
	CHECK(!has(c, POD_PATH, "kubernetes_pod_ip"));
	atomic_store(&pods_pending, false);
	wait_for(c, POD_PATH, "kubernetes_pod_ip=10.1.0.7\n");
	CHECK(has(c, POD_PATH, "kubernetes_pod_phase=Running\n"));
	net_server_stop(s);
	containers_free(c);
}

/* By the API, before anybody looks; and nobody is asked for what it has told of. */
static void is_told_of_new_pods(void **state)
{
	(void)state;
	static struct api api;
	api_start(&api, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}");
	struct net_server *cri = engine_at("/run/containerd/containerd.sock", serve_cri, true);
	char token[128];
	snprintf(token, sizeof(token), "%s/token", engines_dir);
	FILE *f = fopen(token, "we");
	CHECK(f && fputs("secret-1\n", f) >= 0 && fclose(f) == 0);
	struct containers *c = start((struct containers_config){
		.token_file = token, .kubernetes_address = api.address, .ttl_ns = 50 * NS_PER_MS });
	api_wait(&api, 1, 1);
	/* Nobody told of it yet: the engine says what it knows. */
	wait_for(c, POD_PATH, "kubernetes_pod_container_image=docker.io/shop/web:2\n");
	CHECK(!has(c, POD_PATH, "kubernetes_pod_phase"));
	api_say(&api, POD_EVENT, API_GOES_ON);
	wait_for(c, POD_PATH, "kubernetes_pod_phase=Running\n");
	usleep(200000); /* the engine's answers that are under way come in */
	uint64_t version = containers_version(c, STR(POD_PATH));
	int asked = atomic_load(&cri_asked);
	/* Old enough to be asked for again, many times over. */
	int64_t until = clock_monotonic_ns() + 300 * NS_PER_MS;
	while (clock_monotonic_ns() < until) {
		CHECK(has(c, POD_PATH, "kubernetes_pod_phase=Running\n"));
		usleep(5000);
	}
	/* At most the questions that were under way. */
	CHECK(atomic_load(&cri_asked) <= asked + 5);
	assert_int_equal(api_look(&api).lists, 1);
	CHECK(containers_version(c, STR(POD_PATH)) == version);
	containers_free(c);
	api_stop(&api);
	net_server_stop(cri);
}

static void tells_of_problems(void **state)
{
	(void)state;
	char address[200];
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 65536);
	struct net_server *s = engine_start("127.0.0.1:0", serve_pods, false);
	struct containers_config config = with_kubernetes(s, address);
	config.kubernetes_address = address;
	FILE *f = fopen(config.token_file, "we");
	CHECK(f && fputs("secret-2\n", f) >= 0 && fclose(f) == 0);
	struct containers *c = start(config);
	containers_write_problems(c, &out);
	CHECK(memmem(out.data, out.len, "HTTP status 401 for /api/v1/pods", 32));
	buf_clear(&out);
	containers_write_metrics(c, &out);
	buf_u8(&out, 0);
	CHECK(strstr((const char *)out.data, "firn_agent_container_failures_total "));
	CHECK(!strstr((const char *)out.data, "firn_agent_container_failures_total 0\n"));
	net_server_stop(s);
	containers_free(c);
}

/* Until its problems have that sentence, or with `gone` have it no more; somebody looks meanwhile.
 */
static void wait_for_problem(struct containers *c, const char *what, bool gone)
{
	int64_t until = clock_monotonic_ns() + PATIENCE_NS;
	for (bool done = false; !done; usleep(2000)) {
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 65536);
		(void)find(c, POD_PATH);
		containers_write_problems(c, &out);
		bool is_there = out.len && memmem(out.data, out.len, what, strlen(what));
		done = is_there != gone;
		CHECK(done || clock_monotonic_ns() < until);
	}
}

static void tells_of_the_wrong_node(void **state)
{
	(void)state;
	static struct api api;
	char token[128];
	snprintf(token, sizeof(token), "%s/token", engines_dir);
	FILE *f = fopen(token, "we");
	CHECK(f && fputs("secret-1\n", f) >= 0 && fclose(f) == 0);
	api_start(&api, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}");
	api_set_node(&api, 404);
	struct containers *c = start((struct containers_config){
		.token_file = token, .kubernetes_address = api.address });
	wait_for_problem(c, "it knows no node \"node-1\"", false);
	/* Where we may not look at nodes, it is seen by the pods. */
	api_set_node(&api, 200);
	api_say(&api, "", API_ENDS);
	wait_for_problem(c, "it knows no node", true);
	wait_for_problem(c, "it tells of none of the pods here", false);
	api_say(&api, POD_EVENT, API_GOES_ON);
	wait_for_problem(c, "it tells of none of the pods here", true);
	containers_free(c);
	api_stop(&api);
}

static void forgets_for_room(void **state)
{
	(void)state;
	struct containers *c = start((struct containers_config){ 0 });
	char path[200];
	for (unsigned i = 0; i < CONTAINERS_MAX + 100; i++) {
		snprintf(path, sizeof(path), "/docker/%064x", i);
		find(c, path);
	}
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 65536);
	containers_write_metrics(c, &out);
	buf_u8(&out, 0);
	CHECK(strstr((const char *)out.data, "firn_agent_containers 4096\n"));
	CHECK(!strstr((const char *)out.data, "firn_agent_containers_evicted_total 0\n"));
	containers_free(c);
}

/* ---- more than there is room for ---- */

static char many_path[200];

static const char *many(unsigned i)
{
	snprintf(many_path, sizeof(many_path), "/kubepods/burstable/pod%08x%s/%064x", i,
		"-1234-4abc-9def-001122334455", i);
	return many_path;
}

static void put_many(struct buf *b, unsigned i, size_t note_bytes)
{
	buf_printf(b,
		"%s{\"metadata\":{\"name\":\"p%u\",\"uid\":\"%08x-1234-4abc-9def-001122334455\","
		"\"annotations\":{\"short\":\"s%u\"",
		i ? "," : "", i, i, i);
	if (note_bytes) {
		buf_printf(b, ",\"note\":\"%u", i);
		for (size_t j = 0; j < note_bytes; j++)
			buf_u8(b, 'x');
		buf_cstr(b, "\"");
	}
	buf_printf(b,
		"}},\"status\":{\"containerStatuses\":[{\"name\":\"c%u\",\"containerID\":"
		"\"containerd://%064x\"}]}}",
		i, i);
}

static uint64_t metric_of(struct containers *c, const char *name)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 65536);
	containers_write_metrics(c, &out);
	buf_u8(&out, 0);
	char line[100];
	snprintf(line, sizeof(line), "\n%s ", name);
	const char *at = strstr((const char *)out.data, line);
	CHECK(at);
	return strtoull(at + strlen(line), NULL, 10);
}

/* A Kubernetes API with so many pods, known to what is returned. */
static struct containers *start_with_many(
	struct api *api, struct buf *list, unsigned count, size_t note_bytes)
{
	static char token[128];
	buf_init(list, (size_t)32 << 20);
	buf_cstr(list, "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[");
	for (unsigned i = 0; i < count; i++)
		put_many(list, i, note_bytes);
	buf_cstr(list, "]}");
	buf_u8(list, 0);
	CHECK(buf_status(list) == OK);
	api_start(api, (const char *)list->data);
	snprintf(token, sizeof(token), "%s/token", engines_dir);
	FILE *f = fopen(token, "we");
	CHECK(f && fputs("secret-1\n", f) >= 0 && fclose(f) == 0);
	struct containers *c = start((struct containers_config){
		.token_file = token, .kubernetes_address = api->address });
	api_wait(api, 1, 1);
	return c;
}

/* What the newest pods are called is known, however many there have been that nobody looked for. */
static void keeps_the_newest(void **state)
{
	(void)state;
	static struct api api;
	CLEANUP(buf_deinit) struct buf list;
	const unsigned count = CONTAINERS_MAX / 2 + 200; /* of two records each */
	struct containers *c = start_with_many(&api, &list, count, 0);
	CHECK(metric_of(c, "firn_agent_containers_evicted_total") >= 400);
	char want[64];
	for (unsigned i = count - 100; i < count; i++) {
		snprintf(want, sizeof(want), "kubernetes_pod_container_name=c%u\n", i);
		CHECK(has(c, many(i), want));
	}
	api_say(&api, POD_EVENT, API_GOES_ON);
	wait_for(c, POD_PATH, "kubernetes_pod_container_name=app\n");
	CHECK(has(c, POD_SLICE "/cri-containerd-" INIT_ID ".scope",
		"kubernetes_pod_container_name=migrate\n"));
	containers_free(c);
	api_stop(&api);
}

/* Of values for which there is no room, the long ones go, and nothing is asked for again. */
static void leaves_out_long_values(void **state)
{
	(void)state;
	static struct api api;
	CLEANUP(buf_deinit) struct buf list;
	const unsigned count = (unsigned)(CONTAINERS_TEXT_BYTES_MAX / 10000);
	struct containers *c = start_with_many(&api, &list, count, 10000);
	assert_int_equal(metric_of(c, "firn_agent_containers_evicted_total"), 0);
	CHECK(metric_of(c, "firn_agent_container_labels_cut_total") > 0);
	char want[64];
	for (unsigned i = 0; i < count; i++) {
		snprintf(want, sizeof(want), "kubernetes_pod_annotation_short=s%u\n", i);
		CHECK(has(c, many(i), want));
		CHECK(strstr(text, "kubernetes_pod_container_name=c"));
	}
	CHECK(!strstr(text, "pod_annotation_note="));
	assert_int_equal(api_look(&api).lists, 1);
	containers_free(c);
	api_stop(&api);
}

TEST_MAIN(cmocka_unit_test(knows_paths),
	cmocka_unit_test_setup_teardown(asks_and_remembers, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(asks_again, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(takes_the_outermost_known, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(
		believes_no_pod_in_a_container, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(believes_owners_of_groups, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(
		believes_users_of_their_own, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(lists_pods, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(prefers_the_list, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(looks_again_at_new_pods, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(is_told_of_new_pods, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(tells_of_problems, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(tells_of_the_wrong_node, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(keeps_the_newest, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(leaves_out_long_values, engines_setup, engines_teardown),
	cmocka_unit_test_setup_teardown(forgets_for_room, engines_setup, engines_teardown))
