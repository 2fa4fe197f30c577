/* SPDX-License-Identifier: Apache-2.0 */
/* What the loop is asked for comes once, and the nearest deadline wins. */
#include "test.h"

#include "net/state.h"
#include "net/wake.h"

#include <sys/eventfd.h>
#include <unistd.h>

static struct net_server server;

static uint64_t wakes(void)
{
	uint64_t n = 0;
	return read(server.event_fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static void keeps_the_nearest_deadline(void **state)
{
	(void)state;
	server.look_ns = INT64_MAX;
	net_loop_look_at(&server, 7);
	net_loop_look_at(&server, 9);
	CHECK(server.look_ns == 7);
}

static void lists_a_connection_once(void **state)
{
	(void)state;
	static struct net_conn one, two;
	net_loop_again(&server, &one);
	net_loop_again(&server, &two);
	net_loop_again(&server, &one);
	CHECK(server.again == &two && two.again_next == &one && !one.again_next);
}

static void wakes_for_the_first_answer(void **state)
{
	(void)state;
	static struct net_exchange one, two;
	server.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(server.event_fd >= 0);
	lock_init(&server.done_lock, LOCK_NET_DONE);
	net_loop_done(&server, &one);
	net_loop_done(&server, &two);
	CHECK(wakes() == 1);
	CHECK(server.done == &two && two.done_next == &one && !one.done_next);
	net_loop_wake(&server);
	net_loop_wake(&server);
	CHECK(wakes() == 2);
	close(server.event_fd);
	lock_destroy(&server.done_lock);
}

TEST_MAIN(cmocka_unit_test(keeps_the_nearest_deadline), cmocka_unit_test(lists_a_connection_once),
	cmocka_unit_test(wakes_for_the_first_answer))
