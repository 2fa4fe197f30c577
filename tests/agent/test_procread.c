/* SPDX-License-Identifier: Apache-2.0 */
/* Live processes: this one, one that is gone, and one whose execve() hangs as it closes a file. */
#include "agent/process/procread.h"

#include "temp_dir.h"
#include "test.h"

#include "hanging_mount.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define OTHER_USER 65534

static uint64_t start_of(pid_t pid)
{
	struct procfs_stat stat;
	struct err e;
	CHECK_OK(procfs_stat((int)pid, &stat, &e), &e);
	return stat.start_ticks;
}

static struct procread *make(void)
{
	struct procread *p;
	struct err e;
	CHECK_OK(procread_new(0, str_make("NOPATH\0PATH\0", 12), &p, &e), &e);
	return p;
}

/* As who waits for it as long as it takes. */
static struct procread_answer *ask(struct procread *p, const struct procread_wish *w)
{
	struct procread_answer *a;
	int64_t end = clock_monotonic_ns() + 60 * NS_PER_SEC;
	while (!(a = procread_ask(p, w)) && clock_monotonic_ns() < end)
		usleep(1000);
	return a;
}

static void reads_a_process(void **state)
{
	(void)state;
	struct procread *p = make();
	struct procread_wish w = { .pid = getpid(), .start_ticks = start_of(getpid()) };
	struct procread_answer *a = ask(p, &w);
	CHECK(a && a->is_it && a->ppid == (uint32_t)getppid());
	CHECK_STR(a->executable, program_invocation_short_name);
	CHECK(a->command_line.len == 0 && a->environment.len == 0);
	procread_answer_free(a);
	w.command_line = true;
	w.environment = true;
	a = ask(p, &w);
	CHECK(a && str_starts(a->environment, STR("PATH=")));
	CHECK(str_ends(a->command_line, str_make("procread", sizeof("procread"))));
	procread_answer_free(a);
	w.start_ticks++; /* another with the same pid */
	a = ask(p, &w);
	CHECK(a && !a->is_it);
	procread_answer_free(a);
	pid_t child = fork();
	if (child == 0)
		_exit(0);
	CHECK(waitpid(child, NULL, 0) == child);
	w.pid = child;
	a = ask(p, &w);
	CHECK(a && !a->is_it);
	procread_answer_free(a);
	procread_free(p);
	procread_free(NULL);
}

/* A child that closes what hangs, in execve(). */
static pid_t start_hanging(int go)
{
	pid_t child = fork();
	if (child == 0) {
		char byte;
		(void)!read(go, &byte, 1);
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	CHECK(child > 0);
	return child;
}

/* Until it is in execve(): /proc does not answer, or where it waits for no lock has the new name.
 */
static bool answers_in_exec(struct procread *p, const struct procread_wish *w)
{
	for (;;) {
		int64_t begin = clock_monotonic_ns();
		struct procread_answer *a = procread_ask(p, w);
		CHECK(clock_monotonic_ns() - begin < 10 * NS_PER_SEC);
		bool answers = a, is_new = a && str_eq(a->executable, STR("sleep"));
		procread_answer_free(a);
		if (!answers || is_new)
			return answers;
		usleep(1000);
	}
}

/* Of another user, and without a file that hangs. */
static pid_t start_other(void)
{
	pid_t child = fork();
	if (child == 0) {
		alarm(100);
		if (setuid(OTHER_USER) == 0)
			pause();
		_exit(1);
	}
	CHECK(child > 0);
	uint32_t user = 0;
	while (user != OTHER_USER)
		CHECK(procfs_user(child, &user, NULL) == OK);
	return child;
}

/* Those of root that hang have not taken all threads. */
static void answers_for_another_user(struct procread *p, pid_t other)
{
	const struct procread_wish w = { .pid = other, .start_ticks = start_of(other) };
	struct procread_answer *a = ask(p, &w);
	CHECK(a && a->is_it);
	procread_answer_free(a);
}

static void waits_for_nobody(void **state)
{
	(void)state;
	static const char content[4096] = "";
	struct temp_dir dir;
	struct hanging_mount m;
	int go[2];
	if (geteuid() != 0)
		SKIP("needs root: a file system that hangs");
	temp_dir_init(&dir);
	const char *why =
		hanging_mount_init(&m, dir.path, HANGS_CLOSE, str_make(content, sizeof(content)));
	if (why) {
		temp_dir_deinit(&dir);
		SKIP("%s", why);
	}
	alarm(100); /* whoever looks at such a process by another way waits for ever */
	CHECK(pipe2(go, O_CLOEXEC) == 0);
	pid_t other = start_other();
	/* From the second on closing hangs. */
	int files[] = { open(m.path, O_RDONLY | O_CLOEXEC), open(m.path, O_RDONLY | O_CLOEXEC) };
	CHECK(files[0] >= 0 && files[1] >= 0);
	struct procread *p = make();
	struct procread_wish w[PROCREAD_THREADS_MAX + 1];
	pid_t children[PROCREAD_THREADS_MAX];
	for (size_t i = 0; i < PROCREAD_THREADS_MAX; i++) {
		children[i] = start_hanging(go[0]);
		w[i] = (struct procread_wish){ .pid = children[i],
			.start_ticks = start_of(children[i]),
			.command_line = true };
	}
	CHECK(write(go[1], "xxxx", PROCREAD_THREADS_MAX) == PROCREAD_THREADS_MAX);
	bool hangs = false;
	for (size_t i = 0; i < PROCREAD_THREADS_MAX; i++)
		hangs |= !answers_in_exec(p, &w[i]);
	/* Where these wait for no lock, what follows is as it always is. */
	printf("/proc %s while execve() hangs\n", hangs ? "does not answer" : "answers");
	w[PROCREAD_THREADS_MAX] = (struct procread_wish){ getpid(), start_of(getpid()) };
	if (hangs) {
		procread_answer_free(procread_ask(p, &w[PROCREAD_THREADS_MAX]));
		answers_for_another_user(p, other);
	}
	hanging_mount_let_go(&m);
	for (size_t i = 0; i <= PROCREAD_THREADS_MAX; i++) {
		struct procread_answer *a = ask(p, &w[i]);
		CHECK(a && a->is_it);
		CHECK_STR(a->executable,
			i == PROCREAD_THREADS_MAX ? program_invocation_short_name : "sleep");
		procread_answer_free(a);
	}
	procread_free(p);
	for (size_t i = 0; i < PROCREAD_THREADS_MAX; i++)
		CHECK(kill(children[i], SIGKILL) == 0 && waitpid(children[i], NULL, 0) > 0);
	CHECK(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
	close(files[0]);
	close(files[1]);
	alarm(0);
	close(go[0]);
	close(go[1]);
	hanging_mount_deinit(&m);
	temp_dir_deinit(&dir);
}

TEST_MAIN(cmocka_unit_test(reads_a_process), cmocka_unit_test(waits_for_nobody))
