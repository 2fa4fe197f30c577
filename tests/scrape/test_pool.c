/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

static char dir[] = "/tmp/firn-scrape-XXXXXX";
static char config_path[100], found_path[100];
static struct ingest in;
static struct net_server *server;

static void put(const char *path, const char *fmt, ...) PRINTF(2, 3);
static void put(const char *path, const char *fmt, ...)
{
	char other[128];
	va_list args;
	snprintf(other, sizeof(other), "%s.new", path);
	FILE *f = fopen(other, "w");
	CHECK(f);
	va_start(args, fmt);
	vfprintf(f, fmt, args);
	va_end(args);
	CHECK(fclose(f) == 0 && rename(other, path) == 0);
}

struct seen {
	const char *path; /* the end of the URL */
	struct scrape_view view;
	char error[ERR_TEXT_MAX];
	int count, dropped;
};

static void note(void *ctx, const struct scrape_view *v)
{
	struct seen *s = ctx;
	s->dropped += v->dropped;
	if (!str_ends(str_of(v->url), str_of(s->path)) || v->dropped)
		return;
	s->count++;
	s->view = *v;
	snprintf(s->error, sizeof(s->error), "%s", v->error);
}

static struct seen look(struct scrape *x, const char *path)
{
	struct seen s = { .path = path };
	scrape_each(x, note, &s);
	return s;
}

static atomic_int told, failing;

static void tell(enum scrape_news of, enum status s, const struct err *e)
{
	bool known = strstr(e->text, "found.yaml: ") || strstr(e->text, "/sd: ") ||
		     strstr(e->text, "job \"f\": ");
	if (of == SCRAPE_TARGETS && s != OK && known)
		atomic_fetch_add(&told, 1);
	if (of == SCRAPE_FAILS && s != OK && strstr(e->text, "job \""))
		atomic_fetch_add(&failing, 1);
}

static struct scrape *start(void)
{
	struct scrape *x = NULL;
	struct err e = { 0 };
	CHECK_OK(scrape_start(config_path, sink_open(&in), tell, &x, &e), &e);
	return x;
}

/* Jobs whose only profile is `path`. */
#define ONLY                                                                            \
	"scrape_interval: 1s, scrape_timeout: 1500ms, "                                 \
	"profiling_config: {pprof_config: {memory: {enabled: false}, block: {enabled: " \
	"false}, goroutine: {enabled: false}, mutex: {enabled: false}, process_cpu: "   \
	"{enabled: false}, x: {path: %s}}}"

static void costs_only_whoever_fails(void **state)
{
	(void)state;
	static const struct {
		const char *name, *says;
	} bad[] = {
		{ "/html", "the answer is HTML" },
		{ "/wrong", "the answer is no profile" },
		{ "/empty", "the answer is empty" },
		{ "/loop", "redirects" },
		{ "/hang", "no answer in time" },
		{ "/none", "server returned HTTP status 418: a teapot" },
	};
	char yaml[8000];
	int len = snprintf(yaml, sizeof(yaml), "scrape_configs:\n");
	for (size_t i = 0; i <= ARRAY_COUNT(bad); i++) {
		len += snprintf(yaml + len, sizeof(yaml) - (size_t)len,
			"- {job_name: j%zu, static_configs: [{targets: ['%s'], labels: {l: v}}], ",
			i, net_server_address(server));
		len += snprintf(yaml + len, sizeof(yaml) - (size_t)len, ONLY "}\n",
			i < ARRAY_COUNT(bad) ? bad[i].name : "/good");
	}
	put(config_path, "%s", yaml);
	struct scrape *x = start();
	FOR_EACH_CASE (c, bad) {
		SERVE_UNTIL(look(x, c->name).view.health == SCRAPE_BAD);
		struct seen s = look(x, c->name);
		if (!strstr(s.error, c->says))
			print_error("%s\n", s.error);
		CHECK_CASE(c, s.count == 1 && strstr(s.error, c->says));
	}
	SERVE_UNTIL(look(x, "/good").view.health == SCRAPE_GOOD);
	struct seen s = look(x, "/good");
	CHECK(s.view.last_ns && s.view.next_ns && s.view.label_count == 3 && !s.error[0]);
	/* Each is a batch of its own, though they are equal. */
	SERVE_UNTIL(atomic_load(&sink_samples) >= 4);
	CHECK(atomic_load(&sink_equal_ids) == 0 && atomic_load(&sink_labels) == 3);
	CHECK(metric_get(&x->metrics.targets) == 7);
	/* Each failing target is told of once, however often it was asked. */
	SERVE_UNTIL(atomic_load(&failing) >= 6);
	CHECK(atomic_load(&failing) == 6);
	CHECK(agent_list_count(&in.agents, clock_realtime_ns()) == 0);
	scrape_stop(x);
	ingest_deinit(&in);
}

