/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execstorm RATE SECONDS: starts so many programs a second (itself, as "child"), each of which
 * burns half a millisecond, 10 calls deep. Says at its end how many there were.
 */
#include "workload.h"

#include <errno.h>
#include <sys/wait.h>

#define CHILD_ROUNDS 1000000

NOINLINE static uint64_t recurse(int depth, uint64_t x)
{
	volatile char room[16];
	room[x & 15] = (char)depth;
	if (depth > 0) {
		uint64_t below = recurse(depth - 1, x + (uint64_t)depth);
		return below + (uint64_t)room[0];
	}
	return workload_spin(x, CHILD_ROUNDS) + (uint64_t)room[1];
}

int main(int argc, char **argv)
{
	char child[] = "child";
	if (argc > 1 && strcmp(argv[1], child) == 0)
		return recurse(10, 1) == 42;
	workload_begin(argc, argv, 2);
	double rate = argc > 1 ? strtod(argv[1], NULL) : 100;
	int64_t begin = workload_now_ns();
	long started = 0;
	while (!workload_is_over()) {
		int64_t due = begin + (int64_t)((double)started / rate * 1e9);
		int64_t now = workload_now_ns();
		if (due > now) {
			struct timespec t = { 0, due - now < 10000000 ? due - now : 10000000 };
			(void)nanosleep(&t, NULL);
			while (waitpid(-1, NULL, WNOHANG) > 0)
				;
			continue;
		}
		char *args[] = { argv[0], child, NULL };
		pid_t pid = vfork();
		if (pid == 0) {
			(void)execv(argv[0], args);
			_exit(127);
		}
		started += pid > 0;
		/* No more than the machine runs. */
		if (pid < 0 && errno == EAGAIN)
			(void)wait(NULL);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
	while (wait(NULL) > 0)
		;
	printf("%ld programs in %.1f s\n", started, (double)(workload_now_ns() - begin) / 1e9);
	return 0;
}
