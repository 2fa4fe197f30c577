/* SPDX-License-Identifier: Apache-2.0 */
#include "made.h"

static void make(void)
{
	made_write("a.c", "volatile int sink;\n"
			  "static __attribute__((noinline)) void hidden(int x) { sink += x; }\n"
			  "int main(int argc, char **argv) { hidden(argc); return argv == 0; }\n");
	made_run("cc -O2 -o a a.c && objcopy --only-keep-debug a mini && strip -o s a");
}

static void reads_the_symbols_within(void **state)
{
	(void)state;
	make();
	if (!made_try("xz -k mini"))
		SKIP("no xz");
	made_run("objcopy --add-section .gnu_debugdata=mini.xz s");
	struct debuginfo_table *t = made_table("s", NULL, NULL);
	CHECK(made_info(t).has_minidebuginfo && !made_info(t).has_symtab);
	CHECK(made_find("s", t, "hidden", 0) != 0);
	debuginfo_table_close(t);
}

static void does_without_broken_ones(void **state)
{
	(void)state;
	make();
	/* A bomb: half a gigabyte of zeros in 76 kB. */
	static const char *const commands[] = {
		"head -c 4096 /dev/urandom >mini.xz",
		"xz -kf mini && head -c 200 mini.xz >cut && mv cut mini.xz",
		"head -c 536870912 /dev/zero | xz -1 >mini.xz",
		"echo | xz >mini.xz",
	};
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
		if (!made_try(commands[i]))
			SKIP("no xz");
		made_run("cp s x && objcopy --add-section .gnu_debugdata=mini.xz x");
		struct debuginfo_table *t = made_table("x", NULL, NULL);
		CHECK(!made_info(t).has_minidebuginfo);
		CHECK(made_find("x", t, "hidden", 0) == 0);
		debuginfo_table_close(t);
	}
}

TEST_MAIN_WITH(debuginfo_child_main, MADE(reads_the_symbols_within), MADE(does_without_broken_ones))
