/* SPDX-License-Identifier: Apache-2.0 */
/* Slow peers, and peers that do not read. */
#include "test.h"

#include "peer.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define MS(n) ((int64_t)(n)*NS_PER_MS)

static void ends_slow_heads(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.header_timeout_ns = MS(300);
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	/* One says nothing, one trickles: neither lives much longer than the timeout. */
	int silent = peer_connect(s), slow = peer_connect(s);
	int64_t begun = clock_monotonic_ns();
	bool open = peer_send_text(slow, "GET /fast HTTP/1.1\r\nx: ");
	while (open && clock_monotonic_ns() - begun < 30 * NS_PER_SEC) {
		usleep(20000);
		open = peer_send_text(slow, "y");
	}
	CHECK(!open);
	CHECK(peer_receive(silent, &out, NULL));
	assert_int_equal(out.len, 0);
	assert_int_equal(peer_metric(s, "firn_net_timeouts_total"), 2);
	close(silent);
	close(slow);
	net_server_stop(s);
}

/* HTTP/2: neither half a frame nor half a head keeps a connection for longer than a head may take.
 */
static void ends_torn_heads_of_http2(void **state)
{
	static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	static const char torn[] = "\0\0\x64\1\5\0\0\0\1\x82\x84\x86";
	static const char to_be_continued[] = "\0\0\3\1\1\0\0\0\1\x82\x84\x86";
	(void)state;
	struct net_server_config config = peer_config();
	config.header_timeout_ns = MS(3000);
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	int a = peer_connect(s), b = peer_connect(s);
	CHECK(peer_send(a, begin, sizeof(begin) - 1) && peer_send(b, begin, sizeof(begin) - 1));
	CHECK(peer_send(a, torn, sizeof(torn) - 1));
	CHECK(peer_send(b, to_be_continued, sizeof(to_be_continued) - 1));
	CHECK(peer_receive(a, &out, NULL));
	CHECK(peer_receive(b, &out, NULL));
	assert_int_equal(peer_metric(s, "firn_net_timeouts_total"), 2);
	assert_int_equal(peer_metric(s, "firn_net_requests_total"), 0);
	close(a);
	close(b);
	net_server_stop(s);
}

static void ends_idle_connections(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.idle_timeout_ns = MS(300);
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	int fd = peer_connect(s);
	CHECK(peer_send_text(fd, "GET /fast HTTP/1.1\r\nhost: h\r\n\r\n"));
	CHECK(peer_receive(fd, &out, NULL));
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 200 ")));
	close(fd);
	assert_int_equal(peer_metric(s, "firn_net_idle_closed_total"), 1);
	assert_int_equal(peer_metric(s, "firn_net_timeouts_total"), 0);
	net_server_stop(s);
}

