/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both tables are read in blocks, whatever their size: an unstripped compiler has 20 MB of names.
 * First the names are searched for wanted ones: a name is found by its NUL, since linkers let a
 * short name be the end of a longer one. Then the symbols are searched for those whose name is at a
 * place found. Most files have no wanted name, and their symbols are not read at all.
 */
#include "runtimes/internal.h"

#include <elf.h>
#include <string.h>

/* Bytes of a table that are in memory at a time. */
#define BLOCK_BYTES 16384
/* The longest wanted name, with its NUL. */
#define WANTED_BYTES_MAX 128
/* Places of wanted names in one table; a linker's table never has more. */
#define PLACES_MAX 256

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

/* Where wanted names stand among the names. */
struct place {
	uint32_t at;
	uint32_t wanted;
};

struct places {
	struct place v[PLACES_MAX];
	uint32_t count;
	bool is_over;
};

/* Notes the wanted names that end at the NUL bytes[end]; bytes[0] is at `at` among the names. */
static void take_names(struct places *p, const uint8_t *bytes, size_t end, uint64_t at,
	const struct runtime_symbol *wanted, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		size_t len = strlen(wanted[i].name);
		if (wanted[i].address || len == 0 || len > end ||
			memcmp(bytes + end - len, wanted[i].name, len) != 0)
			continue;
		if (p->count == PLACES_MAX) {
			p->is_over = true;
			return;
		}
		p->v[p->count++] = (struct place){ (uint32_t)(at + end - len), i };
	}
}

static enum status find_names(const struct objfile *obj, const struct objfile_section *names,
	const struct runtime_symbol *wanted, uint32_t count, struct places *out, struct err *e)
{
	/* Holds the end of the block before, and then a block. */
	uint8_t block[WANTED_BYTES_MAX + BLOCK_BYTES];
	bool ends[256] = { false };
	size_t kept = 0;
	for (uint32_t i = 0; i < count; i++) {
		size_t len = strlen(wanted[i].name);
		assert(len < WANTED_BYTES_MAX);
		ends[len ? (uint8_t)wanted[i].name[len - 1] : 0] = true;
	}
	for (uint64_t at = 0; at < names->size && !out->is_over;) {
		size_t len = MIN(names->size - at, (uint64_t)BLOCK_BYTES);
		enum status s = objfile_read(obj, names->offset + at, block + kept, len, e);
		if (s != OK)
			return s;
		const uint8_t *end = block + kept, *last = end + len;
		for (; (end = memchr(end, 0, (size_t)(last - end))); end++) {
			if (end > block && ends[end[-1]])
				take_names(out, block, (size_t)(end - block), at - kept, wanted,
					count);
		}
		at += len;
		size_t there = kept + len;
		kept = MIN(there, (size_t)WANTED_BYTES_MAX);
		memmove(block, block + there - kept, kept);
	}
	if (out->is_over)
		return err_set(e, E_LIMIT, "%s: the names of a runtime more than %u times",
			objfile_name(obj), PLACES_MAX);
	return OK;
}

static void take_symbol(
	const struct places *places, const Elf64_Sym *symbol, struct runtime_symbol *wanted)
{
	bool is_of_threads = ELF64_ST_TYPE(symbol->st_info) == STT_TLS;
	if (symbol->st_shndx == SHN_UNDEF || (symbol->st_value == 0 && !is_of_threads))
		return;
	for (uint32_t i = 0; i < places->count; i++) {
		struct runtime_symbol *w = &wanted[places->v[i].wanted];
		if (places->v[i].at != symbol->st_name || w->address)
			continue;
		w->address = symbol->st_value;
		w->size = symbol->st_size;
	}
}

/* Whether the section's bytes are in the file, and not compressed. */
static bool is_plain(const struct objfile_section *s)
{
	return s->type != SHT_NOBITS && !(s->flags & SHF_COMPRESSED);
}

enum status symbols_find(const struct objfile *obj, uint32_t section_type,
	struct runtime_symbol *wanted, uint32_t count, struct err *e)
{
	const struct objfile_section *names;
	const struct objfile_section *section = section_of_type(obj, section_type, &names);
	if (!section || !is_plain(section) || !is_plain(names))
		return OK;
	if (section->size > RUNTIMES_SYMBOLS_MAX * sizeof(Elf64_Sym))
		return err_set(e, E_LIMIT, "%s: more than %u symbols", objfile_name(obj),
			RUNTIMES_SYMBOLS_MAX);
	if (names->size > RUNTIMES_NAMES_BYTES_MAX)
		return err_set(e, E_LIMIT, "%s: more than %zu bytes of names", objfile_name(obj),
			RUNTIMES_NAMES_BYTES_MAX);
	struct places places = { .count = 0 };
	enum status s = find_names(obj, names, wanted, count, &places, e);
	uint64_t symbols = places.count ? section->size / sizeof(Elf64_Sym) : 0;
	for (uint64_t at = 0; at < symbols && s == OK;) {
		Elf64_Sym block[BLOCK_BYTES / sizeof(Elf64_Sym)];
		size_t n = MIN(symbols - at, (uint64_t)ARRAY_COUNT(block));
		s = objfile_read(obj, section->offset + at * sizeof(Elf64_Sym), block,
			n * sizeof(Elf64_Sym), e);
		for (size_t i = 0; s == OK && i < n; i++)
			take_symbol(&places, &block[i], wanted);
		at += n;
	}
	return s;
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

enum status version_in_section(const struct objfile *obj, const char *section, const char *prefix,
	char out[16], struct err *e)
{
	const struct objfile_section *constants = objfile_section(obj, section);
	CLEANUP(buf_deinit) struct buf bytes;
	buf_init(&bytes, RUNTIMES_CONSTANTS_BYTES_MAX);
	enum status s = constants ? objfile_read_section(obj, constants, &bytes, e) : E_NOTFOUND;
	const uint8_t *at = s == OK ? memmem(bytes.data, bytes.len, prefix, strlen(prefix)) : NULL;
	if (!at)
		return err_set(e, E_NOTFOUND, "%s: %s is not in its %s", objfile_name(obj), prefix,
			section);
	size_t from = (size_t)(at - bytes.data) + strlen(prefix), len = 0;
	for (; len < 15 && from + len < bytes.len && is_of_version(bytes.data[from + len]); len++)
		out[len] = (char)bytes.data[from + len];
	out[len] = 0;
	return OK;
}
