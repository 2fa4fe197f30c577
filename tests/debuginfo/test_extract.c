/* SPDX-License-Identifier: Apache-2.0 */
/* What is extracted names every address as the whole file does; hostile files are refused. */
#include "made.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const char program[] =
	"#include <stdio.h>\n"
	"static inline __attribute__((always_inline)) int inner(int x) { return x * 7 + 1; }\n"
	"__attribute__((noinline)) int outer(int x) { return inner(x) - puts(\"x\"); }\n"
	"char ballast[100000] = { 1 };\n"
	"int main(int n, char **v) { (void)v; return outer(n) + ballast[n]; }\n";

static void extract(const char *from, const char *to)
{
	struct objfile *obj;
	struct err e = { 0 };
	char path[128];
	snprintf(path, sizeof(path), "%s/%s", made_dir, to);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd >= 0);
	CHECK_OK(objfile_open_fd(made_open(from), from, &obj, &e), &e);
	CHECK_OK(debuginfo_extract(obj, fd, &e), &e);
	objfile_close(obj);
	close(fd);
}

static off_t size_of(const char *name)
{
	struct stat st;
	int fd = made_open(name);
	CHECK(fd >= 0 && fstat(fd, &st) == 0);
	close(fd);
	return st.st_size;
}

static bool same_frames(
	const struct debuginfo_table *a, const struct debuginfo_table *b, uint64_t at)
{
	static struct debuginfo_frame x[DEBUGINFO_FRAMES_MAX], y[DEBUGINFO_FRAMES_MAX];
	uint32_t n = debuginfo_table_find(a, at, x, DEBUGINFO_FRAMES_MAX);
	if (n != debuginfo_table_find(b, at, y, DEBUGINFO_FRAMES_MAX))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!str_eq(x[i].name, y[i].name) || !str_eq(x[i].file, y[i].file) ||
			x[i].line != y[i].line || x[i].inlined != y[i].inlined)
			return false;
	return true;
}

/* Every address of the code has the same frames by either table. */
static void check_same(const char *whole, const char *debug)
{
	static const char *const sections[] = { ".text", ".plt", ".plt.sec", ".plt.got" };
	struct debuginfo_table *a = made_table(whole, NULL, NULL);
	struct debuginfo_table *b = made_table(debug, NULL, NULL);
	struct debuginfo_table_info x = made_info(a), y = made_info(b);
	CHECK(x.ranges == y.ranges && x.functions == y.functions);
	assert_string_equal(x.build_id, y.build_id);
	CHECK(x.build_id[0]);
	for (size_t i = 0; i < ARRAY_COUNT(sections); i++) {
		struct objfile_section s = made_section(whole, sections[i]);
		for (uint64_t at = s.addr; at < s.addr + s.size; at++)
			CHECK(same_frames(a, b, at));
		for (uint64_t at = s.offset; at < s.offset + s.size; at += 64) {
			uint64_t of_whole, of_debug;
			CHECK(debuginfo_table_vaddr(a, at, &of_whole));
			CHECK(debuginfo_table_vaddr(b, at, &of_debug) && of_whole == of_debug);
		}
	}
	debuginfo_table_close(a);
	debuginfo_table_close(b);
}

static void names_what_the_whole_file_names(void **state)
{
	(void)state;
	made_write("p.c", program);
	made_run("${CC:-cc} -g -O1 -Wl,--build-id -o p p.c");
	extract("p", "p.debug");
	CHECK(size_of("p.debug") < size_of("p") - 90000); /* without the ballast */
	check_same("p", "p.debug");
	made_run("readelf -SlnW p.debug && readelf -n p.debug | grep -q 'Build ID'");
	made_run("objcopy --strip-debug p s");
	extract("s", "s.debug");
	check_same("s", "s.debug");
	made_run("strip -o t p"); /* .eh_frame alone tells where functions begin */
	extract("t", "t.debug");
	check_same("t", "t.debug");
	extract("p.debug", "again.debug");
	made_run("cmp p.debug again.debug");
}

/* Whoever sends it reads it in pieces of his own, and again. */
static void is_read_in_pieces(void **state)
{
	(void)state;
	made_write("p.c", program);
	made_run("${CC:-cc} -g -O1 -Wl,--build-id -o p p.c");
	extract("p", "p.debug");
	struct objfile *obj;
	struct debuginfo_extract *x;
	struct err e = { 0 };
	CHECK_OK(objfile_open_fd(made_open("p"), "p", &obj, &e), &e);
	CHECK_OK(debuginfo_extract_new(obj, &x, &e), &e);
	uint64_t bytes = debuginfo_extract_bytes(x);
	assert_int_equal(bytes, size_of("p.debug"));
	CHECK(debuginfo_extract_has_names(x));
	uint8_t *want = malloc(bytes), *got = malloc(bytes);
	int fd = made_open("p.debug");
	CHECK_OK(os_pread_full(fd, want, bytes, 0, "p.debug", &e), &e);
	close(fd);
	for (size_t piece = 1; piece < 100000; piece = piece * 7 + 2) {
		memset(got, 0xee, bytes);
		for (uint64_t end = bytes; end > 0;) { /* from the last to the first */
			size_t n = (size_t)MIN(end, (uint64_t)piece);
			CHECK_OK(debuginfo_extract_read(x, end - n, got + end - n, n, &e), &e);
			end -= n;
		}
		CHECK(memcmp(want, got, bytes) == 0);
	}
	free(want);
	free(got);
	debuginfo_extract_free(x);
	objfile_close(obj);
}

