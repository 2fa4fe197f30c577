/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: a child is a fork that goes on in another function, not a new program. It gets a name of its
 * own (profiles, ps), dies with its parent, and leaves SIGINT and SIGHUP, which a terminal sends to
 * the whole group, to the parent, which knows in which order to stop. The server gives up the
 * privileges that only the agent needs.
 */
#include "cli/child.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"

static volatile sig_atomic_t stop;
static pid_t supervisor;

/* A service manager sends SIGTERM to every process of the service at once. Only the supervisor's
 * counts: it stops the agent first, whose last batch then still finds the server. */
static void on_term(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)context;
	if (info->si_pid == supervisor)
		stop = 1;
}

/* False: the parent is gone already. */
static bool settle(const char *name, pid_t parent)
{
	struct sigaction term = { .sa_sigaction = on_term, .sa_flags = SA_SIGINFO };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	supervisor = parent;
	sigset_t none;
	sigemptyset(&none);
	sigemptyset(&term.sa_mask);
	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGINT, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	prctl(PR_SET_NAME, name, 0, 0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
	sigprocmask(SIG_SETMASK, &none, NULL);
	return getppid() == parent;
}

static int report(const char *name, enum status s, const struct err *e)
{
	char text[2 * ERR_TEXT_MAX];
	if (s == OK)
		return CLI_OK;
	log_error(name, "err=%s", log_quote(str_of(err_text(e, s)), text, sizeof(text)));
	return CLI_FAILED;
}

/* Keep what a server may need as root: a low port, and its directory where that is not root's. The
 * rest goes, for this process and whatever it starts. Without privileges nothing happens. */
void child_drop_privileges(const char *storage_path)
{
	struct __user_cap_header_struct head = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct data[2] = { 0 };
	struct stat st;
	if (geteuid() != 0 || syscall(SYS_capget, &head, data) < 0)
		return;
	uint32_t keep = 1u << CAP_NET_BIND_SERVICE;
	if (stat(storage_path, &st) < 0 || st.st_uid != 0)
		keep |= 1u << CAP_DAC_OVERRIDE | 1u << CAP_FOWNER | 1u << CAP_CHOWN;
	data[0].effective &= keep;
	data[0].permitted &= keep;
	data[0].inheritable = 0;
	data[1] = (struct __user_cap_data_struct){ 0 };
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_capset, &head, data) < 0)
		log_warn("the server keeps its privileges", "errno=%d", errno);
}

int child_run_server(const struct server_config *c, pid_t parent)
{
	struct err e = { 0 };
	if (!settle("firn-server", parent))
		return CLI_FAILED;
	child_drop_privileges(c->storage_path);
	return report("server failed", server_run(c, &stop, &e), &e);
}

int child_run_agent(const struct agent_config *c, pid_t parent)
{
	struct err e = { 0 };
	if (!settle("firn-agent", parent))
		return CLI_FAILED;
	return report("agent failed", agent_run(c, &stop, &e), &e);
}

const char *child_describe_end(int wait_status, char *out, size_t out_size)
{
	if (WIFSIGNALED(wait_status))
		snprintf(out, out_size, "was killed by signal %d (%s)%s", WTERMSIG(wait_status),
			strsignal(WTERMSIG(wait_status)),
			WTERMSIG(wait_status) == SIGKILL
				? "; the kernel does that when memory is short"
				: "");
	else
		snprintf(out, out_size, "ended with status %d", WEXITSTATUS(wait_status));
	return out;
}
