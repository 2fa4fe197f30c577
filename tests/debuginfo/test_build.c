/* SPDX-License-Identifier: Apache-2.0 */
/* A table of this very program, made by the real child, and what the child does with bad files. */
#include "test.h"

#include "debuginfo/debuginfo.h"

#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

static volatile int sink;

static __attribute__((always_inline)) inline uintptr_t inlined_inner(int x)
{
	sink += x;
	uintptr_t at;
#if defined(__x86_64__)
	__asm__ volatile("lea 0(%%rip), %0" : "=r"(at));
#else
	__asm__ volatile("adr %0, ." : "=r"(at));
#endif
	sink -= x;
	return at;
}

static __attribute__((noinline)) uintptr_t outer_function(int x)
{
	sink += 1;
	uintptr_t at = inlined_inner(x);
	sink += 2;
	return at;
}
/* Of the call above. */
#define CALL_LINE 30

static int load_base(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	*(uintptr_t *)out = info->dlpi_addr;
	return 1; /* the first one is the program */
}

static uint64_t to_vaddr(uintptr_t run_address)
{
	uintptr_t base = 0;
	dl_iterate_phdr(load_base, &base);
	return run_address - base;
}

static char dir[64];

static int make_dir(void **state)
{
	(void)state;
	snprintf(dir, sizeof(dir), "/tmp/firn-test-debuginfo-XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

static enum status build(
	const char *path, const struct debuginfo_limits *limits, char out[96], struct err *e)
{
	snprintf(out, 96, "%s/t.sym", dir);
	CLEANUP(fd_cleanup) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	struct debuginfo_limits l;
	debuginfo_limits_default(&l);
	return debuginfo_build(fd, -1, out, limits ? limits : &l, e);
}

static void names_inlined_calls(void **state)
{
	(void)state;
	char path[96];
	struct err e = { 0 };
	CHECK_OK(build("/proc/self/exe", NULL, path, &e), &e);
	struct debuginfo_table *t;
	CHECK_OK(debuginfo_table_open(path, &t, &e), &e);
	unlink(path);
	struct debuginfo_frame f[DEBUGINFO_FRAMES_MAX];
	uint32_t n = debuginfo_table_find(t, to_vaddr(outer_function(1)), f, DEBUGINFO_FRAMES_MAX);
	CHECK(n == 2);
	CHECK_STR(f[0].name, "inlined_inner");
	CHECK(f[0].inlined);
	CHECK_STR(f[1].name, "outer_function");
	CHECK(!f[1].inlined);
	CHECK(f[1].line == CALL_LINE);
	CHECK(f[1].start_line == CALL_LINE - 3);
	CHECK(str_ends(f[1].file, STR("tests/debuginfo/test_build.c")));
	struct debuginfo_table_info info;
	debuginfo_table_describe(t, &info);
	CHECK(info.has_dwarf && info.has_symtab && !info.dwarf_cut && !info.dwarf_damaged);
	CHECK(info.ranges > 100 && info.functions > 10);
	/* Nothing is known below the first and above the last address. */
	CHECK(debuginfo_table_find(t, 0, f, 1) == 0);
	CHECK(debuginfo_table_find(t, UINT64_MAX, f, 1) == 0);
	/* The room given is the room used. */
	CHECK(debuginfo_table_find(t, to_vaddr(outer_function(1)), f, 1) == 1);
	debuginfo_table_close(t);
}

static void maps_file_offsets(void **state)
{
	(void)state;
	char path[96];
	struct err e = { 0 };
	CHECK_OK(build("/proc/self/exe", NULL, path, &e), &e);
	struct debuginfo_table *t;
	CHECK_OK(debuginfo_table_open(path, &t, &e), &e);
	unlink(path);
	uint64_t vaddr = 1;
	CHECK(debuginfo_table_vaddr(t, 0, &vaddr));
	CHECK(vaddr == 0); /* a position independent program's first segment */
	CHECK(!debuginfo_table_vaddr(t, UINT64_MAX, &vaddr));
	debuginfo_table_close(t);
}

static void refuses_what_is_no_elf(void **state)
{
	(void)state;
	char path[96];
	struct err e = { 0 };
	CHECK(build("/etc/passwd", NULL, path, &e) == E_INVALID);
	CHECK(access(path, F_OK) != 0);
	CHECK(build("/dev/null", NULL, path, &e) == E_INVALID);
}

static void limits_hold(void **state)
{
	(void)state;
	char path[96];
	struct err e = { 0 };
	struct debuginfo_limits l;
	debuginfo_limits_default(&l);
	l.output_bytes = 4096;
	CHECK(build("/proc/self/exe", &l, path, &e) == E_LIMIT);
	CHECK(access(path, F_OK) != 0);
}

/* Too little memory for DWARF: the symbols are there, and the table says what is missing. */
static void cuts_dwarf_at_the_limit(void **state)
{
	(void)state;
	if (SANITIZED)
		SKIP("a sanitizer's heap cannot be measured");
	char path[96];
	struct err e = { 0 };
	struct debuginfo_limits l;
	debuginfo_limits_default(&l);
	l.memory_bytes = 128 << 10;
	CHECK_OK(build("/proc/self/exe", &l, path, &e), &e);
	struct debuginfo_table *t;
	CHECK_OK(debuginfo_table_open(path, &t, &e), &e);
	unlink(path);
	struct debuginfo_table_info info;
	debuginfo_table_describe(t, &info);
	CHECK(info.dwarf_cut);
	struct debuginfo_frame f[2];
	CHECK(debuginfo_table_find(t, to_vaddr(outer_function(1)), f, 2) >= 1);
	debuginfo_table_close(t);
}

TEST_MAIN_WITH(debuginfo_child_main,
	cmocka_unit_test_setup_teardown(names_inlined_calls, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(maps_file_offsets, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(refuses_what_is_no_elf, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(limits_hold, make_dir, remove_dir),
	cmocka_unit_test_setup_teardown(cuts_dwarf_at_the_limit, make_dir, remove_dir))