static void knows_whether_anything_has_a_name(void **state)
{
	(void)state;
	static const struct {
		const char *name, *command;
		bool want;
	} cases[] = {
		{ "debug information", "${CC:-cc} -g -o q p.c", true },
		{ "symbols", "${CC:-cc} -s -Wl,--export-dynamic -o q p.c", true },
		{ "nothing", "${CC:-cc} -static -s -o q p.c", false },
		{ "symbols of a static one", "${CC:-cc} -static -o q p.c", true },
	};
	made_write("p.c", program);
	FOR_EACH_CASE (c, cases) {
		struct objfile *obj;
		struct debuginfo_extract *x;
		struct err e = { 0 };
		if (!made_try(c->command)) {
			print_message("skipped: the compiler cannot link %s\n", c->name);
			continue;
		}
		CHECK_OK(objfile_open_fd(made_open("q"), "q", &obj, &e), &e);
		CHECK_OK(debuginfo_extract_new(obj, &x, &e), &e);
		CHECK_CASE(c, debuginfo_extract_has_names(x) == c->want);
		debuginfo_extract_free(x);
		objfile_close(obj);
	}
}

static void keeps_compressed_sections(void **state)
{
	(void)state;
	made_write("p.c", program);
	if (!made_try("${CC:-cc} -g -O1 -gz -Wl,--build-id -o p p.c")) {
		print_message("skipped: the compiler cannot compress\n");
		return;
	}
	extract("p", "p.debug");
	check_same("p", "p.debug");
}

/* A file in memory with two sections that a case moves. */
static void refuses_what_does_not_fit(void **state)
{
	(void)state;
	static const struct {
		const char *name;
		uint64_t offset, size;
		const char *says;
	} cases[] = {
		{ "behind the end", 64, 1 << 20, "section 2 () passes the end of it" },
		{ "wraps", UINT64_MAX - 10, 100, "section 2 () passes the end of it" },
		{ "over one another", 0, 200, "sections lie over one another" },
	};
	FOR_EACH_CASE (c, cases) {
		struct {
			Elf64_Ehdr h;
			Elf64_Shdr sh[3];
		} file = { .h = { .e_type = ET_EXEC,
				   .e_machine = EM_X86_64,
				   .e_ehsize = 64,
				   .e_shoff = 64,
				   .e_shentsize = 64,
				   .e_shnum = 3 },
			.sh = { { 0 }, { .sh_type = SHT_PROGBITS, .sh_size = 200 },
				{ .sh_type = SHT_PROGBITS,
					.sh_offset = c->offset,
					.sh_size = c->size } } };
		memcpy(file.h.e_ident, "\177ELF\2\1\1", 7);
		struct objfile *obj;
		struct err e = { 0 };
		int fd = memfd_create("out", MFD_CLOEXEC);
		CHECK_OK(objfile_open_bytes(&file, sizeof(file), "file", &obj, &e), &e);
		CHECK_CASE(c, debuginfo_extract(obj, fd, &e) == E_INVALID);
		CHECK_CASE(c, strstr(e.text, c->says) != NULL);
		objfile_close(obj);
		close(fd);
	}
}

/* A section of no type may say that it is large, and has no bytes all the same. */
static void leaves_out_what_has_no_type(void **state)
{
	(void)state;
	static struct {
		Elf64_Ehdr h;
		Elf64_Shdr sh[3];
		char bytes[20000];
	} file = { .h = { .e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_ehsize = 64,
			   .e_shoff = 64,
			   .e_shentsize = 64,
			   .e_shnum = 3 },
		.sh = { { 0 }, { .sh_type = SHT_NULL, .sh_offset = 64, .sh_size = 10000 },
			{ .sh_type = SHT_PROGBITS, .sh_offset = 512, .sh_size = 100 } } };
	memcpy(file.h.e_ident, "\177ELF\2\1\1", 7);
	struct objfile *obj;
	struct stat st;
	struct err e = { 0 };
	int fd = memfd_create("out", MFD_CLOEXEC);
	CHECK_OK(objfile_open_bytes(&file, sizeof(file), "file", &obj, &e), &e);
	CHECK_OK(debuginfo_extract(obj, fd, &e), &e);
	CHECK(fstat(fd, &st) == 0 && st.st_size < 1000);
	objfile_close(obj);
	close(fd);
}

static void needs_sections(void **state)
{
	(void)state;
	Elf64_Ehdr h = { .e_type = ET_EXEC, .e_machine = EM_X86_64, .e_ehsize = 64 };
	memcpy(h.e_ident, "\177ELF\2\1\1", 7);
	struct objfile *obj;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(&h, sizeof(h), "bare", &obj, &e), &e);
	CHECK(debuginfo_extract(obj, -1, &e) == E_NOTFOUND);
	assert_string_equal(e.text, "bare: no sections, so no debug information");
	objfile_close(obj);
}

TEST_PROGRAM_WITH(debuginfo_child_main)
{
	const struct CMUnitTest tests[] = { MADE(names_what_the_whole_file_names),
		MADE(is_read_in_pieces), MADE(knows_whether_anything_has_a_name),
		MADE(keeps_compressed_sections), MADE(refuses_what_does_not_fit),
		MADE(leaves_out_what_has_no_type), MADE(needs_sections) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
