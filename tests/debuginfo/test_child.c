/* SPDX-License-Identifier: Apache-2.0 */
/* The child as a process: what it does with arguments of its own and how it ends. */
#include "made.h"

#include <errno.h>
#include <linux/capability.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int run_child(const char *const *argv, const char *in)
{
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		int from = in ? open(in, O_RDONLY | O_CLOEXEC) : null;
		dup2(from, 0);
		dup2(null, 1);
		dup2(null, 2);
		execv("/proc/self/exe", (char *const *)(uintptr_t)argv);
		_exit(99);
	}
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

#define RUN(in, ...) \
	run_child((const char *const[]){ "firn", DEBUGINFO_CHILD_VERB, __VA_ARGS__, NULL }, in)

static void refuses_other_arguments(void **state)
{
	(void)state;
	CHECK(RUN(NULL, "1") == E_INVALID);
	CHECK(RUN(NULL, "1000000000", "10", "1000000", "8") == E_INVALID);
	CHECK(RUN(NULL, "-1", "10", "1000000", "0") == E_INVALID);
	CHECK(RUN(NULL, "1000000000", "x", "1000000", "0") == E_INVALID);
	CHECK(RUN(NULL, "18446744073709551615", "10", "1000000", "0") == E_INVALID);
	CHECK(RUN("/etc/passwd", "1000000000", "10", "1000000", "0") == E_INVALID);
}

static void is_not_the_child_without_its_verb(void **state)
{
	(void)state;
	char name[] = "firn", other[] = "server";
	char *argv[] = { name, other, NULL };
	CHECK(debuginfo_child_main(2, argv) == -1);
	CHECK(debuginfo_child_main(1, argv) == -1);
	CHECK(debuginfo_child_main(0, argv) == -1);
}

static void relocatable_files_are_not_supported(void **state)
{
	(void)state;
	made_write("a.c", "int f(void) { return 1; }\n");
	made_run("cc -g -c -o a.o a.c");
	struct debuginfo_limits l;
	debuginfo_limits_default(&l);
	char out[128];
	snprintf(out, sizeof(out), "%s/o.sym", made_dir);
	CLEANUP(fd_cleanup) int fd = made_open("a.o");
	CHECK(debuginfo_build(fd, -1, out, &l, NULL) == E_UNSUPPORTED);
}

static void stops_when_told(void **state)
{
	(void)state;
	made_write("a.c", "int main(void) { return 1; }\n");
	made_run("cc -g -o a a.c");
	atomic_bool stop = true;
	struct debuginfo_limits l;
	debuginfo_limits_default(&l);
	l.stop = &stop;
	char out[128];
	snprintf(out, sizeof(out), "%s/o.sym", made_dir);
	CLEANUP(fd_cleanup) int fd = made_open("a");
	CHECK(debuginfo_build(fd, -1, out, &l, NULL) == E_CANCELED);
	CHECK(access(out, F_OK) != 0);
	CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* nobody is left */
}

/* More time than it may have: what is done when the limit comes is whatever that allows, but it
 * comes back, and says why. */
static void ends_at_the_limit_of_time(void **state)
{
	(void)state;
	struct debuginfo_limits l;
	debuginfo_limits_default(&l);
	l.cpu_seconds = 0;
	made_write("a.c", "int main(void) { return 1; }\n");
	made_run("cc -g -o a a.c");
	char out[128];
	snprintf(out, sizeof(out), "%s/o.sym", made_dir);
	CLEANUP(fd_cleanup) int fd = made_open("a");
	struct err e = { 0 };
	enum status s = debuginfo_build(fd, -1, out, &l, &e);
	CHECK(s == OK || s == E_LIMIT);
	CHECK(s == OK || strstr(e.text, "took too much"));
}

/* Nor could it be less so again, without CAP_SYS_NICE. */
static void runs_below_a_server_that_is_nicer(void **state)
{
	(void)state;
	made_write("a.c", "int main(void) { return 1; }\n");
	made_run("cc -g -o a a.c");
	char out[128];
	int status = 0;
	snprintf(out, sizeof(out), "%s/o.sym", made_dir);
	pid_t pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		struct debuginfo_limits l;
		debuginfo_limits_default(&l);
		int fd = made_open("a");
		prctl(PR_CAPBSET_DROP, CAP_SYS_NICE, 0, 0, 0); /* what execve() gives */
		_exit(setpriority(PRIO_PROCESS, 0, 19) == 0
				? (int)debuginfo_build(fd, -1, out, &l, NULL)
				: 99);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) == OK && access(out, F_OK) == 0);
}

TEST_MAIN_WITH(debuginfo_child_main, MADE(refuses_other_arguments),
	MADE(is_not_the_child_without_its_verb), MADE(relocatable_files_are_not_supported),
	MADE(stops_when_told), MADE(ends_at_the_limit_of_time),
	MADE(runs_below_a_server_that_is_nicer))
