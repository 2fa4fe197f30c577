/* SPDX-License-Identifier: Apache-2.0 */
/* Files that look like the runtime of .NET, made here. */
#include "made_elf.h"
#include "runtimes/runtimes.h"
#include "test.h"

static enum status find(
	const char *version, const char *symbol, struct runtime_record *out, struct err *e)
{
	static const uint8_t code[MADE_TEXT_BYTES];
	const struct made_elf m = {
		.constants = version, .code = code, .symbols = { { symbol, MADE_TEXT + 0x40, 8 } }
	};
	return made_elf_find(&m, out, e);
}

static void finds_it(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	struct err e = { 0 };
	CHECK_OK(find("@(#)Version 8.0.424.16909 @Commit: 2d7e", "g_dacTable", &r, &e), &e);
	CHECK(r.kind == RUNTIME_DOTNET && r.version == 8 << 8);
	CHECK_OK(find("@(#)Version 10.0.25.52411 ", "g_dacTable", &r, &e), &e);
	CHECK(r.version == 10 << 8);
	CHECK(str_eq(str_of(runtime_name(RUNTIME_DOTNET)), STR("dotnet")));
}

static void refuses_what_it_does_not_know(void **state)
{
	(void)state;
	struct runtime_record r = { 0 };
	CHECK(find("@(#)Version 7.0.1", "g_dacTable", &r, NULL) == E_UNSUPPORTED);
	CHECK(find("@(#)Version 11.0.1", "g_dacTable", &r, NULL) == E_UNSUPPORTED);
	CHECK(find("Version", "g_dacTable", &r, NULL) == E_UNSUPPORTED);
	CHECK(find("@(#)Version 8.0.4", "another", &r, NULL) == E_NOTFOUND);
	assert_int_equal(r.kind, RUNTIME_NONE);
}

TEST_MAIN(cmocka_unit_test(finds_it), cmocka_unit_test(refuses_what_it_does_not_know))
