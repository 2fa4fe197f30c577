/* SPDX-License-Identifier: Apache-2.0 */
/* A scraper without a store hands what it fetched to one, with the labels of both, passes on what
 * others bring, and says so. */
#include "test.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "fetch/fetch.h"
#include "net/net.h"
#include "os/os.h"
#include "parca/parca.h"
#include "pprof/pprof.h"
#include "schema/schema.h"
#include "self/self.h"
#include "server/server.h"

#define UNTIL(x)                                                       \
	do {                                                           \
		int64_t end_ = clock_monotonic_ns() + 60 * NS_PER_SEC; \
		while (!(x) && clock_monotonic_ns() < end_)            \
			usleep(5000);                                  \
		CHECK(x);                                              \
	} while (0)

static atomic_int taken, refuses, hangs, hanging;
static char seen_token[100], seen_labels[1000];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The other side: WriteRaw, as firn and Parca have it. */
static void take(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct profile p;
	struct err e = { 0 };
	(void)ctx;
	while (atomic_load(&hangs) && !r->gone(r)) {
		atomic_store(&hanging, 1);
		usleep(5000);
	}
	if (atomic_load(&refuses)) {
		net_fail(out, err_set(&e, E_QUOTA, "too much"), &e);
		return;
	}
	CHECK_OK(profile_init(&p, 64 << 20), &e);
	CHECK_OK(parca_raw_decode(r->body, clock_realtime_ns(), &p, &e), &e);
	CHECK(p.samples.len > 0);
	const struct profile_labels *set = &p.label_sets.v[p.samples.v[0].resource];
	pthread_mutex_lock(&lock);
	struct str token = net_header_find(r, "authorization");
	snprintf(seen_token, sizeof(seen_token), "%.*s", STR_ARG(token));
	seen_labels[0] = 0;
	for (uint32_t i = 0; i < set->count; i++) {
		size_t len = strlen(seen_labels);
		const struct profile_label *l = &p.labels.v[set->first + i];
		snprintf(seen_labels + len, sizeof(seen_labels) - len, "%.*s=%.*s ",
			STR_ARG(profile_str(&p, l->name)), STR_ARG(profile_str(&p, l->value)));
	}
	pthread_mutex_unlock(&lock);
	profile_deinit(&p);
	atomic_fetch_add(&taken, 1);
}

static void serve_heap(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct profile p;
	struct err e = { 0 };
	(void)ctx;
	(void)r;
	CHECK_OK(profile_init(&p, SELF_BYTES_MAX), &e);
	CHECK_OK(self_heap(&p, &e), &e);
	/* A sanitizer's allocator has no sums. */
	struct profile_sample one = { .value = 1,
		.time_ns = clock_realtime_ns(),
		.head = (uint32_t)p.heads.len - 1,
		.stack = (uint32_t)p.stacks.len - 1 };
	CHECK(profile_add_sample(&p, &one) == OK);
	CHECK_OK(pprof_encode(&p, &out->body, &e), &e);
	profile_deinit(&p);
}

/* Answers with the parts of an upload, joined. */
static void take_upload(
	void *ctx, const struct net_request *r, struct net_stream *stream, struct net_response *out)
{
	struct err e = { 0 };
	struct str part;
	bool end = false;
	(void)ctx;
	CHECK_STR(net_header_find(r, "authorization"), "Bearer tok");
	while (!end) {
		CHECK_OK(net_stream_receive(stream, &part, &end, &e), &e);
		if (!end)
			buf_str(&out->body, part);
	}
}

static void answer(void *ctx, const struct net_request *r, struct net_response *out)
{
	(void)ctx;
	if (str_eq(r->body, STR("no"))) {
		struct err e = { 0 };
		net_fail(out, err_set(&e, E_DENIED, "not you"), &e);
	}
	buf_str(&out->body, r->body);
}

static enum status next_part(void *ctx, struct str *out, bool *out_end, struct err *e)
{
	int *at = ctx;
	(void)e;
	*out_end = ++*at > 3;
	*out = STR("part,");
	return OK;
}

static struct server_config config;
static struct server_forward to;
static volatile sig_atomic_t stop;
static int ready[2];

static void end(int signal)
{
	(void)signal;
	stop = 1;
}

