/* SPDX-License-Identifier: Apache-2.0 */
/* Where bodies and answers fill the memory, over raw sockets. */
#include "test.h"

#include "peer.h"

#define HEAD(line) line " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n"

/* An answer of 8 MiB that nobody reads, and a request that goes on nevertheless. */
static struct net_server *start_full(int64_t turn_timeout_ns, int *out_large, int *out_favoured)
{
	struct net_server_config config = peer_config();
	config.memory_max = 1 << 20;
	config.turn_timeout_ns = turn_timeout_ns;
	struct net_server *s = peer_start(&config);
	*out_large = peer_connect(s);
	CHECK(peer_send_text(*out_large, HEAD("GET /large") "\r\n"));
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") > 1 << 20);
	*out_favoured = peer_connect(s);
	CHECK(peer_send_text(*out_favoured, HEAD("GET /wait") "\r\n"));
	PEER_UNTIL(atomic_load(&peer_calls) == 1);
	return s;
}

static void receive(int fd, const char *begin, size_t at_least)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 16 << 20);
	CHECK(peer_receive(fd, &out, NULL));
	if (!str_starts(buf_view(&out), str_of(begin)))
		print_error("%.*s\n", STR_ARG(str_sub(buf_view(&out), 0, 300)));
	CHECK(str_starts(buf_view(&out), str_of(begin)) && out.len >= at_least);
	close(fd);
}

static void refuses_when_memory_stays_full(void **state)
{
	(void)state;
	int large, favoured;
	struct net_server *s = start_full(NS_PER_SEC / 10, &large, &favoured);
	static const char other[] = HEAD("GET /show/x") "\r\n", fast[] = HEAD("GET /fast") "\r\n";
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 16 << 20);
	peer_exchange(s, other, sizeof(other) - 1, &out);
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 503 ")));
	CHECK(memmem(out.data, out.len, "retry-after", 11));
	buf_clear(&out);
	peer_exchange(s, fast, sizeof(fast) - 1, &out);
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 200 ")));
	receive(large, "HTTP/1.1 200 ", 8 << 20);
	assert_int_equal(peer_metric(s, "firn_net_overloaded_total"), 1);
	atomic_store(&peer_release, true);
	receive(favoured, "HTTP/1.1 200 ", 0);
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
	net_server_stop(s);
}

enum { BODY = 900000 };

static void *send_the_rest(void *ctx)
{
	static const char body[BODY];
	int fd = *(int *)ctx;
	CHECK(peer_send(fd, body, BODY - 1000));
	receive(fd, "HTTP/1.1 200 ", 0);
	return NULL;
}

/* Who sends too fast waits: its socket is not read. */
static void slows_down_when_memory_is_full(void **state)
{
	(void)state;
	enum { FIRST = 1500000, WAITING = 5 };
	static const char body[FIRST];
	int fds[WAITING];
	pthread_t threads[WAITING];
	struct net_server_config config = peer_config();
	config.memory_max = 1 << 20;
	config.turn_timeout_ns = 60 * NS_PER_SEC;
	struct net_server *s = peer_start(&config);
	int first = peer_connect(s); /* has the favour, when it passes the limit */
	CHECK(peer_send_text(first, HEAD("PUT /put") "content-length: 1500000\r\n\r\n"));
	CHECK(peer_send(first, body, FIRST - 1));
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == FIRST - 1);
	for (int i = 0; i < WAITING; i++) {
		fds[i] = peer_connect(s);
		CHECK(peer_send_text(fds[i], HEAD("PUT /put") "content-length: 900000\r\n\r\n"));
		CHECK(peer_send(fds[i], body, 1000));
	}
	PEER_UNTIL(peer_metric(s, "firn_net_paused_total") == WAITING);
	CHECK(atomic_load(&peer_calls) == 0);
	CHECK(peer_send(first, body, 1));
	receive(first, "HTTP/1.1 200 ", 0);
	for (int i = 0; i < WAITING; i++)
		CHECK(pthread_create(&threads[i], NULL, send_the_rest, &fds[i]) == 0);
	for (int i = 0; i < WAITING; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	assert_int_equal(peer_metric(s, "firn_net_overloaded_total"), 0);
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(refuses_when_memory_stays_full),
	cmocka_unit_test(slows_down_when_memory_is_full))
