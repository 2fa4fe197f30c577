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

/* A server that says what is to be scraped, and a file for the configuration that names it. */
struct source {
	struct net_route route;
	struct net_server *server;
	struct scrape *x; /* the test starts it */
	struct ingest in;
	char path[32];
	int fd;
};

static void source_open(struct source *t, net_handler_fn *answer)
{
	struct net_server_config c;
	struct err e = { 0 };
	*t = (struct source){ .route = { .method = "GET", .path = "/*", .fn = answer },
		.path = "/tmp/firn-source-XXXXXX" };
	t->fd = mkstemp(t->path);
	CHECK(t->fd >= 0);
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, &t->route, 1, &t->server, &e), &e);
}

static void source_close(struct source *t)
{
	scrape_stop(t->x);
	ingest_deinit(&t->in);
	net_server_stop(t->server);
	CHECK(close(t->fd) == 0 && unlink(t->path) == 0);
}

/* A server's targets are scraped, and stay through a reload and while it tells nonsense. */
static void asks_a_server(void **state)
{
	(void)state;
	struct source t;
	struct err e = { 0 };
	source_open(&t, serve_pods);
	set_pod("127.9.9.9");
	dprintf(t.fd,
		"scrape_configs:\n- job_name: k\n  kubernetes_sd_configs: [{role: pod, api_server: "
		"'http://%s'}]\n  relabel_configs: [{source_labels: [__meta_kubernetes_pod_name], "
		"target_label: pod}]\n  profiling_config: {pprof_config: {memory: {enabled: "
		"false}, block: {enabled: false}, goroutine: {enabled: false}, mutex: {enabled: "
		"false}}}\n",
		net_server_address(t.server));
	CHECK_OK(scrape_start(t.path, sink_open(&t.in), NULL, &t.x, &e), &e);
	SERVE_UNTIL(look(t.x).count == 1);
	struct seen s = look(t.x);
	CHECK_STR(str_of(s.url), "http://127.9.9.9:6060/debug/pprof/profile?seconds=10");
	CHECK_STR(str_of(s.pod), "p");
	set_pod("no JSON\"");
	CHECK_OK(scrape_reload(t.x, &e), &e);
	SERVE_UNTIL(metric_get(&t.x->metrics.discovery_failed) > 0);
	CHECK(look(t.x).count == 1);
	set_pod("127.9.9.8");
	CHECK_OK(scrape_reload(t.x, &e), &e);
	SERVE_UNTIL(strstr(look(t.x).url, "127.9.9.8"));
	CHECK(look(t.x).count == 1);
	source_close(&t);
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
	struct source t;
	struct err e = { 0 };
	source_open(&t, serve_nothing);
	dprintf(t.fd,
		"scrape_configs:\n- job_name: k\n  http_sd_configs: [{url: 'http://%s', "
		"refresh_interval: 7w17h2m47s296ms}]\n  nomad_sd_configs: [{server: 'http://%s', "
		"refresh_interval: 7w17h2m47s296ms}]\n",
		net_server_address(t.server), net_server_address(t.server));
	serve_asked = 0;
	CHECK_OK(scrape_start(t.path, sink_open(&t.in), NULL, &t.x, &e), &e);
	SERVE_UNTIL(serve_asked == 2);
	usleep(200000);
	CHECK(serve_asked == 2);
	source_close(&t);
}

TEST_MAIN(cmocka_unit_test(asks_a_server), cmocka_unit_test(waits_for_weeks))