static int discoveries, troubled;

static void note_discovery(void *ctx, const struct scrape_discovery *d)
{
	(void)ctx;
	bool is_file = strcmp(d->job, "f") == 0;
	CHECK(strcmp(d->key, is_file ? "file_sd_configs" : "http_sd_configs") == 0);
	CHECK(d->found == (is_file ? 2 : 1));
	CHECK(!d->error[0] || strstr(d->error, is_file ? "found.yaml" : "/sd"));
	discoveries++;
	troubled += d->error[0] != 0;
}

static void look_at_discoveries(struct scrape *x, int want_troubled)
{
	discoveries = troubled = 0;
	scrape_each_discovery(x, note_discovery, NULL);
	CHECK(discoveries == 2 && troubled == want_troubled);
}

static void put_config(const char *more)
{
	char job[1000];
	snprintf(job, sizeof(job), ONLY, "/good");
	put(config_path,
		"scrape_configs:\n- {job_name: f, file_sd_configs: [{files: ['%s/found*.yaml']}], "
		"relabel_configs: [{source_labels: [__address__], regex: 'drop.*', action: drop}], "
		"%s}\n- {job_name: h, http_sd_configs: [{url: 'http://%s/sd', refresh_interval: "
		"1s}], %s}\n%s",
		dir, job, net_server_address(server), job, more);
}

static void finds_targets(void **state)
{
	(void)state;
	serve_list("[{\"targets\": [\"127.0.0.1:1\"]}]", NULL);
	put(found_path, "[{targets: ['127.0.0.1:2', 'drop:1'], labels: {a: b}}]");
	put_config("");
	struct scrape *x = start();
	SERVE_UNTIL(look(x, "127.0.0.1:1/good").count == 1);
	CHECK(look(x, "127.0.0.1:2/good").count == 1 && look(x, "").dropped == 1);
	look_at_discoveries(x, 0);
	/* What is found anew comes and goes. */
	put(found_path, "- targets: ['127.0.0.1:2', '127.0.0.1:3']\n  labels: {a: b}\n");
	serve_list("[{\"targets\": [\"127.0.0.1:4\"]}]", NULL);
	SERVE_UNTIL(look(x, "127.0.0.1:3/good").count == 1);
	SERVE_UNTIL(look(x, "127.0.0.1:4/good").count == 1);
	CHECK(look(x, "127.0.0.1:1/good").count == 0 && look(x, "").dropped == 0);
	/* What is wrong changes nothing. */
	put(found_path, "- targets: x\n");
	serve_list("no list", NULL);
	SERVE_UNTIL(metric_get(&x->metrics.discovery_failed) >= 4);
	CHECK(atomic_load(&told) == 2); /* each once */
	look_at_discoveries(x, 2);
	CHECK(look(x, "127.0.0.1:3/good").count == 1 && look(x, "127.0.0.1:4/good").count == 1);
	put(found_path, "- targets: ['no/address']\n");
	SERVE_UNTIL(atomic_load(&told) == 3);
	scrape_stop(x);
	ingest_deinit(&in);
}

static enum status refuse_file(const char *path, struct err *e)
{
	return err_set(e, E_DENIED, "%s: not this one", path);
}

