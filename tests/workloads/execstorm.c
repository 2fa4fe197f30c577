/* SPDX-License-Identifier: Apache-2.0 */
/*
 * execstorm RATE SECONDS [SPAWNERS [ROUNDS]]: starts so many programs a second (itself, as
 * "child", linked statically), each of which burns so many rounds (some 1,000 are a microsecond),
 * 10 calls deep. SPAWNERS processes (4) share the rate; each starts one by vfork, the next by
 * posix_spawn, the next by fork. Says at its end how many there were.
 */
#include "workload.h"

#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CHILD_ROUNDS "200000"
#define SPAWNERS "4"
#define SPAWNERS_MAX 64
/* Programs that run at a time, of one spawner: no more than the machine gets done. */
#define RUNNING_MAX 16

NOINLINE static uint64_t recurse(int depth, uint64_t x, uint32_t rounds)
{
	volatile char room[16];
	room[x & 15] = (char)depth;
	if (depth > 0) {
		uint64_t below = recurse(depth - 1, x + (uint64_t)depth, rounds);
		return below + (uint64_t)room[0];
	}
	return workload_spin(x, rounds) + (uint64_t)room[1];
}

static pid_t start(long number, char **args)
{
	extern char **environ;
	pid_t pid = -1;
	if (number % 3 == 1)
		return posix_spawn(&pid, args[0], NULL, NULL, args, environ) == 0 ? pid : -1;
	pid = number % 3 == 0 ? vfork() : fork();
	if (pid == 0) {
		(void)execv(args[0], args);
		_exit(127);
	}
	return pid;
}

static void wait_until(int64_t due_ns)
{
	int64_t left = due_ns - workload_now_ns();
	struct timespec t = { 0, left < 10000000 ? left : 10000000 };
	if (left > 0)
		(void)nanosleep(&t, NULL);
}

/* Counts in *started, which others read. What it falls behind it does not make up for. */
static void spawner(double rate, char **args, long *started)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	int running = 0;
	int64_t interval = (int64_t)(1e9 / rate);
	int64_t due = workload_now_ns();
	while (!workload_is_over()) {
		int64_t now = workload_now_ns();
		if (due > now) {
			wait_until(due);
		} else if (running < RUNNING_MAX) {
			pid_t pid = start(*started, args);
			running += pid > 0;
			*started += pid > 0;
			due = due + interval > now - interval ? due + interval : now;
		} else if (wait(NULL) > 0) {
			running--;
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			running--;
	}
	while (wait(NULL) > 0)
		;
	_exit(0);
}

int main(int argc, char **argv)
{
	char child[] = "child", few[] = CHILD_ROUNDS;
	if (argc > 2 && strcmp(argv[1], child) == 0)
		return recurse(10, 1, (uint32_t)atol(argv[2])) == 42;
	workload_begin(argc, argv, 2);
	double rate = argc > 1 ? strtod(argv[1], NULL) : 100;
	int spawners = atoi(argc > 3 ? argv[3] : SPAWNERS);
	char *args[] = { argv[0], child, argc > 4 ? argv[4] : few, NULL };
	size_t bytes = SPAWNERS_MAX * sizeof(long);
	long *started =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (started == MAP_FAILED || spawners < 1 || spawners > SPAWNERS_MAX || rate <= 0)
		return 1;
	int64_t begin = workload_now_ns();
	for (int i = 0; i < spawners; i++) {
		if (fork() == 0)
			spawner(rate / spawners, args, &started[i]);
	}
	while (wait(NULL) > 0)
		;
	long all = 0;
	for (int i = 0; i < spawners; i++)
		all += started[i];
	double seconds = (double)(workload_now_ns() - begin) / 1e9;
	printf("%ld programs in %.1f s: %.0f a second\n", all, seconds, (double)all / seconds);
	return 0;
}
