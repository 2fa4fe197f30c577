/* SPDX-License-Identifier: Apache-2.0 */
#include "made.h"

static void joins_a_stripped_function(void **state)
{
	(void)state;
	made_write("a.c", "volatile int sink;\n"
			  "static __attribute__((noinline)) void hidden(int x)\n"
			  "{\n\tfor (int i = 0; i < x; i++)\n\t\tsink += i;\n}\n"
			  "int main(int argc, char **argv) { hidden(argc); return argv == 0; }\n");
	made_run("cc -O2 -g -fasynchronous-unwind-tables -o a a.c && strip -o s a");
	struct debuginfo_table *t = made_table("a", NULL, NULL);
	uint64_t start = made_find("a", t, "hidden", 0);
	CHECK(start != 0);
	uint64_t end = start;
	struct debuginfo_frame f[2];
	while (debuginfo_table_find(t, end, f, 2) == 1 && str_eq(f[0].name, STR("hidden")))
		end++;
	CHECK(end - start > 8);
	debuginfo_table_close(t);

	t = made_table("s", NULL, NULL);
	CHECK(made_info(t).has_eh_frame && !made_info(t).has_symtab);
	char want[32];
	snprintf(want, sizeof(want), "+0x%llx", (unsigned long long)start);
	for (uint64_t at = start; at < end; at++) {
		CHECK(debuginfo_table_find(t, at, f, 2) == 1);
		CHECK_STR(f[0].name, want);
		CHECK(f[0].line == 0);
	}
	CHECK(debuginfo_table_find(t, start - 1, f, 2) == 0 || !str_eq(f[0].name, str_of(want)));
	debuginfo_table_close(t);
}

TEST_MAIN_WITH(debuginfo_child_main, MADE(joins_a_stripped_function))
