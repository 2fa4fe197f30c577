/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a Go executable when it begins with the ELF magic; else the symbol table of one
 * (24 bytes a symbol) and behind a first byte that says how many, its names. Property: functions
 * ascend, and frames of any stack are no more than there were.
 */
#include "fuzz/fuzz.h"

#include "agent/oom/oomprogram.h"
#include "tests/gen/elf.h"

#define STACK 64

static void check(const struct objfile *obj, const uint8_t *data, size_t size)
{
	struct oomprogram p;
	uint64_t stack[STACK] = { 0 };
	if (oomprogram_read(obj, &p, NULL) != OK)
		return;
	for (uint32_t i = 1; i < p.function_count; i++)
		FUZZ_CHECK(p.functions[i - 1] >> 1 < p.functions[i] >> 1);
	for (uint32_t i = 0; i < STACK && size; i++)
		stack[i] = p.code_vaddr + data[i % size] * 16u + i % 3;
	FUZZ_CHECK(oomprogram_frames(&p, 0, stack, STACK) <= STACK);
	oomprogram_deinit(&p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct objfile *obj = NULL;
	if (size < 4 || size > 1 << 20)
		return 0;
	if (memcmp(data, ELFMAG, SELFMAG) == 0) {
		if (objfile_open_bytes(data, size, "fuzz", &obj, NULL) == OK)
			check(obj, data, size);
		objfile_close(obj);
		return 0;
	}
	static const uint8_t code[4096];
	struct gen_elf g;
	size_t bytes = MIN(size - 1, data[0] * sizeof(Elf64_Sym));
	gen_elf_init(&g);
	uint32_t text = gen_section(
		&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000, code, sizeof(code));
	gen_load(&g, text, PF_R | PF_X);
	gen_section(&g, ".go.buildinfo", SHT_PROGBITS, SHF_ALLOC, 0x400000, code, 16);
	uint32_t names =
		gen_section(&g, ".strtab", SHT_STRTAB, 0, 0, data + 1 + bytes, size - 1 - bytes);
	uint32_t table = gen_section(&g, ".symtab", SHT_SYMTAB, 0, 0, data + 1, bytes);
	g.sections[table].header.sh_link = names;
	gen_elf_finish(&g);
	FUZZ_CHECK(objfile_open_bytes(g.file.data, g.file.len, "fuzz", &obj, NULL) == OK);
	check(obj, data, size);
	objfile_close(obj);
	gen_elf_deinit(&g);
	return 0;
}
