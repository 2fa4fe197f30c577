/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "capture.h"
#include "fakes.h"

static enum status serve(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)stop;
	(void)e;
	CHECK(write(c->ready_fd, "127.0.0.1:4242\n", 15) == 15);
	return OK;
}

static enum status refuse(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)c;
	(void)stop;
	return err_set(e, E_EXISTS, "the address is in use");
}

static void says_where_it_is(void **state)
{
	(void)state;
	struct capture c;
	fake_server_run = serve;
	capture_run(&c, cli_server, "server --storage-path /tmp --http-address 127.0.0.1:0");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.out),
		"firn " FIRN_VERSION " server\n  open  http://127.0.0.1:4242\n  data  /tmp\n");
	CHECK_STR(str_of(fake_server_config.http_address), "127.0.0.1:0");
}

static void says_why_it_failed(void **state)
{
	(void)state;
	struct capture c;
	fake_server_run = refuse;
	capture_run(&c, cli_server, "server --storage-path /tmp");
	assert_int_equal(c.code, CLI_FAILED);
	CHECK_STR(str_of(c.out), "");
	CHECK_STR(str_of(c.err), "firn: the address is in use\n");
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_server, "server --help");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "--storage-retention-time DURATION");
	check_width(c.out);
}

TEST_MAIN(cmocka_unit_test(says_where_it_is), cmocka_unit_test(says_why_it_failed),
	cmocka_unit_test(helps))
