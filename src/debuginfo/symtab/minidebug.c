/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MiniDebugInfo: section .gnu_debugdata holds an xz-compressed ELF file with a .symtab of the
 * functions that .dynsym lacks. Runs in the child only.
 * Source: https://sourceware.org/gdb/current/onlinedocs/gdb.html/MiniDebugInfo.html
 */
#include "debuginfo/symtab/readers.h"

#include <lzma.h>
#include <stdlib.h>

#define MINIDEBUG_BYTES_MAX ((size_t)256 << 20)
#define MINIDEBUG_MEMORY_MAX ((uint64_t)128 << 20) /* of the decoder */

static Elf_Data *find_data(Elf *elf)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (name && sh.sh_type == SHT_PROGBITS && strcmp(name, ".gnu_debugdata") == 0)
			return elf_rawdata(scn, NULL);
	}
	return NULL;
}

enum status debuginfo_read_minidebuginfo(
	struct debuginfo_builder *b, Elf *elf, struct buf *bytes, Elf **out)
{
	Elf_Data *data = find_data(elf);
	if (!data || !data->d_buf)
		return OK;
	buf_init(bytes, MINIDEBUG_BYTES_MAX);
	lzma_stream stream = LZMA_STREAM_INIT;
	if (lzma_stream_decoder(&stream, MINIDEBUG_MEMORY_MAX, 0) != LZMA_OK)
		return E_NOMEM;
	stream.next_in = data->d_buf;
	stream.avail_in = data->d_size;
	lzma_ret rc = LZMA_OK;
	while (rc == LZMA_OK) {
		size_t room = MIN((size_t)1 << 20, MINIDEBUG_BYTES_MAX - bytes->len);
		stream.next_out = room ? buf_reserve(bytes, room) : NULL;
		stream.avail_out = room;
		if (!stream.next_out)
			break;
		rc = lzma_code(&stream, LZMA_FINISH);
		bytes->len += room - stream.avail_out;
	}
	lzma_end(&stream);
	if (rc != LZMA_STREAM_END)
		return OK; /* damaged, or a decompression bomb: only its own names are lost */
	Elf *mini = elf_memory((char *)bytes->data, bytes->len);
	if (!mini)
		return OK;
	*out = mini;
	return debuginfo_read_symbols(b, mini, SYMTAB_MINIDEBUGINFO);
}
