/* SPDX-License-Identifier: Apache-2.0 */
/* Against our own server, and against answers written by hand. */
#include "test.h"

#include "fetch/fetch.h"
#include "net/certificate.h"
#include "net/peer.h"

#include <pthread.h>

#define MINUTE (60 * NS_PER_SEC)

static struct fetch *fetch_of(const char *address)
{
	struct fetch *f = NULL;
	struct err e = { 0 };
	CHECK_OK(fetch_new(&(struct fetch_config){ .address = address }, &f, &e), &e);
	return f;
}

/* Pieces of a body: `count` of `len` bytes; `fails_at`: that one fails. */
struct source {
	size_t count, len, given, fails_at;
	int wake_at, wake_fd;
	char bytes[1 << 16];
};

static enum status next_piece(void *ctx, struct str *out, bool *out_end, struct err *e)
{
	struct source *x = ctx;
	if (x->fails_at && x->given == x->fails_at)
		return err_set(e, E_CORRUPT, "the disk is gone");
	if (x->wake_at && x->given == (size_t)x->wake_at)
		CHECK(write(x->wake_fd, "x", 1) == 1);
	*out_end = x->given == x->count;
	*out = str_make(x->bytes, x->len);
	x->given += !*out_end;
	return OK;
}

static void puts_bodies_in_pieces(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		struct source source;
		const char *path;
		enum status status;
		int code;
		const char *says;
	} cases[] = {
		{ "empty", { .count = 0 }, "/put?sig=a%2Fb", OK, 200, "0 bytes, last -1" },
		{ "short", { .count = 1, .len = 1 }, "/put", OK, 200, "1 bytes, last 0" },
		{ "pieces", { .count = 5000, .len = 7 }, "/put", OK, 200, "35000 bytes, last 0" },
		{ "long", { .count = 300, .len = 65536 }, "/put", OK, 200,
			"19660800 bytes, last 0" },
		{ "unknown", { .count = 1, .len = 10 }, "/nowhere", OK, 404, "" },
		{ "broken", { .count = 30, .len = 9000, .fails_at = 20 }, "/put", E_CORRUPT, 0,
			"the disk is gone" },
	};
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct fetch *f = fetch_of(net_server_address(s));
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	FOR_EACH_CASE (x, cases) {
		static struct source source;
		struct err e = { 0 };
		int code = 0;
		source = x->source;
		buf_clear(&out);
		enum status st = fetch_put(f, x->path, x->source.count * x->source.len, next_piece,
			&source, MINUTE, &code, &out, &e);
		CHECK_CASE(x, st == x->status && code == x->code);
		CHECK_CASE(x, code != 200 || str_eq(buf_view(&out), str_of(x->says)));
		CHECK_CASE(x, st == OK || strstr(e.text, x->says));
		/* It is good for other calls. */
		buf_clear(&out);
		CHECK_OK(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), &e);
		assert_int_equal(code, 200);
	}
	fetch_free(f);
	net_server_stop(s);
}

