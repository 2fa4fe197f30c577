/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of PLT entries: each entry is a jump through one slot of the GOT, and the relocation of
 * that slot has the name. The jump is decoded, so that the order and the size of entries (.plt,
 * .plt.sec, .plt.got; lazy or not; with or without branch protection) do not matter. x86-64 and
 * aarch64.
 */
#include "debuginfo/symtab/readers.h"

#include <stdio.h>
#include <stdlib.h>

struct slot {
	uint64_t got;
	const char *name;
};

struct slots {
	VEC(struct slot) v;
};

static int slot_cmp(const void *pa, const void *pb)
{
	const struct slot *a = pa, *b = pb;
	return a->got < b->got ? -1 : a->got > b->got;
}

static void slots_deinit(struct slots *s)
{
	VEC_FREE(&s->v);
}

/* The dynamic symbols, for sections of relocations that name no symbol table: debug files of
 * Parca's agent lose sh_link. */
static Elf_Scn *dynamic_symbols(Elf *elf)
{
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_DYNSYM)
			return scn;
	}
	return NULL;
}

/* Adds the relocations of one SHT_RELA section, with the names of their symbols. */
static enum status add_relocations(struct slots *slots, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	Elf_Scn *sym_scn = sh->sh_link ? elf_getscn(elf, sh->sh_link) : dynamic_symbols(elf);
	GElf_Shdr sym_sh;
	Elf_Data *syms = sym_scn ? elf_getdata(sym_scn, NULL) : NULL;
	if (!data || !syms || !gelf_getshdr(sym_scn, &sym_sh) || sh->sh_entsize == 0)
		return OK;
	if (sym_sh.sh_type != SHT_DYNSYM && sym_sh.sh_type != SHT_SYMTAB)
		return OK;
	size_t count = MIN(data->d_size / sh->sh_entsize, (size_t)INT32_MAX);
	for (size_t i = 0; i < count; i++) {
		GElf_Rela rela;
		GElf_Sym sym;
		if (!gelf_getrela(data, (int)i, &rela) || GELF_R_SYM(rela.r_info) > INT32_MAX ||
			!gelf_getsym(syms, (int)GELF_R_SYM(rela.r_info), &sym))
			continue;
		const char *name = elf_strptr(elf, sym_sh.sh_link, sym.st_name);
		if (name && name[0] && !VEC_PUSH(&slots->v, (struct slot){ rela.r_offset, name }))
			return E_NOMEM;
	}
	return OK;
}

static uint32_t insn32(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* If an entry begins at `p`: the GOT slot it jumps through, and its size; else false. */
static bool decode_x86(const uint8_t *p, size_t left, uint64_t addr, uint64_t *got, size_t *size)
{
	/* [endbr64] [bnd] jmp *disp32(%rip) */
	size_t at = left >= 4 && insn32(p) == 0xfa1e0ff3 ? 4 : 0;
	if (at < left && p[at] == 0xf2)
		at++;
	if (left - at < 6 || p[at] != 0xff || p[at + 1] != 0x25)
		return false;
	*got = addr + at + 6 + (uint64_t)(int64_t)(int32_t)insn32(p + at + 2);
	*size = left >= 16 && addr % 16 == 0 ? 16 : 8;
	return true;
}

static bool decode_arm64(const uint8_t *p, size_t left, uint64_t addr, uint64_t *got, size_t *size)
{
	/* adrp x16, page; ldr x17, [x16, #offset]; add; br */
	if (left < 16)
		return false;
	uint32_t adrp = insn32(p), ldr = insn32(p + 4);
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return false;
	uint64_t page = (uint64_t)((adrp >> 5) & 0x7ffff) << 2 | ((adrp >> 29) & 3);
	page = page & 0x100000 ? page | ~(uint64_t)0x1fffff : page; /* 21 bits, signed */
	*got = (addr & ~(uint64_t)0xfff) + (page << 12) + (uint64_t)((ldr >> 10) & 0xfff) * 8;
	*size = 16;
	return true;
}

static enum status add_entry(
	struct debuginfo_builder *b, const char *name, uint64_t addr, size_t size)
{
	char text[DEBUGINFO_TEXT_MAX];
	snprintf(text, sizeof(text), "%.*s@plt", DEBUGINFO_TEXT_MAX - 8, name);
	uint32_t id;
	enum status s = debuginfo_builder_text(b, text, &id);
	if (s != OK)
		return s;
	struct debuginfo_symbol sym = {
		.start = addr,
		.end = addr + size,
		.name = strtab_get(&b->strings, id).p, /* the arena never moves it */
		.rank = UINT8_MAX,
		.sized = true,
		.typed = true,
	};
	if (!VEC_PUSH(&b->symbols, sym))
		return E_NOMEM;
	b->flags |= SYMTAB_PLT;
	return OK;
}

static enum status read_entries(struct debuginfo_builder *b, const struct slots *slots,
	uint16_t machine, Elf_Data *data, uint64_t addr)
{
	const uint8_t *p = data->d_buf;
	size_t step = machine == EM_X86_64 ? 8 : 4;
	for (size_t at = 0; at < data->d_size; at += step) {
		uint64_t got = 0;
		size_t size = 0;
		bool found =
			machine == EM_X86_64
				? decode_x86(p + at, data->d_size - at, addr + at, &got, &size)
				: decode_arm64(p + at, data->d_size - at, addr + at, &got, &size);
		if (!found)
			continue;
		struct slot key = { got, NULL };
		const struct slot *slot =
			bsearch(&key, slots->v.v, slots->v.len, sizeof(key), slot_cmp);
		enum status s = slot ? add_entry(b, slot->name, addr + at, size) : OK;
		if (s != OK)
			return s;
		at += size - step;
	}
	return OK;
}

enum status debuginfo_read_plt(struct debuginfo_builder *b, Elf *elf)
{
	GElf_Ehdr eh;
	size_t names;
	if (!gelf_getehdr(elf, &eh) || elf_getshdrstrndx(elf, &names) != 0 ||
		(eh.e_machine != EM_X86_64 && eh.e_machine != EM_AARCH64))
		return OK;
	CLEANUP(slots_deinit) struct slots slots = { 0 };
	GElf_Shdr sh;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;)
		if (gelf_getshdr(scn, &sh) && sh.sh_type == SHT_RELA && (sh.sh_flags & SHF_ALLOC) &&
			add_relocations(&slots, elf, scn, &sh) != OK)
			return E_NOMEM;
	if (slots.v.len == 0)
		return OK;
	qsort(slots.v.v, slots.v.len, sizeof(*slots.v.v), slot_cmp);
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS ||
			!(sh.sh_flags & SHF_EXECINSTR))
			continue;
		const char *name = elf_strptr(elf, names, sh.sh_name);
		if (!name || strncmp(name, ".plt", 4) != 0)
			continue;
		Elf_Data *data = elf_rawdata(scn, NULL);
		if (data && data->d_buf &&
			read_entries(b, &slots, eh.e_machine, data, sh.sh_addr) != OK)
			return E_NOMEM;
	}
	return OK;
}
