/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "ask.h"
#include "server/admin/admin.h"
#include "server/admin/handover.h"
#include "server/request/state.h"
#include "sink.h"

void store_write_metrics(struct store *s, struct buf *out)
{
	(void)s;
	buf_cstr(out, "store_metric 1\n");
}

void server_handover_write_figures(struct server *s, struct buf *out)
{
	(void)s;
	(void)out;
}

void symbolizer_want(struct symbolizer *s, struct str build_id, struct str path)
{
	(void)s;
	(void)build_id;
	(void)path;
	fail();
}

void symbolizer_write_metrics(struct symbolizer *s, struct buf *out)
{
	(void)s;
	buf_cstr(out, "symbolizer_metric 1\n");
}

static struct server server;
static struct fake_sink sink;

static int setup(void **state)
{
	(void)state;
	memset(&server, 0, sizeof(server));
	fake_sink_ingest(&sink, &server.ingest);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	ingest_deinit(&server.ingest);
	return 0;
}

static void says_whether_it_is_ready(void **state)
{
	(void)state;
	struct ask a;
	ask_init(&a, "/healthy", "");
	server_handle_healthy(&server, &a.r, &a.out);
	CHECK_STR(buf_view(&a.out.body), "healthy\n");
	ask_deinit(&a);
	ask_init(&a, "/ready", "");
	server_handle_ready(&server, &a.r, &a.out);
	assert_int_equal(a.out.http_status, 503);
	ask_deinit(&a);
	atomic_store(&server.ready, true);
	ask_init(&a, "/ready", "");
	server_handle_ready(&server, &a.r, &a.out);
	assert_int_equal(a.out.status, OK);
	CHECK_STR(buf_view(&a.out.body), "ready\n");
	ask_deinit(&a);
	/* Not ready any more, but well. */
	atomic_store(&server.leaving, true);
	ask_init(&a, "/ready", "");
	server_handle_ready(&server, &a.r, &a.out);
	assert_int_equal(a.out.http_status, 503);
	ask_deinit(&a);
}

static double own_cpu_seconds(void)
{
	struct timespec t;
	CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void writes_figures(void **state)
{
	(void)state;
	struct net_server_config config;
	struct err e;
	net_server_config_default(&config);
	config.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&config, NULL, 0, &server.net, &e), &e);
	static const struct ingest_protocol protocol = { .name = "otlp" };
	struct ingest_inlet *inlet;
	CHECK_OK(ingest_inlet(&server.ingest, &protocol, &inlet, &e), &e);
	metric_add(&inlet->samples, 42);
	metric_add(&server.metrics.query_ns, 1500000000);
	for (int ready = 0; ready < 2; ready++) {
		struct ask a;
		double cpu = 0, cpu_before = own_cpu_seconds();
		atomic_store(&server.ready, ready);
		ask_init(&a, "/metrics", "");
		server_handle_metrics(&server, &a.r, &a.out);
		buf_u8(&a.out.body, 0);
		const char *text = (const char *)a.out.body.data;
		CHECK(strstr(text, "\nfirn_ingest_samples_total{protocol=\"otlp\"} 42\n"));
		const char *at = strstr(text, "\nprocess_cpu_seconds_total ");
		CHECK(at && sscanf(at, " process_cpu_seconds_total %lf", &cpu) == 1);
		CHECK(cpu >= cpu_before - 0.1 && cpu <= own_cpu_seconds() + 0.1);
		CHECK(strstr(text, "\nprocess_resident_memory_bytes "));
		CHECK(strstr(text, "\nfirn_query_seconds_total 1.500000000\n"));
		CHECK(strstr(text, "\nfirn_net_connections 0\n"));
		CHECK(!!strstr(text, "\nstore_metric 1\n") == ready);
		CHECK(!!strstr(text, "\nsymbolizer_metric 1\n") == ready);
		/* Prometheus refuses a second TYPE of a name. */
		const char *type = "# TYPE firn_net_answers_total counter\n";
		const char *first = strstr(text, type);
		CHECK(first && !strstr(first + 1, type));
		ask_deinit(&a);
	}
	net_server_stop(server.net);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(says_whether_it_is_ready, setup, teardown),
	cmocka_unit_test_setup_teardown(writes_figures, setup, teardown))