static void gets_and_posts(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	char url[200];
	snprintf(url, sizeof(url), "http://%s/", net_server_address(s));
	setenv("SSL_CERT_FILE", "/none", 1); /* is not needed */
	struct fetch *f = fetch_of(url);
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 64 << 20);
	struct err e = { 0 };
	int code;
	for (int i = 0; i < 3; i++) {
		buf_clear(&out);
		CHECK_OK(fetch_get(f, "/show/x?y", MINUTE, &code, &out, &e), &e);
		assert_int_equal(code, 200);
		CHECK_STR(buf_view(&out), "GET /show/x?y");
		CHECK_STR(str_of(fetch_content_type(f)), "text/plain");
	}
	buf_clear(&out);
	CHECK_OK(fetch_get(f, "/none", MINUTE, &code, &out, &e), &e);
	assert_int_equal(code, 404);
	buf_clear(&out);
	CHECK_OK(fetch_get(f, "/large", MINUTE, &code, &out, &e), &e);
	assert_int_equal(out.len, 8 << 20);
	buf_clear(&out);
	CHECK_OK(fetch_post(f, "/echo", NULL, STR("a\0b"), MINUTE, &code, &out, &e), &e);
	CHECK(str_eq(buf_view(&out), STR("a\0b")));
	buf_clear(&out);
	CHECK_OK(fetch_post(f, "/echo", "a/b", STR(""), MINUTE, &code, &out, &e), &e);
	assert_int_equal(code, 200);
	assert_int_equal(peer_metric(s, "firn_net_connections_accepted_total"), 1);
	fetch_limit(f, 1 << 20);
	assert_int_equal(fetch_get(f, "/large", MINUTE, &code, &out, &e), E_LIMIT);
	CHECK(strstr(e.text, "longer than 1048576 bytes"));
	assert_int_equal(fetch_get(f, "/show/a b", MINUTE, &code, &out, &e), E_INVALID);
	assert_int_equal(fetch_get(f, "/show/a\r\nb: c", MINUTE, &code, &out, &e), E_INVALID);
	fetch_free(f);
	unsetenv("SSL_CERT_FILE");
	/* Whole URLs, and a server that comes back. */
	snprintf(url, sizeof(url), "http://%s/show/x", net_server_address(s));
	CHECK_OK(fetch_new(&(struct fetch_config){ 0 }, &f, &e), &e);
	CHECK_OK(fetch_get(f, url, MINUTE, &code, &out, &e), &e);
	char address[160];
	snprintf(address, sizeof(address), "%s", net_server_address(s));
	net_server_stop(s);
	assert_int_equal(fetch_get(f, url, MINUTE, &code, &out, &e), E_UNAVAILABLE);
	CHECK(strstr(e.text, "127.0.0.1"));
	config.address = address;
	s = peer_start(&config);
	CHECK_OK(fetch_get(f, url, MINUTE, &code, &out, &e), &e);
	fetch_free(f);
	net_server_stop(s);
}

static void sends_headers_of_its_own(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct fetch *f = fetch_of(net_server_address(s));
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	struct err e = { 0 };
	int code;
	CHECK_OK(fetch_header(f, "X-Own", "one", &e), &e);
	CHECK_OK(fetch_header(f, "x-own", "two", &e), &e);
	CHECK_OK(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), &e);
	CHECK_STR(buf_view(&out), "GET /show/x? two");
	CHECK_OK(fetch_header(f, "X-OWN", NULL, &e), &e);
	buf_clear(&out);
	CHECK_OK(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), &e);
	CHECK_STR(buf_view(&out), "GET /show/x?");
	assert_int_equal(fetch_header(f, "a:b", "c", &e), E_INVALID);
	assert_int_equal(fetch_header(f, "token", "secret\r\nx: y", &e), E_INVALID);
	CHECK(!strstr(e.text, "secret"));
	for (int i = 0; i < FETCH_HEADERS_MAX; i++) {
		char name[16];
		snprintf(name, sizeof(name), "h%d", i);
		CHECK_OK(fetch_header(f, name, "x", &e), &e);
	}
	assert_int_equal(fetch_header(f, "more", "x", &e), E_LIMIT);
	fetch_free(f);
	net_server_stop(s);
}

static void can_be_interrupted(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct fetch *f = fetch_of(net_server_address(s));
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1000);
	struct err e = { 0 };
	int code, wake[2];
	char byte;
	CHECK(pipe(wake) == 0);
	atomic_store(&peer_release, false);
	assert_int_equal(fetch_get(f, "/wait?secret", 200 * NS_PER_MS, &code, &out, &e), E_TIMEOUT);
	CHECK(!strstr(e.text, "secret"));
	PEER_UNTIL(atomic_load(&peer_canceled) >= 1);
	fetch_interrupt(f, wake[0], 200 * NS_PER_MS);
	assert_int_equal(fetch_get(f, "/wait", MINUTE, &code, &out, &e), E_TIMEOUT);
	fetch_interrupt(f, wake[0], MINUTE);
	CHECK(write(wake[1], "x", 1) == 1);
	assert_int_equal(fetch_get(f, "/wait", MINUTE, &code, &out, &e), E_CANCELED);
	CHECK(read(wake[0], &byte, 1) == 1);
	/* Also while the socket always takes more: it is we who are slow. */
	static struct source source = { .count = 30000, .len = 1000, .wake_at = 20 };
	source.wake_fd = wake[1];
	assert_int_equal(
		fetch_put(f, "/put", 30000 * 1000, next_piece, &source, MINUTE, &code, &out, &e),
		E_CANCELED);
	CHECK(source.given >= 20 && source.given < 10000);
	fetch_interrupt(f, -1, 0);
	CHECK_OK(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), &e);
	close(wake[0]);
	close(wake[1]);
	fetch_free(f);
	net_server_stop(s);
}

