/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Says of itself that it is a Go program, with a list of heap buckets that Go would not make, and
 * takes memory until the kernel ends it.
 *
 *	false_heap cycle|wild|kernel|type|stack|deep WAIT_FILE
 */
#include "workload.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define STACK_MAX 2000
#define STEP_BYTES (1u << 20)

struct bucket {
	void *next;
	void *allnext;
	int64_t type;
	uint64_t hash, size, stack_count;
	uint64_t rest[STACK_MAX + 16];
};

struct bucket *first __asm__("runtime.mbuckets");
long rate __asm__("runtime.MemProfileRate") = 1;
__attribute__((section(".go.buildinfo"), used)) static const char mark[16] = "no Go at all";

static struct bucket one, two;

static void fill(struct bucket *b, uint64_t stack_count)
{
	b->type = 1;
	b->stack_count = stack_count;
	for (uint64_t i = 0; i < stack_count; i++)
		b->rest[i] = (uint64_t)(uintptr_t)&fill + i;
	b->rest[stack_count] = 3;          /* allocs */
	b->rest[stack_count + 2] = 3 * 64; /* their bytes */
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	const char *how = argv[1];
	fill(&one, 2);
	fill(&two, 2);
	first = &one;
	one.allnext = &two;
	if (strcmp(how, "cycle") == 0)
		two.allnext = &one;
	else if (strcmp(how, "wild") == 0)
		two.allnext = (void *)16;
	else if (strcmp(how, "kernel") == 0)
		two.allnext = (void *)0xffff888000000000;
	else if (strcmp(how, "type") == 0)
		two.type = 2;
	else if (strcmp(how, "stack") == 0)
		two.stack_count = STACK_MAX;
	else if (strcmp(how, "deep") == 0)
		fill(&two, 300);
	else
		return 2;
	while (access(argv[2], F_OK) != 0)
		usleep(10000);
	for (;;) {
		char *p = mmap(NULL, STEP_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p == MAP_FAILED)
			return 1;
		for (size_t i = 0; i < STEP_BYTES; i += 4096)
			p[i] = 1;
	}
}
