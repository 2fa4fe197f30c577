/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elf: writes small ELF files, and call frame information, from code: the inputs of tests and
 * fuzzers, so that no binary lies in the tree.
 *
 *	struct gen_elf g;
 *	gen_elf_init(&g);
 *	uint32_t text = gen_section(&g, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x401000,
 *		code, sizeof(code));
 *	gen_load(&g, text, PF_R | PF_X);
 *	gen_elf_finish(&g); // g.file has the bytes
 *	gen_elf_deinit(&g);
 */
#pragma once

#include "base/buf.h"

#include <elf.h>

#define GEN_SECTIONS_MAX 64
#define GEN_SEGMENTS_MAX 32
#define GEN_PAGE 4096

struct gen_section {
	const char *name;
	Elf64_Shdr header;
	struct buf bytes;
};

struct gen_segment {
	Elf64_Phdr header;
	uint32_t section; /* UINT32_MAX: as it is */
};

struct gen_elf {
	Elf64_Ehdr header; /* change e_type, e_machine, e_entry as you like before the end */
	struct gen_section sections[GEN_SECTIONS_MAX];
	uint32_t section_count;
	struct gen_segment segments[GEN_SEGMENTS_MAX];
	uint32_t segment_count;
	bool no_section_headers;
	struct buf file;
};

UNUSED static void gen_elf_init(struct gen_elf *g)
{
	memset(g, 0, sizeof(*g));
	memcpy(g->header.e_ident, ELFMAG, SELFMAG);
	g->header.e_ident[EI_CLASS] = ELFCLASS64;
	g->header.e_ident[EI_DATA] = ELFDATA2LSB;
	g->header.e_ident[EI_VERSION] = EV_CURRENT;
	g->header.e_type = ET_DYN;
	g->header.e_machine = EM_X86_64;
	g->header.e_version = EV_CURRENT;
	g->header.e_ehsize = sizeof(Elf64_Ehdr);
	g->header.e_phentsize = sizeof(Elf64_Phdr);
	g->header.e_shentsize = sizeof(Elf64_Shdr);
	g->section_count = 1; /* the null section */
	buf_init(&g->file, 256u << 20);
}

UNUSED static void gen_elf_deinit(struct gen_elf *g)
{
	for (uint32_t i = 0; i < g->section_count; i++)
		buf_deinit(&g->sections[i].bytes);
	buf_deinit(&g->file);
}

UNUSED static uint32_t gen_section(struct gen_elf *g, const char *name, uint32_t type,
	uint64_t flags, uint64_t addr, const void *bytes, size_t len)
{
	assert(g->section_count < GEN_SECTIONS_MAX - 1);
	struct gen_section *s = &g->sections[g->section_count];
	s->name = name;
	s->header.sh_type = type;
	s->header.sh_flags = flags;
	s->header.sh_addr = addr;
	s->header.sh_size = len;
	s->header.sh_addralign = 1;
	buf_init(&s->bytes, 256u << 20);
	if (bytes)
		buf_put(&s->bytes, bytes, len);
	return g->section_count++;
}

UNUSED static void gen_segment(struct gen_elf *g, uint32_t section, uint32_t type, uint32_t flags)
{
	assert(g->segment_count < GEN_SEGMENTS_MAX);
	struct gen_segment *p = &g->segments[g->segment_count++];
	p->section = section;
	p->header.p_type = type;
	p->header.p_flags = flags;
	p->header.p_align = type == PT_LOAD ? GEN_PAGE : 4;
}

UNUSED static void gen_load(struct gen_elf *g, uint32_t section, uint32_t flags)
{
	gen_segment(g, section, PT_LOAD, flags);
}

UNUSED static void gen_place_contents(struct gen_elf *g)
{
	for (uint32_t i = 1; i < g->section_count; i++) {
		struct gen_section *s = &g->sections[i];
		while ((g->file.len ^ s->header.sh_addr) % GEN_PAGE && s->header.sh_addr)
			buf_u8(&g->file, 0);
		s->header.sh_offset = g->file.len;
		if (s->header.sh_type != SHT_NOBITS)
			buf_put(&g->file, s->bytes.data, s->bytes.len);
	}
	for (uint32_t i = 0; i < g->segment_count; i++) {
		struct gen_segment *p = &g->segments[i];
		if (p->section == UINT32_MAX)
			continue;
		const Elf64_Shdr *h = &g->sections[p->section].header;
		p->header.p_offset = h->sh_offset;
		p->header.p_vaddr = h->sh_addr;
		p->header.p_filesz = h->sh_size;
		p->header.p_memsz = h->sh_size;
	}
}

