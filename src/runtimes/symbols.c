/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of symbols is read whole and gone through once: a file's names are asked for once in its
 * life, and that costs less than building its unwind rows. A symbol costs a comparison with each
 * wanted name, whatever the file says: nothing looks for the end of a name in it.
 */
#include "runtimes/private.h"

#include "base/reader.h"

#include <elf.h>
#include <string.h>

static const struct objfile_section *section_of_type(
	const struct objfile *obj, uint32_t type, const struct objfile_section **out_names)
{
	uint32_t count;
	const struct objfile_section *s = objfile_sections(obj, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (s[i].type != type || s[i].link >= count)
			continue;
		*out_names = &s[s[i].link];
		return &s[i];
	}
	return NULL;
}

/* Does the name at `at` read `want`, with the NUL behind it? */
static bool is_name(const struct buf *names, uint32_t at, const char *want)
{
	size_t len = strlen(want) + 1;
	return at <= names->len && len <= names->len - at &&
	       memcmp(names->data + at, want, len) == 0;
}

static void take_symbol(const struct buf *names, const Elf64_Sym *symbol,
	struct runtime_symbol *wanted, uint32_t count)
{
	bool is_of_threads = ELF64_ST_TYPE(symbol->st_info) == STT_TLS;
	if (symbol->st_shndx == SHN_UNDEF || (symbol->st_value == 0 && !is_of_threads))
		return;
	for (uint32_t i = 0; i < count; i++) {
		if (wanted[i].address || !is_name(names, symbol->st_name, wanted[i].name))
			continue;
		wanted[i].address = symbol->st_value;
		wanted[i].size = symbol->st_size;
	}
}

enum status symbols_find(const struct objfile *obj, uint32_t section_type,
	struct runtime_symbol *wanted, uint32_t count, struct err *e)
{
	const struct objfile_section *names_section;
	const struct objfile_section *section = section_of_type(obj, section_type, &names_section);
	if (!section)
		return OK;
	if (section->size > RUNTIMES_SYMBOLS_MAX * sizeof(Elf64_Sym))
		return err_set(e, E_LIMIT, "%s: more than %u symbols", objfile_name(obj),
			RUNTIMES_SYMBOLS_MAX);
	CLEANUP(buf_deinit) struct buf table;
	CLEANUP(buf_deinit) struct buf names;
	buf_init(&table, RUNTIMES_SYMBOLS_MAX * sizeof(Elf64_Sym));
	buf_init(&names, RUNTIMES_NAMES_BYTES_MAX);
	enum status s = objfile_read_section(obj, section, &table, e);
	if (s == OK)
		s = objfile_read_section(obj, names_section, &names, e);
	if (s != OK)
		return s;
	struct reader r = reader_over(table.data, table.len);
	while (reader_left(&r) >= sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		memcpy(&symbol, reader_bytes(&r, sizeof(symbol)), sizeof(symbol));
		take_symbol(&names, &symbol, wanted, count);
	}
	return OK;
}

enum status bytes_at(
	const struct objfile *obj, uint64_t address, void *out, size_t len, struct err *e)
{
	struct fileoff off;
	if (!objfile_fileoff_of(obj, (struct vaddr){ address }, &off))
		return err_set(e, E_INVALID, "%s: nothing in the file is at address %llx",
			objfile_name(obj), (unsigned long long)address);
	return objfile_read(obj, off.v, out, len, e);
}

enum status place_root(const struct objfile *obj, uint64_t variable, uint64_t text,
	struct runtime_record *out, struct err *e)
{
	uint32_t count;
	const struct objfile_segment *s = objfile_segments(obj, &count);
	for (uint32_t i = 0; i < count; i++) {
		if (!(s[i].flags & PF_X) || text < s[i].vaddr ||
			text - s[i].vaddr >= s[i].file_size)
			continue;
		if (s[i].offset > UINT32_MAX || s[i].file_size > UINT32_MAX)
			break;
		out->text_from = (uint32_t)s[i].offset;
		out->text_bytes = (uint32_t)s[i].file_size;
		out->delta = variable - (s[i].vaddr - s[i].offset);
		return OK;
	}
	return err_set(e, E_INVALID, "%s: no code is at address %llx", objfile_name(obj),
		(unsigned long long)text);
}

void place_function(const struct objfile *obj, const struct runtime_symbol *symbol, uint32_t out[2])
{
	struct fileoff off;
	if (!symbol->address || symbol->size > UINT32_MAX / 2 ||
		!objfile_fileoff_of(obj, (struct vaddr){ symbol->address }, &off) ||
		off.v > UINT32_MAX / 2)
		return;
	out[0] = (uint32_t)off.v;
	out[1] = (uint32_t)(off.v + symbol->size);
}

static bool is_of_version(uint8_t c)
{
	return (c >= '0' && c <= '9') || c == '.';
}

enum status version_in_constants(
	const struct objfile *obj, const char *prefix, char out[16], struct err *e)
{
	const struct objfile_section *constants = objfile_section(obj, ".rodata");
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, RUNTIMES_CONSTANTS_BYTES_MAX);
	enum status s = constants ? objfile_read_section(obj, constants, &bytes, e) : E_NOTFOUND;
	const uint8_t *at = s == OK ? memmem(bytes.data, bytes.len, prefix, strlen(prefix)) : NULL;
	if (!at)
		return err_set(
			e, E_NOTFOUND, "%s: %s is not in its constants", objfile_name(obj), prefix);
	size_t from = (size_t)(at - bytes.data) + strlen(prefix), len = 0;
	for (; len < 15 && from + len < bytes.len && is_of_version(bytes.data[from + len]); len++)
		out[len] = (char)bytes.data[from + len];
	out[len] = 0;
	return OK;
}
