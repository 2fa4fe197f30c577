/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"
#include "cli/process/startup.h"
#include "fakes.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sys/socket.h>

static struct server_config config;
static struct err error;
static const char *used_path;

static int complain(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return cli_complain_of_start(&config, used_path, error.status, &error);
}

static void names_who_has_the_port(void **state)
{
	(void)state;
	struct capture c;
	char address[64], want[128];
	struct sockaddr_in at = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	CHECK(listen(fd, 1) == 0 && getsockname(fd, (struct sockaddr *)&at, &len) == 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", ntohs(at.sin_port));
	config = (struct server_config){ .http_address = address };
	errno = EADDRINUSE;
	CHECK(err_os(&error, "listen on %s: bind", address) != OK);
	capture_run(&c, complain, "up");
	snprintf(want, sizeof(want), ", process %d", (int)getpid());
	CHECK_HAS(c.err, address);
	CHECK_HAS(c.err, " is taken by ");
	CHECK_HAS(c.err, want);
	CHECK_HAS(c.err, "another port: --http-address 127.0.0.1:");
	close(fd);
	fake_body = "<html>";
	capture_run(&c, complain, "up"); /* and nobody has it now */
	CHECK_HAS(c.err, "is taken by another process; another port");
	CHECK_HAS(fake_server, address); /* was asked */
	fake_status = E_UNAVAILABLE;
	capture_run(&c, complain, "up");
	CHECK_HAS(c.err, "is taken by another process; another port");
	fake_status = OK;
	fake_body = "<!doctype html><title>firn</title>";
	capture_run(&c, complain, "up");
	CHECK_HAS(c.err, "is taken by firn, of another user, which is to be seen at http://127.");
}

/* An agent has an address, too, and failures of its own. */
static void leaves_what_is_no_address(void **state)
{
	(void)state;
	CHECK(!cli_complain_of_address("127.0.0.1:7071", E_DENIED, "no CAP_BPF"));
	CHECK(!cli_complain_of_address(NULL, E_IO, "listen on x: y"));
}

static void says_what_was_typed(void **state)
{
	(void)state;
	struct capture c;
	config = (struct server_config){ .http_address = "127.0.0.1:99999",
		.storage_path = "/srv/firn" };
	used_path = "/proc/self/fd/3";
	errno = EROFS;
	CHECK(err_os(&error, "make directory /proc/self/fd/3/debuginfo") != OK);
	capture_run(&c, complain, "up");
	CHECK_STR(str_of(c.err),
		"firn: make directory /srv/firn/debuginfo: Read-only file system; --storage-path "
		"names another directory\n");
	CHECK(err_set(&error, E_INVALID, "listen on x: address \"x\" has no :PORT") != OK);
	capture_run(&c, complain, "up");
	CHECK_STR(str_of(c.err), "firn: --http-address: address \"x\" has no :PORT\n");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK(err_set(&error, E_CORRUPT, "something else") != OK);
	capture_run(&c, complain, "up");
	CHECK_STR(str_of(c.err), "firn: something else\n");
	assert_int_equal(c.code, CLI_FAILED);
}

TEST_MAIN(cmocka_unit_test(leaves_what_is_no_address), cmocka_unit_test(names_who_has_the_port),
	cmocka_unit_test(says_what_was_typed))
