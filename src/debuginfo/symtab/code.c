/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disassembles a piece of code. Its bytes are untrusted, so capstone reads them in the child only.
 * Input: u64 address, u32 machine, u32 zero, the bytes. Output: a line "ADDRESS SIZE TEXT\n" for
 * each instruction, numbers in hex; the parent checks that addresses follow each other within the
 * piece.
 *
 * Were the library linked, each process of firn would have 3 MB of its own: the loader writes
 * addresses into the library's tables. So only the child loads it.
 */
#include "debuginfo/symtab/child.h"

#include "base/reader.h"

#include <capstone/capstone.h>
#include <dlfcn.h>
#include <elf.h>
#include <inttypes.h>

#define HEAD_BYTES DEBUGINFO_CODE_HEAD_BYTES
#define LISTING_BYTES_MAX ((uint64_t)64 << 20)

/* ---- the library ---- */

/* clang-format off */
#define CODE_FUNCTIONS(X)                                                                          \
	X(open) X(option) X(malloc) X(disasm_iter) X(free) X(close) X(strerror)
/* clang-format on */

static struct {
#define CODE_FIELD(name) __typeof__(cs_##name) *name;
	CODE_FUNCTIONS(CODE_FIELD)
#undef CODE_FIELD
} cs;

/* Versions 4 and 5 have the same numbers of machines and options. In cs_insn only the length of
 * `bytes` differs; the mnemonic and the operands lie right behind it. */
static const struct {
	const char *file;
	size_t insn_bytes; /* length of cs_insn.bytes */
} libraries[] = { { "libcapstone.so.5", 24 }, { "libcapstone.so.4", 16 } };
static size_t mnemonic_at;

static_assert(CS_API_MAJOR == 4 || CS_API_MAJOR == 5, "another layout of cs_insn");
static_assert(sizeof(((cs_insn *)0)->bytes) == (CS_API_MAJOR == 5 ? 24 : 16), "cs_insn.bytes");

static void *open_library(struct err *e)
{
	for (size_t i = 0; i < ARRAY_COUNT(libraries); i++) {
		void *library = dlopen(libraries[i].file, RTLD_NOW | RTLD_LOCAL);
		mnemonic_at = offsetof(cs_insn, bytes) + libraries[i].insn_bytes;
		if (library)
			return library;
	}
	err_set(e, E_UNSUPPORTED,
		"instructions need libcapstone (package libcapstone4 or libcapstone5): %s",
		dlerror());
	return NULL;
}

enum status debuginfo_code_load(struct err *e)
{
	static const char *const names[] = {
#define CODE_NAME(name) "cs_" #name,
		CODE_FUNCTIONS(CODE_NAME)
#undef CODE_NAME
	};
	void *const places[] = {
#define CODE_PLACE(name) &cs.name,
		CODE_FUNCTIONS(CODE_PLACE)
#undef CODE_PLACE
	};
	void *library = open_library(e);
	if (!library)
		return E_UNSUPPORTED;
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		void *found = dlsym(library, names[i]);
		if (!found)
			return err_set(e, E_UNSUPPORTED, "libcapstone has no %s", names[i]);
		memcpy(places[i], &found, sizeof(found));
	}
	return OK;
}

/* ---- the listing ---- */

static enum status open_machine(uint32_t machine, csh *out, struct err *e)
{
	cs_err rc = CS_ERR_ARCH;
	if (machine == EM_X86_64)
		rc = cs.open(CS_ARCH_X86, CS_MODE_64, out);
	else if (machine == EM_AARCH64)
		rc = cs.open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, out);
	if (rc != CS_ERR_OK)
		return err_set(e, E_UNSUPPORTED, "instructions of machine %u: %s", machine,
			cs.strerror(rc));
	cs.option(*out, CS_OPT_SKIPDATA, CS_OPT_ON);
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
	cs_insn *insn = cs.malloc(handle);
	const char *mnemonic = (const char *)insn + mnemonic_at;
	const char *operands = mnemonic + CS_MNEMONIC_SIZE;
	while (insn && cs.disasm_iter(handle, &at, &left, &address, insn))
		buf_printf(&listing, "%" PRIx64 " %x %s%s%s\n", insn->address, insn->size, mnemonic,
			operands[0] ? " " : "", operands);
	bool has_insn = insn != NULL;
	if (has_insn)
		cs.free(insn, 1);
	cs.close(&handle);
	if (!has_insn)
		return err_set(e, E_NOMEM, "an instruction");
	if (buf_status(&listing) != OK)
		return err_set(e, buf_status(&listing), "the listing");
	return os_write_full(out_fd, listing.data, listing.len, "listing", e);
}
