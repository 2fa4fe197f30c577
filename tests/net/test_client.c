/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "os/os.h"

#include "net/state.h"
#include "peer.h"

#include <stdio.h>

#define MINUTE (60 * NS_PER_SEC)

static struct net_client *client_of(const char *address)
{
	struct net_client *c = NULL;
	struct err e;
	CHECK_OK(net_client_new(address, &c, &e), &e);
	return c;
}

static void calls(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct net_client *c = client_of(net_server_address(s));
	CLEANUP(buf_deinit) struct buf message, out;
	buf_init(&message, 64 << 20);
	buf_init(&out, 64 << 20);
	struct err e;
	bool retry = true;
	for (size_t len = 0; len <= 20 << 20; len = len * 30 + 1) {
		buf_clear(&message);
		buf_clear(&out);
		uint8_t *p = buf_extend(&message, len + 1);
		for (size_t i = 0; i <= len; i++)
			p[i] = (uint8_t)(i * 31 + (i >> 9));
		CHECK_OK(net_client_rpc(
				 c, "/t.Test/Echo", buf_view(&message), MINUTE, &out, &retry, &e),
			&e);
		CHECK(!retry);
		CHECK(str_eq(buf_view(&message), buf_view(&out)));
	}
	buf_clear(&out);
	CHECK_OK(net_client_rpc(c, "/t.Test/Large", STR(""), MINUTE, &out, &retry, &e), &e);
	assert_int_equal(out.len, 8 << 20);
	buf_clear(&out);
	CHECK_OK(net_client_rpc(c, "/t.Test/Text", STR(""), MINUTE, &out, &retry, &e), &e);
	assert_int_equal(out.len, 12000);
	assert_int_equal(peer_metric(s, "firn_net_connections_accepted_total"), 1);

	assert_int_equal(
		net_client_rpc(c, "/t.Test/Fail", STR(""), MINUTE, &out, &retry, &e), E_QUOTA);
	CHECK(retry);
	assert_string_equal(e.text, "too much of \"it\" \xC3\xA9");
	assert_int_equal(net_client_rpc(c, "/t.Test/None", STR(""), MINUTE, &out, &retry, &e),
		E_UNSUPPORTED);
	CHECK(!retry);
	net_client_free(c);
	net_server_stop(s);
}

/* Messages of a stream: `count` of `len` bytes; `first` before them; `fails_at`: that one fails. */
struct source {
	const char *first;
	size_t count, len, given, fails_at;
	char bytes[1 << 16];
};

static enum status next_message(void *ctx, struct str *out, bool *out_end, struct err *e)
{
	struct source *x = ctx;
	if (x->fails_at && x->given == x->fails_at)
		return err_set(e, E_IO, "the disk is gone");
	*out_end = x->given == x->count;
	*out = x->first && x->given == 0 ? str_of(x->first) : str_make(x->bytes, x->len);
	x->given += !*out_end;
	return OK;
}

static void sends_streams(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct source source;
		const char *path;
		enum status status;
		const char *says;
	} cases[] = {
		{ "none", { .count = 0 }, "/t.Test/Sum", OK, "0 in 0" },
		{ "empty", { .count = 3 }, "/t.Test/Sum", OK, "0 in 3" },
		{ "short", { .count = 5000, .len = 7 }, "/t.Test/Sum", OK, "35000 in 5000" },
		{ "long", { .count = 300, .len = 65536 }, "/t.Test/Sum", OK, "19660800 in 300" },
		{ "unknown", { .count = 300, .len = 65536 }, "/t.Test/None", E_UNSUPPORTED, "" },
		{ "broken", { .count = 30, .len = 9000, .fails_at = 20 }, "/t.Test/Sum", E_IO,
			"the disk is gone" },
		{ "broken at once", { .count = 2, .fails_at = 1 }, "/t.Test/Sum", E_IO,
			"the disk is gone" },
		/* The answer comes while messages are left. */
		{ "refused", { .first = "fail", .count = 3000, .len = 65536 }, "/t.Test/Chat",
			E_INVALID, "as you wish" },
	};
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct net_client *c = client_of(net_server_address(s));
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	FOR_EACH_CASE (x, cases) {
		static struct source source;
		struct err e = { 0 };
		bool retry;
		source = x->source;
		buf_clear(&out);
		enum status st = net_client_send(
			c, x->path, next_message, &source, MINUTE, &out, &retry, &e);
		CHECK_CASE(x, st == x->status);
		CHECK_CASE(x, st != OK || str_eq(buf_view(&out), str_of(x->says)));
		CHECK_CASE(x, st == OK || strstr(e.text, x->says));
		/* The client is good for other calls. */
		buf_clear(&out);
		CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
		CHECK_STR(buf_view(&out), "x");
	}
	net_client_free(c);
	net_server_stop(s);
}

