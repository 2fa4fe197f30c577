/* SPDX-License-Identifier: Apache-2.0 */
/* The whole server in this process, from an OTLP message to the API's answers, over sockets. */
#include "test.h"

#include "base/clock.h"
#include "codec/codec.h"
#include "fetch/fetch.h"
#include "os/os.h"
#include "otlp/otlp.h"

#include "ask.h"
#include "server/receive/otlp.h"
#include "server/server.h"

#include <ftw.h>
#include <poll.h>
#include <unistd.h>

#define MINUTE (60 * NS_PER_SEC)
#define TYPE "parca_agent%3Asamples%3Acount%3Acpu%3Ananoseconds%3Adelta"

struct run {
	char dir[64];
	struct server_config config;
	volatile sig_atomic_t stop;
	pthread_t thread;
	int ready[2];
	char address[160];
	struct net_client *client;
	struct fetch *http;
	struct buf out;
	int http_status;
	enum status status;
	struct err e;
};

static void *run_main(void *ctx)
{
	struct run *r = ctx;
	r->status = server_run(&r->config, &r->stop, &r->e);
	return NULL;
}

static void start(struct run *r)
{
	CHECK(pipe(r->ready) == 0);
	server_config_default(&r->config);
	r->config.http_address = "127.0.0.1:0";
	r->config.storage_path = r->dir;
	r->config.ready_fd = r->ready[1];
	r->stop = 0;
	struct err e;
	CHECK_OK(os_thread_start(&r->thread, "server", run_main, r, &e), &e);
	struct pollfd p = { .fd = r->ready[0], .events = POLLIN };
	CHECK(poll(&p, 1, 60000) == 1);
	ssize_t n = read(r->ready[0], r->address, sizeof(r->address) - 1);
	CHECK(n > 1 && r->address[n - 1] == '\n');
	r->address[n - 1] = 0;
	CHECK_OK(net_client_new(r->address, &r->client, &e), &e);
	CHECK_OK(fetch_new(&(struct fetch_config){ .address = r->address }, &r->http, &e), &e);
	buf_init(&r->out, 64 << 20);
}

/* A signal's handler would do this; for a sanitizer it is another thread. */
static __attribute__((no_sanitize("thread"))) void raise_stop(struct run *r)
{
	r->stop = 1;
}

