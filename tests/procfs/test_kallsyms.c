/* SPDX-License-Identifier: Apache-2.0 */
#include "procfs/procfs.h"

#include "test.h"

static bool keep_last(void *ctx, const struct procfs_kallsym *s)
{
	*(struct procfs_kallsym *)ctx = *s;
	return true;
}

/* clang-format off */
static const struct {
	const char *name; const char *line; bool ok; uint64_t address; const char *symbol; const char *module;
} lines[] = {
	{ "kernel", "ffffffff81000000 T _stext\n", true, 0xffffffff81000000, "_stext", "" },
	{ "module", "ffffffffc0201000 t probe\t[e1000]\n", true, 0xffffffffc0201000, "probe", "e1000" },
	{ "BPF", "ffffffffc0000100 t bpf_prog_1\t[bpf]", true, 0xffffffffc0000100, "bpf_prog_1", "bpf" },
	{ "dots", "ffffffff81000000 t a.isra.0\n", true, 0xffffffff81000000, "a.isra.0", "" },
	{ "no name", "ffffffff81000000 T \n", false, 0, "", "" },
	{ "no type", "ffffffff81000000 name\n", false, 0, "", "" },
	{ "no number", "xyz T name\n", false, 0, "", "" },
	{ "17 digits", "0ffffffff81000000 T name\n", false, 0, "", "" },
	{ "empty line", "\n", false, 0, "", "" },
};
/* clang-format on */

static void parses_lines(void **state)
{
	(void)state;
	FOR_EACH_CASE (c, lines) {
		struct procfs_kallsym s = { 0 };
		enum status got = procfs_kallsyms_parse(str_of(c->line), keep_last, &s, NULL);
		CHECK_CASE(c, got == (c->ok ? OK : E_INVALID));
		CHECK_CASE(c, s.address == c->address);
		CHECK_CASE(c, str_eq(s.name, str_of(c->symbol)));
		CHECK_CASE(c, str_eq(s.module, str_of(c->module)));
	}
}

TEST_MAIN(cmocka_unit_test(parses_lines))
