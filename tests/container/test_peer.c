/* SPDX-License-Identifier: Apache-2.0 */
#include "container/peer.h"
#include "engines.h"

#include <stdio.h>

static void rests_after_failures(void **state)
{
	(void)state;
	struct container_peer p = { 0 };
	struct err e;
	err_set(&e, E_TIMEOUT, "no answer in time");
	CHECK(!container_peer_ready(&p, 1)); /* no address */
	snprintf(p.address, sizeof(p.address), "unix:%s/none.sock", engines_dir);
	CHECK(!container_peer_ready(&p, 1) && !p.http);
	struct net_server *s = engine_at("/docker.sock", serve_docker, false);
	snprintf(p.address, sizeof(p.address), "unix:%s/docker.sock", engines_dir);
	int64_t now = clock_monotonic_ns();
	CHECK(container_peer_ready(&p, now) && p.http);
	int64_t rest = 0;
	for (int i = 0; i < 10; i++) {
		int64_t noted = clock_monotonic_ns();
		container_peer_note(&p, E_TIMEOUT, &e);
		/* As if no time had passed: it may have, more than the shortest rest. */
		CHECK(!container_peer_ready(&p, noted + p.rest_ns - 1));
		CHECK(p.rest_ns >= rest && p.rest_ns <= 60 * NS_PER_SEC);
		rest = p.rest_ns;
	}
	CHECK(rest == 60 * NS_PER_SEC);
	CHECK_STR(str_of(p.problem), "no answer in time");
	CHECK(container_peer_ready(&p, now + 120 * NS_PER_SEC));
	container_peer_note(&p, E_NOTFOUND, &e); /* an answer */
	CHECK(p.rest_ns == 0 && !p.problem[0]);
	container_peer_close(&p);
	container_peer_close(&p);
	net_server_stop(s);
}

static void tells_statuses_apart(void **state)
{
	(void)state;
	struct container_peer p = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	struct err e;
	buf_init(&out, 65536);
	struct net_server *s = engine_start("127.0.0.1:0", serve_pods, false);
	snprintf(p.address, sizeof(p.address), "http://%s", net_server_address(s));
	CHECK(container_peer_ready(&p, clock_monotonic_ns()));
	CHECK(container_peer_get(&p, "/pods?x=y", 65536, &out, &e) == E_DENIED);
	CHECK_STR(str_of(e.text), "HTTP status 401 for /pods");
	CHECK_OK(fetch_header(p.http, "authorization", "Bearer secret-1", &e), &e);
	CHECK(container_peer_get(&p, "/other", 65536, &out, &e) == E_IO);
	buf_clear(&out);
	CHECK_OK(container_peer_get(&p, "/pods", 65536, &out, &e), &e);
	CHECK(container_peer_get(&p, "/pods", 8, &out, &e) == E_LIMIT);
	container_peer_close(&p);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(rests_after_failures, engines_setup, engines_teardown),
	cmocka_unit_test(tells_statuses_apart))
