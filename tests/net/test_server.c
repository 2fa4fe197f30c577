/* SPDX-License-Identifier: Apache-2.0 */
/* Start and stop, addresses, and clients that are not ours where they are installed. */
#include "test.h"

#include "peer.h"

static void starts_and_stops(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	for (int i = 0; i < 20; i++) {
		struct net_server *s = peer_start(&config);
		net_server_stop(s);
	}
	net_server_stop(NULL);
	struct net_server *s = peer_start(&config);
	char taken[160];
	snprintf(taken, sizeof(taken), "%s", net_server_address(s));
	config.address = taken;
	struct net_server *second;
	struct err e;
	assert_int_equal(net_server_start(&config, peer_routes, 1, &second, &e), E_IO);
	CHECK(strstr(e.text, taken) != NULL);
	net_server_stop(s);
	config.workers = 0;
	assert_int_equal(net_server_start(&config, peer_routes, 1, &second, &e), E_INVALID);
}

static void says_whether_it_turns(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	bool turned = net_server_turns(s);
	for (int i = 0; i < 60000 && !turned; i++) {
		usleep(1000);
		turned = net_server_turns(s);
	}
	CHECK(turned);
	net_server_stop(s);
}

/* On a socket that was there before. */
static void serves_on_a_socket(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	char taken[160];
	struct err e;
	bool retry;
	CHECK_OK(net_listen("127.0.0.1:0", &config.listen_fd, taken, sizeof(taken), &e), &e);
	config.address = taken;
	struct net_server *s = peer_start(&config);
	assert_string_equal(net_server_address(s), taken);
	struct net_client *c;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	CHECK_OK(net_client_new(taken, &c, &e), &e);
	CHECK_OK(
		net_client_rpc(c, "/t.Test/Echo", STR("m"), 60 * NS_PER_SEC, &out, &retry, &e), &e);
	CHECK_STR(buf_view(&out), "m");
	net_client_free(c);
	net_server_stop(s);
}

static void serves_on_a_path(void **state)
{
	(void)state;
	char dir[] = "/tmp/firn-net-XXXXXX", address[64];
	CHECK(mkdtemp(dir) != NULL);
	snprintf(address, sizeof(address), "unix:%s/s", dir);
	struct net_server_config config = peer_config();
	config.address = address;
	struct net_server *s = peer_start(&config);
	assert_string_equal(net_server_address(s), address);
	struct net_client *c;
	struct err e;
	bool retry;
	CHECK_OK(net_client_new(address, &c, &e), &e);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	CHECK_OK(
		net_client_rpc(c, "/t.Test/Echo", STR("m"), 60 * NS_PER_SEC, &out, &retry, &e), &e);
	CHECK_STR(buf_view(&out), "m");
	net_client_free(c);
	net_server_stop(s);
	/* The socket's file is gone, so its folder can go. */
	CHECK(rmdir(dir) == 0);
}

/* curl, where it is there: another implementation of both protocols. */
static void serves_curl(void **state)
{
	(void)state;
	if (system("command -v curl >/dev/null") != 0)
		SKIP("no curl");
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	static const char *const options[] = { "", "--http2-prior-knowledge", "--http2",
		"--compressed", "--http2-prior-knowledge --compressed", "--http1.0" };
	for (size_t i = 0; i < ARRAY_COUNT(options); i++) {
		char command[500];
		snprintf(command, sizeof(command), "curl -sf -m 60 %s http://%s/text | wc -c",
			options[i], net_server_address(s));
		FILE *p = popen(command, "re");
		int n = 0;
		CHECK(p && fscanf(p, "%d", &n) == 1);
		pclose(p);
		assert_int_equal(n, 12000);
		snprintf(command, sizeof(command),
			"head -c 3000000 /proc/self/exe /dev/zero 2>/dev/null | head -c 3000000 | "
			"curl -sf "
			"-m 60 %s --data-binary @- http://%s/echo | wc -c",
			options[i], net_server_address(s));
		p = popen(command, "re");
		CHECK(p && fscanf(p, "%d", &n) == 1);
		pclose(p);
		assert_int_equal(n, 3000000);
	}
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(starts_and_stops), cmocka_unit_test(says_whether_it_turns),
	cmocka_unit_test(serves_on_a_socket), cmocka_unit_test(serves_on_a_path),
	cmocka_unit_test(serves_curl))
