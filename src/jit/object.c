/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An object of the GDB interface is an ELF file in memory. The compiler has set the addresses of
 * sections in its section headers. In a relocatable object (ET_REL) the value of a symbol is an
 * offset from its section's address, in others it is an address. Only the section headers, the
 * symbol table and its names are read. A symbol without a size extends to the end of its section.
 */
#include "base/reader.h"
#include "jit/map.h"

#include <elf.h>

struct object {
	struct str bytes;
	Elf64_Ehdr head;
};

static bool read_at(struct str bytes, uint64_t at, void *out, size_t len)
{
	struct reader r = reader_over(bytes.p, bytes.len);
	if (at > bytes.len)
		return false;
	reader_seek(&r, (size_t)at);
	const void *p = reader_bytes(&r, len);
	if (p)
		memcpy(out, p, len);
	return p != NULL;
}

static bool section_at(const struct object *o, uint32_t i, Elf64_Shdr *out)
{
	if (i >= o->head.e_shnum || o->head.e_shoff > o->bytes.len)
		return false;
	return read_at(o->bytes, o->head.e_shoff + (uint64_t)i * sizeof(*out), out, sizeof(*out));
}

/* The section's bytes; empty: they are not in the object. */
static struct str content_of(const struct object *o, const Elf64_Shdr *s)
{
	bool is_there = s->sh_offset <= o->bytes.len && s->sh_size <= o->bytes.len - s->sh_offset;
	return is_there ? str_make(o->bytes.p + s->sh_offset, (size_t)s->sh_size) : STR("");
}

/* A longer name is truncated, as the search for its end must be short. */
static struct str name_at(struct str names, uint32_t at)
{
	struct str s = str_sub(names, MIN((size_t)at, names.len), names.len);
	s = str_sub(s, 0, MIN(s.len, (size_t)JIT_NAME_BYTES_MAX));
	return str_sub(s, 0, str_index(s, 0));
}

static bool is_function(const Elf64_Sym *s)
{
	return ELF64_ST_TYPE(s->st_info) == STT_FUNC && s->st_shndx != SHN_UNDEF &&
	       s->st_shndx < SHN_LORESERVE;
}

static void take(const struct object *o, struct jit_map *m, const Elf64_Sym *s, struct str name,
	uint64_t since_ns)
{
	Elf64_Shdr in;
	if (!section_at(o, s->st_shndx, &in)) {
		jit_map_add_bad(m);
		return;
	}
	if (in.sh_addr == 0) /* not loaded */
		return;
	uint64_t base = o->head.e_type == ET_REL ? in.sh_addr : 0;
	uint64_t start = base + s->st_value, size = s->st_size;
	if (size == 0 && start >= in.sh_addr && start - in.sh_addr < in.sh_size)
		size = in.sh_size - (start - in.sh_addr);
	const struct jit_code code = {
		.start = start, .size = size, .since_ns = since_ns, .name = name
	};
	(void)jit_map_add(m, &code);
}

/* Takes symbols from number *next on; *next becomes 0 at the end. */
static void take_symbols(const struct object *o, const Elf64_Shdr *table, struct jit_map *m,
	uint64_t since_ns, uint32_t *next)
{
	Elf64_Shdr of_names;
	uint32_t first = *next;
	*next = 0;
	if (!section_at(o, table->sh_link, &of_names)) {
		jit_map_add_bad(m);
		return;
	}
	struct str names = content_of(o, &of_names), symbols = content_of(o, table);
	uint32_t count = (uint32_t)MIN(symbols.len / sizeof(Elf64_Sym), (size_t)UINT32_MAX);
	uint32_t end = MIN(count - MIN(first, count), JIT_OBJECT_SYMBOLS_MAX) + first;
	for (uint32_t i = first; i < MIN(end, count); i++) {
		Elf64_Sym s;
		if (read_at(symbols, (uint64_t)i * sizeof(s), &s, sizeof(s)) && is_function(&s))
			take(o, m, &s, name_at(names, s.st_name), since_ns);
	}
	*next = end < count ? end : 0;
}

enum status jit_object_read(
	struct jit_map *m, struct str bytes, uint64_t since_ns, uint32_t *next, struct err *e)
{
	struct object o = { .bytes = bytes };
	Elf64_Shdr s;
	bool is_read = read_at(bytes, 0, &o.head, sizeof(o.head));
	if (bytes.len < SELFMAG || memcmp(bytes.p, ELFMAG, SELFMAG) != 0)
		return beam_read(m, bytes, since_ns, next, e);
	if (!is_read || o.head.e_ident[EI_CLASS] != ELFCLASS64 ||
		o.head.e_ident[EI_DATA] != ELFDATA2LSB || o.head.e_shentsize != sizeof(s)) {
		jit_map_add_bad(m);
		*next = 0;
		return err_set(e, E_CORRUPT,
			"object of %zu bytes: an ELF file that is not of 64 bits, or without "
			"sections",
			bytes.len);
	}
	for (uint32_t i = 0; section_at(&o, i, &s); i++)
		if (s.sh_type == SHT_SYMTAB && s.sh_entsize == sizeof(Elf64_Sym)) {
			take_symbols(&o, &s, m, since_ns, next); /* an object has at most one */
			return OK;
		}
	*next = 0;
	return OK;
}
