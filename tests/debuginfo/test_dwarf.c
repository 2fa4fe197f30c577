/* SPDX-License-Identifier: Apache-2.0 */
#include "made.h"

static const char c_source[] = "volatile int sink;\n"
			       "static inline __attribute__((always_inline)) void inner(int x)\n"
			       "{\n"
			       "\tsink += x;\n" /* line 4 */
			       "}\n"
			       "static inline __attribute__((always_inline)) void middle(int x)\n"
			       "{\n"
			       "\tinner(x * 3);\n" /* line 8 */
			       "\tsink++;\n"
			       "}\n"
			       "__attribute__((noinline)) void outer(int x)\n"
			       "{\n"
			       "\tmiddle(x + 1);\n" /* line 13 */
			       "}\n"
			       "int main(int argc, char **argv)\n"
			       "{\n"
			       "\tfor (int i = 0; i < argc; i++)\n"
			       "\t\touter(i);\n"
			       "\treturn argv == 0;\n"
			       "}\n";

static void check_chain(const char *file, const char *debug)
{
	struct debuginfo_table *t = made_table(file, debug, NULL);
	CHECK(made_info(t).has_dwarf && !made_info(t).dwarf_damaged && !made_info(t).dwarf_cut);
	uint64_t at = made_find(file, t, "inner", 0);
	CHECK(at != 0);
	struct debuginfo_frame f[8];
	CHECK(debuginfo_table_find(t, at, f, 8) == 3);
	CHECK(f[0].line == 4 && f[0].start_line == 2 && f[0].inlined);
	CHECK_STR(f[1].name, "middle");
	CHECK(f[1].line == 8 && f[1].start_line == 6 && f[1].inlined);
	CHECK_STR(f[2].name, "outer");
	CHECK(f[2].line == 13 && f[2].start_line == 11 && !f[2].inlined);
	char path[96];
	snprintf(path, sizeof(path), "%s/a.c", made_dir);
	CHECK_STR(f[0].file, path); /* compiled as "a.c" */
	CHECK(str_eq(f[0].file, f[2].file));
	debuginfo_table_close(t);
}

static void reads_each_form_of_dwarf(void **state)
{
	(void)state;
	made_write("a.c", c_source);
	static const char *const commands[] = {
		"cc -O2 -gdwarf-5 -o a a.c",
		"cc -O2 -gdwarf-4 -o a a.c",
		"cc -O2 -gdwarf-5 -gz=zlib -o a a.c",
		"cc -O2 -g -ffunction-sections -Wl,--gc-sections -o a a.c",
		"cc -O2 -g -static -o a a.c",
		"cc -O2 -g -no-pie -o a a.c",
		"cc -O2 -g -flto -o a a.c",
		"clang -O2 -gdwarf-5 -o a a.c",
		"clang -O2 -gdwarf-4 -o a a.c",
	};
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
		if (!made_try(commands[i])) {
			print_message("not here: %s\n", commands[i]);
			continue;
		}
		print_message("%s\n", commands[i]);
		check_chain("a", NULL);
	}
}

static void reads_a_separate_file(void **state)
{
	(void)state;
	made_write("a.c", c_source);
	made_run("cc -O2 -g -o a a.c && objcopy --only-keep-debug a a.debug && strip a");
	check_chain("a", "a.debug");
	/* The debug file alone names addresses too. */
	struct debuginfo_table *t = made_table("a.debug", NULL, NULL);
	CHECK(made_find("a.debug", t, "inner", 0) != 0);
	debuginfo_table_close(t);
}

/* Without scopes: lines and the symbols' names. */
static void names_assembly_by_its_symbols(void **state)
{
	(void)state;
	made_write("b.s", "\t.text\n\t.globl _start\n\t.type _start, @function\n"
			  "_start:\n\tnop\n\tnop\n"
			  "label_without_type:\n\tnop\n\tnop\n");
	made_run("cc -g -nostdlib -static -o b b.s");
	struct debuginfo_table *t = made_table("b", NULL, NULL);
	struct objfile_section text = made_section("b", ".text");
	struct debuginfo_frame f[2];
	CHECK(debuginfo_table_find(t, text.addr, f, 2) == 1);
	CHECK_STR(f[0].name, "_start");
	CHECK(f[0].line == 5 && str_ends(f[0].file, STR("b.s")));
	CHECK(debuginfo_table_find(t, text.addr + 3, f, 2) == 1);
	CHECK(f[0].line == 9);
	debuginfo_table_close(t);
}