/* The thread that looks may be reading the file itself. */
static const struct scrape_config *config_of(struct scrape *x)
{
	lock_take(&x->reload_lock);
	const struct scrape_config *c = x->config;
	lock_release(&x->reload_lock);
	return c;
}

static int open_files(void)
{
	int count = 0;
	DIR *d = opendir("/proc/self/fd");
	CHECK(d);
	while (readdir(d))
		count++;
	closedir(d);
	return count;
}

/* A thousand times: targets that stay go on, and nothing is left over. */
static void reloads(void **state)
{
	(void)state;
	struct err e = { 0 };
	put(found_path, "[{targets: ['%s']}]", net_server_address(server));
	char list[400];
	snprintf(list, sizeof(list), "[{\"targets\": [\"%s\"]}]", net_server_address(server));
	serve_list(list, NULL);
	put_config("");
	struct scrape *x = start();
	SERVE_UNTIL(look(x, "/good").count == 2);
	SERVE_UNTIL(look(x, "/good").view.health == SCRAPE_GOOD);
	const struct scrape_target *before = x->targets.v[0];
	int files = open_files();
	for (int i = 0; i < (TEST_TSAN ? 50 : 1000); i++) {
		CHECK_OK(scrape_reload(x, &e), &e);
		CHECK(look(x, "/good").count == 2);
	}
	CHECK(open_files() < files + 20); /* connections come and go */
	CHECK(x->targets.v[0] == before && metric_get(&x->metrics.reload_ok) == 1);
	int samples = atomic_load(&sink_samples);
	SERVE_UNTIL(atomic_load(&sink_samples) > samples);
	/* A wrong file changes nothing, and is looked at when it changes. */
	put_config("- {job_name: f}\n");
	SERVE_UNTIL(metric_get(&x->metrics.reload_ok) == 0);
	CHECK(look(x, "/good").count == 2);
	CHECK(scrape_reload(x, &e) == E_INVALID);
	CHECK(strstr(e.text, config_path) && strstr(e.text, "there is another job \"f\""));
	put_config("- {job_name: g}\n");
	SERVE_UNTIL(metric_get(&x->metrics.reload_ok) == 1);
	/* Nor does one that somebody else refuses. */
	const struct scrape_config *config = config_of(x);
	scrape_check_by(x, refuse_file);
	CHECK(scrape_reload(x, &e) == E_DENIED && config_of(x) == config);
	CHECK(metric_get(&x->metrics.reload_ok) == 0);
	scrape_check_by(x, NULL);
	CHECK_OK(scrape_reload(x, &e), &e);
	CHECK(look(x, "/good").count == 2);
	put(config_path, "scrape_configs:\n");
	SERVE_UNTIL(look(x, "").count == 0);
	scrape_stop(x);
	ingest_deinit(&in);
}

static void does_not_start_with_a_wrong_file(void **state)
{
	(void)state;
	struct scrape *x = NULL;
	struct err e = { 0 };
	put(config_path, "scrape_configs: [{}]\n");
	CHECK(scrape_start(config_path, sink_open(&in), NULL, &x, &e) == E_INVALID && !x);
	CHECK(strstr(e.text, "job_name is missing"));
	ingest_deinit(&in);
}

static int set_up(void **state)
{
	(void)state;
	CHECK(mkdtemp(dir));
	snprintf(config_path, sizeof(config_path), "%s/config.yaml", dir);
	snprintf(found_path, sizeof(found_path), "%s/found.yaml", dir);
	serve_make_profile();
	server = serve_start();
	return 0;
}

static int clean_up(void **state)
{
	(void)state;
	net_server_stop(server);
	buf_deinit(&serve_profile);
	return unlink(config_path) || unlink(found_path) || rmdir(dir);
}

TEST_PROGRAM()
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(costs_only_whoever_fails),
		cmocka_unit_test(finds_targets), cmocka_unit_test(reloads),
		cmocka_unit_test(does_not_start_with_a_wrong_file) };
	return cmocka_run_group_tests(tests, set_up, clean_up);
}
