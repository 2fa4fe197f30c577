/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disassembles a piece of code. Its bytes are untrusted, so capstone reads them in the child only.
 * Input: u64 address, u32 machine, u32 zero, the bytes. Output: a line "ADDRESS SIZE TEXT\n" for
 * each instruction, numbers in hex; the parent checks that addresses follow each other within the
 * piece.
 */
#include "debuginfo/symtab/child.h"

#include "base/reader.h"

#include <capstone/capstone.h>
#include <elf.h>
#include <inttypes.h>

#define HEAD_BYTES DEBUGINFO_CODE_HEAD_BYTES
#define LISTING_BYTES_MAX ((uint64_t)64 << 20)

static enum status open_machine(uint32_t machine, csh *out, struct err *e)
{
	cs_err rc = CS_ERR_ARCH;
	if (machine == EM_X86_64)
		rc = cs_open(CS_ARCH_X86, CS_MODE_64, out);
	else if (machine == EM_AARCH64)
		rc = cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, out);
	if (rc != CS_ERR_OK)
		return err_set(e, E_UNSUPPORTED, "instructions of machine %u: %s", machine,
			cs_strerror(rc));
	cs_option(*out, CS_OPT_SKIPDATA, CS_OPT_ON);
	return OK;
}

static enum status read_piece(int fd, struct buf *out, struct err *e)
{
	enum status s = os_read_fd(fd, "code", out, e);
	if (s == OK && out->len < HEAD_BYTES)
		return err_set(e, E_INVALID, "code: %zu bytes", out->len);
	return s;
}

enum status debuginfo_list_code(int fd, int out_fd, struct err *e)
{
	CLEANUP(buf_deinit) struct buf piece, listing;
	csh handle;
	buf_init(&piece, HEAD_BYTES + DEBUGINFO_CODE_BYTES_MAX);
	buf_init(&listing, LISTING_BYTES_MAX);
	enum status s = read_piece(fd, &piece, e);
	if (s != OK)
		return s;
	struct reader r = reader_over(piece.data, piece.len);
	uint64_t address = reader_u64(&r);
	s = open_machine(reader_u32(&r), &handle, e);
	if (s != OK)
		return s;
	const uint8_t *at = piece.data + HEAD_BYTES;
	size_t left = piece.len - HEAD_BYTES;
	cs_insn *insn = cs_malloc(handle);
	while (insn && cs_disasm_iter(handle, &at, &left, &address, insn))
		buf_printf(&listing, "%" PRIx64 " %x %s%s%s\n", insn->address, insn->size,
			insn->mnemonic, insn->op_str[0] ? " " : "", insn->op_str);
	bool has_insn = insn != NULL;
	if (has_insn)
		cs_free(insn, 1);
	cs_close(&handle);
	if (!has_insn)
		return err_set(e, E_NOMEM, "an instruction");
	if (buf_status(&listing) != OK)
		return err_set(e, buf_status(&listing), "the listing");
	return os_write_full(out_fd, listing.data, listing.len, "listing", e);
}
