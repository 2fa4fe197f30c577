/* SPDX-License-Identifier: Apache-2.0 */
/* A stripped file with V8's builtins, made here: 600 of 20 bytes, each at a multiple of 32. */
#include "gen/elf.h"
#include "runtimes/internal.h"
#include "test.h"

#define BUILTINS 600
#define BUILTIN_BYTES 20
#define STEP 32
#define TEXT 0x401000
#define CODE_AT 0x1040 /* in .text */
#define CODE (TEXT + CODE_AT)
#define CONSTANTS 0x500000
#define TABLE_AT 0x108 /* in the constants: hashes, then the table */
#define ENTRY_WORDS 7
#define DATA 0x600000
#define NAME_ENTRY_BYTES 24
#define FIRST_HANDLER 400
#define ENTRY 70

enum change {
	CHANGE_NONE,
	CHANGE_RELOCATED,  /* names are told by relocations */
	CHANGE_NO_ENTRY,   /* one name is missing */
	CHANGE_FEW,        /* builtins */
	CHANGE_NO_GAPS,    /* breakpoints are missing in the code */
	CHANGE_OTHER_STEP, /* the names are not in order */
};

static uint8_t code[CODE_AT + BUILTINS * STEP + 0x100];
static uint8_t constants[0x8000];
static uint8_t data[BUILTINS * NAME_ENTRY_BYTES];

static void fill(enum change change)
{
	static const char names[] = "InterpreterEntryTrampoline\0AbortExtraWideHandler";
	memset(code, 0x90, sizeof(code));
	memset(constants, 0x77, sizeof(constants));
	memset(data, 0, sizeof(data));
	for (uint32_t i = 0; i < BUILTINS; i++) {
		uint32_t entry[ENTRY_WORDS] = { STEP * i, BUILTIN_BYTES };
		if (change == CHANGE_FEW && i == 300)
			entry[0] = 0;
		memcpy(constants + TABLE_AT + i * sizeof(entry), entry, sizeof(entry));
		uint32_t gap = change == CHANGE_NO_GAPS && i == 20 ? 1 : 0;
		memset(code + CODE_AT + STEP * i + BUILTIN_BYTES, 0xcc, STEP - BUILTIN_BYTES - gap);
	}
	memcpy(constants + 0x10, names, sizeof(names));
	/* One name is the end of another, as linkers have it. */
	uint64_t entry = CONSTANTS + 0x10, last = entry + 27, wide = last + strlen("AbortExtra");
	size_t step = change == CHANGE_OTHER_STEP ? 8 : 0;
	if (change != CHANGE_NO_ENTRY)
		memcpy(data + ENTRY * NAME_ENTRY_BYTES + step, &entry, 8);
	memcpy(data + FIRST_HANDLER * NAME_ENTRY_BYTES, &wide, 8);
	memcpy(data + (BUILTINS - 1) * NAME_ENTRY_BYTES, &last, 8);
}

/* The words of the data as relocations. */
static size_t relocate(Elf64_Rela *out)
{
	size_t n = 0;
	for (size_t at = 0; at < sizeof(data); at += 8) {
		uint64_t word;
		memcpy(&word, data + at, sizeof(word));
		if (word)
			out[n++] = (Elf64_Rela){ .r_offset = DATA + at,
				.r_info = ELF64_R_INFO(0, R_X86_64_RELATIVE),
				.r_addend = (int64_t)word };
	}
	memset(data, 0, sizeof(data));
	return n * sizeof(*out);
}

static bool find(enum change change, struct v8_builtins *out)
{
	Elf64_Rela rela[3];
	struct gen_elf g;
	struct err e = { 0 };
	struct objfile *obj = NULL;
	fill(change);
	size_t rela_bytes = change == CHANGE_RELOCATED ? relocate(rela) : 0;
	gen_elf_init(&g);
	uint32_t text = gen_section(
		&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, code, sizeof(code));
	uint32_t rodata = gen_section(
		&g, ".rodata", SHT_PROGBITS, SHF_ALLOC, CONSTANTS, constants, sizeof(constants));
	uint32_t words = gen_section(
		&g, ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA, data, sizeof(data));
	if (rela_bytes)
		(void)gen_section(&g, ".rela.dyn", SHT_RELA, 0, 0, rela, rela_bytes);
	gen_load(&g, text, PF_R | PF_X);
	gen_load(&g, rodata, PF_R);
	gen_load(&g, words, PF_R | PF_W);
	gen_elf_finish(&g);
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	bool found = v8_builtins_find(obj, out);
	objfile_close(obj);
	gen_elf_deinit(&g);
	return found;
}

static void finds_them_in_a_stripped_file(void **state)
{
	(void)state;
	static const enum change whole[] = { CHANGE_NONE, CHANGE_RELOCATED };
	for (size_t i = 0; i < ARRAY_COUNT(whole); i++) {
		struct v8_builtins b = { 0 };
		CHECK(find(whole[i], &b));
		CHECK(b.all.address == CODE);
		CHECK(b.entry.address == CODE + STEP * ENTRY && b.entry.size == BUILTIN_BYTES);
		CHECK(b.first_handler.address == CODE + STEP * FIRST_HANDLER);
		CHECK(b.last_handler.address == CODE + STEP * (BUILTINS - 1) &&
			b.last_handler.size == BUILTIN_BYTES);
	}
}

static void refuses_what_does_not_agree(void **state)
{
	(void)state;
	struct v8_builtins b = { .all = { .address = 7 } };
	for (int change = CHANGE_NO_ENTRY; change <= CHANGE_OTHER_STEP; change++)
		CHECK(!find((enum change)change, &b) && b.all.address == 7);
}

TEST_MAIN(cmocka_unit_test(finds_them_in_a_stripped_file),
	cmocka_unit_test(refuses_what_does_not_agree))
