/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that wait for a worker: apart in each lane, in turn, and not for ever. */
#include "test.h"

#include "net/lane.h"
#include "net/state.h"

#include "peer.h"

#include <stdio.h>

/* ---- a lane by itself: workers are this thread ---- */

static struct net_server server;
static struct net_lane lane;
static struct net_lane_worker workers[2];
static struct net_exchange exchanges[8];
static struct http_header tenants[8];

static void lane_begin(const char *share_header)
{
	memset(&server, 0, sizeof(server));
	memset(exchanges, 0, sizeof(exchanges));
	server.config.share_header = share_header;
	lane = (struct net_lane){ .server = &server, .workers = workers, .worker_count = 2 };
	for (int i = 0; i < 2; i++)
		workers[i] = (struct net_lane_worker){ .lane = &lane };
	lock_init(&lane.lock, LOCK_LANE);
	pthread_cond_init(&lane.changed, NULL);
	TAILQ_INIT(&lane.waiting);
}

static void push(int i, const char *tenant)
{
	exchanges[i].server = &server;
	tenants[i] = (struct http_header){ STR("x-tenant"), str_of(tenant) };
	exchanges[i].request.headers = &tenants[i];
	exchanges[i].request.header_count = 1;
	CHECK(net_lane_push(&lane, &exchanges[i]));
}

static int pop(int worker)
{
	return (int)(net_lane_pop(&workers[worker]) - exchanges);
}

static void in_the_order_they_came(void **state)
{
	(void)state;
	lane_begin(NULL);
	push(0, "a");
	push(1, "b");
	push(2, "a");
	assert_int_equal(pop(0), 0);
	assert_int_equal(pop(1), 1);
	assert_int_equal(pop(0), 2);
	CHECK(lane.waiting_count == 0);
}

static void who_has_fewest_goes_first(void **state)
{
	(void)state;
	lane_begin("x-tenant");
	for (int i = 0; i < 4; i++)
		push(i, "many");
	push(4, "one");
	push(5, "");
	assert_int_equal(pop(0), 0);
	assert_int_equal(pop(1), 4); /* "many" has one running already */
	assert_int_equal(pop(1), 5);
	assert_int_equal(pop(1), 1); /* nobody else waits */
	assert_int_equal(pop(0), 2);
	assert_int_equal(pop(0), 3);
}

/* A sender that is bound to a tenant cannot speak for another to be served first. */
static void the_guards_word_counts(void **state)
{
	(void)state;
	lane_begin("x-tenant");
	for (int i = 0; i < 4; i++) {
		exchanges[i].request.caller.has_tenant = true;
		snprintf(exchanges[i].request.caller.tenant, NET_TENANT_BYTES, "many");
	}
	push(0, "a");
	push(1, "b");
	push(2, "c");
	push(4, "one");
	assert_int_equal(pop(0), 0);
	assert_int_equal(pop(1), 4);
	assert_int_equal(pop(1), 1);
	assert_int_equal(pop(0), 2);
}

/* Of those whom nobody knows yet the address counts, not what they say. */
static void strangers_share_by_their_address(void **state)
{
	(void)state;
	lane_begin("x-tenant");
	for (int i = 0; i < 4; i++) {
		exchanges[i].judging = true;
		snprintf(exchanges[i].peer, NET_PEER_BYTES, "192.0.2.%d:%d", i == 3, 1000 + i);
	}
	push(0, "a");
	push(1, "b");
	push(2, "c");
	push(3, "a");
	assert_int_equal(pop(0), 0);
	assert_int_equal(pop(1), 3);
	assert_int_equal(pop(1), 1);
	assert_int_equal(pop(0), 2);
}

static void who_goes_leaves(void **state)
{
	(void)state;
	lane_begin(NULL);
	push(0, "a");
	push(1, "a");
	CHECK(net_lane_remove(&lane, &exchanges[0]));
	CHECK(!net_lane_remove(&lane, &exchanges[0]));
	assert_int_equal(pop(0), 1);
	CHECK(!net_lane_remove(&lane, &exchanges[1])); /* a worker has it */
}

/* ---- the lanes of a server ---- */

#define GET(path) "GET " path " HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"

static int ask(struct net_server *s, const char *request)
{
	int fd = peer_connect(s);
	CHECK(write(fd, request, strlen(request)) == (ssize_t)strlen(request));
	return fd;
}

static void answered(int fd, const char *begin)
{
	char text[4096];
	ssize_t n = read(fd, text, sizeof(text) - 1);
	CHECK(n > 0);
	text[n] = 0;
	if (!strstr(text, begin))
		print_error("%s\n", text);
	CHECK(strstr(text, begin));
	close(fd);
}

static struct net_server *start_with_slow_lane(int64_t turn_timeout_ns)
{
	static struct net_route routes[ARRAY_COUNT(peer_routes)];
	struct net_server_config c = peer_config();
	struct net_server *s;
	struct err e;
	memcpy(routes, peer_routes, sizeof(routes));
	for (size_t i = 0; i < ARRAY_COUNT(routes); i++)
		routes[i].lane = strcmp(routes[i].path, "/wait") == 0;
	c.lane_workers[1] = 1;
	c.turn_timeout_ns = turn_timeout_ns;
	atomic_store(&peer_calls, 0);
	atomic_store(&peer_canceled, 0);
	atomic_store(&peer_release, false);
	CHECK_OK(net_server_start(&c, routes, ARRAY_COUNT(routes), &s, &e), &e);
	return s;
}

static void what_waits_holds_up_no_other_lane(void **state)
{
	(void)state;
	struct net_server *s = start_with_slow_lane(60 * NS_PER_SEC);
	int slow[5];
	for (size_t i = 0; i < ARRAY_COUNT(slow); i++)
		slow[i] = ask(s, GET("/wait"));
	PEER_UNTIL(atomic_load(&peer_calls) == 1);
	answered(ask(s, GET("/show/x")), "200 OK");
	CHECK(atomic_load(&peer_calls) == 2);
	atomic_store(&peer_release, true);
	for (size_t i = 0; i < ARRAY_COUNT(slow); i++)
		answered(slow[i], "200 OK");
	CHECK(atomic_load(&peer_calls) == 6);
	net_server_stop(s);
}

static void nobody_waits_for_ever(void **state)
{
	(void)state;
	struct net_server *s = start_with_slow_lane(NS_PER_SEC / 10);
	int first = ask(s, GET("/wait"));
	PEER_UNTIL(atomic_load(&peer_calls) == 1);
	int second = ask(s, GET("/wait"));
	answered(second, "503 Service Unavailable");
	CHECK(peer_metric(s, "firn_net_turns_late_total") == 1);
	atomic_store(&peer_release, true);
	answered(first, "200 OK"); /* who has a worker may take longer */
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(in_the_order_they_came), cmocka_unit_test(who_has_fewest_goes_first),
	cmocka_unit_test(the_guards_word_counts),
	cmocka_unit_test(strangers_share_by_their_address), cmocka_unit_test(who_goes_leaves),
	cmocka_unit_test(what_waits_holds_up_no_other_lane),
	cmocka_unit_test(nobody_waits_for_ever))
