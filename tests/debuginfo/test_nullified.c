/* SPDX-License-Identifier: Apache-2.0 */
/* A debug file as Parca's agent sends it names what the whole file names. */
#include "nullified.h"

static const char program[] =
	"#include <stdio.h>\n#include <stdlib.h>\n"
	"__asm__(\".text\\n.globl bare\\n.type bare, @function\\nbare: nop\\nnop\\nret\\n\");\n"
	"int bare(void);\n"
	"static inline __attribute__((always_inline)) int inner(int x) { return x * 7 + 1; }\n"
	"__attribute__((noinline)) int outer(int x) { return inner(x) - puts(\"x\"); }\n"
	"__attribute__((section(\".text.other\"), noinline)) int apart(int x) { return rand() + x; "
	"}\n"
	"int main(int n, char **v) { (void)v; return outer(n) + apart(n) + bare(); }\n";

/* Of the addresses of one section that the whole file names, those that the other names otherwise.
 */
static size_t others(const char *file, const char *section, const struct debuginfo_table *whole,
	const struct debuginfo_table *debug, size_t *named)
{
	static struct debuginfo_frame a[DEBUGINFO_FRAMES_MAX], b[DEBUGINFO_FRAMES_MAX];
	struct objfile_section s = made_section(file, section);
	size_t count = 0;
	for (uint64_t at = s.addr; at < s.addr + s.size; at++) {
		uint32_t n = debuginfo_table_find(whole, at, a, DEBUGINFO_FRAMES_MAX);
		uint32_t m = debuginfo_table_find(debug, at, b, DEBUGINFO_FRAMES_MAX);
		bool same = n == m;
		for (uint32_t i = 0; same && i < n; i++)
			same = str_eq(a[i].name, b[i].name) && str_eq(a[i].file, b[i].file) &&
			       a[i].line == b[i].line;
		*named += n > 0;
		/* What only the code or .eh_frame tells of is not in the debug file. */
		count += n > 0 && a[0].name.p[0] != '+' && !same;
	}
	return count;
}

static void names_what_the_whole_file_names(void **state)
{
	(void)state;
	static const struct {
		const char *name, *command;
	} cases[] = {
		{ "DWARF", "${CC:-cc} -g -O1 -Wl,--build-id -o p p.c" },
		{ "DWARF, fixed addresses", "${CC:-cc} -g -O1 -no-pie -Wl,--build-id -o p p.c" },
		{ "symbols", "${CC:-cc} -O1 -Wl,--build-id -o p p.c" },
		{ "a library's", "${CC:-cc} -O1 -s -shared -fPIC -Wl,--build-id -o p p.c" },
	};
	static const char *const sections[] = { ".init", ".plt", ".plt.got", ".text", ".fini" };
	made_write("p.c", program);
	FOR_EACH_CASE (c, cases) {
		made_run(c->command);
		nullified_make("p", "d");
		made_run("readelf -SlnsW d"); /* it is a file that others read, too */
		struct debuginfo_table *whole = made_table("p", NULL, NULL);
		struct debuginfo_table *debug = made_table("d", NULL, NULL);
		size_t named = 0, other = 0;
		for (size_t i = 0; i < ARRAY_COUNT(sections); i++)
			other += others("p", sections[i], whole, debug, &named);
		CHECK_CASE(c, named > 60);
		CHECK_CASE(c, other == 0);
		assert_string_equal(made_info(whole).build_id, made_info(debug).build_id);
		debuginfo_table_close(whole);
		debuginfo_table_close(debug);
	}
}

/* Go's linker with -s -w leaves .gopclntab alone; where the text begins is the section's address.
 */
static void names_a_stripped_go_program(void **state)
{
	(void)state;
	made_write("main.go", "package main\n\nfunc main() { println(1) }\n");
	made_write("go.mod", "module made\n\ngo 1.18\n");
	if (!made_try("GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0 go build -ldflags='-s -w' "
		      "-o p ."))
		SKIP("no Go");
	nullified_make("p", "d");
	struct debuginfo_table *whole = made_table("p", NULL, NULL);
	struct debuginfo_table *debug = made_table("d", NULL, NULL);
	size_t named = 0;
	CHECK(others("p", ".text", whole, debug, &named) == 0);
	CHECK(named > 1000);
	CHECK(made_find("p", debug, "main.main", 0) != 0);
	debuginfo_table_close(whole);
	debuginfo_table_close(debug);
}

TEST_MAIN_WITH(debuginfo_child_main, MADE(names_what_the_whole_file_names),
	MADE(names_a_stripped_go_program))
