/* SPDX-License-Identifier: Apache-2.0 */
#include "serve.h"

/* "user:pass", without and with padding; a token, its type, and files of secrets. */
static void presents_itself(void **state)
{
	(void)state;
	char secret[] = "/tmp/firn-scrape-XXXXXX";
	int fd = mkstemp(secret);
	CHECK(fd >= 0 && write(fd, "in-file\n", 8) == 8 && close(fd) == 0);
	const struct {
		const char *name;
		struct scrape_client client;
		const char *want;
	} cases[] = {
		{ "nobody", { 0 }, "" },
		{ "basic", { .username = "user", .password = "pass" }, "Basic dXNlcjpwYXNz" },
		{ "padded", { .username = "u", .password = "pw" }, "Basic dTpwdw==" },
		{ "once", { .username = "us", .password = "pw" }, "Basic dXM6cHc=" },
		{ "file", { .username = "u", .password_file = secret }, "Basic dTppbi1maWxl" },
		{ "token", { .credentials = "t" }, "Bearer t" },
		{ "type", { .auth_type = "Own", .credentials_file = secret }, "Own in-file" },
	};
	struct net_server *s = serve_start();
	char url[200];
	snprintf(url, sizeof(url), "http://%s/who", net_server_address(s));
	FOR_EACH_CASE (c, cases) {
		struct fetch *f = NULL;
		struct err e = { 0 };
		int code;
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1000);
		CHECK_OK(scrape_client_open(&c->client, &f, &e), &e);
		CHECK_OK(scrape_client_present(&c->client, f, &e), &e);
		CHECK_OK(fetch_get(f, url, 60 * NS_PER_SEC, &code, &out, &e), &e);
		CHECK_CASE(c, str_eq(buf_view(&out), str_of(c->want)));
		fetch_free(f);
	}
	struct fetch *f = NULL;
	struct err e = { 0 };
	const struct scrape_client none = { .credentials_file = "/nowhere" };
	CHECK_OK(scrape_client_open(&none, &f, &e), &e);
	CHECK(scrape_client_present(&none, f, &e) != OK && strstr(e.text, "/nowhere"));
	fetch_free(f);
	net_server_stop(s);
	CHECK(unlink(secret) == 0);
}

static void tells_changes_once_a_minute(void **state)
{
	(void)state;
	struct scrape_target t = { 0 };
	int64_t now = 5 * NS_PER_SEC;
	CHECK(!scrape_is_news(&t, false, now)); /* that it works is expected */
	CHECK(scrape_is_news(&t, true, now) && !scrape_is_news(&t, true, now + 1));
	CHECK(!scrape_is_news(&t, true, now + 10 * SCRAPE_TOLD_NS));
	now += SCRAPE_TOLD_NS;
	CHECK(!scrape_is_news(&t, false, now - 1));
	CHECK(scrape_is_news(&t, false, now) && !scrape_is_news(&t, true, now + 1));
	CHECK(scrape_is_news(&t, true, now + SCRAPE_TOLD_NS));
}

static void keeps_its_moments(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		int64_t last, now, want;
	} cases[] = {
		{ "the first", 0, 1005, 1007 },
		{ "the first, later", 0, 1008, 1017 },
		{ "at the first itself", 0, 1007, 1017 },
		{ "in time", 1007, 1009, 1017 },
		{ "a whole interval", 1007, 1018, 1017 },
		{ "nearly two", 1007, 1026, 1017 },
		{ "two", 1007, 1027, 1037 },
		{ "many", 1007, 1041, 1047 },
		{ "set back a little", 1007, 1007, 1017 },
		{ "set back", 1007, 905, 907 },
		{ "set forward", 1007, 5005, 5007 },
	};
	FOR_EACH_CASE (c, cases)
		CHECK_CASE(c, scrape_moment(27, 10, c->last, c->now) == c->want);
	/* Each of a hundred windows, when every scrape takes a bit more than one. */
	int64_t at = 0, now = 2000000;
	at = scrape_moment(5, 1000, 0, now);
	for (int64_t first = at, i = 1; i < 100; i++) {
		now = MAX(now, at) + 1002;
		at = scrape_moment(5, 1000, at, now);
		CHECK(at == first + i * 1000);
	}
}

TEST_MAIN(cmocka_unit_test(presents_itself), cmocka_unit_test(keeps_its_moments),
	cmocka_unit_test(tells_changes_once_a_minute))
