/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parent's half of a build: it starts the child with the files as descriptors, waits, checks
 * the whole table that the child wrote, and renames it into place. posix_spawn, not fork: the
 * parent has threads.
 */
#include "base/sanitized.h"
#include "debuginfo/symtab/child.h"
#include "debuginfo/symtab/table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SENTENCE_MAX 200
/* How often a waiting parent checks limits->stop. */
#define STOP_LOOK_MS 50
/* Our descriptors are moved above the numbers that the child's get. */
#define SPAWN_FD_MIN 16

void debuginfo_limits_default(struct debuginfo_limits *l)
{
	*l = (struct debuginfo_limits){
		.memory_bytes = (uint64_t)1 << 30,
		.cpu_seconds = 120,
		.output_bytes = (uint64_t)1 << 30,
	};
}

struct spawn {
	int fds[5];   /* by the child's number: copies of the descriptors; -1: none */
	int sentence; /* the parent's end of the pipe */
	pid_t pid;
};

static void spawn_deinit(struct spawn *p)
{
	for (size_t i = 0; i < ARRAY_COUNT(p->fds); i++)
		fd_cleanup(&p->fds[i]);
	fd_cleanup(&p->sentence);
}

static enum status copy_fd(int fd, int *out, struct err *e)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, SPAWN_FD_MIN);
	if (copy < 0)
		return err_os(e, "descriptor for the symbol table's child");
	*out = copy;
	return OK;
}

static enum status gather_fds(
	struct spawn *p, const struct debuginfo_files *files, int table, struct err *e)
{
	enum status s = copy_fd(files->fd, &p->fds[0], e);
	if (s == OK)
		s = copy_fd(table, &p->fds[1], e);
	if (s == OK && files->debug_fd >= 0)
		s = copy_fd(files->debug_fd, &p->fds[DEBUGINFO_CHILD_DEBUG_FD], e);
	if (s == OK && files->alt_fd >= 0)
		s = copy_fd(files->alt_fd, &p->fds[DEBUGINFO_CHILD_ALT_FD], e);
	if (s != OK)
		return s;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_os(e, "pipe");
	p->sentence = ends[0];
	s = copy_fd(ends[1], &p->fds[2], e);
	close(ends[1]);
	return s;
}

static int add_actions(posix_spawn_file_actions_t *actions, const struct spawn *p)
{
	int rc = 0;
	for (int i = 0; rc == 0 && i < (int)ARRAY_COUNT(p->fds); i++)
		if (p->fds[i] >= 0)
			rc = posix_spawn_file_actions_adddup2(actions, p->fds[i], i);
	return rc;
}

static enum status start(
	struct spawn *p, unsigned more, const struct debuginfo_limits *l, struct err *e)
{
	char memory[24], cpu[24], output[24], files[24];
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)l->memory_bytes);
	snprintf(cpu, sizeof(cpu), "%u", l->cpu_seconds);
	snprintf(output, sizeof(output), "%llu", (unsigned long long)l->output_bytes);
	unsigned bits = (p->fds[DEBUGINFO_CHILD_DEBUG_FD] >= 0 ? DEBUGINFO_CHILD_DEBUG : 0) |
			(p->fds[DEBUGINFO_CHILD_ALT_FD] >= 0 ? DEBUGINFO_CHILD_ALT : 0) | more;
	snprintf(files, sizeof(files), "%u", bits);
	char name[] = "firn", verb[] = DEBUGINFO_CHILD_VERB, own[PATH_MAX], beside[PATH_MAX];
	char option[] = "--library-path";
	char *argv[] = { name, option, beside, own, verb, memory, cpu, output, files, NULL };
	bool by_loader = os_self_loaded(own, beside);
	if (!by_loader)
		argv[3] = name;
	/* Of the parent's environment, which may contain secrets, the child gets only
	 * LD_LIBRARY_PATH. */
	char libraries[4096];
	const char *path = getenv("LD_LIBRARY_PATH");
	int n = snprintf(libraries, sizeof(libraries), "LD_LIBRARY_PATH=%s", path ? path : "");
	char *env[] = { path && n < (int)sizeof(libraries) ? libraries : NULL, NULL };

	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return err_set(e, E_NOMEM, "posix_spawn");
	if (posix_spawnattr_init(&attr) != 0) {
		posix_spawn_file_actions_destroy(&actions);
		return err_set(e, E_NOMEM, "posix_spawn");
	}
	/* The parent's threads may block or ignore signals; the child must not. */
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setpgroup(&attr, 0); /* so that Ctrl-C reaches the parent only */
	posix_spawnattr_setflags(
		&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
	int rc = add_actions(&actions, p);
	if (rc == 0)
		rc = posix_spawn(&p->pid, "/proc/self/exe", &actions, &attr,
			by_loader ? argv : argv + 3, env);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (rc != 0) {
		errno = rc;
		return err_os(e, "start the symbol table's child");
	}
	for (size_t i = 0; i < ARRAY_COUNT(p->fds); i++)
		fd_cleanup(&p->fds[i]);
	return OK;
}

