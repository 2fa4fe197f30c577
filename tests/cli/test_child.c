/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/child.h"
#include "cli/cli.h"
#include "fakes.h"
#include "test.h"

#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *server_path = "/";

static unsigned capabilities(void)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };
	return syscall(SYS_capget, &head, data) < 0 ? ~0u : data[0].permitted;
}

static bool ignores(int number)
{
	struct sigaction a;
	return sigaction(number, NULL, &a) == 0 && a.sa_handler == SIG_IGN;
}

/* Each bit is something that is not as it should be. */
static enum status look_around(const char *name, bool privileged)
{
	char comm[16] = "";
	int death = 0;
	unsigned keep = 1u << CAP_NET_BIND_SERVICE;
	prctl(PR_GET_NAME, comm);
	prctl(PR_GET_PDEATHSIG, &death);
	int wrong = strcmp(comm, name) != 0;
	wrong |= (death != SIGTERM) << 1;
	wrong |= (!ignores(SIGINT) || !ignores(SIGHUP) || !ignores(SIGPIPE)) << 2;
	wrong |= (!privileged && (capabilities() & ~keep)) << 3;
	wrong |= (!privileged && geteuid() == 0 && !prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)) << 4;
	if (wrong)
		_exit(100 + wrong);
	return OK;
}

static enum status look_as_server(
	const struct server_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)c;
	(void)stop;
	(void)e;
	return look_around("firn-server", false);
}

static enum status look_as_agent(
	const struct agent_config *c, const volatile sig_atomic_t *stop, struct err *e)
{
	(void)c;
	/* Somebody else's, as a service manager sends to all: not ours to follow. */
	raise(SIGTERM);
	if (*stop)
		return err_set(e, E_IO, "stopped by somebody else");
	kill(getppid(), SIGUSR1);
	for (int i = 0; i < 10000 && !*stop; i++)
		usleep(1000);
	return *stop ? look_around("firn-agent", true) : err_set(e, E_IO, "not stopped");
}

static volatile sig_atomic_t ready;

static void on_ready(int number)
{
	(void)number;
	ready = 1;
}

static int end_of(pid_t pid)
{
	int wait_status = 0;
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	CHECK(WIFEXITED(wait_status));
	return WEXITSTATUS(wait_status);
}

static void settles(void **state)
{
	(void)state;
	fflush(NULL);
	fake_server_run = look_as_server;
	fake_agent_run = look_as_agent;
	pid_t parent = getpid(), pid = fork();
	if (pid == 0) {
		struct server_config c = { .storage_path = server_path };
		_exit(child_run_server(&c, parent));
	}
	assert_int_equal(end_of(pid), CLI_OK);
	struct sigaction a = { .sa_handler = on_ready };
	sigaction(SIGUSR1, &a, NULL);
	pid = fork();
	if (pid == 0) {
		struct agent_config c = { 0 };
		_exit(child_run_agent(&c, parent));
	}
	for (int i = 0; i < 10000 && !ready; i++)
		usleep(1000);
	kill(pid, SIGTERM);
	assert_int_equal(end_of(pid), CLI_OK);
}

static void ends_without_a_parent(void **state)
{
	(void)state;
	fflush(NULL);
	fake_agent_run = NULL; /* would wait for ever */
	pid_t pid = fork();
	if (pid == 0) {
		struct agent_config c = { 0 };
		_exit(child_run_agent(&c, getpid()));
	}
	assert_int_equal(end_of(pid), CLI_FAILED);
}

static void describes_ends(void **state)
{
	(void)state;
	char text[128];
	CHECK_STR(str_of(child_describe_end(3 << 8, text, sizeof(text))), "ended with status 3");
	CHECK_STR(str_of(child_describe_end(SIGSEGV, text, sizeof(text))),
		"was killed by signal 11 (Segmentation fault)");
	CHECK(strstr(child_describe_end(SIGKILL, text, sizeof(text)), "memory is short"));
}

TEST_MAIN(cmocka_unit_test(settles), cmocka_unit_test(ends_without_a_parent),
	cmocka_unit_test(describes_ends))
