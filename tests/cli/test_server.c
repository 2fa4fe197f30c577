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

static void only_scrapes(void **state)
{
	(void)state;
	static const struct {
		const char *name, *line, *says;
	} wrong[] = {
		{ "mode", "server --mode agent", "--mode must be all or scraper-only" },
		{ "no store", "server --mode scraper-only --config-path /dev/null",
			"needs --store-address and --config-path" },
		{ "no file", "server --mode scraper-only --store-address s:1",
			"needs --store-address and --config-path" },
		{ "a store for nothing", "server --store-address s:1",
			"--store-address goes with --mode scraper-only" },
		{ "a label without a value",
			"server --mode scraper-only --store-address s:1 --config-path /dev/null "
			"--external-label x",
			"--external-label \"x\": NAME=VALUE is expected" },
	};
	struct capture c;
	fake_server_run = serve;
	capture_run(&c, cli_server,
		"server --mode scraper-only --store-address s:1 --config-path /dev/null --insecure "
		"--external-label a=b --external-label c=d=e --grpc-headers X-Scope-OrgID=t "
		"--bearer-token-file /token");
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_STR(str_of(c.out),
		"firn " FIRN_VERSION " server\n  targets  http://127.0.0.1:4242/api/targets\n");
	CHECK_STR(str_of(fake_server_config.config_path), "/dev/null");
	CHECK(!fake_server_config.storage_path); /* no directory is made */
	CHECK(fake_forward.insecure && fake_forward.label_count == 2 &&
		fake_forward.header_count == 1 && !fake_forward.token);
	FOR_EACH_CASE (w, wrong) {
		capture_run(&c, cli_server, w->line);
		CHECK_CASE(w, c.code == CLI_USAGE && strstr(c.err, w->says));
	}
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
	cmocka_unit_test(only_scrapes), cmocka_unit_test(helps))
