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

/* ---- a guard that has to block ---- */

static atomic_int judged;
static atomic_bool may_judge;

static enum net_verdict guard(void *ctx, const struct net_request *r, uint32_t scope,
	bool may_block, struct net_caller *out, char challenge[NET_CHALLENGE_BYTES], struct err *e)
{
	(void)ctx;
	(void)scope;
	(void)challenge;
	if (!may_block)
		return NET_GUARD_BLOCKS;
	while (!atomic_load(&may_judge))
		usleep(1000);
	atomic_fetch_add(&judged, 1);
	if (str_eq(net_header_find(r, "x-word"), STR("good"))) {
		snprintf(out->name, sizeof(out->name), "somebody");
		return NET_GUARD_YES;
	}
	err_set(e, E_UNAUTHENTICATED, "who are you?");
	return NET_GUARD_NO;
}

static struct net_server *start_guarded(void)
{
	struct net_server_config config = peer_config();
	config.guard = guard;
	atomic_store(&judged, 0);
	atomic_store(&may_judge, false);
	return peer_start(&config);
}

#define LONG_BODY 3000000

static void *send_body(void *ctx)
{
	static char body[LONG_BODY];
	int fd = *(int *)ctx;
	(void)peer_send(fd, body, sizeof(body));
	return NULL;
}

/* No more of a body than came with its head is read before somebody is known to send it. */
static void knows_the_sender_before_the_body(void **state)
{
	(void)state;
	static const char *const words[] = { "bad", "good" };
	for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
		struct net_server *s = start_guarded();
		CLEANUP(buf_deinit) struct buf out;
		char head[256];
		pthread_t sender;
		buf_init(&out, 8 << 20);
		int fd = peer_connect(s);
		snprintf(head, sizeof(head),
			HEAD("PUT /put") "x-word: %s\r\ncontent-length: %d\r\n\r\n", words[i],
			LONG_BODY);
		CHECK(peer_send_text(fd, head));
		CHECK(pthread_create(&sender, NULL, send_body, &fd) == 0);
		for (int k = 0; k < 50; k++) {
			usleep(1000);
			CHECK(peer_metric(s, "firn_net_body_bytes") <= HTTP_FEED_MAX);
		}
		CHECK(atomic_load(&judged) == 0);
		atomic_store(&may_judge, true);
		CHECK(peer_receive(fd, &out, NULL));
		pthread_join(sender, NULL);
		CHECK(str_starts(buf_view(&out), i ? STR("HTTP/1.1 200 ") : STR("HTTP/1.1 401 ")));
		CHECK(!i || memmem(out.data, out.len, "3000000 bytes", 13));
		assert_int_equal(atomic_load(&judged), 1);
		assert_int_equal(atomic_load(&peer_calls), i);
		close(fd);
		PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
		net_server_stop(s);
	}
}

/* Whole requests, some with a body behind the head in one packet, on one connection. */
static void judges_each_request(void **state)
{
	(void)state;
	struct net_server *s = start_guarded();
	CLEANUP(buf_deinit) struct buf in, out;
	buf_init(&in, 1 << 20);
	buf_init(&out, 1 << 20);
	atomic_store(&may_judge, true);
	for (int i = 0; i < 100; i++)
		buf_printf(&in,
			"POST /echo HTTP/1.1\r\nhost: h\r\nx-word: good\r\ncontent-length: %d\r\n"
			"%s\r\n%s",
			i % 2 ? 3 : 0, i == 99 ? "connection: close\r\n" : "", i % 2 ? "abc" : "");
	peer_exchange(s, in.data, in.len, &out);
	size_t found = 0;
	for (size_t i = 0; i + 3 <= out.len; i++)
		found += memcmp(out.data + i, "abc", 3) == 0;
	assert_int_equal(found, 50);
	assert_int_equal(atomic_load(&judged), 100);
	net_server_stop(s);
}

/* Whoever goes meanwhile leaves nothing behind. */
static void forgets_who_goes(void **state)
{
	(void)state;
	struct net_server *s = start_guarded();
	for (int i = 0; i < 20; i++) {
		int fd = peer_connect(s);
		CHECK(peer_send_text(fd, HEAD("POST /echo") "content-length: 10\r\n\r\nabc"));
		PEER_UNTIL(peer_metric(s, "firn_net_requests_total") == i + 1);
		close(fd);
	}
	atomic_store(&may_judge, true);
	PEER_UNTIL(peer_metric(s, "firn_net_connections") == 0);
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
	assert_int_equal(atomic_load(&peer_calls), 0);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(knows_the_sender_before_the_body), cmocka_unit_test(judges_each_request),
	cmocka_unit_test(forgets_who_goes), cmocka_unit_test(refuses_65000_headers),
	cmocka_unit_test(refuses_a_body_that_grows))
