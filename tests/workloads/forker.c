/* SPDX-License-Identifier: Apache-2.0 */
/*
 * forker fork|exec|vfork SECONDS: one child after the other, each of which burns a few
 * milliseconds: in a copy of the parent (fork), or as a program of its own (exec, vfork).
 */
#include "workload.h"

#include <sys/wait.h>

#define CHILD_SPINS 4

NOINLINE static uint64_t child_leaf(uint64_t x)
{
	return workload_spin(x, WORKLOAD_ROUNDS);
}

NOINLINE static int child_run(void)
{
	uint64_t x = 1;
	for (int i = 0; i < CHILD_SPINS; i++)
		x = child_leaf(x) + 1;
	return x == 42;
}

NOINLINE static pid_t start_child(const char *mode, char *self)
{
	if (strcmp(mode, "vfork") == 0) {
		char *args[] = { self, (char[]){ "child" }, NULL };
		pid_t pid = vfork();
		if (pid == 0) {
			(void)execv(self, args);
			_exit(127);
		}
		return pid;
	}
	pid_t pid = fork();
	if (pid == 0 && strcmp(mode, "exec") == 0) {
		(void)execl(self, self, "child", (char *)NULL);
		_exit(127);
	}
	if (pid == 0)
		_exit(child_run());
	return pid;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "child") == 0)
		return child_run();
	workload_begin(argc, argv, 2);
	while (argc > 1 && !workload_is_over()) {
		int status = 0;
		pid_t pid = start_child(argv[1], argv[0]);
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || WEXITSTATUS(status) == 127)
			return 1;
	}
	return 0;
}