static void prefers_the_name_that_says_more(void **state)
{
	(void)state;
	made_write("c.cc",
		"volatile int sink;\n"
		"namespace n { struct s { __attribute__((noinline)) void m() { sink++; } }; }\n"
		"static __attribute__((noinline)) int helper(int x) { return sink += x; }\n"
		"extern \"C\" __attribute__((noinline)) void plain() { sink += helper(2); }\n"
		"int main() {\n"
		"\tauto l = [](int x) __attribute__((noinline)) { sink += x; };\n"
		"\tl(2); n::s().m(); plain(); return helper(sink);\n"
		"}\n");
	if (!made_try("c++ -O2 -g -o c c.cc"))
		SKIP("no C++ compiler");
	struct debuginfo_table *t = made_table("c", NULL, NULL);
	CHECK(made_find("c", t, "_ZN1n1s1mEv", 0) != 0);
	CHECK(made_find("c", t, "plain", 0) != 0);
	CHECK(made_find("c", t, "main", 0) != 0);
	/* Not the bare "operator()": the symbol has its scope. */
	CHECK(made_find("c", t, "operator()", 0) == 0);
	debuginfo_table_close(t);
	/* C: an exported alias is what callers write. */
	made_write("d.c",
		"volatile int sink;\n"
		"__attribute__((noinline)) int hidden_name(int x) __asm__(\"__GI_hidden\");\n"
		"int hidden_name(int x) { return sink += x; }\n"
		"int visible(int x) __attribute__((alias(\"__GI_hidden\")));\n"
		"int main(void) { return visible(1) + hidden_name(2); }\n");
	made_run("cc -O2 -g -o d d.c");
	t = made_table("d", NULL, NULL);
	CHECK(made_find("d", t, "visible", 0) != 0);
	CHECK(made_find("d", t, "__GI_hidden", 0) == 0);
	debuginfo_table_close(t);
}

/* Compilers that give DWARF the bare name, and modules and classes to the symbol (Crystal) or to a
 * linkage name that is not mangled (Zig): what they write, as assembly. */
static void adds_modules_and_classes(void **state)
{
	(void)state;
	static const struct {
		const char *name, *symbol, *linkage, *bare, *want;
	} cases[] = {
		{ "Zig", "x", "debug.ElfFile.load", "load", "debug.ElfFile.load" },
		{ "Zig's exported one", "exp", "exp", "exp", "exp" },
		{ "Crystal", "*Fiber#run<Fiber>:Nil", "run", "run", "Fiber#run" },
		{ "Crystal, inherited", "*Array(Int32)@Array(T)#push<Int32>:Array(Int32)", "push",
			"push", "Array(Int32)@Array(T)#push" },
		{ "Crystal, of a class", "*ArgumentError::new<String>:ArgumentError", "new", "new",
			"ArgumentError::new" },
		{ "an operator", "*Int32#+<Int32>:Int32", "+", "+", "Int32#+" },
		{ "a word within", "*Fiber#running:Bool", "run", "run", "run" },
		{ "an asm label", "__GI_setegid", "__GI_setegid", "setegid", "setegid" },
	};
	FOR_EACH_CASE (c, cases) {
		char source[2048];
		snprintf(source, sizeof(source),
			"\t.text\n\t.globl _start\n\t.type _start, @function\n"
			"_start: ret\n\t.size _start, 1\n"
			"\t.type \"%s\", @function\n\"%s\":\n1: nop\n\tret\n2:\n"
			"\t.size \"%s\", 2\n"
			"\t.section .debug_abbrev,\"\",@progbits\n"
			"\t.byte 1,0x11,1, 0x13,0x0b, 0x11,0x01, 0x12,0x06, 0,0\n"
			"\t.byte 2,0x2e,0, 0x03,0x08, 0x6e,0x08, 0x11,0x01, 0x12,0x06, 0,0, 0\n"
			"\t.section .debug_info,\"\",@progbits\n"
			"\t.long 9f-8f\n8:\t.short 4\n\t.long 0\n\t.byte 8\n"
			"\t.byte 1, 0x27\n\t.quad 1b\n\t.long 2b-1b\n"
			"\t.byte 2\n\t.asciz \"%s\"\n\t.asciz \"%s\"\n\t.quad 1b\n"
			"\t.long 2b-1b\n\t.byte 0\n9:\n",
			c->symbol, c->symbol, c->symbol, c->bare, c->linkage);
		made_write("q.s", source);
		made_run("cc -nostdlib -static -o q q.s");
		struct debuginfo_table *t = made_table("q", NULL, NULL);
		CHECK(made_info(t).has_dwarf && !made_info(t).dwarf_damaged);
		CHECK_CASE(c, made_find("q", t, c->want, 0) != 0);
		debuginfo_table_close(t);
	}
}

