/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storm SECONDS: one thread maps and unmaps memory as fast as it can, the other burns 30 calls
 * deep: the tree of mappings changes while samples are taken.
 */
#include "workload.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#define MAPPINGS 256
#define PAGE_BYTES 4096

static void *map_and_unmap(void *path)
{
	void *at[MAPPINGS] = { NULL };
	size_t bytes[MAPPINGS] = { 0 };
	uint32_t x = 1;
	int fd = open((const char *)path, O_RDONLY);
	(void)pthread_setname_np(pthread_self(), "storm-mapper");
	while (fd >= 0 && !workload_is_over()) {
		x = x * 1664525 + 1013904223;
		uint32_t i = x >> 24;
		if (at[i]) {
			(void)munmap(at[i], bytes[i]);
			at[i] = NULL;
			continue;
		}
		bytes[i] = PAGE_BYTES * (1 + ((x >> 8) & 63));
		int protection = PROT_READ | (x >> 4 & 1 ? PROT_EXEC : 0);
		at[i] = mmap(NULL, bytes[i], protection, MAP_PRIVATE, fd, 0);
		if (at[i] == MAP_FAILED)
			at[i] = NULL;
	}
	return NULL;
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
		x = workload_spin(x, WORKLOAD_ROUNDS) + (uint64_t)room[1];
	return x;
}

int main(int argc, char **argv)
{
	pthread_t mapper;
	workload_begin(argc, argv, 1);
	if (pthread_create(&mapper, NULL, map_and_unmap, argv[0]) != 0)
		return 1;
	uint64_t x = recurse(30, 1);
	(void)pthread_join(mapper, NULL);
	return x == 42;
}
