/* SPDX-License-Identifier: Apache-2.0 */
/* Many connections, the limit of them, stopping, and what the loop costs when nothing happens. */
#include "test.h"

#include "os/os.h"

#include "peer.h"

#define CLIENTS 8
#define CALLS 200

struct caller {
	const struct net_server *server;
	pthread_t thread;
	int failures;
};

static void *call(void *ctx)
{
	struct caller *c = ctx;
	struct net_client *n;
	struct err e;
	if (net_client_new(net_server_address(c->server), &n, &e) != OK)
		return NULL;
	for (int i = 0; i < CALLS; i++) {
		char text[40];
		bool retry;
		struct buf out;
		buf_init(&out, 1000);
		int len = snprintf(text, sizeof(text), "%p %d", ctx, i);
		enum status s = net_client_rpc(n, "/t.Test/Echo", str_make(text, (size_t)len),
			60 * NS_PER_SEC, &out, &retry, &e);
		if (s != OK || !str_eq(buf_view(&out), str_of(text))) {
			fprintf(stderr, "%s\n", err_text(&e, s));
			c->failures++;
		}
		buf_deinit(&out);
	}
	net_client_free(n);
	return NULL;
}

static void serves_many_at_a_time(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct caller callers[CLIENTS] = { 0 };
	struct err e;
	for (int i = 0; i < CLIENTS; i++) {
		callers[i].server = s;
		CHECK_OK(os_thread_start(&callers[i].thread, "caller", call, &callers[i], &e), &e);
	}
	for (int i = 0; i < CLIENTS; i++) {
		pthread_join(callers[i].thread, NULL);
		assert_int_equal(callers[i].failures, 0);
	}
	assert_int_equal(atomic_load(&peer_calls), CLIENTS * CALLS);
	assert_int_equal(peer_metric(s, "firn_net_connections_accepted_total"), CLIENTS);
	net_server_stop(s);
}

static void limits_connections(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.connections_max = 5;
	struct net_server *s = peer_start(&config);
	int fds[10];
	for (int i = 0; i < 10; i++)
		fds[i] = peer_connect(s); /* the kernel's backlog takes them all */
	PEER_UNTIL(peer_metric(s, "firn_net_accept_pauses_total") >= 1);
	assert_int_equal(peer_metric(s, "firn_net_connections"), 5);
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	PEER_UNTIL(peer_metric(s, "firn_net_connections_accepted_total") == 10);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 10000);
	CHECK(peer_send_text(fds[9], "GET /fast HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"));
	CHECK(peer_receive(fds[9], &out, NULL));
	CHECK(str_starts(buf_view(&out), STR("HTTP/1.1 200 ")));
	for (int i = 5; i < 10; i++)
		close(fds[i]);
	net_server_stop(s);
}

static void *stop_main(void *ctx)
{
	net_server_stop(ctx);
	return NULL;
}

static void drains_when_stopped(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.drain_timeout_ns = 60 * NS_PER_SEC;
	struct net_server *s = peer_start(&config);
	CLEANUP(buf_deinit) struct buf idle_out, out;
	buf_init(&idle_out, 10000);
	buf_init(&out, 10000);
	int idle = peer_connect(s), busy = peer_connect(s);
	CHECK(peer_send_text(idle, "GET /fast HTTP/1.1\r\nhost: h\r\n\r\n"));
	CHECK(!peer_receive(idle, &idle_out, "GET /fast?"));
	CHECK(peer_send_text(busy, "GET /wait HTTP/1.1\r\nhost: h\r\n\r\n"));
	PEER_UNTIL(atomic_load(&peer_calls) == 2);
	pthread_t stopper;
	struct err e;
	CHECK_OK(os_thread_start(&stopper, "stopper", stop_main, s, &e), &e);
	/* The idle one is closed at once, the busy one when it has its answer. */
	CHECK(peer_receive(idle, &idle_out, NULL));
	atomic_store(&peer_release, true);
	CHECK(peer_receive(busy, &out, NULL));
	CHECK(str_ends(buf_view(&out), STR("waited")));
	CHECK(memmem(out.data, out.len, "connection: close", 17));
	pthread_join(stopper, NULL);
	close(idle);
	close(busy);
}

static void stops_in_time(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.drain_timeout_ns = 100 * NS_PER_MS;
	struct net_server *s = peer_start(&config);
	int fd = peer_connect(s);
	CHECK(peer_send_text(fd, "GET /wait HTTP/1.1\r\nhost: h\r\n\r\n"));
	PEER_UNTIL(atomic_load(&peer_calls) == 1);
	/* The handler sees that its client is gone when the drain has timed out. */
	net_server_stop(s);
	assert_int_equal(atomic_load(&peer_canceled), 1);
	close(fd);
}

/* Voluntary switches of the server's threads: one that sleeps has none. *out_asleep: so many do. */
static long switches(int *out_asleep)
{
	long sum = 0;
	*out_asleep = 0;
	DIR *d = opendir("/proc/self/task");
	for (struct dirent *f; d && (f = readdir(d));) {
		char path[300], line[200];
		snprintf(path, sizeof(path), "/proc/self/task/%s/status", f->d_name);
		FILE *status = f->d_name[0] == '.' ? NULL : fopen(path, "re");
		bool ours = false;
		while (status && fgets(line, sizeof(line), status)) {
			long n;
			if (strncmp(line, "Name:\tnet-", 10) == 0)
				ours = true;
			if (ours && sscanf(line, "voluntary_ctxt_switches: %ld", &n) == 1)
				sum += n;
			*out_asleep += ours && strncmp(line, "State:\tS", 8) == 0;
		}
		if (status)
			fclose(status);
	}
	closedir(d);
	return sum;
}

/* Until so many threads have begun, and sleep, and have done nothing else for half a second. */
static long switches_settled(int threads)
{
	int asleep;
	long last = -1, now = switches(&asleep);
	for (int i = 0; i < 100 && (now != last || asleep != threads); i++) {
		last = now;
		usleep(500000);
		now = switches(&asleep);
	}
	assert_int_equal(asleep, threads);
	return now;
}

static void sleeps_when_idle(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	int fds[20], asleep;
	/* Nobody there: nothing wakes. */
	long before = switches_settled(1 + (int)config.workers);
	usleep(1500000);
	long alone = switches(&asleep) - before;
	assert_int_equal(alone, 0);
	/* Idle connections: at most one look a second. */
	for (int i = 0; i < 20; i++)
		fds[i] = peer_connect(s);
	PEER_UNTIL(peer_metric(s, "firn_net_connections") == 20);
	usleep(200000);
	before = switches(&asleep);
	int64_t begun = clock_monotonic_ns();
	usleep(2500000);
	long idle = switches(&asleep) - before;
	double seconds = (double)(clock_monotonic_ns() - begun) / NS_PER_SEC;
	print_message("switches: %ld alone in 1.5 s, %ld with 20 connections in %.1f s\n", alone,
		idle, seconds);
	CHECK((double)idle <= seconds + 2);
	for (int i = 0; i < 20; i++)
		close(fds[i]);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(serves_many_at_a_time), cmocka_unit_test(limits_connections),
	cmocka_unit_test(drains_when_stopped), cmocka_unit_test(stops_in_time),
	cmocka_unit_test(sleeps_when_idle))
