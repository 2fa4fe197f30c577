/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "serve.h"
#include "server/request/state.h"

#define CHECK_PATH "/grpc.health.v1.Health/Check"
#define WATCH_PATH "/grpc.health.v1.Health/Watch"

static void checks(void **state)
{
	(void)state;
	struct serve v;
	serve_start(&v);
	CHECK_OK(serve_call(&v, CHECK_PATH, STR("")), &v.e);
	CHECK_STR(buf_view(&v.out), "\x08\x02"); /* NOT_SERVING */
	atomic_store(&v.s.ready, true);
	CHECK_OK(serve_call(&v, CHECK_PATH, STR("")), &v.e);
	CHECK_STR(buf_view(&v.out), "\x08\x01");
	CHECK_OK(serve_call(&v, CHECK_PATH, STR("\n\x15grpc.health.v1.Health")), &v.e);
	CHECK_STR(buf_view(&v.out), "\x08\x01");
	atomic_store(&v.s.leaving, true);
	CHECK_OK(serve_call(&v, CHECK_PATH, STR("")), &v.e);
	CHECK_STR(buf_view(&v.out), "\x08\x02");
	assert_int_equal(serve_call(&v, CHECK_PATH, STR("\n\1x")), E_NOTFOUND);
	assert_string_equal(v.e.text, "unknown service");
	assert_int_equal(serve_call(&v, CHECK_PATH, STR("\n\5x")), E_INVALID);
	serve_stop(&v);
}

struct watcher {
	struct serve *v;
	struct net_client *client;
	struct buf out;
	enum status status;
};

static void *watch_main(void *ctx)
{
	struct watcher *w = ctx;
	bool retry;
	/* Two messages are no unary answer: the client says so, once the stream has ended. */
	w->status = net_client_rpc(
		w->client, WATCH_PATH, STR(""), 60 * NS_PER_SEC, &w->out, &retry, NULL);
	return NULL;
}

static void watches_until_the_server_stops(void **state)
{
	(void)state;
	struct serve v;
	struct watcher w = { .v = &v };
	pthread_t thread;
	serve_start(&v);
	buf_init(&w.out, 1000);
	CHECK_OK(net_client_new(net_server_address(v.s.net), &w.client, &v.e), &v.e);
	CHECK_OK(os_thread_start(&thread, "watch", watch_main, &w, &v.e), &v.e);
	while (atomic_load(&v.s.watchers) == 0)
		usleep(1000);
	atomic_store(&v.s.ready, true);
	usleep(300000);
	CHECK(atomic_load(&v.s.watchers) == 1);
	int64_t begun = clock_monotonic_ns();
	net_server_stop(v.s.net);
	v.s.net = NULL;
	pthread_join(thread, NULL);
	CHECK(clock_monotonic_ns() - begun < SERVE_DRAIN_NS / 2);
	assert_int_equal(w.status, E_UNAVAILABLE);
	CHECK(atomic_load(&v.s.watchers) == 0);
	net_client_free(w.client);
	buf_deinit(&w.out);
	serve_stop(&v);
}

static void refuses_too_many_watchers(void **state)
{
	(void)state;
	struct serve v;
	serve_start(&v);
	atomic_store(&v.s.watchers, SERVER_WATCHERS_MAX);
	assert_int_equal(serve_call(&v, WATCH_PATH, STR("")), E_QUOTA);
	CHECK(atomic_load(&v.s.watchers) == SERVER_WATCHERS_MAX);
	serve_stop(&v);
}

TEST_MAIN(cmocka_unit_test(checks), cmocka_unit_test(watches_until_the_server_stops),
	cmocka_unit_test(refuses_too_many_watchers))
