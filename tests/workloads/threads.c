/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads COUNT SECONDS: each thread is called "worker-N", recurses 5 * N + 5 times and burns.
 */
#include "workload.h"

#include <pthread.h>

#define THREADS_MAX 64

NOINLINE static uint64_t recurse(int depth, uint64_t x)
{
	volatile char room[16];
	room[x & 15] = (char)depth;
	if (depth > 0) {
		uint64_t below = recurse(depth - 1, x + (uint64_t)depth);
		return below + (uint64_t)room[0];
	}
	while (!workload_is_over())
		x = workload_spin(x, WORKLOAD_ROUNDS) + (uint64_t)room[1];
	return x;
}

static void *worker(void *number)
{
	int n = *(int *)number;
	char name[16];
	(void)snprintf(name, sizeof(name), "worker-%d", n);
	(void)pthread_setname_np(pthread_self(), name);
	*(int *)number = (int)recurse(5 * n + 5, (uint64_t)n);
	return NULL;
}

int main(int argc, char **argv)
{
	static int numbers[THREADS_MAX];
	static pthread_t threads[THREADS_MAX];
	workload_begin(argc, argv, 2);
	int count = argc > 1 ? atoi(argv[1]) : 2;
	for (int i = 0; i < count && i < THREADS_MAX; i++) {
		numbers[i] = i;
		if (pthread_create(&threads[i], NULL, worker, &numbers[i]) != 0)
			return 1;
	}
	for (int i = 0; i < count && i < THREADS_MAX; i++)
		(void)pthread_join(threads[i], NULL);
	return 0;
}