/* Reads the child's error message until the child ends and so closes the pipe. False: stopped
 * before. */
static bool read_sentence(int fd, const atomic_bool *stop, char out[SENTENCE_MAX])
{
	size_t len = 0;
	bool stopped = false;
	while (len < SENTENCE_MAX - 1) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int rc = poll(&p, 1, STOP_LOOK_MS);
		stopped = stop && atomic_load(stop);
		if (stopped)
			break;
		if (rc <= 0)
			continue;
		ssize_t n = read(fd, out + len, SENTENCE_MAX - 1 - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	out[len] = '\0';
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)out[i] < ' ' || (unsigned char)out[i] > '~')
			out[i] = '?';
	return !stopped;
}

static enum status judge(int status, const char *sentence, struct err *e)
{
	if (WIFEXITED(status)) {
		int code = WEXITSTATUS(status);
		if (code == OK && SANITIZED && sentence[0])
			return err_set(e, E_CORRUPT, "a sanitizer spoke: %s", sentence);
		if (code == OK)
			return OK;
		if (code >= STATUS_COUNT)
			return err_set(e, E_CORRUPT, "reading it ended with status %d", code);
		return err_set(e, (enum status)code, "%s",
			sentence[0] ? sentence : status_text((enum status)code));
	}
	int sig = WTERMSIG(status);
	if (sig == SIGXCPU || sig == SIGXFSZ || sig == SIGKILL)
		return err_set(e, E_LIMIT, "reading it took too much %s",
			sig == SIGXFSZ   ? "disk"
			: sig == SIGXCPU ? "time"
					 : "time or memory");
	return err_set(e, E_CORRUPT, "reading it ended with signal %d (%s)", sig, strsignal(sig));
}

static enum status finish(struct spawn *p, const atomic_bool *stop, struct err *e)
{
	char sentence[SENTENCE_MAX];
	bool ended = read_sentence(p->sentence, stop, sentence);
	if (!ended)
		kill(p->pid, SIGKILL);
	/* Whatever the child still writes is lost: it gets SIGPIPE instead of blocking. */
	fd_cleanup(&p->sentence);
	p->sentence = -1;
	int status = 0;
	while (waitpid(p->pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_os(e, "wait for the symbol table's child");
	return ended ? judge(status, sentence, e)
		     : err_set(e, E_CANCELED, "%s", status_text(E_CANCELED));
}

enum status debuginfo_child_run(const struct debuginfo_files *files, unsigned bits, int table,
	const struct debuginfo_limits *limits, struct err *e)
{
	CLEANUP(spawn_deinit) struct spawn p = { { -1, -1, -1, -1, -1 }, -1, 0 };
	enum status s = gather_fds(&p, files, table, e);
	if (s == OK)
		s = start(&p, bits, limits, e);
	return s == OK ? finish(&p, limits->stop, e) : s;
}

/* Runs the child; if it fails because of the DWARF, a second one reads only the symbols. */
static enum status run_children(const struct debuginfo_files *files, int table,
	const struct debuginfo_limits *limits, struct err *e)
{
	enum status s = debuginfo_child_run(files, 0, table, limits, e);
	if (s != E_CORRUPT && s != E_LIMIT)
		return s;
	if (ftruncate(table, 0) != 0)
		return err_os(e, "empty the unfinished symbol table");
	return debuginfo_child_run(files, DEBUGINFO_CHILD_NO_DWARF, table, limits, e);
}

static enum status check(int fd, const char *path, struct err *e)
{
	struct debuginfo_table *t;
	enum status s = debuginfo_table_open_fd(fd, path, &t, e);
	if (s == OK)
		debuginfo_table_close(t);
	return s;
}

enum status debuginfo_build_files(const struct debuginfo_files *files, const char *out_path,
	const struct debuginfo_limits *limits, struct err *e)
{
	if (!debuginfo_child_is_ready())
		return err_set(e, E_UNSUPPORTED,
			"this program cannot build symbol tables: it lacks debuginfo_child_main()");
	char tmp[4096];
	int n = snprintf(tmp, sizeof(tmp), "%s.XXXXXX", out_path);
	if (n < 0 || (size_t)n >= sizeof(tmp))
		return err_set(e, E_LIMIT, "path too long: %.100s…", out_path);
	CLEANUP(fd_cleanup) int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return err_os(e, "create %s", tmp);
	enum status s = run_children(files, fd, limits, e);
	if (s == OK)
		s = check(fd, tmp, e);
	if (s == OK && fchmod(fd, 0640) != 0)
		s = err_os(e, "chmod %s", tmp);
	if (s == OK && fsync(fd) != 0)
		s = err_os(e, "fsync %s", tmp);
	if (s == OK && rename(tmp, out_path) != 0)
		s = err_os(e, "rename %s", out_path);
	if (s != OK)
		unlink(tmp);
	return s;
}

enum status debuginfo_build(int fd, int debug_fd, const char *out_path,
	const struct debuginfo_limits *limits, struct err *e)
{
	struct debuginfo_files files = { fd, debug_fd, -1 };
	return debuginfo_build_files(&files, out_path, limits, e);
}
