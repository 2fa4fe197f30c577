/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/runtimes.h"
#include "test.h"

#include "gen/elf.h"

static void names_what_is_in_records(void **state)
{
	(void)state;
	CHECK(str_eq(str_of(runtime_name(RUNTIME_CPYTHON)), STR("cpython")));
	CHECK(str_eq(str_of(runtime_name(RUNTIME_NONE)), STR("")));
	CHECK(str_eq(str_of(runtime_name(RUNTIME_KIND_COUNT)), STR("")));
}

static void finds_none_in_another_file(void **state)
{
	(void)state;
	static const uint8_t code[64];
	struct gen_elf g;
	gen_elf_init(&g);
	gen_load(&g,
		gen_section(&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code,
			sizeof(code)),
		PF_R | PF_X);
	gen_elf_finish(&g);
	struct objfile *obj = NULL;
	struct runtime_record r = { .kind = 77 };
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	CHECK(runtimes_find(obj, &r, &e) == E_NOTFOUND && r.kind == 77);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

TEST_MAIN(cmocka_unit_test(names_what_is_in_records), cmocka_unit_test(finds_none_in_another_file))
