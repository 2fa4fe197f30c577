/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crowd PROCESSES THREADS SECONDS: so many processes of so many threads each, which sleep and burn
 * a few microseconds once a second. Says "ready" when all are there.
 */
#include "workload.h"

#include <pthread.h>
#include <sys/wait.h>

#define STACK_BYTES 65536
#define ROUNDS 20000

NOINLINE static uint64_t member(uint64_t x)
{
	while (!workload_is_over()) {
		/* Not all at once. */
		struct timespec t = { 1, (long)(x % 1000) * 1000000 % 999000000 };
		(void)nanosleep(&t, NULL);
		x = workload_spin(x, ROUNDS) + 1;
	}
	return x;
}

static void *thread(void *arg)
{
	(void)member((uint64_t)(uintptr_t)arg);
	return NULL;
}

static void process(int number, int threads)
{
	pthread_attr_t attr;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)pthread_attr_init(&attr);
	(void)pthread_attr_setstacksize(&attr, STACK_BYTES);
	for (int i = 1; i < threads; i++) {
		pthread_t t;
		uintptr_t x = (uintptr_t)number * 7919 + (uintptr_t)i * 104729;
		if (pthread_create(&t, &attr, thread, (void *)x) != 0)
			_exit(1);
	}
	(void)member((uint64_t)number * 7919);
	_exit(0);
}

int main(int argc, char **argv)
{
	int processes = argc > 1 ? atoi(argv[1]) : 1;
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	workload_begin(argc, argv, 3);
	for (int i = 0; i < processes; i++) {
		pid_t pid = fork();
		if (pid == 0)
			process(i, threads);
		if (pid < 0) {
			perror("fork");
			return 1;
		}
	}
	printf("ready\n");
	(void)fflush(stdout);
	while (wait(NULL) > 0)
		;
	return 0;
}
