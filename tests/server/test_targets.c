/* SPDX-License-Identifier: Apache-2.0 */
/* What is scraped, as Parca says it; without a configuration file there are no targets. */
#include "test.h"

#include "ask.h"
#include "server/request/state.h"
#include "server/start.h"

#include <unistd.h>

static void answers(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct str body;
		enum status want;
	} cases[] = { { "any", { "", 0 }, OK }, { "active", { "\x08\x01", 2 }, OK },
		{ "more", { "\x08\x02\x12\x01x", 5 }, OK },
		{ "text", { "\x0a\x01x", 3 }, E_INVALID }, { "torn", { "\x08", 1 }, E_INVALID } };
	static struct server server;
	FOR_EACH_CASE (c, cases) {
		struct ask a;
		ask_init(&a, "/", "");
		a.r.is_rpc = true;
		a.r.body = c->body;
		server_targets(&server, &a.r, &a.out);
		CHECK_CASE(c, a.out.status == c->want);
		CHECK_CASE(c, a.out.status != OK || a.out.body.len == 0);
		ask_deinit(&a);
	}
}

static bool has(const struct buf *b, const char *text)
{
	return memmem(b->data, b->len, text, strlen(text)) != NULL;
}

static void tells_targets(void **state)
{
	(void)state;
	static struct server server;
	struct ingest_inlet *inlet;
	struct err e = { 0 };
	char path[] = "/tmp/firn-targets-XXXXXX";
	static const char yaml[] =
		"scrape_configs:\n- job_name: mine\n  scrape_interval: 1h\n"
		"  profiling_config: {pprof_config: {mutex: {enabled: false}}}\n"
		"  static_configs: [{targets: ['127.0.0.1:1'], labels: {env: prod}}]\n"
		"  file_sd_configs: [{files: ['/dev/null/no*']}]\n"
		"  relabel_configs:\n"
		"  - {source_labels: [__name__], regex: block, action: drop}\n";
	int fd = mkstemp(path);
	CHECK(fd >= 0 && write(fd, yaml, strlen(yaml)) > 0 && close(fd) == 0);
	const struct ingest_config config = { .limits = { .series = 1 } };
	CHECK_OK(ingest_init(&server.ingest, &config, &e), &e);
	CHECK_OK(ingest_inlet(&server.ingest, &scrape_protocol, &inlet, &e), &e);
	CHECK_OK(scrape_start(path, inlet, NULL, &server.scrape, &e), &e);
	atomic_store(&server.ready, true);
	for (char state_wanted = 0; state_wanted < 3; state_wanted++) {
		struct ask a;
		char body[] = { 0x08, state_wanted };
		ask_init(&a, "/", "");
		a.r.is_rpc = true;
		a.r.body = str_make(body, 2);
		server_targets(&server, &a.r, &a.out);
		CHECK(a.out.status == OK && has(&a.out.body, "mine"));
		CHECK(has(&a.out.body, "http://127.0.0.1:1/debug/pprof/allocs") ==
			(state_wanted != 2));
		CHECK(has(&a.out.body, "env") && has(&a.out.body, "prod"));
		CHECK(has(&a.out.body, "/debug/pprof/block") == (state_wanted != 1));
		CHECK(!has(&a.out.body, "/debug/pprof/mutex"));
		CHECK(has(&a.out.body, "\xc2\x3e\x18\n\x04mine\x12\x0estatic_configs\x18\x01"));
		CHECK(has(&a.out.body, "\xc2\x3e\x17\n\x04mine\x12\x0f"
				       "file_sd_configs"));
		ask_deinit(&a);
	}
	struct ask a;
	ask_init(&a, "/-/reload", "");
	server_handle_reload(&server, &a.r, &a.out);
	CHECK_STR(buf_view(&a.out.body), "ok\n");
	ask_deinit(&a);
	CHECK(truncate(path, 25) == 0); /* "- job_name" */
	ask_init(&a, "/-/reload", "");
	server_handle_reload(&server, &a.r, &a.out);
	CHECK(a.out.http_status == 400 && has(&a.out.body, path));
	ask_deinit(&a);
	scrape_stop(server.scrape);
	ingest_deinit(&server.ingest);
	CHECK(unlink(path) == 0);
}

TEST_MAIN(cmocka_unit_test(answers), cmocka_unit_test(tells_targets))
