/* SPDX-License-Identifier: Apache-2.0 */
/* Against a real server on a Unix socket, which keeps the headers that came. */
#include "agent/send/remote.h"
#include "os/os.h"
#include "temp_dir.h"
#include "test.h"

struct server {
	char address[128];
	struct net_server *net;
	char authorization[256];
	char tenant[64];
};

static void note(void *ctx, const struct net_request *r, struct net_response *out)
{
	struct server *s = ctx;
	(void)out;
	snprintf(s->authorization, sizeof(s->authorization), "%.*s",
		STR_ARG(net_header_find(r, "authorization")));
	snprintf(
		s->tenant, sizeof(s->tenant), "%.*s", STR_ARG(net_header_find(r, "x-scope-orgid")));
}

static void start(struct server *s, const struct temp_dir *d)
{
	struct net_server_config c;
	struct err e;
	const struct net_route route = { "POST", "/a.B/C", note, s, .is_rpc = true };
	*s = (struct server){ .net = NULL };
	snprintf(s->address, sizeof(s->address), "unix:%s/socket", d->path);
	net_server_config_default(&c);
	c.address = s->address;
	CHECK_OK(net_server_start(&c, &route, 1, &s->net, &e), &e);
}

static void call(struct net_client *client)
{
	CLEANUP(buf_deinit) struct buf out;
	struct err e;
	bool retry = false;
	buf_init(&out, 1000);
	CHECK_OK(net_client_rpc(client, "/a.B/C", STR(""), 30000000000, &out, &retry, &e), &e);
}

static void write_file(const char *path, const char *text)
{
	struct err e;
	CHECK_OK(os_replace_file(path, text, strlen(text), 0600, &e), &e);
}

static void sends_headers_and_a_token(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct server s;
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	start(&s, &d);
	static const char *const headers[] = { "X-Scope-OrgID=team = a", NULL };
	const struct remote_config c = {
		.address = s.address, .token = "abc.def", .headers = headers
	};
	struct net_client *client = NULL;
	CHECK_OK(remote_open(&c, &client, &e), &e);
	CHECK_OK(remote_refresh(&c, client, &e), &e);
	call(client);
	CHECK_STR(str_of(s.authorization), "Bearer abc.def");
	CHECK_STR(str_of(s.tenant), "team = a");
	net_client_free(client);
	net_server_stop(s.net);
}

static void reads_the_token_again(void **state)
{
	(void)state;
	struct err e = { 0 };
	struct server s;
	char path[128];
	CLEANUP(temp_dir_deinit) struct temp_dir d;
	temp_dir_init(&d);
	start(&s, &d);
	snprintf(path, sizeof(path), "%s/token", d.path);
	const struct remote_config c = { .address = s.address, .token_file = path };
	struct net_client *client = NULL;
	CHECK_OK(remote_open(&c, &client, &e), &e);
	CHECK(remote_refresh(&c, client, &e) == E_NOTFOUND && strstr(e.text, "token file"));
	write_file(path, "one\n");
	CHECK_OK(remote_refresh(&c, client, &e), &e);
	call(client);
	CHECK_STR(str_of(s.authorization), "Bearer one");
	write_file(path, "  two");
	CHECK_OK(remote_refresh(&c, client, &e), &e);
	call(client);
	CHECK_STR(str_of(s.authorization), "Bearer two");
	static const struct {
		const char *name;
		const char *text;
	} bad[] = { { "nothing", "" }, { "blank", " \n" }, { "two lines", "a\nb" },
		{ "a bell", "a\ab" } };
	FOR_EACH_CASE (b, bad) {
		write_file(path, b->text);
		CHECK_CASE(b, remote_refresh(&c, client, &e) == E_INVALID);
	}
	char *big = calloc(1, REMOTE_TOKEN_BYTES_MAX + 1000);
	CHECK(big);
	memset(big, 'a', REMOTE_TOKEN_BYTES_MAX + 1);
	write_file(path, big);
	CHECK(remote_refresh(&c, client, &e) == E_INVALID);
	memset(big, 'a', REMOTE_TOKEN_BYTES_MAX + 900);
	write_file(path, big);
	CHECK(remote_refresh(&c, client, &e) == E_LIMIT);
	free(big);
	net_client_free(client);
	net_server_stop(s.net);
}

static void refuses_headers_that_are_none(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		const char *header;
	} cases[] = {
		{ "no value", "x" },
		{ "no name", "=x" },
		{ "gRPC's own", "grpc-timeout=1S" },
		{ "HTTP's own", "Content-Type=text/html" },
		{ "a blank", "a b=c" },
		{ "a line break", "a=b\r\nc: d" },
	};
	FOR_EACH_CASE (c, cases) {
		const char *const headers[] = { c->header, NULL };
		const struct remote_config config = { .address = "127.0.0.1:1",
			.headers = headers };
		struct net_client *client = NULL;
		struct err e = { 0 };
		CHECK_CASE(c, remote_open(&config, &client, &e) == E_INVALID && !client);
		CHECK_CASE(c, e.text[0]);
	}
	const struct remote_config token = { .address = "127.0.0.1:1", .token = "a b" };
	struct net_client *client = NULL;
	CHECK(remote_open(&token, &client, NULL) == E_INVALID && !client);
}

TEST_MAIN(cmocka_unit_test(sends_headers_and_a_token), cmocka_unit_test(reads_the_token_again),
	cmocka_unit_test(refuses_headers_that_are_none))