static void stop(struct run *r)
{
	net_client_free(r->client);
	fetch_free(r->http);
	buf_deinit(&r->out);
	raise_stop(r);
	pthread_join(r->thread, NULL);
	CHECK_OK(r->status, &r->e);
	close(r->ready[0]);
	close(r->ready[1]);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

/* The answer's body, with a NUL behind it. */
static const char *get(struct run *r, const char *path)
{
	struct err e;
	buf_clear(&r->out);
	CHECK_OK(fetch_get(r->http, path, MINUTE, &r->http_status, &r->out, &e), &e);
	buf_u8(&r->out, 0);
	r->out.len--;
	return r->out.data ? (const char *)r->out.data : "";
}

static void expect(const char *text, const char *part)
{
	if (strstr(text, part))
		return;
	print_error("\"%s\" is not in:\n%.2000s\n", part, text ? text : "");
	_fail(__FILE__, __LINE__);
}

/* Two stacks of named functions: main > work (30 samples) and main > wait (12), 19 Hz. */
static void make_message(struct buf *out)
{
	struct profile p;
	uint32_t s[9], type, head, loc[3], stack, labels;
	static const char *const texts[] = { "parca_agent", "samples", "count", "cpu",
		"nanoseconds", "main", "work", "wait", "comm" };
	CHECK(profile_init(&p, 1 << 24) == OK);
	for (int i = 0; i < 9; i++)
		CHECK(profile_add_string(&p, str_of(texts[i]), &s[i]) == OK);
	struct profile_type t = { s[0], s[1], s[2], s[3], s[4], true };
	CHECK(profile_add_type(&p, &t, &type) == OK);
	struct profile_head h = { type, 52631578, clock_realtime_ns() - 5 * NS_PER_SEC,
		NS_PER_SEC };
	CHECK(profile_add_head(&p, &h, &head) == OK);
	for (int i = 0; i < 3; i++) {
		struct profile_function f = { .name = s[5 + i] };
		struct profile_line line = { .line = 1 };
		struct profile_location l = { .address = 0x1000u * (unsigned)(i + 1),
			.kind = FRAME_NATIVE };
		CHECK(profile_add_function(&p, &f, &line.function) == OK);
		CHECK(profile_add_location(&p, &l, &line, 1, &loc[i]) == OK);
	}
	struct profile_label label = { s[8], s[6] };
	CHECK(profile_add_labels(&p, &label, 1, &labels) == OK);
	for (int i = 0; i < 2; i++) {
		uint32_t frames[2] = { loc[1 + i], loc[0] };
		CHECK(profile_add_stack(&p, frames, 2, &stack) == OK);
		struct profile_sample sample = { i ? 12 : 30, h.time_ns, head, stack, labels, 0,
			0 };
		CHECK(profile_add_sample(&p, &sample) == OK);
	}
	CHECK(otlp_encode(&p, out) == OK);
	profile_deinit(&p);
}

static void check_answers(struct run *r)
{
	expect(get(r, "/api/types"), "parca_agent:samples:count:cpu:nanoseconds:delta");
	expect(get(r, "/api/labels"), "\"comm\"");
	expect(get(r, "/api/labels/comm/values"), "\"work\"");
	assert_int_equal(r->http_status, 200);
	/* 42 samples of 52,631,578 ns */
	expect(get(r, "/api/flamegraph?query=" TYPE), "\"total\":2210526276");
	expect(get(r, "/api/flamegraph?format=folded&query=" TYPE), "main;work 1578947340");
	expect(get(r, "/api/top?query=" TYPE "%7Bcomm%3D%22work%22%7D"), "\"total\":2210526276");
	expect(get(r, "/api/series?by=comm&query=" TYPE), "{\"comm\":\"work\"}");
	expect(get(r, "/api/top?query=" TYPE "%7Bcomm%3D%22other%22%7D"), "\"total\":0");
	CLEANUP(buf_deinit) struct buf plain;
	struct err e;
	buf_init(&plain, 1 << 20);
	(void)get(r, "/api/pprof?query=" TYPE);
	assert_int_equal(r->http_status, 200);
	CHECK(codec_is_gzip(r->out.data, r->out.len));
	CHECK_OK(codec_gunzip(r->out.data, r->out.len, &plain, &e), &e);
	CHECK(memmem(plain.data, plain.len, "work", 4));
}

static void serves_the_whole_path(void **state)
{
	(void)state;
	struct run r = { .dir = "/tmp/firn-server-XXXXXX" };
	CHECK(mkdtemp(r.dir) != NULL);
	start(&r);
	expect(get(&r, "/healthy"), "healthy");
	expect(get(&r, "/ready"), "ready");
	CHECK(strlen(get(&r, "/")) > 10);
	assert_int_equal(r.http_status, 200);
	(void)get(&r, "/nothing");
	assert_int_equal(r.http_status, 404);
	(void)get(&r, "/api/flamegraph?query=%7B");
	assert_int_equal(r.http_status, 400);

	CLEANUP(buf_deinit) struct buf message, answer;
	buf_init(&message, 1 << 20);
	buf_init(&answer, 1 << 20);
	make_message(&message);
	/* Sent twice, as after a lost answer: stored once. */
	for (int i = 0; i < 2; i++) {
		struct otlp_rejects rejects;
		bool retry;
		struct err e;
		buf_clear(&answer);
		CHECK_OK(net_client_rpc(r.client, SERVER_OTLP_GRPC, buf_view(&message), MINUTE,
				 &answer, &retry, &e),
			&e);
		CHECK_OK(otlp_decode_response(buf_view(&answer), &rejects, &e), &e);
		assert_int_equal(rejects.profiles, 0);
	}
	check_answers(&r);
	const char *figures = get(&r, "/metrics");
	expect(figures, "\nfirn_store_samples_total 2\n");
	expect(figures, "\nfirn_store_duplicate_batches_total 1\n");
	expect(figures, "\nfirn_symbolizer_");
	stop(&r);
	/* Another process of the same folder, later: everything is still there. */
	start(&r);
	check_answers(&r);
	stop(&r);
	CHECK(nftw(r.dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static void says_why_it_cannot_start(void **state)
{
	(void)state;
	struct server_config c;
	volatile sig_atomic_t stop_now = 0;
	struct err e = { 0 };
	server_config_default(&c);
	c.storage_path = "/proc/no/such/folder";
	c.http_address = "127.0.0.1:0";
	CHECK(server_run(&c, &stop_now, &e) != OK);
	CHECK(strstr(e.text, "/proc/no") != NULL);
	c.http_address = "127.0.0.1";
	CHECK(server_run(&c, &stop_now, &e) == E_INVALID);
	CHECK(strstr(e.text, "listen") != NULL);
}

TEST_MAIN(cmocka_unit_test(serves_the_whole_path), cmocka_unit_test(says_why_it_cannot_start))
