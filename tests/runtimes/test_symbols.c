/* SPDX-License-Identifier: Apache-2.0 */
#include "runtimes/internal.h"
#include "test.h"

#include "gen/elf.h"

#include <stdlib.h>

#define TEXT 0x401000

static void make(struct gen_elf *g, const Elf64_Sym *symbols, size_t count, uint32_t link)
{
	static const uint8_t code[256];
	gen_elf_init(g);
	uint32_t text = gen_section(
		g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT, code, sizeof(code));
	uint32_t table = gen_section(
		g, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, symbols, count * sizeof(*symbols));
	uint32_t names = gen_section(g, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, "\0one\0two\0cut", 12);
	g->sections[table].header.sh_link = link ? link : names;
	gen_load(g, text, PF_R | PF_X);
	gen_elf_finish(g);
}

static const Elf64_Sym symbols[] = {
	{ 0 },
	{ .st_name = 5, .st_shndx = SHN_UNDEF, .st_value = 1 },
	{ .st_name = 5, .st_shndx = 1, .st_value = TEXT + 8, .st_size = 4 },
	{ .st_name = 5, .st_shndx = 1, .st_value = TEXT + 16, .st_size = 5 },
	{ .st_name = 9, .st_shndx = 1, .st_value = TEXT + 24 },
	{ .st_name = 9000, .st_shndx = 1, .st_value = TEXT + 32 },
};

static void finds_what_is_defined(void **state)
{
	(void)state;
	struct gen_elf g;
	struct objfile *obj = NULL;
	struct err e = { 0 };
	make(&g, symbols, ARRAY_COUNT(symbols), 0);
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	struct runtime_symbol wanted[] = { { .name = "two" }, { .name = "one" },
		{ .name = "cut" } };
	CHECK_OK(symbols_find(obj, SHT_DYNSYM, wanted, 3, &e), &e);
	/* The first definition; a name whose end is not there is none. */
	CHECK(wanted[0].address == TEXT + 8 && wanted[0].size == 4);
	CHECK(wanted[1].address == 0 && wanted[2].address == 0);
	CHECK_OK(symbols_find(obj, SHT_SYMTAB, wanted, 3, &e), &e); /* there is none */
	objfile_close(obj);
	gen_elf_deinit(&g);
}

static void takes_no_names_from_nowhere(void **state)
{
	(void)state;
	struct gen_elf g;
	struct objfile *obj = NULL;
	struct err e = { 0 };
	make(&g, symbols, ARRAY_COUNT(symbols), 60);
	struct runtime_symbol wanted[] = { { .name = "two" } };
	if (objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e) == OK)
		CHECK_OK(symbols_find(obj, SHT_DYNSYM, wanted, 1, &e), &e);
	CHECK(wanted[0].address == 0);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

