/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mends line programs that libdw refuses. libdw takes the length of an extended opcode for one
 * byte, but it is a LEB128 number. Zig's compiler pads with extended opcodes of any length, and
 * libdw then gives up the whole unit. So in a copy of the section each long opcode that no standard
 * defines is replaced by several short ones without effect. Runs in the child only. Source: DWARF
 * 5, 6.2.4 and 6.2.5.
 */
#include "debuginfo/symtab/readers.h"

#include "base/reader.h"

#include <dwarf.h>
#include <stdlib.h>

/* Bytes of one opcode without effect: a 0, its length, and that many bytes. */
#define PAD_MAX (2 + 127)
#define PAD_MIN 3

static void write_pads(uint8_t *at, size_t len)
{
	while (len) {
		size_t n = MIN(len, (size_t)PAD_MAX);
		if (len - n && len - n < PAD_MIN)
			n -= PAD_MIN;
		memset(at, 0, n);
		at[1] = (uint8_t)(n - 2);
		at += n;
		len -= n;
	}
}

/* Reads an extended opcode, whose 0 is at `start`. Returns 1 if it was replaced, or would be (bytes
 * NULL). */
static size_t read_extended(struct reader *r, uint8_t *bytes, size_t start)
{
	uint64_t len = reader_uleb(r);
	size_t at = reader_offset(r);
	if (len == 0 || len > reader_left(r)) {
		r->failed = true;
		return 0;
	}
	uint8_t opcode = reader_u8(r);
	reader_skip(r, (size_t)len - 1);
	if (r->failed || at - start <= 2 ||
		(opcode >= DW_LNE_end_sequence && opcode <= DW_LNE_set_discriminator))
		return 0;
	if (bytes)
		write_pads(bytes + start, at - start + (size_t)len);
	return 1;
}

/* Replaces the opcodes of one unit in `bytes`; NULL: only counts them. Returns their number. */
static size_t read_program(struct reader *r, uint8_t *bytes, bool wide)
{
	const uint8_t *lengths;
	uint16_t version = reader_u16(r);
	reader_skip(r, version >= 5 ? 2 : 0); /* sizes of addresses and segments */
	uint64_t header = wide ? reader_u64(r) : reader_u32(r);
	size_t begin = reader_offset(r), left = reader_left(r);
	reader_skip(r, version >= 4 ? 5 : 4); /* lengths of instructions and steps of lines */
	uint8_t base = reader_u8(r);
	lengths = reader_bytes(r, base ? base - 1 : 0);
	if (r->failed || version < 2 || version > 5 || header > left)
		return 0;
	reader_seek(r, begin + (size_t)header);
	size_t count = 0;
	while (!r->failed && reader_left(r)) {
		size_t at = reader_offset(r);
		uint8_t opcode = reader_u8(r);
		if (opcode == 0)
			count += read_extended(r, bytes, at);
		else if (opcode == DW_LNS_fixed_advance_pc && opcode < base)
			reader_skip(r, 2);
		else if (opcode < base)
			for (uint8_t i = lengths[opcode - 1]; i; i--)
				(void)reader_uleb(r);
	}
	return count;
}

/* Replaces the opcodes of all units; `to`: a copy of the bytes to change, or NULL to count only. */
static size_t replace_all(const uint8_t *from, size_t len, uint8_t *to)
{
	size_t count = 0;
	for (size_t at = 0; len - at > 4;) {
		struct reader r = reader_over(from + at, len - at);
		uint64_t size = reader_u32(&r);
		bool wide = size == UINT32_MAX;
		if (wide)
			size = reader_u64(&r);
		if (r.failed || size > reader_left(&r))
			break;
		at += reader_offset(&r);
		struct reader unit = reader_over(from + at, (size_t)size);
		count += read_program(&unit, to ? to + at : NULL, wide);
		at += (size_t)size;
	}
	return count;
}

enum status debuginfo_repair_lines(Elf *elf)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names) != 0)
		return OK;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn)) != NULL;) {
		GElf_Shdr sh;
		const char *name =
			gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!name || strcmp(name, ".debug_line") != 0 || sh.sh_type == SHT_NOBITS ||
			(sh.sh_flags & SHF_COMPRESSED))
			continue;
		Elf_Data *raw = elf_rawdata(scn, NULL), *data = elf_getdata(scn, NULL);
		if (!raw || !raw->d_buf || !data || data->d_size != raw->d_size ||
			replace_all(raw->d_buf, raw->d_size, NULL) == 0)
			return OK;
		uint8_t *copy = malloc(raw->d_size); /* freed when the child ends */
		if (!copy)
			return E_NOMEM;
		memcpy(copy, raw->d_buf, raw->d_size);
		/* Reading is ahead of writing, so one buffer does for both. */
		(void)replace_all(copy, raw->d_size, copy);
		raw->d_buf = data->d_buf = copy;
		return OK;
	}
	return OK;
}
