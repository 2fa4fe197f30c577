/* SPDX-License-Identifier: Apache-2.0 */
/* The symbolizer on this very program: its own functions, by each way a table can come to be. */
#include "test.h"

#include "objfile/objfile.h"
#include "symbolize/symbolize.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/auxv.h>
#include <unistd.h>

/* Long, for a loaded machine; a test that passes does not wait. */
#define WAIT_MS 60000

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
	uintptr_t at = inlined_inner(x);
	sink += 2;
	return at;
}

static int load_base(struct dl_phdr_info *info, size_t size, void *out)
{
	(void)size;
	*(uintptr_t *)out = info->dlpi_addr;
	return 1;
}

static uintptr_t base(void)
{
	uintptr_t b = 0;
	dl_iterate_phdr(load_base, &b);
	return b;
}

struct setup {
	char dir[64];
	char exe[256];
	char build_id[129];
	struct symbolizer_config config;
	struct symbolizer *s;
	struct profile p;
};
static struct setup t;

static void shell(const char *fmt, ...) PRINTF(1, 2);
static void shell(const char *fmt, ...)
{
	char command[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	CHECK(system(command) == 0); /* NOLINT */
}

static int set_up(void **state)
{
	(void)state;
	t = (struct setup){ 0 };
	snprintf(t.dir, sizeof(t.dir), "/tmp/firn-test-symbolize-XXXXXX");
	CHECK(mkdtemp(t.dir));
	ssize_t n = readlink("/proc/self/exe", t.exe, sizeof(t.exe) - 1);
	CHECK(n > 0);
	struct objfile *obj;
	CHECK_OK(objfile_open(t.exe, &obj, NULL), NULL);
	snprintf(t.build_id, sizeof(t.build_id), "%s", objfile_build_id(obj));
	objfile_close(obj);
	CHECK(t.build_id[0] != '\0');
	symbolizer_config_default(&t.config);
	t.config.dir = t.dir;
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK_OK(profile_init(&t.p, 1 << 20), NULL);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	symbolizer_free(t.s);
	profile_deinit(&t.p);
	shell("rm -r %s", t.dir);
	return 0;
}

static uint32_t string(const char *s)
{
	uint32_t id;
	CHECK_OK(profile_add_string(&t.p, str_of(s), &id), NULL);
	return id;
}

static uint32_t add_mapping(
	const char *file, const char *build_id, uint64_t start, uint64_t limit, uint64_t offset)
{
	struct profile_mapping m = { start, limit, offset, string(file), string(build_id) };
	uint32_t id;
	CHECK_OK(profile_add_mapping(&t.p, &m, &id), NULL);
	return id;
}

static uint32_t add_location(uint32_t mapping, uint64_t address, enum frame_kind kind)
{
	struct profile_location loc = {
		.address = address, .mapping = mapping, .kind = (uint8_t)kind
	};
	uint32_t id;
	CHECK_OK(profile_add_location(&t.p, &loc, NULL, 0, &id), NULL);
	return id;
}

static struct str name_of(uint32_t location, uint32_t line)
{
	const struct profile_location *loc = &t.p.locations.v[location];
	CHECK(line < loc->line_count);
	uint32_t f = t.p.lines.v[loc->line_first + line].function;
	return profile_str(&t.p, t.p.functions.v[f].name);
}

static uint32_t resolve(uint32_t wait_ms)
{
	uint32_t pending = 0;
	struct err e = { 0 };
	CHECK_OK(symbolizer_resolve(t.s, &t.p, wait_ms, &pending, &e), &e);
	CHECK_OK(profile_validate(&t.p, &e), &e);
	return pending;
}

static uint64_t metric(const char *name)
{
	CLEANUP(buf_deinit) struct buf b;
	buf_init(&b, 1 << 16);
	symbolizer_write_metrics(t.s, &b);
	buf_u8(&b, 0);
	char line[128];
	snprintf(line, sizeof(line), "\n%s ", name);
	const char *at = strstr((const char *)b.data, line);
	CHECK(at);
	return strtoull(at + strlen(line), NULL, 10);
}

static void check_own(uint32_t location)
{
	CHECK(t.p.locations.v[location].line_count == 2);
	CHECK_STR(name_of(location, 0), "inlined_inner");
	CHECK_STR(name_of(location, 1), "outer_function");
}

static void by_the_mappings_path(void **state)
{
	(void)state;
	uint64_t run = outer_function(1);
	uint32_t elf = add_mapping(t.exe, t.build_id, 0, 0, 0);
	uint32_t a = add_location(elf, run - base(), FRAME_NATIVE);
	/* As pprof has it: where the segment is mapped, and which part of the file it is. */
	struct objfile *obj;
	CHECK_OK(objfile_open(t.exe, &obj, NULL), NULL);
	uint32_t count, b = 0;
	const struct objfile_segment *seg = objfile_segments(obj, &count);
	for (uint32_t i = 0; i < count; i++)
		if (seg[i].flags & PF_X)
			b = add_location(
				add_mapping(t.exe, t.build_id, base() + seg[i].vaddr,
					base() + seg[i].vaddr + seg[i].mem_size, seg[i].offset),
				run, FRAME_UNKNOWN);
	objfile_close(obj);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
	check_own(b);
	CHECK(metric("firn_symbolizer_tables_built_total") == 1);
	CHECK(metric("firn_symbolizer_open_tables") == 1);

	/* A second symbolizer finds the table on disk, without waiting. */
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK_OK(profile_clear(&t.p), NULL);
	a = add_location(add_mapping("/gone", t.build_id, 0, 0, 0), run - base(), FRAME_NATIVE);
	CHECK(resolve(0) == 0);
	check_own(a);
	CHECK(metric("firn_symbolizer_tables_built_total") == 0);
}

static void first_asks_then_answers(void **state)
{
	(void)state;
	uint64_t vaddr = outer_function(1) - base();
	uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	uint32_t pending = resolve(0);
	char want[128];
	snprintf(want, sizeof(want), "test_symbolize_symbolize+0x%llx", (unsigned long long)vaddr);
	if (pending) { /* else the build was faster than this thread */
		CHECK(pending == 1);
		CHECK_STR(name_of(a, 0), want);
	}
	CHECK_OK(profile_clear(&t.p), NULL);
	a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
}

static void by_an_offered_descriptor(void **state)
{
	(void)state;
	uint32_t a = add_location(add_mapping("/not/here", t.build_id, 0, 0, 0),
		outer_function(1) - base(), FRAME_NATIVE);
	int fd = open(t.exe, O_RDONLY | O_CLOEXEC);
	CHECK_OK(symbolizer_offer(t.s, t.build_id, t.exe, fd, NULL), NULL);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
}

static void believes_no_build_id(void **state)
{
	(void)state;
	static const char other[] = "00112233445566778899aabbccddeeff00112233";
	uint32_t a = add_location(
		add_mapping(t.exe, other, 0, 0, 0), outer_function(1) - base(), FRAME_NATIVE);
	CHECK_OK(
		symbolizer_offer(t.s, other, t.exe, open(t.exe, O_RDONLY | O_CLOEXEC), NULL), NULL);
	CHECK(resolve(WAIT_MS) == 0);
	CHECK(t.p.locations.v[a].line_count == 1);
	CHECK(str_starts(name_of(a, 0), STR("test_symbolize_symbolize+0x")));
	CHECK(metric("firn_symbolizer_tables_built_total") == 0);
	CHECK(metric("firn_symbolizer_tables_failed_total") == 1);
	/* Nor anything that is not one. */
	static const char *const bad[] = { "", "ab", "../../etc/passwd", "ABCDEF", "12/34", "xyz" };
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		CHECK(symbolizer_offer(t.s, bad[i], "", open(t.exe, O_RDONLY | O_CLOEXEC), NULL) ==
			E_INVALID);
}

static void remembers_what_is_missing(void **state)
{
	(void)state;
	static const char id[] = "ffeeddccbbaa99887766554433221100ffeeddcc";
	add_location(add_mapping("/usr/lib/libnothere.so.1", id, 0, 0, 0), 0x1234, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	CHECK(metric("firn_symbolizer_files_missing_total") == 1);
	CHECK_OK(profile_clear(&t.p), NULL);
	uint32_t a = add_location(
		add_mapping("/usr/lib/libnothere.so.1", id, 0, 0, 0), 0x1234, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	CHECK_STR(name_of(a, 0), "libnothere.so.1+0x1234");
	CHECK(metric("firn_symbolizer_files_missing_total") == 1);
	CHECK(metric("firn_symbolizer_unknown_total") == 2);
}

static void by_a_debug_file(void **state)
{
	(void)state;
	uint64_t vaddr = outer_function(1) - base();
	shell("objcopy --only-keep-debug %s %s/all.debug 2>/dev/null", t.exe, t.dir);
	shell("strip -o %s/stripped %s", t.dir, t.exe);
	/* By build id. */
	char debug_dirs[128], stripped[128];
	snprintf(debug_dirs, sizeof(debug_dirs), "/nowhere::%s/debug", t.dir);
	snprintf(stripped, sizeof(stripped), "%s/stripped", t.dir);
	shell("mkdir -p %s/debug/.build-id/%.2s && cp %s/all.debug "
	      "%s/debug/.build-id/%.2s/%s.debug",
		t.dir, t.build_id, t.dir, t.dir, t.build_id, t.build_id + 2);
	t.config.debug_dirs = debug_dirs;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	uint32_t a = add_location(add_mapping(stripped, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
	/* By the debug link, below the debug directory. */
	shell("rm -r %s/debug %s/%.2s", t.dir, t.dir, t.build_id);
	shell("mkdir -p %s/debug%s && cp %s/all.debug %s/debug%s/", t.dir, t.dir, t.dir, t.dir,
		t.dir);
	shell("cd %s && objcopy --add-gnu-debuglink=all.debug stripped && rm all.debug", t.dir);
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK_OK(profile_clear(&t.p), NULL);
	a = add_location(add_mapping(stripped, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
}

static void names_the_vdso(void **state)
{
	(void)state;
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR); /* NOLINT */
	if (!image)
		SKIP("this kernel gives no vDSO");
	struct objfile *obj;
	CHECK_OK(objfile_open_bytes(image, 8192, "vdso", &obj, NULL), NULL);
	const struct objfile_section *text = objfile_section(obj, ".text");
	CHECK(text);
	uint32_t m = add_mapping("[vdso]", objfile_build_id(obj), 0, 0, 0);
	/* Not every byte has a name, but the functions take most of them. */
	for (uint64_t at = text->addr; at < text->addr + text->size; at += 64)
		add_location(m, at, FRAME_NATIVE);
	size_t named = 0;
	CHECK(resolve(WAIT_MS) == 0);
	for (uint32_t i = 1; i < t.p.locations.len; i++)
		named += !str_starts(name_of(i, 0), STR("[vdso]+0x"));
	CHECK(named > 0);
	objfile_close(obj);
}

static void names_what_has_no_file(void **state)
{
	(void)state;
	/* clang-format off */
	static const struct { enum frame_kind kind; const char *file, *want; } cases[] = {
		{ FRAME_JIT, "", "[jit]+0x10" },
		{ FRAME_KERNEL, "", "[kernel]+0x10" },
		{ FRAME_NATIVE, "", "[unknown mapping]+0x10" },
		{ FRAME_UNKNOWN, "", "[unknown mapping]+0x10" },
		{ FRAME_CPYTHON, "", "[cpython]+0x10" },
		{ FRAME_NATIVE, "/a/b.so", "b.so+0x10" },
		{ FRAME_NATIVE, "/memfd:x (deleted)", "memfd:x (deleted)+0x10" },
		{ FRAME_NATIVE, "plain", "plain+0x10" },
	};
	/* clang-format on */
	uint32_t ids[ARRAY_COUNT(cases)];
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		ids[i] =
			add_location(cases[i].file[0] ? add_mapping(cases[i].file, "", 0, 0, 0) : 0,
				0x10, cases[i].kind);
	CHECK(resolve(0) == 0);
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++)
		CHECK_STR(name_of(ids[i], 0), cases[i].want);
	/* The null location stays what it is. */
	CHECK(t.p.locations.v[0].line_count == 0);
}

static void keeps_lines_that_came(void **state)
{
	(void)state;
	struct profile_function f = { .name = string("_ZN3FooIiE3barEv") };
	struct profile_line line = { .line = 7 };
	CHECK_OK(profile_add_function(&t.p, &f, &line.function), NULL);
	struct profile_location loc = { .address = 0x10, .kind = FRAME_NATIVE };
	uint32_t a;
	CHECK_OK(profile_add_location(&t.p, &loc, &line, 1, &a), NULL);
	CHECK(resolve(0) == 0);
	CHECK_STR(name_of(a, 0), "Foo<int>::bar");
	CHECK_STR(
		profile_str(&t.p, t.p.functions.v[line.function].system_name), "_ZN3FooIiE3barEv");
	CHECK(t.p.lines.v[t.p.locations.v[a].line_first].line == 7);
	CHECK(metric("firn_symbolizer_lookups_total") == 0);
}

static void works_on_a_budget(void **state)
{
	(void)state;
	t.config.memory_bytes = 1;
	symbolizer_free(t.s);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	for (int round = 0; round < 2; round++) {
		CHECK_OK(profile_clear(&t.p), NULL);
		uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0),
			outer_function(1) - base(), FRAME_NATIVE);
		CHECK(resolve(WAIT_MS) == 0);
		check_own(a);
		CHECK(metric("firn_symbolizer_open_tables") == 0);
	}
	CHECK(metric("firn_symbolizer_tables_built_total") == 1);
}

static void makes_a_damaged_table_again(void **state)
{
	(void)state;
	uint64_t vaddr = outer_function(1) - base();
	add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	symbolizer_free(t.s);
	shell("printf x | dd of=%s/%.2s/%s.sym bs=1 seek=300 conv=notrunc 2>/dev/null", t.dir,
		t.build_id, t.build_id + 2);
	shell("touch %s/%.2s/%s.sym.Abc123", t.dir, t.build_id, t.build_id + 2);
	CHECK_OK(symbolizer_new(&t.config, &t.s, NULL), NULL);
	CHECK_OK(profile_clear(&t.p), NULL);
	uint32_t a = add_location(add_mapping(t.exe, t.build_id, 0, 0, 0), vaddr, FRAME_NATIVE);
	CHECK(resolve(WAIT_MS) == 0);
	check_own(a);
	shell("test ! -e %s/%.2s/%s.sym.Abc123", t.dir, t.build_id, t.build_id + 2);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
TEST_MAIN_WITH(debuginfo_child_main, CASE(by_the_mappings_path), CASE(first_asks_then_answers),
	CASE(by_an_offered_descriptor), CASE(believes_no_build_id), CASE(remembers_what_is_missing),
	CASE(by_a_debug_file), CASE(names_the_vdso), CASE(names_what_has_no_file),
	CASE(keeps_lines_that_came), CASE(works_on_a_budget), CASE(makes_a_damaged_table_again))
