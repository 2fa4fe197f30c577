/* SPDX-License-Identifier: Apache-2.0 */
#include "made.h"

static bool has_name(const struct debuginfo_table *t, struct objfile_section s, const char *name)
{
	struct debuginfo_frame f[2];
	for (uint64_t at = s.addr; at < s.addr + s.size; at++)
		if (debuginfo_table_find(t, at, f, 2) == 1 && str_eq(f[0].name, str_of(name)))
			return true;
	return false;
}

static void names_each_layout(void **state)
{
	(void)state;
	made_write("a.c", "#include <stdio.h>\n#include <stdlib.h>\n"
			  "int main(int argc, char **argv)\n"
			  "{\n\tputs(argv[0]);\n\tsrand(argc);\n\treturn rand();\n}\n");
	static const char *const commands[] = {
		"cc -O2 -fcf-protection=none -Wl,-z,lazy -o a a.c",
		"cc -O2 -fcf-protection=full -Wl,-z,lazy -Wl,-z,ibtplt -o a a.c",
		"cc -O2 -Wl,-z,now -o a a.c",
		"cc -O2 -s -Wl,-z,lazy -o a a.c",
		"cc -O2 -no-pie -Wl,-z,lazy -o a a.c",
	};
	size_t done = 0;
	for (size_t i = 0; i < ARRAY_COUNT(commands); i++) {
		if (!made_try(commands[i])) {
			print_message("not here: %s\n", commands[i]);
			continue;
		}
		struct debuginfo_table *t = made_table("a", NULL, NULL);
		CHECK(made_info(t).has_plt);
		static const char *const sections[] = { ".plt", ".plt.sec", ".plt.got" };
		static const char *const names[] = { "puts@plt", "srand@plt", "rand@plt" };
		for (size_t n = 0; n < ARRAY_COUNT(names); n++) {
			bool found = false;
			for (size_t k = 0; k < ARRAY_COUNT(sections); k++)
				found |= has_name(t, made_section("a", sections[k]), names[n]);
			if (!found)
				print_error("%s: %s\n", commands[i], names[n]);
			CHECK(found);
		}
		debuginfo_table_close(t);
		done++;
	}
	CHECK(done > 0);
}

TEST_MAIN_WITH(debuginfo_child_main, MADE(names_each_layout))
