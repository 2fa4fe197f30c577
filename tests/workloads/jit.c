/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit SECONDS [MEMORY]: machine code written into executable memory, with frame pointers as JIT
 * compilers emit them: main -> run -> outer (made here) -> inner (made here), which burns.
 *
 * MEMORY is "private" (anonymous, if nothing is said), "shared" (anonymous: PHP), "memfd" (BEAM,
 * .NET) or a file to write it to (SBCL). "zero": private, and code that keeps no frame pointer: rbp
 * is zero in it, and it calls `burn` here.
 */
#include "workload.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

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
static const uint8_t zero_code[] = {
	0x55,                               /* push %rbp */
	0x53,                               /* push %rbx: only for the alignment, and one more */
	0x50,                               /* push %rax */
	0x31, 0xed,                         /* xor %ebp, %ebp */
	0xff, 0xd7,                         /* call *%rdi */
	0x59,                               /* pop %rcx */
	0x5b,                               /* pop %rbx */
	0x5d,                               /* pop %rbp */
	0xc3,                               /* ret */
};
/* clang-format on */

typedef uint64_t burn_fn(void);

NOINLINE static uint64_t burn(void)
{
	uint64_t x = 1;
	for (int i = 0; i < 2000000; i++)
		x = x * 979127861 + (uint64_t)i;
	return x;
}

NOINLINE static uint64_t run(uint64_t (*code)(burn_fn *))
{
	return code(burn) + 1;
}

/* Writable; executable afterwards. */
static uint8_t *memory_new(const char *kind)
{
	int flags = MAP_SHARED, fd = -1;
	if (strcmp(kind, "private") == 0 || strcmp(kind, "zero") == 0)
		flags = MAP_PRIVATE | MAP_ANONYMOUS;
	else if (strcmp(kind, "shared") == 0)
		flags |= MAP_ANONYMOUS;
	else if (strcmp(kind, "memfd") == 0)
		fd = memfd_create("code", 0);
	else
		fd = open(kind, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd >= 0 && ftruncate(fd, 4096) != 0)
		return MAP_FAILED;
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE, flags, fd, 0);
}

static void write_code(uint8_t *code, bool is_zero)
{
	if (is_zero) {
		memcpy(code, zero_code, sizeof(zero_code));
		return;
	}
	memcpy(code, outer_code, sizeof(outer_code));
	memcpy(code + INNER_OFFSET, inner_code, sizeof(inner_code));
	int32_t distance = INNER_OFFSET - 9; /* from behind the call */
	memcpy(code + 5, &distance, sizeof(distance));
}

int main(int argc, char **argv)
{
	workload_begin(argc, argv, 1);
	const char *kind = argc > 2 ? argv[2] : "private";
	uint8_t *code = memory_new(kind);
	if (code == MAP_FAILED)
		return 1;
	write_code(code, strcmp(kind, "zero") == 0);
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
		return 1;
	uint64_t (*entry)(burn_fn *);
	memcpy(&entry, &code, sizeof(entry));
	uint64_t x = 0;
	while (!workload_is_over())
		x += run(entry);
	return x == 42;
}