/* ---- a server that accepts once and sends what the test says ---- */

struct fake {
	int fd;
	const char *answer;
	size_t repeat; /* the answer's last part again and again, until nobody takes it */
	int slow;      /* so often only, with 20 ms in between; 0: see above */
	pthread_t thread;
	char url[64];
};

/* Many repeats at a time: a system call for each takes most of the time. */
static size_t fake_repeats(const struct fake *f, char *out, size_t max)
{
	const char *part = f->answer + strlen(f->answer) - f->repeat;
	size_t len = 0;
	while (f->repeat && len + f->repeat <= (f->slow ? f->repeat : max)) {
		memcpy(out + len, part, f->repeat);
		len += f->repeat;
	}
	return len;
}

static void *fake_main(void *ctx)
{
	struct fake *f = ctx;
	char request[4096], repeats[4096];
	int fd = accept(f->fd, NULL, NULL);
	size_t len = strlen(f->answer), again = fake_repeats(f, repeats, sizeof(repeats));
	if (fd >= 0 && recv(fd, request, sizeof(request), 0) > 0 &&
		send(fd, f->answer, len, MSG_NOSIGNAL) == (ssize_t)len)
		for (int n = 1; f->repeat && n != f->slow &&
				send(fd, repeats, again, MSG_NOSIGNAL) == (ssize_t)again;
			n++)
			usleep(f->slow ? 20000 : 0);
	close(fd);
	return NULL;
}

static void fake_start(struct fake *f)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	struct err e;
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(f->fd >= 0 && bind(f->fd, (struct sockaddr *)&a, sizeof(a)) == 0 &&
		listen(f->fd, 1) == 0 && getsockname(f->fd, (struct sockaddr *)&a, &len) == 0);
	snprintf(f->url, sizeof(f->url), "http://127.0.0.1:%d", ntohs(a.sin_port));
	CHECK_OK(os_thread_start(&f->thread, "fake", fake_main, f, &e), &e);
}

static void fake_stop(struct fake *f)
{
	pthread_join(f->thread, NULL);
	close(f->fd);
}

