/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds where functions begin and end in a stripped file: .eh_frame_hdr has a sorted table of
 * functions and of their entries in .eh_frame, for unwinding. It has no names, but with it all
 * addresses of one function become one frame, "+0x…". Runs in the child only. Source: Linux
 * Standard Base, Core, 10.6 "Exception frames".
 */
#include "debuginfo/symtab/readers.h"

#include "base/reader.h"

/* The one encoding that linkers write: pointer relative to itself, count as it is, table relative
 * to the section, four bytes each. */
#define ENCODING_POINTER 0x1b
#define ENCODING_COUNT 0x03
#define ENCODING_TABLE 0x3b

struct section {
	const uint8_t *bytes;
	size_t len;
	uint64_t vaddr;
};

/* The size of the function at `start`, from its entry (FDE): length u32, CIE u32, beginning i32
 * relative to itself, size u32. With another encoding the begin would not equal `start`, so that is
 * noticed. */
static uint64_t function_size(const struct section *frames, uint64_t entry, uint64_t start)
{
	struct reader r = reader_over(frames->bytes, frames->len);
	if (entry < frames->vaddr || entry - frames->vaddr > frames->len)
		return 0;
	reader_seek(&r, (size_t)(entry - frames->vaddr));
	reader_skip(&r, 8);
	uint64_t begin = entry + 8 + (uint64_t)reader_i32(&r);
	uint32_t size = reader_u32(&r);
	return !r.failed && begin == start ? size : 0;
}

static enum status add_start(struct debuginfo_builder *b, uint64_t start, uint64_t size)
{
	const struct debuginfo_span *code = debuginfo_builder_code(b, start);
	if (!code || size == 0)
		return OK;
	struct debuginfo_symbol s = {
		.start = start,
		.end = start + MIN(size, code->end - start),
		.origin = start,
		.rank = UINT8_MAX,
		.local = true,
		.sized = true,
	};
	return VEC_PUSH(&b->symbols, s) ? OK : E_NOMEM;
}

static enum status read_table(
	struct debuginfo_builder *b, const struct section *table, const struct section *frames)
{
	struct reader r = reader_over(table->bytes, table->len);
	uint8_t version = reader_u8(&r), pointer = reader_u8(&r);
	uint8_t counting = reader_u8(&r), encoding = reader_u8(&r);
	reader_skip(&r, 4);
	uint32_t count = reader_u32(&r);
	if (r.failed || version != 1 || pointer != ENCODING_POINTER || counting != ENCODING_COUNT ||
		encoding != ENCODING_TABLE || count > reader_left(&r) / 8)
		return OK;
	b->flags |= count ? SYMTAB_EH_FRAME : 0;
	for (uint32_t i = 0; i < count; i++) {
		uint64_t start = table->vaddr + (uint64_t)reader_i32(&r);
		uint64_t entry = table->vaddr + (uint64_t)reader_i32(&r);
		enum status s = add_start(b, start, function_size(frames, entry, start));
		if (s != OK)
			return s;
	}
	return OK;
}

static bool find_section(Elf *elf, const char *want, struct section *out)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!name || sh.sh_type == SHT_NOBITS || strcmp(name, want) != 0)
			continue;
		Elf_Data *data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			return false;
		*out = (struct section){ data->d_buf, data->d_size, sh.sh_addr };
		return true;
	}
	return false;
}

enum status debuginfo_read_ehframe(struct debuginfo_builder *b, Elf *elf)
{
	struct section table, frames;
	if (!find_section(elf, ".eh_frame_hdr", &table) || !find_section(elf, ".eh_frame", &frames))
		return OK;
	return read_table(b, &table, &frames);
}
