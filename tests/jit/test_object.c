/* SPDX-License-Identifier: Apache-2.0 */
#include "jit/jit.h"

#include "test.h"

#include <elf.h>

/* As a compiler registers it: code at 0x10000, with two functions, and data. */
struct object {
	Elf64_Ehdr head;
	Elf64_Shdr sections[5]; /* none, code, symbols, names, not loaded */
	Elf64_Sym symbols[6];
	char names[64];
};

static struct object make(uint16_t type)
{
	struct object o = { .head = { .e_type = type,
				    .e_shoff = offsetof(struct object, sections),
				    .e_shentsize = sizeof(Elf64_Shdr),
				    .e_shnum = 5 } };
	uint64_t base = type == ET_REL ? 0 : 0x10000;
	memcpy(o.head.e_ident, ELFMAG, SELFMAG);
	o.head.e_ident[EI_CLASS] = ELFCLASS64;
	o.head.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(o.names, "\0first\0second\0data\0away\0far", 28);
	o.sections[1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = 0x10000,
		.sh_size = 0x100 };
	o.sections[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
		.sh_offset = offsetof(struct object, symbols),
		.sh_size = sizeof(o.symbols),
		.sh_entsize = sizeof(Elf64_Sym),
		.sh_link = 3 };
	o.sections[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct object, names),
		.sh_size = sizeof(o.names) };
	o.sections[4] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS, .sh_size = 0x100 };
	const unsigned char function = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
	o.symbols[1] = (Elf64_Sym){ 1, function, 0, 1, base, 0x40 };
	o.symbols[2] = (Elf64_Sym){ 7, function, 0, 1, base + 0x40, 0 };
	o.symbols[3] = (Elf64_Sym){ 14, ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), 0, 1, 0x200, 8 };
	o.symbols[4] = (Elf64_Sym){ 19, function, 0, SHN_UNDEF, 0x300, 8 };
	o.symbols[5] = (Elf64_Sym){ 24, function, 0, 4, 0x400, 8 };
	return o;
}

static struct jit_map *map;

static int begin(void **state)
{
	(void)state;
	return jit_map_new(&map) != OK;
}

static int end(void **state)
{
	(void)state;
	jit_map_free(map);
	return 0;
}

static struct str name_at(uint64_t address)
{
	struct jit_found f;
	return jit_map_find(map, address, 5, &f) ? f.name : STR("none");
}

static enum status read(const struct object *o, size_t len)
{
	uint32_t next = 0;
	enum status s = jit_object_read(map, str_make(o, len), 5, &next, NULL);
	assert_int_equal(next, 0);
	return s;
}

static void has_the_functions_that_are_loaded(void **state)
{
	(void)state;
	static const uint16_t types[] = { ET_REL, ET_EXEC, ET_DYN };
	for (size_t i = 0; i < ARRAY_COUNT(types); i++) {
		struct object o = make(types[i]);
		jit_map_free(map);
		CHECK(jit_map_new(&map) == OK);
		CHECK(read(&o, sizeof(o)) == OK);
		CHECK_STR(name_at(0x10000), "first");
		CHECK_STR(name_at(0x1003f), "first");
		CHECK_STR(name_at(0x10040), "second");
		CHECK_STR(name_at(0x100ff), "second");
		CHECK_STR(name_at(0x10100), "none");
		CHECK_STR(name_at(0x10200), "none");
		assert_int_equal(jit_map_len(map), 2);
		assert_int_equal(jit_map_bad(map), 0);
	}
}

static void refuses_what_is_none(void **state)
{
	(void)state;
	struct object o = make(ET_REL);
	CHECK(read(&o, sizeof(o.head) - 1) == E_CORRUPT);
	o.head.e_ident[EI_CLASS] = ELFCLASS32;
	CHECK(read(&o, sizeof(o)) == E_CORRUPT);
	o = make(ET_REL);
	o.head.e_shentsize = 40;
	CHECK(read(&o, sizeof(o)) == E_CORRUPT);
	assert_int_equal(jit_map_bad(map), 3);
	assert_int_equal(jit_map_len(map), 0);
}

/* Each number that says where something is. */
static void goes_nowhere_outside(void **state)
{
	(void)state;
	for (int i = 0; i < 7; i++) {
		struct object o = make(ET_REL);
		o.head.e_shoff = i == 0 ? UINT64_MAX - 8 : o.head.e_shoff;
		o.sections[2].sh_offset = i == 1 ? UINT64_MAX - 8 : o.sections[2].sh_offset;
		o.sections[2].sh_size = i == 2 ? UINT64_MAX : o.sections[2].sh_size;
		o.sections[2].sh_link = i == 3 ? 77 : o.sections[2].sh_link;
		o.sections[3].sh_size = i == 4 ? 1 : o.sections[3].sh_size;
		o.symbols[1].st_shndx = i == 5 ? 77 : o.symbols[1].st_shndx;
		o.symbols[1].st_name = i == 6 ? UINT32_MAX : o.symbols[1].st_name;
		CHECK(read(&o, sizeof(o)) == OK);
		CHECK_STR(name_at(0x10000), "none");
		jit_map_free(map);
		CHECK(jit_map_new(&map) == OK);
	}
}

/* As one of a large program. */
static void reads_many_in_pieces(void **state)
{
	(void)state;
	enum { COUNT = 2 * JIT_OBJECT_SYMBOLS_MAX + 1 };
	static struct {
		struct object o;
		Elf64_Sym symbols[COUNT];
	} large;
	large.o = make(ET_REL);
	large.o.sections[1].sh_size = COUNT * 16;
	large.o.sections[2].sh_offset = sizeof(large.o);
	large.o.sections[2].sh_size = sizeof(large.symbols);
	for (uint32_t i = 0; i < COUNT; i++) {
		large.symbols[i] = large.o.symbols[1];
		large.symbols[i].st_value = i * 16;
		large.symbols[i].st_size = 16;
	}
	uint32_t next = 0, calls = 0;
	do {
		struct str bytes = str_make(&large, sizeof(large));
		CHECK(jit_object_read(map, bytes, 5, &next, NULL) == OK);
	} while (++calls < 10 && next);
	assert_int_equal(calls, 3);
	assert_int_equal(jit_map_len(map), COUNT);
	CHECK_STR(name_at(0x10000 + COUNT * 16 - 1), "first");
	next = COUNT + 7;
	CHECK(jit_object_read(map, str_make(&large, sizeof(large)), 5, &next, NULL) == OK);
	assert_int_equal(next, 0);
}

TEST_MAIN(cmocka_unit_test_setup_teardown(reads_many_in_pieces, begin, end),
	cmocka_unit_test_setup_teardown(has_the_functions_that_are_loaded, begin, end),
	cmocka_unit_test_setup_teardown(refuses_what_is_none, begin, end),
	cmocka_unit_test_setup_teardown(goes_nowhere_outside, begin, end))