static void ends_slow_bodies(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.stall_timeout_ns = MS(300);
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	int fd = peer_connect(s);
	CHECK(peer_send_text(
		fd, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 100000\r\n\r\nyy"));
	CHECK(peer_receive(fd, &out, NULL));
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 408 ")));
	assert_int_equal(peer_metric(s, "firn_net_timeouts_total"), 1);
	close(fd);
	/* One that goes on all the same. */
	fd = peer_connect(s);
	int64_t begun = clock_monotonic_ns();
	bool open = peer_send_text(
		fd, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 100000\r\n\r\n");
	while (open && clock_monotonic_ns() - begun < 30 * NS_PER_SEC) {
		usleep(20000);
		open = peer_send_text(fd, "y");
	}
	CHECK(!open);
	assert_int_equal(peer_metric(s, "firn_net_timeouts_total"), 2);
	assert_int_equal(atomic_load(&peer_calls), 0);
	close(fd);
	net_server_stop(s);
}

/* What came quickly does not pay for what does not come: it is in memory all the time. */
static void ends_bodies_that_stop(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.stall_timeout_ns = MS(3000);
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	CLEANUP(free_cleanup) char *most = calloc(1, 900000);
	buf_init(&out, 10000);
	int fd = peer_connect(s);
	CHECK(peer_send_text(
		fd, "POST /echo HTTP/1.1\r\nhost: h\r\ncontent-length: 1000000\r\n\r\n"));
	CHECK(most && peer_send(fd, most, 900000));
	CHECK(peer_receive(fd, &out, NULL));
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 408 ")));
	assert_int_equal(peer_metric(s, "firn_net_timeouts_total"), 1);
	assert_int_equal(peer_metric(s, "firn_net_body_bytes"), 0);
	close(fd);
	net_server_stop(s);
}

/* HTTP/2: a request that neither ends nor goes on behind its answer is reset, and its connection
 * has room for others. */
static void ends_requests_behind_their_answer(void **state)
{
	static const char begin[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
	static const char head[] = "\0\0\x9\1\4\0\0\0\1\x83\x84\x86\x41\1h\x5c\1"
				   "9"; /* 9 bytes follow, it says */
	static const char reset[] = "\0\0\4\3\0\0\0\0\1\0\0\0\0";
	(void)state;
	struct net_server_config config = peer_config();
	config.stall_timeout_ns = MS(300);
	config.idle_timeout_ns = MS(1000);
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	int fd = peer_connect(s);
	CHECK(peer_send(fd, begin, sizeof(begin) - 1));
	CHECK(peer_send(fd, head, sizeof(head) - 1));
	CHECK(peer_receive(fd, &out, NULL));
	CHECK(out.len && memmem(out.data, out.len, reset, sizeof(reset) - 1));
	assert_int_equal(peer_metric(s, "firn_net_requests_total"), 1);
	assert_int_equal(peer_metric(s, "firn_net_timeouts_total"), 1);
	assert_int_equal(peer_metric(s, "firn_net_idle_closed_total"), 1);
	close(fd);
	net_server_stop(s);
}

static void ends_who_does_not_read(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.stall_timeout_ns = MS(300);
	struct net_server *s = peer_start(&config);
	int fd = peer_connect(s);
	CHECK(peer_send_text(fd, "GET /large HTTP/1.1\r\nhost: h\r\n\r\n"));
	PEER_UNTIL(peer_metric(s, "firn_net_timeouts_total") == 1);
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
	close(fd);
	net_server_stop(s);
}

static void ends_who_reads_no_more(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.stall_timeout_ns = MS(8000); /* longer than what comes before it takes */
	struct net_server *s = peer_start(&config);
	int fd = peer_connect(s);
	CHECK(peer_send_text(fd, "GET /larger HTTP/1.1\r\nhost: h\r\n\r\n"));
	/* Until the socket takes no more; then some of it. */
	int64_t sent = -1;
	PEER_UNTIL(peer_metric(s, "firn_net_sent_bytes_total") > 0);
	while (sent != peer_metric(s, "firn_net_sent_bytes_total")) {
		sent = peer_metric(s, "firn_net_sent_bytes_total");
		usleep(100000);
	}
	char piece[65536];
	while (peer_metric(s, "firn_net_sent_bytes_total") < sent + (64 << 10))
		CHECK(recv(fd, piece, sizeof(piece), MSG_WAITALL) == sizeof(piece));
	PEER_UNTIL(peer_metric(s, "firn_net_timeouts_total") == 1);
	PEER_UNTIL(peer_metric(s, "firn_net_body_bytes") == 0);
	close(fd);
	net_server_stop(s);
}

/* Asks with little time for the head; where that was too little for us, once more. */
static int ask_to_wait(const struct net_server *s)
{
	int64_t end = clock_monotonic_ns() + 60 * NS_PER_SEC;
	for (;;) {
		int fd = peer_connect(s);
		struct pollfd closed = { .fd = fd, .events = POLLIN };
		(void)peer_send_text(
			fd, "GET /wait HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n");
		while (!atomic_load(&peer_calls) && poll(&closed, 1, 2) == 0)
			;
		if (atomic_load(&peer_calls))
			return fd;
		close(fd);
		CHECK(clock_monotonic_ns() < end);
	}
}

/* A handler may take as long as it likes. */
static void leaves_slow_handlers_alone(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.stall_timeout_ns = config.idle_timeout_ns = config.header_timeout_ns = MS(100);
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	int fd = ask_to_wait(s);
	usleep(2500000); /* two looks of the loop */
	atomic_store(&peer_release, true);
	CHECK(peer_receive(fd, &out, NULL));
	CHECK(str_ends(buf_view(&out), STR("waited")));
	close(fd);
	net_server_stop(s);
}

/* A child between fork and exec has every descriptor: one that was closed here is not gone,
 * and what arrives on it must not reach a connection that is. */
static void forgets_what_a_child_still_holds(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	static const char last[] = "GET /show/x HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n";
	int fd = peer_connect(s);
	CHECK(peer_send_text(fd, "GET /show/x HTTP/1.1\r\nhost: h\r\n\r\n"));
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	(void)peer_receive(fd, &out, "GET /show/x?");
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	CHECK(pid > 0 && peer_send(fd, last, sizeof(last) - 1));
	PEER_UNTIL(peer_metric(s, "firn_net_connections") == 0);
	for (int i = 0; i < 5; i++) {
		(void)peer_send_text(fd, "more");
		usleep(10000);
	}
	buf_clear(&out);
	peer_exchange(s, last, sizeof(last) - 1, &out);
	CHECK(str_ends(buf_view(&out), STR("GET /show/x?")));
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, NULL, 0) == pid);
	close(fd);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(forgets_what_a_child_still_holds), cmocka_unit_test(ends_slow_heads),
	cmocka_unit_test(ends_idle_connections), cmocka_unit_test(ends_slow_bodies),
	cmocka_unit_test(ends_who_does_not_read), cmocka_unit_test(ends_torn_heads_of_http2),
	cmocka_unit_test(ends_requests_behind_their_answer),
	cmocka_unit_test(ends_bodies_that_stop), cmocka_unit_test(ends_who_reads_no_more),
	cmocka_unit_test(leaves_slow_handlers_alone))
