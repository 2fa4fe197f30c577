/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "capture.h"
#include "fakes.h"

#include <time.h>

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/firn-test-up-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char command[128];
	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

/* Stops the whole as soon as it is up: the signal goes to the supervisor. */
static enum status serve(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	/* Not a symbol table for each program of the host. */
	if ((fake_probe == OK) != c->symbols_on_demand)
		return err_set(e, E_INVALID, "wrong configuration");
	if (write(c->ready_fd, "127.0.0.1:4242\n", 15) != 15)
		return E_IO;
	if (fake_probe != OK) {
		nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
		kill(getppid(), SIGTERM);
	}
	fake_wait(stop);
	return OK;
}

static enum status sample(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	if (strcmp(c->remote_store_address, "127.0.0.1:4242") != 0 ||
		!strstr(c->spool_dir, "/agent-spool") || c->http_address[0] || c->handover_fd < 0)
		return err_set(e, E_INVALID, "wrong configuration");
	if (write(c->ready_fd, "1", 1) != 1)
		return E_IO;
	nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	kill(getppid(), SIGTERM);
	fake_wait(stop);
	return OK;
}

static void tells_what_it_does(void **state)
{
	(void)state;
	struct capture c;
	char line[256], want[256];
	fake_probe = OK;
	fake_server_run = serve;
	fake_agent_run = sample;
	snprintf(line, sizeof(line), "up --storage-path %s/data --cache-path %s/cache", dir, dir);
	capture_run(&c, cli_up, line);
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "  open       http://127.0.0.1:4242\n");
	snprintf(want, sizeof(want), "  data       %s/data (kept 2w, at most 10GiB)\n", dir);
	CHECK_HAS(c.out, want);
	CHECK_HAS(c.out, "processes and the kernel on ");
	CHECK_HAS(c.out, " at 19 Hz\n");
	CHECK_HAS(c.out, "  stop       Ctrl-C");
}

static void runs_the_server_alone(void **state)
{
	(void)state;
	struct capture c;
	char line[256];
	fake_probe = E_DENIED;
	fake_server_run = serve;
	/* The cache directory cannot be made, and is not needed. */
	snprintf(line, sizeof(line),
		"up --storage-path %s/data --cache-path /proc/no --storage-retention-time 0s "
		"--storage-retention-size 0",
		dir);
	capture_run(&c, cli_up, line);
	CHECK_STR(str_of(c.err), "");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "/data (kept for ever)\n");
	CHECK_HAS(c.out, "  profiling  nothing of this host: CAP_BPF is missing: use sudo\n");
}

static void helps(void **state)
{
	(void)state;
	struct capture c;
	capture_run(&c, cli_up, "up --help");
	assert_int_equal(c.code, CLI_OK);
	CHECK_HAS(c.out, "--profiling-cpu-sampling-frequency HERTZ");
	CHECK_HAS(c.out, "--storage-path DIR");
	check_width(c.out);
	capture_run(&c, cli_up, "up --http-adress x");
	assert_int_equal(c.code, CLI_USAGE);
	CHECK_HAS(c.err, "did you mean --http-address?");
}

TEST_MAIN(cmocka_unit_test_setup_teardown(tells_what_it_does, setup, teardown),
	cmocka_unit_test_setup_teardown(runs_the_server_alone, setup, teardown),
	cmocka_unit_test(helps))