/* clang-format off */
static const struct {
	const char *name, *answer;
	size_t repeat;
	const char *body;
	enum status status;
} answers[] = {
	{ "length",      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", 0, "abc", OK },
	{ "chunks",      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", 0, "abc", OK },
	{ "until close", "HTTP/1.0 200 OK\r\n\r\nabc", 0, "abc", OK },
	{ "continue",    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 0, "", OK },
	{ "no body",     "HTTP/1.1 204 No\r\n\r\n", 0, "", OK },
	{ "cut",         "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", 0, NULL, E_UNAVAILABLE },
	{ "too long",    "HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", 0, NULL, E_LIMIT },
	{ "endless",     "HTTP/1.1 200 OK\r\n\r\nabc", 3, NULL, E_LIMIT },
	{ "endless head", "HTTP/1.1 200 OK\r\na: b\r\n", 6, NULL, E_LIMIT },
	{ "endless line", "HTTP/1.1 200 OK\r\na: b", 1, NULL, E_LIMIT },
	{ "endless wait", "HTTP/1.1 100 Continue\r\n\r\n", 25, NULL, E_LIMIT },
	{ "no HTTP",     "SSH-2.0-x\r\n\r\n", 0, NULL, E_INVALID },
	{ "bad chunk",   "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", 0, NULL, E_UNAVAILABLE },
	{ "nothing",     "", 0, NULL, E_UNAVAILABLE },
};
/* clang-format on */

static void judges_answers(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, answers) {
		struct fake x = { .answer = c->answer, .repeat = c->repeat };
		struct err e = { 0 };
		CLEANUP(buf_deinit) struct buf out;
		int code;
		buf_init(&out, 1000);
		fake_start(&x);
		struct fetch *f = fetch_of(x.url);
		fetch_limit(f, 100);
		enum status s = fetch_get(f, "/x", MINUTE, &code, &out, &e);
		if (s != c->status)
			print_error("[%s] %s: %s\n", c->name, status_name(s), e.text);
		CHECK_CASE(c, s == c->status);
		CHECK_CASE(c, s != OK || str_eq(buf_view(&out), str_of(c->body)));
		fetch_free(f);
		fake_stop(&x);
	}
}

/* What goes on for ever comes in pieces, as fast as it is asked for. */
static void reads_answers_without_an_end(void **state)
{
	(void)state;
	struct fake x = { .answer = "HTTP/1.1 200 OK\r\n\r\n0123456789", .repeat = 10 };
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	int code = 0;
	bool end = false;
	size_t bytes = 0;
	buf_init(&out, 4 * FETCH_PIECE_MAX);
	fake_start(&x);
	struct fetch *f = fetch_of(x.url);
	CHECK(fetch_more(f, -1, MINUTE, &out, &end, &e) == E_UNAVAILABLE);
	CHECK_OK(fetch_begin(f, "/x", MINUTE, &code, &e), &e);
	CHECK(code == 200);
	while (bytes < 3 << 20) {
		CHECK_OK(fetch_more(f, -1, MINUTE, &out, &end, &e), &e);
		CHECK(!end && out.len && out.len <= 2 * FETCH_PIECE_MAX);
		for (size_t i = 0; i < out.len; i++)
			CHECK(out.data[i] == '0' + (bytes + i) % 10);
		bytes += out.len;
		buf_clear(&out);
	}
	fetch_free(f);
	fake_stop(&x);
	/* One that ends, and one that breaks off. */
	for (int i = 0; i < 2; i++) {
		x = (struct fake){ .answer = i ? "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc"
					       : "HTTP/1.1 200 OK\r\n\r\nabc" };
		fake_start(&x);
		f = fetch_of(x.url);
		buf_clear(&out);
		end = false;
		CHECK_OK(fetch_begin(f, "/x", MINUTE, &code, &e), &e);
		enum status s = OK;
		while (s == OK && !end)
			s = fetch_more(f, -1, MINUTE, &out, &end, &e);
		CHECK(s == (i ? E_UNAVAILABLE : OK));
		CHECK_STR(buf_view(&out), "abc");
		fetch_free(f);
		fake_stop(&x);
	}
}

/* A deadline holds for answers that come slowly, too. */
static void holds_to_deadlines(void **state)
{
	(void)state;
	struct fake x = { .answer = "HTTP/1.1 200 OK\r\n\r\nx", .repeat = 1, .slow = 200 };
	struct err e = { 0 };
	CLEANUP(buf_deinit) struct buf out;
	int code = 0;
	buf_init(&out, 1000);
	fake_start(&x);
	struct fetch *f = fetch_of(x.url);
	fetch_interrupt(f, -1, MINUTE);
	CHECK(fetch_get(f, "/x", 300 * NS_PER_MS, &code, &out, &e) == E_TIMEOUT);
	fetch_free(f);
	fake_stop(&x);
}

static void follows_redirects_if_told(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	static char answer[300];
	snprintf(answer, sizeof(answer), "HTTP/1.1 302 F\r\nLocation: http://%s/show/x\r\n\r\n",
		net_server_address(s));
	for (int follow = 0; follow < 2; follow++) {
		struct fake x = { .answer = answer };
		struct fetch *f;
		struct err e = { 0 };
		int code;
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1000);
		fake_start(&x);
		CHECK_OK(fetch_new(&(struct fetch_config){ .address = x.url,
					   .follow_redirects = follow },
				 &f, &e),
			&e);
		CHECK_OK(fetch_get(f, "/x", MINUTE, &code, &out, &e), &e);
		CHECK(code == (follow ? 200 : 302));
		CHECK_STR(buf_view(&out), follow ? "GET /show/x?" : "");
		fetch_free(f);
		fake_stop(&x);
	}
	net_server_stop(s);
}

static void refuses_addresses(void **state)
{
	(void)state;
	static const struct {
		const char *name, *why;
	} cases[] = {
		{ "unix:", "path must have 1 to" },
		{ "", "names no host" },
		{ ":7070", "names no host" },
		{ "http:///x", "names no host" },
		{ "http://user:hidden@host:1/x", "address of host: no user or password" },
		{ "ftp://user:hidden@host:1/x", "address of host: no user or password" },
		{ "ftp://user:hidden/more@host:1/x", "address \"host:1/x\": only http://" },
		{ "http://user:hidden/more@host:1/x", "address \"host:1/x\" names no host" },
		{ "http://host:80x", "names no host, or its port is no number" },
		{ "ftp://host", "only http:// and https://" },
	};
	FOR_EACH_CASE (x, cases) {
		struct err e = { 0 };
		struct fetch *f = NULL;
		CHECK_CASE(x, fetch_new(&(struct fetch_config){ .address = x->name }, &f, &e) ==
				      E_INVALID);
		CHECK_CASE(x, strstr(e.text, x->why) && !f && !strstr(e.text, "hidden"));
	}
}

