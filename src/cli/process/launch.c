/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: a process between this one and the command is the subreaper: daemons and orphans of the
 * command become its children and not init's. It ends with the command's status.
 */
#include "cli/process/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/options/options.h"

static volatile sig_atomic_t command; /* pid for the signal handler */

static void pass_on(int number)
{
	if (command > 0)
		kill(command, number);
}

static void run_command(char *const *argv, int go_fd, int failed_fd, const sigset_t *mask)
{
	char byte;
	ssize_t n;
	do {
		n = read(go_fd, &byte, 1);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(LAUNCH_NOT_STARTED); /* the parent has ended */
	sigprocmask(SIG_SETMASK, mask, NULL);
	execvp(argv[0], argv);
	int why = errno;
	cli_complain("%s: %s", argv[0], strerror(why));
	if (write(failed_fd, "x", 1) != 1)
		_exit(LAUNCH_NOT_STARTED);
	_exit(why == ENOENT ? LAUNCH_NO_COMMAND : LAUNCH_NOT_STARTED);
}

/* The process between ignores SIGINT, which the terminal sends to the command too. */
static void keep_quiet(void)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN }, pass = { .sa_handler = pass_on };
	const int ignored[] = { SIGINT, SIGQUIT, SIGHUP };
	for (size_t i = 0; i < ARRAY_COUNT(ignored); i++)
		sigaction(ignored[i], &ignore, NULL);
	sigaction(SIGTERM, &pass, NULL);
}

static int stand_between(char *const *argv, int go_fd, int failed_fd)
{
	sigset_t mask, all;
	sigemptyset(&mask);
	sigfillset(&all);
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	sigprocmask(SIG_SETMASK, &all, NULL);
	pid_t pid = fork();
	if (pid == 0)
		run_command(argv, go_fd, failed_fd, &mask);
	close(go_fd);
	close(failed_fd);
	if (pid < 0)
		return LAUNCH_NOT_STARTED;
	command = pid;
	keep_quiet();
	sigprocmask(SIG_SETMASK, &mask, NULL);
	for (;;) {
		int wait_status = 0;
		pid_t ended = wait(&wait_status);
		if (ended == pid)
			return launch_exit_code(wait_status);
		if (ended < 0 && errno != EINTR)
			return LAUNCH_NOT_STARTED;
	}
}

enum status launch_find(const char *program, struct err *e)
{
	char path[PATH_MAX];
	const char *folders = getenv("PATH");
	struct str rest = str_of(folders ? folders : "/usr/local/bin:/usr/bin:/bin"), folder;
	bool denied = false;
	if (strchr(program, '/'))
		return access(program, X_OK) == 0 ? OK : err_os(e, "%s", program);
	while (str_split(&rest, ':', &folder)) {
		snprintf(path, sizeof(path), "%.*s/%s", STR_ARG(folder.len ? folder : STR(".")),
			program);
		if (access(path, X_OK) == 0)
			return OK;
		denied |= errno == EACCES;
	}
	if (denied)
		return err_set(e, E_DENIED, "%s: Permission denied", program);
	return err_set(e, E_NOTFOUND, "%s: there is no such program in PATH", program);
}

enum status launch_prepare(char *const *argv, struct launch *out, struct err *e)
{
	int go[2], failed[2];
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_os(e, "pipe");
	if (pipe2(failed, O_CLOEXEC) < 0) {
		close(go[0]);
		close(go[1]);
		return err_os(e, "pipe");
	}
	pid_t pid = fork();
	if (pid == 0) {
		close(go[1]);
		close(failed[0]);
		_exit(stand_between(argv, go[0], failed[1]));
	}
	close(go[0]);
	close(failed[1]);
	if (pid < 0) {
		close(go[1]);
		close(failed[0]);
		return err_os(e, "fork");
	}
	*out = (struct launch){ .pid = pid, .go_fd = go[1], .failed_fd = failed[0] };
	return OK;
}

bool launch_failed(const struct launch *l)
{
	struct pollfd end = { .fd = l->failed_fd, .events = POLLIN };
	return l->failed_fd >= 0 && poll(&end, 1, 0) == 1 && (end.revents & POLLIN);
}

void launch_go(struct launch *l)
{
	if (l->go_fd < 0)
		return;
	/* The process waits for this byte. If it was killed before, its end is taken for that of
	 * the command. */
	if (write(l->go_fd, "g", 1) < 0)
		cli_complain("the command could not be told to start: %m");
	close(l->go_fd);
	l->go_fd = -1;
}

void launch_end(struct launch *l)
{
	fd_cleanup(&l->go_fd);
	fd_cleanup(&l->failed_fd);
	if (l->pid <= 0)
		return;
	kill(l->pid, SIGTERM);
	while (waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
		;
	l->pid = 0;
}

int launch_exit_code(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