static void sends_headers_of_its_own(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct net_client *c = client_of(net_server_address(s));
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 64 << 20);
	struct err e;
	bool retry;
	CHECK_OK(net_client_header(c, "X-Own", "one", &e), &e);
	CHECK_OK(net_client_header(c, "x-own", "two", &e), &e);
	CHECK_OK(net_client_rpc(c, "/t.Test/Own", STR(""), MINUTE, &out, &retry, &e), &e);
	CHECK_STR(buf_view(&out), "two");
	CHECK_OK(net_client_header(c, "X-OWN", NULL, &e), &e);
	buf_clear(&out);
	CHECK_OK(net_client_rpc(c, "/t.Test/Own", STR(""), MINUTE, &out, &retry, &e), &e);
	CHECK_STR(buf_view(&out), "");
	assert_int_equal(net_client_header(c, "a:b", "c", &e), E_INVALID);
	assert_int_equal(net_client_header(c, "token", "secret\r\nx: y", &e), E_INVALID);
	CHECK(!strstr(e.text, "secret"));
	for (int i = 0; i < NET_CLIENT_HEADERS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "h%d", i);
		CHECK_OK(net_client_header(c, name, "x", &e), &e);
	}
	assert_int_equal(net_client_header(c, "more", "x", &e), E_LIMIT);
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	net_client_limit(c, 1 << 20);
	buf_clear(&out);
	assert_int_equal(
		net_client_rpc(c, "/t.Test/Large", STR(""), MINUTE, &out, &retry, &e), E_LIMIT);
	net_client_free(c);
	net_server_stop(s);
}

static void times_out(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct net_client *c = client_of(net_server_address(s));
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	struct err e;
	bool retry = false;
	/* Whoever is first: the client gives up, or the server says that the deadline passed; also
	 * before a handler had the time to begin, and then there is more of it. */
	for (int64_t ns = 200 * NS_PER_MS; ns < MINUTE && !atomic_load(&peer_calls); ns *= 2) {
		assert_int_equal(net_client_rpc(c, "/t.Test/Wait", STR(""), ns, &out, &retry, &e),
			E_TIMEOUT);
		CHECK(retry);
	}
	int calls = atomic_load(&peer_calls);
	CHECK(calls > 0);
	PEER_UNTIL(atomic_load(&peer_canceled) >= calls);
	/* And goes on with a new connection. */
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	net_client_free(c);
	net_server_stop(s);
}

/* While the server holds still: nothing goes any more, or somebody does not want to wait. */
static void can_be_interrupted(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct net_client *c = client_of(net_server_address(s));
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	struct err e;
	bool retry = false;
	int wake[2];
	static struct source source = { .count = 30000, .len = 65536 };
	CHECK(pipe(wake) == 0);
	CHECK(net_client_connects(c) == 0);
	atomic_store(&peer_hold, true);
	net_client_interrupt(c, wake[0], 200 * NS_PER_MS);
	assert_int_equal(
		net_client_send(c, "/t.Test/Sum", next_message, &source, MINUTE, &out, &retry, &e),
		E_TIMEOUT);
	CHECK(retry && source.given > 0 && source.given < 3000);
	CHECK(net_client_connects(c) == 1);
	net_client_interrupt(c, wake[0], MINUTE);
	CHECK(write(wake[1], "x", 1) == 1);
	assert_int_equal(
		net_client_rpc(c, "/t.Test/Wait", STR(""), MINUTE, &out, &retry, &e), E_CANCELED);
	source.given = 0;
	assert_int_equal(
		net_client_send(c, "/t.Test/Sum", next_message, &source, MINUTE, &out, &retry, &e),
		E_CANCELED);
	atomic_store(&peer_hold, false);
	atomic_store(&peer_release, true);
	net_client_interrupt(c, -1, 0);
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	CHECK(net_client_connects(c) >= 2);
	close(wake[0]);
	close(wake[1]);
	net_client_free(c);
	net_server_stop(s);
}

