/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

/* answers.h, as a list of pods that changes */
static char list[400];
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_pod(const char *ip)
{
	pthread_mutex_lock(&list_lock);
	snprintf(list, sizeof(list),
		"{\"items\":[{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"spec\":"
		"{\"containers\":[{\"name\":\"c\",\"ports\":[{\"containerPort\":6060}]}]},"
		"\"status\":{\"podIP\":\"%s\"}}]}",
		ip);
	pthread_mutex_unlock(&list_lock);
}

static void serve_pods(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	out->content_type = "application/json";
	pthread_mutex_lock(&list_lock);
	buf_cstr(&out->body, list);
	pthread_mutex_unlock(&list_lock);
}

struct seen {
	int count;
	char url[300], pod[100];
};

static void note(void *ctx, const struct scrape_view *v)
{
	struct seen *s = ctx;
	s->count++;
	snprintf(s->url, sizeof(s->url), "%s", v->url);
	for (size_t i = 0; i < v->label_count; i++)
		if (strcmp(v->labels[i].name, "pod") == 0)
			snprintf(s->pod, sizeof(s->pod), "%s", v->labels[i].value);
}

static struct seen look(struct scrape *x)
{
	struct seen s = { 0 };
	scrape_each(x, note, &s);
	return s;
}

/* A server's targets are scraped, and stay through a reload and while it tells nonsense. */
static void asks_a_server(void **state)
{
	(void)state;
	static const struct net_route routes[] = {
		{ .method = "GET", .path = "/*", .fn = serve_pods }
	};
	struct net_server_config c;
	struct net_server *server = NULL;
	struct scrape *x = NULL;
	struct ingest in;
	struct err e = { 0 };
	char path[] = "/tmp/firn-source-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, 1, &server, &e), &e);
	set_pod("127.9.9.9");
	dprintf(fd,
		"scrape_configs:\n- job_name: k\n  kubernetes_sd_configs: [{role: pod, api_server: "
		"'http://%s'}]\n  relabel_configs: [{source_labels: [__meta_kubernetes_pod_name], "
		"target_label: pod}]\n  profiling_config: {pprof_config: {memory: {enabled: "
		"false}, block: {enabled: false}, goroutine: {enabled: false}, mutex: {enabled: "
		"false}}}\n",
		net_server_address(server));
	CHECK_OK(scrape_start(path, sink_open(&in), NULL, &x, &e), &e);
	SERVE_UNTIL(look(x).count == 1);
	struct seen s = look(x);
	CHECK_STR(str_of(s.url), "http://127.9.9.9:6060/debug/pprof/profile?seconds=10");
	CHECK_STR(str_of(s.pod), "p");
	set_pod("no JSON\"");
	CHECK_OK(scrape_reload(x, &e), &e);
	SERVE_UNTIL(metric_get(&x->metrics.discovery_failed) > 0);
	CHECK(look(x).count == 1);
	set_pod("127.9.9.8");
	CHECK_OK(scrape_reload(x, &e), &e);
	SERVE_UNTIL(strstr(look(x).url, "127.9.9.8"));
	CHECK(look(x).count == 1);
	scrape_stop(x);
	ingest_deinit(&in);
	net_server_stop(server);
	CHECK(close(fd) == 0 && unlink(path) == 0);
}

static void serve_nothing(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	(void)r;
	serve_asked++;
	out->content_type = "application/json";
	buf_cstr(&out->body, "[]");
}

/* 2^32 milliseconds: as many as none in an int. */
static void waits_for_weeks(void **state)
{
	(void)state;
	static const struct net_route routes[] = {
		{ .method = "GET", .path = "/*", .fn = serve_nothing }
	};
	struct net_server_config c;
	struct net_server *server = NULL;
	struct scrape *x = NULL;
	struct ingest in;
	struct err e = { 0 };
	char path[] = "/tmp/firn-source-XXXXXX";
	int fd = mkstemp(path);
	CHECK(fd >= 0);
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, 1, &server, &e), &e);
	dprintf(fd,
		"scrape_configs:\n- job_name: k\n  http_sd_configs: [{url: 'http://%s', "
		"refresh_interval: 7w17h2m47s296ms}]\n  nomad_sd_configs: [{server: 'http://%s', "
		"refresh_interval: 7w17h2m47s296ms}]\n",
		net_server_address(server), net_server_address(server));
	serve_asked = 0;
	CHECK_OK(scrape_start(path, sink_open(&in), NULL, &x, &e), &e);
	SERVE_UNTIL(serve_asked == 2);
	usleep(200000);
	CHECK(serve_asked == 2);
	scrape_stop(x);
	ingest_deinit(&in);
	net_server_stop(server);
	CHECK(close(fd) == 0 && unlink(path) == 0);
}

TEST_MAIN(cmocka_unit_test(asks_a_server), cmocka_unit_test(waits_for_weeks))
