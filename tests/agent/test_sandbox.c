/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/broker/sandbox.h"
#include "os/os.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The wait status of a child that does this in the agent's sandbox, or in the broker's. */
static int within(bool broker, int (*fn)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		if ((broker ? sandbox_enter_broker(NULL) : sandbox_enter_agent(NULL)) != OK)
			_exit(99);
		_exit(fn());
	}
	int wait_status = 0;
	CHECK(waitpid(pid, &wait_status, 0) == pid);
	return wait_status;
}

static bool was_killed(int wait_status)
{
	return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGSYS;
}

static void *touch(void *ctx)
{
	*(int *)ctx = 1;
	return NULL;
}

static int work(void)
{
	pthread_t thread;
	int touched = 0;
	struct addrinfo *found = NULL;
	if (os_thread_start(&thread, "x", touch, &touched, NULL) != OK)
		return 1;
	pthread_join(thread, NULL);
	if (!touched)
		return 2;
	if (getaddrinfo("localhost", "1", NULL, &found) != 0)
		return 3;
	freeaddrinfo(found);
	CLEANUP(fd_cleanup) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	return fd < 0 ? 4 : os_read_file("/proc/self/status", &b, NULL) != OK ? 5 : 0;
}

static int try_what_is_missing(void)
{
	if (fork() >= 0)
		return 1;
	if (syscall(SYS_kill, 1, 0) == 0 || errno != ENOSYS)
		return 2;
	if (socket(AF_PACKET, SOCK_RAW, 0) >= 0)
		return 3;
	struct rlimit limit;
	if (getrlimit(RLIMIT_CORE, &limit) != 0 ||
		prlimit(getppid(), RLIMIT_CORE, NULL, &limit) == 0)
		return 5;
	/* A signal to another process of the same user, by way of a socket. */
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 ||
		fcntl(pair[0], F_SETFL, O_NONBLOCK) != 0)
		return 6;
	if (fcntl(pair[0], F_SETOWN, getppid()) == 0 || errno != ENOSYS ||
		fcntl(pair[0], F_SETSIG, SIGKILL) == 0 || errno != ENOSYS)
		return 7;
	/* Letters into the terminal; the upper half of the number is not looked at by the kernel.
	 */
	int waiting = 0;
	if (ioctl(pair[0], FIONREAD, &waiting) != 0)
		return 8;
	if (ioctl(pair[0], TIOCSTI, "x") == 0 || errno != ENOSYS ||
		syscall(SYS_ioctl, pair[0], 1UL << 32 | TIOCSTI, "x") == 0 || errno != ENOSYS)
		return 9;
	/* Cut off without being opened for writing. */
	if (open("/dev/null", O_RDONLY | O_TRUNC) >= 0 || errno != ENOSYS ||
		syscall(SYS_open, "/dev/null", O_RDONLY | O_TRUNC) >= 0 || errno != ENOSYS)
		return 10;
	if (open("/dev/null", O_RDONLY) < 0 || open("/dev/null", O_WRONLY | O_TRUNC) < 0 ||
		open("/dev/null", O_RDWR | O_TRUNC) < 0)
		return 11;
	if (syscall(SYS_bpf, 5 /* BPF_PROG_LOAD */, NULL, 0) == 0 || errno != ENOSYS)
		return 4;
	return 0;
}

static int run_a_program(void)
{
	execl("/bin/true", "true", (char *)NULL);
	return 0;
}

static int trace(void)
{
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	return 0;
}

static int connect_somewhere(void)
{
	return socket(AF_UNIX, SOCK_STREAM, 0) < 0;
}

static int open_something(void)
{
	return open("/proc/self/maps", O_RDONLY) < 0;
}

static void the_agent_can_work_and_nothing_else(void **state)
{
	(void)state;
	if (SANITIZED)
		SKIP("no filter under a sanitizer");
	int wait_status = within(false, work);
	CHECK(WIFEXITED(wait_status));
	CHECK(WEXITSTATUS(wait_status) == 0);
	wait_status = within(false, try_what_is_missing);
	CHECK(WIFEXITED(wait_status));
	CHECK(WEXITSTATUS(wait_status) == 0);
	CHECK(was_killed(within(false, run_a_program)));
	CHECK(was_killed(within(false, trace)));
}

static void the_broker_opens_and_nothing_else(void **state)
{
	(void)state;
	if (SANITIZED)
		SKIP("no filter under a sanitizer");
	int wait_status = within(true, open_something);
	CHECK(WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0);
	CHECK(was_killed(within(true, connect_somewhere)));
	CHECK(was_killed(within(true, run_a_program)));
}

TEST_MAIN(cmocka_unit_test(the_agent_can_work_and_nothing_else),
	cmocka_unit_test(the_broker_opens_and_nothing_else))
