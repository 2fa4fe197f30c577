/* SPDX-License-Identifier: Apache-2.0 */
/* The server's own profiles over HTTP: each is a pprof file, and one at a time is taken. */
#include "test.h"

#include <pthread.h>
#include <unistd.h>

#include "codec/codec.h"
#include "fetch/fetch.h"
#include "pprof/pprof.h"
#include "serve.h"

static int get(struct serve *v, const char *target, struct buf *out)
{
	struct fetch_config c = { .address = net_server_address(v->s.net) };
	struct fetch *f = NULL;
	struct err e = { 0 };
	int code = 0;
	CHECK_OK(fetch_new(&c, &f, &e), &e);
	CHECK_OK(fetch_get(f, target, 60 * NS_PER_SEC, &code, out, &e), &e);
	fetch_free(f);
	return code;
}

/* As pprof asks for the names of addresses. */
static int post(struct serve *v, const char *target, struct str body, struct buf *out)
{
	struct fetch_config c = { .address = net_server_address(v->s.net) };
	struct fetch *f = NULL;
	struct err e = { 0 };
	int code = 0;
	CHECK_OK(fetch_new(&c, &f, &e), &e);
	CHECK_OK(fetch_post(f, target, NULL, body, 60 * NS_PER_SEC, &code, out, &e), &e);
	fetch_free(f);
	return code;
}

static void check_profile(const struct buf *b, size_t heads)
{
	CLEANUP(buf_deinit) struct buf plain;
	struct profile p;
	struct err e = { 0 };
	buf_init(&plain, 64 << 20);
	CHECK_OK(profile_init(&p, 64 << 20), &e);
	CHECK_OK(codec_gunzip(b->data, b->len, &plain, &e), &e);
	CHECK_OK(pprof_decode(buf_view(&plain), STR("x"), &p, &e), &e);
	CHECK(p.heads.len == heads);
	profile_deinit(&p);
}

static void *ask_long(void *ctx)
{
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 64 << 20);
	while (get(ctx, "/debug/pprof/profile?seconds=2", &out) == 409)
		buf_clear(&out);
	check_profile(&out, 3); /* samples, cpu, and none */
	return NULL;
}

static void profiles_itself(void **state)
{
	(void)state;
	static struct serve v;
	CLEANUP(buf_deinit) struct buf out;
	pthread_t thread;
	int code = 0;
	buf_init(&out, 64 << 20);
	serve_start(&v);
	CHECK(get(&v, "/debug/pprof/heap", &out) == 200);
	check_profile(&out, 2);
	buf_clear(&out);
	CHECK(get(&v, "/debug/pprof/", &out) == 200);
	CHECK(memmem(out.data, out.len, "href=\"profile?seconds=30\"", 25));
	buf_clear(&out);
	CHECK(get(&v, "/debug/pprof/symbol", &out) == 200);
	CHECK_STR(buf_view(&out), "num_symbols: 0\n");
	buf_clear(&out);
	CHECK(post(&v, "/debug/pprof/symbol", STR("0x1000+0x2000"), &out) == 200);
	CHECK_STR(buf_view(&out), "num_symbols: 0\n");
	for (const char *const *bad = (const char *const[]){ "0", "301", "-1", "x", "", NULL };
		*bad; bad++) {
		char target[100];
		snprintf(target, sizeof(target), "/debug/pprof/profile?seconds=%s", *bad);
		buf_clear(&out);
		CHECK(get(&v, target, &out) == 400);
	}
	CHECK(pthread_create(&thread, NULL, ask_long, &v) == 0);
	for (int i = 0; i < 60 && code != 409; i++) { /* until they meet */
		buf_clear(&out);
		code = get(&v, "/debug/pprof/profile?seconds=1", &out);
		CHECK(code == 200 || code == 409);
	}
	CHECK(pthread_join(thread, NULL) == 0);
	serve_stop(&v);
}

/* Who goes before the end leaves no profile behind, which nobody else could take meanwhile. */
static void ends_with_its_client(void **state)
{
	(void)state;
	static struct serve v;
	CLEANUP(buf_deinit) struct buf out;
	struct fetch_config c = { 0 };
	struct fetch *f = NULL;
	struct err e = { 0 };
	int code = 0;
	buf_init(&out, 64 << 20);
	serve_start(&v);
	c.address = net_server_address(v.s.net);
	CHECK_OK(fetch_new(&c, &f, &e), &e);
	CHECK(fetch_get(f, "/debug/pprof/profile?seconds=300", NS_PER_SEC, &code, &out, &e) ==
		E_TIMEOUT);
	fetch_free(f);
	code = 0;
	for (int i = 0; i < 600 && code != 200; i++) {
		usleep(100000);
		buf_clear(&out);
		code = get(&v, "/debug/pprof/profile?seconds=1", &out);
	}
	CHECK(code == 200);
	serve_stop(&v);
}

TEST_MAIN(cmocka_unit_test(profiles_itself), cmocka_unit_test(ends_with_its_client))
