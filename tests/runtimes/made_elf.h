/* SPDX-License-Identifier: Apache-2.0 */
/* made_elf: an ELF file of some symbols, constants, code and data, in which a runtime is looked
 * for. */
#pragma once

#include "runtimes/runtimes.h"

#include "gen/elf.h"

#define MADE_TEXT 0x401000
#define MADE_TEXT_BYTES 4096
#define MADE_CONSTANTS 0x450000
#define MADE_DATA 0x500000
#define MADE_SYMBOLS_MAX 32

struct made_symbol {
	const char *name;
	uint64_t address, size;
};

struct made_elf {
	const char *constants; /* .rodata; NULL: "nothing" */
	const uint8_t *code;   /* MADE_TEXT_BYTES of .text; NULL: zeros */
	const void *index;     /* .eh_frame_hdr, at MADE_CONSTANTS + 0x1000; NULL: there is none */
	size_t index_bytes;
	const void *buildinfo; /* .go.buildinfo, at MADE_CONSTANTS + 0x2000; NULL: there is none */
	size_t buildinfo_bytes;
	const uint8_t *data; /* 1,024 bytes of .data; NULL: zeros */
	struct made_symbol symbols[MADE_SYMBOLS_MAX];
	struct made_symbol locals[MADE_SYMBOLS_MAX]; /* in .symtab, where there are any */
};

static inline uint32_t made_name(struct buf *names, const char *name)
{
	uint32_t at = (uint32_t)names->len;
	buf_put(names, name, strlen(name) + 1);
	return at;
}

static inline void made_symbols(
	struct buf *symbols, struct buf *names, const struct made_symbol *list)
{
	buf_init(symbols, 4096);
	buf_init(names, 4096);
	Elf64_Sym none = { .st_name = made_name(names, "") };
	buf_put(symbols, &none, sizeof(none));
	for (size_t i = 0; i < MADE_SYMBOLS_MAX && list[i].name; i++) {
		Elf64_Sym s = { .st_name = made_name(names, list[i].name),
			.st_shndx = 1,
			.st_value = list[i].address,
			.st_size = list[i].size };
		buf_put(symbols, &s, sizeof(s));
	}
}

static inline void made_elf(struct gen_elf *g, const struct made_elf *m)
{
	static const uint8_t zeros[MADE_TEXT_BYTES];
	const char *constants = m->constants ? m->constants : "nothing";
	struct buf symbols, names, locals, local_names;
	made_symbols(&symbols, &names, m->symbols);
	made_symbols(&locals, &local_names, m->locals);
	gen_elf_init(g);
	uint32_t text = gen_section(g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, MADE_TEXT,
		m->code ? m->code : zeros, MADE_TEXT_BYTES);
	uint32_t rodata = gen_section(g, ".rodata", SHT_PROGBITS, SHF_ALLOC, MADE_CONSTANTS,
		constants, strlen(constants) + 1);
	if (m->index)
		(void)gen_section(g, ".eh_frame_hdr", SHT_PROGBITS, SHF_ALLOC,
			MADE_CONSTANTS + 0x1000, m->index, m->index_bytes);
	if (m->buildinfo)
		(void)gen_section(g, ".go.buildinfo", SHT_PROGBITS, SHF_ALLOC,
			MADE_CONSTANTS + 0x2000, m->buildinfo, m->buildinfo_bytes);
	uint32_t data = gen_section(g, ".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, MADE_DATA,
		m->data ? m->data : zeros, 1024);
	uint32_t dynsym =
		gen_section(g, ".dynsym", SHT_DYNSYM, SHF_ALLOC, 0, symbols.data, symbols.len);
	g->sections[dynsym].header.sh_link =
		gen_section(g, ".dynstr", SHT_STRTAB, SHF_ALLOC, 0, names.data, names.len);
	if (m->locals[0].name) {
		uint32_t symtab =
			gen_section(g, ".symtab", SHT_SYMTAB, 0, 0, locals.data, locals.len);
		g->sections[symtab].header.sh_link = gen_section(
			g, ".strtab", SHT_STRTAB, 0, 0, local_names.data, local_names.len);
	}
	gen_load(g, text, PF_R | PF_X);
	gen_load(g, rodata, PF_R);
	gen_load(g, data, PF_R | PF_W);
	gen_elf_finish(g);
	buf_deinit(&symbols);
	buf_deinit(&names);
	buf_deinit(&locals);
	buf_deinit(&local_names);
}

static inline enum status made_elf_find(
	const struct made_elf *m, struct runtime_record *out, struct err *e)
{
	struct gen_elf g;
	struct objfile *obj = NULL;
	made_elf(&g, m);
	enum status s = objfile_open_bytes(g.file.data, g.file.len, "made", &obj, e);
	if (s == OK)
		s = runtimes_find(obj, out, e);
	objfile_close(obj);
	gen_elf_deinit(&g);
	return s;
}
