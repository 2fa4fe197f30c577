/* SPDX-License-Identifier: Apache-2.0 */
#include "test.h"

#include "net/address.h"

#include <sys/stat.h>
#include <unistd.h>

/* clang-format off */
static const struct { const char *name; enum status status; int family; } cases[] = {
	{ "127.0.0.1:7070", OK, AF_INET },      { "[::1]:80", OK, AF_INET6 },
	{ "http://127.0.0.1:80", OK, AF_INET }, { "http://127.0.0.1:80/", OK, AF_INET },
	{ "unix:/tmp/x", OK, AF_UNIX },         { "127.0.0.1", E_INVALID, 0 },
	{ "127.0.0.1:", E_INVALID, 0 },         { "127.0.0.1:x", E_INVALID, 0 },
	{ "127.0.0.1:65536", E_INVALID, 0 },    { "127.0.0.1:-1", E_INVALID, 0 },
	{ "::1:80", E_INVALID, 0 },             { "unix:", E_INVALID, 0 },
	{ "", E_INVALID, 0 },
};
/* clang-format on */

static void parses(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, cases) {
		struct net_address a[4];
		size_t n;
		struct err e;
		enum status s = net_address_parse(c->name, false, a, 4, &n, &e);
		CHECK_CASE(c, s == c->status);
		CHECK_CASE(c, s != OK || (n >= 1 && a[0].storage.ss_family == c->family));
	}
	char longest[200];
	struct net_address a;
	size_t n;
	memset(longest, 'x', sizeof(longest));
	memcpy(longest, "unix:", 5);
	longest[5 + 107] = 0;
	assert_int_equal(net_address_parse(longest, false, &a, 1, &n, NULL), OK);
	longest[5 + 107] = 'x';
	longest[5 + 108] = 0;
	assert_int_equal(net_address_parse(longest, false, &a, 1, &n, NULL), E_INVALID);
}

static void listens(void **state)
{
	(void)state;
	struct err e;
	int fd;
	char text[160];
	CHECK_OK(net_listen("127.0.0.1:0", &fd, text, sizeof(text), &e), &e);
	CHECK(str_starts(str_of(text), STR("127.0.0.1:")) && !str_ends(str_of(text), STR(":0")));
	int second;
	assert_int_equal(net_listen(text, &second, text, sizeof(text), &e), E_IO);
	CHECK(strstr(e.text, "127.0.0.1:") && strstr(e.text, "bind"));
	close(fd);
	CHECK_OK(net_listen(":0", &fd, text, sizeof(text), &e), &e);
	CHECK(str_starts(str_of(text), STR("[::]:")) || str_starts(str_of(text), STR("0.0.0.0:")));
	close(fd);
}

static void listens_on_a_path(void **state)
{
	(void)state;
	char dir[] = "/tmp/firn-net-XXXXXX", address[64], text[160];
	struct err e;
	int fd, second;
	CHECK(mkdtemp(dir) != NULL);
	snprintf(address, sizeof(address), "unix:%s/s", dir);
	CHECK_OK(net_listen(address, &fd, text, sizeof(text), &e), &e);
	assert_string_equal(text, address);
	assert_int_equal(net_listen(address, &second, text, sizeof(text), &e), E_EXISTS);
	close(fd);
	/* Left behind by a server that was killed. */
	CHECK_OK(net_listen(address, &fd, text, sizeof(text), &e), &e);
	close(fd);
	CHECK(unlink(address + 5) == 0);
	/* Something else of that name stays. */
	CHECK(mkdir(address + 5, 0700) == 0);
	assert_int_equal(net_listen(address, &fd, text, sizeof(text), &e), E_EXISTS);
	CHECK(rmdir(address + 5) == 0 && rmdir(dir) == 0);
}

TEST_MAIN(cmocka_unit_test(parses), cmocka_unit_test(listens), cmocka_unit_test(listens_on_a_path))
