/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How: a child is a fork that runs another function, without exec. It gets a name of its own (in
 * profiles and ps) and dies with its parent. It ignores SIGINT and SIGHUP, which a terminal sends
 * to the whole group: the parent knows in which order to stop. The server, which is reached from
 * the network, first opens what needs privileges and then gives them up.
 */
#include "cli/process/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "cli/cli.h"
#include "cli/process/startup.h"
#include "cli/storage/storage.h"
#include "net/net.h"
#include "os/os.h"

#define PRIVILEGED_PORTS_END 1024
#define STORAGE_DEPTH_MAX 4u /* debuginfo/ is the deepest */

static volatile sig_atomic_t stop;
static pid_t supervisor;

/* A service manager sends SIGTERM to every process of the service at once. A child obeys only its
 * supervisor, which stops the agent first, so that the agent's last batch still reaches the
 * server. SIGTERM comes again and again, SIGUSR1 when somebody does not want to wait. */
static void on_stop(int number, siginfo_t *info, void *context)
{
	(void)context;
	if (info->si_pid != supervisor)
		return;
	if (number == SIGUSR1)
		stop = AGENT_STOP_NOW;
	else if (!stop)
		stop = AGENT_STOP;
}

/* Sets the process's name and signals. False: the parent is gone already. */
static bool settle(const char *name, pid_t parent)
{
	struct sigaction term = { .sa_sigaction = on_stop, .sa_flags = SA_SIGINFO };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	supervisor = parent;
	os_notify_close();
	sigset_t none;
	sigemptyset(&none);
	sigemptyset(&term.sa_mask);
	sigaction(SIGTERM, &term, NULL);
	sigaction(SIGUSR1, &term, NULL);
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

/* ---- what a server gives up ---- */

/* Refuses a directory that holds files of others, such as a home that was named by mistake. */
static enum status check_storage(int dir, const char *path, uid_t from, struct err *e)
{
	CLEANUP(fd_cleanup) int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d)
		return err_os(e, "open %s", path);
	(void)STEAL_FD(fd);
	enum status s = OK;
	struct stat st;
	for (struct dirent *entry; s == OK && (entry = readdir(d));) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || cli_layout_has(name) ||
			fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_uid != from)
			continue;
		s = err_set(e, E_INVALID,
			"%.150s belongs to user %u and holds more than firn's files (%.60s): a "
			"server "
			"that root starts makes its storage directory root's; name another one",
			path, from, name);
	}
	closedir(d);
	return s;
}

static void make_tree_ours(int dir, uid_t from, uint32_t depth)
{
	CLEANUP(fd_cleanup) int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	if (!d)
		return;
	(void)STEAL_FD(fd);
	struct stat st;
	for (struct dirent *entry; (entry = readdir(d));) {
		const char *name = entry->d_name;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
			continue;
		/* By descriptor, since the owner may replace the file meanwhile. */
		CLEANUP(fd_cleanup)
		int place = openat(dirfd(d), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (place < 0 || fstat(place, &st) < 0 || st.st_uid != from)
			continue;
		if (S_ISDIR(st.st_mode) && depth < STORAGE_DEPTH_MAX)
			make_tree_ours(place, from, depth + 1);
		if (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode))
			(void)!fchownat(place, "", geteuid(), (gid_t)-1, AT_EMPTY_PATH);
	}
	closedir(d);
}

/* Root without capabilities has only the rights of its files. So a directory of another user is
 * made root's, and a directory below one that root cannot search is used by its descriptor. */
static enum status take_storage(const char *path, int *out_fd, struct err *e)
{
	struct stat st;
	enum status s = os_make_dirs(path, e);
	if (s != OK)
		return s;
	int fd = *out_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_os(e, "open %s", path);
	if (st.st_uid == geteuid() || !(os_capabilities() & (uint64_t)1 << CAP_CHOWN))
		return OK;
	s = check_storage(fd, path, st.st_uid, e);
	if (s != OK)
		return s;
	make_tree_ours(fd, st.st_uid, 0);
	int rc = fchownat(fd, "", geteuid(), (gid_t)-1, AT_EMPTY_PATH);
	log_info("the storage directory was another user's", "uid=%u now=%u", st.st_uid,
		rc < 0 ? st.st_uid : geteuid());
	return OK;
}

/* Whether opening the address, a port or a socket file, may need capabilities. */
static bool wants_privileges(const char *address)
{
	const char *colon = strrchr(address, ':');
	uint64_t port = 0;
	if (str_starts(str_of(address), STR("unix:")))
		return true;
	return colon && str_parse_u64(str_of(colon + 1), 10, &port) && port > 0 &&
	       port < PRIVILEGED_PORTS_END;
}

enum status child_give_up(const struct server_config *c, struct child_server *out, struct err *e)
{
	out->config = *c;
	out->config.listen_fd = -1;
	out->storage_fd = -1;
	if (os_capabilities() == 0)
		return OK;
	enum status s = OK;
	if (c->storage_path)
		s = take_storage(c->storage_path, &out->storage_fd, e);
	if (s == OK && c->http_address && wants_privileges(c->http_address)) {
		s = net_listen(c->http_address, &out->config.listen_fd, out->address,
			sizeof(out->address), e);
		out->config.http_address = out->address;
	}
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (s == OK)
		s = os_set_capabilities(0, 0, e);
	if (out->storage_fd < 0)
		return s;
	if (s != OK || access(c->storage_path, R_OK | W_OK | X_OK) == 0) {
		fd_cleanup(&out->storage_fd);
	} else {
		snprintf(out->storage_path, sizeof(out->storage_path), "/proc/self/fd/%d",
			out->storage_fd);
		out->config.storage_path = out->storage_path;
	}
	return s;
}

int child_run_server(const struct server_config *c, pid_t parent)
{
	struct err e = { 0 };
	struct child_server own = { 0 };
	if (!settle("firn-server", parent))
		return CLI_FAILED;
	enum status s = child_give_up(c, &own, &e);
	if (s == OK)
		s = server_run(&own.config, &stop, &e);
	if (s == OK)
		return CLI_OK;
	return cli_complain_of_start(c, own.storage_path, s, &e);
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