/* The lambda's function lies within the abstract copy of the one that it was written in. */
static void names_what_lambdas_inline(void **state)
{
	(void)state;
	made_write("e.cc", "volatile int sink;\n"
			   "static inline __attribute__((always_inline)) void inner(int x)\n"
			   "{\n"
			   "\tsink += x;\n" /* line 4 */
			   "}\n"
			   "static __attribute__((noinline)) void call(void (*f)(int), int k) { "
			   "sink++, f(k); }\n"
			   "static inline __attribute__((always_inline)) void outer(int k)\n"
			   "{\n"
			   "\tcall([](int i) {\n"
			   "\t\tinner(i);\n" /* line 10 */
			   "\t}, k);\n"
			   "}\n"
			   "int main(int n, char **) { outer(n); return 0; }\n");
	if (!made_try("g++ -O2 -g -o e e.cc"))
		SKIP("no g++");
	struct debuginfo_table *t = made_table("e", NULL, NULL);
	uint64_t at = made_find("e", t, "inner", 0);
	struct debuginfo_frame f[8];
	CHECK(at != 0);
	CHECK(debuginfo_table_find(t, at, f, 8) == 3);
	CHECK(f[0].line == 4 && f[0].inlined);
	CHECK(f[1].line == 10 && f[1].inlined); /* operator() */
	CHECK(str_starts(f[2].name, STR("_ZZL5outeriENUliE_4_FUN")) && !f[2].inlined);
	debuginfo_table_close(t);
}

/* Every byte of the debug sections may lie: the table is whole, or there are the symbols. */
static void survives_damage(void **state)
{
	(void)state;
	made_write("a.c", c_source);
	made_run("cc -O2 -g -o a a.c");
	static const char *const sections[] = { ".debug_info", ".debug_abbrev", ".debug_line",
		".debug_rnglists", ".debug_str" };
	for (size_t i = 0; i < ARRAY_COUNT(sections); i++) {
		for (int fill = 0; fill < 3; fill++) {
			char command[256];
			snprintf(command, sizeof(command),
				"objcopy --dump-section %s=s a && "
				"head -c $(stat -c %%s s) /dev/%s%s >d && cp a x && "
				"objcopy --update-section %s=d x",
				sections[i], fill == 0 ? "zero" : "urandom",
				fill == 2 ? " | tr '\\000-\\377' '\\377'" : "", sections[i]);
			if (!made_try(command))
				continue; /* this compiler does not write the section */
			struct debuginfo_table *t = made_table("x", NULL, NULL);
			CHECK(made_find("x", t, "main", 0) != 0);
			debuginfo_table_close(t);
		}
	}
}

TEST_MAIN_WITH(debuginfo_child_main, MADE(reads_each_form_of_dwarf), MADE(reads_a_separate_file),
	MADE(names_assembly_by_its_symbols), MADE(prefers_the_name_that_says_more),
	MADE(adds_modules_and_classes), MADE(names_what_lambdas_inline), MADE(survives_damage))
