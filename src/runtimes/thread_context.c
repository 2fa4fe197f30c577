/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the thread-local variable that points to a thread's context. Its symbol is exported, and
 * the dynamic linker fills in a word by which the file's code finds the variable, so a relocation
 * says where that word is. A program whose variables were placed at link time has no relocation:
 * they lie right below the thread pointer. A relocation without a symbol is for one of the file's
 * own variables, and its addend says for which.
 */
#include "runtimes/internal.h"

#include "base/reader.h"

#include <elf.h>
#include <string.h>

#define NAME "otel_thread_ctx_v1"
#define RELOCATIONS_BYTES_MAX ((size_t)64 << 20)
#ifndef R_X86_64_TLSDESC
#define R_X86_64_TLSDESC 36
#endif

/* The number of the symbol in .dynsym, and its value. False: it is not there. */
static bool find_symbol(const struct objfile *obj, uint32_t *out_index, uint64_t *out_value)
{
	const struct objfile_section *symbols = objfile_section(obj, ".dynsym");
	const struct objfile_section *names = objfile_section(obj, ".dynstr");
	if (!symbols || !names || symbols->size > RUNTIMES_SYMBOLS_MAX * sizeof(Elf64_Sym))
		return false;
	CLEANUP(buf_deinit) struct buf table;
	CLEANUP(buf_deinit) struct buf texts;
	buf_init(&table, RUNTIMES_SYMBOLS_MAX * sizeof(Elf64_Sym));
	buf_init(&texts, RUNTIMES_NAMES_BYTES_MAX);
	if (objfile_read_section(obj, names, &texts, NULL) != OK)
		return false;
	/* Most files do not have the name; then their symbols are not read. */
	if (!memmem(texts.data, texts.len, NAME, sizeof(NAME)) ||
		objfile_read_section(obj, symbols, &table, NULL) != OK)
		return false;
	struct reader r = reader_over(table.data, table.len);
	for (uint32_t i = 0; reader_left(&r) >= sizeof(Elf64_Sym); i++) {
		Elf64_Sym s;
		memcpy(&s, reader_bytes(&r, sizeof(s)), sizeof(s));
		if (ELF64_ST_TYPE(s.st_info) != STT_TLS || s.st_shndx == SHN_UNDEF ||
			s.st_name > texts.len || texts.len - s.st_name < sizeof(NAME) ||
			memcmp(texts.data + s.st_name, NAME, sizeof(NAME)) != 0)
			continue;
		*out_index = i;
		*out_value = s.st_value;
		return true;
	}
	return false;
}

static enum thread_context_form form_of(uint32_t type)
{
	switch (type) {
	case R_X86_64_TLSDESC:
		return THREAD_CONTEXT_DESCRIPTOR;
	case R_X86_64_DTPMOD64:
		return THREAD_CONTEXT_PAIR;
	case R_X86_64_TPOFF64:
		return THREAD_CONTEXT_OFFSET;
	default:
		return THREAD_CONTEXT_NONE;
	}
}

static bool find_relocation(const struct objfile *obj, const char *section, uint32_t symbol,
	uint64_t value, struct runtimes_thread_context *out)
{
	const struct objfile_section *s = objfile_section(obj, section);
	CLEANUP(buf_deinit) struct buf table;
	buf_init(&table, RELOCATIONS_BYTES_MAX);
	if (!s || s->size > RELOCATIONS_BYTES_MAX ||
		objfile_read_section(obj, s, &table, NULL) != OK)
		return false;
	struct reader r = reader_over(table.data, table.len);
	while (reader_left(&r) >= sizeof(Elf64_Rela)) {
		Elf64_Rela x;
		memcpy(&x, reader_bytes(&r, sizeof(x)), sizeof(x));
		enum thread_context_form form = form_of((uint32_t)ELF64_R_TYPE(x.r_info));
		uint32_t of = (uint32_t)ELF64_R_SYM(x.r_info);
		bool is_own =
			of == 0 && form != THREAD_CONTEXT_PAIR && (uint64_t)x.r_addend == value;
		if (form == THREAD_CONTEXT_NONE || (of != symbol && !is_own))
			continue;
		*out = (struct runtimes_thread_context){ form, x.r_offset };
		return true;
	}
	return false;
}

/* The last variable of a program ends at the thread pointer, aligned. */
static bool find_fixed(
	const struct objfile *obj, uint64_t value, struct runtimes_thread_context *out)
{
	struct objfile_segment interpreter, variables;
	bool is_program = objfile_type(obj) == ET_EXEC ||
			  objfile_program_header(obj, PT_INTERP, &interpreter);
	if (!is_program || !objfile_program_header(obj, PT_TLS, &variables) ||
		value >= variables.mem_size)
		return false;
	uint64_t align = variables.align ? variables.align : 1;
	if (align > 4096 || (align & (align - 1)))
		return false;
	uint64_t bytes = (variables.mem_size + align - 1) & ~(align - 1);
	*out = (struct runtimes_thread_context){ THREAD_CONTEXT_FIXED, value - bytes };
	return true;
}

bool runtimes_thread_context(const struct objfile *obj, struct runtimes_thread_context *out)
{
	uint32_t symbol = 0;
	uint64_t value = 0;
	return find_symbol(obj, &symbol, &value) &&
	       (find_relocation(obj, ".rela.dyn", symbol, value, out) ||
		       find_relocation(obj, ".rela.plt", symbol, value, out) ||
		       find_fixed(obj, value, out));
}
