/* SPDX-License-Identifier: Apache-2.0 */
/* A Go program with its symbols, and the same one stripped: .gopclntab gives the same names. */
#include "made.h"

static void check(const char *build)
{
	if (!made_try(build)) {
		print_message("not here: %s\n", build);
		return;
	}
	made_run("strip -o s a");
	struct debuginfo_table *whole = made_table("a", NULL, NULL);
	struct debuginfo_table *stripped = made_table("s", NULL, NULL);
	CHECK(made_info(stripped).has_gopclntab && !made_info(stripped).has_symtab);
	struct objfile_section text = made_section("a", ".text");
	struct debuginfo_frame f[DEBUGINFO_FRAMES_MAX], g[2];
	size_t same = 0, other = 0, lines = 0;
	for (uint64_t at = text.addr; at < text.addr + text.size; at += 61) {
		uint32_t n = debuginfo_table_find(whole, at, f, DEBUGINFO_FRAMES_MAX);
		if (n == 0 || debuginfo_table_find(stripped, at, g, 2) == 0)
			continue;
		bool equal = str_eq(f[n - 1].name, g[0].name);
		same += equal;
		other += !equal;
		lines += g[0].line != 0 && g[0].line == f[0].line;
	}
	print_message("%s: %zu same, %zu other, %zu lines\n", build, same, other, lines);
	CHECK(same > 1000);
	CHECK(other * 100 < same); /* assembly is named otherwise in DWARF: ".abi0" */
	CHECK(lines * 10 > same * 9);
	debuginfo_table_close(whole);
	debuginfo_table_close(stripped);
}

static void agrees_with_the_symbols(void **state)
{
	(void)state;
	made_write("main.go",
		"package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"x\") }\n");
	made_write("go.mod", "module made\n\ngo 1.18\n");
	if (!made_try("go version"))
		SKIP("no Go");
	check("GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0 go build -o a .");
	check("GOFLAGS=-mod=mod GOTOOLCHAIN=local CGO_ENABLED=0 go build -buildmode=pie -o a .");
}

TEST_MAIN_WITH(debuginfo_child_main, MADE(agrees_with_the_symbols))