UNUSED static void gen_elf_finish(struct gen_elf *g)
{
	g->header.e_phoff = g->segment_count ? sizeof(Elf64_Ehdr) : 0;
	g->header.e_phnum = (uint16_t)g->segment_count;
	buf_zero(&g->file, sizeof(Elf64_Ehdr) + g->segment_count * sizeof(Elf64_Phdr));
	uint32_t names = gen_section(g, ".shstrtab", SHT_STRTAB, 0, 0, "", 1);
	struct gen_section *n = &g->sections[names];
	for (uint32_t i = 1; i < g->section_count; i++) {
		g->sections[i].header.sh_name = (uint32_t)n->bytes.len;
		buf_put(&n->bytes, g->sections[i].name, strlen(g->sections[i].name) + 1);
	}
	n->header.sh_size = n->bytes.len;
	gen_place_contents(g);
	buf_align(&g->file, 8);
	if (!g->no_section_headers) {
		g->header.e_shoff = g->file.len;
		g->header.e_shnum = (uint16_t)g->section_count;
		g->header.e_shstrndx = (uint16_t)names;
		for (uint32_t i = 0; i < g->section_count; i++)
			buf_put(&g->file, &g->sections[i].header, sizeof(Elf64_Shdr));
	}
	assert(!g->file.failed);
	memcpy(g->file.data, &g->header, sizeof(g->header));
	for (uint32_t i = 0; i < g->segment_count; i++)
		memcpy(g->file.data + sizeof(Elf64_Ehdr) + i * sizeof(Elf64_Phdr),
			&g->segments[i].header, sizeof(Elf64_Phdr));
}

/* ---- notes ---- */

UNUSED static void gen_note(
	struct buf *b, const char *name, uint32_t type, const void *desc, uint32_t len)
{
	buf_u32(b, (uint32_t)strlen(name) + 1);
	buf_u32(b, len);
	buf_u32(b, type);
	buf_put(b, name, strlen(name) + 1);
	buf_align(b, 4);
	buf_put(b, desc, len);
	buf_align(b, 4);
}

/* ---- call frame information ---- */

struct gen_cfi {
	struct buf bytes;
	uint64_t address; /* of the section */
	bool is_debug_frame;
	uint32_t encoding; /* of pointers: 0x1b (pcrel, sdata4), 0x00 (absptr), 0x0b, … */
};

UNUSED static void gen_cfi_init(struct gen_cfi *c, uint64_t address)
{
	*c = (struct gen_cfi){ .address = address, .encoding = 0x1b };
	buf_init(&c->bytes, 256u << 20);
}

UNUSED static void gen_patch_u32(struct buf *b, size_t at, uint32_t v)
{
	memcpy(b->data + at, &v, sizeof(v));
}

UNUSED static size_t gen_entry_begin(struct gen_cfi *c)
{
	size_t at = c->bytes.len;
	buf_u32(&c->bytes, 0);
	return at;
}

UNUSED static void gen_entry_end(struct gen_cfi *c, size_t at)
{
	while ((c->bytes.len - at) % 8 != 4)
		buf_u8(&c->bytes, 0); /* DW_CFA_nop */
	gen_patch_u32(&c->bytes, at, (uint32_t)(c->bytes.len - at - 4));
}

/* A CIE of x86-64: code_align 1, data_align -8, return address in column 16. Returns its offset. */
UNUSED static size_t gen_cie_with(struct gen_cfi *c, const char *augmentation, const void *data,
	size_t data_len, const void *instructions, size_t len)
{
	size_t at = gen_entry_begin(c);
	buf_u32(&c->bytes, c->is_debug_frame ? UINT32_MAX : 0);
	buf_u8(&c->bytes, 1);
	buf_put(&c->bytes, augmentation, strlen(augmentation) + 1);
	buf_u8(&c->bytes, 1);    /* code_align */
	buf_u8(&c->bytes, 0x78); /* data_align -8 */
	buf_u8(&c->bytes, 16);
	if (augmentation[0] == 'z')
		buf_varint(&c->bytes, data_len);
	buf_put(&c->bytes, data, data_len);
	buf_put(&c->bytes, instructions, len);
	gen_entry_end(c, at);
	return at;
}

/* The usual one: "zR", def_cfa rsp+8, return address at CFA - 8. */
UNUSED static size_t gen_cie(struct gen_cfi *c)
{
	static const uint8_t instructions[] = { 0x0c, 7, 8, 0x90, 1 };
	uint8_t encoding = (uint8_t)c->encoding;
	if (c->is_debug_frame)
		return gen_cie_with(c, "", NULL, 0, instructions, sizeof(instructions));
	return gen_cie_with(c, "zR", &encoding, 1, instructions, sizeof(instructions));
}

UNUSED static void gen_pointer(struct gen_cfi *c, uint64_t v, uint32_t encoding)
{
	if ((encoding & 0x70) == 0x10)
		v -= c->address + c->bytes.len;
	if ((encoding & 0x0f) == 0x0b || (encoding & 0x0f) == 0x03)
		buf_u32(&c->bytes, (uint32_t)v);
	else
		buf_u64(&c->bytes, v);
}

UNUSED static size_t gen_fde(struct gen_cfi *c, size_t cie, uint64_t pc, uint64_t length,
	const void *instructions, size_t len)
{
	size_t at = gen_entry_begin(c);
	uint32_t encoding = c->is_debug_frame ? 0 : c->encoding;
	buf_u32(&c->bytes, (uint32_t)(c->is_debug_frame ? cie : c->bytes.len - cie));
	gen_pointer(c, pc, encoding);
	gen_pointer(c, length, encoding & 0x0f);
	if (!c->is_debug_frame)
		buf_u8(&c->bytes, 0); /* no augmentation data */
	buf_put(&c->bytes, instructions, len);
	gen_entry_end(c, at);
	return at;
}
