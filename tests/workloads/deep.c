/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deep DEPTH SECONDS: main -> recurse, DEPTH + 1 times -> leaf, which burns. Built without frame
 * pointers. Also as deep_static and deep_static_pie, and deep_stripped.
 */
#include "workload.h"

NOINLINE static uint64_t leaf(uint64_t x)
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
		x = leaf(x) + (uint64_t)room[1];
	return x;
}

int main(int argc, char **argv)
{
	workload_begin(argc, argv, 2);
	int depth = argc > 1 ? atoi(argv[1]) : 10;
	return recurse(depth, 1) == 42;
}
