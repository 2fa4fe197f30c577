/* SPDX-License-Identifier: Apache-2.0 */
/* What a compiler registers for debuggers, in this process: the variables have the names and the
 * forms of GDB's manual, JIT Compilation Interface. */
#pragma once

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct registered_entry {
	struct registered_entry *next, *previous;
	const void *object;
	uint64_t bytes;
};

struct registered_descriptor {
	uint32_t version, action;
	struct registered_entry *relevant, *first;
};

extern struct registered_descriptor __jit_debug_descriptor;

/* An object with one function. */
struct registered_object {
	Elf64_Ehdr head;
	Elf64_Shdr sections[4]; /* none, code, symbols, names */
	Elf64_Sym symbols[2];
	char names[64];
	struct registered_entry entry;
};

static inline void registered_make(
	struct registered_object *o, const char *name, uint64_t address, uint64_t size)
{
	*o = (struct registered_object){ .head = { .e_type = ET_REL,
						 .e_shoff = offsetof(
							 struct registered_object, sections),
						 .e_shentsize = sizeof(Elf64_Shdr),
						 .e_shnum = 4 } };
	memcpy(o->head.e_ident, ELFMAG, SELFMAG);
	o->head.e_ident[EI_CLASS] = ELFCLASS64;
	o->head.e_ident[EI_DATA] = ELFDATA2LSB;
	o->sections[1] = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
		.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		.sh_addr = address,
		.sh_size = size };
	o->sections[2] = (Elf64_Shdr){ .sh_type = SHT_SYMTAB,
		.sh_offset = offsetof(struct registered_object, symbols),
		.sh_size = sizeof(o->symbols),
		.sh_entsize = sizeof(Elf64_Sym),
		.sh_link = 3 };
	o->sections[3] = (Elf64_Shdr){ .sh_type = SHT_STRTAB,
		.sh_offset = offsetof(struct registered_object, names),
		.sh_size = sizeof(o->names) };
	o->symbols[1] = (Elf64_Sym){ 1, ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), 0, 1, 0, size };
	size_t len = strlen(name);
	memcpy(o->names + 1, name, len < sizeof(o->names) - 2 ? len : sizeof(o->names) - 2);
	o->entry.object = o;
	o->entry.bytes = offsetof(struct registered_object, entry);
}

static inline void registered_add(struct registered_object *o)
{
	o->entry.next = __jit_debug_descriptor.first;
	if (o->entry.next)
		o->entry.next->previous = &o->entry;
	__jit_debug_descriptor.first = __jit_debug_descriptor.relevant = &o->entry;
	__jit_debug_descriptor.action = 1;
}
