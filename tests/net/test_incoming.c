/* SPDX-License-Identifier: Apache-2.0 */
/* Heads and bodies that are refused while they come in. */
#include "test.h"

#include "peer.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n"

static void refuses_65000_headers(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf request, out;
	buf_init(&request, 4 << 20);
	buf_init(&out, 1 << 20);
	buf_cstr(&request, HEAD("GET /fast"));
	for (int i = 0; i < 65000; i++)
		buf_printf(&request, "x%d: y\r\n", i);
	buf_cstr(&request, "\r\n");
	peer_exchange(s, request.data, request.len, &out);
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 431 ")));
	assert_int_equal(peer_metric(s, "firn_net_malformed_total"), 1);
	net_server_stop(s);
}

static void refuses_a_body_that_grows(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.body_max = 100000;
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	int fd = peer_connect(s);
	CHECK(peer_send_text(fd, HEAD("POST /echo") "transfer-encoding: chunked\r\n\r\n"));
	char chunk[1005] = "3e8\r\n";
	memset(chunk + 5, 'x', 998);
	memcpy(chunk + 1003, "\r\n", 2);
	chunk[1] = 'e';
	memcpy(chunk, "3e6\r\n", 5);
	/* More than the limit, all of it sent: the answer must still arrive. */
	for (int i = 0; i < 300; i++)
		(void)peer_send(fd, chunk, sizeof(chunk));
	CHECK(peer_receive(fd, &out, NULL));
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 413 ")));
	assert_int_equal(peer_metric(s, "firn_net_too_large_total"), 1);
	assert_int_equal(atomic_load(&peer_calls), 0);
	close(fd);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(refuses_65000_headers), cmocka_unit_test(refuses_a_body_that_grows))
