/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jit SECONDS [MEMORY [NAMES NAME]]: machine code written into executable memory, with frame
 * pointers as JIT compilers emit them: main -> run -> outer (made here) -> inner (made here), which
 * burns.
 *
 * MEMORY is "private" (anonymous, if nothing is said), "shared" (anonymous: PHP), "memfd" (BEAM,
 * .NET) or a file to write it to (SBCL). "zero": private, and code that keeps no frame pointer: rbp
 * is zero in it, and it calls `burn` here.
 *
 * NAMES: "map" writes NAME_outer and NAME_inner into a perf map, "dump" into a jitdump in the
 * current folder, in V8's form. "again": as dump, and after half of the time the same code is
 * written anew, from then on as NAME_again_outer and NAME_again_inner. "objects" registers both for
 * debuggers, as compilers with GDB's interface do.
 */
#include "workload.h"

#include "../jit_registered.h"

#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
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

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void tell_map(const uint8_t *code, const char *name)
{
	char path[64];
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	FILE *f = fopen(path, "w");
	if (!f)
		exit(1);
	fprintf(f, "%lx %zx JS:*%s_outer /srv/app.js:3:1\n", (long)code, sizeof(outer_code), name);
	fprintf(f, "%lx %zx JS:*%s_inner /srv/app.js:7:1\n", (long)code + INNER_OFFSET,
		sizeof(inner_code), name);
	fclose(f);
}

/* Its first page is mapped as executable: so it is found. */
static FILE *dump_new(void)
{
	const uint32_t head[] = { 0x4A695444, 1, 40, EM_X86_64, 0, (uint32_t)getpid(), 0, 0, 0, 0 };
	char path[64];
	snprintf(path, sizeof(path), "jit-%d.dump", (int)getpid());
	FILE *f = fopen(path, "w+");
	if (!f || fwrite(head, sizeof(head), 1, f) != 1 || fflush(f) != 0 ||
		mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0) == MAP_FAILED)
		exit(1);
	return f;
}

static void dump_load(
	FILE *f, const uint8_t *code, size_t size, const char *name, const char *part, int line)
{
	char text[256];
	size_t len = (size_t)snprintf(
			     text, sizeof(text), "JS:*%s_%s /srv/app.js:%d:1", name, part, line) +
		     1;
	const uint32_t kind_and_size[] = { 0, (uint32_t)(16 + 40 + len + size) };
	const uint64_t time_ns = now_ns();
	const uint64_t body[] = { (uint64_t)getpid(), (uintptr_t)code, (uintptr_t)code, size, 1 };
	fwrite(kind_and_size, sizeof(kind_and_size), 1, f);
	fwrite(&time_ns, sizeof(time_ns), 1, f);
	fwrite(body, sizeof(body), 1, f);
	fwrite(text, len, 1, f);
	fwrite(code, size, 1, f);
}

static void tell_dump(FILE *f, const uint8_t *code, const char *name)
{
	dump_load(f, code, sizeof(outer_code), name, "outer", 3);
	dump_load(f, code + INNER_OFFSET, sizeof(inner_code), name, "inner", 7);
	if (fflush(f) != 0)
		exit(1);
}

/* The same code, in the same place. */
static void write_again(uint8_t *code, FILE *dump, const char *name)
{
	char again[128];
	snprintf(again, sizeof(again), "%s_again", name);
	if (mprotect(code, 4096, PROT_READ | PROT_WRITE) != 0)
		exit(1);
	write_code(code, false);
	if (mprotect(code, 4096, PROT_READ | PROT_EXEC) != 0)
		exit(1);
	tell_dump(dump, code, again);
}

struct registered_descriptor __jit_debug_descriptor = { .version = 1 };

static void tell_objects(const uint8_t *code, const char *name)
{
	static struct registered_object outer, inner;
	char text[64];
	snprintf(text, sizeof(text), "%s_outer", name);
	registered_make(&outer, text, (uintptr_t)code, sizeof(outer_code));
	registered_add(&outer);
	snprintf(text, sizeof(text), "%s_inner", name);
	registered_make(&inner, text, (uintptr_t)code + INNER_OFFSET, sizeof(inner_code));
	registered_add(&inner);
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
	const char *names = argc > 4 ? argv[3] : "";
	bool is_twice = strcmp(names, "again") == 0;
	FILE *dump = is_twice || strcmp(names, "dump") == 0 ? dump_new() : NULL;
	if (strcmp(names, "map") == 0)
		tell_map(code, argv[4]);
	if (strcmp(names, "objects") == 0)
		tell_objects(code, argv[4]);
	if (dump)
		tell_dump(dump, code, argv[4]);
	uint64_t half = now_ns() + (uint64_t)(atof(argv[1]) * 0.5e9);
	uint64_t (*entry)(burn_fn *);
	memcpy(&entry, &code, sizeof(entry));
	uint64_t x = 0;
	while (!workload_is_over()) {
		if (is_twice && now_ns() >= half) {
			write_again(code, dump, argv[4]);
			is_twice = false;
		}
		x += run(entry);
	}
	return x == 42;
}
