/* SPDX-License-Identifier: Apache-2.0 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include "answers.h"
#include "scrape/discover/dns.h"

/* A name server: it knows "web.test" and "_p._tcp.test", fails for "bad.test", and says of all else
 * that it is not there. */
static int server_fd;

struct record {
	const char *name;
	uint16_t type;
	const char *bytes;
	size_t len;
};
#define RECORD(name, type, bytes)                    \
	{                                            \
		name, type, bytes, sizeof(bytes) - 1 \
	}
static const struct record records[] = {
	RECORD("\3web\4test", 1, "\x0a\0\0\1"),
	RECORD("\3web\4test", 5, "\1a\4test\0"), /* an alias, passed over */
	RECORD("\3web\4test", 1, "\x0a\0\0\2"),
	RECORD("\3web\4test", 28, "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1"),
	RECORD("\3web\4test", 15, "\0\12\4mail\4test\0"),
	RECORD("\3web\4test", 2, "\2ns\4test\0"),
	RECORD("\2_p\4_tcp\4test", 33, "\0\1\0\2\x17\xac\1a\4test\0"),
	RECORD("\2_p\4_tcp\4test", 33, "\0\0\0\0\0\0\0"),
	RECORD("\3odd\4test", 33, "\0\1\0\2\x17\xac\3a/b\4test\0"),
};

static size_t answer(const unsigned char *in, size_t len, unsigned char *out)
{
	size_t name_len = strlen((const char *)in + 12) + 1, end = 12 + name_len + 4;
	uint16_t type = (uint16_t)(in[12 + name_len] << 8 | in[12 + name_len + 1]);
	uint16_t count = 0;
	bool known = false;
	CHECK(end <= len);
	memcpy(out, in, end);
	size_t at = end;
	for (size_t i = 0; i < ARRAY_COUNT(records); i++) {
		const struct record *r = &records[i];
		bool mine = strcmp((const char *)in + 12, r->name) == 0;
		known |= mine;
		if (!mine || (r->type != type && !(r->type == 5 && type == 1)))
			continue;
		const unsigned char head[] = { 0xc0, 12, 0, (unsigned char)r->type, 0, 1, 0, 0, 0,
			1, 0, (unsigned char)r->len };
		memcpy(out + at, head, sizeof(head));
		memcpy(out + at + sizeof(head), r->bytes, r->len);
		at += sizeof(head) + r->len;
		count++;
	}
	bool bad = strcmp((const char *)in + 12, "\3bad\4test") == 0;
	out[2] = 0x85;
	out[3] = (unsigned char)(0x80 | (bad ? 2 : known ? 0 : 3));
	out[6] = 0;
	out[7] = (unsigned char)count;
	memset(out + 8, 0, 4);
	return at;
}

static void *serve(void *ctx)
{
	(void)ctx;
	for (;;) {
		unsigned char in[2048], out[4096];
		struct sockaddr_in from;
		socklen_t from_len = sizeof(from);
		ssize_t n = recvfrom(
			server_fd, in, sizeof(in) - 1, 0, (struct sockaddr *)&from, &from_len);
		if (n <= 1) /* the end of the test */
			return NULL;
		in[n] = 0;
		size_t len = answer(in, (size_t)n, out);
		(void)!sendto(server_fd, out, len, 0, (struct sockaddr *)&from, from_len);
	}
}

static struct sockaddr_in start(pthread_t *thread)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	server_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(server_fd >= 0 && bind(server_fd, (struct sockaddr *)&a, sizeof(a)) == 0);
	CHECK(getsockname(server_fd, (struct sockaddr *)&a, &len) == 0);
	CHECK(pthread_create(thread, NULL, serve, NULL) == 0);
	return a;
}

static void finds_records(void **state)
{
	(void)state;
	static const struct {
		const char *name, *yaml, *want, *says;
	} cases[] = {
		{ "A", "names: [web.test.]\ntype: a\nport: 80",
			"10.0.0.1:80 name=web.test.\n10.0.0.2:80 name=web.test.\n", NULL },
		{ "AAAA", "names: [web.test.]\ntype: AAAA\nport: 80",
			"[fd00::1]:80 name=web.test.\n", NULL },
		{ "MX", "names: [web.test.]\ntype: MX\nport: 25",
			"mail.test:25 mx_record_target=mail.test. name=web.test.\n", NULL },
		{ "NS", "names: [web.test.]\ntype: NS\nport: 53",
			"ns.test:53 name=web.test. ns_record_target=ns.test.\n", NULL },
		{ "SRV", "names: [_p._tcp.test., none.test.]",
			"a.test:6060 name=_p._tcp.test. srv_record_port=6060 "
			"srv_record_target=a.test.\n",
			NULL },
		{ "no such name", "names: [none.test.]", "", NULL },
		{ "no such record", "names: [web.test.]", "", NULL },
		{ "no host's name", "names: [odd.test.]", NULL,
			"odd.test.: a record with a name that no host has" },
		{ "failure", "names: [bad.test.]", NULL, "bad.test.: no name server could tell" },
	};
	pthread_t thread;
	struct sockaddr_in server = start(&thread);
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		CLEANUP(discover_found_deinit) struct discover_found f;
		CLEANUP(buf_deinit) struct buf out;
		const struct discover_run run = { .wake_fd = -1 };
		struct discover *d = NULL;
		struct err e = { 0 };
		buf_init(&out, 1 << 20);
		CHECK_OK(answers_read("dns_sd_configs", c->yaml, &a, &d, &e), &e);
		((struct dns *)d)->server = server;
		discover_found_init(&f);
		enum status s = discover_find(d, &run, &f, &e);
		answers_dump(&f, "__meta_dns_", &out);
		if (c->want && strcmp((const char *)out.data, c->want) != 0)
			print_error("%s%s\n", (const char *)out.data, e.text);
		CHECK_CASE(c, c->want ? s == OK && strcmp((const char *)out.data, c->want) == 0
				      : s != OK && strstr(e.text, c->says));
		discover_free(d);
	}
	struct sockaddr_in to = server;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) == 1);
	CHECK(pthread_join(thread, NULL) == 0 && close(fd) == 0 && close(server_fd) == 0);
}

static void refuses_settings(void **state)
{
	(void)state;
	static const struct {
		const char *name, *yaml, *says;
	} cases[] = {
		{ "names", "type: A", "names are missing" },
		{ "type", "names: [a]\ntype: TXT", "type must be SRV" },
		{ "port", "names: [a]\ntype: A", "port is missing" },
	};
	FOR_EACH_CASE (c, cases) {
		CLEANUP(arena_deinit) struct arena a;
		struct discover *d = NULL;
		struct err e = { 0 };
		CHECK_CASE(c, answers_read("dns_sd_configs", c->yaml, &a, &d, &e) == E_INVALID &&
				      strstr(e.text, c->says));
	}
}

TEST_MAIN(cmocka_unit_test(finds_records), cmocka_unit_test(refuses_settings))