static void *run(void *ctx)
{
	struct err e = { 0 };
	sigset_t ends;
	(void)ctx;
	sigemptyset(&ends);
	sigaddset(&ends, SIGUSR1);
	CHECK(pthread_sigmask(SIG_UNBLOCK, &ends, NULL) == 0);
	CHECK_OK(server_run_scraper(&config, &to, &stop, &e), &e);
	return NULL;
}

static void get(const char *address, const char *target, struct buf *out)
{
	struct fetch_config c = { .address = address };
	struct fetch *f = NULL;
	struct err e = { 0 };
	int code = 0;
	buf_clear(out);
	CHECK_OK(fetch_new(&c, &f, &e), &e);
	CHECK_OK(fetch_get(f, target, 60 * NS_PER_SEC, &code, out, &e), &e);
	buf_u8(out, 0);
	CHECK(code == 200);
	fetch_free(f);
}

static bool says(const char *address, const char *target, const char *text)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 16 << 20);
	get(address, target, &out);
	return strstr((const char *)out.data, text) != NULL;
}

#define DEBUGINFO "/parca.debuginfo.v1alpha1.DebuginfoService/"

/* As an agent sends: its own token is not the store's business. */
static void passes_on(const char *address)
{
	CLEANUP(buf_deinit) struct buf out;
	struct net_client *c = NULL;
	struct err e = { 0 };
	char url[300];
	bool retry;
	int at = 0;
	buf_init(&out, 1 << 20);
	snprintf(url, sizeof(url), "http://%s", address);
	CHECK_OK(net_client_new(url, &c, &e), &e);
	CHECK_OK(net_client_header(c, "authorization", "Bearer other", &e), &e);
	CHECK_OK(net_client_rpc(c, DEBUGINFO "InitiateUpload", STR("question"), 60 * NS_PER_SEC,
			 &out, &retry, &e),
		&e);
	CHECK_STR(buf_view(&out), "question");
	buf_clear(&out);
	CHECK(net_client_rpc(c, DEBUGINFO "InitiateUpload", STR("no"), 60 * NS_PER_SEC, &out,
		      &retry, &e) == E_DENIED);
	CHECK(strstr(e.text, "not you"));
	CHECK_OK(net_client_send(
			 c, DEBUGINFO "Upload", next_part, &at, 60 * NS_PER_SEC, &out, &retry, &e),
		&e);
	CHECK_STR(buf_view(&out), "part,part,part,");
	net_client_free(c);
	CHECK(says(address, "/metrics", "firn_forward_calls_total 2"));
	CHECK(says(address, "/metrics", "firn_forward_calls_failed_total 1"));
}

static void write_jobs(const char *path, const char *target, const char *label)
{
	FILE *f = fopen(path, "w");
	CHECK(f);
	fprintf(f,
		"scrape_configs:\n- job_name: j\n  scrape_interval: 1s\n  static_configs: "
		"[{targets: ['%s'], labels: {l: %s}}]\n  profiling_config: {pprof_config: {block: "
		"{enabled: false}, goroutine: {enabled: false}, mutex: {enabled: false}, "
		"process_cpu: "
		"{enabled: false}, memory: {path: /heap, keep_sample_type: [{type: inuse_space, "
		"unit: bytes}]}}}\n",
		target, label);
	CHECK(fclose(f) == 0);
}

static void reload(const char *address)
{
	CLEANUP(buf_deinit) struct buf out;
	struct fetch_config c = { .address = address };
	struct fetch *f = NULL;
	struct err e = { 0 };
	int code = 0;
	buf_init(&out, 1 << 20);
	CHECK_OK(fetch_new(&c, &f, &e), &e);
	CHECK_OK(fetch_post(f, "/-/reload", NULL, STR(""), 60 * NS_PER_SEC, &code, &out, &e), &e);
	CHECK(code == 200);
	fetch_free(f);
}

/* What is not passed on gets a sentence. */
static void refuses_by_name(const char *address)
{
	CLEANUP(buf_deinit) struct buf out;
	struct fetch_config c = { .address = address };
	struct fetch *f = NULL;
	struct err e = { 0 };
	int code = 0;
	buf_init(&out, 1 << 20);
	CHECK_OK(fetch_new(&c, &f, &e), &e);
	CHECK_OK(fetch_post(f, "/v1development/profiles", NULL, STR(""), 60 * NS_PER_SEC, &code,
			 &out, &e),
		&e);
	CHECK(code == 501 && memmem(out.data, out.len, "--mode scraper-only", 19));
	fetch_free(f);
	/* Parca's stream of agents before 2026. */
	struct net_client *client = NULL;
	char url[300];
	bool retry;
	int at = 0;
	snprintf(url, sizeof(url), "http://%s", address);
	buf_clear(&out);
	CHECK_OK(net_client_new(url, &client, &e), &e);
	CHECK(net_client_send(client, "/parca.profilestore.v1alpha1.ProfileStoreService/Write",
		      next_part, &at, 60 * NS_PER_SEC, &out, &retry, &e) == E_UNSUPPORTED);
	CHECK(strstr(e.text, "--mode scraper-only"));
	net_client_free(client);
}

