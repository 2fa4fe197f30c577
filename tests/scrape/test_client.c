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
		struct client_config client;
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
		CHECK_OK(client_open(&c->client, NULL, &f, &e), &e);
		CHECK_OK(client_present(&c->client, f, -1, &e), &e);
		CHECK_OK(fetch_get(f, url, 60 * NS_PER_SEC, &code, &out, &e), &e);
		CHECK_CASE(c, str_eq(buf_view(&out), str_of(c->want)));
		fetch_free(f);
	}
	struct fetch *f = NULL;
	struct err e = { 0 };
	const struct client_config none = { .credentials_file = "/nowhere" };
	CHECK_OK(client_open(&none, NULL, &f, &e), &e);
	CHECK(client_present(&none, f, -1, &e) != OK && strstr(e.text, "/nowhere"));
	fetch_free(f);
	net_server_stop(s);
	CHECK(unlink(secret) == 0);
}

TEST_MAIN(cmocka_unit_test(presents_itself))