static void speaks_tls(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	config.tls_cert_file = cert_path;
	config.tls_key_file = key_path;
	struct net_server *s = peer_start(&config);
	struct err e = { 0 };
	char url[200];
	int code;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 64 << 20);
	snprintf(url, sizeof(url), "https://%s", net_server_address(s));
	struct fetch *f = fetch_of(url);
	assert_int_equal(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), E_UNAVAILABLE);
	CHECK(strstr(e.text, "certificate"));
	fetch_trust(f, cert_path, false);
	CHECK_OK(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), &e);
	CHECK_STR(buf_view(&out), "GET /show/x?");
	fetch_trust(f, "/none", false);
	assert_int_equal(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), E_UNAVAILABLE);
	CHECK(strstr(e.text, "/none"));
	fetch_trust(f, NULL, true);
	CHECK_OK(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), &e);
	fetch_free(f);
	setenv("SSL_CERT_FILE", "/none", 1);
	f = fetch_of(url);
	assert_int_equal(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), E_UNAVAILABLE);
	CHECK(strstr(e.text, "/none"));
	fetch_free(f);
	setenv("SSL_CERT_FILE", cert_path, 1);
	f = fetch_of(url);
	CHECK_OK(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), &e);
	fetch_free(f);
	net_server_stop(s);
	/* The name must be right. */
	config.address = "0.0.0.0:0";
	s = peer_start(&config);
	snprintf(url, sizeof(url), "https://127.0.0.2%s", strrchr(net_server_address(s), ':'));
	f = fetch_of(url);
	assert_int_equal(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), E_UNAVAILABLE);
	fetch_free(f);
	net_server_stop(s);
}

/* libcurl's own words have the address as it was given. */
static void hides_the_password_of_a_proxy(void **state)
{
	(void)state;
	static const struct {
		const char *name;
	} cases[] = { { "ftp://user:hidden@127.0.0.1:1" }, { "http://user:hidden@127.0.0.1:x" } };
	FOR_EACH_CASE (x, cases) {
		const struct fetch_config c = { .address = "h.invalid:1", .proxy_url = x->name };
		struct fetch *f = NULL;
		struct err e = { 0 };
		int code;
		CLEANUP(buf_deinit) struct buf out;
		buf_init(&out, 1 << 20);
		CHECK_OK(fetch_new(&c, &f, &e), &e);
		CHECK_CASE(x, fetch_get(f, "/", MINUTE, &code, &out, &e) != OK);
		CHECK_CASE(x, !strstr(e.text, "hidden") && strstr(e.text, "of the proxy"));
		fetch_free(f);
	}
}

static void says_that_the_other_side_speaks_no_tls(void **state)
{
	(void)state;
	struct net_server_config config = peer_config();
	struct net_server *s = peer_start(&config);
	struct err e = { 0 };
	char url[200];
	int code;
	CLEANUP(buf_deinit) struct buf out;
	buf_init(&out, 1 << 20);
	snprintf(url, sizeof(url), "https://%s", net_server_address(s));
	struct fetch *f = fetch_of(url);
	assert_int_equal(fetch_get(f, "/show/x", MINUTE, &code, &out, &e), E_UNAVAILABLE);
	CHECK(strstr(e.text, "TLS: the other side does not speak it"));
	fetch_free(f);
	net_server_stop(s);
}

TEST_MAIN(cmocka_unit_test(gets_and_posts), cmocka_unit_test(puts_bodies_in_pieces),
	cmocka_unit_test(sends_headers_of_its_own), cmocka_unit_test(can_be_interrupted),
	cmocka_unit_test(judges_answers), cmocka_unit_test(reads_answers_without_an_end),
	cmocka_unit_test(holds_to_deadlines), cmocka_unit_test(follows_redirects_if_told),
	cmocka_unit_test(refuses_addresses), cmocka_unit_test(makes_its_files),
	cmocka_unit_test(speaks_tls), cmocka_unit_test(hides_the_password_of_a_proxy),
	cmocka_unit_test(says_that_the_other_side_speaks_no_tls),
	cmocka_unit_test(removes_its_files))