static void hands_on(void **state)
{
	(void)state;
	const struct net_route routes[] = {
		{ .method = "POST",
			.path = "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw",
			.fn = take,
			.is_rpc = true },
		{ .method = "POST",
			.path = DEBUGINFO "InitiateUpload",
			.fn = answer,
			.is_rpc = true },
		{ .method = "POST",
			.path = DEBUGINFO "Upload",
			.stream_fn = take_upload,
			.rpc = pb_service_find(&schema_parca_debuginfo, "Upload"),
			.is_rpc = true },
		{ .method = "GET", .path = "/heap", .fn = serve_heap },
	};
	struct net_server_config c;
	struct net_server *store = NULL;
	struct err e = { 0 };
	pthread_t thread;
	char path[] = "/tmp/firn-scraper-XXXXXX", address[256] = "", store_address[256];
	int fd = mkstemp(path);
	net_server_config_default(&c);
	c.address = "127.0.0.1:0";
	CHECK_OK(net_server_start(&c, routes, ARRAY_COUNT(routes), &store, &e), &e);
	snprintf(store_address, sizeof(store_address), "%s", net_server_address(store));
	CHECK(fd >= 0 && pipe(ready) == 0);
	write_jobs(path, net_server_address(store), "one");
	server_config_default(&config);
	config.http_address = "127.0.0.1:0";
	config.config_path = path;
	config.ready_fd = ready[1];
	to = (struct server_forward){ .address = store_address, .token = "tok", .insecure = true };
	to.labels[to.label_count].name = "region";
	to.labels[to.label_count++].value = "eu";
	to.labels[to.label_count].name = "job"; /* the target's own wins */
	to.labels[to.label_count++].value = "other";
	(void)signal(SIGUSR1, end);
	CHECK_OK(os_thread_start(&thread, "scraper", run, NULL, &e), &e);
	CHECK(read(ready[0], address, sizeof(address) - 1) > 0);
	address[strcspn(address, "\n")] = 0;
	UNTIL(atomic_load(&taken) >= 2);
	pthread_mutex_lock(&lock);
	CHECK_STR(str_of(seen_token), "Bearer tok");
	CHECK(strstr(seen_labels, "job=j ") && strstr(seen_labels, "region=eu "));
	CHECK(strstr(seen_labels, "instance=127.0.0.1:"));
	pthread_mutex_unlock(&lock);
	CHECK(says(address, "/ready", "ready"));
	CHECK(says(address, "/api/targets", "HEALTH_GOOD"));
	CHECK(!says(address, "/metrics", "firn_forward_profiles_total 0"));
	atomic_store(&refuses, 1);
	UNTIL(says(address, "/api/targets", "too much"));
	CHECK(!says(address, "/metrics", "firn_forward_profiles_lost_total 0"));
	passes_on(address);
	refuses_by_name(address);
	/* A store that says nothing keeps it neither from reading its file again nor from ending: a
	 * call may take 30 s. */
	atomic_store(&hangs, 1);
	UNTIL(atomic_load(&hanging));
	int64_t begun_ns = clock_monotonic_ns();
	write_jobs(path, net_server_address(store), "two");
	reload(address);
	CHECK(clock_monotonic_ns() - begun_ns < 20 * NS_PER_SEC);
	atomic_store(&hanging, 0);
	UNTIL(atomic_load(&hanging));
	begun_ns = clock_monotonic_ns();
	CHECK(pthread_kill(thread, SIGUSR1) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	CHECK(clock_monotonic_ns() - begun_ns < 20 * NS_PER_SEC);
	net_server_stop(store);
	CHECK(close(fd) == 0 && unlink(path) == 0 && close(ready[0]) == 0 && close(ready[1]) == 0);
}

TEST_MAIN(cmocka_unit_test(hands_on))
