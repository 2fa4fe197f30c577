/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit SECONDS: machine code written into anonymous executable memory, with frame pointers as JIT
 * compilers emit them: main -> run -> outer (made here) -> inner (made here), which burns.
 */
#include "workload.h"

#include <sys/mman.h>

#define INNER_OFFSET 64

/* clang-format off */
static const uint8_t outer_code[] = {
	0x55,                               /* push %rbp */
	0x48, 0x89, 0xe5,                   /* mov %rsp, %rbp */
	0xe8, 0x00, 0x00, 0x00, 0x00,       /* call inner */
	0x5d,                               /* pop %rbp */
	0xc3,                               /* ret */
};
static const uint8_t inner_code[] = {
	0x55,                               /* push %rbp */
	0x48, 0x89, 0xe5,                   /* mov %rsp, %rbp */
	0xb9, 0x80, 0x84, 0x1e, 0x00,       /* mov $2000000, %ecx */
	0x48, 0x69, 0xc0, 0x35, 0x4a, 0x5c, 0x3a, /* imul $…, %rax, %rax */
	0xff, 0xc9,                         /* dec %ecx */
	0x75, 0xf5,                         /* jnz imul */
	0x5d,                               /* pop %rbp */
	0xc3,                               /* ret */
};
/* clang-format on */

NOINLINE static uint64_t run(uint64_t (*code)(void))
{
	return code() + 1;
}

int main(int argc, char **argv)
{
	workload_begin(argc, argv, 1);
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (code == MAP_FAILED)
		return 1;
	memcpy(code, outer_code, sizeof(outer_code));
	memcpy(code + INNER_OFFSET, inner_code, sizeof(inner_code));
	int32_t distance = INNER_OFFSET - 9; /* from behind the call */
	memcpy(code + 5, &distance, sizeof(distance));
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
		return 1;
	uint64_t (*entry)(void);
	memcpy(&entry, &code, sizeof(entry));
	uint64_t x = 0;
	while (!workload_is_over())
		x += run(entry);
	return x == 42;
}