static void reconnects(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	char address[160];
	snprintf(address, sizeof(address), "%s", net_server_address(s));
	struct net_client *c = client_of(address);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	struct err e;
	bool retry;
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	net_server_stop(s);
	assert_int_equal(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e),
		E_UNAVAILABLE);
	CHECK(retry);
	CHECK(strstr(e.text, "connect") != NULL);
	config.address = address;
	s = peer_start(&config);
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	/* The server restarts between two calls: the kept connection is dead, nobody notices. */
	net_server_stop(s);
	s = peer_start(&config);
	CHECK_OK(net_client_rpc(c, "/t.Test/Echo", STR("x"), MINUTE, &out, &retry, &e), &e);
	net_client_free(c);
	net_server_stop(s);
}

/* A server that accepts and answers with something else. */
struct fake {
	int fd;
	const char *answer;
	size_t len;
	pthread_t thread;
};

static void *fake_main(void *ctx)
{
	struct fake *f = ctx;
	char request[4096];
	int fd = accept(f->fd, NULL, NULL);
	if (fd >= 0 && recv(fd, request, sizeof(request), 0) > 0)
		(void)peer_send(fd, f->answer, f->len);
	close(fd);
	return NULL;
}

static enum status call_fake(const char *answer, size_t len, struct err *e)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t a_len = sizeof(a);
	struct fake f = { .fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), answer, len };
	CHECK(f.fd >= 0 && bind(f.fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
		listen(f.fd, 1) == 0 && getsockname(f.fd, (struct sockaddr *)&a, &a_len) == 0);
	CHECK_OK(os_thread_start(&f.thread, "fake", fake_main, &f, e), e);
	char address[40];
	snprintf(address, sizeof(address), "127.0.0.1:%d", ntohs(a.sin_port));
	struct net_client *c = client_of(address);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	bool retry;
	enum status s = net_client_rpc(c, "/x", STR("x"), MINUTE, &out, &retry, e);
	net_client_free(c);
	pthread_join(f.thread, NULL);
	close(f.fd);
	return s;
}

static void meets_other_servers(void **state)
{
	(void)state;
	struct err e;
	static const char http1[] = "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
	enum status s = call_fake(http1, sizeof(http1) - 1, &e);
	CHECK(s == E_INVALID || s == E_UNAVAILABLE);
	assert_int_equal(call_fake("", 0, &e), E_UNAVAILABLE);
	/* :status 200 and the end of the stream, no grpc-status. */
	static const char empty[] = "\0\0\0\4\0\0\0\0\0\0\0\1\1\5\0\0\0\1\x88";
	assert_int_equal(call_fake(empty, sizeof(empty) - 1, &e), E_UNAVAILABLE);
	CHECK(strstr(e.text, "200") != NULL);
}

static void refuses_addresses(void **state)
{
	(void)state;
	/* Before anything is sent: a mistake is told at the start of a program. */
	static const struct {
		const char *name, *why;
	} cases[] = {
		{ "unix:", "path must have 1 to" },
		{ "127.0.0.1", "address \"127.0.0.1\" has no :PORT" },
		{ "https://firn.example", "address \"firn.example\" has no :PORT" },
		{ "firn.example:99999", "address \"firn.example:99999\": \"99999\" is not a port" },
		{ "firn.example:", "\"\" is not a port" },
		{ "::1:7070", "an IPv6 address needs brackets: [::1]:7070" },
		{ "", "has no :PORT" },
	};
	FOR_EACH_CASE (x, cases) {
		struct err e = { 0 };
		struct net_client *c = NULL;
		CHECK_CASE(x, net_client_new(x->name, &c, &e) == E_INVALID && !c);
		CHECK_CASE(x, strstr(e.text, x->why));
	}
	struct err e = { 0 };
	struct net_client *c = NULL;
	CHECK_OK(net_client_new("https://firn.example:7070/", &c, &e), &e);
	net_client_free(c);
}

TEST_MAIN(cmocka_unit_test(calls), cmocka_unit_test(sends_streams),
	cmocka_unit_test(sends_headers_of_its_own), cmocka_unit_test(times_out),
	cmocka_unit_test(can_be_interrupted), cmocka_unit_test(reconnects),
	cmocka_unit_test(meets_other_servers), cmocka_unit_test(refuses_addresses))