static void places_a_variable_beside_the_code(void **state)
{
	(void)state;
	struct gen_elf g;
	struct objfile *obj = NULL;
	struct err e = { 0 };
	struct runtime_record r = { 0 };
	make(&g, symbols, ARRAY_COUNT(symbols), 0);
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	CHECK_OK(place_root(obj, 0x500000, TEXT + 8, &r, &e), &e);
	CHECK(r.text_bytes == 256 && r.delta == r.text_from + (0x500000 - TEXT));
	CHECK(place_root(obj, 0x500000, TEXT + 256, &r, &e) == E_INVALID);
	uint32_t word;
	CHECK_OK(bytes_at(obj, TEXT + 252, &word, sizeof(word), &e), &e);
	CHECK(bytes_at(obj, TEXT - 1, &word, sizeof(word), &e) == E_INVALID);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

/* As many symbols as there may be, all at the beginning of names that never end: looking for the
 * end would go over 10^13 bytes. */
static void ends_with_names_that_never_do(void **state)
{
	(void)state;
	size_t len = RUNTIMES_NAMES_BYTES_MAX, count = RUNTIMES_SYMBOLS_MAX;
	char *names = malloc(len);
	Elf64_Sym *table = calloc(count, sizeof(*table));
	CHECK(names && table);
	memset(names, 'x', len);
	for (size_t i = 0; i < count; i++)
		table[i] = (Elf64_Sym){ .st_shndx = 1, .st_value = TEXT };
	struct gen_elf g;
	gen_elf_init(&g);
	uint32_t section =
		gen_section(&g, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, table, count * sizeof(*table));
	g.sections[section].header.sh_link =
		gen_section(&g, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, names, len);
	gen_elf_finish(&g);
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	struct runtime_symbol wanted[] = { { .name = "two" }, { .name = "xx" } };
	CHECK_OK(symbols_find(obj, SHT_DYNSYM, wanted, 2, &e), &e);
	CHECK(wanted[0].address == 0 && wanted[1].address == 0);
	objfile_close(obj);
	gen_elf_deinit(&g);
	free(table);
	free(names);
}

/* Names in a table that is read in several blocks, at every place of a block's end; one is the end
 * of a longer name, as linkers have it. */
static void finds_names_wherever_they_stand(void **state)
{
	(void)state;
	for (size_t shift = 0; shift < 12; shift++) {
		size_t at = 16384 - shift, len = at + 16384 + 64;
		char *names = malloc(len);
		CHECK(names);
		memset(names, 'x', len);
		names[0] = names[at - 1] = names[len - 1] = 0;
		memcpy(names + at, "longer_one", 11);
		memcpy(names + len - 4, "two", 4);
		const Elf64_Sym table[] = { { 0 },
			{ .st_name = (uint32_t)at, .st_shndx = 1, .st_value = TEXT },
			{ .st_name = (uint32_t)at + 7, .st_shndx = 1, .st_value = TEXT + 8 },
			{ .st_name = (uint32_t)len - 4, .st_shndx = 1, .st_value = TEXT + 16 } };
		struct gen_elf g;
		gen_elf_init(&g);
		uint32_t section =
			gen_section(&g, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, table, sizeof(table));
		g.sections[section].header.sh_link =
			gen_section(&g, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, names, len);
		gen_elf_finish(&g);
		struct objfile *obj = NULL;
		struct err e = { 0 };
		CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
		struct runtime_symbol wanted[] = { { .name = "one" }, { .name = "longer_one" },
			{ .name = "two" }, { .name = "r_one" } };
		CHECK_OK(symbols_find(obj, SHT_DYNSYM, wanted, 4, &e), &e);
		CHECK(wanted[0].address == TEXT + 8 && wanted[1].address == TEXT);
		CHECK(wanted[2].address == TEXT + 16 && wanted[3].address == 0);
		objfile_close(obj);
		gen_elf_deinit(&g);
		free(names);
	}
}

/* A table that says one name again and again is given up. */
static void refuses_names_without_end(void **state)
{
	(void)state;
	char names[4096] = { 0 };
	for (size_t i = 1; i + 4 <= sizeof(names); i += 4)
		memcpy(names + i, "two", 4);
	struct gen_elf g;
	gen_elf_init(&g);
	uint32_t section =
		gen_section(&g, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, symbols, sizeof(symbols));
	g.sections[section].header.sh_link =
		gen_section(&g, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, names, sizeof(names));
	gen_elf_finish(&g);
	struct objfile *obj = NULL;
	struct err e = { 0 };
	CHECK_OK(objfile_open_bytes(g.file.data, g.file.len, "made", &obj, &e), &e);
	struct runtime_symbol wanted[] = { { .name = "two" } };
	CHECK(symbols_find(obj, SHT_DYNSYM, wanted, 1, &e) == E_LIMIT);
	CHECK(wanted[0].address == 0);
	objfile_close(obj);
	gen_elf_deinit(&g);
}

TEST_MAIN(cmocka_unit_test(finds_what_is_defined), cmocka_unit_test(takes_no_names_from_nowhere),
	cmocka_unit_test(ends_with_names_that_never_do),
	cmocka_unit_test(finds_names_wherever_they_stand),
	cmocka_unit_test(refuses_names_without_end),
	cmocka_unit_test(places_a_variable_beside_the_code))
