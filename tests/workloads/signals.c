/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signals SECONDS: a timer of CPU time interrupts `interrupted`, 20 calls deep; the handler runs on
 * an alternate stack and burns there.
 */
#include "workload.h"

#include <sys/mman.h>
#include <sys/time.h>

#define ALTERNATE_STACK_BYTES (64 << 10)

NOINLINE static uint64_t handler_leaf(uint64_t x)
{
	return workload_spin(x, WORKLOAD_ROUNDS);
}

static void on_signal(int signal)
{
	for (int i = 0; i < 3; i++)
		workload_sink = handler_leaf((uint64_t)signal) + 1;
}

NOINLINE static uint64_t interrupted(uint64_t x)
{
	return workload_spin(x, WORKLOAD_ROUNDS);
}

NOINLINE static uint64_t recurse(int depth, uint64_t x)
{
	volatile char room[16];
	room[x & 15] = (char)depth;
	if (depth > 0) {
		uint64_t below = recurse(depth - 1, x + (uint64_t)depth);
		return below + (uint64_t)room[0];
	}
	while (!workload_is_over())
		x = interrupted(x) + (uint64_t)room[1];
	return x;
}

int main(int argc, char **argv)
{
	workload_begin(argc, argv, 1);
	stack_t stack = { .ss_size = ALTERNATE_STACK_BYTES };
	stack.ss_sp = mmap(NULL, ALTERNATE_STACK_BYTES, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_ONSTACK };
	struct itimerval timer = { { 0, 20000 }, { 0, 20000 } };
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) != 0 ||
		sigaction(SIGPROF, &action, NULL) != 0 || setitimer(ITIMER_PROF, &timer, NULL) != 0)
		return 1;
	return recurse(20, 1) == 42;
}
